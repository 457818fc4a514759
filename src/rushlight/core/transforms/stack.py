"""The one stack of levels: every `grad`, `jvp`, `vmap` and `dual_level` in progress, and what an op
may ask of a level.

Transforms form a chain from the innermost outward; a mode of this context holds it, so threads and
tasks each have their own. Levels of batches and of tangents are found on the operands of an op:
those that have them lead to theirs.

Note [Captured tensors]
    A transform may not write into a tensor that it did not make and was not given: what the write
    means for derivatives outside could not be told. A storage remembers the number of the newest
    level that was open, anywhere, when it was made; numbers only grow, so a storage whose number is
    smaller than a level's was made before it.
"""

from __future__ import annotations

from typing import Any, Final

from rushlight.core.grad_mode import (
    Mode,
    ModeBlock,
    _lock,
    current,
    inference_enabled,
    state,
    within,
)
from rushlight.core.graph import TensorBase
from rushlight.native import i64, mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class Level:
    """One level in progress: a batch of `vmap`, the tangents of forward mode, or a transform of
    `func`. Of two of one kind that are alive the inner one has the larger `depth`.

    An op that finds a level on its operands leaves to it what the level is there for: a batch
    computes, tangents are pushed on. Each of these is the matter of one kind of level.
    """

    def __init__(self, kind: str, depth: float) -> None:
        self.kind = kind
        self.depth: float = depth
        self.alive: bool = True
        self.number: i64 = 0  # of a transform: see Note [Captured tensors]
        self.batch: Any = None  # of a transform: the level of a `vmap`'s batch

    def close(self) -> None:
        """End it: called by its mode, and again if an interrupt came between."""
        raise NotImplementedError

    # --- batches ----------------------------------------------------------------------------------
    def compute(self, op: Any, raws: tuple[Any, ...]) -> Any:
        """`op.forward(*raws)`, where this is the deepest level among `raws`."""
        raise NotImplementedError

    # --- tangents ---------------------------------------------------------------------------------
    def tangent_of(self, x: TensorBase) -> Any:
        """The tangent of `x` in this level, or None."""
        raise NotImplementedError

    def push(
        self, op: Any, xs: tuple[Any, ...], raws: tuple[Any, ...], results: list[TensorBase],
        several: bool,
    ) -> None:  # fmt: skip
        """Give the results of an op their tangents. `several`: the op returns a tuple."""
        raise NotImplementedError

    def push_view(self, op: Any, x: TensorBase, t: TensorBase, visible: bool) -> None:
        """Give the view `t` of `x` the same view of `x`'s tangent, which may be `visible` now."""
        raise NotImplementedError

    def push_views(
        self, op: Any, x: TensorBase, ts: list[TensorBase], parts: list[Any], visible: bool
    ) -> None:
        """`push_view` for an op with several outputs."""
        raise NotImplementedError


class Stack:
    """All levels that are open, in any thread, in the order in which they were opened; and how many
    there are of those that ops must look out for."""

    def __init__(self) -> None:
        self.open: dict[Level, None] = {}
        self.batches: i64 = 0  # of `vmap`
        self.tangents: i64 = 0  # of forward mode
        self.last: int = 0  # the last number given to a transform

    def count(self) -> None:
        """Say which transform is the newest, and how many batches and levels of tangents there
        are. The caller holds the lock."""
        newest: i64 = 0
        batches: i64 = 0
        tangents: i64 = 0
        for level in self.open:
            if level.kind == "dual":
                tangents += 1
            else:
                newest = max(newest, level.number)
                if level.batch is not None:
                    batches += 1
        state.level = newest
        self.batches = batches
        self.tangents = tangents

    def tangent_levels(self) -> list[Level]:
        """The levels of forward mode."""
        return [level for level in list(self.open) if level.kind == "dual"]


stack: Final = Stack()


class TransformLevel(Level):
    """One transform of `func`. `given` are the storages of its inputs, by id, which it may write
    into, with the tensors that have them outside; `leaves` those that stand for them inside a
    `grad`. `forward` is the level of tangents of a `jvp`."""

    def __init__(self, kind: str, outer: TransformLevel | None, batch: Any) -> None:
        super().__init__(kind, 0.0)
        self.outer = outer
        self.batch = batch
        self.recording: bool = True  # whether the code around it was being recorded
        self.given: dict[int, Any] = {}
        self.leaves: dict[int, Any] = {}
        self.forward: Any = None
        self.hushed: Any = None  # the batch around it whose recording it switched off
        self.mode: Mode | None = None  # while it is open

    def close(self) -> None:
        self.mode = None
        self.alive = False
        self.given.clear()  # what stands for an input leads to its level: that would be a cycle
        self.leaves.clear()
        if self.hushed is not None:
            self.hushed.recording = True
        if self.batch is not None:
            self.batch.alive = False
        with _lock:
            stack.open.pop(self, None)
            stack.count()

    def pause_outer_recording(self) -> None:
        """Inside, a `grad` records: not so below the batch around it, if it is opened where
        nothing is recorded."""
        around = self.outer
        while around is not None and around.batch is None:
            around = around.outer
        if around is not None and around.batch.recording:
            around.batch.recording = False
            self.hushed = around.batch

    def give(self, x: TensorBase, inside: TensorBase) -> None:
        """Let the transform write into an input: `inside` stands there for `x`."""
        self.given[id(inside._storage)] = x


def innermost() -> TransformLevel | None:
    """The innermost transform that the running code is inside of."""
    if state.level == 0:
        return None
    mode = current()
    if mode is None:
        return None
    found: TransformLevel | None = mode.level
    return found


class Transform(ModeBlock):
    """`with Transform(kind, batch) as level`: the block is a function that is being transformed."""

    def __init__(self, kind: str, batch: Any = None) -> None:
        super().__init__(None, None)
        self.kind = kind
        self.batch = batch

    def fill(self, mode: Mode) -> Any:
        outer = mode.outer
        grad = outer is None or outer.grad
        level = TransformLevel(self.kind, innermost(), self.batch)
        level.recording = grad
        # a derivative is taken in `inference_mode` too: inside, that mode does not hold
        mode.inference = self.kind == "vmap" and inference_enabled()
        mode.asked = True if self.kind == "grad" else grad
        mode.grad = mode.asked and not mode.inference
        mode.follows = False
        mode.level = level
        mode.closes = level
        level.mode = mode
        if not grad and self.kind == "grad":
            level.pause_outer_recording()
        if self.batch is not None:
            around = level.outer
            while around is not None:
                self.batch.nesting += 1
                around = around.outer
        with _lock:
            stack.last += 1
            level.number = stack.last
            level.depth = float(stack.last)
            stack.open[level] = None
            stack.count()
        return level


def shares_input(target: TensorBase, level: TransformLevel) -> bool:
    """Whether a tensor in the memory of an input of the level is none of its, but one outside."""
    if level.forward is not None and has_tangent(target, level.forward):
        return False
    key = id(target._storage)
    root = view_base(target)
    around: TransformLevel | None = level
    while around is not None:
        if key in around.given and view_base(around.given[key]) is root:
            return True
        if around is not level and key in around.leaves and around.leaves[key] is root:
            return True
        around = around.outer
    return False


def view_base(x: TensorBase) -> TensorBase:
    """The tensor that a view looks into."""
    return x if x._view is None else x._view.base


def has_tangent(x: TensorBase, forward: Any) -> bool:
    """Whether a tensor is known to a level of tangents."""
    record: Any = x._tangent
    while record is not None:
        if record.level is forward:
            return True
        record = record.outer
    return False


def aten_name(op: Any) -> str:
    """What PyTorch calls the in-place form of an op."""
    name, _, form = (op.aten or op.name).partition(".")
    form = form.partition("|")[0]
    if form in ("Tensor_Scalar", "Tensor_Tensor"):  # in place, the target is not named
        form = form.removeprefix("Tensor_")
    return f"aten::{name.rstrip('_')}_" + ("" if form in ("", "default") else f".{form}")


def outside_all(grad: bool) -> Mode:
    """For `with`: leave all transforms for what a write to a tensor does with what is inside or
    next to it, which is nobody's to refuse."""
    mode = within(grad, inference_enabled())
    mode.level = None
    return mode


def check_captured(target: TensorBase, op: Any = None) -> None:
    """Refuse a write, by `op`, to a tensor that a `grad` or `jvp` captured: the innermost, or one
    around it, if what is written is an input of those inside."""
    level = innermost()
    while level is not None:
        key = id(target._storage)
        if level.kind == "vmap":
            if key in level.given:
                target = level.given[key]
        elif target._storage.level >= level.number:
            return
        elif key not in level.given or shares_input(target, level):
            break
        elif level.forward is not None:
            return  # a dual is a view: in PyTorch those around do not know it
        else:
            target = level.given[key]
        level = level.outer
    if level is None:
        return
    raise RuntimeError(
        "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call "
        f"in-place operation{'' if op is None else f' ({aten_name(op)})'} that would mutate a "
        "captured Tensor. This is not supported; please rewrite the function being transformed to "
        "explicitly accept the mutated Tensor(s) as inputs."
    )


def refuse_inside(name: str) -> None:
    """Refuse what a function that is being transformed may not call."""
    if innermost() is None:
        return
    if name == "backward":
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported, please use "
            "functorch.grad or functorch.vjp instead or call backward() outside of functorch "
            "transforms."
        )
    apis = (
        "(or perhaps using torch.autograd.functional.* APIs) " if name == "requires_grad_" else ""
    )
    raise RuntimeError(
        f"You are attempting to call Tensor.{name}() {apis}inside of a function being transformed "
        "by a functorch transform. This is unsupported, please attempt to use the functorch "
        "transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call "
        f"{name}() outside of a function being transformed instead."
    )
