"""`torch.masked`: reductions and normalisations of the elements that a mask names.

An element that is masked out takes part as what changes nothing: 0 in a sum, 1 in a product.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from rushlight import dtypes
from rushlight.ops.checks import one_dim
from rushlight.ops.registry import describe, function, functions, namespaces, variant

_INF: Final = float("inf")


# --- what users wrote -----------------------------------------------------------------------------
def _dims(x: Any, dim: Any) -> tuple[int, ...]:
    """The dimensions to reduce, as positive ints, in order."""
    rank = x._array.ndim
    if dim is None or dim == () or dim == []:
        return tuple(range(rank))
    given = dim if isinstance(dim, (tuple, list)) else (dim,)
    found: list[int] = []
    for d in given:
        at = one_dim(d, rank) + max(rank, 1)
        if at in found:
            raise RuntimeError(f"dim={at} appears multiple times in the list of dims")
        found.append(at)
    return tuple(sorted(found)) if rank else ()


def _mask_of(x: Any, mask: Any) -> Any:
    """The mask in the shape of the input."""
    if mask is None:
        return functions["ones"](x._array.shape, dtype=dtypes.bool_, device=x.device)
    if mask._array.dtype.kind != "b":
        mask = mask.to(dtypes.bool_)
    return mask if mask._array.shape == x._array.shape else mask.expand(x._array.shape)


def _filled(x: Any, mask: Any, value: Any) -> Any:
    """The input, with `value` where it is masked out."""
    if mask is None:
        return x
    return functions["where"](_mask_of(x, mask), x, _scalar(x, value))


def _scalar(x: Any, value: Any) -> Any:
    return functions["tensor"](value, dtype=x.dtype, device=x.device)


def _least(x: Any, sign: int) -> Any:
    """The smallest number of a dtype (the largest, if `sign` is -1)."""
    kind = x.dtype
    if kind.is_floating_point or kind.is_complex:
        return -sign * _INF
    if kind is dtypes.bool_:
        return sign < 0
    info = dtypes.iinfo(kind)
    return info.min if sign > 0 else info.max


def _as(x: Any, dtype: Any) -> Any:
    return x if dtype is None or x.dtype is dtype else x.to(dtype)


def _sum_kind(x: Any, dtype: Any) -> Any:
    if dtype is None and x._array.dtype.kind in "biu":
        return dtypes.int64
    return x.dtype if dtype is None else dtype


# --- reductions -----------------------------------------------------------------------------------
def _sum(
    input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Any:
    x = _as(input, _sum_kind(input, dtype))
    dims = _dims(x, dim)
    return functions["sum"](_filled(x, mask, 0), dims, bool(keepdim))


def _prod(
    input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Any:
    x = _as(input, _sum_kind(input, dtype))
    dims = _dims(x, dim)
    x = _filled(x, mask, 1)
    if not x._array.ndim and isinstance(dim, int):
        return functions["prod"](x, dim, bool(keepdim))
    for d in reversed(dims):
        x = functions["prod"](x, d, bool(keepdim))
    return x


def _extreme(name: str, sign: int) -> Any:
    def reduce(
        input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
    ) -> Any:
        x = _as(input, dtype)
        dims = _dims(x, dim)
        x = _filled(x, mask, _least(x, sign))
        return functions[name](x, dims, bool(keepdim))

    return reduce


def _place(name: str, sign: int) -> Any:
    def reduce(
        input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
    ) -> Any:
        x = _filled(input, mask, _least(input, sign))
        found = functions[name](x, dim, bool(keepdim))
        return found.to(input.dtype if dtype is None else dtype)

    return reduce


def _mean(
    input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Any:
    kind = input.dtype if dtype is None else dtype
    if not (kind.is_floating_point or kind.is_complex):
        raise ValueError(
            "mean(): Could not infer output dtype. Input dtype must be either a floating point or "
            f"complex dtype. Got: {kind}"
        )
    x = _as(input, kind)
    count = _sum(_mask_of(x, mask), dim, keepdim=keepdim)
    return _sum(x, dim, keepdim=keepdim, mask=mask) / count


def _median(
    input: Any, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Any:
    x = input  # PyTorch takes `dtype` here, and does not heed it
    d = _dims(x, dim)[:1] or (-1,)
    if x.dtype.is_floating_point:
        return functions["nanmedian"](_filled(x, mask, float("nan")), d[0], bool(keepdim))[0]
    if mask is None:
        return functions["median"](x, d[0], bool(keepdim))[0]
    if not bool(_mask_of(x, mask).any(d[0]).all()):
        raise ValueError(
            "masked median expects no fully masked out rows if dtype is not floating point"
        )
    wide = _filled(x.to(dtypes.float64), mask, float("nan"))
    return functions["nanmedian"](wide, d[0], bool(keepdim))[0].to(x.dtype)


def _norm(
    input: Any, ord: Any = 2.0, dim: Any = None, *, keepdim: bool = False, dtype: Any = None,
    mask: Any = None,
) -> Any:  # fmt: skip
    x = _as(input, dtype)
    x = _filled(x, mask, _INF if ord == -_INF else 0)
    return namespaces["linalg"]["vector_norm"](x, ord, _dims(x, dim), bool(keepdim))


def _spread(
    x: Any,
    dim: Any,
    unbiased: Any,
    correction: Any,
    keepdim: bool,
    dtype: Any,
    mask: Any,
    root: bool,
) -> Any:
    if unbiased is not None and correction is not None:
        raise RuntimeError("Only one of unbiased and correction may be given")
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    if dtype is None:
        dtype = x.dtype if x.dtype.is_floating_point or x.dtype.is_complex else dtypes.float32
    x = _as(x, dtype)
    count = _sum(_mask_of(x, mask), dim, keepdim=True)
    middle = _sum(x, dim, keepdim=True, mask=mask) / count
    gap = x - middle
    square = gap * functions["conj"](gap) if x.dtype.is_complex else gap * gap
    total = _sum(square, dim, keepdim=keepdim, mask=mask)
    if not keepdim:
        count = count.reshape(total._array.shape)
    if correction:  # it may be a fraction: in the precision of the result
        count = functions["clamp"](count.to(total.real.dtype) - correction, 0)
    found = (total / count).to(x.dtype)
    return functions["sqrt"](found) if root else found


def _var(
    input: Any, dim: Any = None, unbiased: Any = None, *, correction: Any = None,
    keepdim: bool = False, dtype: Any = None, mask: Any = None,
) -> Any:  # fmt: skip
    return _spread(input, dim, unbiased, correction, bool(keepdim), dtype, mask, False)


def _std(
    input: Any, dim: Any = None, unbiased: Any = None, *, correction: Any = None,
    keepdim: bool = False, dtype: Any = None, mask: Any = None,
) -> Any:  # fmt: skip
    return _spread(input, dim, unbiased, correction, bool(keepdim), dtype, mask, True)


def _logsumexp(
    input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Any:
    x = _filled(input, mask, _least(input, 1))
    found = functions["logsumexp"](x, _dims(x, dim), bool(keepdim))
    return found.to(x.dtype if dtype is None else dtype)


# --- of the same shape ----------------------------------------------------------------------------
def _along(name: str, value: Callable[[Any], Any], shift: int = 1) -> Any:
    """A function along a dimension, of the input with a value where it is masked out."""

    def normalise(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
        x = _as(input, dtype)
        d = _dims(x, dim)
        x = _filled(x, mask, value(x))
        return functions[name](x if shift > 0 else -x, d[0] if d else -1, dtype=x.dtype)

    return normalise


def _normalize(
    input: Any, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Any = None
) -> Any:
    x = _as(input, dtype)
    length = _norm(x, ord, dim, keepdim=True, mask=mask)
    return _filled(x, mask, 0) / functions["maximum"](length, functions["full_like"](length, eps))


def _logaddexp(
    input: Any, other: Any, *, dtype: Any = None, input_mask: Any = None, other_mask: Any = None
) -> Any:
    x, y = _as(input, dtype), _as(other, dtype)
    return functions["logaddexp"](
        _filled(x, input_mask, _least(x, 1)), _filled(y, other_mask, _least(y, 1))
    )


# --- the table ------------------------------------------------------------------------------------
_MASK: Final = "mask=torch.tensor([True, False, True])"
_ARGS: Final = (
    "\n\nArgs:\n    mask: True where an element counts; its shape broadcasts to that of `input`."
)


def _export_all() -> None:
    one = ", 0"
    for name, fn, text, more, gives in (
        ("sum", _sum, "The sum of elements", one, "tensor(4.)"),
        ("prod", _prod, "The product of elements", one, "tensor(3.)"),
        ("amax", _extreme("amax", 1), "The largest of elements", one, "tensor(3.)"),
        ("amin", _extreme("amin", -1), "The smallest of elements", one, "tensor(1.)"),
        ("argmax", _place("argmax", 1), "Where the largest of elements is", one, "tensor(2.)"),
        ("argmin", _place("argmin", -1), "Where the smallest of elements is", one, "tensor(0.)"),
        ("mean", _mean, "The mean of elements", one, "tensor(2.)"),
        ("median", _median, "The median of elements, the lower one of two", one, "tensor(1.)"),
        ("norm", _norm, "The norm of elements", ", 1.0", "tensor(4.)"),
        ("var", _var, "The variance of elements", one, "tensor(2.)"),
        ("std", _std, "The standard deviation of elements", one, "tensor(1.4142)"),
        ("logsumexp", _logsumexp, "The logarithm of the sum of exponentials", one,
         "tensor(3.1269)"),
        ("cumsum", _along("cumsum", lambda x: 0), "Running sums of elements", one,
         "tensor([1., 1., 4.])"),
        ("cumprod", _along("cumprod", lambda x: 1), "Running products of elements", one,
         "tensor([1., 1., 3.])"),
        ("softmax", _along("softmax", lambda x: _least(x, 1)), "The softmax of elements", one,
         "tensor([0.1192, 0.0000, 0.8808])"),
        ("log_softmax", _along("log_softmax", lambda x: _least(x, 1)),
         "The logarithm of the softmax of elements", one, "tensor([-2.1269,    -inf, -0.1269])"),
        ("softmin", _along("softmax", lambda x: _least(x, -1), -1),
         "The softmax of the negative of elements", one, "tensor([0.8808, 0.0000, 0.1192])"),
        ("normalize", _normalize, "Elements over their norm", ", 1.0, 0",
         "tensor([0.2500, 0.0000, 0.7500])"),
    ):  # fmt: skip
        example = f"torch.masked.{name}(torch.tensor([1., 2., 3.]){more}, {_MASK})"
        words = f"{text}, of those that `mask` names.{_ARGS}"
        function(method=False, free=False, namespace="masked")(
            variant(fn, name, describe(words, example, gives))
        )
    words = (
        "log(exp(input) + exp(other)), of the elements that the masks name.\n\nArgs:\n"
        "    input_mask: True where an element of `input` counts.\n"
        "    other_mask: True where an element of `other` counts."
    )
    example = "torch.masked.logaddexp(torch.zeros(1), torch.zeros(1))"
    function(method=False, free=False, namespace="masked")(
        variant(_logaddexp, "logaddexp", describe(words, example, "tensor([0.6931])"))
    )


_export_all()
