"""Functions of lists of tensors, `torch._foreach_...`: each is a function of the table, member by
member. Optimisers are written with them.

Here is no kernel that takes many tensors at once: a list costs what its members cost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from rushlight.core.graph import TensorBase
from rushlight.dtypes import type_name
from rushlight.ops.numbers import Number
from rushlight.ops.registry import describe, function, functions, methods, namespaces, variant

UNARY: Final = """
    abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg
    reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc
""".split()
BINARY: Final = "add sub mul div clamp_max clamp_min maximum minimum pow".split()
POINTWISE: Final = "addcdiv addcmul".split()

Tensors = Sequence[Any]


# --- what users wrote -----------------------------------------------------------------------------
def _tensors(name: str, given: Any, argument: str = "self") -> list[Any]:
    if not isinstance(given, (tuple, list)):
        raise TypeError(
            f"{name}(): argument '{argument}' (position 1) must be tuple of Tensors, not "
            f"{type_name(given)}"
        )
    for at, x in enumerate(given):
        if not isinstance(x, TensorBase):
            raise TypeError(
                f"expected Tensor as element {at} in argument 0, but got {type_name(x)}"
            )
    if not given and argument == "self":
        raise RuntimeError("Tensor list must have at least one tensor.")
    return list(given)


def _each(name: str, count: int, given: Any, words: str = "Tensor lists") -> list[Any]:
    """What belongs to each member: of a list its own, anything else for all."""
    if isinstance(given, TensorBase) and given._array.ndim == 1 and words == "scalars":
        scalars: Any = given
        given = scalars.tolist()  # scalars may come as one tensor
    if not isinstance(given, (tuple, list)):
        return [given] * count
    if len(given) != count:
        if given and isinstance(given[0], TensorBase):
            raise RuntimeError(
                f"Tensor lists must have the same number of tensors, got {count} and {len(given)}"
            )
        raise RuntimeError("Tensor list must have same number of elements as scalar list.")
    return list(given)


def _forms(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """A function of one tensor, and what writes into it."""
    return functions[name], methods[f"{name}_"]


# --- families -------------------------------------------------------------------------------------
def _export(name: str, fn: Any, text: str, at: str, gives: str) -> None:
    words = describe(text, f"torch.{name}({at})" if at else "", gives)
    function(
        method=False, name=name, returns="Any" if name.endswith("_") else "tuple[Tensor, ...]"
    )(variant(fn, name, words))


def _export_unary(name: str) -> None:
    title = f"_foreach_{name}"
    plain, writing = _forms(name)

    def new(self: Any) -> Any:
        return tuple([plain(x) for x in _tensors(title, self)])

    def inplace(self: Any) -> Any:
        for x in _tensors(title + "_", self):
            writing(x)
        return self

    _export(title, new, f"`{name}` of each tensor of a list.", "", "")
    _export(title + "_", inplace, f"`{name}_` of each tensor of a list.", "", "")


def _member(name: str, x: Any, other: Any, writes: bool) -> Any:
    """A function of a tensor, and a tensor or a number."""
    if name in ("maximum", "minimum") and not isinstance(other, TensorBase):
        name = {"maximum": "clamp_min", "minimum": "clamp_max"}[name]
    if not writes:
        return functions[name](x, other)
    if name in ("maximum", "minimum"):
        return x.copy_(functions[name](x, other))
    return methods[f"{name}_"](x, other)


def _export_binary(name: str) -> None:
    title = f"_foreach_{name}"

    def run(self: Any, other: Any, alpha: Any, writes: bool) -> list[Any]:
        xs = _tensors(title + "_" * writes, self)
        others = _each(title, len(xs), other)
        if alpha is None:
            return [_member(name, x, y, writes) for x, y in zip(xs, others, strict=True)]
        call = methods[f"{name}_"] if writes else functions[name]
        return [call(x, y, alpha=alpha) for x, y in zip(xs, others, strict=True)]

    def new(self: Any, other: Any) -> Any:
        if name == "pow" and not isinstance(self, (tuple, list)):
            return tuple([functions["pow"](self, x) for x in _tensors(title, other)])
        return tuple(run(self, other, None, False))

    def inplace(self: Any, other: Any) -> Any:
        run(self, other, None, True)
        return self

    def scaled_new(self: Any, other: Any, *, alpha: Number | None = None) -> Any:
        return tuple(run(self, other, alpha, False))

    def scaled_inplace(self: Any, other: Any, *, alpha: Number | None = None) -> Any:
        run(self, other, alpha, True)
        return self

    example = "[torch.tensor([4.])], 2"
    shown = {
        "add": 6, "sub": 2, "mul": 8, "div": 2, "clamp_max": 2, "clamp_min": 4, "maximum": 4,
        "minimum": 2, "pow": 16,
    }[name]  # fmt: skip
    text = f"`{name}` of each tensor of a list, with a number, a tensor, or one of a list each."
    scaled = name in ("add", "sub")
    _export(title, scaled_new if scaled else new, text, example, f"(tensor([{shown}.]),)")
    text = f"`{name}_` of each tensor of a list."
    _export(title + "_", scaled_inplace if scaled else inplace, text, "", "")


def _export_pointwise(name: str) -> None:
    title = f"_foreach_{name}"

    def run(self: Any, tensor1: Any, tensor2: Any, scalars: Any, writes: bool) -> list[Any]:
        xs = _tensors(title + "_" * writes, self)
        n = len(xs)
        call = methods[f"{name}_"] if writes else functions[name]
        rows = zip(
            xs, _each(title, n, tensor1), _each(title, n, tensor2),
            _each(title, n, scalars, "scalars"), strict=True,
        )  # fmt: skip
        return [call(x, a, b, value=value) for x, a, b, value in rows]

    def new(
        self: Any, tensor1: Any, tensor2: Any, scalars: Any = 1, *, value: Number | None = None
    ) -> Any:
        return tuple(run(self, tensor1, tensor2, scalars if value is None else value, False))

    def inplace(
        self: Any, tensor1: Any, tensor2: Any, scalars: Any = 1, *, value: Number | None = None
    ) -> Any:
        run(self, tensor1, tensor2, scalars if value is None else value, True)
        return self

    _export(title, new, f"`{name}` of each tensor of lists.", "", "")
    _export(title + "_", inplace, f"`{name}_` of each tensor of lists.", "", "")


def _lerp_all(self: Any, tensors1: Any, weight: Any, writes: bool) -> list[Any]:
    xs = _tensors("_foreach_lerp", self)
    ends, weights = (
        _each("_foreach_lerp", len(xs), tensors1),
        _each("_foreach_lerp", len(xs), weight),
    )
    call = methods["lerp_"] if writes else functions["lerp"]
    return [call(x, end, w) for x, end, w in zip(xs, ends, weights, strict=True)]


def _lerp(self: Any, tensors1: Any, weight: Any) -> Any:
    return tuple(_lerp_all(self, tensors1, weight, False))


def _lerp_inplace(self: Any, tensors1: Any, weight: Any) -> Any:
    _lerp_all(self, tensors1, weight, True)
    return self


def _norm(self: Any, ord: Number = 2, dtype: Any = None) -> Any:
    norm = namespaces["linalg"]["vector_norm"]
    if isinstance(ord, (bool, complex)):
        raise RuntimeError("foreach_tensor_norm_slow expects ord to be integer or float")
    return tuple([norm(x, ord, dtype=dtype) for x in _tensors("_foreach_norm", self)])


def _power_sum(self: Any, ord: Number = 2, dtype: Any = None) -> Any:
    xs = [x if dtype is None else x.to(dtype) for x in _tensors("_foreach_powsum", self)]
    if isinstance(ord, complex):
        raise RuntimeError("value cannot be converted to type double without overflow")
    return tuple([x.abs().pow(ord).sum() for x in xs])


def _max(self: Any) -> Any:
    return tuple([functions["amax"](x) for x in _tensors("_foreach_max", self)])


def _clone(self: Any, *, memory_format: Any = None) -> Any:
    named = {} if memory_format is None else {"memory_format": memory_format}
    return tuple([x.clone(**named) for x in _tensors("_foreach_clone", self)])


def _copy(self: Any, src: Any, non_blocking: bool = False) -> Any:
    xs = _tensors("_foreach_copy_", self)
    for x, source in zip(xs, _each("_foreach_copy_", len(xs), src), strict=True):
        x.copy_(source)
    return self


def _zero(self: Any) -> Any:
    for x in _tensors("_foreach_zero_", self):
        x.zero_()
    return self


def _mm(self: Any, mat2: Any) -> Any:
    xs = _tensors("_foreach_mm", self)
    return tuple(
        [
            functions["mm"](x, y)
            for x, y in zip(xs, _each("_foreach_mm", len(xs), mat2), strict=True)
        ]
    )


def _export_all() -> None:
    for name in UNARY:
        _export_unary(name)
    for name in BINARY:
        _export_binary(name)
    for name in POINTWISE:
        _export_pointwise(name)
    for title, fn, text, at, gives in (
        ("lerp", _lerp, "`lerp` of each tensor of lists.", "[torch.zeros(1)], [torch.ones(1)], 0.5",
         "(tensor([0.5000]),)"),
        ("lerp_", _lerp_inplace, "`lerp_` of each tensor of lists.", "", ""),
        ("norm", _norm, "The norm of each tensor of a list.", "[torch.tensor([3., 4.])]",
         "(tensor(5.),)"),
        ("powsum", _power_sum, "The sum of powers of each tensor of a list.",
         "[torch.tensor([3., 4.])]", "(tensor(25.),)"),
        ("max", _max, "The largest element of each tensor of a list.", "[torch.tensor([3., 4.])]",
         "(tensor(4.),)"),
        ("clone", _clone, "A copy of each tensor of a list.", "", ""),
        ("copy_", _copy, "Copy each tensor of a list into its fellow.", "", ""),
        ("zero_", _zero, "Fill each tensor of a list with zeros.", "", ""),
        ("mm", _mm, "The products of matrices of two lists.", "", ""),
    ):  # fmt: skip
        _export(f"_foreach_{title}", fn, text, at, gives)


_export_all()
