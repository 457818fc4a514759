"""Other dtypes and other devices: `to`, `float`, `type`, `cpu`, `cuda`; and the primitives that
make arrays, when a rule runs on tensors."""

from __future__ import annotations

import builtins
from typing import Any, Final, NoReturn

from rushlight import dtypes
from rushlight.arrays import kernels
from rushlight.arrays import vocabulary as v
from rushlight.arrays.device import CPU, device
from rushlight.arrays.host import cupy, device_of
from rushlight.arrays.layouts import suggests_channels
from rushlight.core import plain_calls
from rushlight.core.graph import Node, Op, TensorBase, wrap, wrap_alias
from rushlight.core.record import apply
from rushlight.dtypes import type_name
from rushlight.ops.checks import check_tensor
from rushlight.ops.creation.tensor import dtype_of, order_for
from rushlight.ops.registry import function, implements, op
from rushlight.ops.sample_inputs import drawn
from rushlight.ops.warned import warn_caller


@op
class ToCopy(Op):
    """The same values as another dtype, on another device, or simply once more.

    `order` lists the axes from the widest stride to the narrowest; None keeps the order there is.
    """

    name = "_to_copy"
    saved_names = ""
    node = "ToCopyBackward0"
    params = ("dtype", "place", "order", "source")
    dtype: Any = None  # a raw dtype
    place: Any = None
    order: Any = None
    source: Any = None  # where the gradient goes back to

    def mover(self, rule: str) -> Any:
        if self.place is not None or self.source is not None:
            return None
        if rule == "vjp":
            return kernels.same
        if self.order is not None:
            return kernels.in_new_rows if self.order == () and self.dtype is None else None
        return (
            kernels.copied if self.dtype is None else kernels.bound(kernels.recast, self.dtype.num)
        )

    def forward(self, x: Any) -> Any:
        y = x if self.place is None else v.moved(x, self.place)
        if self.dtype is not None:
            y = v.cast(y, self.dtype)
        if self.order is not None:
            return v.laid_out(y, None if self.order == () else self.order)
        return v.copy(y) if y is x else y

    def vjp(self, node: Node, g: Any) -> Any:
        return (g if self.source is None else v.moved(g, self.source),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return self.forward(ts[0])

    samples = drawn(
        real=[(2, 3), (None, None, (1, 0), (2, 3)), (dtypes.complex128.numpy, (2,)), (), (0, 2)],
        complex=[(3,)],
    )


def convert(
    x: Any, dtype: Any = None, place: Any = None, copy: bool = False,
    memory_format: Any = dtypes.preserve_format,
) -> Any:  # fmt: skip
    """`x` in another dtype and place: itself, if it is so already and no copy is asked for."""
    raw = x._array
    here = device_of(raw)
    if place is not None and (place.type != here.type or place.index not in (None, here.index)):
        source: Any = here
    else:
        place = source = None
    want = None if dtype is None or dtype.numpy == raw.dtype else dtype.numpy
    order: Any = None
    if memory_format is not None and memory_format is not dtypes.preserve_format:
        order = order_for(memory_format, raw.shape) or ()
        if not copy and place is None and want is None and bool(order) is suggests_channels(raw):
            return x  # PyTorch wants no more than the order of the strides
    elif place is None and want is None and not copy:
        return x
    if want is not None and raw.dtype.kind == "c" and dtype.numpy.kind not in "cbW":
        warn_caller("Casting complex values to real discards the imaginary part")
    return apply(ToCopy(want, place, order, source), x)


_TO: Final = """
 * (torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, \
bool copy = False, *, torch.memory_format memory_format = None)
 * (torch.dtype dtype, bool non_blocking = False, bool copy = False, *, \
torch.memory_format memory_format = None)
 * (Tensor tensor, bool non_blocking = False, bool copy = False, *, \
torch.memory_format memory_format = None)
"""
_TO_NAMES: Final = ("device", "dtype", "tensor", "non_blocking", "copy", "memory_format")


def _refuse_to(args: tuple[Any, ...], named: dict[str, Any]) -> NoReturn:
    got = ", ".join(map(type_name, args))
    more = "".join(f"{k}={type_name(x)}, " for k, x in named.items())
    raise TypeError(
        f"to() received an invalid combination of arguments - got "
        f"({', '.join(filter(None, (got, more)))}), but expected one of:{_TO}"
    )


@function(free=False, settles=True)
def to(input: Any, *args: Any, **named: Any) -> Any:
    """The tensor in another dtype or on another device, or like another tensor: itself where
    nothing changes.

    Args:
        args: a dtype; or a device, and a dtype; or a tensor that has both.

    >>> torch.ones(2).to(torch.int64)
    tensor([1, 1])
    """
    for key in named:
        if key not in _TO_NAMES:
            _refuse_to(args, named)
    slots = dict(named)
    names: tuple[str, ...] = ("device", "dtype", "non_blocking", "copy")
    if args:
        if isinstance(args[0], TensorBase):
            names = ("tensor", "non_blocking", "copy")
        elif isinstance(args[0], dtypes.dtype) or args[0] in (float, int, bool, complex):
            names = ("dtype", "non_blocking", "copy")
    if len(args) > len(names):
        _refuse_to(args, named)
    for key, value in zip(names, args, strict=False):
        if key in slots:
            _refuse_to(args, named)
        slots[key] = value
    other = slots.get("tensor")
    where, dtype = slots.get("device"), slots.get("dtype")
    if other is not None:
        dtype, where = dtypes.of(other._array.dtype), device_of(other._array)
    if dtype is not None and not isinstance(dtype, dtypes.dtype):
        if dtype not in (float, int, bool, complex):
            _refuse_to(args, named)
        dtype = dtype_of(dtype, "to")
    if where is not None and not isinstance(where, device):
        if not isinstance(where, (str, int)) or isinstance(where, bool):
            _refuse_to(args, named)
        where = device(where)
    kind = slots.get("memory_format", dtypes.preserve_format)
    return convert(input, dtype, where, bool(slots.get("copy", False)), kind)


# --- one method a dtype ---------------------------------------------------------------------------
def _method(name: str, dtype: dtypes.dtype) -> None:
    def cast_to(input: Any, memory_format: Any = dtypes.preserve_format) -> Any:
        return convert(input, dtype, None, False, memory_format)

    cast_to.__name__ = cast_to.__qualname__ = name
    cast_to.__doc__ = (
        f"{name}(memory_format=torch.preserve_format) -> Tensor: the same as `to({dtype})`."
    )
    quick = plain_calls.cast
    function(name=name, free=False, settles=True, quick=quick, told=dtype.numpy)(cast_to)


for _name, _dtype in (
    ("float", dtypes.float32), ("double", dtypes.float64), ("half", dtypes.float16),
    ("bfloat16", dtypes.bfloat16), ("int", dtypes.int32), ("long", dtypes.int64),
    ("short", dtypes.int16), ("char", dtypes.int8), ("byte", dtypes.uint8),
    ("bool", dtypes.bool_), ("cfloat", dtypes.complex64), ("cdouble", dtypes.complex128),
    ("chalf", dtypes.complex32),
):  # fmt: skip
    _method(_name, _dtype)


@function(free=False)
def type_as(input: Any, other: Any) -> Any:
    """The tensor in the dtype, and on the device, of another.

    >>> torch.ones(2, dtype=torch.int64).type_as(torch.ones(1))
    tensor([1., 1.])
    """
    check_tensor(other, "type_as", "other", 1)
    return convert(input, dtypes.of(other._array.dtype), device_of(other._array))


_BY_TITLE: Final = {d.scalar_type + "Tensor": d for d in dtypes.all_dtypes}


@function(free=False, returns="str | Tensor")
def type(input: Any, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of the tensor's type, or the tensor as another: a dtype, a name or a class.

    Args:
        dtype: the dtype or its name; None asks for the name.

    >>> x = torch.ones(2)
    >>> x.type(), x.type(torch.int64), x.type("torch.DoubleTensor").dtype
    ('torch.FloatTensor', tensor([1, 1]), torch.float64)
    """
    if dtype is None:
        where = "" if device_of(input._array) is CPU else "cuda."
        return f"torch.{where}{dtypes.of(input._array.dtype).scalar_type}Tensor"
    if isinstance(dtype, dtypes.dtype):
        return convert(input, dtype)
    found = getattr(dtype, "dtype", None)
    if isinstance(found, dtypes.dtype):
        return convert(input, found)
    if isinstance(dtype, str):
        head, _, title = dtype.rpartition(".")
        if head in ("torch", "torch.cuda") and title in _BY_TITLE:
            return convert(input, _BY_TITLE[title], CPU if head == "torch" else device("cuda"))
        if dtype == "torch.Tensor":
            return convert(input, dtypes.default)
        raise ValueError(f"invalid type: '{dtype}'")
    if not isinstance(dtype, builtins.type):
        raise TypeError("dtype must be a type, str, or dtype object")
    if issubclass(dtype, TensorBase):
        return convert(input, dtypes.default)
    raise ValueError(f"invalid type: '{dtype.__name__}'")


@function(free=False)
def cpu(input: Any, memory_format: Any = dtypes.preserve_format) -> Any:
    """The tensor in the CPU's memory: itself if it is there.

    >>> x = torch.ones(2)
    >>> x.cpu() is x
    True
    """
    return convert(input, None, CPU, False, memory_format)


@function(free=False)
def cuda(
    input: Any, device: Any = None, non_blocking: bool = False,
    memory_format: Any = dtypes.preserve_format,
) -> Any:  # fmt: skip
    """The tensor on a GPU. Needs CuPy."""
    cupy()
    return convert(input, None, _gpu(device), False, memory_format)


def _gpu(where: Any) -> Any:
    if where is None:
        return device("cuda", 0)
    found = where if isinstance(where, device) else device(where)
    if found.type != "cuda":
        raise RuntimeError(f"Invalid device, must be cuda device, but got {found}")
    return found


# --- primitives on tensors ------------------------------------------------------------------------
@implements("cast")
def _cast(x: Any, dtype: Any) -> Any:
    return x if x._array.dtype == dtype else apply(ToCopy(dtype), x)


@implements("moved")
def _moved(x: Any, where: Any) -> Any:
    return convert(x, None, where)


def _implement_making(primitive: str, make: Any) -> None:
    """Let a primitive that makes an array make a tensor where it is given one."""

    def made(*args: Any) -> Any:
        return wrap(make(*[_raw(x) for x in args]))

    implements(primitive)(made)


_implement_making("full", v.full)
_implement_making("empty", v.empty)
_implement_making("empty_as", v.empty_as)
_implement_making("iota", v.iota)
_implement_making("constant", v.constant)


@implements("bits")
def _bits(x: Any, dtype: Any) -> Any:
    return wrap_alias(v.bits(_raw(x), dtype), x)


def _raw(x: Any) -> Any:
    return x._array if isinstance(x, TensorBase) else x
