"""Modules of convolution, pooling, padding, resizing and shuffles: what they print, start with and
compute, and a small network that learns."""

from __future__ import annotations

import math
from typing import Any

from tests.harness import PlainCases

exact = PlainCases()  # to the last bit and letter
close = PlainCases()  # to rounding

MODULES = """
Conv1d(4, 6, 3) | Conv1d(4, 6, 3, 2, 1, 2, 2, False) | Conv1d(4, 4, 3, padding="same")
Conv1d(4, 4, 3, padding=2, padding_mode="replicate") | Conv2d(4, 6, 3)
Conv2d(4, 6, (3, 2), padding=(1, 0))
Conv2d(4, 4, 3, padding=1, groups=4) | Conv2d(4, 6, 3, padding=1, padding_mode="circular")
Conv2d(4, 6, 3, padding="same", padding_mode="reflect")
Conv2d(4, 6, 3, padding="valid", bias=False)
Conv3d(4, 2, 2, 2) | Conv3d(4, 2, (1, 2, 3), padding=1) | ConvTranspose1d(4, 3, 3, 2, 1, 1)
ConvTranspose2d(4, 2, 3, 2) | ConvTranspose2d(4, 4, 2, groups=2, bias=False, dilation=2)
ConvTranspose3d(4, 2, 2)
MaxPool1d(2) | MaxPool2d(2) | MaxPool2d(3, 2, 1, 1, True, True) | MaxPool3d(2, 1) | AvgPool1d(2)
AvgPool1d(3, 2, 1)
AvgPool2d(2) | AvgPool2d(3, 2, 1, True, False) | AvgPool3d(2, 1, divisor_override=3)
LPPool1d(2, 2) | LPPool2d(2, 2, 1)
LPPool3d(2, 2) | AdaptiveMaxPool1d(3) | AdaptiveMaxPool2d((2, None)) | AdaptiveMaxPool3d(2, True)
AdaptiveAvgPool1d(3)
AdaptiveAvgPool2d(1) | AdaptiveAvgPool2d((None, 3)) | AdaptiveAvgPool3d(2)
FractionalMaxPool2d(2, 3)
FractionalMaxPool2d(2, output_ratio=(0.5, 0.4)) | FractionalMaxPool3d(2, 2) | ConstantPad1d(1, 2.5)
ConstantPad2d((1, 2, 0, 1), 3)
ConstantPad3d(1, 0.5) | ZeroPad1d(2) | ZeroPad2d((1, 2, 3, 4)) | ZeroPad3d(1) | ReflectionPad1d(2)
ReflectionPad2d(1)
ReflectionPad3d(1) | ReplicationPad1d((1, 2)) | ReplicationPad2d(1) | ReplicationPad3d(1)
CircularPad1d(1) | CircularPad2d(1)
CircularPad3d(1) | Upsample(scale_factor=2) | Upsample(size=3, mode="bilinear")
Upsample(scale_factor=(2.0, 1.5), mode="bicubic")
UpsamplingNearest2d(scale_factor=2) | UpsamplingBilinear2d(5) | Unfold(2) | Unfold(2, 1, 1, 2)
PixelShuffle(2)
PixelUnshuffle(2) | ChannelShuffle(2) | LocalResponseNorm(3) | CrossMapLRN2d(3, 0.5)
CrossMapLRN2d(2, 0.5)
MaxUnpool1d(2) | MaxUnpool2d(2, 1) | MaxUnpool3d((1, 2, 2)) | Fold((5, 5), 2)
Fold((4, 6), (2, 3), 1, 0, (2, 3))
""".replace("\n", "|").split("|")
MODULES = [text.strip() for text in MODULES if text.strip()]
SHAPES = {1: (2, 4, 6), 2: (2, 4, 6, 6), 3: (1, 4, 4, 4, 4)}


def build(torch: Any, text: str) -> Any:
    names = {name: getattr(torch.nn, name) for name in dir(torch.nn) if name[0].isupper()}
    return eval(text, names)


def rank_of(text: str) -> int:
    name = text.partition("(")[0]
    return int(name[-2]) if name.endswith("d") and name[-2].isdigit() else 2


def numbers(torch: Any, *shape: int) -> Any:
    at = torch.arange(math.prod(shape), dtype=torch.float32)
    return ((at * 0.7).sin() + (at * at * 0.013).cos()).reshape(shape)


@exact
def printed(torch: Any) -> Any:
    return {text: repr(build(torch, text)) for text in MODULES}


@exact
def first_values(torch: Any) -> Any:
    """The state of each module that draws numbers, and the number drawn after it."""
    found = {}
    for text in MODULES:
        if text.startswith("Conv"):
            torch.manual_seed(5)
            state = build(torch, text).state_dict()
            sums = {k: [list(t.shape), t.flatten()[:5].tolist()] for k, t in state.items()}
            found[text] = [sums, torch.rand(1).item()]
    return found


@exact
def attributes(torch: Any) -> Any:
    found = {}
    for text in MODULES:
        own = vars(build(torch, text))
        found[text] = {k: repr(v) for k, v in sorted(own.items()) if not k.startswith("_")}
    return found


@close
def outputs(torch: Any) -> Any:
    """Each module at work: a few of the numbers, and of the gradients."""
    found = {}
    for text in MODULES:
        if "npool" in text or text.startswith("Fold"):
            continue
        torch.manual_seed(7)
        module = build(torch, text)
        x = numbers(torch, *SHAPES[rank_of(text)]).requires_grad_()
        y = module(x)
        y = y[0] if isinstance(y, tuple) else y
        (y * numbers(torch, *y.shape)).sum().backward()
        told = [list(y.shape), y.flatten()[:12].tolist()]
        if not text.startswith("CrossMap"):  # whose gradient in PyTorch is not that of its result
            told += [t.grad.flatten()[:12].tolist() for t in (x, *module.parameters())]
        found[text] = told
    return found


@close
def there_and_back(torch: Any) -> Any:
    nn = torch.nn
    found = {}
    for n, shape in ((1, (1, 2, 6)), (2, (1, 2, 5, 6)), (3, (1, 1, 4, 4, 4))):
        x = numbers(torch, *shape)
        y, places = getattr(nn, f"MaxPool{n}d")(2, return_indices=True)(x)
        back = getattr(nn, f"MaxUnpool{n}d")(2)(y, places, output_size=shape[2:])
        found[f"unpool {n}"] = [places.tolist(), back.tolist()]
    x = numbers(torch, 1, 2, 4, 4)
    found["fold"] = nn.Fold((4, 4), 2)(nn.Unfold(2)(x)).tolist()
    up = nn.ConvTranspose2d(2, 2, 3, 2, 1)
    with torch.no_grad():
        up.weight.copy_(numbers(torch, 2, 2, 3, 3))
        up.bias.zero_()
    found["output_size"] = up(x, output_size=[8, 7]).tolist()
    return found


@close
def training(torch: Any) -> Any:
    """A small network of both kinds, learning to tell four images apart."""
    nn = torch.nn
    torch.manual_seed(11)
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 8, 3), nn.Tanh(),
        nn.AvgPool2d(2), nn.Dropout2d(0.2), nn.Flatten(), nn.Linear(8, 4),
    )  # fmt: skip
    x, target = torch.rand(8, 1, 8, 8), torch.arange(8) % 4
    optimizer = torch.optim.SGD(net.parameters(), lr=0.3, momentum=0.5)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def results(torch: Any) -> Any:
    return exact.results(torch) | close.results(torch)
