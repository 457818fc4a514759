"""Results with names: `x.max(0).values`. Tuples that print as PyTorch prints them."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import Any, ClassVar, Final

__all__ = [
    "aminmax", "cummax", "cummin", "frexp", "geqrf", "histogram", "histogramdd", "kthvalue",
    "linalg_cholesky_ex", "linalg_eig", "linalg_eigh", "linalg_inv_ex", "linalg_ldl_factor",
    "linalg_ldl_factor_ex", "linalg_lstsq", "linalg_lu", "linalg_lu_factor",
    "linalg_lu_factor_ex", "linalg_qr", "linalg_slogdet", "linalg_solve_ex", "linalg_svd",
    "lu_unpack", "max", "median", "min", "mode", "nanmedian", "qr", "slogdet", "sort", "svd",
    "topk", "triangular_solve",
]  # fmt: skip
__dir__ = __all__.copy


class Named(tuple[Any, ...]):
    """A tuple whose places have names, in the order of `fields`.

    >>> pair = sort([[1, 2], [1, 0]])
    >>> pair.values
    [1, 2]
    >>> pair
    torch.return_types.sort(
    values=[1, 2],
    indices=[1, 0])
    """

    __slots__ = ()
    fields: ClassVar[tuple[str, ...]] = ()
    n_fields: ClassVar[int] = 0
    n_sequence_fields: ClassVar[int] = 0
    n_unnamed_fields: ClassVar[int] = 0

    def __new__(cls, values: Iterable[Any]) -> Named:
        made = tuple.__new__(cls, values)
        if len(made) != cls.n_fields:
            raise TypeError(
                f"torch.return_types.{cls.__name__}() takes a {cls.n_fields}-sequence "
                f"({len(made)}-sequence given)"
            )
        return made

    def __repr__(self) -> str:
        inside = ",\n".join(f"{name}={value!r}" for name, value in zip(self.fields, self))
        return f"torch.return_types.{type(self).__name__}(\n{inside})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (tuple(self),)


def _make(name: str, *fields: str) -> Any:
    members: dict[str, Any] = {
        field: property(itemgetter(i), doc=f"item {i} of the tuple")
        for i, field in enumerate(fields)
    }
    members.update(__slots__=(), __module__=__name__, fields=fields)
    members.update(n_fields=len(fields), n_sequence_fields=len(fields))
    return type(name, (Named,), members)


_lu_with_info: Final = _make("_lu_with_info", "LU", "pivots", "info")
aminmax: Final = _make("aminmax", "min", "max")
cummax: Final = _make("cummax", "values", "indices")
cummin: Final = _make("cummin", "values", "indices")
frexp: Final = _make("frexp", "mantissa", "exponent")
geqrf: Final = _make("geqrf", "a", "tau")
histogram: Final = _make("histogram", "hist", "bin_edges")
histogramdd: Final = _make("histogramdd", "hist", "bin_edges")
kthvalue: Final = _make("kthvalue", "values", "indices")
linalg_cholesky_ex: Final = _make("linalg_cholesky_ex", "L", "info")
linalg_eig: Final = _make("linalg_eig", "eigenvalues", "eigenvectors")
linalg_eigh: Final = _make("linalg_eigh", "eigenvalues", "eigenvectors")
linalg_inv_ex: Final = _make("linalg_inv_ex", "inverse", "info")
linalg_ldl_factor: Final = _make("linalg_ldl_factor", "LD", "pivots")
linalg_ldl_factor_ex: Final = _make("linalg_ldl_factor_ex", "LD", "pivots", "info")
linalg_lstsq: Final = _make("linalg_lstsq", "solution", "residuals", "rank", "singular_values")
linalg_lu: Final = _make("linalg_lu", "P", "L", "U")
linalg_lu_factor: Final = _make("linalg_lu_factor", "LU", "pivots")
linalg_lu_factor_ex: Final = _make("linalg_lu_factor_ex", "LU", "pivots", "info")
linalg_qr: Final = _make("linalg_qr", "Q", "R")
linalg_slogdet: Final = _make("linalg_slogdet", "sign", "logabsdet")
linalg_solve_ex: Final = _make("linalg_solve_ex", "result", "info")
linalg_svd: Final = _make("linalg_svd", "U", "S", "Vh")
lu_unpack: Final = _make("lu_unpack", "P", "L", "U")
max: Final = _make("max", "values", "indices")
median: Final = _make("median", "values", "indices")
min: Final = _make("min", "values", "indices")
mode: Final = _make("mode", "values", "indices")
nanmedian: Final = _make("nanmedian", "values", "indices")
qr: Final = _make("qr", "Q", "R")
slogdet: Final = _make("slogdet", "sign", "logabsdet")
sort: Final = _make("sort", "values", "indices")
svd: Final = _make("svd", "U", "S", "V")
topk: Final = _make("topk", "values", "indices")
triangular_solve: Final = _make("triangular_solve", "solution", "cloned_coefficient")
