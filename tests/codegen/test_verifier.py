"""Kernels that no C can be written for are refused, each with its reason."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rushlight.codegen import catalogue
from rushlight.codegen.expressions import ANY, COLUMN, EACH, NONE, ONE, ROW, Expr, Kernel
from rushlight.codegen.module import c_module
from rushlight.codegen.verifier import IllFormed, operands_of, verify

X, Y = Expr("input", (), 0), Expr("input", (), 1)
SUM = Expr("reduce_sum", (X,), None, ROW)


def kernel(*outputs: Expr, inputs: tuple[Expr, ...] = (X, Y), **more: Any) -> Kernel:
    given = {"params": 1, "keeps_axis": (False,) * len(outputs), **more}
    return Kernel("k", inputs, outputs=outputs, **given)


def test_all_that_are_shipped_are_well_formed() -> None:
    found = list(catalogue.shipped())
    for one in found:
        verify(one)
    assert len(found) > 300


@pytest.mark.parametrize(
    "good",
    [
        kernel(Expr("add", (X, Y))),
        kernel(Expr("less", (X, Y), truth=True)),
        kernel(Expr("divide", (X, Expr("spread", (SUM,))))),
        kernel(SUM, Expr("sum_rows", (X,), None, COLUMN)),
        kernel(Expr("multiply", (X, Expr("param", (), 0, ONE)))),
        kernel(Expr("squares_from", (X, SUM), None, ROW)),
        kernel(Expr("sin", (X,)), inputs=(X, Expr("input", (), 1, NONE))),
        kernel(Expr("multiply", (Expr("input", (), 0, ROW), Expr("input", (), 1, COLUMN))),
               inputs=(Expr("input", (), 0, ROW), Expr("input", (), 1, COLUMN))),
    ],
)  # fmt: skip
def test_well_formed(good: Kernel) -> None:
    verify(good)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (kernel(), "0 results"),
        (replace(kernel(SUM), keeps_axis=()), "1 results, of which 0"),
        (kernel(Expr("frobnicate", (X,))), "there is no word frobnicate"),
        (kernel(Expr("add", (X,))), "add of 1 operands"),
        (kernel(Expr("exp", (X, Y))), "exp of 2 operands"),
        (kernel(Expr("add", (X, Y), None, ROW)), "add of the role row, which is each"),
        (kernel(Expr("add", (SUM, SUM), None, EACH)), "add of the role each, which is row"),
        (kernel(Expr("reduce_sum", (SUM,), None, ROW)), "reduce_sum of the role row, which is $"),
        (kernel(Expr("spread", (X,), None, ROW)), "spread of the role row, which is $"),
        (kernel(Expr("add", (X, Y), truth=True)), "add is a truth"),
        (kernel(Expr("less", (X, Y))), "less is a number"),
        (kernel(Expr("add", (X, Expr("param", (), 1, ONE)))), "parameter 1 of 1"),
        (kernel(Expr("add", (X, Expr("const", (), 1, ONE)))), "a constant 1"),
        (kernel(Expr("add", (X, Expr("const", (), 1.0, EACH)))), "const of the role each"),
        (kernel(Expr("add", (X, Expr("input", (), 2)))), "input 2 is read as what it is not"),
        (kernel(Expr("add", (X, Expr("input", (), 1, ROW)))), "input 1 is read as what it is not"),
        (kernel(Expr("add", (X, Expr("input", (), 1, ANY))), inputs=(X, Expr("input", (), 1, ANY))),
         "input 1 is read, which may be anything"),
        (kernel(Expr("add", (X, Y)), inputs=(Y, X)), "input 0 is input 1"),
        (kernel(Expr("count", (), None, ONE)), "a result of the role one"),
        (kernel(Expr("input", (), 1, COLUMN)), "a result a column that is no sum"),
        (kernel(Expr("negative", (Expr("sum_rows", (X,), None, COLUMN),), None, COLUMN), SUM),
         "a result a column|when all rows are done"),
        (kernel(SUM, above=1), "longer than parameter 1 of 1"),
        (kernel(SUM, params=13), "more than 12"),
        (kernel(Expr("squares_from", (X, Y), None, ROW)), "squares_from of the role row"),
        (kernel(Expr("add", (Expr("input", (X,), 0), Y))), "input of something"),
    ],
)  # fmt: skip
def test_ill_formed(bad: Kernel, reason: str) -> None:
    with pytest.raises(IllFormed, match=reason):
        verify(bad)
    with pytest.raises(IllFormed):
        c_module([bad])


def test_operands_of_words() -> None:
    assert [operands_of(w) for w in ("exp", "add", "where", "square", "reduce_sum")] == [
        1,
        2,
        3,
        1,
        1,
    ]
