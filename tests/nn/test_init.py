"""First values are PyTorch's."""

from __future__ import annotations

from tests.harness import plain_tests
from tests.nn.cases_init import close, exact

globals().update(plain_tests("nn/init", exact, close))
