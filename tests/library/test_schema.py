"""Schemas: what is read is what is printed."""

from __future__ import annotations

import pytest

from rushlight.library.schema import parse_schema


@pytest.mark.parametrize(
    "text",
    [
        "a::f(Tensor x, float y=2., SymInt? z=None) -> Tensor",
        "f.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)",
        "f(Tensor(a|b) x, Tensor(a -> *) y) -> (Tensor(a), Tensor)",
        "f((Tensor, int) x, Tensor[3] y) -> ((Tensor))",
        "f() -> ()",
    ],
)
def test_a_schema_prints_as_it_reads(text: str) -> None:
    assert str(parse_schema(text)) == text
    assert parse_schema(text) == parse_schema(str(parse_schema(text)))


def test_a_default_behind_none() -> None:
    with pytest.raises(RuntimeError, match="Non-default positional argument follows default"):
        parse_schema("f(int x=1, int y) -> ()")
