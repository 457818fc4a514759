"""Packed and padded sequences are PyTorch's."""

from __future__ import annotations

from tests.harness import plain_tests
from tests.nn.utils.cases_rnn import close, exact

globals().update(plain_tests("nn/utils/rnn", exact, close))
