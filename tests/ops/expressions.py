"""Cases that are lines of Python: each is evaluated in both libraries, and what it gives compared.

A file of cases makes `Expressions` of a text, a line an expression, and of a function that gives
the names in it. A result is told with dtypes, shapes, values, the name of its node and the
gradients of all names that ask for one; an error with its type and the beginning of its text.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import rushlight
from tests.harness import LIVE, Cases, as_stored, pytorch, stored


def numbers(t: Any) -> Any:
    """The elements of a tensor, of complex numbers in pairs."""
    t = t.detach()
    return numbers_of(t.tolist())


def numbers_of(x: Any) -> Any:
    if isinstance(x, list):
        return [numbers_of(y) for y in x]
    return [x.real, x.imag] if isinstance(x, complex) else x


def tell(torch: Any, x: Any) -> Any:
    """A result as JSON can hold it."""
    if isinstance(x, torch.Tensor):
        node = None if x.grad_fn is None else type(x.grad_fn).__name__
        return {"dtype": str(x.dtype), "shape": list(x.shape), "value": numbers(x), "node": node}
    if isinstance(x, (tuple, list)):
        return [tell(torch, y) for y in x]
    return x if isinstance(x, (bool, int, float, str, type(None))) else repr(x)


def tensors_in(torch: Any, x: Any) -> list[Any]:
    if isinstance(x, (tuple, list)):
        return [t for y in x for t in tensors_in(torch, y)]
    return [x] if isinstance(x, torch.Tensor) else []


def gradients(torch: Any, y: Any, names: dict[str, Any]) -> Any:
    """Of a sum of the elements, each with another weight."""
    total: Any = 0
    for t in tensors_in(torch, y):
        if t.requires_grad:
            t = torch.view_as_real(t.resolve_conj()) if t.is_complex() else t
            weights = torch.arange(1.0, t.numel() + 1, dtype=torch.float64).reshape(t.shape)
            total = total + (t.to(torch.float64) * weights / t.numel()).sum()
    wanted = {k: v for k, v in names.items() if isinstance(v, torch.Tensor) and v.requires_grad}
    if not isinstance(total, torch.Tensor) or not wanted:
        return None
    found = torch.autograd.grad(total, list(wanted.values()), allow_unused=True)
    return {k: None if g is None else numbers(g) for k, g in zip(wanted, found, strict=True)}


class Expressions(Cases):
    """Cases from lines of a text."""

    def __init__(self, names: Callable[[Any], dict[str, Any]], text: str) -> None:
        super().__init__()
        for line in text.strip().splitlines():
            if line.strip() and not line.startswith("#"):
                self.enter(line, self.case(names, line))

    @staticmethod
    def case(names: Callable[[Any], dict[str, Any]], line: str) -> Callable[[Any], Any]:
        def run(torch: Any) -> Any:
            given = names(torch)
            with warnings.catch_warnings(action="ignore"):
                try:
                    y = eval(line, {"torch": torch, **given})
                    return {"gives": tell(torch, y), "gradients": gradients(torch, y, given)}
                except Exception as error:
                    return {"raises": type(error).__name__, "text": str(error).partition("\n")[0]}

        return run

    def run(self, lib: Any, name: str) -> Any:
        return as_stored(self[name](lib))


def compare(got: Any, want: Any, where: str, nodes: bool) -> None:
    """Equal; floats to rounding."""
    if isinstance(want, dict):
        assert isinstance(got, dict) and got.keys() == want.keys(), (where, got, want)
        single = "float32" in str(want.get("dtype")) or "complex64" in str(want.get("dtype"))
        for key in want:
            if key == "text":  # a cure may stand behind
                start = want[key][:40]
                assert got[key].startswith(start), (where, got[key], want[key])
            elif key != "node" or nodes:
                compare(got[key], want[key], f"{where} > {'single ' * single}{key}", nodes)
    elif isinstance(want, list):
        assert isinstance(got, list) and len(got) == len(want), (where, got, want)
        for a, b in zip(got, want, strict=True):
            compare(a, b, where, nodes)
    elif isinstance(want, float):
        tolerance = 2e-5 if "single" in where else 1e-9
        assert got == pytest.approx(want, rel=tolerance, abs=tolerance, nan_ok=True), where
    else:
        assert type(got) is type(want) and got == want, (where, got, want)


def check(cases: Expressions, name: str, line: str, nodes: bool = True) -> None:
    """One expression gives what is stored, and what PyTorch gives where it is installed."""
    got = cases.run(rushlight, line)
    compare(got, stored(name)[line], line, nodes)
    if LIVE:
        compare(got, cases.run(pytorch(), line), line, nodes)
