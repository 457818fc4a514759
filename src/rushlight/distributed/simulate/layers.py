"""The model of a simulation: the parameters of each layer, how long it computes, and buckets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

MIB = 1024 * 1024


@dataclass(frozen=True)
class Layer:
    """Parameters that get their gradients together: their bytes, and seconds of both passes."""

    name: str
    size: float
    forward: float
    backward: float


@dataclass(frozen=True)
class Layers:
    """A model as a data-parallel step sees it; `optimizer` are the seconds of the update.

    >>> from rushlight.distributed.simulate import Layer, Layers
    >>> model = Layers([Layer("first", 4e6, 0.001, 0.002), Layer("second", 8e6, 0.002, 0.004)])
    >>> model.size, round(model.compute, 6)
    (12000000.0, 0.009)
    """

    layers: tuple[Layer, ...]
    optimizer: float = 0.0

    def __init__(self, layers: Iterable[Layer], optimizer: float = 0.0) -> None:
        object.__setattr__(self, "layers", tuple(layers))
        object.__setattr__(self, "optimizer", optimizer)

    def __iter__(self) -> Iterator[Layer]:
        return iter(self.layers)

    @property
    def size(self) -> float:
        """Bytes of all gradients."""
        return math.fsum(layer.size for layer in self.layers)

    @property
    def compute(self) -> float:
        """Seconds of a step of one rank alone."""
        return math.fsum(layer.forward + layer.backward for layer in self.layers) + self.optimizer

    def split(self, ranks: int) -> Layers:
        """The work of one rank when a batch of fixed size is shared by `ranks`: strong scaling."""
        return Layers(
            (replace(x, forward=x.forward / ranks, backward=x.backward / ranks) for x in self),
            self.optimizer,
        )


def from_flops(
    shapes: Iterable[tuple[str, float, float]], flops: float, optimizer_bandwidth: float
) -> Layers:
    """Layers of (name, parameters, multiplications a step) on a device of `flops` operations a
    second: the backward pass computes two products where the forward pass computes one."""
    layers = []
    for name, parameters, products in shapes:
        forward = 2 * products / flops
        layers.append(Layer(name, 4 * parameters, forward, 2 * forward))
    size = math.fsum(layer.size for layer in layers)
    # An update of Adam reads and writes seven times the parameters' bytes.
    return Layers(layers, 7 * size / optimizer_bandwidth)


def mlp(
    widths: Iterable[int], batch: int, flops: float, optimizer_bandwidth: float = math.inf
) -> Layers:
    """A perceptron with float32 gradients.

    >>> mlp([784, 256, 10], batch=64, flops=5e10).size
    814120.0
    """
    sizes = list(widths)
    shapes = [(f"linear {i}", m * n + n, batch * m * n) for i, (m, n) in enumerate(pairwise(sizes))]
    return from_flops(shapes, flops, optimizer_bandwidth)


def gpt(
    depth: int,
    width: int,
    tokens: int,
    flops: float,
    *,
    context: int = 1024,
    vocabulary: int = 50257,
    optimizer_bandwidth: float = math.inf,
) -> Layers:
    """A GPT whose output layer shares the embedding's weights; `tokens` are a rank's of a step.

    >>> round(gpt(12, 768, tokens=8192, flops=1e14).size / 4e6)  # millions of parameters
    124
    """
    embedding = (vocabulary + context) * width
    # The embedding's weights multiply in the output layer, but their gradient is complete only
    # at the end of the backward pass: their time stands in a layer without parameters.
    shapes = [("embedding", float(embedding), 0.0)]
    for i in range(depth):
        square = width * width
        attending = 2 * tokens * context * width  # the products of attention itself
        for name, squares, vectors, more in (
            ("keys", 3, 5, attending), ("attention", 1, 1, 0),
            ("wide", 4, 6, 0), ("narrow", 4, 1, 0),
        ):  # fmt: skip
            parameters, products = squares * square + vectors * width, squares * square * tokens
            shapes.append((f"{name} {i}", float(parameters), float(products + more)))
    shapes.append(("output", float(2 * width), float(tokens * vocabulary * width)))
    return from_flops(shapes, flops, optimizer_bandwidth)


@dataclass(frozen=True)
class Bucket:
    """Gradients that are reduced together: their bytes, and the layer that completes them."""

    size: float
    last: int


def buckets(
    layers: Iterable[Layer], bucket_cap_mb: float = 25, first_mb: float | None = None
) -> list[Bucket]:
    """The buckets of `DistributedDataParallel`: layers from the last, a bucket is closed as soon
    as it is not below its limit. The first is small, to start early.

    >>> from rushlight.distributed.simulate import Layer
    >>> layers = [Layer(str(i), 10 * MIB, 0.1, 0.2) for i in range(6)]
    >>> [(int(bucket.size // MIB), bucket.last) for bucket in buckets(layers)]
    [(10, 5), (30, 2), (20, 0)]
    """
    if bucket_cap_mb <= 0:
        raise ValueError(f"bucket_cap_mb must be above 0, got {bucket_cap_mb}")
    limit = min(1.0, bucket_cap_mb) if first_mb is None else first_mb
    found: list[Bucket] = []
    held, last = 0.0, -1
    for index, layer in reversed(list(enumerate(layers))):
        if not layer.size:
            continue
        held, last = held + layer.size, index
        if held >= limit * MIB:
            found.append(Bucket(held, last))
            held, limit = 0.0, bucket_cap_mb
    if held:
        found.append(Bucket(held, last))
    return found
