"""Making tensors: from numbers, from NumPy, filled, counted, or like another."""

from __future__ import annotations

import warnings
from typing import Any, Final

from rushlight import dtypes
from rushlight.arrays import kernels, making
from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import ITEM
from rushlight.arrays.device import CPU, current, device
from rushlight.arrays.host import device_of, from_host, is_array, make_array, move, to_host
from rushlight.core import plain_calls
from rushlight.core.graph import TensorBase, wrap
from rushlight.core.record import finish
from rushlight.dtypes import type_name
from rushlight.ops import numbers
from rushlight.ops.checks import is_batched
from rushlight.ops.numbers import Number
from rushlight.ops.out import check_out, write_array
from rushlight.ops.registry import describe, function, guarded, said, variant
from rushlight.ops.shape.contiguous import lend

COPIES: Final = (
    "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
    "sourceTensor.detach().clone().requires_grad_(True), rather than {}(sourceTensor)."
)


# --- options --------------------------------------------------------------------------------------
def raw_of(x: Any) -> Any:
    """The raw host array of a tensor; None for anything else."""
    if is_batched(x):
        raise RuntimeError(ITEM)
    return to_host(x._array) if isinstance(x, TensorBase) else None


def dtype_of(dtype: Any, name: str) -> dtypes.dtype | None:
    """A `dtype=` argument; Python's own types are taken too."""
    if dtype is None or isinstance(dtype, dtypes.dtype):
        return dtype
    for python, found in _PYTHON_TYPES:
        if dtype is python:
            return found
    raise TypeError(f"{name}(): argument 'dtype' must be torch.dtype, not {type_name(dtype)}")


_PYTHON_TYPES: Final = (
    (float, dtypes.float64), (int, dtypes.int64), (bool, dtypes.bool_),
    (complex, dtypes.complex128),
)  # fmt: skip


def place_of(where: Any, name: str) -> device:
    """A `device=` argument, or the default device."""
    if where is None:
        return current()
    if isinstance(where, device):
        return where
    if isinstance(where, (str, int)) and not isinstance(where, bool):
        return device(where)
    raise TypeError(f"{name}(): argument 'device' must be torch.device, not {type_name(where)}")


def check_plain(name: str, layout: Any, pin_memory: Any, requires_grad: Any) -> None:
    """Refuse options that are of the wrong type, or mean what rushlight does not have."""
    if layout is not None and layout is not dtypes.strided:
        if not isinstance(layout, dtypes.layout):
            raise TypeError(
                f"{name}(): argument 'layout' must be torch.layout, not {type_name(layout)}"
            )
        raise NotImplementedError(f"{name}(): rushlight has strided tensors only, not {layout}")
    if not isinstance(requires_grad, bool):
        raise TypeError(
            f"{name}(): argument 'requires_grad' must be bool, not {type_name(requires_grad)}"
        )
    if pin_memory:
        raise RuntimeError(
            "pin_memory=True requires a CUDA or other accelerator backend; no pinned memory "
            "allocator is available on this system."
        )


def make_tensor(array: Any, requires_grad: bool) -> Any:
    """A new tensor, a leaf that wants gradients if `requires_grad`."""
    t = finish(wrap(array))
    if requires_grad:
        if array.dtype.kind not in "fcVW":
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients\n"
                f"This one is {dtypes.of(array.dtype)}: write `1.` for `1`, or give a dtype."
            )
        t._requires_grad = True
    return t


def _takes_gradients(dtype: Any) -> bool:
    """Whether tensors of a dtype (None: the default one) can want gradients."""
    return dtype is None or dtype.is_floating_point or dtype.is_complex


def whole_number(x: Any) -> int | None:
    """An int, a NumPy integer or a 0-d integer tensor as an int; None for anything else."""
    if type(x) is int:
        return x
    if isinstance(x, bool):
        return None
    if isinstance(x, TensorBase):
        raw = x._array
        return int(raw) if raw.ndim == 0 and raw.dtype.kind in "iu" else None
    try:
        return int(x.__index__()) if hasattr(x, "__index__") else None
    except TypeError:  # an array of NumPy's that is not one integer
        return None


def size_of(name: str, given: tuple[Any, ...], size: Any) -> tuple[int, ...]:
    """The shape that `f(2, 3)`, `f((2, 3))` or `f(size=(2, 3))` wants."""
    if size is not None:
        if given:
            raise TypeError(f"{name}() got multiple values for argument 'size'")
        given = (size,)
    if not given:
        raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
    sizes: Any = given
    if isinstance(given[0], (tuple, list)):
        if len(given) > 1:
            raise TypeError(f"{name}() takes 1 positional argument but {len(given)} were given")
        sizes = given[0]
    elif whole_number(given[0]) is None:
        raise TypeError(
            f"{name}(): argument 'size' (position 1) must be tuple of ints, "
            f"not {type_name(given[0])}"
        )
    return shape_of(name, sizes)


def shape_of(name: str, sizes: Any, position: int = 1) -> tuple[int, ...]:
    """A sequence of sizes, checked."""
    found: list[int] = []
    for at, item in enumerate(sizes):
        n = whole_number(item)
        if n is None:
            if at == 0:
                raise TypeError(
                    f"{name}(): argument 'size' (position {position}) must be tuple of ints, but "
                    f"found element of type {type_name(item)} at pos 0"
                )
            raise TypeError(
                f"{name}(): argument 'size' failed to unpack the object at pos {at + 1} with error "
                f'"type must be tuple of ints,but got {type_name(item)}"'
            )
        found.append(n)
    for n in found:
        if n < 0:
            if name in ("zeros", "ones", "full"):
                raise RuntimeError(f"{name}: Dimension size must be non-negative.")
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {found}")
    return tuple(found)


def write_created(name: str, out: Any, array: Any, dtype: Any, requires_grad: bool) -> Any:
    """The new array as a tensor, or written into `out`."""
    if out is None:
        return make_tensor(array, requires_grad)
    check_out(name, out)
    have = dtypes.of(out._array.dtype)
    if dtype is not None and dtype is not have:
        raise RuntimeError(
            f"dtype {dtype.scalar_type} does not match dtype of out parameter ({have.scalar_type})"
        )
    return write_array(out, from_host(array, out._array))


# --- from values ----------------------------------------------------------------------------------
def raw_from(data: Any, dtype: dtypes.dtype | None) -> Any:
    """A new host array from numbers, sequences or a NumPy array."""
    want = None if dtype is None else dtype.numpy
    if is_array(data):
        checked = making.check_ndarray(data)
        return v.cast(checked, want) if want not in (None, checked.dtype) else v.copy(checked)
    return making.from_data(data, want, raw_of)


@function(method=False, quick=plain_calls.tensor)
def tensor(
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """A new tensor with a copy of `data`: numbers, nested sequences of them, or a NumPy array.

    >>> torch.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    >>> torch.tensor([1., 2.], requires_grad=True)
    tensor([1., 2.], requires_grad=True)
    """
    check_plain("tensor", None, pin_memory, requires_grad)
    want = dtype_of(dtype, "tensor")
    if isinstance(data, TensorBase):
        warnings.warn(COPIES.format("torch.tensor"), UserWarning, stacklevel=2)
        place = device_of(data._array) if device is None else place_of(device, "tensor")
        return make_tensor(copy_raw(data._array, want, place), requires_grad)
    place = place_of(device, "tensor")
    array = raw_from(data, want)
    return make_tensor(array if place is CPU else move(array, place), requires_grad)


def copy_raw(array: Any, dtype: dtypes.dtype | None, place: device) -> Any:
    """A copy of a raw array in another dtype or place."""
    moved = move(array, place)
    if dtype is not None and dtype.numpy != moved.dtype:
        return v.cast(moved, dtype.numpy)
    return v.copy(moved) if moved is array else moved


@function(method=False)
def from_numpy(ndarray: Any) -> Any:
    """A tensor that shares the memory of a NumPy array: a change of one changes the other.

    >>> import numpy
    >>> a = numpy.array([1, 2, 3])
    >>> t = torch.from_numpy(a)
    >>> a[0] = 10
    >>> t
    tensor([10,  2,  3])
    """
    if not is_array(ndarray):
        raise TypeError(f"expected np.ndarray (got {type_name(ndarray)})")
    lend(ndarray)
    return finish(wrap(share_array(ndarray)))


def share_array(ndarray: Any) -> Any:
    if not making.writable(ndarray):
        warnings.warn(
            "The given NumPy array is not writable, and PyTorch does not support non-writable "
            "tensors. This means writing to this tensor will result in undefined behavior. You may "
            "want to copy the array to protect its data or make it writable before converting it "
            "to a tensor.",
            UserWarning,
            stacklevel=4,
        )
    return making.check_ndarray(ndarray)


# --- filled ---------------------------------------------------------------------------------------
def fill_new(
    name: str, shape: tuple[int, ...], value: Any, out: Any, dtype: Any, layout: Any, device: Any,
    pin_memory: bool, requires_grad: bool,
) -> Any:  # fmt: skip
    """A tensor of one value (None: of no particular value)."""
    sparse = (
        layout is not None and layout is not dtypes.strided and isinstance(layout, dtypes.layout)
    )
    if sparse and not value and out is None:
        from rushlight.ops.sparse.making import zeros_in

        t = zeros_in(layout, shape, dtype, device)
        return t.requires_grad_() if requires_grad else t
    check_plain(name, layout, pin_memory, requires_grad)
    want = dtype_of(dtype, name)
    kind = dtypes.default if want is None else want
    if out is not None and want is None and isinstance(out, TensorBase):
        kind = dtypes.of(out._array.dtype)
    array = make_array(shape, kind.numpy, place_of(device, name))
    if value is not None:
        array.fill(value)
    return write_created(name, out, array, want, requires_grad)


def size_named(name: str, named: dict[str, Any]) -> Any:
    """The `size=` keyword, which shares its name with the sizes given by position."""
    size = named.pop("size", None)
    named.pop("names", None)
    for key in named:
        raise TypeError(f"{name}() got an unexpected keyword argument '{key}'")
    return size


def _export_filled(name: str, value: int, example: str, shown: str) -> None:
    def whole(
        *size: Any, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
        pin_memory: bool = False, requires_grad: bool = False, **named: Any,
    ) -> Any:  # fmt: skip
        shape = size_of(name, size, size_named(name, named))
        return fill_new(name, shape, value, out, dtype, layout, device, pin_memory, requires_grad)

    rest = guarded(variant(whole, name, ""), name)

    def make(
        *size: Any, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
        pin_memory: bool = False, requires_grad: bool = False, **named: Any,
    ) -> Any:  # fmt: skip
        if (
            out is layout is device is None and pin_memory is False and not named
            and (dtype is None or type(dtype) is dtypes.dtype) and current() is CPU
            and (requires_grad is False or (requires_grad is True and _takes_gradients(dtype)))
        ):  # fmt: skip
            kind = dtypes.default if dtype is None else dtype
            array = kernels.filled(size, value, kind.numpy.num)
            if array is not None:
                return make_tensor(array, requires_grad)
        return rest(
            *size,
            **said(
                named,
                out=out,
                dtype=dtype,
                layout=layout,
                device=device,
                pin_memory=pin_memory,
                requires_grad=requires_grad,
            ),
        )

    text = describe(f"A tensor of {name}.", f"torch.{name}({example})", shown)
    export = function(method=False, bare=True, quick=plain_calls.filled, told=value)
    export(variant(make, name, text))


_export_filled("zeros", 0, "2, 3", "tensor([[0., 0., 0.],\n        [0., 0., 0.]])")
_export_filled("ones", 1, "3, dtype=torch.int64", "tensor([1, 1, 1])")


@function(method=False, quick=plain_calls.filled, told=None)
def empty(
    *size: Any, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False,
    memory_format: Any = dtypes.contiguous_format, **named: Any,
) -> Any:  # fmt: skip
    """A tensor whose values are whatever the memory held.

    >>> torch.empty(2, 3).shape
    torch.Size([2, 3])
    """
    shape = size_of("empty", size, size_named("empty", named))
    t = fill_new("empty", shape, None, out, dtype, layout, device, pin_memory, requires_grad)
    if memory_format is not dtypes.contiguous_format:
        t._array = v.laid_out(t._array, order_for(memory_format, shape))
    return t


def order_for(memory_format: Any, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """The axes from the widest stride to the narrowest that a memory format wants."""
    if memory_format in (dtypes.contiguous_format, None):
        return None
    for wanted, rank, order in (
        (dtypes.channels_last, 4, (0, 2, 3, 1)),
        (dtypes.channels_last_3d, 5, (0, 2, 3, 4, 1)),
    ):
        if memory_format is wanted:
            if len(shape) != rank:
                raise RuntimeError(f"required rank {rank} tensor to use {wanted.name} format")
            return order
    raise RuntimeError("unsupported memory format option Preserve")


@function(method=False, quick=plain_calls.full)
def full(
    size: Any, fill_value: Number, *, out: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """A tensor of one value.

    >>> torch.full((2, 3), 3.5)
    tensor([[3.5000, 3.5000, 3.5000],
            [3.5000, 3.5000, 3.5000]])
    """
    if not isinstance(size, (tuple, list)):
        raise TypeError(
            f"full(): argument 'size' (position 1) must be tuple of ints, not {type_name(size)}"
        )
    value = checked_number(fill_value, "full", "fill_value", 2)
    kind = dtype_of(dtype, "full")
    if kind is None and isinstance(out, TensorBase):
        kind = dtypes.of(out._array.dtype)
    if kind is None:
        kind = dtypes.of_scalar(value)
    value = making.fill_number(value, kind.numpy)
    shape = shape_of("full", size)
    return fill_new("full", shape, value, out, kind, layout, device, pin_memory, requires_grad)


def checked_number(x: Any, name: str, argument: str, position: int) -> Any:
    """A Python number, from one, a NumPy scalar or a 0-d tensor."""
    found = numbers.number(x)
    if found is NotImplemented:
        kind = "Tensor" if isinstance(x, TensorBase) else type_name(x)
        raise TypeError(
            f"{name}(): argument '{argument}' (position {position}) must be Number, not {kind}"
        )
    return found


@function(method=False)
def eye(
    n: Any, m: Any = None, *, out: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Ones on the diagonal and zeros elsewhere.

    Args:
        n: how many rows.

    >>> torch.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    rows = whole_number(n)
    columns = rows if m is None else whole_number(m)
    for letter, value, given, position in (("n", rows, n, 1), ("m", columns, m, 2)):
        if value is None:
            raise TypeError(
                f"eye(): argument '{letter}' (position {position}) must be int, "
                f"not {type_name(given)}"
            )
        if value < 0:
            raise RuntimeError(f"{letter} must be greater or equal to 0, got {value}")
    assert rows is not None and columns is not None
    t = fill_new("eye", (rows, columns), 0, out, dtype, layout, device, pin_memory, requires_grad)
    v.diagonal(t._array, 0, 0, 1).fill(1)
    return t
