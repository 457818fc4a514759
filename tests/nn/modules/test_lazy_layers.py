"""Lazy modules are PyTorch's."""

from __future__ import annotations

from tests.harness import plain_tests
from tests.nn.modules.cases_lazy_layers import close, exact

globals().update(plain_tests("nn/modules/lazy_layers", exact, close))
