"""`MaskedTensor`: a tensor of which only some elements count.

It is a tensor, all elements of which are there and are computed with; beside it goes a mask. What
is done to it comes through `__torch_function__`, where its name says what becomes of the mask:
it stays (element by element), is reduced, or is looked at in the same way as the data. Sums and
their kin leave out what the mask hides, so no gradient comes back for that.
"""

from __future__ import annotations

from typing import Any, Final

from rushlight import dtypes
from rushlight.ops.overriding import DisableTorchFunctionSubclass
from rushlight.ops.registry import functions, namespaces
from rushlight.tensor import Tensor

__all__ = ["MaskedTensor", "is_masked_tensor"]
__dir__ = __all__.copy

_UNARY: Final = """
    abs absolute acos arccos acosh arccosh angle asin arcsin asinh arcsinh atan arctan atanh arctanh
    bitwise_not ceil clamp clip conj_physical cos cosh deg2rad digamma erf erfc erfinv exp exp2
    expm1 fix floor frac lgamma log log10 log1p log2 logit i0 isnan nan_to_num neg negative positive
    rad2deg reciprocal round rsqrt sigmoid sign sgn signbit sin sinc sinh sqrt square tan tanh trunc
""".split()
_BINARY: Final = """
    add atan2 arctan2 bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift div
    divide floor_divide fmod logaddexp logaddexp2 mul multiply nextafter pow remainder sub subtract
    true_divide eq ne le ge greater greater_equal gt less_equal lt less maximum minimum fmax fmin
    not_equal
""".split()
_OPERATORS: Final = """
    add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow and rand or ror
    xor rxor eq ne lt le gt ge div iadd isub imul itruediv ifloordiv imod ipow iand ior ixor
""".split()
_REDUCED: Final = frozenset("sum mean amin amax argmin argmax prod all norm var std".split())
# What goes from one place to another: the mask goes the same way.
_MOVED: Final = frozenset(
    """
    select transpose swapaxes swapdims split t narrow __getitem__ expand expand_as view view_as
    reshape flatten ravel unflatten unsqueeze squeeze unfold permute movedim unbind chunk clone
    contiguous detach repeat T mT diagonal flip roll index_select
    """.split()
)
_KEPT: Final = frozenset(
    {
        *_UNARY, *_BINARY, *[name + "_" for name in (*_UNARY, *_BINARY)],
        *[f"__{name}__" for name in (*_OPERATORS, "neg", "abs", "invert", "pos")],
        *"copy_ data grad to type float double half bfloat16 bool int long short cpu".split(),
        "to_dense", "ones_like",
    }
)  # fmt: skip
_TOLD: Final = frozenset(
    """
    size dim stride numel nelement is_contiguous item __len__ is_floating_point is_complex
    requires_grad_ backward register_hook retain_grad is_same_size element_size data_ptr
    storage_offset ndimension is_signed __hash__ is_inference register_post_accumulate_grad_hook
    """.split()
)


def is_masked_tensor(obj: Any, /) -> bool:
    """Whether it is a tensor with a mask.

    >>> from rushlight.masked import is_masked_tensor, masked_tensor
    >>> x = torch.ones(2)
    >>> is_masked_tensor(x), is_masked_tensor(masked_tensor(x, x > 0))
    (False, True)
    """
    return isinstance(obj, MaskedTensor)


class MaskedTensor(Tensor):
    """MaskedTensor(data, mask, requires_grad=False): a tensor of which only the elements count
    where the mask is true. See `masked_tensor`.

    >>> from rushlight.masked import MaskedTensor
    >>> data = torch.tensor([[1., 2.], [3., 4.]])
    >>> x = MaskedTensor(data, data != 2)
    >>> x + 1
    MaskedTensor(
      [
        [  2.0000,       --],
        [  4.0000,   5.0000]
      ]
    )
    >>> x.mean(1)
    MaskedTensor(
      [  1.0000,   3.5000]
    )
    """

    _masked_mask: Any

    @staticmethod
    def __new__(cls: Any, data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
        _validate(data, mask)
        with DisableTorchFunctionSubclass():
            made: MaskedTensor = _masked(data.detach().clone(), mask.clone(), cls)
            if requires_grad:
                made.requires_grad_()
        return made

    def __init__(self, data: Any, mask: Any, requires_grad: bool = False) -> None:
        pass

    @staticmethod
    def _from_values(data: Any, mask: Any) -> MaskedTensor:
        """With the history of `data`, but no gradient for what the mask hides."""
        _validate(data, mask)
        with DisableTorchFunctionSubclass():
            kept = functions["where"](mask, data, data.detach())
            made: MaskedTensor = _masked(kept, mask.clone())
        return made

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with DisableTorchFunctionSubclass():
            return _answer(func, tuple(args), kwargs or {})

    def get_data(self) -> Any:
        """All elements, those that count and those that do not."""
        with DisableTorchFunctionSubclass():
            return self.as_subclass(Tensor)

    def get_mask(self) -> Any:
        """Where elements count."""
        return self._masked_mask

    def to_tensor(self, value: Any) -> Any:
        """A tensor with `value` in place of what does not count."""
        return self.get_data().masked_fill(~self._masked_mask, value)

    def is_sparse_coo(self) -> bool:
        """Whether data and mask are sparse, by coordinates."""
        return self.get_data().layout is dtypes.sparse_coo

    def is_sparse_csr(self) -> bool:  # type: ignore[override]  # a property of Tensor, as there
        """Whether data and mask are sparse, by rows."""
        return self.get_data().layout is dtypes.sparse_csr

    def __iter__(self) -> Any:
        return iter(self.unbind(0))

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __repr__(self) -> str:  # type: ignore[override]  # PyTorch's takes no contents here
        data, mask = self.get_data().detach(), self._masked_mask
        format = "{:8.4f}" if data.is_floating_point() else "{}"
        text = _written(data.tolist(), mask.tolist(), format)
        if not data.ndim:
            return f"MaskedTensor({text}, {bool(mask)})"
        return f"MaskedTensor(\n{_indented(text)}\n)"


def _validate(data: Any, mask: Any) -> None:
    if not isinstance(data, Tensor) or is_masked_tensor(data):
        raise TypeError("data must be a Tensor")
    if not isinstance(mask, Tensor) or is_masked_tensor(mask):
        raise TypeError("mask must be a Tensor")
    if data.layout is not mask.layout:
        raise TypeError("data and mask must have the same layout.")
    if data.layout is not dtypes.strided:
        raise TypeError(f"{data.layout} is not supported in MaskedTensor.")
    if mask.dtype is not dtypes.bool_:
        raise TypeError("mask must have dtype bool.")
    known = (dtypes.float16, dtypes.float32, dtypes.float64, dtypes.bool_, dtypes.int8)
    if data.dtype not in (*known, dtypes.int16, dtypes.int32, dtypes.int64):
        raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")
    if data.ndim != mask.ndim:
        raise ValueError("data.dim() must equal mask.dim()")
    if data.shape != mask.shape:
        raise ValueError("data.size() must equal mask.size()")


def _masked(x: Any, mask: Any, cls: Any = None) -> Any:
    """A tensor, with a mask from now on."""
    made = x.as_subclass(cls or MaskedTensor)
    made._masked_mask = mask
    return made


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))


def _written(values: Any, shown: Any, format: str) -> str:
    """Nested lists of values, `--` for those that are not shown."""
    if not isinstance(values, list):
        return format.format(values) if shown else "--"
    if not values or isinstance(values[0], list):
        rows = [_written(v, s, format) for v, s in zip(values, shown, strict=True)]
        return "[\n" + ",\n".join(map(_indented, rows)) + "\n]"
    texts = [format.format(v) for v in values]
    width = max(len(t) if s else 8 for t, s in zip(texts, shown, strict=True))
    return (
        f"[{', '.join(t if s else '--'.rjust(width) for t, s in zip(texts, shown, strict=True))}]"
    )


# Properties that give tensors, by what reads them: overrides are shown that alone.
_PROPERTIES: Final = {vars(Tensor)[name].fget: name for name in ("T", "mT", "data", "grad")}


# --- what functions do ----------------------------------------------------------------------------
def _answer(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    name: str = func.__name__
    known = name in _KEPT or name in _MOVED
    if name in ("__get__", "__set__"):  # of a property
        name = _PROPERTIES.get(func.__self__.fget, "") if name == "__get__" else ""
        if not name:
            return func(*args, **kwargs)
        known = True
    if name in _REDUCED:
        return _reduced(name, *args, **kwargs)
    if name in ("softmax", "log_softmax"):
        x, *rest = args
        kwargs.pop("_stacklevel", None)
        y = namespaces["masked"][name](x, *rest, mask=x._masked_mask, **kwargs)
        return _masked(y, x._masked_mask)
    if name in ("cat", "stack"):
        tensors, *rest = args
        masks = [_mask_of(x) for x in tensors]
        return _masked(func(tensors, *rest, **kwargs), func(masks, *rest, **kwargs))
    if name == "where" and len(args) == 3:
        at = 1 if is_masked_tensor(args[0]) else 0  # the condition; it comes second in a method
        masks = [x if i == at else _mask_of(x) for i, x in enumerate(args)]
        return _masked(func(*args), func(*masks))
    if name in _TOLD:
        return func(*args, **kwargs)
    if name in ("tolist", "numpy"):
        more = ", got MaskedTensor" if name == "tolist" else "."
        raise RuntimeError(f".{name}() is not supported for tensor subclasses{more}")
    if not known:
        raise TypeError(
            f"Multiple dispatch failed for 'torch._ops.aten.{name}'; all __torch_dispatch__ "
            f"handlers returned NotImplemented:\n\n  - tensor subclass {MaskedTensor}"
        )
    if name in _MOVED:
        x, *rest = args
        return _paired(func(*args, **kwargs), func(x._masked_mask, *rest, **kwargs))
    masks = [x._masked_mask for x in (*args, *kwargs.values()) if is_masked_tensor(x)]
    mask = masks[0]
    for other in masks[1:]:
        if not functions["equal"](*functions["broadcast_tensors"](mask, other)):
            raise ValueError(
                "Input masks must match. If you need support for this, please open an issue on "
                "Github."
            )
    y = func(*args, **kwargs)
    if y is None or y is NotImplemented or y is args[0]:
        return y
    return _masked(y, mask.expand(y.shape).to(y.device))


def _mask_of(x: Any) -> Any:
    if is_masked_tensor(x):
        return x._masked_mask
    return functions["ones_like"](functions["as_tensor"](x), dtype=dtypes.bool_)


def _paired(y: Any, mask: Any) -> Any:
    if isinstance(y, (tuple, list)):
        return tuple([_paired(a, b) for a, b in zip(y, mask, strict=True)])
    return _masked(y, mask)


def _reduced(
    name: str, x: Any, dim: Any = None, *rest: Any, keepdim: bool = False, **how: Any
) -> Any:
    """A reduction of what counts. Where nothing does, nothing is left that does."""
    mask = x._masked_mask
    if name in ("var", "std") and rest:
        how["unbiased"], rest = rest[0], rest[1:]
    if name == "norm":
        how["ord"] = how.pop("p", 2.0 if dim is None else dim)
        dim, rest = (rest[0], rest[1:]) if rest else (how.pop("dim", None), rest)
    if rest:
        keepdim = rest[0]
    dims = tuple(range(mask.ndim)) if dim is None else dim if isinstance(dim, tuple) else (dim,)
    left = mask
    for d in sorted((d % max(mask.ndim, 1) for d in dims), reverse=True) if mask.ndim else ():
        left = left.any(d, keepdim=keepdim)
    if name == "all":
        y = x.get_data().bool() | ~mask
        return _masked(y.all() if dim is None else y.all(dim, keepdim=keepdim), left)
    reduce = namespaces["masked"][name]
    if name in ("var", "std"):
        how.setdefault("unbiased", None if "correction" in how else True)
    if name == "norm":
        y = reduce(x, how.pop("ord"), dim, keepdim=keepdim, mask=mask, **how)
    elif name.startswith("arg"):
        y = reduce(x, dim, keepdim=keepdim, mask=mask, **how).to(x.dtype)
    else:
        y = reduce(x, dim, keepdim=keepdim, mask=mask, **how)
    return _masked(y, left)
