"""Ops: their parameters."""

from __future__ import annotations

import pytest

from rushlight.core.graph import Op


class Shift(Op):
    name, params = "shift", ("by", "dim")
    by: int
    dim: int = -1


def test_parameters_are_given_in_the_order_of_params() -> None:
    assert Shift(2, 0).parameters() == (2, 0)
    assert Shift(2, 0) != Shift(0, 2)


def test_a_class_attribute_is_a_default() -> None:
    assert Shift(2).parameters() == (2, -1)
    assert Shift(2) == Shift(2, -1)


def test_a_value_without_a_parameter_is_an_error() -> None:
    with pytest.raises(TypeError, match="Shift has no parameter for 7"):
        Shift(2, 0, 7)
