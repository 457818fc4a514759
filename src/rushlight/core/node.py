"""Nodes as users meet them, and how one node turns gradients of its outputs into those of its
inputs. Which nodes run, and when, is the engine's matter.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Final, cast

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.core.graph import (
    Extra,
    Hooks,
    Node,
    Op,
    Plan,
    Storage,
    TensorBase,
    asks,
    begin_node,
    factory,
    node_base,
    plan_for,
    title_of,
    wrap,
    wrap_as,
)
from rushlight.core.hooks import RemovableHandle, register
from rushlight.core.modes import enter, leave, next_number, state
from rushlight.core.packed import Packed, open_packed, pack, rebuilt
from rushlight.core.quiet import quietly
from rushlight.core.record import DIFFERENTIABLE, apply, recording, slots
from rushlight.core.views import AsStrided, look, put
from rushlight.core.where import Where
from rushlight.errors import sentence
from rushlight.native import i64, mypyc_attr

__all__ = [
    "AccumulateGrad", "CopySlices", "GraphNode", "InputMetadata", "SavedTensor", "accumulate_of",
    "backward_of", "describe_freed", "fit", "free_saved", "make_copy_slices", "opened",
    "retain_on", "unpack", "with_history",
]  # fmt: skip


# PyTorch wrote these nodes by hand, and their names show it
_OUTSIDE_THE_TABLE: Final = ("AccumulateGrad", "CopyBackwards", "CopySlices", "Identity")


@mypyc_attr(allow_interpreted_subclasses=True)
class GraphNode(Node):
    """A recorded op: `t.grad_fn`. Follow `next_functions` to walk the graph."""

    def name(self) -> str:
        """The node's name, such as 'MulBackward0'."""
        title = type(self).__name__
        return f"torch::autograd::{title}" if title in _OUTSIDE_THE_TABLE else title

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The edges: for each input, the node its gradient goes to and which of its outputs."""
        self.nexts = tuple(
            [accumulate_of(t) if isinstance(t, TensorBase) else t for t in self.nexts]
        )
        nrs = self.nrs
        if nrs is None:
            return tuple([(t, 0) for t in self.nexts])
        return tuple(zip(self.nexts, nrs, strict=True))

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dict of your own, which lives as long as the node."""
        hooks = hooks_of(self)
        if hooks.metadata is None:
            hooks.metadata = {}
        return hooks.metadata

    @property
    def where(self) -> Where:
        """The line of your program that made this node."""
        return Where(self.code, self.offset)

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(grad_inputs, grad_outputs)` after this node ran in a backward pass."""
        hooks = hooks_of(self)
        if hooks.post is None:
            hooks.post = {}
        return register(hooks.post, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(grad_outputs)` before this node runs in a backward pass."""
        hooks = hooks_of(self)
        if hooks.pre is None:
            hooks.pre = {}
        return register(hooks.pre, hook)

    def _register_hook_dict(self, hooks: dict[int, Any]) -> None:
        hooks_of(self).post = hooks

    def _sequence_nr(self) -> int:
        return self.number

    def _saved(self, position: int) -> Any:
        """Saved value number `position` as a tensor, with the history it had."""
        check_saved(self)
        return unpack(self, position)

    def _raw(self, position: int) -> SavedTensor:
        """Saved value number `position` as the place where it is kept."""
        return SavedTensor(self, position)

    def _kept_value(self, position: int) -> Any:
        """What is kept there: None, a number, a detached tensor, or a `Packed`."""
        value = None if self.freed is not None else self.saved[position]
        if value is None or isinstance(value, (int, float, complex, Packed)):
            return value
        return wrap_as(value, storage_of(self, position))

    def _keep_packed(self, position: int, hook: Any, unpack_hook: Any) -> None:
        """Let hooks pack a value that was saved without any, and no longer watch its memory."""
        storage = storage_of(self, position)
        late = self.versions() - self.stamp if storage.when > self.number else 0
        packed = pack(hook, unpack_hook, wrap_as(self.saved[position], storage))
        rest = self.kept()
        stamp = self.stamp - (storage.version - late)
        for at in range(len(rest)):
            if rest[at] is storage:
                del rest[at]
                break
        self.keep(rest)
        self.stamp = stamp
        values = list(self.saved)
        values[position] = packed
        self.saved = tuple(values)
        self.packed = True

    @property
    def requires_grad(self) -> bool:
        """True: a node is made only where a gradient is asked for."""
        return True

    @property
    def _input_metadata(self) -> tuple[InputMetadata, ...]:
        """Shape and dtype of each gradient this node receives, where it keeps them."""
        outs = self.outs
        if outs is None:
            known = self._only_output()
            if known is None:
                raise AttributeError(
                    f"{type(self).__name__} does not keep the shape of its one output; only nodes "
                    "with several outputs, of leaves and of custom functions have _input_metadata"
                )
            outs = [known]
        return tuple([InputMetadata(out[0], out[1]) for out in outs])

    def _only_output(self) -> Any:
        """(shape, dtype) of the one output, for nodes that know it."""
        return None

    def run(self, g: Any, tensors: bool) -> Any:
        """The rule, for nodes that are not of the op table."""
        raise NotImplementedError

    def release(self, where: Where) -> None:
        """Let go of saved values, for nodes that are not of the op table."""


@mypyc_attr(allow_interpreted_subclasses=True)
class AccumulateGradBase(GraphNode):
    """The end of a path: adds the gradient to `variable.grad`."""

    variable: TensorBase

    def _only_output(self) -> Any:
        return self.variable.array.shape, self.variable.array.dtype

    def run(self, g: Any, tensors: bool) -> Any:
        accumulate(self.variable, g if isinstance(g, TensorBase) else wrap(g), tensors)
        return ()


@mypyc_attr(allow_interpreted_subclasses=True)
class CopySlicesBase(GraphNode):
    """The history of a base that was written through a view; see Note [Rebased history].

    `fn` is the node of the in-place op, as applied to the region alone.
    """

    fn: Node
    ops: tuple[Op, ...]
    order: tuple[int, ...] | None

    def run(self, g: Any, tensors: bool) -> Any:
        if self.freed is not None:
            raise RuntimeError(describe_freed(self))
        if g is None:
            return [None] * len(self.nexts)
        fn = self.fn
        part = list(backward_of(fn, look(g, self.ops), tensors))
        for i in range(len(part)):
            if part[i] is not None:
                shape = None if fn.shapes is None else fn.shapes[i]
                part[i] = fit(part[i], shape, None if fn.dtypes is None else fn.dtypes[i])
        first = put(g, self.ops, self.order, part[0]) if self.nexts[0] is not None else None
        return [first, *part[1:]]

    def release(self, where: Where) -> None:
        self.freed = where
        free_saved(self.fn, where)


class SavedTensor:
    """One saved value of a node: `grad_fn._raw_saved_self`."""

    def __init__(self, node: GraphNode, position: int) -> None:
        self.node = node
        self.position = position

    @property
    def data(self) -> Any:
        """What is kept: what the pack hook returned, or a detached tensor."""
        value = self.node._kept_value(self.position)
        return value.value if isinstance(value, Packed) else value

    @property
    def unpack_hook(self) -> Any:
        """The hook that unpacks it, if there is one."""
        value = self.node._kept_value(self.position)
        return value.unpack if isinstance(value, Packed) else None

    def unpack(self) -> Any:
        """The tensor again, with the history it had."""
        return self.node._saved(self.position)

    def register_hooks(self, pack_hook: Any, unpack_hook: Any) -> None:
        """Pack this value now, and call `unpack_hook` on the result whenever it is needed."""
        if not callable(pack_hook) or not callable(unpack_hook):
            raise TypeError(
                "register_hooks(): incompatible function arguments. The following argument types "
                "are supported:\n    1. (self: torch._C._autograd.SavedTensor, arg0: "
                "collections.abc.Callable, arg1: collections.abc.Callable) -> None\n\nInvoked "
                f"with: {self!r}, {pack_hook!r}, {unpack_hook!r}"
            )
        if self.node.freed is not None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed. Saved "
                "intermediate values of the graph are freed when you call .backward() or "
                "autograd.grad(). Specify retain_graph=True if you need to backward through the "
                "graph a second time or if you need to access saved variables after calling "
                "backward."
            )
        value = self.node._kept_value(self.position)
        if value is None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor with value None is forbidden"
            )
        if isinstance(value, Packed):
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: "
                "only one pair of hooks is allowed at a time."
            )
        if isinstance(value, (int, float, complex)):
            raise RuntimeError(
                "Calling register_hooks on a saved number is forbidden: no tensor is kept for it"
            )
        self.node._keep_packed(self.position, pack_hook, unpack_hook)


class InputMetadata:
    """Shape and dtype of one gradient that a node receives (`_input_metadata`)."""

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape: list[int] = list(shape)
        self.dtype: Any = dtypes.of(dtype)
        self.is_nested_tensor: bool = False
        self.is_cpp_nested_tensor: bool = False


def free_saved(node: Node, where: Where) -> None:
    """Let go of what a node keeps; `where` is the call that no longer needs it."""
    op: Any = node.op
    if op is None:
        cast(GraphNode, node).release(where)
        return
    plan: Plan = op.plan
    if plan.saves:
        node.freed = where
        node.saved = ()
        node.first = None
        node.second = None
        node.others = ()
        node.stamp = 0


def call_node(node: Any, *grads: Any) -> Any:
    """Run a node's rule on gradients of its outputs: `t.grad_fn(g)`."""
    g: Any = grads[0] if node.outs is None else list(grads)
    outs = tuple(backward_of(node, g, True))
    return outs[0] if len(outs) == 1 else outs


def _caller() -> Any:
    # a function inside a function: compiled ones at the top level do not become methods
    def call(self: Any, *grads: Any) -> Any:
        return call_node(self, *grads)

    return call


node_base.members["__call__"] = _caller()


def _visible(base: Any, title: str) -> Any:
    """An interpreted class over a compiled one: weak references and PyTorch's name."""
    return type(title, (base,), dict(node_base.members))


AccumulateGrad: Final[Any] = _visible(AccumulateGradBase, "AccumulateGrad")
CopySlices: Final[Any] = _visible(CopySlicesBase, "CopySlices")
node_base.cls = GraphNode


def make_copy_slices(fn: Node, ops: tuple[Op, ...], order: tuple[int, ...] | None) -> Node:
    """A CopySlices around the node of an in-place op; the caller sets its edges."""
    node = cast(CopySlicesBase, CopySlices())
    node.fn = fn
    node.ops = ops
    node.order = order
    node.plain = True  # it fits its gradients itself
    node.number = next_number()
    node.code = fn.code
    node.offset = fn.offset
    return node


def hooks_of(node: Node) -> Hooks:
    """The node's hooks, made on first use."""
    if node.hooks is None:
        node.hooks = Hooks()
    return node.hooks


def extra_of(t: TensorBase) -> Extra:
    """The tensor's extras, made on first use."""
    if t.extra is None:
        t.extra = Extra()
    return t.extra


def accumulate_of(leaf: TensorBase) -> Any:
    """The AccumulateGrad node of a leaf: one object for as long as anyone holds it."""
    extra = extra_of(leaf)
    node: Any = None if extra.accumulate is None else extra.accumulate()
    if node is None:
        node = AccumulateGrad()
        node.variable = leaf
        extra.accumulate = weakref.ref(node)
    return node


def retain_on(t: TensorBase, node: Node) -> None:
    """Let `node` store the gradient of its output `t` in `t.grad` when it runs."""
    hooks = hooks_of(node)
    if hooks.retain is None:
        hooks.retain = {}
    hooks.retain[int(t.index)] = weakref.ref(t)


def forget_retained(t: TensorBase) -> None:
    """Let the node `t` has now no longer store its gradient: `t` is about to get another."""
    node = t.node
    if node is not None and node.hooks is not None and node.hooks.retain is not None:
        node.hooks.retain.pop(int(t.index), None)


def renewed(t: TensorBase, node: Node) -> None:
    """Give a stale view its new node; see `views.refresh`."""
    forget_retained(t)
    t.node = node
    t.index = 0
    t.leaf = False
    if t.extra is not None and t.extra.retains:
        retain_on(t, node)


slots.renewed = renewed


# --- saved values ---------------------------------------------------------------------------------
def unpack(node: Node, position: int) -> Any:
    """A saved value as a tensor: a leaf itself, or the array with the edge it came by."""
    found = saved_value(node, position)
    if node.duals is not None and isinstance(found, TensorBase):
        t: TensorBase = found
        if t.tangent is None:
            t.tangent = node.duals[position]
    return found


def saved_value(node: Node, position: int) -> Any:
    """`unpack`, without the tangent."""
    value = node.saved[position]
    plan: Plan = node.op.plan
    if value is None or isinstance(value, (int, float, complex)):
        return value
    source: i64 = position if plan.variadic else plan.sources[position]
    if isinstance(value, Packed):
        data = open_packed(value)
        if source < 0:
            floating = data.array.dtype.kind in DIFFERENTIABLE
            return rebuilt(data, node if floating else None, -1 - source)
        end: Any = node.nexts[source]
        if isinstance(end, TensorBase):
            end = accumulate_of(end)
        return with_history(data, end, 0 if node.nrs is None else node.nrs[source])
    if source < 0:
        t = wrap_as(value, storage_of(node, position))
        if value.dtype.kind in DIFFERENTIABLE:  # indices have no history
            t.node = node
            t.index = -1 - source
        return t
    target = node.nexts[source]
    if isinstance(target, AccumulateGradBase):
        target = target.variable
    if isinstance(target, TensorBase):
        return target if target.array is value else behind(target, value)
    t = wrap_as(value, storage_of(node, position))
    if target is not None:
        t.node = target
        t.index = 0 if node.nrs is None else node.nrs[source]
    return t


def with_history(data: TensorBase, maker: Node | None, index: i64) -> TensorBase:
    """What an unpack hook returned, with the history of what was packed; a leaf itself, where
    the hooks left it its array."""
    if isinstance(maker, AccumulateGradBase) and maker.variable.array is data.array:
        return maker.variable
    return rebuilt(data, maker, index)


def behind(leaf: TensorBase, value: Any) -> TensorBase:
    """The value a leaf had before its `.data` was replaced: its gradient is still the leaf's."""
    node = begin_node(plan_for(AsStrided), AsStrided((), ()))
    node.nexts = (leaf,)
    node.wants = 1
    t = wrap(value)
    t.node = node
    return t


def storage_of(node: Node, position: int) -> Storage:
    """The storage kept for saved value `position` (values that were numbers have none)."""
    at = 0
    for j in range(position):
        value = node.saved[j]
        if value is not None and not isinstance(value, (int, float, complex, Packed)):
            at += 1
    kept = node.kept()
    return kept[at] if at < len(kept) else Storage()


def check_saved(node: Node) -> None:
    """Raise if the saved values were freed, or written since they were saved."""
    if node.freed is not None:
        raise RuntimeError(describe_freed(node))
    stamp = node.versions()
    if stamp != node.stamp:
        raise RuntimeError(describe_overwritten(node, stamp))


def describe_freed(node: Node) -> str:
    """Whose saved values are gone, and which call freed them."""
    return sentence(
        "Trying to backward through the graph a second time (or directly access saved tensors "
        "after they have already been freed). Saved intermediate values of the graph are freed "
        "when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to "
        "backward through the graph a second time or if you need to access saved tensors after "
        "calling backward.",
        f"{type(node).__name__} was made at {Where(node.code, node.offset)}\n"
        f"its values were freed by {node.freed}",
        "Pass `retain_graph=True` to that first call, or run the forward line again.",
    )


def describe_overwritten(node: Node, stamp: i64) -> str:
    """Which saved value was overwritten, where it was saved and where it was written."""
    op: Any = node.op
    culprit: Storage | None = None
    position = 0
    for j in range(len(node.saved)):
        value = node.saved[j]
        if value is None or isinstance(value, (int, float, complex, Packed)):
            continue
        storage = storage_of(node, j)
        if storage.when > node.number:
            culprit, position = storage, j
            break
    if culprit is None:
        culprit = node.kept()[0]
    value = node.saved[position]
    plan: Plan = op.plan
    source: i64 = position if plan.variadic else plan.sources[position]
    maker = ""
    if source < 0:
        maker = f", which is output {-1 - source} of {title_of(node)},"
    else:
        target = node.nexts[source]
        if isinstance(target, Node) and not isinstance(target, AccumulateGradBase):
            nr = 0 if node.nrs is None else node.nrs[source]
            maker = f", which is output {nr} of {title_of(target)},"
    version = culprit.version
    kind = factory.cls.type(wrap(value))
    written = Where(culprit.code, culprit.offset)
    return sentence(
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: [{kind} {list(value.shape)}]{maker} is at version {version}; expected version "
        f"{version - (stamp - node.stamp)} instead.",
        f"saved for {type(node).__name__} at {Where(node.code, node.offset)}\n"
        f"overwritten at {written}",
        "Write the second line out of place (`x = x + 1`, not `x += 1`), or give the first one a "
        "copy: `x.clone()`.",
    )


# --- running one node -----------------------------------------------------------------------------
def backward_of(node: Node, g: Any, tensors: bool) -> Any:
    """Gradients of a node's inputs from `g`, the gradient of its output (a list if it has several).

    With `tensors` everything is a tensor and is recorded; otherwise all are raw arrays.
    """
    op: Any = node.op
    if op is None:
        return cast(GraphNode, node).run(g, tensors)
    outs_meta = node.outs
    if outs_meta is not None:
        g = materialise(g, outs_meta)
        if g is None:
            return [None] * len(node.nexts)
    elif g is None:
        return [None] * len(node.nexts)
    saved = node.saved
    plan: Plan = op.plan
    if plan.saves:
        if node.freed is not None:
            check_saved(node)
        if node.versions() != node.stamp:
            check_saved(node)
        if node.packed:
            return backward_of_packed(node, g, tensors)
        if tensors:
            saved = tuple([unpack(node, j) for j in range(len(saved))])
    n = len(saved)
    mark: i64 = next_number() if tensors else 0
    rule = node.rule
    if rule is not None:
        if n == 2:
            return rule.pull(node, g, saved[0], saved[1])
        return rule.pull(node, g, None, None)
    if n == 0:
        outs = op.vjp(node, g)
    elif n == 1:
        outs = op.vjp(node, g, saved[0])
    elif n == 2:
        outs = op.vjp(node, g, saved[0], saved[1])
    else:
        outs = op.vjp(node, g, *saved)
    return anchored(node, outs, saved, mark) if tensors and n != 0 else outs


def anchored(node: Node, outs: Any, saved: tuple[Any, ...], mark: i64) -> Any:
    """Gradients computed from saved tensors that ask for gradients depend on them, even where the
    derivative is zero (relu): differentiating again then gives zeros, not an error.

    `mark` is the number of the last node before the rule ran: what is newer, the rule made.
    """
    asking = [j for j in range(len(saved)) if isinstance(saved[j], TensorBase) and asks(saved[j])]
    if not asking or not recording():
        return outs
    plan: Plan = node.op.plan
    found: list[Any] = []
    for i in range(len(outs)):
        out = outs[i]
        if isinstance(out, TensorBase):
            ends = ends_of(out, mark)
            bit: i64 = 1 << i if i < 62 else 0
            missing: list[Any] = []
            for j in asking:
                t: TensorBase = saved[j]
                reader: i64 = -1 if plan.variadic else plan.readers[j]
                if reader & bit != 0 and (t.node if t.node is not None else t) not in ends:
                    missing.append(t)
            if missing:
                out = apply(Anchor(), out, *missing)
        found.append(out)
    return found


def ends_of(out: TensorBase, mark: i64) -> set[Any]:
    """Where the edges of the nodes newer than `mark` behind `out` lead."""
    ends: set[Any] = {out if out.node is None else out.node}
    stack: list[Any] = [out.node]
    while stack:
        node = stack.pop()
        if isinstance(node, Node) and node.number > mark:
            for target in node.nexts:
                if isinstance(target, AccumulateGradBase):
                    target = target.variable
                if target is not None and target not in ends:
                    ends.add(target)
                    stack.append(target)
    return ends


class Anchor(Op):
    """Its first input as it is; the others get a gradient of zeros."""

    name = "zero_derivative"

    def forward(self, x: Any, *others: Any) -> Any:
        return x

    def vjp(self, node: Node, g: Any) -> Any:
        shapes = node.shapes
        dtypes = node.dtypes
        assert shapes is not None and dtypes is not None
        zeros = [v.full(g, shapes[i], 0, dtypes[i]) for i in range(1, len(shapes))]
        return [g, *zeros]

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return y * 0 if ts[0] is None else ts[0]


def backward_of_packed(node: Node, g: Any, tensors: bool) -> Any:
    """`backward_of` a node whose saved values were packed by hooks: open them, then its rule."""
    op: Any = node.op
    values = opened(node, tensors)
    if tensors:
        return op.vjp(node, g, *values)
    # not the cheaper silence of Note [Busy]: that may run a rule twice, and hooks only once
    return quietly(op.vjp, node, g, *values)


def opened(node: Node, tensors: bool) -> list[Any]:
    """The saved values, each unpack hook called once, in the order in which they were packed."""
    plan: Plan = node.op.plan
    values: list[Any] = list(node.saved)
    busy = state.busy
    state.busy = False  # the hooks are the user's code: his warnings are his
    mode = enter(tensors, False)
    try:
        for j in list(range(len(values))) if plan.variadic else plan.order:
            value = values[j]
            if tensors:
                values[j] = unpack(node, j)
            elif isinstance(value, Packed):
                values[j] = open_packed(value).array
    finally:
        leave(mode)
        state.busy = busy
    return values


def materialise(gs: Any, metas: list[Any]) -> Any:
    """Zeros for the outputs that no gradient reached; None if none did."""
    like: Any = None
    missing = False
    for g in gs:
        if g is None:
            missing = True
        elif like is None:
            like = g
    if not missing:
        return gs
    if like is None:
        return None
    filled: list[Any] = []
    for i in range(len(metas)):
        g = gs[i]
        if g is None:
            shape, dtype = metas[i]
            g = v.full(like, shape, 0, dtype)
        filled.append(g)
    return filled


def fit(g: Any, shape: Any, dtype: Any) -> Any:
    """A gradient in the shape and dtype of the input it is for: sum what was broadcast."""
    if shape is not None:
        have: tuple[int, ...] = g.shape
        if have != shape:
            lead = len(have) - len(shape)
            axes = list(range(lead))
            for d in range(len(shape)):
                if shape[d] == 1 and have[lead + d] != 1:
                    axes.append(lead + d)
            if axes:
                g = v.total(g, tuple(axes), True)
            if lead or g.shape != shape:
                g = v.reshape(g, shape)
    if dtype is not None:
        raw = g.array if isinstance(g, TensorBase) else g
        if raw.dtype is not dtype and raw.dtype != dtype:
            g = v.cast(g, dtype)
    return g


# --- leaves ---------------------------------------------------------------------------------------
def accumulate(leaf: TensorBase, g: TensorBase, tensors: bool) -> None:
    """leaf.grad += g: in place if it can be, so that others who hold `.grad` see it."""
    old = leaf.held
    if old is None:
        leaf.held = g
    elif tensors:
        leaf.held = old + g
    else:
        cast(TensorBase, old).array = _add_into(cast(TensorBase, old).array, g.array)
        cast(TensorBase, old).memory.written()


def _add_into(old: Any, g: Any) -> Any:
    if not getattr(old.flags, "writeable", True):  # CuPy's arrays do not say
        return old + g
    old += g
    return old
