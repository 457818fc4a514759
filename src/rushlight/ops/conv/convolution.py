"""Convolution and transposed convolution: one op, whose derivatives are convolutions again.

Note [Three products]
    y = convolve(x, w), the gradient of x, and the gradient of w are bilinear in two of
    (x, w, g), and the derivative of each is one of the other two. A transposed convolution is the
    gradient of x, read as a map of g. So two ops and three primitives have all derivatives.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from rushlight import dtypes
from rushlight.arrays import batch_windows  # noqa: F401  # the meaning of the primitives in batches
from rushlight.arrays import vocabulary as v
from rushlight.arrays.windows import convolve, convolve_input, convolve_weight, out_size
from rushlight.core.families import conj
from rushlight.core.graph import Node, Op
from rushlight.core.record import apply
from rushlight.ops.checks import c_name, check_tensor, mismatch, not_implemented
from rushlight.ops.registry import describe, function, implements, op, variant
from rushlight.ops.sample_inputs import Draw
from rushlight.ops.shape.pad import constant_pad_nd

Ints = tuple[int, ...]


def cut_to(y: Any, sizes: Ints) -> Any:
    """The first `sizes` places of the last axes."""
    if y.shape[y.ndim - len(sizes) :] == sizes:
        return y
    return v.window(y, (..., *[slice(0, n) for n in sizes]))


@op
class Convolution(Op):
    """Convolution, or with `transposed` the map that goes the other way; plus a bias a channel."""

    name = "convolution"
    inputs, saves = ("input", "weight", "bias"), ("input", "weight")
    reads: ClassVar = {0: ("weight",), 1: ("input",), 2: ()}
    params = ("stride", "padding", "dilation", "transposed", "output_padding", "groups")
    saved_names = (
        "bias_sym_sizes_opt=bias.sizes dilation groups output_padding padding stride transposed"
    )
    stride: Ints
    padding: Ints
    dilation: Ints
    transposed: bool
    output_padding: Ints
    groups: int
    complex_too = True
    lies = "either"

    def __init__(
        self, stride: Ints, padding: Ints, dilation: Ints, transposed: bool = False,
        output_padding: Ints = (), groups: int = 1,
    ) -> None:  # fmt: skip
        super().__init__()
        self.stride, self.padding, self.dilation = stride, padding, dilation
        self.transposed = transposed
        self.output_padding = output_padding or (0,) * len(stride)
        self.groups = groups
        self.how = (stride, padding, dilation, groups)

    def grown(self, sizes: Ints, kernel: Ints) -> Ints:
        """The sizes of the result of a transposed convolution."""
        return tuple(
            (n - 1) * s - 2 * p + d * (k - 1) + more + 1
            for n, k, s, p, d, more in zip(
                sizes, kernel, self.stride, self.padding, self.dilation, self.output_padding,
                strict=True,
            )
        )  # fmt: skip

    def product(self, x: Any, w: Any, b: Any) -> Any:
        if not self.transposed:
            return convolve(x, w, b, *self.how)
        n = len(self.stride)
        return convolve_input(x, w, b, self.grown(x.shape[-n:], w.shape[-n:]), *self.how)

    def forward(self, x: Any, w: Any, b: Any) -> Any:
        return self.product(x, w, b)

    def vjp(self, node: Node, g: Any, x: Any, w: Any) -> Any:
        shapes = node._input_shapes
        assert shapes is not None
        n = len(self.stride)
        sizes, kernel = tuple(shapes[0][-n:]), tuple(shapes[1][-n:])
        gx = gw = gb = None
        if node._needs_grad(0):
            if self.transposed:
                gx = v.contiguous(cut_to(convolve(g, conj(w), None, *self.how), sizes))
            else:
                gx = convolve_input(g, conj(w), None, sizes, *self.how)
        if node._needs_grad(1):
            first, second = (conj(x), g) if self.transposed else (g, conj(x))
            gw = v.contiguous(convolve_weight(first, second, kernel, *self.how))
        if node._needs_grad(2):
            gb = v.reduce_sum(g, (-n - 2, *range(-n, 0)), False)
        return gx, gw, gb

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        x, w, _ = xs
        tx, tw, tb = ts
        out = None if tx is None else self.product(tx, w, tb)
        if tw is not None:
            other = self.product(x, tw, tb if out is None else None)
            out = other if out is None else out + other
        if out is None:
            out = y * 0 + v.reshape(tb, (-1, *(1,) * len(self.stride)))
        return out

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        one, two = (1, 1), (2, 1)
        yield Convolution(one, (0, 0), one), draw.real(2, 2, 3, 4), draw.real(3, 2, 2, 2), None
        yield Convolution((1,), (1,), (1,)), draw.real(1, 2, 3), draw.real(2, 2, 3), draw.real(2)
        yield (
            Convolution(two, (1, 0), (1, 2), False, (), 2),
            draw.real(2, 4, 4, 4), draw.real(2, 2, 3, 2), draw.real(2),
        )  # fmt: skip
        yield (
            Convolution((2,), (1,), (1,), False, (), 3),
            draw.real(2, 3, 6),
            draw.real(6, 1, 3),
            None,
        )
        yield (
            Convolution(one, (0, 0), one),
            draw.real(2, 2, 2, 2),
            draw.real(3, 2, 1, 1),
            draw.real(3),
        )
        yield (
            Convolution((2,), (1,), (1,), True, (1,)),
            draw.real(2, 2, 3), draw.real(2, 3, 3), draw.real(3),
        )  # fmt: skip
        yield (
            Convolution((1,), (1,), (2,), True, (1,), 2),
            draw.real(1, 4, 3), draw.real(4, 1, 2), draw.real(2),
        )  # fmt: skip
        yield (
            Convolution((1,), (1,), (1,), True, (), 2),
            draw.real(1, 2, 3),
            draw.real(2, 1, 2),
            None,
        )
        yield (
            Convolution((1, 1, 1), (1, 0, 1), (1, 1, 1)),
            draw.real(1, 1, 2, 2, 2), draw.real(2, 1, 2, 2, 2), draw.real(2),
        )  # fmt: skip
        yield Convolution((1,), (0,), (1,)), draw.real(0, 2, 3), draw.real(1, 2, 2), draw.real(1)


@op
class ConvolutionWeight(Op):
    """The gradient of a convolution's weight; see Note [Three products]."""

    name, aten, node = "convolution_weight", None, "ConvolutionBackwardBackward0"
    inputs, saves = ("grad_output", "input"), ("grad_output", "input")
    reads: ClassVar = {0: ("input",), 1: ("grad_output",)}
    params = ("kernel", "stride", "padding", "dilation", "groups")
    kernel: Ints
    stride: Ints
    padding: Ints
    dilation: Ints
    groups: int
    complex_too = True

    def how(self) -> Any:
        return self.stride, self.padding, self.dilation, self.groups

    def forward(self, g: Any, x: Any) -> Any:
        return convolve_weight(g, x, self.kernel, *self.how())

    def vjp(self, node: Node, g: Any, grad: Any, x: Any) -> Any:
        shapes = node._input_shapes
        assert shapes is not None
        n = len(self.stride)
        gg = gx = None
        if node._needs_grad(0):
            gg = cut_to(convolve(conj(x), g, None, *self.how()), tuple(shapes[0][-n:]))
        if node._needs_grad(1):
            gx = convolve_input(conj(grad), g, None, tuple(shapes[1][-n:]), *self.how())
        return gg, gx

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        g, x = xs
        out = None if ts[0] is None else self.forward(ts[0], x)
        if ts[1] is None:
            return out
        other = self.forward(g, ts[1])
        return other if out is None else out + other

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield (
            ConvolutionWeight((2, 2), (1, 1), (0, 0), (1, 1), 1),
            draw.real(2, 3, 2, 3), draw.real(2, 2, 3, 4),
        )  # fmt: skip
        yield ConvolutionWeight((3,), (2,), (1,), (1,), 2), draw.real(2, 4, 2), draw.real(2, 2, 4)


@implements("convolve")
def _convolve(
    x: Any, w: Any, b: Any, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Any:
    return apply(Convolution(stride, padding, dilation, False, (), groups), x, w, b)


@implements("convolve_input")
def _convolve_input(
    g: Any, w: Any, b: Any, sizes: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Any:
    bare = Convolution(stride, padding, dilation, True, (), groups)
    n = len(stride)
    least = bare.grown(tuple(g.shape[-n:]), tuple(w.shape[-n:]))
    more = tuple([a - b for a, b in zip(sizes, least, strict=True)])
    return apply(Convolution(stride, padding, dilation, True, more, groups), g, w, b)


@implements("convolve_weight")
def _convolve_weight(
    g: Any, x: Any, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Any:
    return apply(ConvolutionWeight(kernel, stride, padding, dilation, groups), g, x)


# --- what users wrote -----------------------------------------------------------------------------
def _spread(name: str, given: Any, n: int, function: str = "") -> Ints:
    """One number for all axes, or one each."""
    if isinstance(given, (tuple, list)):
        found = tuple(int(i.__index__()) for i in given)
        if len(found) == 1:
            return found * n
    elif isinstance(given, bool) or not hasattr(given, "__index__"):
        raise mismatch(function, **{name: given})
    else:
        return (int(given.__index__()),) * n
    if len(found) != n:
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {n} values to match the "
            f"convolution dimensions, but got {name}={list(found)}"
        )
    return found


def _times(sizes: Any) -> str:
    return "(" + " x ".join(str(n) for n in sizes) + ")"


def _check(x: Any, w: Any, b: Any, what: Convolution) -> None:
    """Refuse what does not fit together, in PyTorch's words."""
    n, groups, shape = w.ndim - 2, what.groups, list(w.shape)
    if any(p < 0 for p in what.padding):
        raise RuntimeError("negative padding is not supported")
    if any(p < 0 for p in what.output_padding):
        raise RuntimeError("negative output_padding is not supported")
    if any(s <= 0 for s in what.stride):
        raise RuntimeError("non-positive stride is not supported")
    if any(d < 0 for d in what.dilation):
        raise RuntimeError("dilation should be greater than zero")
    if 0 in what.dilation:
        shown = [1, *what.dilation] if n == 1 else list(what.dilation)
        raise RuntimeError(f"dilation should be greater than zero, but got {shown}")
    if w.shape[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but "
            f"got weight of size {shape} instead"
        )
    if w.shape[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, "
            f"but got weight of size [{shape}] instead"
        )
    if what.transposed:
        given, want, outs = "transposed=1, ", w.shape[0], w.shape[1] * groups
    else:
        given, want, outs = "", w.shape[1] * groups, w.shape[0]
    if x.shape[1] != want:
        begin = given or f"groups={groups}, "
        raise RuntimeError(
            f"Given {begin}weight of size {shape}, expected input{list(x.shape)} to have {want} "
            f"channels, but got {x.shape[1]} channels instead\n{_cure_of_channels(x.shape, want)}"
        )
    if b is not None and b.shape != (outs,):
        raise RuntimeError(
            f"Given {given}weight of size {shape}, expected bias to be 1-dimensional with {outs} "
            f"elements, but got bias of size {list(b.shape)} instead"
        )
    if what.transposed:
        _check_transposed(x, w, what, n)
        return
    padded = [s + 2 * p for s, p in zip(x.shape[2:], what.padding, strict=True)]
    kernel = [d * (k - 1) + 1 for k, d in zip(w.shape[2:], what.dilation, strict=True)]
    if any(k > s for k, s in zip(kernel, padded, strict=True)):
        raise RuntimeError(
            f"Calculated padded input size per channel: {_times(padded)}. Kernel size: "
            f"{_times(kernel)}. Kernel size can't be greater than actual input size\n"
            "Pad the input (`padding=`), take a smaller kernel, or pool less before this layer."
        )
    _check_size(x)


def _cure_of_channels(shape: Any, want: int) -> str:
    """What to do about an input [batch, channels, *sizes] with another number of channels."""
    n = len(shape)
    if shape[-1] == want:
        order = ", ".join(str(i) for i in (0, n - 1, *range(1, n - 1)))
        return f"The channels are in the last dimension: `x.permute({order})` puts them in front."
    return (
        "Channels are counted in the dimension behind the batch: the layer's `in_channels` is "
        f"{want}, and the input has {shape[1]}."
    )


def _check_size(x: Any) -> None:
    if 0 in x.shape[2:]:
        raise RuntimeError(
            "Only zero batch or zero channel inputs are supported, but got input shape: "
            f"{list(x.shape)}"
        )


_SIDES: Final = ("depth", "height", "width")


def _check_transposed(x: Any, w: Any, what: Convolution, n: int) -> None:
    _check_size(x)
    if any(
        more >= s and more >= d
        for more, s, d in zip(what.output_padding, what.stride, what.dilation, strict=True)
    ):
        words = [
            f"{name}_{side}: {value[at]}"
            for name, value in (
                ("output_padding", what.output_padding), ("stride", what.stride),
                ("dilation", what.dilation),
            )
            for at, side in enumerate(_SIDES[-n:] if n > 1 else ("height", "width"))
            for value in ((1, *value) if n == 1 else value,)
        ]  # fmt: skip
        raise RuntimeError(
            "output padding must be smaller than either stride or dilation, but got "
            + " ".join(words)
        )
    sizes = what.grown(x.shape[2:], w.shape[2:])
    if any(s < 1 for s in sizes):
        raise RuntimeError(
            f"Given input size per channel: {_times(x.shape[2:])}. Calculated output size per "
            f"channel: {_times(sizes)}. Output size is too small"
        )


def _check_kinds(x: Any, w: Any, b: Any, transposed: bool) -> None:
    """Refuse operands of several dtypes. PyTorch looks at the bias first, unless transposed."""
    kind = x.dtype
    if b is not None and b.dtype != kind and (not transposed or w.dtype == kind):
        raise RuntimeError(
            f"Input type ({c_name(kind)}) and bias type ({c_name(b.dtype)}) should be the same\n"
            + _cure_of_kinds(kind, b.dtype)
        )
    if kind.kind == "b":
        raise not_implemented("slow_conv2d_cpu", kind)
    if w.dtype != kind:
        want, have = dtypes.of(kind).scalar_type, dtypes.of(w.dtype).scalar_type
        text = f"expected scalar type {want} but found {have}"
        if kind.kind == "c" or want == "BFloat16":
            text = f"Input type (CPU{want}Type) and weight type (torch.{have}Tensor) "
            text += "should be the same"
        if want == "BFloat16":
            text += " or input should be a MKLDNN tensor and weight is a dense tensor"
        raise RuntimeError(f"{text}\n{_cure_of_kinds(kind, w.dtype)}")


def _cure_of_kinds(have: Any, want: Any) -> str:
    """What to do about an input of the dtype `have`, where parameters are of `want`."""
    cure = f"Convert the input: `x.to({dtypes.of(want)})`"
    if have.kind in "iu":  # an image as it comes from a file
        return f"{cure}, and pictures of bytes `/ 255`."
    return f"{cure}, or the model: `model.to({dtypes.of(have)})`."


def convolution_of(
    input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int,
    transposed: bool, output_padding: Any, title: str,
) -> Any:  # fmt: skip
    """Any convolution, of arguments as users write them; the input has a batch dimension."""
    x, w = input._array, weight._array
    n = w.ndim - 2
    if n < 1:
        raise RuntimeError("weight should have at least three dimensions")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    what = Convolution(
        _spread("stride", stride, n, title), _spread("padding", padding, n, title),
        _spread("dilation", dilation, n, title), transposed,
        _spread("output_padding", output_padding, n, title), groups,
    )  # fmt: skip
    if x.ndim != n + 2:
        raise RuntimeError(
            f"Expected {n + 2}-dimensional input for {n + 2}-dimensional weight {list(w.shape)}, "
            f"but got {x.ndim}-dimensional input of size {list(x.shape)} instead"
        )
    b = None if bias is None else bias._array
    _check(x, w, b, what)
    _check_kinds(x, w, b, transposed)
    if x.dtype.kind == "c":
        return _of_parts(what, input, weight, bias)
    return apply(what, input, weight, bias)


def _of_parts(what: Convolution, input: Any, weight: Any, bias: Any) -> Any:
    """A convolution of complex numbers as three of real ones, as PyTorch has it."""
    x, y = input.real, input.imag
    u, w = weight.real, weight.imag
    b = both = None
    if bias is not None:
        b = bias.real
        both = b + bias.imag
    first = apply(what, x, u, b)
    second = apply(what, y, w, None)
    cross = apply(what, x + y, u + w, both)
    return first - second + 1j * (cross - first - second)


def _check_arguments(title: str, input: Any, weight: Any, bias: Any, n: int) -> bool:
    """Refuse what is no tensor; whether the input lacks the batch dimension."""
    x = check_tensor(input, title)
    check_tensor(weight, title, "weight", 2)
    if bias is not None:
        check_tensor(bias, title, "bias", 3)
    if x.ndim not in (n + 1, n + 2):
        raise RuntimeError(
            f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {title}, but got input "
            f"of size: {list(x.shape)}\n{_cure_of_rank(x.ndim, n)}"
        )
    return bool(x.ndim == n + 1)


def _cure_of_rank(have: int, n: int) -> str:
    sizes = ("length", "height, width", "depth, height, width")[n - 1]
    cure = f"An input is [batch, channels, {sizes}], or one of the batch."
    return f"{cure} `x.unsqueeze(0)` makes one channel." if have == n else cure


def _same_padding(
    input: Any, weight: Any, stride: Any, padding: str, dilation: Any, title: str
) -> tuple[Any, Any]:
    """The input, padded by one where sides differ, and the padding that a word stands for."""
    if padding == "valid":
        return input, 0
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    kernel = weight._array.shape[2:]
    n = len(kernel)
    if any(s != 1 for s in _spread("stride", stride, n, title)):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    spread = _spread("dilation", dilation, n, title)
    total = [d * (k - 1) for k, d in zip(kernel, spread, strict=True)]
    if any(t % 2 for t in total):
        warnings.warn(
            "Using padding='same' with even kernel lengths and odd dilation may require a "
            "zero-padded copy of the input be created",
            stacklevel=4,
        )
        extra: list[int] = []
        for t in reversed(total):
            extra += (0, t % 2)
        input = constant_pad_nd(input, extra)
    return input, tuple([t // 2 for t in total])


def _export(n: int, example: str, shown: str) -> None:
    title, what = f"conv{n}d", ("signals", "images", "volumes")[n - 1]

    def conv(
        input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1,
    ) -> Any:  # fmt: skip
        lone = _check_arguments(title, input, weight, bias, n)
        x = input.unsqueeze(0) if lone else input
        if isinstance(padding, str):
            x, padding = _same_padding(x, weight, stride, padding, dilation, title)
        y = convolution_of(x, weight, bias, stride, padding, dilation, groups, False, 0, title)
        return y.squeeze(0) if lone else y

    text = (
        f"Convolution of {what}: each result is the sum of a window times the kernel, over all "
        "channels of\nits group.\n\nArgs:\n"
        "    weight: the kernels, of shape [out_channels, in_channels / groups, *sizes].\n"
        "    bias: added to each output channel, or None.\n"
        "    stride: how far the window moves.\n"
        "    padding: zeros on both sides, or 'same' or 'valid'.\n"
        "    dilation: the distance of the window's places.\n"
        "    groups: into how many parts the channels are divided."
    )
    doc = describe(text, f"torch.{title}({example})", shown)
    function(method=False, namespace="nn.functional")(variant(conv, title, doc))


_export(1, "torch.tensor([[[1., 2., 3.]]]), torch.ones(1, 1, 2)", "tensor([[[3., 5.]]])")
_export(2, "torch.ones(1, 1, 2, 3), torch.ones(1, 1, 2, 2)", "tensor([[[[4., 4.]]]])")
_export(3, "torch.ones(1, 1, 1, 1, 2), torch.ones(1, 1, 1, 1, 1)", "tensor([[[[[1., 1.]]]]])")


def _export_transposed(n: int, example: str, shown: str) -> None:
    title, what = f"conv_transpose{n}d", ("signals", "images", "volumes")[n - 1]

    def conv_transpose(
        input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
    ) -> Any:  # fmt: skip
        lone = _check_arguments(title, input, weight, bias, n)
        x = input.unsqueeze(0) if lone else input
        y = convolution_of(
            x, weight, bias, stride, padding, dilation, groups, True, output_padding, title
        )
        return y.squeeze(0) if lone else y

    text = (
        f"Transposed convolution of {what}: each place puts a kernel, times its value, into the "
        "result.\n\nArgs:\n"
        "    weight: the kernels, of shape [in_channels, out_channels / groups, *sizes].\n"
        "    bias: added to each output channel, or None.\n"
        "    stride: how far kernels are apart in the result.\n"
        "    padding: places cut off the result, on both sides.\n"
        "    output_padding: places added to the result, on one side.\n"
        "    groups: into how many parts the channels are divided.\n"
        "    dilation: the distance of the kernel's places."
    )
    doc = describe(text, f"torch.{title}({example})", shown)
    function(method=False, namespace="nn.functional")(variant(conv_transpose, title, doc))


_export_transposed(1, "torch.tensor([[[1., 2.]]]), torch.ones(1, 1, 2)", "tensor([[[1., 3., 2.]]])")
_export_transposed(
    2, "torch.ones(1, 1, 1, 2), torch.ones(1, 1, 1, 2), stride=2", "tensor([[[[1., 1., 1., 1.]]]])"
)
_export_transposed(
    3, "torch.ones(1, 1, 1, 1, 2), torch.ones(1, 1, 1, 1, 1)", "tensor([[[[[1., 1.]]]]])"
)


@function(method=False)
def convolution(
    input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int,
) -> Any:  # fmt: skip
    """A convolution of any number of dimensions, or a transposed one.

    >>> x, w = torch.ones(1, 1, 3), torch.ones(1, 1, 2)
    >>> torch.convolution(x, w, None, [1], [0], [1], False, [0], 1)
    tensor([[[2., 2.]]])
    """
    check_tensor(input, "convolution")
    check_tensor(weight, "convolution", "weight", 2)
    return convolution_of(
        input, weight, bias, stride, padding, dilation, groups, bool(transposed), output_padding,
        "convolution",
    )  # fmt: skip


# --- time first -----------------------------------------------------------------------------------
@op
class ConvTbc(Op):
    """Convolution of [time, batch, channels] with [taps, in, out], plus a bias."""

    name = "conv_tbc"
    inputs, saves = ("self", "weight", "bias"), ("self", "weight", "bias")
    reads: ClassVar = {0: ("weight",), 1: ("self",), 2: ("bias",)}
    params = ("pad",)
    pad: int = 0
    complex_too = True
    lies = "rows"

    def how(self) -> Any:
        return (1,), (self.pad,), (1,), 1

    def turned(self, x: Any) -> Any:
        """[time, batch, channels] as [batch, channels, time], and weights likewise."""
        return v.permute(x, (1, 2, 0))

    def product(self, x: Any, w: Any, b: Any) -> Any:
        y = convolve(self.turned(x), v.permute(w, (2, 1, 0)), b, *self.how())
        return v.permute(y, (2, 0, 1))

    def forward(self, x: Any, w: Any, b: Any) -> Any:
        return self.product(x, w, b)

    def vjp(self, node: Node, g: Any, x: Any, w: Any, b: Any) -> Any:
        shapes = node._input_shapes
        assert shapes is not None
        gx = gw = gb = None
        h = self.turned(g)
        if node._needs_grad(0):
            size = (shapes[0][-3],)
            found = convolve_input(h, v.permute(conj(w), (2, 1, 0)), None, size, *self.how())
            gx = v.permute(found, (2, 0, 1))
        if node._needs_grad(1):
            found = convolve_weight(h, self.turned(conj(x)), (shapes[1][-3],), *self.how())
            gw = v.permute(found, (2, 1, 0))
        if node._needs_grad(2):
            gb = v.reduce_sum(g, (-3, -2), False)
        return gx, gw, gb

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        x, w, _ = xs
        out = y * 0
        if ts[0] is not None:
            out = out + self.product(ts[0], w, None)
        if ts[1] is not None:
            out = out + self.product(x, ts[1], None)
        return out if ts[2] is None else out + ts[2]

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield ConvTbc(1), draw.real(4, 2, 3), draw.real(3, 3, 2), draw.real(2)


@function(method=False, namespace="nn.functional")
def conv_tbc(input: Any, weight: Any, bias: Any, pad: int = 0) -> Any:
    """Convolution of signals that lie as [time, batch, channels].

    Args:
        weight: the kernels, of shape [taps, in_channels, out_channels].
        bias: added to each output channel.
        pad: zeros before and after the signal.

    >>> torch.conv_tbc(torch.ones(3, 1, 1), torch.ones(2, 1, 1), torch.zeros(1)).flatten()
    tensor([2., 2.])
    """
    x, w, b = input._array, weight._array, bias._array
    for name, t, rank in (("Input", x, 3), ("Weight tensor", w, 3), ("Bias", b, 1)):
        if t.ndim != rank:
            raise RuntimeError(
                f"{name} must have {rank} dim{'s' if rank > 1 else ''}"
                + (": time, batch, in_channel" if name == "Input" else "")
            )
    if x.shape[2] != w.shape[1]:
        raise RuntimeError("Input dim 2 (input channels) is not == dim 1 in the weight tensor")
    if b.shape[0] != w.shape[2]:
        raise RuntimeError("Bias size must equal dim 2 in the weight tensor (output channels).")
    if out_size(x.shape[0], w.shape[0], 1, pad, 1) < 0:
        raise RuntimeError("The padded input is shorter than the kernel")
    return apply(ConvTbc(pad), input, weight, bias)
