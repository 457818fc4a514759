"""`quantile`: every interpolation, gradients, forms."""

from __future__ import annotations

import pytest

from tests.ops.reduction.order_helpers import NAN, gradient, ints, same, tensor


@pytest.mark.parametrize(
    ("way", "value", "grad"),
    [
        ("linear", 1.75, [0.25, 0.75, 0.0, 0.0]),
        ("lower", 1.0, [1.0, 0.0, 0.0, 0.0]),
        ("higher", 2.0, [0.0, 1.0, 0.0, 0.0]),
        ("nearest", 2.0, [0.0, 1.0, 0.0, 0.0]),
        ("midpoint", 1.5, [0.5, 0.5, 0.0, 0.0]),
    ],
)
def test_quantile(way: str, value: float, grad: list[float]) -> None:
    x = [1.0, 2.0, 3.0, 4.0]
    same(tensor(x).quantile(0.25, interpolation=way), value)
    same(gradient(lambda x: x.quantile(0.25, interpolation=way), x), grad)


def test_quantile_forms() -> None:
    x = tensor([[1.0, 2.0], [3.0, 6.0]])
    same(x.quantile(0.5), 2.5)
    same(x.quantile(tensor([0.0, 1.0]), 0), [[1.0, 2.0], [3.0, 6.0]])
    same(
        x.quantile(tensor([0.0, 0.5, 1.0]), 1, True),
        [[[1.0], [3.0]], [[1.5], [4.5]], [[2.0], [6.0]]],
    )
    same(tensor([1.0, NAN, 3.0]).quantile(0.5), NAN)
    same(tensor([1.0, NAN, 3.0]).nanquantile(0.5), 2.0)
    same(tensor([NAN]).nanquantile(0.5), NAN)
    q = tensor(0.25, grad=True)
    tensor([1.0, 2.0, 4.0]).quantile(q).backward()
    same(q.grad, 2.0)  # two steps of 1 in q's range, at slope 1
    with pytest.raises(
        RuntimeError, match=r"quantile\(\) q must be in the range \[0, 1\] but got 1.5"
    ):
        x.quantile(1.5)
    with pytest.raises(
        RuntimeError, match=r"quantile\(\) input tensor must be either float or dou"
    ):
        ints([1]).quantile(0.5)
    with pytest.raises(RuntimeError, match="input tensor must be non-empty"):
        tensor([]).quantile(0.5)
