"""Results with names.

Written by tools/make_stubs.py from the op table; not to be edited.
"""

from collections.abc import Iterable
from typing import Any, ClassVar, Self

from rushlight.tensor import Tensor

__all__ = ['aminmax', 'cummax', 'cummin', 'frexp', 'geqrf', 'histogram', 'histogramdd', 'kthvalue', 'linalg_cholesky_ex', 'linalg_eig', 'linalg_eigh', 'linalg_inv_ex', 'linalg_ldl_factor', 'linalg_ldl_factor_ex', 'linalg_lstsq', 'linalg_lu', 'linalg_lu_factor', 'linalg_lu_factor_ex', 'linalg_qr', 'linalg_slogdet', 'linalg_solve_ex', 'linalg_svd', 'lu_unpack', 'max', 'median', 'min', 'mode', 'nanmedian', 'qr', 'slogdet', 'sort', 'svd', 'topk', 'triangular_solve']

class Named(tuple[Any, ...]):
    fields: ClassVar[tuple[str, ...]]
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, values: Iterable[Any]) -> Self: ...

class _lu_with_info(tuple[Tensor, Tensor, Tensor]):
    fields: ClassVar[tuple[str, ...]]
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, values: Iterable[Any]) -> Self: ...
    @property
    def LU(self) -> Tensor: ...
    @property
    def pivots(self) -> Tensor: ...
    @property
    def info(self) -> Tensor: ...

class aminmax(tuple[Tensor, Tensor]):
    fields: ClassVar[tuple[str, ...]]
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, values: Iterable[Any]) -> Self: ...
    @property
    def min(self) -> Tensor: ...
    @property
    def max(self) -> Tensor: ...

class cummax(tuple[Tensor, Tensor]):
    fields: ClassVar[tuple[str, ...]]
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, values: Iterable[Any]) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

class cummin(tuple[Tensor, Tensor]):
    fields: ClassVar[tuple[str, ...]]
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, values: Iterable[Any]) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

class frexp(tuple[Tensor, Tensor]):
    fields: ClassVar[tuple[str, ...]]
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, values: Iterable[Any]) -> Self: ...
    @property
    def mantissa(self) -> Tensor: ...
    @property
    def exponent(self) -> Tensor: ...

class geqrf(tuple[Tensor, Tensor]):
    fields: ClassVar[tuple[str, ...]]
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, values: Iterable[Any]) -> Self: ...
    @property
    def a(self) -> Tensor: ...
    @property
    def tau(self) -> Tensor: ...

class histogram(tuple[Tensor, Tensor]):
    fields: ClassVar[tuple[str, ...]]
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, values: Iterable[Any]) -> Self: ...
    @property
    def hist(self) -> Tensor: ...
    @property
    def bin_edges(self) -> Tensor: ...

class histogramdd(tuple[Tensor, Tensor]):
    fields: ClassVar[tuple[str, ...]]
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, values: Iterable[Any]) -> Self: ...
    @property
    def hist(self) -> Tensor: ...
    @property
    def bin_edges(self) -> Tensor: ...

class kthvalue(tuple[Tensor, Tensor]):
    fields: ClassVar[tuple[str, ...]]
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, values: Iterable[Any]) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

class linalg_cholesky_ex(tuple[Tensor, Tensor]):
    fields: ClassVar[tuple[str, ...]]
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, values: Iterable[Any]) -> Self: ...
    @property
    def L(self) -> Tensor: ...
    @property
    def info(self) -> Tensor: ...

class linalg_eig(tuple[Tensor, Tensor]):
    fields: ClassVar[tuple[str, ...]]
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, values: Iterable[Any]) -> Self: ...
    @property
    def eigenvalues(self) -> Tensor: ...
    @property
    def eigenvectors(self) -> Tensor: ...

class linalg_eigh(tuple[Tensor, Tensor]):
    fields: ClassVar[tuple[str, ...]]
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, values: Iterable[Any]) -> Self: ...
    @property
    def eigenvalues(self) -> Tensor: ...
    @property
    def eigenvectors(self) -> Tensor: ...

class linalg_inv_ex(tuple[Tensor, Tensor]):
    fields: ClassVar[tuple[str, ...]]
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, values: Iterable[Any]) -> Self: ...
    @property
    def inverse(self) -> Tensor: ...
    @property
    def info(self) -> Tensor: ...

class linalg_ldl_factor(tuple[Tensor, Tensor]):
    fields: ClassVar[tuple[str, ...]]
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, values: Iterable[Any]) -> Self: ...
    @property
    def LD(self) -> Tensor: ...
    @property
    def pivots(self) -> Tensor: ...

class linalg_ldl_factor_ex(tuple[Tensor, Tensor, Tensor]):
    fields: ClassVar[tuple[str, ...]]
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, values: Iterable[Any]) -> Self: ...
    @property
    def LD(self) -> Tensor: ...
    @property
    def pivots(self) -> Tensor: ...
    @property
    def info(self) -> Tensor: ...

class linalg_lstsq(tuple[Tensor, Tensor, Tensor, Tensor]):
    fields: ClassVar[tuple[str, ...]]
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, values: Iterable[Any]) -> Self: ...
    @property
    def solution(self) -> Tensor: ...
    @property
    def residuals(self) -> Tensor: ...
    @property
    def rank(self) -> Tensor: ...
    @property
    def singular_values(self) -> Tensor: ...

class linalg_lu(tuple[Tensor, Tensor, Tensor]):
    fields: ClassVar[tuple[str, ...]]
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, values: Iterable[Any]) -> Self: ...
    @property
    def P(self) -> Tensor: ...
    @property
    def L(self) -> Tensor: ...
    @property
    def U(self) -> Tensor: ...

class linalg_lu_factor(tuple[Tensor, Tensor]):
    fields: ClassVar[tuple[str, ...]]
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, values: Iterable[Any]) -> Self: ...
    @property
    def LU(self) -> Tensor: ...
    @property
    def pivots(self) -> Tensor: ...

class linalg_lu_factor_ex(tuple[Tensor, Tensor, Tensor]):
    fields: ClassVar[tuple[str, ...]]
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, values: Iterable[Any]) -> Self: ...
    @property
    def LU(self) -> Tensor: ...
    @property
    def pivots(self) -> Tensor: ...
    @property
    def info(self) -> Tensor: ...

class linalg_qr(tuple[Tensor, Tensor]):
    fields: ClassVar[tuple[str, ...]]
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, values: Iterable[Any]) -> Self: ...
    @property
    def Q(self) -> Tensor: ...
    @property
    def R(self) -> Tensor: ...

class linalg_slogdet(tuple[Tensor, Tensor]):
    fields: ClassVar[tuple[str, ...]]
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, values: Iterable[Any]) -> Self: ...
    @property
    def sign(self) -> Tensor: ...
    @property
    def logabsdet(self) -> Tensor: ...

class linalg_solve_ex(tuple[Tensor, Tensor]):
    fields: ClassVar[tuple[str, ...]]
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, values: Iterable[Any]) -> Self: ...
    @property
    def result(self) -> Tensor: ...
    @property
    def info(self) -> Tensor: ...

class linalg_svd(tuple[Tensor, Tensor, Tensor]):
    fields: ClassVar[tuple[str, ...]]
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, values: Iterable[Any]) -> Self: ...
    @property
    def U(self) -> Tensor: ...
    @property
    def S(self) -> Tensor: ...
    @property
    def Vh(self) -> Tensor: ...

class lu_unpack(tuple[Tensor, Tensor, Tensor]):
    fields: ClassVar[tuple[str, ...]]
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, values: Iterable[Any]) -> Self: ...
    @property
    def P(self) -> Tensor: ...
    @property
    def L(self) -> Tensor: ...
    @property
    def U(self) -> Tensor: ...

class max(tuple[Tensor, Tensor]):
    fields: ClassVar[tuple[str, ...]]
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, values: Iterable[Any]) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

class median(tuple[Tensor, Tensor]):
    fields: ClassVar[tuple[str, ...]]
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, values: Iterable[Any]) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

class min(tuple[Tensor, Tensor]):
    fields: ClassVar[tuple[str, ...]]
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, values: Iterable[Any]) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

class mode(tuple[Tensor, Tensor]):
    fields: ClassVar[tuple[str, ...]]
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, values: Iterable[Any]) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

class nanmedian(tuple[Tensor, Tensor]):
    fields: ClassVar[tuple[str, ...]]
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, values: Iterable[Any]) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

class qr(tuple[Tensor, Tensor]):
    fields: ClassVar[tuple[str, ...]]
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, values: Iterable[Any]) -> Self: ...
    @property
    def Q(self) -> Tensor: ...
    @property
    def R(self) -> Tensor: ...

class slogdet(tuple[Tensor, Tensor]):
    fields: ClassVar[tuple[str, ...]]
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, values: Iterable[Any]) -> Self: ...
    @property
    def sign(self) -> Tensor: ...
    @property
    def logabsdet(self) -> Tensor: ...

class sort(tuple[Tensor, Tensor]):
    fields: ClassVar[tuple[str, ...]]
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, values: Iterable[Any]) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

class svd(tuple[Tensor, Tensor, Tensor]):
    fields: ClassVar[tuple[str, ...]]
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, values: Iterable[Any]) -> Self: ...
    @property
    def U(self) -> Tensor: ...
    @property
    def S(self) -> Tensor: ...
    @property
    def V(self) -> Tensor: ...

class topk(tuple[Tensor, Tensor]):
    fields: ClassVar[tuple[str, ...]]
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, values: Iterable[Any]) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

class triangular_solve(tuple[Tensor, Tensor]):
    fields: ClassVar[tuple[str, ...]]
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, values: Iterable[Any]) -> Self: ...
    @property
    def solution(self) -> Tensor: ...
    @property
    def cloned_coefficient(self) -> Tensor: ...
