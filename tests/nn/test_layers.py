"""Norms, losses, bags and adaptive softmax give what PyTorch gives: stored, and live."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight
from tests.harness import LIVE, pytorch, stored
from tests.nn.cases_layers import close, exact
from tests.nn.plain_cases import compare

STORED = stored("nn/layers")


def test_every_case_is_stored() -> None:
    assert STORED.keys() == (exact | close).keys()


@pytest.mark.parametrize("name", sorted(exact))
def test_equals_what_is_stored(name: str) -> None:
    compare(exact.run(rushlight, name), STORED[name], True, name)


@pytest.mark.parametrize("name", sorted(close))
def test_is_close_to_what_is_stored(name: str) -> None:
    compare(lacking(close.run(rushlight, name), STORED[name]), STORED[name], False, name)


def lacking(got: Any, want: Any) -> Any:
    """What was got, without second gradients where PyTorch has none."""
    if isinstance(got, dict) and isinstance(want, dict):
        return {k: lacking(v, want[k]) if k in want else v for k, v in got.items()}
    if isinstance(got, list) and isinstance(want, list):
        if len(got) == 4 and isinstance(got[0], str) and got[0].endswith("Backward0"):
            got = got[: len(want)]
            if len(want) == 4 and want[3] is None:
                got[3] = None
        if len(got) == len(want):
            return [lacking(a, b) for a, b in zip(got, want, strict=True)]
    return got


if LIVE:

    @pytest.mark.parametrize("name", sorted(exact))
    def test_equals_pytorch(name: str) -> None:
        compare(exact.run(rushlight, name), exact.run(pytorch(), name), True, name)

    @pytest.mark.parametrize("name", sorted(close))
    def test_is_close_to_pytorch(name: str) -> None:
        want = close.run(pytorch(), name)
        compare(lacking(close.run(rushlight, name), want), want, False, name)
