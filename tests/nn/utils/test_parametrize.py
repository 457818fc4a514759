"""Parametrizations are PyTorch's, and so are the hooks that came before them."""

from __future__ import annotations

from tests.harness import plain_tests
from tests.nn.utils.cases_parametrize import close, exact

globals().update(plain_tests("nn/utils/parametrize", exact, close))
