"""Airy's function, spherical Bessel functions and orthogonal polynomials: `torch.special`.

PyTorch defines no derivatives of them.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from rushlight.arrays.formulas import formula
from rushlight.core.graph import TensorBase
from rushlight.ops.checks import invalid, is_number
from rushlight.ops.pointwise.family import Pointwise, expose
from rushlight.ops.pointwise.special import as_array_like
from rushlight.ops.registry import describe, function, functions, variant


class Formula(Pointwise):
    """A function of `arrays.formulas`; bools and integers become the default float."""

    promotion, refuses, differentiable = "float", "c", False
    formula: ClassVar[str] = ""

    def forward(self, *xs: Any) -> Any:
        like = next(x for x in xs if hasattr(x, "dtype"))
        ready = [as_array_like(x, like) for x in xs]
        return formula(ready[0], self.formula, *ready[1:])


_ONLY_SPECIAL: Final[dict[str, Any]] = {
    "inplace": False, "method": False, "free": False, "namespace": "special",
}  # fmt: skip


def _choose(name: str, input: Any, n: Any) -> Any:
    first = isinstance(input, TensorBase)
    number, tensor = (n, input) if first else (input, n)
    if not (is_number(number) and isinstance(tensor, TensorBase)):
        raise invalid(
            name, (input, n), "(Tensor input, Tensor n, *, Tensor out = None)",
            "(Number x, Tensor n, *, Tensor out = None)",
            "(Tensor input, Number n, *, Tensor out = None)",
        )  # fmt: skip


def _make(name: str, text: str, at: str, gives: str, inputs: tuple[str, ...] = ("self",)) -> None:
    facts = {
        "name": f"special_{name}", "formula": name, "inputs": inputs, "__doc__": text,
        "kernel": f"{name}_cpu",
    }  # fmt: skip
    cls = type("".join(w.capitalize() for w in name.split("_")), (Formula,), facts)
    choose = _choose if len(inputs) == 2 else None
    expose(cls, at, gives, choose=choose, **_ONLY_SPECIAL)


_make("airy_ai", "Airy's function Ai.", "[0., 1.]", "[0.3550, 0.1353]")
_make(
    "spherical_bessel_j0",
    "The spherical Bessel function of the first kind, of order 0: sin(x) / x.",
    "[0., 1.]", "[1.0000, 0.8415]",
)  # fmt: skip
for _name, _text, _at_two in (
    ("chebyshev_polynomial_t", "Chebyshev polynomial of the first kind", 26),
    ("chebyshev_polynomial_u", "Chebyshev polynomial of the second kind", 56),
    ("chebyshev_polynomial_v", "Chebyshev polynomial of the third kind", 41),
    ("chebyshev_polynomial_w", "Chebyshev polynomial of the fourth kind", 71),
    ("shifted_chebyshev_polynomial_t", "Chebyshev polynomial of the first kind, of 2 x - 1", 99),
    ("shifted_chebyshev_polynomial_u", "Chebyshev polynomial of the second kind, of 2 x - 1", 204),
    ("shifted_chebyshev_polynomial_v", "Chebyshev polynomial of the third kind, of 2 x - 1", 169),
    ("shifted_chebyshev_polynomial_w", "Chebyshev polynomial of the fourth kind, of 2 x - 1", 239),
    ("hermite_polynomial_h", "Hermite polynomial of the physicists", 40),
    ("hermite_polynomial_he", "Hermite polynomial of the probabilists", 2),
    ("laguerre_polynomial_l", "Laguerre polynomial", -1 / 3),
    ("legendre_polynomial_p", "Legendre polynomial", 17),
):  # fmt: skip
    _make(
        _name, f"The {_text}, number `n`.", "torch.tensor([2.]), 3",
        f"[{_at_two:.4f}]" if _at_two != int(_at_two) else f"[{_at_two}.]", ("self", "n"),
    )  # fmt: skip


# --- the same as elsewhere ------------------------------------------------------------------------
def _softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    return functions["softmax"](input, dim, dtype=dtype)


def _log_softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    return functions["log_softmax"](input, dim, dtype=dtype)


def _export_same() -> None:
    for fn, name, gives in (
        (_softmax, "softmax", "tensor([0.5000, 0.5000])"),
        (_log_softmax, "log_softmax", "tensor([-0.6931, -0.6931])"),
    ):
        text = describe(f"See `torch.{name}`.", f"torch.special.{name}(torch.zeros(2), 0)", gives)
        function(method=False, free=False, namespace="special")(variant(fn, name, text))


_export_same()
