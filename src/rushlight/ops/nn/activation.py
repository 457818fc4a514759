"""What the files of activation functions share: their bases, and how they are applied.

Where a derivative is a choice between cases, the rule chooses with `where` and does not multiply by
0 or 1: an infinite gradient is then let through or stopped, as in PyTorch, and never becomes NaN.
"""

from __future__ import annotations

from typing import Any, ClassVar

from rushlight import dtypes
from rushlight.core.dispatch import unary
from rushlight.core.families import Elementwise
from rushlight.core.graph import TensorBase
from rushlight.ops.apply import run_inplace
from rushlight.ops.checks import check_tensor
from rushlight.ops.pointwise.family import Through
from rushlight.ops.registry import describe, functional, variant


class Activation(Elementwise):
    """An activation; `kernel` is what PyTorch calls it when it refuses a dtype ("" takes all)."""

    kernel: ClassVar[str] = ""

    def check(self, common: Any) -> None:
        if self.kernel and not common.is_floating_point:
            if common.is_complex and self.complex_too:
                return
            kind = common.scalar_type
            raise NotImplementedError(f"\"{self.kernel}\" not implemented for '{kind}'")


class Piecewise(Through, Activation):
    """An activation whose derivative is a choice."""


def act(title: str, what: Any, input: Any, inplace: bool = False) -> Any:
    """Apply an activation, into the input itself if `inplace`."""
    check_tensor(input, title)
    return run_inplace(what, (input,)) if inplace else unary(what, input)


def export_activation(cls: Any, text: str, example: str, shown: str) -> None:
    """Make `nn.functional.f(input, inplace=False)` from an activation without parameters."""
    name, made = cls.name, cls()

    def activation(input: Any, inplace: bool = False) -> Any:
        return act(name, made, input, inplace)

    doc = describe(text, f"torch.nn.functional.{name}(torch.tensor([{example}]))", shown)
    fn = variant(activation, name, doc)
    fn.__module__ = cls.__module__
    functional(settles="rank")(fn)


def fit_bounds(input: Any, *bounds: Any) -> Any:
    """Bounds as the input's dtype holds them: whole numbers for integers."""
    if not isinstance(input, TensorBase):
        return bounds
    kind = input._array.dtype.kind
    if kind == "f":
        for b in bounds:
            if type(b) is complex:
                raise unfit_error(input)
    elif kind != "c" and any(type(b) is complex for b in bounds):
        raise unfit_error(input)
    return [int(b) for b in bounds] if kind in "iu" else bounds


def unfit_error(input: TensorBase) -> RuntimeError:
    """PyTorch's error for a complex number where the input is real."""
    name = {"float32": "float", "float64": "double"}.get(dtypes.of(input._array.dtype).name, "")
    name = name or dtypes.of(input._array.dtype).scalar_type
    return RuntimeError(f"value cannot be converted to type {name} without overflow")
