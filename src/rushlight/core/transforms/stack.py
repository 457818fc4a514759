"""Transforms in progress: which `grad`, `jvp` or `vmap` of `func` the running code is inside of.

Levels form a chain from the innermost outward; a mode of this context holds it, so threads and
tasks each have their own.

Note [Captured tensors]
    A transform may not write into a tensor that it did not make and was not given: what the write
    means for derivatives outside could not be told. A storage remembers the number of the newest
    level that was open, anywhere, when it was made; numbers only grow, so a storage whose number is
    smaller than a level's was made before it.
"""

from __future__ import annotations

from typing import Any, Final

from rushlight.core.engine.accumulate_grad import AccumulateGradBase
from rushlight.core.grad_mode import (
    Mode,
    ModeBlock,
    _lock,
    current,
    inference_enabled,
    state,
    within,
)
from rushlight.core.graph import Node, Op, TensorBase
from rushlight.core.record import slots
from rushlight.native import i64

__all__ = [
    "Entrance", "Level", "Transform", "innermost", "kept_outside", "leads_outside", "outside_all",
    "refuse_inside",
]  # fmt: skip

_open: Final[dict[int, bool]] = {}  # by number: whether it is a batch


class Level:
    """One transform in progress. `batch` is the level of a `vmap`, else None;
    `given` are the storages of its inputs, by id, which it may write into, with the tensors that
    have them outside; `leaves` those that stand for them inside a `grad`. `forward` is the level of
    tangents of a `jvp`."""

    def __init__(self, kind: str, outer: Level | None, batch: Any) -> None:
        self.kind = kind
        self.outer = outer
        self.batch = batch
        self.number: i64 = 0
        self.recording: bool = True  # whether the code around it was being recorded
        self.given: dict[int, Any] = {}
        self.leaves: dict[int, Any] = {}
        self.forward: Any = None
        self.hushed: Any = None  # the batch around it whose recording it switched off
        self.mode: Mode | None = None  # while it is open

    def close(self) -> None:
        """End the transform: called by its mode, and again if an interrupt came between."""
        self.mode = None
        self.given.clear()  # what stands for an input leads to its level: that would be a cycle
        self.leaves.clear()
        if self.hushed is not None:
            self.hushed.recording = True
        if self.batch is not None:
            self.batch.alive = False
        with _lock:
            _open.pop(self.number, None)
            count_open()

    def pause_outer_recording(self) -> None:
        """Inside, a `grad` records: not so beneath the batch around it, if it is opened where
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


class Numbers:
    """The last number given to a level."""

    def __init__(self) -> None:
        self.last: int = 0


_numbers: Final = Numbers()


def innermost() -> Level | None:
    """The innermost transform that the running code is inside of."""
    if state.level == 0:
        return None
    mode = current()
    if mode is None:
        return None
    found: Level | None = mode.level
    return found


def count_open() -> None:
    """Say which transform is the newest, and how many batches there are."""
    state.level = max(_open) if _open else 0
    batches = 0
    for batch in _open.values():
        if batch:
            batches += 1
    slots.batches = batches


class Transform(ModeBlock):
    """`with Transform(kind, batch) as level`: the block is a function that is being transformed."""

    def __init__(self, kind: str, batch: Any = None) -> None:
        super().__init__(None, None)
        self.kind = kind
        self.batch = batch

    def fill(self, mode: Mode) -> Any:
        outer = mode.outer
        grad = outer is None or outer.grad
        level = Level(self.kind, innermost(), self.batch)
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
            _numbers.last += 1
            level.number = _numbers.last
            _open[level.number] = self.batch is not None
            count_open()
        return level


_NAMES: Final = {
    "add": "add_.Tensor", "sub": "sub_.Tensor", "mul": "mul_.Tensor", "div": "div_.Tensor",
    "fill": "fill_.Scalar", "fill_tensor": "fill_.Tensor", "clamp_numbers": "clamp_",
    "masked_fill": "masked_fill_.Scalar", "scatter_value": "scatter_.value",
}  # fmt: skip


def shares_input(target: TensorBase, level: Level) -> bool:
    """Whether a tensor in the memory of an input of the level is none of its, but one outside."""
    if level.forward is not None and has_tangent(target, level.forward):
        return False
    key = id(target._storage)
    root = root_of(target)
    around: Level | None = level
    while around is not None:
        if key in around.given and root_of(around.given[key]) is root:
            return True
        if around is not level and key in around.leaves and around.leaves[key] is root:
            return True
        around = around.outer
    return False


def root_of(x: TensorBase) -> TensorBase:
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
    name: str = op.name.rstrip("_")
    return "aten::" + _NAMES.get(name, name + "_")


def outside_all(grad: bool) -> Mode:
    """For `with`: leave all transforms for what a write to a tensor does with what stands inside or
    beside it, which is nobody's to refuse."""
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


# --- histories ------------------------------------------------------------------------------------
def neighbours(node: Node) -> list[Any]:
    """Where a node leads: its edges, and the histories of the tangents that it keeps."""
    found: list[Any] = list(node._next_edges)
    if node._kept_tangents is not None:
        for kept in node._kept_tangents:
            record: Any = kept
            while record is not None:
                value: Any = record.value
                if value is not None and value._node is not None:
                    found.append(value._node)
                record = record.outer
    return found


class Entrance(Op):
    """The way through an input of a level: what stands inside for a tensor has a node of this."""

    name = "alias"

    def __init__(self, level: Level) -> None:
        super().__init__()
        self.level = level

    def forward(self, *xs: Any) -> Any:
        return xs[0]

    def vjp(self, node: Node, g: Any, *saved: Any) -> Any:
        return (g,)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return ts[0]


def from_outside(end: Any, level: Level) -> bool:
    """Whether an edge ends at something outside a level: a leaf that the level did not make, or an
    input of another that is open still."""
    if isinstance(end, AccumulateGradBase):
        end = end.variable
    elif isinstance(end, Node):
        node: Node = end
        op: Any = node._op
        if not isinstance(op, Entrance) or node._next_edges[0] is not None:
            return False
        return op.level is not level and op.level.mode is not None
    leaf: TensorBase = end
    return leaf._storage.level < level.number


def leads_outside(roots: list[Any], level: Level) -> bool:
    """Whether a history goes beyond a level: to what it captured, or on through an input."""
    seen: set[Node] = set()
    stack: list[Any] = list(roots)
    while stack:
        end: Any = stack.pop()
        if end is None or end in seen:
            continue
        if from_outside(end, level):
            return True
        if isinstance(end, Node) and not isinstance(end, AccumulateGradBase):
            seen.add(end)
            stack.extend(neighbours(end))
    return False


def kept_outside(roots: list[Any], level: Level) -> set[Any]:
    """The nodes and leaves among `roots`, and beneath them, that lead outside."""
    live: set[Any] = set()
    seen: set[Any] = set()
    inner: list[Node] = []
    stack: list[Any] = list(roots)
    while stack:
        end: Any = stack.pop()
        if end is None or end in seen:
            continue
        seen.add(end)
        if from_outside(end, level):
            live.add(end)
        elif isinstance(end, Node) and not isinstance(end, AccumulateGradBase):
            inner.append(end)
            stack.extend(end._next_edges)
    inner.sort(key=_number_of)
    for node in inner:  # oldest first: what an edge leads to is decided before
        for end in node._next_edges:
            if end in live:
                live.add(node)
                break
    return live


def _number_of(node: Node) -> int:
    return node._seq_nr


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


slots.check_captured = check_captured
