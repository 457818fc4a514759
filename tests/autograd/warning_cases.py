"""How cases of `functional`, `gradcheck` and anomaly mode are run: what they warn of counts too."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from tests.harness import Case, Cases


class WarningCases(Cases):
    """Of a case count its result, or how it fails, and what it warns of."""

    def __call__(self, fn: Case) -> Case:
        return self.enter(fn.__name__.replace("_", " "), fn)

    def run(self, lib: Any, name: str) -> Any:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", UserWarning)
            try:
                result = plain(self[name](lib))
            except Exception as error:  # whatever it is, both libraries must raise it
                text = str(error).splitlines()[0].split(" Please look at")[0]
                result = f"{type(error).__name__}: {text}"
        texts = [str(w.message).strip().splitlines()[0] for w in said if w.category is UserWarning]
        texts = [t.split(" (Triggered internally")[0] for t in texts if "performance drop" not in t]
        return {"result": result, "warnings": texts}

    def differing(self, lib: Any, stored: dict[str, Any]) -> list[str]:
        """The cases in which a library does something else than what is stored."""
        found: list[str] = []
        for name in self:
            got = self.run(lib, name)
            try:
                compare(got, stored[name], name)
            except AssertionError as error:
                found.append(f"{error}\n  got {got}\n  stored {stored[name]}")
        return found


def compare(got: Any, want: Any, where: str) -> None:
    if isinstance(want, dict):
        assert isinstance(got, dict) and got.keys() == want.keys(), where
        for key in want:
            compare(got[key], want[key], f"{where} > {key}")
    elif isinstance(want, list):
        assert isinstance(got, list) and len(got) == len(want), (where, got, want)
        for a, b in zip(got, want, strict=True):
            compare(a, b, where)
    elif isinstance(want, float):
        assert got == pytest.approx(want, rel=1e-12, abs=1e-13, nan_ok=True), where
    else:
        assert got == want, where


def inputs(torch: Any) -> tuple[Any, Any, Any]:
    x = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64)
    y = torch.tensor([[1.0, 0.25, -0.5], [2.0, -1.5, 0.75]], dtype=torch.float64)
    return x, y, torch.tensor(0.7, dtype=torch.float64)


def plain(x: Any) -> Any:
    if isinstance(x, (tuple, list)):
        return [type(x).__name__, *[plain(y) for y in x]]
    if hasattr(x, "grad_fn"):
        flat = x.detach().reshape(-1)
        if flat.is_complex():
            numbers = [part for z in flat.tolist() for part in (z.real, z.imag)]
        else:
            numbers = flat.tolist()
        return {
            "shape": list(x.shape), "dtype": str(x.dtype), "asks": x.requires_grad,
            "numbers": numbers,
        }  # fmt: skip
    return x
