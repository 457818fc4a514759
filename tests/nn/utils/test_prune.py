"""Pruning is PyTorch's."""

from __future__ import annotations

from tests.harness import plain_tests
from tests.nn.utils.cases_prune import close, exact

globals().update(plain_tests("nn/utils/prune", exact, close))
