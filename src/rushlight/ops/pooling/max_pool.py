"""The largest of each window, and where it stands: `max_pool`, `adaptive_max_pool`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from rushlight.arrays import batch_windows  # noqa: F401  # the meaning of the primitives in batches
from rushlight.arrays import vocabulary as v
from rushlight.arrays.windows import Even, parts_of, window_argmax, window_max
from rushlight.core.grad_mode import state
from rushlight.core.graph import Node, Op, requires_grad
from rushlight.core.record import apply, recording
from rushlight.core.transforms.stack import stack
from rushlight.ops.checks import check_tensor
from rushlight.ops.each_member import batch_leading
from rushlight.ops.pooling.family import (
    Ints,
    check_windows,
    flat,
    one_or_each,
    refuse_pool_dtype,
    window_count,
)
from rushlight.ops.registry import describe, function, functional, op, variant
from rushlight.ops.sample_inputs import Draw

_VAST: Final = 1 << 30  # results, of which there may not be enough memory


def planes(shape: Ints, n: int) -> Ints:
    """A shape as two axes: the planes, and the places of the last `n` axes in them."""
    cut = len(shape) - n
    return math.prod(shape[:cut]), math.prod(shape[cut:])


class Largest(Op):
    """An op that chooses an element for each window over the last `n` axes, and tells its place in
    row order of these."""

    outputs: ClassVar[tuple[str, ...]] = ("result0", "result1")
    saves: ClassVar[tuple[str, ...]] = ("result1",)
    n: ClassVar[int] = 2
    apart: bool = False  # no two windows share a place
    vmap_rule = batch_leading
    lies = "channels"

    def spans(self, sizes: Ints) -> tuple[Even, ...]:
        raise NotImplementedError

    def forward(self, x: Any) -> Any:
        spans = self.spans(tuple(x.shape[-self.n :]))
        y = window_max(x, spans)
        return y, window_argmax(x, y, spans)

    def vjp(self, node: Node, g: Any, index: Any) -> Any:
        shapes, kinds = node._input_shapes, node._input_dtypes
        assert shapes is not None and kinds is not None
        shape = tuple(shapes[0])
        rows = v.reshape(g[0], planes(g[0].shape, self.n))
        places = v.reshape(index, planes(index.shape, self.n))
        whole = planes(shape, self.n)
        if self.apart:
            found = v.scatter(v.full(rows, whole, 0, kinds[0]), -1, places, rows)
        else:
            found = v.ungather(rows, whole, -1, places)
        return (v.reshape(found, shape), *(None,) * (len(shapes) - 1))

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        if ts[0] is None:
            return y[0] * 0, y[1] * 0
        rows = v.reshape(ts[0], flat(ts[0], self.n))
        found = v.gather(rows, -1, v.reshape(y[1], flat(y[1], self.n)))
        return v.reshape(found, y[0].shape), y[1] * 0


class MaxPool(Largest):
    """The largest of windows of one size, at even distances."""

    params = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")

    def __init__(
        self, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride = kernel_size, stride
        self.padding, self.dilation = padding, dilation
        self.ceil_mode = ceil_mode
        self.apart = all(
            s >= d * (k - 1) + 1 for k, s, d in zip(kernel_size, stride, dilation, strict=True)
        )

    def spans(self, sizes: Ints) -> tuple[Even, ...]:
        return tuple(
            Even(k, s, p, d, window_count(n, k, s, p, d, self.ceil_mode))
            for n, k, s, p, d in zip(
                sizes, self.kernel_size, self.stride, self.padding, self.dilation, strict=True
            )
        )


class AdaptiveMaxPool(Largest):
    """The largest of windows that divide the axes into `output_size` parts."""

    params, saved_names = ("output_size",), ""
    output_size: Ints

    def spans(self, sizes: Ints) -> tuple[Even, ...]:
        return tuple(parts_of(*pair) for pair in zip(sizes, self.output_size, strict=True))


def _max_ops(axes: int) -> tuple[Any, Any, Any]:
    """The ops of two or three axes, which PyTorch's nodes tell apart."""
    zeros, ones = (0,) * axes, (1,) * axes

    class Pool(MaxPool):
        name, node = f"max_pool{axes}d_with_indices", f"MaxPool{axes}DWithIndicesBackward0"
        n = axes

        @staticmethod
        def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
            yield Pool((2,) * axes, (2,) * axes, zeros, ones, False), draw.real(2, *(4,) * axes)
            yield Pool((3,) * axes, ones, ones, ones, False), draw.real(1, 2, *(3,) * axes)
            yield Pool((2,) * axes, (2,) * axes, ones, ones, True), draw.real(1, *(4,) * axes)
            yield Pool((2,) * axes, ones, zeros, (2,) * axes, True), draw.real(1, *(4,) * axes)

    class Values(MaxPool):
        name, differentiable = f"max_pool{axes}d", False
        outputs, saves = ("result",), ()
        n = axes

        def forward(self, x: Any) -> Any:
            return window_max(x, self.spans(tuple(x.shape[-self.n :])))

        @staticmethod
        def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
            yield Values((2,) * axes, (2,) * axes, zeros, ones, False), draw.real(2, *(4,) * axes)

    class Adaptive(AdaptiveMaxPool):
        name, node = f"adaptive_max_pool{axes}d", f"AdaptiveMaxPool{axes}DBackward0"
        n = axes
        lies = "channels" if axes == 2 else "rows"

        @staticmethod
        def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
            yield Adaptive((2,) * axes), draw.real(2, *(4,) * axes)
            yield Adaptive((3,) * axes), draw.real(1, 2, *(4,) * axes)

    for cls, title in ((Pool, "MaxPool"), (Values, "MaxPoolValues"), (Adaptive, "AdaptiveMaxPool")):
        cls.__name__ = cls.__qualname__ = f"{title}{axes}d"
        cls.__doc__ = f"`{title}` over {('two', 'three')[axes - 2]} axes."
        op(cls)
    return Pool, Values, Adaptive


OPS: Final = {2: _max_ops(2), 3: _max_ops(3)}


def _is_plain(input: Any) -> bool:
    """Whether no derivative is wanted: then the places of the maxima need not be found."""
    if state.level != 0 or stack.tangents != 0 or stack.batches != 0:
        return False
    return not (recording() and requires_grad(input))


def pooled(
    title: str, n: int, input: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
    ceil_mode: bool, places: bool,
) -> Any:  # fmt: skip
    """`max_pool` of two or three axes; with `places` a pair."""
    x = check_tensor(input, title)
    kernel = one_or_each(title, "kernel_size", kernel_size, n)
    steps = kernel if _is_omitted(stride) else one_or_each(title, "stride", stride, n)
    edge = one_or_each(title, "padding", padding, n)
    spread = one_or_each(title, "dilation", dilation, n)
    check_windows(x.shape, kernel, steps, edge, spread, ceil_mode)
    refuse_pool_dtype(f"max_pool{n}d", x, "int64 int32 int16 int8 uint8")
    pool, values, _ = OPS[n]
    if not places and _is_plain(input):
        return apply(values(kernel, steps, edge, spread, bool(ceil_mode)), input)
    found = apply(pool(kernel, steps, edge, spread, bool(ceil_mode)), input)
    return found if places else found[0]


def _is_omitted(stride: Any) -> bool:
    return stride is None or (isinstance(stride, (tuple, list)) and not stride)


def _pooled_signal(
    input: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
    places: bool,
) -> Any:  # fmt: skip
    title = "max_pool1d"
    x = check_tensor(input, title)
    if places:
        check_rank(title, x, 1)
    elif x.ndim not in (2, 3) or 0 in x.shape[x.ndim - 2 :]:
        raise RuntimeError(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for "
            f"input, but got:{list(x.shape)}"
        )
    (kernel,) = _single(title, "kernel_size", kernel_size)
    (step,) = (kernel,) if _is_omitted(stride) else _single(title, "stride", stride)
    (edge,), (spread,) = _single(title, "padding", padding), _single(title, "dilation", dilation)
    if not places:  # else PyTorch checks no more than `max_pool2d` does
        _check_signal(x.shape[-1], kernel, step, edge, spread, ceil_mode)
        if _is_plain(input):
            refuse_pool_dtype("max_pool1d_impl", x)
    found = pooled(
        title, 2, input.unsqueeze(-2), (1, kernel), (1, step), (0, edge), (1, spread), ceil_mode,
        places,
    )  # fmt: skip
    if places:
        return found[0].squeeze(-2), found[1].squeeze(-2)
    return found.squeeze(-2)


def _check_signal(n: int, kernel: int, step: int, edge: int, spread: int, ceil_mode: bool) -> None:
    """PyTorch's errors for windows of a signal."""
    for what, value in (("kernel_size", kernel), ("stride", step), ("dilation", spread)):
        if value <= 0:
            raise RuntimeError(f"max_pool1d() {what} must be greater than zero, but got {value}")
    if edge < 0:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {edge}")
    if edge > (spread * (kernel - 1) + 1) // 2:
        raise RuntimeError(
            "max_pool1d() padding should be at most half of kernel size, but got "
            f"padding={edge} and kernel_size={kernel}"
        )
    count = window_count(n, kernel, step, edge, spread, ceil_mode)
    if count < 1:
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {count}")


def _single(title: str, what: str, given: Any) -> Ints:
    if isinstance(given, (tuple, list)) and len(given) != 1:
        raise RuntimeError(f"{title}() argument '{what}' should contain one int (got {len(given)})")
    return one_or_each(title, what, given, 1)


_WHAT: Final = {1: "signals", 2: "images", 3: "volumes"}
_ARGS: Final = """

Args:
    kernel_size: how large windows are.
    stride: how far they are apart; as large as they are, if it is not given.
    padding: places on both sides that windows may cover and that count as minus infinity.
    dilation: the distance of the places of a window.
    ceil_mode: whether the last window may stand out.
    return_indices: whether to give the places of the largest, too."""


def _export(n: int) -> None:
    title = f"max_pool{n}d"

    def run(
        input: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
        places: bool,
    ) -> Any:  # fmt: skip
        if n == 1:
            return _pooled_signal(input, kernel_size, stride, padding, dilation, ceil_mode, places)
        return pooled(title, n, input, kernel_size, stride, padding, dilation, ceil_mode, places)

    def max_pool(
        input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        ceil_mode: bool = False, return_indices: bool = False,
    ) -> Any:  # fmt: skip
        return run(input, kernel_size, stride, padding, dilation, ceil_mode, bool(return_indices))

    def with_indices(
        input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        ceil_mode: bool = False, return_indices: bool = False,
    ) -> Any:  # fmt: skip
        return run(input, kernel_size, stride, padding, dilation, ceil_mode, True)

    def free(
        input: Any, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> Any:  # fmt: skip
        return run(input, kernel_size, stride, padding, dilation, ceil_mode, False)

    def free_with_indices(
        input: Any, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> Any:  # fmt: skip
        return run(input, kernel_size, stride, padding, dilation, ceil_mode, True)

    x = f"torch.arange({4 * n}.).reshape({'1, ' * n}{'2, ' * (n > 1)}-1)"
    shown = {
        1: "tensor([[1., 3.]])",
        2: "tensor([[[[5., 7.]]]])",
        3: "tensor([[[[[ 7.,  9., 11.]]]]])",
    }
    args = f"{x}, {(1,) * (n - 2) + (2, 2) if n > 1 else 2}"
    text = f"The largest of each window of {_WHAT[n]}.{_ARGS}"
    functional()(
        variant(max_pool, title, describe(text, f"torch.nn.functional.{title}({args})", shown[n]))
    )
    brief = f"`nn.functional.{title}`, with the places of the largest."
    functional()(variant(with_indices, f"{title}_with_indices", describe(brief)))
    brief = describe(f"`nn.functional.{title}`.", f"torch.{title}({args})", shown[n])
    function(method=False)(variant(free, title, brief))
    if n == 1:
        brief = describe("`max_pool1d`, with the places of the largest.")
        function(method=False)(variant(free_with_indices, "max_pool1d_with_indices", brief))


for _n in (1, 2, 3):
    _export(_n)


# --- adaptive -------------------------------------------------------------------------------------
def sizes_of(output_size: Any, shape: Ints, n: int) -> Ints:
    """One size for all axes, or one each; None: as it is."""
    if isinstance(output_size, (tuple, list)):
        given = list(output_size)
        if len(shape) <= len(given):
            raise ValueError(f"Input dimension should be at least {len(given) + 1}")
        if len(given) == n:
            return tuple(
                shape[d - n] if s is None else int(s.__index__()) for d, s in enumerate(given)
            )
        return tuple(int(s.__index__()) for s in given)
    if output_size is None:
        return shape[-n:]
    return (int(output_size.__index__()),) * n


def check_rank(name: str, x: Any, n: int) -> None:
    """PyTorch's error for a signal of another rank."""
    if x.ndim not in (n + 1, n + 2):
        raise RuntimeError(
            f"Expected {n + 1} to {n + 2} dimensions, but got {x.ndim}-dimensional tensor for "
            f"argument #1 'self' (while checking arguments for {name})"
        )


def check_room(x: Any, sizes: tuple[int, ...]) -> None:
    """Refuse results that no memory holds, before a window is made for each of their places."""
    if max(sizes, default=0) >= 1 << 63:
        raise ValueError("Overflow when unpacking long long")
    shape = (*x.shape[: -len(sizes)], *sizes)
    count = math.prod(shape)
    if count * x.dtype.itemsize >= 1 << 63:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")
    if count > _VAST:
        v.empty(x, shape, x.dtype)  # which fails at once


def _adaptive(title: str, n: int, input: Any, output_size: Any) -> Any:
    x = check_tensor(input, title)
    sizes = sizes_of(output_size, x.shape, n)
    if x.ndim not in (n + 1, n + 2):
        raise RuntimeError(
            f"{title}(): Expected {n + 1}D or {n + 2}D tensor, but got: {list(x.shape)}"
        )
    if len(sizes) != n:
        raise RuntimeError(f"{title}(): internal error: output_size.size() must be {n}")
    if min(sizes) < 0:
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {min(sizes)}: "
            f"{[*x.shape[:-n], *sizes]}"
        )
    for d in range(-n - 1, 0):
        if x.shape[d] == 0:
            raise RuntimeError(
                f"{title}(): Expected input to have non-zero size for non-batch dimensions, but "
                f"input has sizes {list(x.shape)} with dimension {d + x.ndim} being empty"
            )
    check_room(x, sizes)
    refuse_pool_dtype(f"{title}_cpu" if n == 3 else title, x)
    return apply(OPS[n][2](sizes), input)


def _export_adaptive(n: int) -> None:
    title = f"adaptive_max_pool{n}d"

    def run(input: Any, output_size: Any) -> Any:
        if n > 1:
            return _adaptive(title, n, input, output_size)
        x = check_tensor(input, title)
        check_rank(title, x, 1)
        (size,) = _single(title, "output_size", output_size)
        y, places = _adaptive("adaptive_max_pool2d", 2, input.unsqueeze(-2), (1, size))
        return y.squeeze(-2), places.squeeze(-2)

    def adaptive(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        found = run(input, output_size)
        return found if return_indices else found[0]

    def with_indices(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        return run(input, output_size)

    def free(input: Any, output_size: Any) -> Any:
        return run(input, output_size)

    text = (
        f"The largest of each window of {_WHAT[n]}, which are divided into `output_size` windows.\n"
        "\nArgs:\n    output_size: how many windows, one number or one an axis; None: as many as "
        "places.\n    return_indices: whether to give the places of the largest, too."
    )
    example = f"torch.nn.functional.{title}(torch.ones({', '.join('1' * n)}, 4), 1)"
    shown = "tensor(" + "[" * (n + 1) + "1." + "]" * (n + 1) + ")"
    functional()(variant(adaptive, title, describe(text, example, shown)))
    brief = describe(f"`{title}`, with the places of the largest.")
    functional()(variant(with_indices, f"{title}_with_indices", brief))
    if n == 1:
        function(method=False, returns="tuple[Tensor, Tensor]")(variant(free, title, brief))


for _n in (1, 2, 3):
    _export_adaptive(_n)
