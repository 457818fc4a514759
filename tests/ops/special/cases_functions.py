"""Airy's function, spherical Bessel functions, orthogonal polynomials."""

from __future__ import annotations

from typing import Any

from tests.ops.expressions import Expressions


def names(torch: Any) -> dict[str, Any]:
    x = torch.linspace(-1.5, 1.5, 13, dtype=torch.float64)
    return {
        "S": torch.special, "x": x, "n": torch.arange(-1, 12).to(torch.float64),
        "s": x.to(torch.float32), "i": torch.tensor([0, 1, 2]),
        "o": torch.tensor([float("inf"), float("-inf"), float("nan"), 0.0]),
    }  # fmt: skip


POLYNOMIALS = """
chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w
shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v
shifted_chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l
legendre_polynomial_p
""".split()
_lines = []
for _name in POLYNOMIALS:
    _lines += [
        f"S.{_name}(x, n)", f"S.{_name}(x, 3)", f"S.{_name}(x[:, None], n)", f"S.{_name}(0.5, n)",
        f"S.{_name}(s, 10)",
        f"S.{_name}(torch.tensor([-1.0, 0.0, 1.0]), torch.tensor([[9.0], [8.0]]))",
        f"S.{_name}(i, 2)", f"S.{_name}(x, 2.7)", f"S.{_name}(x + 0j, 2)", f"S.{_name}(1, 2)",
        f"torch.func.vmap(S.{_name})(x, n)",
    ]  # fmt: skip
TEXT = (
    "\n".join(_lines)
    + """
S.airy_ai(s)
S.airy_ai(i)
S.airy_ai(o)
S.airy_ai(x + 0j)
S.airy_ai(torch.tensor([200.0]))
S.spherical_bessel_j0(x)
S.spherical_bessel_j0(s)
S.spherical_bessel_j0(o)
S.spherical_bessel_j0(i)
S.hermite_polynomial_h(torch.tensor([0.1]), torch.tensor([200.0]))
S.softmax(x, 0)
S.softmax(i, 0, dtype=torch.float64)
S.log_softmax(x, 0)
torch.func.vmap(S.airy_ai)(s)
"""
)
cases = Expressions(names, TEXT)
results = cases.results
