"""Convolutions: what PyTorch gives, stored, and live where it is installed."""

from __future__ import annotations

from tests.ops.calls import call_tests
from tests.ops.conv.cases_convolution import CALLS, ERRORS

globals().update(call_tests("ops/conv/convolution", CALLS, ERRORS))
