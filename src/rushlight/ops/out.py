"""Writing results into the tensors that users pass as `out=`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import Batched
from rushlight.arrays.host import check_same_device, device_of, put_off_as
from rushlight.core.graph import TensorBase, wrap
from rushlight.core.record import recording
from rushlight.core.saved.packed import before_write
from rushlight.core.transforms.forward_ad import refuse_out
from rushlight.core.transforms.stack import stack
from rushlight.core.views.inplace import overlaps
from rushlight.dtypes import type_name
from rushlight.errors import OVERLAPS
from rushlight.ops.checks import c_name


def write_out(function: str, xs: tuple[Any, ...], out: Any, compute: Callable[[], Any]) -> Any:
    """`compute()`, put into `out` if that is given: resized to fit, of the very same dtype."""
    if out is None:
        return compute()
    check_out(function, out, xs)
    return put_result(out, compute(), True)


def fill_out(function: str, out: Any, result: Any) -> Any:
    """A finished result, cast and put into `out`."""
    check_out(function, out, (result,))
    return put_result(out, result, False)


def write_outs(function: str, kind: Any, results: Any, out: Any = None) -> Any:
    """Several results as a tuple with names, written into the tensors of `out` if it is given."""
    if out is None:
        return kind(results)
    if not isinstance(out, (tuple, list)) or len(out) != len(results):
        raise TypeError(
            f"{function}(): argument 'out' must be tuple of Tensors, not {type_name(out)}"
        )
    return kind([fill_out(function, o, r) for o, r in zip(out, results, strict=True)])


def check_out(function: str, out: Any, xs: tuple[Any, ...] = ()) -> None:
    """Refuse to write into `out` where that cannot be differentiated or batched."""
    if not isinstance(out, TensorBase):
        raise TypeError(f"{function}(): argument 'out' must be Tensor, not {type_name(out)}")
    if recording() and any(
        isinstance(x, TensorBase) and (x._requires_grad or x._node is not None) for x in (*xs, out)
    ):
        raise RuntimeError(
            f"{function}(): functions with out=... arguments don't support automatic "
            "differentiation, but one of the arguments requires grad."
        )
    refuse_out(function, (*xs, out))
    if stack.batches != 0:
        refuse_batches(function, (*xs, out))


def refuse_batches(function: str, xs: tuple[Any, ...]) -> None:
    """PyTorch's error for `out=` with tensors of a batch."""
    for x in xs:
        if isinstance(x, TensorBase) and type(x._array) is Batched:
            raise RuntimeError(
                f"Batching rule not implemented for aten::{function}.out; the fallback path "
                "doesn't work on out= or view ops.\n"
                "Inside vmap, use what the function returns instead of `out=`."
            )


def put_result(out: Any, result: Any, exact: bool) -> Any:
    """Write a result into `out`, which may have another dtype unless `exact`."""
    raw, want = result._array.dtype, out._array.dtype
    # indices are never cast
    if raw != want and (exact or raw == dtypes.int64.numpy):
        raise RuntimeError(
            f"Expected out tensor to have dtype {c_name(raw)}, but got {c_name(want)} instead"
        )
    check_castable(raw, want)
    return write_array(out, result._array)


def check_castable(raw: Any, want: Any) -> None:
    """PyTorch's error where a result of one raw dtype cannot be written as another."""
    if raw != want:
        have, other = dtypes.of(raw), dtypes.of(want)
        if not dtypes.can_cast(have, other):
            raise RuntimeError(
                f"result type {have.scalar_type} can't be cast to the desired output type "
                f"{other.scalar_type}\n"
                f"Make the tensor that is written {have!r} (`x.to({have!r})`), or write out of "
                "place."
            )


def write_array(out: Any, array: Any) -> Any:
    """Write a finished array into `out`, which is resized if its shape differs."""
    if stack.batches != 0:
        refuse_batches("result", (out, wrap(array)))
    if type(out._array) is not type(array) and device_of(out._array) != device_of(array):
        check_same_device([v.window(x, (None,)) for x in (array, out._array)])  # 0-d ones too
    if overlaps(out._array):
        raise RuntimeError(OVERLAPS)
    before_write(out)
    if out._array.shape != array.shape:
        out._array = put_off_as(v.empty_as(array, out._array.dtype), out._array)
    v.overwrite(out._array, array)
    out._storage.written()
    return out
