"""Tensors made after others: `zeros_like`, `new_zeros`, `as_tensor`, `asarray`, from buffers."""

from __future__ import annotations

import warnings
from typing import Any, Final

from rushlight import dtypes
from rushlight.arrays import kernels, making
from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import bottom, without_histories
from rushlight.arrays.device import CPU
from rushlight.arrays.host import device_of, is_array, is_scalar, make_array, meta_array, move
from rushlight.core import plain_calls
from rushlight.core.graph import TensorBase, wrap
from rushlight.core.record import finish
from rushlight.dtypes import type_name
from rushlight.ops.checks import varies
from rushlight.ops.creation import tensor as creation
from rushlight.ops.creation.tensor import dtype_of, make_tensor, place_of
from rushlight.ops.numbers import Number
from rushlight.ops.pointwise.cast import convert
from rushlight.ops.registry import describe, function, variant
from rushlight.ops.shape.contiguous import lend


# --- like another ---------------------------------------------------------------------------------
def alike(
    name: str, input: Any, dtype: Any, layout: Any, device: Any, pin_memory: bool,
    requires_grad: bool, memory_format: Any,
) -> Any:  # fmt: skip
    """An uninitialised tensor in the shape, dtype, order of strides and place of another."""
    creation.check_plain(name, layout, pin_memory, requires_grad)
    raw = input._array if varies(input._array) else bottom(input._array)
    want = dtype_of(dtype, name)
    kind = raw.dtype if want is None else want.numpy
    if device is not None and place_of(device, name) != device_of(raw):
        array = make_array(raw.shape, kind, place_of(device, name))
    else:
        array = v.empty_as(raw, kind)
    if memory_format is not None and memory_format is not dtypes.preserve_format:
        array = v.laid_out(array, creation.order_for(memory_format, raw.shape))
    return make_tensor(array, requires_grad)


def _export_like(name: str, value: int | None, text: str, example: str, shown: str) -> None:
    """Make a function of a tensor's shape and dtype, which fills with `value` (None: nothing)."""

    def like(
        input: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
        pin_memory: bool = False, requires_grad: bool = False,
        memory_format: Any = dtypes.preserve_format,
    ) -> Any:  # fmt: skip
        if (
            dtype is layout is device is None and isinstance(input, TensorBase)
            and requires_grad is pin_memory is False and memory_format is dtypes.preserve_format
        ):  # fmt: skip
            array = kernels.filled_as(value, input._array)
            if array is not None:
                return finish(wrap(array))
        t = alike(name, input, dtype, layout, device, pin_memory, requires_grad, memory_format)
        if value is not None:
            t._array.fill(value)
        return t

    text = f"{text} of the shape and dtype of `input`."
    export = function(method=False, quick=plain_calls.like, told=value)
    export(variant(like, name, describe(text, f"torch.{name}({example}", shown)))


_export_like(
    "empty_like", None, "An uninitialised tensor", "torch.ones(2, 3)).shape", "torch.Size([2, 3])"
)
_export_like("zeros_like", 0, "Zeros,", "torch.tensor([1, 2]))", "tensor([0, 0])")
_export_like("ones_like", 1, "Ones,", "torch.tensor([1., 2.]))", "tensor([1., 1.])")


@function(method=False)
def full_like(
    input: Any, fill_value: Number, *, dtype: Any = None, layout: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False,
    memory_format: Any = dtypes.preserve_format,
) -> Any:  # fmt: skip
    """One value in the shape and dtype of `input`.

    >>> torch.full_like(torch.ones(2), 7)
    tensor([7., 7.])
    """
    t = alike("full_like", input, dtype, layout, device, pin_memory, requires_grad, memory_format)
    value = creation.checked_number(fill_value, "full_like", "fill_value", 2)
    t._array.fill(making.fill_number(value, t._array.dtype))
    return t


# --- x.new_... ------------------------------------------------------------------------------------
def _new(
    name: str, input: Any, shape: tuple[int, ...], value: Any, dtype: Any, layout: Any, device: Any,
    pin_memory: bool, requires_grad: bool,
) -> Any:  # fmt: skip
    raw = input._array
    kind = dtypes.of(raw.dtype) if dtype is None else dtype
    place = device_of(raw) if device is None else device
    if varies(raw):  # one for each member of the batch, to be written into
        creation.check_plain(name, layout, pin_memory, requires_grad)
        want = dtype_of(kind, name)
        assert want is not None
        like = without_histories(raw)
        fresh = v.empty(like, shape, want.numpy)
        if value is not None:
            fresh.fill(value)
        return make_tensor(v.moved(fresh, place_of(place, name)), requires_grad)
    return creation.fill_new(
        name, shape, value, None, kind, layout, place, pin_memory, requires_grad
    )


def _export_new(
    name: str, value: int | None, what: str, example: str = "", shown: str = ""
) -> None:
    """Make a method that fills a new tensor with `value` (None: with nothing)."""

    def new(
        input: Any, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False,
        layout: Any = None, pin_memory: bool = False, **named: Any,
    ) -> Any:  # fmt: skip
        shape = creation.size_of(name, size, creation.size_named(name, named))
        return _new(name, input, shape, value, dtype, layout, device, pin_memory, requires_grad)

    text = f"{what} with the dtype and device of this tensor."
    function(free=False)(variant(new, name, describe(text, example, shown)))


_export_new("new_empty", None, "An uninitialised tensor")
_export_new("new_zeros", 0, "Zeros", "torch.tensor([1, 2]).new_zeros(3)", "tensor([0, 0, 0])")
_export_new("new_ones", 1, "Ones", "torch.tensor([1, 2]).new_ones((2,))", "tensor([1, 1])")


@function(free=False)
def new_full(
    input: Any, size: Any, fill_value: Number, *, dtype: Any = None, device: Any = None,
    requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """One value with the dtype and device of this tensor.

    >>> torch.ones(2).new_full((3,), 7)
    tensor([7., 7., 7.])
    """
    if not isinstance(size, (tuple, list)):
        raise TypeError(
            f"new_full(): argument 'size' (position 1) must be tuple of ints, not {type_name(size)}"
        )
    shape = creation.shape_of("new_full", size)
    kind = dtype_of(dtype, "new_full") or dtypes.of(input._array.dtype)
    value = making.fill_number(
        creation.checked_number(fill_value, "new_full", "fill_value", 2), kind.numpy
    )
    return _new("new_full", input, shape, value, kind, layout, device, pin_memory, requires_grad)


@function(free=False)
def new_tensor(
    input: Any, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
    layout: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """A copy of `data` with the dtype and device of this tensor.

    >>> torch.ones(2, dtype=torch.float64).new_tensor([1, 2])
    tensor([1., 2.], dtype=torch.float64)
    """
    creation.check_plain("new_tensor", layout, pin_memory, requires_grad)
    kind = dtype_of(dtype, "new_tensor") or dtypes.of(input._array.dtype)
    place = device_of(input._array) if device is None else place_of(device, "new_tensor")
    if isinstance(data, TensorBase):
        warnings.warn(creation.COPIES.format("tensor.new_tensor"), UserWarning, stacklevel=2)
        return make_tensor(creation.copy_raw(data._array, kind, place), requires_grad)
    return make_tensor(move(creation.raw_from(data, kind), place), requires_grad)


@function(method=False)
def empty_strided(
    size: Any, stride: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """An uninitialised tensor of explicit strides.

    >>> torch.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    creation.check_plain("empty_strided", layout, pin_memory, requires_grad)
    kind = dtype_of(dtype, "empty_strided") or dtypes.default
    shape, strides = creation.shape_of("empty_strided", size), tuple(stride)
    if len(shape) != len(strides):
        raise RuntimeError(
            f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides "
            f"({len(strides)})"
        )
    place = place_of(device, "empty_strided")
    if place.type == "meta":
        steps = [s * kind.itemsize for s in strides]
        return make_tensor(meta_array(shape, kind.numpy, steps), requires_grad)
    extent = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    memory = making.bytes_of(make_array((max(extent, 0) * kind.itemsize,), dtypes.uint8.numpy, CPU))
    array = making.over(memory, shape, strides, kind.numpy, 0)
    return make_tensor(move(array, place), requires_grad)


@function(method=False)
def scalar_tensor(
    s: Number, *, dtype: Any = None, layout: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """A 0-d tensor, of the default dtype whatever the number.

    >>> torch.scalar_tensor(2)
    tensor(2.)
    """
    value = creation.checked_number(s, "scalar_tensor", "s", 1)
    kind = dtype_of(dtype, "scalar_tensor") or dtypes.default
    value = making.fill_number(value, kind.numpy)
    return creation.fill_new(
        "scalar_tensor", (), value, None, kind, layout, device, pin_memory, requires_grad
    )


# --- taking over memory ---------------------------------------------------------------------------
@function(method=False)
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Any:
    """`data` as a tensor, without a copy where that can be: a tensor is itself (and keeps its
    history), a NumPy array shares its memory.

    >>> torch.as_tensor([1, 2])
    tensor([1, 2])
    """
    want = dtype_of(dtype, "as_tensor")
    if isinstance(data, TensorBase):
        return convert(data, want, None if device is None else place_of(device, "as_tensor"))
    place = place_of(device, "as_tensor")
    if is_array(data):
        t = finish(wrap(creation.share_array(data)))
        return convert(t, want, place)
    return finish(wrap(move(creation.raw_from(data, want), place)))


_ASARRAY_GRAD: Final = (
    "torch.asarray: unspecified requires_grad now defaults to obj.requires_grad instead of False. "
    "Pass requires_grad=False explicitly to get the old behavior and silence this warning."
)


@function(method=False)
def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Any:  # fmt: skip
    """Anything as a tensor: tensors, NumPy arrays and buffers share their memory unless `copy`.

    >>> torch.asarray(3)
    tensor(3)
    """
    want = dtype_of(dtype, "asarray")
    place = None if device is None else place_of(device, "asarray")
    if isinstance(obj, TensorBase):
        t: Any = obj
        if requires_grad is None and (obj._requires_grad or obj._node is not None):
            warnings.warn(_ASARRAY_GRAD, UserWarning, stacklevel=2)
            requires_grad = True
        same = convert(t, want, place) is t
        if copy is False and not same:
            have = dtypes.of(obj._array.dtype)
            raise ValueError(
                f"can't alias tensor with dtype '{have.scalar_type}' into dtype "
                f"'{(want or have).scalar_type}'."
            )
        t = convert(t, want, place, bool(copy))
        if not requires_grad:
            return t.detach() if (t._requires_grad or t._node is not None) else t
        return t if t._requires_grad or t._node is not None else t.requires_grad_()
    if is_array(obj) or is_scalar(obj):
        raw = creation.share_array(obj) if is_array(obj) else creation.raw_from(obj, None)
        if raw is obj:
            lend(raw)
    elif isinstance(obj, (bytes, bytearray, memoryview)):
        raw = making.from_buffer(obj, want or dtypes.default, -1, 0)
        lend(raw)
    else:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        raw = creation.raw_from(obj, want)
        return make_tensor(move(raw, place_of(device, "asarray")), bool(requires_grad))
    made_here = convert(make_tensor(raw, False), want, place, bool(copy))
    return make_tensor(made_here._array, bool(requires_grad))


@function(method=False)
def frombuffer(
    buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Any:
    """A 1-d tensor over the memory of a bytes-like object.

    Args:
        offset: how many bytes to leave out before the first element.

    >>> torch.frombuffer(bytearray([1, 2, 3]), dtype=torch.uint8)
    tensor([1, 2, 3], dtype=torch.uint8)
    """
    kind = dtype_of(dtype, "frombuffer")
    assert kind is not None
    array = making.from_buffer(buffer, kind, count, offset)
    lend(array)
    if not making.writable(buffer):
        warnings.warn(
            "The given buffer is not writable, and PyTorch does not support non-writable tensors. "
            "This means you can write to the underlying (supposedly non-writable) buffer using the "
            "tensor. You may want to copy the buffer to protect its data or make it writable "
            "before converting it to a tensor.",
            UserWarning,
            stacklevel=2,
        )
    return make_tensor(array, requires_grad)
