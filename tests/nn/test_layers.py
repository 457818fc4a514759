"""Norms, losses, bags and adaptive softmax give what PyTorch gives: stored, and live."""

from __future__ import annotations

from tests.harness import plain_tests
from tests.nn.cases_layers import close, exact

globals().update(plain_tests("nn/layers", exact, close))
