"""Repeating tensors and their elements: `repeat`, `tile`, `repeat_interleave`."""

from __future__ import annotations

from typing import Any

from rushlight import dtypes
from rushlight.arrays import kernels
from rushlight.arrays import vocabulary as v
from rushlight.core.families import Linear
from rushlight.core.graph import TensorBase
from rushlight.core.record import apply
from rushlight.ops.apply import run
from rushlight.ops.checks import check_tensor, ints, is_batched, one_dim, tuple_of_ints
from rushlight.ops.each_member import one_by_one
from rushlight.ops.registry import function, functions, implements, op
from rushlight.ops.sample_inputs import drawn
from rushlight.ops.shape.clone import Clone
from rushlight.ops.view.expand import expand
from rushlight.ops.view.reshape import flatten, reshape, view
from rushlight.ops.view.squeeze import unsqueeze


@op
class Repeat(Linear):
    """Copies of the whole along each dimension, and along new ones in front."""

    name, params = "repeat", ("repeats",)
    saved_names = "repeats self_sym_sizes=self.sizes"
    repeats: tuple[int, ...]

    def mover(self, rule: str) -> Any:
        return kernels.bound(kernels.tiled, self.repeats) if rule == "forward" else None

    def forward(self, x: Any) -> Any:
        return v.contiguous(v.tile(x, self.repeats))

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        lead = len(self.repeats) - len(shape)
        apart: list[int] = []
        for k, times in enumerate(self.repeats):
            apart += (times, shape[k - lead] if k >= lead else 1)
        g = v.reduce_sum(v.reshape(g, tuple(apart)), tuple(range(0, len(apart), 2)), False)
        return v.reshape(g, shape) if lead else g

    samples = drawn(
        real=[((2, 3), (2, 3)), ((2, 1, 2), (2, 3)), ((3,), ()), ((), ()), ((0, 2), (2, 2))],
        complex=[((2, 2), (3,))],
    )


@function(free=False, settles=True)
def repeat(input: Any, *sizes: Any, repeats: Any = None) -> Any:
    """Copies of the whole along each dimension.

    Args:
        sizes: how often, for each dimension.

    >>> torch.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    return _repeat(input, ints("repeat", "repeats", sizes if repeats is None else (repeats,)))


def _repeat(input: Any, times: tuple[int, ...]) -> Any:
    shape = input._array.shape
    if len(times) < len(shape):
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
            "tensor"
        )
    lead = (1,) * (len(times) - len(shape))
    target = [n * k for n, k in zip((*lead, *shape), times, strict=True)]
    for k, n in zip(times, target, strict=True):
        if k < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {target}")
    return run(Repeat(times), (input,))


@function(method=False, settles=True)
def tile(input: Any, dims: Any) -> Any:
    """Copies of the whole; dims that are not given count as 1.

    Args:
        dims: how often, for each dimension.

    >>> torch.tile(torch.tensor([1, 2]), (2,))
    tensor([1, 2, 1, 2])
    """
    check_tensor(input, "tile")
    times = tuple_of_ints("tile", "dims", dims, 2)
    return _repeat(input, (1,) * (input._array.ndim - len(times)) + times)


@function(name="tile", free=False, settles=True)
def _tile_method(input: Any, *sizes: Any, dims: Any = None) -> Any:
    """Copies of the whole; dims that are not given count as 1.

    >>> torch.tensor([1, 2]).tile(2)
    tensor([1, 2, 1, 2])
    """
    return tile(input, ints("tile", "dims", sizes if dims is None else (dims,)))


@function()
def repeat_interleave(
    input: Any, repeats: Any = None, dim: Any = None, *, output_size: Any = None
) -> Any:
    """Each element repeated in its place; without `dim`, of the flattened tensor.

    >>> torch.repeat_interleave(torch.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    >>> torch.repeat_interleave(torch.tensor([5, 6]), torch.tensor([1, 2]))
    tensor([5, 6, 6])
    """
    if repeats is None:
        return _interleaved_index(input, output_size)
    if isinstance(repeats, (tuple, list)):
        repeats = functions["tensor"](repeats)
    if dim is None:
        input = flatten(input)
        dim = 0
    shape = input._array.shape
    d = one_dim(dim, len(shape)) + max(len(shape), 1)
    if isinstance(repeats, TensorBase):
        return _interleave_by(input, repeats, d, output_size)
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    times = int(repeats)
    wide = expand(unsqueeze(input, d + 1), (*shape[: d + 1], times, *shape[d + 1 :]))
    wide = apply(Clone("contiguous"), wide)
    return view(wide, (*shape[:d], shape[d] * times, *shape[d + 1 :]))


def _interleave_by(input: Any, repeats: Any, d: int, output_size: Any) -> Any:
    counts = repeats._array
    n = input._array.shape[d]
    if counts.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if counts.ndim == 0 or counts.shape[0] == 1:
        repeats = expand(reshape(repeats, (1,)), (n,))
    elif counts.shape[0] != n:
        raise RuntimeError(
            "repeats must have the same size as input along dim, but got repeats.size(0) = "
            f"{counts.shape[0]} and input.size({d}) = {n}"
        )
    return functions["index_select"](input, d, _interleaved_index(repeats, output_size))


def _interleaved_index(repeats: Any, output_size: Any) -> Any:
    """Element i of `repeats` many times i."""
    counts = repeats._array
    if counts.dtype.kind not in "iu" or counts.dtype.itemsize < 4:
        name = dtypes.of(counts.dtype).scalar_type
        raise NotImplementedError(f"\"repeat_interleave_cpu\" not implemented for '{name}'")
    if counts.ndim != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if is_batched(repeats):
        return one_by_one(
            "repeat_interleave.Tensor", lambda t: _interleaved_index(t, output_size), repeats
        )
    listed = counts.tolist()
    if any(k < 0 for k in listed):
        raise RuntimeError("repeats can not be negative")
    places = [i for i, k in enumerate(listed) for _ in range(k)]
    if output_size is not None and output_size != len(places):
        raise RuntimeError("allocated size does not match required size")
    return functions["tensor"](places, dtype=dtypes.of(counts.dtype), device=repeats.device)


@implements("tile")
def _tile_word(x: Any, repeats: Any) -> Any:
    times = tuple(repeats)
    return apply(Repeat((1,) * (x._array.ndim - len(times)) + times), x)
