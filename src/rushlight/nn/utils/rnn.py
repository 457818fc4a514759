"""`nn.utils.rnn`: batches of sequences of different lengths, padded and packed.

A packed batch has the first elements of all sequences, then the second ones of those that have one,
and so on; recurrent layers compute no step for padding.
"""

from __future__ import annotations

import typing as _typing
from collections.abc import Iterable
from typing import Any, NamedTuple, Self

from rushlight.core.graph import TensorBase
from rushlight.missing import face as _face
from rushlight.ops.recurrent.packing import pad_sequences
from rushlight.ops.registry import functions

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]  # fmt: skip


class PackedSequence_(NamedTuple):
    """The fields of a PackedSequence."""

    data: Any
    batch_sizes: Any
    sorted_indices: Any
    unsorted_indices: Any


class PackedSequence(PackedSequence_):
    """PackedSequence(data, batch_sizes, sorted_indices, unsorted_indices): a packed batch, as
    `pack_padded_sequence` and `pack_sequence` make it.

    `batch_sizes` says how many sequences run at each step, `sorted_indices` where the sequences,
    longest first, stood in the batch before; None if that was their order.

    >>> from rushlight.nn.utils.rnn import pack_sequence
    >>> pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4, 5])]).data
    tensor([1, 4, 2, 5, 3])
    """

    __slots__ = ()

    def __new__(
        cls, data: Any, batch_sizes: Any = None, sorted_indices: Any = None,
        unsorted_indices: Any = None,
    ) -> Self:  # fmt: skip
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:  # the form of old: a pair
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be "
                "created manually. They should be instantiated by functions like pack_sequence "
                "and pack_padded_sequences in nn.utils.rnn. "
                "https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move or cast the data, as `Tensor.to` does."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        device = {k: x for k, x in kwargs.items() if k != "dtype"}
        device["device"] = data.device
        indices = [None if x is None else x.to(**device) for x in self[2:]]
        return type(self)(data, self.batch_sizes, *indices)

    def cuda(self, *args: Any, **kwargs: Any) -> Self:
        """Move to a GPU."""
        return self.to(self.data.cuda(*args, **kwargs).device)

    def cpu(self, *args: Any, **kwargs: Any) -> Self:
        """Move to the CPU."""
        return self.to("cpu")

    def double(self) -> Self:
        """Cast to float64."""
        return self.to(dtype=self.data.double().dtype)

    def float(self) -> Self:
        """Cast to float32."""
        return self.to(dtype=self.data.float().dtype)

    def half(self) -> Self:
        """Cast to float16."""
        return self.to(dtype=self.data.half().dtype)

    def long(self) -> Self:
        """Cast to int64."""
        return self.to(dtype=self.data.long().dtype)

    def int(self) -> Self:
        """Cast to int32."""
        return self.to(dtype=self.data.int().dtype)

    def short(self) -> Self:
        """Cast to int16."""
        return self.to(dtype=self.data.short().dtype)

    def char(self) -> Self:
        """Cast to int8."""
        return self.to(dtype=self.data.char().dtype)

    def byte(self) -> Self:
        """Cast to uint8."""
        return self.to(dtype=self.data.byte().dtype)

    def pin_memory(self) -> Self:
        """The same in memory that GPUs read quickly."""
        return type(self)(self.data.pin_memory(), self.batch_sizes, *self[2:])

    def is_pinned(self) -> bool:
        """Whether the data is in such memory."""
        return bool(self.data.is_pinned())

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a GPU."""
        return bool(self.data.is_cuda)


def invert_permutation(permutation: Any) -> Any:
    """Where each element went.

    >>> torch.nn.utils.rnn.invert_permutation(torch.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    places = functions["arange"](permutation.numel(), device=permutation.device)
    return functions["empty_like"](permutation).scatter_(0, permutation, places)


def pack_padded_sequence(
    input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """A packed batch from a padded one, of shape [steps, sequences, ...], and its lengths.

    They must be in falling order, unless `enforce_sorted` is False: then it is brought about.

    >>> from rushlight.nn.utils.rnn import pack_padded_sequence
    >>> padded = torch.tensor([[1, 2, 0], [3, 0, 0], [4, 5, 6]])
    >>> packed = pack_padded_sequence(padded, [2, 1, 3], batch_first=True, enforce_sorted=False)
    >>> packed.data, packed.batch_sizes
    (tensor([4, 1, 3, 5, 2, 6]), tensor([3, 2, 1]))
    """
    if not isinstance(lengths, TensorBase):
        lengths = functions["as_tensor"](lengths, dtype=_int64(), device="cpu")
    else:
        lengths = lengths.to(dtype=_int64())  # type: ignore[attr-defined]
    order = None
    if not enforce_sorted:
        lengths, order = functions["sort"](lengths, descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    data, batch_sizes = functions["_pack_padded_sequence"](input, lengths, batch_first)
    return PackedSequence(data, batch_sizes, order, None)


def _int64() -> Any:
    from rushlight import dtypes

    return dtypes.int64


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """A padded batch from a packed one, and the lengths of its sequences.

    `total_length` has more padding than the longest sequence needs.

    >>> from rushlight.nn.utils.rnn import pack_sequence, pad_packed_sequence
    >>> packed = pack_sequence([torch.tensor([1, 2]), torch.tensor([3])])
    >>> pad_packed_sequence(packed, batch_first=True)
    (tensor([[1, 2],
            [3, 0]]), tensor([2, 1]))
    """
    steps = len(sequence.batch_sizes)
    if total_length is not None:
        if total_length < steps:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, "
                f"but got total_length={total_length} and max sequence length being {steps}"
            )
        steps = total_length
    padded, lengths = functions["_pad_packed_sequence"](
        sequence.data, sequence.batch_sizes, batch_first, padding_value, steps
    )
    back = sequence.unsorted_indices
    if back is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, back), lengths[back.cpu()]


def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0,
    padding_side: str = "right",
) -> Any:  # fmt: skip
    """A padded batch, [steps, sequences, ...], of sequences of different lengths.

    >>> from rushlight.nn.utils.rnn import pad_sequence
    >>> pad_sequence([torch.tensor([1, 2, 3]), torch.tensor([4])], batch_first=True)
    tensor([[1, 2, 3],
            [4, 0, 0]])
    """
    if isinstance(sequences, TensorBase):
        sequences = sequences.unbind(0)  # type: ignore[attr-defined]
    elif not isinstance(sequences, Iterable):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}"
        )
    return pad_sequences(tuple(sequences), batch_first, padding_value, padding_side)


def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> list[Any]:
    """The sequences of a padded batch, without the padding.

    >>> torch.nn.utils.rnn.unpad_sequence(torch.tensor([[1, 2], [3, 0]]), torch.tensor([2, 1]))
    [tensor([1, 3]), tensor([2])]
    """
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [s[:n] for s, n in zip(padded_sequences, lengths.tolist(), strict=True)]


def pack_sequence(sequences: Any, enforce_sorted: bool = True) -> PackedSequence:
    """A packed batch of sequences of different lengths; see `pack_padded_sequence`.

    >>> torch.nn.utils.rnn.pack_sequence([torch.tensor([1, 2]), torch.tensor([3])]).data
    tensor([1, 3, 2])
    """
    lengths = functions["as_tensor"]([s.shape[0] for s in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Any]:
    """The sequences of a packed batch.

    >>> from rushlight.nn.utils.rnn import pack_sequence, unpack_sequence
    >>> unpack_sequence(pack_sequence([torch.tensor([1, 2]), torch.tensor([3])]))
    [tensor([1, 2]), tensor([3])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.nn.utils.rnn", globals())
