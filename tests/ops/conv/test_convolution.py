"""Convolutions: what PyTorch gives, stored, and live where it is installed."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight
from tests.harness import LIVE, compare, pytorch, stored
from tests.ops import calls
from tests.ops.conv.cases_convolution import CALLS, ERRORS

STORED = stored("ops/conv/convolution")


def check(call: str, want: Any) -> None:
    (found,) = calls.answers(rushlight, call).values()
    compare(found, want, False, f"float64 {call}")


def test_every_call_is_stored() -> None:
    assert list(STORED["answers"]) == calls.listed(CALLS)
    assert list(STORED["errors"]) == calls.listed(ERRORS)


@pytest.mark.parametrize("call", calls.listed(CALLS))
def test_calls_give_what_is_stored(call: str) -> None:
    check(call, STORED["answers"][call])


@pytest.mark.parametrize("call", calls.listed(ERRORS))
def test_mistakes_are_told_as_stored(call: str) -> None:
    (found,) = calls.errors(rushlight, call).values()
    assert found == STORED["errors"][call]


if LIVE:

    def test_calls_give_what_pytorch_gives() -> None:
        theirs = calls.answers(pytorch(), CALLS)
        for call, want in theirs.items():
            check(call, want)
        assert calls.errors(rushlight, ERRORS) == calls.errors(pytorch(), ERRORS)
