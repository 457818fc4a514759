"""Selective checkpoints: of the ops inside, some keep their results, the others run again.

    keep_products = partial(create_selective_checkpoint_contexts, [torch.ops.aten.mm.default])
    y = checkpoint(block, x, use_reentrant=False, context_fn=keep_products)

Users find these in `utils.checkpoint`.

Note [Kept results]
    In the first run the n-th application of an op keeps its raw result or leaves a mark; in the
    second run the n-th application is given that result, or runs. Views always run: they cost
    nothing, and must look into the memory of the second run. So do ops that write into a few places
    of a tensor, and give nothing. A result that is written in place
    would be another value the second time, and must be refused: its storage is looked up when it is
    about to be written inside the block, and at the end among what the function returned. What is
    still held by others then could be written unseen, and is copied.
"""

from __future__ import annotations

import enum
import sys
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final, Self

from rushlight.arrays.vocabulary import copy
from rushlight.core.families import ViewOp
from rushlight.core.grad_mode import Mode
from rushlight.core.graph import Storage, TensorBase, normal, wrap
from rushlight.core.saved.packed import Saving, saving_now
from rushlight.ops.compat.overloads import OpOverload, overload_of, packet
from rushlight.utils.around import Around
from rushlight.utils.surroundings import tensors_in


class CheckpointPolicy(enum.Enum):
    """What a policy says about one op: save its result, or compute it again.

    `MUST_` and `PREFER_` differ for compilers alone. `_CPU_OFFLOAD` computes again.
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """What a policy is told besides the op and its arguments: the op's result (`op_output`).

    Policies are asked in the first run only, so `is_recompute` is False.
    """

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


SAC_IGNORED_OPS: Final[set[OpOverload]] = {packet("detach").default}

Policy = Callable[..., CheckpointPolicy | bool]
_SAVE: Final = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE, True)
_MISMATCH: Final = (
    "This can happen if the operations in the checkpointed region are nondeterministic or depend "
    "on global state that changed between forward and backward."
)


class Kept:
    """A raw result; `memory` and its `version` are known once someone may write it."""

    __slots__ = ("array", "memory", "version")

    def __init__(self, array: Any) -> None:
        self.array = array
        self.memory: Storage | None = None
        self.version = 0

    def written(self) -> bool:
        return self.memory is not None and self.memory.version != self.version


AGAIN: Final = object()  # left by an op that is to run again
TAKEN: Final = object()  # left where a result was taken


class Results:
    """The results of a block, by op and by the number of its application."""

    def __init__(self) -> None:
        self.by_op: defaultdict[OpOverload, dict[int, Any]] = defaultdict(dict)
        self.owners: defaultdict[int, list[Kept]] = defaultdict(list)  # by the owner of memory

    def keep(self, op: OpOverload, nr: int, y: Any) -> None:
        parts = [Kept(normal(x)) for x in (y if isinstance(y, tuple) else (y,))]
        self.by_op[op][nr] = tuple(parts) if isinstance(y, tuple) else parts[0]
        for part in parts:
            self.owners[id(owner(part.array))].append(part)

    def link(self, t: TensorBase) -> None:
        """Watch the storage of a tensor, if what it looks at is among the results."""
        memory = t._storage
        for part in self.owners.get(id(owner(t._array)), ()):
            if part.memory is None:
                part.memory = memory
                part.version = memory.version

    def settle(self, result: Any) -> None:
        """The first run is over, and this is what it gave."""
        for t in tensors_in(result):
            self.link(t)
        for parts in self.owners.values():
            for part in parts:
                if part.memory is None and held_elsewhere(part):
                    part.array = copy(part.array)
        self.owners.clear()


def owner(array: Any) -> Any:
    """The array that owns the memory that this one looks into."""
    while getattr(array, "base", None) is not None:
        array = array.base
    return array


def held_elsewhere(part: Kept) -> bool:
    """Whether anyone but `part` holds its array, or another look into its memory."""
    whole = owner(part.array)
    mine = 3  # of `part` (or of its array), of this line, and of the call
    return sys.getrefcount(whole) > mine or (
        whole is not part.array and sys.getrefcount(part.array) > 2
    )


class FirstRun(Around):
    """Asks the policy about every op, and keeps what it says."""

    def __init__(self, policy: Policy, results: Results) -> None:
        super().__init__()
        self.policy = policy
        self.results = results
        self.count: defaultdict[OpOverload, int] = defaultdict(int)

    def fill(self, mode: Mode) -> Self:
        super().fill(mode)
        # hooks on saved values stay those outside
        outer = saving_now()
        inner = Saving(None, None, None, self.results.link)
        if outer is not None:
            inner.pack, inner.unpack, inner.message = outer.pack, outer.unpack, outer.message
        inner.outer = outer
        mode.saving = mode.around.saving = inner
        return self

    def answer(self, op: Any, raws: tuple[Any, ...], run: Callable[[], Any]) -> Any:
        y = run()
        name = overload_of(op, raws)
        if name in SAC_IGNORED_OPS:
            return y
        nr = self.count[name]
        self.count[name] += 1
        shown = tuple(map(shown_to, y)) if isinstance(y, tuple) else shown_to(normal(y))
        context = SelectiveCheckpointContext(is_recompute=False, op_output=shown)
        others = {p: getattr(op, p) for p in op.params}
        policy = self.policy(context, name, *map(shown_to, raws), **others)
        if policy in _SAVE and y is not None and not isinstance(op, ViewOp):
            self.results.keep(name, nr, y)
        else:
            self.results.by_op[name][nr] = AGAIN
        return y


def shown_to(x: Any) -> Any:
    """A raw value as a policy sees it."""
    return wrap(normal(x)) if hasattr(x, "dtype") else x


class SecondRun(Around):
    """Gives each op the result that was kept for it, or lets it run."""

    def __init__(self, results: Results, allow_mutation: bool) -> None:
        super().__init__()
        self.results = results
        self.allow_mutation = allow_mutation
        self.count: defaultdict[OpOverload, int] = defaultdict(int)

    def fill(self, mode: Mode) -> Self:
        self.count.clear()
        return super().fill(mode)

    def answer(self, op: Any, raws: tuple[Any, ...], run: Callable[[], Any]) -> Any:
        name = overload_of(op, raws)
        if name in SAC_IGNORED_OPS:
            return run()
        nr = self.count[name]
        self.count[name] += 1
        if name not in self.results.by_op:
            raise RuntimeError(
                f"{name} encountered during backward but not found in storage. {_MISMATCH}"
            )
        kept = self.results.by_op[name]
        found = kept.get(nr)
        if found is None:
            raise RuntimeError(
                f"{name} invocation index {nr} encountered during backward but not found in "
                f"storage. {_MISMATCH}"
            )
        if found is AGAIN:
            return run()
        if found is TAKEN:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any "
                "region computed under selective activation checkpoint."
            )
        kept[nr] = TAKEN
        if isinstance(found, tuple):
            return tuple([self.value(part) for part in found])
        return self.value(found)

    def value(self, part: Kept) -> Any:
        if part.written() and not self.allow_mutation:
            raise RuntimeError(
                "Tensor cached during selective activation checkpoint has been mutated"
            )
        return part.array


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[FirstRun, SecondRun]:
    """The two contexts of a checkpoint (`context_fn`) in which some ops keep their results.

    policy_fn_or_list: the ops that do (`[torch.ops.aten.mm.default]`), or a function of a
    `SelectiveCheckpointContext`, the op, its tensors and (by keyword) its parameters that returns a
    `CheckpointPolicy` for each application.
    allow_cache_entry_mutation: use a kept result even if it was written in place meanwhile.

    >>> import functools
    >>> from rushlight.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
    >>> keep_products = functools.partial(
    ...     create_selective_checkpoint_contexts, [torch.ops.aten.mm.default]
    ... )
    >>> w = torch.eye(2, requires_grad=True)
    >>> y = checkpoint(lambda w: (w @ w).sin(), w, use_reentrant=False, context_fn=keep_products)
    >>> y.sum().backward()
    """
    policy: Policy
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not hasattr(op, "_overloadname"):  # one of ours, or of `library`
                hint = (
                    "Please update the OpOverloadPacket to a specific OpOverload.For example, if "
                    "you have `torch.ops.aten.mm`, change it to `torch.ops.aten.mm.default`."
                    if type(op).__name__ == "OpOverloadPacket"
                    else ""
                )
                raise ValueError(
                    f"Expected op in `op_list` to be an OpOverload but got: {op} of type "
                    f"{type(op)}. {hint}"
                )
        chosen = set(policy_fn_or_list)

        def policy(ctx: Any, op: OpOverload, *args: Any, **kwargs: Any) -> CheckpointPolicy:
            if op in chosen:
                return CheckpointPolicy.MUST_SAVE
            return CheckpointPolicy.PREFER_RECOMPUTE

    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    results = Results()
    return FirstRun(policy, results), SecondRun(results, allow_cache_entry_mutation)
