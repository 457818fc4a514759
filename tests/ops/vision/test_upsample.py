"""Resizing, grids and shuffles: what PyTorch gives, stored, and live where it is installed."""

from __future__ import annotations

from tests.ops.calls import call_tests
from tests.ops.vision.cases_upsample import CALLS, ERRORS

globals().update(call_tests("ops/vision/upsample", CALLS, ERRORS))
