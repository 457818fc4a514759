"""Pooling: what PyTorch gives, stored, and live where it is installed."""

from __future__ import annotations

from tests.ops.calls import call_tests
from tests.ops.pooling.cases_max_pool import CALLS, ERRORS

globals().update(call_tests("ops/pooling/max_pool", CALLS, ERRORS))
