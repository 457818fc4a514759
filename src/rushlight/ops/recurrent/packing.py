"""Packing padded sequences, and padding packed ones: what `nn.utils.rnn` is made of."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, ClassVar

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.core.graph import Node, Op
from rushlight.core.record import apply
from rushlight.ops.checks import check_tensor
from rushlight.ops.numbers import Number
from rushlight.ops.registry import function, functions, op
from rushlight.ops.sample_inputs import Draw


@op
class PackPaddedSequence(Op):
    """The rows of a padded batch (steps, sequences, ...) that are no padding, by their numbers."""

    name = "_pack_padded_sequence"
    node = "PackPaddedSequenceBackward0"
    inputs = ("input", "rows")
    saves = ("rows",)
    reads: ClassVar = {0: ("rows",)}
    saved_names = ""
    shown_edges = (0,)
    complex_too = True

    def forward(self, x: Any, rows: Any) -> Any:
        return v.pick(self.joined(x), (v.SLOT,), rows)

    def joined(self, x: Any) -> Any:
        return v.reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:]))

    def vjp(self, node: Node, g: Any, rows: Any) -> Any:
        shapes: Any = node._input_shapes
        steps, size, *rest = shapes[0]
        found = v.unpick(g, (steps * size, *rest), (v.SLOT,), rows)
        return v.reshape(found, shapes[0]), None

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return self.forward(ts[0], xs[1])

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        x = draw.real(3, 2, 2)
        yield PackPaddedSequence(), x, v.constant(x, [0, 1, 2, 4], dtypes.int64.numpy)
        x = draw.real(2, 1)
        yield PackPaddedSequence(), x, v.constant(x, [0, 1], dtypes.int64.numpy)


def _running(lengths: Any, steps: int) -> Any:
    """Which sequences run at each step: a mask [steps, sequences]."""
    return functions["arange"](steps).unsqueeze(1) < lengths.unsqueeze(0)


@function(method=False, returns="tuple[Tensor, Tensor]")
def _pack_padded_sequence(input: Any, lengths: Any, batch_first: Any) -> Any:
    """The rows of a padded batch that are no padding, step by step, and how many sequences run at
    each step; `nn.utils.rnn.pack_padded_sequence` is the convenient form."""
    check_tensor(input, "_pack_padded_sequence")
    if batch_first:
        input = input.transpose(0, 1)
    if lengths.ndim != 1:
        raise RuntimeError("Expected `lengths` to be a 1D tensor")
    if len(lengths) != input.shape[1]:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(lengths)} "
            f"(batch_size={input.shape[1]})"
        )
    if lengths.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    sizes = lengths.tolist()
    if min(sizes) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' "
            "that is <= 0"
        )
    if any(a < b for a, b in pairwise(sizes)):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You "
            "can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to "
            "sidestep this requirement if you do not need ONNX exportability."
        )
    if sizes[0] > input.shape[0]:
        raise RuntimeError(
            f"Expected the longest sequence to have at most {input.shape[0]} steps, but a length "
            f"is {sizes[0]}"
        )
    mask = _running(lengths, sizes[0])
    rows = mask.reshape(-1).nonzero().reshape(-1)
    return apply(PackPaddedSequence(), input, rows.to(input.device)), mask.sum(1)


@function(method=False, returns="tuple[Tensor, Tensor]")
def _pad_packed_sequence(
    data: Any, batch_sizes: Any, batch_first: Any, padding_value: Number, total_length: Any
) -> Any:
    """A padded batch from packed rows, and the lengths of its sequences;
    `nn.utils.rnn.pad_packed_sequence` is the convenient form."""
    steps, size = len(batch_sizes), int(batch_sizes[0])
    if total_length > 0:
        if total_length < steps:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, "
                f"but got total_length={total_length} and max sequence length being {steps}"
            )
        steps = total_length
    running = functions["arange"](size).unsqueeze(0) < batch_sizes.unsqueeze(1)
    rows = running.reshape(-1).nonzero().reshape(-1)
    padded = data.new_full((steps, size, *data.shape[1:]), padding_value)
    padded.view(steps * size, *data.shape[1:])[rows.to(data.device)] = data
    if batch_first:
        padded = padded.transpose(0, 1)
    return padded, running.sum(0)


def pad_sequences(sequences: Any, batch_first: Any, padding_value: Any, padding_side: Any) -> Any:
    """A padded batch of sequences of different lengths."""
    sequences = list(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"Expected padding_side to be one of left or right, but got {padding_side}."
        )
    first = sequences[0]
    rest = tuple(first.shape[1:])
    for s in sequences:
        for d, (a, b) in enumerate(zip(rest, s.shape[1:])):
            if a != b and b != 1:
                raise RuntimeError(
                    f"The size of tensor a ({a}) must match the size of tensor b ({b}) at "
                    f"non-singleton dimension {d + 1}"
                )
    lengths = functions["tensor"]([s.shape[0] for s in sequences])
    longest, size = int(lengths.max()), len(sequences)
    places = functions["arange"](longest)
    if padding_side == "left":
        places = places.flip(0)
    running = places.unsqueeze(0) < lengths.unsqueeze(1)  # [sequences, steps]
    found = first.new_full((size, longest, *rest), padding_value)
    rows = running.reshape(-1).nonzero().reshape(-1).to(first.device)
    values = [s.to(first.dtype).expand(s.shape[0], *rest) for s in sequences]
    found.view(size * longest, *rest)[rows] = functions["cat"](values)
    return found if batch_first else found.transpose(0, 1).contiguous()
