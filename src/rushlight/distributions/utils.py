"""What distributions share: broadcasting, probabilities and logits, lazy properties."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any

from rushlight import dtypes
from rushlight.autograd.grad_mode import enable_grad
from rushlight.distributions.names import F, ops
from rushlight.overrides import is_tensor_like

__all__ = [
    "broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits",
    "tril_matrix_to_vec", "vec_to_tril_matrix",
]  # fmt: skip
__dir__ = __all__.copy

euler_constant = 0.57721566490153286060


def broadcast_all(*values: Any) -> tuple[Any, ...]:
    """Tensors of one shape, from tensors and numbers. Numbers take the dtype and device of the
    first tensor; if there is none, the default ones.

    Args:
        values: tensors, or numbers.

    >>> torch.distributions.utils.broadcast_all(1, torch.tensor([2., 3.]))
    (tensor([1., 1.]), tensor([2., 3.]))
    """
    if not all(is_tensor_like(v) or isinstance(v, Number) for v in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects "
            "implementing __torch_function__."
        )
    if not all(is_tensor_like(v) for v in values):
        like: dict[str, Any] = {"dtype": dtypes.get_default_dtype()}
        for value in values:
            if is_tensor_like(value):
                like = {"dtype": value.dtype, "device": value.device}
                break
        alone = "device" not in like
        values = tuple(v if is_tensor_like(v) else ops.tensor(v, **like) for v in values)
        if alone:
            return values
    return tuple(ops.broadcast_tensors(*values))


def _expanded(value: Any, shape: Any) -> Any:
    """`value.expand(shape)`; the tensor itself if it has the shape. For draws without history."""
    return value if value.shape == shape else value.expand(shape)


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Any:
    """Numbers of the standard normal distribution, without a history."""
    return ops.randn(shape, dtype=dtype, device=device)


def _sum_rightmost(value: Any, dim: int) -> Any:
    """`value` summed over its last `dim` dimensions."""
    if dim == 0:
        return value
    return value.reshape((*value.shape[: value.ndim - dim], -1)).sum(-1)


def logits_to_probs(logits: Any, is_binary: bool = False) -> Any:
    """Probabilities from their logarithms, which need not be normalised, along the last dimension;
    or from log-odds.

    Args:
        logits: a tensor.
        is_binary: whether these are log-odds.

    >>> torch.distributions.utils.logits_to_probs(torch.tensor([0., 0.]))
    tensor([0.5000, 0.5000])
    """
    return ops.sigmoid(logits) if is_binary else F.softmax(logits, dim=-1)


def clamp_probs(probs: Any) -> Any:
    """Probabilities moved away from 0 and 1, by the resolution of their dtype.

    Args:
        probs: a tensor.

    >>> torch.distributions.utils.clamp_probs(torch.tensor([0., 0.5]))
    tensor([1.1921e-07, 5.0000e-01])
    """
    eps = ops.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Any, is_binary: bool = False) -> Any:
    """Logarithms of probabilities, or their log-odds.

    Args:
        probs: a tensor.
        is_binary: whether to give log-odds.

    >>> torch.distributions.utils.probs_to_logits(torch.tensor(0.5), is_binary=True)
    tensor(0.)
    """
    clamped = clamp_probs(probs)
    if is_binary:
        return ops.log(clamped) - ops.log1p(-clamped)
    return ops.log(clamped)


class lazy_property:  # PyTorch's name
    """lazy_property(wrapped)

    A property that is computed when it is first read, and is an attribute from then on.

    >>> lazy_property = torch.distributions.utils.lazy_property
    >>> class Square:
    ...     side = 3
    ...     @lazy_property
    ...     def area(self):
    ...         print("computing")
    ...         return self.side ** 2
    >>> s = Square()
    >>> s.area, s.area
    computing
    (9, 9)
    """

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__

    def __get__(self, instance: Any, obj_type: Any = None) -> Any:
        if instance is None:
            return _lazy_property_and_property(self.wrapped)
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _lazy_property_and_property(lazy_property, property):  # PyTorch's name
    """What a lazy property is when it is read from the class: tools take it for a property."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        property.__init__(self, wrapped)


def tril_matrix_to_vec(mat: Any, diag: int = 0) -> Any:
    """The lower triangles of matrices, row by row, as vectors.

    Args:
        mat: a tensor of square matrices.
        diag: the last diagonal that belongs to the triangle.

    >>> torch.distributions.utils.tril_matrix_to_vec(torch.tensor([[1., 0.], [2., 3.]]))
    tensor([1., 2., 3.])
    """
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows = ops.arange(n, device=mat.device)
    return mat[..., rows < rows.view(-1, 1) + (diag + 1)]


def vec_to_tril_matrix(vec: Any, diag: int = 0) -> Any:
    """Lower triangular matrices from vectors: the inverse of `tril_matrix_to_vec`.

    Args:
        vec: a tensor of vectors.
        diag: the last diagonal that is filled.

    >>> torch.distributions.utils.vec_to_tril_matrix(torch.tensor([1., 2., 3.]))
    tensor([[1., 0.],
            [2., 3.]])
    """
    # n rows with `diag` more each: n * (n + 1) / 2 + n * diag - diag * (diag + 1) / 2 numbers
    a = 1 + 2 * diag
    n = (-a + (a * a + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    size = round(float(n))
    if abs(n - size) > ops.finfo(vec.dtype).eps:
        size = int(n)  # the write below says what does not fit
    made = vec.new_zeros((*vec.shape[:-1], size, size))
    rows = ops.arange(size, device=vec.device)
    made[..., rows < rows.view(-1, 1) + (diag + 1)] = vec
    return made
