"""Attention with a function of your own for each score: `flex_attention`, and masks of blocks.

A `score_mod` changes one score, given the numbers of its batch, head, query and key; a `mask_mod`
says whether a query sees a key. They are written for one, and run on all by `vmap`. Every score is
computed: the blocks of a `BlockMask` tell what a compiler could leave out, and change no result.
"""

from __future__ import annotations

import inspect
import math
import typing as _typing
from collections.abc import Callable
from typing import Any, NamedTuple

from rushlight import dtypes as _dtypes
from rushlight.func import vmap as _vmap
from rushlight.missing import face as _face
from rushlight.ops.registry import functions as _functions
from rushlight.ops.warned import warn_caller as _warn_caller

__all__ = [
    "AuxOutput", "AuxRequest", "BlockMask", "FlexKernelOptions", "and_masks", "create_block_mask",
    "create_mask", "flex_attention", "noop_mask", "or_masks",
]  # fmt: skip


class AuxRequest(NamedTuple):
    """What else `flex_attention` shall give: the logarithms of the sums of exponentials, and the
    largest scores.

    >>> from rushlight.nn.attention.flex_attention import AuxRequest
    >>> AuxRequest(lse=True)
    AuxRequest(lse=True, max_scores=False)
    """

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What was asked for by an `AuxRequest`; None for the rest.

    >>> from rushlight.nn.attention.flex_attention import AuxOutput
    >>> AuxOutput()
    AuxOutput(lse=None, max_scores=None)
    """

    lse: Any = None
    max_scores: Any = None


class FlexKernelOptions(_typing.TypedDict, total=False):
    """Wishes for a compiled kernel. They are taken, and there is none that would read them.

    >>> from rushlight.nn.attention.flex_attention import FlexKernelOptions
    >>> FlexKernelOptions(BLOCK_M=64)
    {'BLOCK_M': 64}
    """

    num_warps: int
    num_stages: int
    BLOCK_M: int
    BLOCK_N: int
    PRESCALE_QK: bool
    ROWS_GUARANTEED_SAFE: bool
    FORCE_USE_FLEX_ATTENTION: bool
    BACKEND: str


# --- functions of one score -----------------------------------------------------------------------
def noop_mask(batch: Any, head: Any, token_q: Any, token_kv: Any) -> Any:
    """The `mask_mod` that hides nothing.

    >>> from rushlight.nn.attention.flex_attention import noop_mask
    >>> noop_mask(torch.tensor(0), 0, 0, 0)
    tensor(True)
    """
    return batch.new_ones(size=(), dtype=_dtypes.bool_, device=batch.device)


def and_masks(*mask_mods: Callable[..., Any]) -> Callable[..., Any]:
    """The `mask_mod` that shows what all of them show.

    >>> from rushlight.nn.attention.flex_attention import and_masks, create_mask
    >>> near = and_masks(lambda b, h, q, k: q >= k, lambda b, h, q, k: q - k < 2)
    >>> create_mask(near, None, None, 3, 3).int()
    tensor([[[[1, 0, 0],
              [1, 1, 0],
              [0, 1, 1]]]], dtype=torch.int32)
    """
    _check_callable(mask_mods)

    def and_mask(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        seen = b.new_ones((), dtype=_dtypes.bool_)
        for mask in mask_mods:
            seen = seen & mask(b, h, q_idx, kv_idx)
        return seen

    return and_mask


def or_masks(*mask_mods: Callable[..., Any]) -> Callable[..., Any]:
    """The `mask_mod` that shows what one of them shows.

    >>> from rushlight.nn.attention.flex_attention import create_mask, or_masks
    >>> first = or_masks(lambda b, h, q, k: q == k, lambda b, h, q, k: k == 0)
    >>> create_mask(first, None, None, 3, 3).int()
    tensor([[[[1, 0, 0],
              [1, 1, 0],
              [1, 0, 1]]]], dtype=torch.int32)
    """
    _check_callable(mask_mods)

    def or_mask(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        seen = b.new_zeros((), dtype=_dtypes.bool_)
        for mask in mask_mods:
            seen = seen | mask(b, h, q_idx, kv_idx)
        return seen

    return or_mask


def _check_callable(mask_mods: tuple[Any, ...]) -> None:
    if not all(callable(mask) for mask in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")


def _arguments(fn: Callable[..., Any]) -> int:
    """How many arguments a function must be given: 5 for a `score_mod`, 4 for a `mask_mod`."""
    count = sum(
        p.default is inspect.Parameter.empty
        and p.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        for p in inspect.signature(fn).parameters.values()
    )
    if count not in (4, 5):
        raise AssertionError(f"Expected 4 or 5 positional args, got {count}")
    return count


def _over_all(fn: Callable[..., Any], scores: Any, sizes: tuple[int, ...], device: Any) -> Any:
    """A function of one score (`scores` is None: of its place alone), on all of them."""
    lead = () if scores is None else (0,)
    mapped = fn
    for d in (3, 2, 1, 0):
        places = tuple(0 if i == d else None for i in range(4))
        mapped = _vmap(mapped, in_dims=(*lead, *places))
    numbers = [_functions["arange"](n, device=device) for n in sizes]
    return mapped(*(() if scores is None else (scores,)), *numbers)


def create_mask(
    mod_fn: Callable[..., Any], B: int | None, H: int | None, Q_LEN: int, KV_LEN: int,
    device: Any = None,
) -> Any:  # fmt: skip
    """The mask [B, H, Q_LEN, KV_LEN] that a `mask_mod` means, or a `score_mod`, which hides what it
    makes -inf.

    >>> from rushlight.nn.attention.flex_attention import create_mask
    >>> create_mask(lambda b, h, q, k: q >= k, None, None, 2, 2)
    tensor([[[[ True, False],
              [ True,  True]]]])
    """
    sizes = (1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN)
    if _arguments(mod_fn) == 5:
        zeros = _functions["zeros"](sizes, device=device)
        return _over_all(mod_fn, zeros, sizes, device).isneginf().logical_not()
    return _over_all(mod_fn, None, sizes, device)


# --- blocks ---------------------------------------------------------------------------------------
def _listed(dense: Any) -> tuple[Any, Any]:
    """How many blocks of each row are set, and their numbers, those that are not set behind."""
    order = dense.to(_dtypes.int32).argsort(-1, descending=True, stable=True)
    return dense.sum(-1).to(_dtypes.int32), order.to(_dtypes.int32).contiguous()


def _unlisted(count: Any, order: Any, columns: int) -> Any:
    """The blocks that are set, as ones in a matrix."""
    places = _functions["arange"](order.shape[-1], device=order.device)
    ones = (places < count.unsqueeze(-1)).to(_dtypes.int32)
    room = ones.new_zeros((*order.shape[:-1], columns))
    return room.scatter_add(-1, order.to(_dtypes.int64), ones)


def _pair(size: Any) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else tuple(size)


def _sliced_mask_mod_error(*args: Any) -> Any:
    raise RuntimeError(
        "Cannot use mask_mod from a sliced BlockMask. When slicing a BlockMask, the mask_mod is "
        "not sliced with it: give the slice one of its own."
    )


class BlockMask:
    """BlockMask(seq_lengths, kv_num_blocks, kv_indices, ...): which blocks of queries and keys have
    anything to be seen. Made by `create_block_mask`.

    `kv_num_blocks[b, h, i]` blocks of keys, the first of `kv_indices[b, h, i]`, are seen in part by
    the queries of block `i`; those of `full_kv_indices` are seen whole. `q_indices` tell the same
    from the side of the keys.

    >>> from rushlight.nn.attention.flex_attention import create_block_mask
    >>> mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, 4, 4, BLOCK_SIZE=2)
    >>> mask.kv_num_blocks, mask.full_kv_num_blocks
    (tensor([[[1, 1]]], dtype=torch.int32), tensor([[[0, 1]]], dtype=torch.int32))
    """

    _TENSOR_ATTRS: _typing.ClassVar = [
        "kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices", "q_num_blocks",
        "q_indices", "full_q_num_blocks", "full_q_indices", "dq_write_order",
        "dq_write_order_full", "dq_kv_order",
    ]  # fmt: skip

    def __init__(
        self, seq_lengths: tuple[int, int], kv_num_blocks: Any, kv_indices: Any,
        full_kv_num_blocks: Any, full_kv_indices: Any, q_num_blocks: Any, q_indices: Any,
        full_q_num_blocks: Any, full_q_indices: Any, BLOCK_SIZE: tuple[int, int] = (128, 128),
        mask_mod: Callable[..., Any] = noop_mask, *, dq_write_order: Any = None,
        dq_write_order_full: Any = None, dq_kv_order: Any = None,
        dq_kv_order_spt: bool | None = None,
    ) -> None:  # fmt: skip
        if kv_indices.ndim < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError(
                "full_kv_num_blocks and full_kv_indices must be both provided or omitted"
            )
        if (full_q_num_blocks is None) != (full_q_indices is None):
            raise AssertionError(
                "full_q_num_blocks and full_q_indices must be both provided or omitted"
            )
        self.seq_lengths = seq_lengths
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices
        self.dq_write_order, self.dq_write_order_full = dq_write_order, dq_write_order_full
        self.dq_kv_order, self.dq_kv_order_spt = dq_kv_order, dq_kv_order_spt
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod

    @classmethod
    def from_kv_blocks(
        cls, kv_num_blocks: Any, kv_indices: Any, full_kv_num_blocks: Any = None,
        full_kv_indices: Any = None, BLOCK_SIZE: int | tuple[int, int] = 128,
        mask_mod: Callable[..., Any] | None = None, seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
    ) -> BlockMask:  # fmt: skip
        """A mask from the blocks that each block of queries sees; the other side is worked out."""
        if kv_indices.ndim < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError(
                "full_kv_num_blocks and full_kv_indices must be both provided or omitted"
            )
        size = _pair(BLOCK_SIZE)
        rows, columns = kv_indices.shape[-2:]
        if seq_lengths is None:
            seq_lengths = (rows * size[0], columns * size[1])
        turned: list[Any] = []
        for count, order in ((kv_num_blocks, kv_indices), (full_kv_num_blocks, full_kv_indices)):
            if order is None or not compute_q_blocks:
                turned += [None, None]
            else:
                turned += _listed(_unlisted(count, order, columns).transpose(-2, -1))
        make: Any = cls
        made: BlockMask = make(
            seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, *turned,
            BLOCK_SIZE=size, mask_mod=noop_mask if mask_mod is None else mask_mod,
        )  # fmt: skip
        return made

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """All that there is to a mask."""
        size = self.BLOCK_SIZE if flatten else (self.BLOCK_SIZE,)
        lengths = self.seq_lengths if flatten else (self.seq_lengths,)
        tensors = [getattr(self, name) for name in self._TENSOR_ATTRS]
        return (*lengths, *tensors, self.dq_kv_order_spt, *size, self.mask_mod)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the mask that it stands for."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """How many queries and keys it is about."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """What part of all scores no block needs, in percent."""
        count = int(self.kv_num_blocks.sum())
        if self.full_kv_num_blocks is not None:
            count += int(self.full_kv_num_blocks.sum())
        return 100 * (1 - count * math.prod(self.BLOCK_SIZE) / self.numel())

    def to_dense(self) -> Any:
        """The blocks as a matrix: 1 for those of which anything is seen."""
        columns = self.kv_indices.shape[-1]
        dense = _unlisted(self.kv_num_blocks, self.kv_indices, columns)
        if self.full_kv_num_blocks is not None:
            dense = dense | _unlisted(self.full_kv_num_blocks, self.full_kv_indices, columns)
        return dense

    def to(self, device: Any) -> BlockMask:
        """The same mask, its tensors on another device."""
        moved = self.as_tuple(flatten=False)[1:9]
        make: Any = type(self)
        made: BlockMask = make(
            self.seq_lengths, *[None if x is None else x.to(device) for x in moved],
            BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=self.mask_mod,
        )  # fmt: skip
        return made

    def __getitem__(self, index: Any) -> BlockMask:
        """The mask of some batches, heads or blocks of queries. Numbers keep their dimension."""
        items = index if isinstance(index, tuple) else (index,)
        kept = tuple(
            [slice(i, None if i == -1 else i + 1) if isinstance(i, int) else i for i in items]
        )
        parts = [self.kv_num_blocks, self.kv_indices, self.full_kv_num_blocks, self.full_kv_indices]
        make: Any = type(self).from_kv_blocks
        made: BlockMask = make(
            *[None if x is None else x[kept] for x in parts], BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=_sliced_mask_mod_error, seq_lengths=self.seq_lengths,
            compute_q_blocks=self.q_indices is not None,
        )  # fmt: skip
        return made

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """The upper left corner, for fewer queries and keys."""
        rows, columns = (
            math.ceil(n / size)
            for n, size in zip((new_q_len, new_kv_len), self.BLOCK_SIZE, strict=True)
        )
        wide = self.kv_indices.shape[-1]
        parts: list[Any] = []
        for count, order in (
            (self.kv_num_blocks, self.kv_indices),
            (self.full_kv_num_blocks, self.full_kv_indices),
        ):
            if order is None:
                parts += [None, None]
            else:
                parts += _listed(_unlisted(count, order, wide)[..., :rows, :columns])
        make: Any = type(self).from_kv_blocks
        made: BlockMask = make(
            *parts, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=self.mask_mod,
            seq_lengths=(new_q_len, new_kv_len),
        )  # fmt: skip
        return made

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """A picture of the blocks, in at most so many rows and columns (-1: all), of at most
        `limit` heads."""
        dense = self.to_dense()
        *lead, rows, columns = dense.shape
        most = (rows, columns) if grid_size == -1 else _pair(grid_size)
        steps = [max(math.ceil(n / m), 1) for n, m in zip((rows, columns), most, strict=True)]
        flat = dense.reshape(-1, rows, columns).tolist()
        shown: list[str] = []
        for i, grid in enumerate(flat):
            if i == limit:
                shown += [
                    "...", "To print out more, set BlockMask.to_string(limit=N)",
                    "You can also index (BlockMask[batch, head]) to choose a specific batch or "
                    "head",
                ]  # fmt: skip
                break
            place = []
            for n in reversed(lead):
                i, k = divmod(i, n)
                place.append(k)
            shown += [str(tuple(reversed(place))), *_picture(grid, *steps), ""]
        return "\n".join(shown)

    def __str__(self) -> str:
        text = self.to_string().rstrip()
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{text}\n)"

    def __repr__(self) -> str:
        lines = []
        for name in self._TENSOR_ATTRS[:8]:
            value = getattr(self, name)
            lines.append(f"    {name}={None if value is None else value.shape},")
        mod = getattr(self.mask_mod, "__name__", self.mask_mod)
        lines += [
            f"    BLOCK_SIZE={self.BLOCK_SIZE},", f"    shape={self.shape},",
            f"    sparsity={self.sparsity():.2f}%,", f"    mask_mod={mod}",
        ]  # fmt: skip
        return "\n".join(["BlockMask(", *lines, ")"])


def _picture(grid: list[list[int]], down: int, across: int) -> list[str]:
    """The rows of a picture, each cell of which stands for `down` by `across` blocks."""
    found = []
    for top in range(0, len(grid), down):
        line = ""
        for left in range(0, len(grid[0]), across):
            cell = [b for row in grid[top : top + down] for b in row[left : left + across]]
            line += "██" if all(cell) else "░░" if any(cell) else "  "
        found.append(line)
    return found


def create_block_mask(
    mask_mod: Callable[..., Any], B: int | None, H: int | None, Q_LEN: int, KV_LEN: int,
    device: Any = None, BLOCK_SIZE: int | tuple[int, int] = 128, _compile: bool = False,
    separate_full_blocks: bool = True, compute_dq_write_order: bool = False,
    dq_kv_order: bool = True,
) -> BlockMask:  # fmt: skip
    """The mask that a `mask_mod` means, with the blocks that it leaves. B and H may be None, where
    all batches or heads have the same.

    >>> from rushlight.nn.attention.flex_attention import create_block_mask
    >>> mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, 6, 6, BLOCK_SIZE=2)
    >>> mask.to_dense()
    tensor([[[[1, 0, 0],
              [1, 1, 0],
              [1, 1, 1]]]], dtype=torch.int32)
    """
    if _arguments(mask_mod) != 4:
        raise AssertionError(f"create-block_mask requires a mask_mod function! Got {mask_mod}")
    size = _pair(BLOCK_SIZE)
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    if mask.dtype is not _dtypes.bool_:
        raise AssertionError(f"mask.dtype must be torch.bool, got {mask.dtype}")
    padded = _functions["constant_pad_nd"](mask, (0, -KV_LEN % size[1], 0, -Q_LEN % size[0]))
    batch, heads, rows, columns = padded.shape
    cells = padded.reshape(
        batch, heads, rows // size[0], size[0], columns // size[1], size[1]
    ).transpose(-3, -2)
    held = cells.sum((-2, -1))
    some = held > 0
    full: tuple[Any, Any] = (None, None)
    if separate_full_blocks:
        whole = held == math.prod(size)
        some, full = some & ~whole, _listed(whole)
    return BlockMask.from_kv_blocks(
        *_listed(some), *full, BLOCK_SIZE=size, mask_mod=mask_mod, seq_lengths=(Q_LEN, KV_LEN)
    )


# --- attention ------------------------------------------------------------------------------------
def flex_attention(
    query: Any, key: Any, value: Any, score_mod: Callable[..., Any] | None = None,
    block_mask: BlockMask | None = None, scale: float | None = None, enable_gqa: bool = False,
    return_lse: bool = False, kernel_options: FlexKernelOptions | None = None, *,
    return_aux: AuxRequest | None = None,
) -> Any:  # fmt: skip
    """softmax(score_mod(query @ key.T * scale)) @ value, of [batch, heads, length, size].

    Args:
        score_mod: a function of a score and the numbers of its batch, head, query and key, that
            gives another score. Derivatives go through it, to what it has captured as well.
        block_mask: what `create_block_mask` made: scores that its `mask_mod` hides count nothing.
        scale: the factor of scores; 1 / sqrt(size) if None.
        enable_gqa: whether each head of keys and values serves several of queries.
        return_aux: what shall be given beside the result.

    >>> from rushlight.nn.attention.flex_attention import flex_attention
    >>> x = torch.tensor([[[[1., 0.], [0., 1.]]]])
    >>> near = lambda score, b, h, q, k: score - (q - k).abs()
    >>> flex_attention(x, x, x, score_mod=near)
    tensor([[[[0.8465, 0.1535],
              [0.1535, 0.8465]]]])
    """
    _check(query, key, value, enable_gqa, block_mask)
    if return_lse and return_aux is not None:
        raise ValueError(
            "Cannot specify both return_lse and return_aux. return_lse is deprecated, please use "
            "return_aux=AuxRequest(lse=True) instead."
        )
    if return_lse:
        _warn_caller(
            "return_lse is deprecated and will be removed in v2.10. Please use "
            "return_aux=AuxRequest(lse=True) instead.",
            FutureWarning,
        )
    batch, heads, _, size = query.shape
    groups = heads // key.shape[1]
    if groups > 1:
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    key, value = (x.expand(batch, *x.shape[1:]) for x in (key, value))
    wide = _dtypes.float64 if query.dtype is _dtypes.float64 else _dtypes.float32
    factor = 1 / math.sqrt(size) if scale is None else scale
    scores = query.to(wide) @ key.to(wide).transpose(-2, -1) * factor
    if score_mod is not None:
        scores = _over_all(score_mod, scores, scores.shape, query.device).to(wide)
    if block_mask is not None:
        seen = _over_all(block_mask.mask_mod, None, scores.shape, query.device)
        scores = scores.masked_fill(~seen, -math.inf)
    # a query that sees nothing gets zeros
    blind = (scores.detach() == -math.inf).all(-1, keepdim=True)
    weights = scores.softmax(-1).masked_fill(blind, 0)
    found = (weights @ value.to(wide)).to(query.dtype)
    if return_lse:
        return found, scores.logsumexp(-1)
    if return_aux is None:
        return found
    lse = scores.logsumexp(-1) if return_aux.lse else None
    return found, AuxOutput(lse, scores.amax(-1) if return_aux.max_scores else None)


def _check(query: Any, key: Any, value: Any, gqa: bool, block_mask: BlockMask | None) -> None:
    if query.ndim != 4 or key.ndim != 4 or value.ndim != 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            "Expect query and key/value to have the same embedding dimension but got "
            f"E={query.shape[-1]} and E={key.shape[-1]}."
        )
    batch, other = query.shape[0], key.shape[0]
    if batch != other and (block_mask is None or other != 1):
        raise ValueError(
            "Expect query and key/value to have the same batch size, or non-none block_mask, but "
            f"got block_mask={block_mask}, Bq={batch}, and Bkv={other}."
        )
    heads, served = query.shape[1], key.shape[1]
    if not gqa and heads != served:
        raise ValueError(
            "Expect query and key/value to have the same number of heads but got "
            f"Hq={heads} and Hkv={served}. Try setting enable_gqa=True for GQA."
        )
    if gqa and heads % served:
        raise ValueError(
            "Expect number of query heads to be a multiple of kv heads for GQA but got "
            f"Hq={heads} and Hkv={served}."
        )
    if block_mask is None:
        return
    have, want = (query.shape[-2], key.shape[-2]), block_mask.seq_lengths
    if have == want:
        return
    said = (
        f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={have[0]} "
        f"and kv_len={have[1]}. As the block mask was created for a "
    )
    if have[0] > want[0] or have[1] > want[1]:
        raise ValueError(
            said + "smaller length than you're using it for, you likely need to create a new block "
            "mask."
        )
    raise ValueError(
        said + "larger length than you're using it for, you can either 1. create a new block mask "
        "with the correct length, or 2. 'adjust' the existing block mask to the correct length by "
        "calling block_mask._adjust(q_len, kv_len). This essentially 'crops' the block mask to the "
        "upper left corner, which does not work for all mask_mods!"
    )


if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.nn.attention.flex_attention", globals())
