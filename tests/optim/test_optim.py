"""Optimisers and schedulers give what PyTorch gives: stored, and live where it is installed."""

from __future__ import annotations

from tests.harness import plain_tests
from tests.optim.cases_optim import close, exact

globals().update(plain_tests("optim/optim", exact, close))
