"""Random functions inside `vmap`: how much is drawn, for whom, and what is refused.

A function that draws calls `enclosing_vmap()` first, and only while `stack.batches` is not 0.

Note [Whose numbers]
    A `vmap` says what random functions do inside it: nothing ("error"), one draw that all members
    share ("same"), or one for each ("different"). Levels are asked from the innermost outward. Each
    unpacks its batch and calls the function again, one level below; "different" adds an axis in
    front. So the numbers of a whole nest are drawn in one go, and are those of one large tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from rushlight.arrays.batched import ESCAPED, INPLACE, Batched
from rushlight.arrays.host import device_of
from rushlight.core.grad_mode import Mode, grad_enabled, inference_enabled, within
from rushlight.core.graph import wrap
from rushlight.core.record import finish, keep_record
from rushlight.core.transforms.lift import is_tracked, lift_to_target, plain_inside, seen_at
from rushlight.core.transforms.stack import TransformLevel, innermost
from rushlight.core.views.inplace import check_writable, write_raw
from rushlight.ops.creation.tensor import make_tensor
from rushlight.ops.registry import functions

CALLED: Final = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
    "'different' randomness flags on vmap or perform the randomness operation out of vmap"
)
SAME: Final = (
    "Vmap does not currently support same randomness with a batched tensor input. Please file an "
    "issue with functorch\n"
    "Use randomness='different', or draw from a tensor that all members share."
)
UNBATCHED: Final = (
    "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear "
    "like same randomness. If this is necessary for your usage, please file an issue with "
    "functorch.\n"
    "All members share this tensor: draw a new one, as `torch.rand_like` does."
)
OUT: Final = (
    "vmap: We do not support calling out variants of random operations inside of vmap. Please use "
    "non-out variants as a workaround"
)


# --- levels ---------------------------------------------------------------------------------------
def enclosing_vmap() -> TransformLevel | None:
    """The innermost `vmap` that the running code is inside of; derivatives between do not count."""
    level = innermost()
    while level is not None and level.batch is None:
        level = level.outer
    return level


def draws_differ(level: TransformLevel, batched: bool = False) -> bool:
    """Whether members get numbers of their own. `batched`: the numbers depend on a batched tensor,
    so that they could not be the same."""
    how = level.batch.randomness
    if how == "error":
        raise RuntimeError(CALLED)
    if how == "same" and batched:
        raise RuntimeError(SAME)
    return bool(how == "different")


def refuse_out_in_vmap(out: Any) -> None:
    """Refuse to write into `out` inside `vmap`."""
    if out is not None:
        raise RuntimeError(OUT)


def below_level(level: TransformLevel, below: bool) -> Mode:
    """For `with`: run code outside of a `vmap` that is in progress. `below`: on what stands inside
    its batches, which is recorded only if the code around the `vmap` is."""
    recording = grad_enabled() and (level.batch.recording or not below)
    mode = within(recording, inference_enabled())
    mode.level = level.outer
    return mode


# --- tensors of a level ---------------------------------------------------------------------------
def of_level(x: Any, level: TransformLevel) -> bool:
    """Whether a tensor was made at this level, batched or not."""
    return type(x._array) is Batched and x._array.level is level.batch


def batched_of(x: Any, level: TransformLevel) -> bool:
    """Whether the members of the level's batch have each their own `x`."""
    return of_level(x, level) and bool(x._array.has_batch_dim)


def value_below(x: Any, level: TransformLevel) -> Any:
    """The tensor below the level that `x` is made of; `x` itself, if it is of no batch there."""
    if of_level(x, level):
        return plain_inside(x._array.value)
    check_alive(x)
    return x


def check_alive(x: Any) -> None:
    """Refuse a tensor of a batch whose `vmap` has ended."""
    if type(x._array) is Batched and not x._array.level.alive:
        raise RuntimeError(ESCAPED)


def as_batched(y: Any, level: TransformLevel, has_batch_dim: bool) -> Batched:
    """A tensor from below as an array of the level."""
    return Batched(
        y if level.batch.tracked or is_tracked(y) else y._array, level.batch, has_batch_dim
    )


# --- new tensors ----------------------------------------------------------------------------------
def draw_new(
    level: TransformLevel, shape: tuple[int, ...], requires_grad: bool,
    again: Callable[[tuple[int, ...], bool], Any],
) -> Any:  # fmt: skip
    """A new tensor of `shape`; `again(shape, requires_grad)` makes one below the level."""
    if not draws_differ(level):
        with below_level(level, False):
            return again(shape, requires_grad)
    with below_level(level, True):
        y = again((level.batch.size, *shape), False)
    return make_tensor(as_batched(y, level, True), requires_grad)


def draw_singly(level: TransformLevel, requires_grad: bool, again: Callable[[bool], Any]) -> Any:
    """The same for what cannot be drawn with one more axis: once for each member, in order."""
    if not draws_differ(level):
        with below_level(level, False):
            return again(requires_grad)
    with below_level(level, True):
        y = functions["stack"]([again(False) for _ in range(level.batch.size)])
    return make_tensor(as_batched(y, level, True), requires_grad)


def draw_like(
    level: TransformLevel, input: Any, requires_grad: bool, again: Callable[[Any, bool], Any]
) -> Any:
    """A new tensor in the shape and layout of another."""
    if not draws_differ(level):
        one = value_below(input, level)
        with below_level(level, False):
            return again(one[0] if batched_of(input, level) else one, requires_grad)
    with below_level(level, True):
        y = again(each(input, level), False)
    return make_tensor(as_batched(y, level, True), requires_grad)


def each(x: Any, level: TransformLevel) -> Any:
    """The tensor below the level, with the batch in front."""
    y = value_below(x, level)
    return y if batched_of(x, level) else y.expand((level.batch.size, *y.shape))


def draw_from(
    level: TransformLevel, op: Any, xs: tuple[Any, ...], again: Callable[..., Any]
) -> Any:
    """Numbers that depend on the values of tensors, element by element (their shapes broadcast).

    `op` is recorded at this level if there is one; `again(*xs)` records it below.
    """
    different = draws_differ(level, any(batched_of(x, level) for x in xs))
    if not different and not any(of_level(x, level) for x in xs):
        with below_level(level, False):
            return again(*[value_below(x, level) for x in xs])
    with below_level(level, True):
        y = again(*(align_batches(xs, level) if different else [value_below(x, level) for x in xs]))
    array = as_batched(y, level, different)
    if op is None:
        return finish(wrap(array))
    seen = tuple([seen_at(x, level.batch) for x in xs])
    return keep_record(op, seen, tuple([x._array for x in seen]), array)


def align_batches(xs: tuple[Any, ...], level: TransformLevel) -> list[Any]:
    """Tensors below the level with their batches aligned; if none has one, the first gets it."""
    some = any(batched_of(x, level) for x in xs)
    rank = max(x._array.ndim for x in xs)
    found: list[Any] = []
    for i, x in enumerate(xs):
        own = batched_of(x, level) or (i == 0 and not some)
        found.append(raise_rank(each(x, level), rank) if own else value_below(x, level))
    return found


def raise_rank(y: Any, rank: int) -> Any:
    """A batch of tensors of a smaller rank, with new axes behind the batch."""
    n, *rest = y.shape
    return y.reshape((n, *[1] * (rank - len(rest)), *rest)) if len(rest) < rank else y


# --- in place -------------------------------------------------------------------------------------
def draw_into(
    level: TransformLevel, op: Any, target: Any, others: tuple[Any, ...], again: Callable[..., Any]
) -> Any:
    """Draw into a tensor, from the values of `others`. `again(target, *others)` does it below."""
    first = innermost() is not level  # of a derivative inside the `vmap`: it is asked before
    if first:
        check_writable(target, False, others)
    of_others = any(batched_of(x, level) for x in others)
    different = draws_differ(level, of_others)
    own = batched_of(target, level)
    if of_others and not own:
        raise RuntimeError(INPLACE.replace("arithmetic", "bernoulli"))
    if different and not own:
        raise RuntimeError(UNBATCHED)
    if not of_level(target, level):
        with below_level(level, False):
            again(*[value_below(x, level) for x in (target, *others)])
        return target
    if not first:
        check_writable(target, False, others)
    if others:
        others = lift_to_target(target, others)
    whole, parts = value_below(target, level), [value_below(x, level) for x in others]
    with below_level(level, True):
        if own and not different:
            shape, place = target._array.shape, device_of(target._array)
            one = functions["empty"](shape, dtype=whole.dtype, device=place)
            again(one, *parts)
            whole.copy_(one)
        else:
            rank = target._array.ndim
            lined = [
                raise_rank(y, rank) if batched_of(x, level) else y
                for x, y in zip(others, parts, strict=True)
            ]
            again(whole, *lined)
    xs = (target, *others)
    return write_raw(op, target, xs, tuple([x._array for x in xs]), target._array)
