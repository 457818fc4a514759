"""`max_unpool`: elements back at the places they were chosen from, and zeros elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.core.graph import Node, Op
from rushlight.core.record import apply
from rushlight.ops.checks import check_tensor, is_batched, raw_dtype
from rushlight.ops.pooling.family import Ints, flat, one_or_each, refuse_pool_dtype
from rushlight.ops.registry import describe, functional, op, variant
from rushlight.ops.sample_inputs import Draw


class MaxUnpool(Op):
    """Elements at given places, in row order of the last `n` axes of the result."""

    inputs, saves = ("self", "indices"), ("indices",)
    shown_edges = (0,)
    params = ("output_size",)
    output_size: Ints
    n: ClassVar[int] = 2
    lies = "channels"
    leads = (0,)

    def forward(self, x: Any, index: Any) -> Any:
        n = self.n
        lead = tuple(x.shape[: x.ndim - n])
        zeros = v.full(x, (*lead, math.prod(self.output_size)), 0, raw_dtype(x))
        places = v.reshape(index, flat(index, n))
        found = v.scatter(zeros, -1, places, v.reshape(x, flat(x, n)))
        return v.reshape(found, (*lead, *self.output_size))

    def vjp(self, node: Node, g: Any, index: Any) -> Any:
        n = self.n
        found = v.gather(v.reshape(g, flat(g, n)), -1, v.reshape(index, flat(index, n)))
        return v.reshape(found, index.shape), None

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return self.forward(ts[0], xs[1])

    @classmethod
    def samples(cls, draw: Draw) -> Iterator[tuple[Any, ...]]:
        n = cls.n
        count = 2**n
        places = draw.ints(0, 4**n // count, 1, *(2,) * n)
        # each element gets a range of its own, so that no place is drawn twice
        starts = v.reshape(v.iota(places, count, places.dtype), places.shape) * (4**n // count)
        yield cls((4,) * n), draw.real(1, *(2,) * n), places + starts


@op
class MaxUnpool2d(MaxUnpool):
    """`MaxUnpool` over two axes."""

    name, node, n = "max_unpool2d", "MaxUnpool2DBackward0", 2


@op
class MaxUnpool3d(MaxUnpool):
    """`MaxUnpool` over three axes."""

    name, node, n = "max_unpool3d", "MaxUnpool3DBackward0", 3
    lies = "rows"


_OPS: Final[dict[int, Any]] = {2: MaxUnpool2d, 3: MaxUnpool3d}


def unpool_size(sizes: Ints, kernel: Ints, stride: Ints, padding: Ints, output_size: Any) -> Ints:
    """The size of the result: by default what the windows cover; a given `output_size` must differ
    from that by less than a stride."""
    n = len(kernel)
    usual = tuple(
        (size - 1) * s + k - 2 * p
        for size, k, s, p in zip(sizes[-n:], kernel, stride, padding, strict=True)
    )
    if output_size is None:
        return usual
    given = tuple(output_size)
    if len(given) == n + 2:
        given = given[2:]
    if len(given) != n:
        raise ValueError(
            f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a "
            f"length of '{len(given)}'"
        )
    for d in range(n):
        low, high = usual[d] - stride[d], usual[d] + stride[d]
        if not low < given[d] < high:
            raise ValueError(
                f'invalid output_size "{output_size}" (dim {d} must be between {low} and {high})'
            )
    return tuple(int(s) for s in given)


def _unpooled(n: int, input: Any, indices: Any, sizes: Ints) -> Any:
    """`max_unpool` of two or three axes, after PyTorch's checks."""
    x, index = input._array, indices._array
    kind = dtypes.of(index.dtype)
    if kind is not dtypes.int64:
        raise RuntimeError(f"elements in indices should be type int64 but got: {kind.scalar_type}")
    if x.ndim not in (n + 1, n + 2):
        raise RuntimeError(
            f"Input to max_unpooling{n}d should be a {n + 1}d or {n + 2}d Tensor, but got a tensor "
            f"with {x.ndim} dimensions."
        )
    if x.shape != index.shape:
        raise RuntimeError(
            "Expected shape of indices to be same as that of the input tensor "
            f"({list(x.shape)}) but got indices tensor with shape: {list(index.shape)}"
        )
    refuse_pool_dtype(f"max_unpool{n}d", x)
    if x.size and not is_batched(indices):
        low, high = indices.min().item(), indices.max().item()
        if low < 0 or high >= math.prod(sizes):
            raise RuntimeError(
                f"Found an invalid max index: {low if low < 0 else high} (output volumes are of "
                f"size {'x'.join(str(s) for s in sizes)})"
            )
    return apply(_OPS[n](sizes), input, indices)


def _export(n: int) -> None:
    title = f"max_unpool{n}d"

    def max_unpool(
        input: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
        output_size: Any = None,
    ) -> Any:  # fmt: skip
        x = check_tensor(input, title)
        check_tensor(indices, title, "indices", 2)
        kernel = one_or_each(title, "kernel_size", kernel_size, n)
        step = kernel if stride is None else one_or_each(title, "stride", stride, n)
        edge = one_or_each(title, "padding", padding, n)
        sizes = unpool_size(x.shape, kernel, step, edge, output_size)
        if n > 1:
            return _unpooled(n, input, indices, sizes)
        found = _unpooled(2, input.unsqueeze(-2), indices.unsqueeze(-2), (1, *sizes))
        return found.squeeze(-2)

    text = (
        f"What `max_pool{n}d` chose, at the places that it tells; zeros elsewhere.\n\nArgs:\n"
        "    indices: the places.\n"
        "    kernel_size: how large windows were.\n"
        "    stride: how far they were apart.\n"
        "    padding: places that were added on both sides.\n"
        "    output_size: the size of what was pooled, where several are possible."
    )
    x = f"torch.tensor({'[' * (n + 1)}5.{']' * (n + 1)})"
    places = f"torch.tensor({'[' * (n + 1)}1{']' * (n + 1)})"
    kernel = "2" if n == 1 else f"({'1, ' * (n - 1)}2)"
    example = f"torch.nn.functional.{title}({x}, {places}, {kernel})"
    shown = "tensor(" + "[" * (n + 1) + "0., 5." + "]" * (n + 1) + ")"
    functional()(variant(max_unpool, title, describe(text, example, shown)))


for _n in (1, 2, 3):
    _export(_n)
