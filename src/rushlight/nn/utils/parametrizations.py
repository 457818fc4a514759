"""Parametrizations that are often wanted: `orthogonal`, `weight_norm`, `spectral_norm`."""

from __future__ import annotations

import typing as _typing
from typing import Any

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.graph import TensorBase
from rushlight.missing import face as _face
from rushlight.nn.modules.module import Module
from rushlight.nn.utils import parametrize
from rushlight.ops.registry import functions, namespaces

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _linalg(name: str) -> Any:
    return namespaces["linalg"][name]


def _is_orthogonal(Q: Any, eps: float | None = None) -> bool:
    n = Q.shape[-1]
    if eps is None:
        from rushlight.dtypes import finfo

        eps = 10 * n * finfo(Q.dtype).eps
    unit = functions["eye"](n, dtype=Q.dtype, device=Q.device)
    return bool(functions["allclose"](Q.mH @ Q, unit, atol=eps))


def _make_orthogonal(A: Any) -> Any:
    """The orthogonal factor of a matrix, with the signs that make the other's diagonal positive."""
    X, tau = functions["geqrf"](A)
    Q = _linalg("householder_product")(X, tau)
    signs = X.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)
    return Q * signs


class _Orthogonal(Module):
    """Square or tall matrices with orthonormal columns (or wide ones with such rows), as a function
    of any matrix, by one of three maps."""

    base: Any

    def __init__(
        self, weight: Any, orthogonal_map: str, *, use_trivialization: bool = True
    ) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Any) -> Any:
        n, k = X.shape[-2], X.shape[-1]
        turned = n < k
        if turned:
            X = X.mT
            n, k = k, n
        if self.orthogonal_map in ("matrix_exp", "cayley"):
            X = X.tril()
            if n != k:  # square it up by columns of zeros
                zeros = X.new_zeros(*X.shape[:-2], n, n - k)
                X = functions["cat"]([X, zeros], -1)
            A = X - X.mH
            if self.orthogonal_map == "matrix_exp":
                Q = functions["matrix_exp"](A)
            else:
                unit = functions["eye"](n, dtype=A.dtype, device=A.device)
                Q = _linalg("solve")(unit.add(A, alpha=-0.5), unit.add(A, alpha=0.5))
            if n != k:
                Q = Q[..., :k]
        else:
            A = X.tril(diagonal=-1)
            tau = 2.0 / (1.0 + (A * A).sum(-2))
            Q = _linalg("householder_product")(A, tau)
            Q = Q * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        if hasattr(self, "base"):
            Q = self.base @ Q
        return Q.mT if turned else Q

    @no_grad()
    def right_inverse(self, Q: Any) -> Any:
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of "
                f"shape {Q.shape}."
            )
        given = Q
        n, k = Q.shape[-2], Q.shape[-1]
        turned = n < k
        if turned:
            Q = Q.mT
            n, k = k, n
        if not hasattr(self, "base"):
            if self.orthogonal_map in ("cayley", "matrix_exp"):
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley "
                    "parametrizations when use_trivialization=False."
                )
            A, tau = functions["geqrf"](Q)
            A.diagonal(dim1=-2, dim2=-1).sign_()
            A.diagonal(dim1=-2, dim2=-1)[tau == 0.0] *= -1
            return A.mT if turned else A
        if n == k:
            Q = Q.clone() if _is_orthogonal(Q) else _make_orthogonal(Q)
        else:  # complete it to a square matrix
            more = functions["randn"](*Q.shape[:-2], n, n - k, dtype=Q.dtype, device=Q.device)
            Q = _make_orthogonal(functions["cat"]([Q, more], -1))
        self.base = Q
        start = functions["zeros_like"](given)
        start.diagonal(dim1=-2, dim2=-1).fill_(
            -1.0 if self.orthogonal_map == "householder" else 0.0
        )
        return start


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *,
    use_trivialization: bool = True,
) -> Module:  # fmt: skip
    """Let a weight be a matrix with orthonormal columns, or rows if it has fewer of them.

    `orthogonal_map` is "matrix_exp", "cayley" or "householder"; with `use_trivialization` the
    parameter counts from a base that assigning to the weight moves.

    >>> from rushlight.nn.utils.parametrizations import orthogonal
    >>> m = orthogonal(torch.nn.Linear(2, 4), orthogonal_map="cayley")
    >>> bool(torch.allclose(m.weight.T @ m.weight, torch.eye(2), atol=1e-6))
    True
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, TensorBase):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    t: Any = weight
    if t.ndim < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {t.ndim} dimensions."
        )
    if orthogonal_map is None:
        square = t.shape[-2] == t.shape[-1] or t.is_complex()
        orthogonal_map = "matrix_exp" if square else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: '
            f"{orthogonal_map}"
        )
    made = _Orthogonal(t, orthogonal_map, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, made, unsafe=True)


class _WeightNorm(Module):
    """A length for each slice along `dim`, times its direction."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        return functions["_weight_norm"](weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Any) -> Any:
        return functions["norm_except_dim"](weight, 2, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int = 0) -> Module:
    """Let a weight be lengths (`original0`) times directions (`original1`), a length for each slice
    along `dim`, or one for all (`dim=None`).

    >>> m = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 3))
    >>> m.parametrizations.weight.original0.shape
    torch.Size([3, 1])
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def from_old_names(
        state_dict: Any, prefix: str, local_metadata: Any, strict: Any, missing_keys: Any,
        unexpected_keys: Any, error_msgs: Any,
    ) -> None:  # fmt: skip
        old = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
        if all(key in state_dict for key in old):
            for i, key in enumerate(old):
                new = f"{prefix}parametrizations.{name}.original{i}"
                state_dict[new] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(from_old_names)
    return module


class _SpectralNorm(Module):
    """A matrix divided by its largest singular value, which a few steps of the power method
    follow."""

    _u: Any
    _v: Any

    def __init__(
        self, weight: Any, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        if dim >= weight.ndim or dim < -weight.ndim:
            raise IndexError(
                "Dimension out of range (expected to be in range of "
                f"[-{weight.ndim}, {weight.ndim - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got n_power_iterations="
                f"{n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + weight.ndim
        self.eps = eps
        if weight.ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._reshape_weight_to_matrix(weight)
            h, w = matrix.shape
            u, v = matrix.new_empty(h).normal_(0, 1), matrix.new_empty(w).normal_(0, 1)
            self.register_buffer("_u", self._unit(u))
            self.register_buffer("_v", self._unit(v))
            self._power_method(matrix, 15)

    def _unit(self, x: Any) -> Any:
        return namespaces["nn.functional"]["normalize"](x, dim=0, eps=self.eps)

    def _reshape_weight_to_matrix(self, weight: Any) -> Any:
        if self.dim != 0:
            others = [d for d in range(weight.ndim) if d != self.dim]
            weight = weight.permute(self.dim, *others)
        return weight.flatten(1)

    @no_grad()
    def _power_method(self, weight_mat: Any, n_power_iterations: int) -> None:
        for _ in range(n_power_iterations):
            self._u.copy_(self._unit(functions["mv"](weight_mat, self._v)))
            self._v.copy_(self._unit(functions["mv"](weight_mat.H, self._u)))

    def forward(self, weight: Any) -> Any:
        if weight.ndim == 1:
            return self._unit(weight)
        matrix = self._reshape_weight_to_matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # copies: the buffers are written in the next forward, before this one's backward perhaps
        u, v = self._u.clone(), self._v.clone()
        sigma = functions["vdot"](u, functions["mv"](matrix, v))
        return weight / sigma

    def right_inverse(self, value: Any) -> Any:
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
    dim: int | None = None,
) -> Module:  # fmt: skip
    """Let a weight be divided by its largest singular value, as networks with a bounded slope want.

    >>> m = torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(20, 40))
    >>> round(float(torch.linalg.matrix_norm(m.weight, 2)), 1)
    1.0
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, TensorBase):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        dim = 1 if _is_transposed(module) else 0
    made = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return parametrize.register_parametrization(module, name, made)


def _is_transposed(module: Module) -> bool:
    """Whether a module's weight has its outputs in the second dimension: transposed
    convolutions."""
    return any(cls.__name__.startswith("ConvTranspose") for cls in type(module).__mro__)


if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.nn.utils.parametrizations", globals())
