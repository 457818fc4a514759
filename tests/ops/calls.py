"""Calls written as text, run on a library: what comes out, and the gradients, in a few numbers.

`x(2, 3)` makes a float64 tensor that asks for gradients, `i(2, 3)` one of int64, `u(2, 3)` one with
numbers between 0 and 1. Each is told by sums against fixed weights: any element that is off shows.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest

import rushlight
from tests.harness import LIVE, as_stored, attempt, compare, pytorch, stored

Sums = list[Any]


def listed(text: str) -> list[str]:
    """The calls of a table: separated by bars and line ends."""
    return [call.strip() for call in text.replace("\n", "|").split("|") if call.strip()]


class Run:
    """One call, on one library."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.leaves: list[Any] = []

    def numbers(self, shape: tuple[int, ...], start: float) -> Any:
        n = math.prod(shape)
        at = self.torch.arange(n, dtype=self.torch.float64)
        return ((at * 0.7 + start).sin() + (at * at * 0.13).cos()).reshape(shape)

    def x(self, *shape: int, dtype: str = "float64") -> Any:
        made = self.numbers(shape, 1.0 + len(self.leaves))
        made = made.detach().to(getattr(self.torch, dtype)).requires_grad_()
        self.leaves.append(made)
        return made

    def z(self, *shape: int) -> Any:
        made = self.torch.complex(self.numbers(shape, 0.3), self.numbers(shape, 2.0 + len(shape)))
        made = made.detach().requires_grad_()
        self.leaves.append(made)
        return made

    def u(self, *shape: int) -> Any:
        return (self.numbers(shape, 0.5) / 2).abs() % 1

    def i(self, *shape: int) -> Any:
        return (self.numbers(shape, 0.0) * 10).to(self.torch.int64)

    def names(self) -> dict[str, Any]:
        torch = self.torch
        return {
            "F": torch.nn.functional, "torch": torch, "nn": torch.nn, "x": self.x, "z": self.z,
            "u": self.u, "i": self.i, "t": torch.tensor,
        }  # fmt: skip


def sums(torch: Any, y: Any) -> Sums:
    """A tensor in four numbers; complex ones as pairs."""
    if y.is_complex():
        y = torch.view_as_real(y)
    flat = y.detach().to(torch.float64).reshape(-1)
    at = torch.arange(flat.numel(), dtype=torch.float64)
    return [
        flat.sum().item(), (flat * at.sin()).sum().item(), (flat * (at * 2.3).cos()).sum().item(),
        (flat * flat).sum().item(),
    ]  # fmt: skip


def looked_at(torch: Any, call: str) -> Any:
    """What a call gives: dtypes, shapes, strides, nodes and sums, then the gradients' and those of
    the gradients."""
    run = Run(torch)
    found = eval(call, run.names())
    inside = call.startswith("torch.func.")  # how results lie, and their nodes, is left open there
    outputs = list(found) if isinstance(found, (tuple, list)) else [found]
    told: list[Any] = []
    for y in outputs:
        node = None if y.grad_fn is None else type(y.grad_fn).__name__
        shown = [] if inside else [list(y.stride()), node]
        told.append([str(y.dtype), list(y.shape), *shown, sums(torch, y)])
    grown = [y for y in outputs if y.requires_grad]
    if not grown:
        return told
    loss = sum(
        ((y * y).real if y.is_complex() else y * y).sum() + (y.real * 0.3).sum() for y in grown
    )
    first = torch.autograd.grad(loss, run.leaves, create_graph=True, allow_unused=True)
    told.append([None if g is None else sums(torch, g) for g in first])
    again = [g for g in first if g is not None and g.requires_grad]
    if again and not call.startswith("F.grid_sample"):  # PyTorch has no second gradient of it
        loss = sum((g * g).real.sum() if g.is_complex() else (g * g).sum() for g in again)
        second = torch.autograd.grad(loss, run.leaves, allow_unused=True)
        told.append([None if g is None else sums(torch, g) for g in second])
    return told


def answers(torch: Any, calls: str) -> dict[str, Any]:
    """What each call of a table gives."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {call: as_stored(looked_at(torch, call)) for call in listed(calls)}


def errors(torch: Any, calls: str) -> dict[str, Any]:
    """How each call of a table fails."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            call: attempt(lambda call=call: str(eval(call, Run(torch).names()).shape))  # type: ignore[misc]  # a default binds it
            for call in listed(calls)
        }


def call_tests(stored_as: str, good: str, bad: str) -> dict[str, Any]:
    """The tests of a table of calls and one of mistakes, for a file's `globals().update`: that all
    are stored, that rushlight answers as is stored, and as PyTorch does where it is installed."""
    known = stored(stored_as)

    def check(call: str, want: Any) -> None:
        (found,) = answers(rushlight, call).values()
        compare(found, want, False, f"float64 {call}")

    def test_every_call_is_stored() -> None:
        assert list(known["answers"]) == listed(good)
        assert list(known["errors"]) == listed(bad)

    @pytest.mark.parametrize("call", listed(good))
    def test_calls_give_what_is_stored(call: str) -> None:
        check(call, known["answers"][call])

    @pytest.mark.parametrize("call", listed(bad))
    def test_mistakes_are_told_as_stored(call: str) -> None:
        (found,) = errors(rushlight, call).values()
        assert found == known["errors"][call]

    def test_calls_give_what_pytorch_gives() -> None:
        for call, want in answers(pytorch(), good).items():
            check(call, want)
        assert errors(rushlight, bad) == errors(pytorch(), bad)

    made = [test_every_call_is_stored, test_calls_give_what_is_stored]
    made += [test_mistakes_are_told_as_stored]
    if LIVE:
        made += [test_calls_give_what_pytorch_gives]
    return {test.__name__: test for test in made}
