"""Modules, losses and training give what PyTorch gives: stored, and live where it is installed."""

from __future__ import annotations

from tests.harness import plain_tests
from tests.nn.cases_nn import close, exact

globals().update(plain_tests("nn/nn", exact, close))
