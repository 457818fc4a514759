"""Distributions give what PyTorch's give: stored, and live where it is installed."""

from __future__ import annotations

from tests.distributions.cases_distributions import close, exact
from tests.harness import plain_tests

globals().update(plain_tests("distributions/distributions", exact, close))
