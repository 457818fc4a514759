"""What ops with an index along one dimension share: their families, their checks, and `scattering`,
which exports a function together with its in-place form.

`gather` and `scatter*` have an index of the tensor's rank, which names places along one dimension;
`index_select`, `index_add` and the like have a vector of places.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar, Final

from rushlight import dtypes
from rushlight.arrays import kernels
from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import bottom
from rushlight.arrays.host import has_values
from rushlight.core.graph import Op, TensorBase
from rushlight.core.views.views import apply_view
from rushlight.ops.apply import run, run_inplace
from rushlight.ops.checks import check_tensor
from rushlight.ops.creation.fill import write_directly
from rushlight.ops.operands import zeros
from rushlight.ops.registry import function
from rushlight.ops.view.select import Slice

INDEX_DTYPES: Final = (dtypes.int64.numpy, dtypes.int32.numpy)


def scattering(
    *, out: bool = True, settles: bool = False
) -> Callable[[Callable[..., tuple[Any, tuple[Any, ...]]]], Callable[..., Any]]:
    """Export a function that says which op to apply: as itself, and as the method `name_`, which
    writes with the op's `store`."""

    def register_it(fn: Callable[..., tuple[Any, tuple[Any, ...]]]) -> Callable[..., Any]:
        title = fn.__name__

        @functools.wraps(fn)
        def write(*args: Any, **kwargs: Any) -> Any:
            what, xs = fn(*args, **kwargs)
            if "self" in what.saves:  # its rule reads the old value: a copy of it is kept
                return run_inplace(what, xs)
            return write_directly(what, xs[0], xs[1:], what.store, what.overlap)

        write.__name__ = write.__qualname__ = title + "_"
        write.__doc__ = f"In-place version of `{title}`."
        write.__annotations__ = {**fn.__annotations__, "return": "Tensor"}
        function(name=title + "_", free=False)(write)
        if out:
            return function(out=True)(fn)

        @functools.wraps(fn)
        def call(*args: Any, **kwargs: Any) -> Any:
            return run(*fn(*args, **kwargs))

        call.__annotations__ = write.__annotations__
        return function(settles=settles)(call)

    return register_it


def scalar_type_of(x: TensorBase) -> str:
    """What PyTorch's errors call a tensor's dtype."""
    return dtypes.of(x._array.dtype).scalar_type


def or_zeros(t: Any, like: Any) -> Any:
    """A tangent; zeros like `like` where there is none."""
    return zeros(like) if t is None else t


class Along(Op):
    """An op with an index along `dim`."""

    params: ClassVar[tuple[str, ...]] = ("dim",)
    dim: int
    overlap: ClassVar[bool] = True  # whether in-place forms refuse a target that overlaps itself


class Scattering(Along):
    """Self with something written at an index along `dim`: `source` at the places of `index`."""

    inputs: ClassVar[tuple[str, ...]] = ("self", "index", "src")
    saves: ClassVar[tuple[str, ...]] = ("index",)

    def store(self, x: Any, index: Any, src: Any) -> None:
        """The op in place."""
        rule: Any = self
        v.overwrite(x, rule.forward(x, index, src))


def flat_or_not(fn: Any, x: Any, dim: int, index: Any, *source: Any) -> Any:
    """`fn(x, dim, index, *source)` where ranks may differ: a 0-d tensor, 0-d or empty index."""
    if x.ndim == index.ndim and x.ndim:
        return fn(x, dim, index, *source)
    flat = [v.reshape(s, (-1,)) if hasattr(s, "shape") else s for s in source]
    if 0 in index.shape:
        flat = [v.window(s, slice(0, 0)) if hasattr(s, "shape") else s for s in flat]
    y = fn(v.reshape(x, (-1,)), -1, v.reshape(index, (-1,)), *flat)
    return v.reshape(y, x.shape)


def narrow_to_index(src: Any, index: Any) -> Any:
    """The part of `src` that an index of smaller shape reads, as a view."""
    sizes = index._array.shape
    for d, n in enumerate(sizes):
        if d < src._array.ndim and src._array.shape[d] != n:
            src = apply_view(Slice(d - src._array.ndim, 0, n), src)
    return src


def check_bounds(
    index: Any, size: int, text: str, error: type[Exception], negative: bool = False
) -> None:
    """Raise `error(text)` for the first index that is not in range. `text` has fields {i}, {n}.

    What is merely the record of an array is not looked at.
    """
    if kernels.within(-size if negative else 0, size, index):
        return
    index = bottom(index)
    if not has_values(index) or index.size == 0:
        return
    low, high = int(index.min()), int(index.max())
    least = -size if negative else 0
    if low < least or high >= size:
        wrong = v.logical_or(index < least, index >= size).reshape(-1)
        first = int(index.reshape(-1)[int(v.argmax(wrong, 0, False))])
        raise error(text.format(i=first, n=size))


def check_places(index: Any, shape: tuple[int, ...], dim: int) -> None:
    """The places of an index along `dim` of an array of `shape` are in range."""
    axis = dim % max(len(shape), 1)
    text = f"index {{i}} is out of bounds for dimension {axis} with size {{n}}"
    check_bounds(index, shape[axis] if shape else 1, text, RuntimeError)


def check_along(
    name: str, x: Any, dim: int, index: Any, src: Any, what: str, bounds: bool = True
) -> None:
    """The checks of `gather` and `scatter*` (`what` is PyTorch's name for the tensor). Without
    `bounds` the places themselves are not looked at."""
    check_tensor(index, name, "index", 3)
    ix = index._array
    if not ix.size:
        return
    if ix.dtype not in INDEX_DTYPES:
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")
    if src is not None and src._array.dtype != x._array.dtype:
        raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype")
    shape, sizes = x._array.shape, ix.shape
    if max(len(shape), 1) != max(len(sizes), 1):
        raise RuntimeError(f"Index tensor must have the same number of dimensions as {what} tensor")
    if src is not None and max(src._array.ndim, 1) != max(len(sizes), 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    axis = dim % max(len(shape), 1)
    pairs = list(zip(sizes, shape, strict=False))
    for d, (a, b) in enumerate(pairs):
        if d != axis and a > b:
            if name == "gather":
                raise RuntimeError(
                    f"Size does not match at dimension {d} expected index {list(sizes)} to be no "
                    f"larger than self {list(shape)} apart from dimension {axis}"
                )
            break
    else:
        if src is None or all(a <= b for a, b in zip(sizes, src._array.shape, strict=False)):
            if bounds:
                check_places(ix, shape, dim)
            return
    text = f"Expected index {list(sizes)} to be no larger than self {list(shape)} apart from "
    text += f"dimension {axis}"
    if src is not None:
        text += f" and to be no larger size than src {list(src._array.shape)}"
    raise RuntimeError(text)
