"""The backward pass: from roots and their gradients to the leaves, newest node first.

Note [Newest first is enough]
    A node's number is larger than the numbers of all nodes its edges lead to. So the node with
    the largest number among those that hold a gradient has all of it: whatever else could add to
    it would have run before. No counting of dependencies is needed.

Note [No state in the nodes]
    All state of a run lives in its own `Run`: threads may run over a shared graph, a run may
    start another inside itself, and an exception leaves nothing behind.

Gradients travel as raw arrays; as tensors, recorded, when `create_graph` asks for it.
"""

from __future__ import annotations

import _thread
from contextvars import ContextVar
from heapq import heappop, heappush, heapreplace
from itertools import count
from threading import Lock
from typing import Any, Final

import numpy as np

from rushlight.arrays import vocabulary as v
from rushlight.arrays.vocabulary import add
from rushlight.core.graph import Node, TensorBase, wrap
from rushlight.core.modes import enter, leave, state
from rushlight.core.node import AccumulateGradBase, accumulate, backward_of, fit, free_saved
from rushlight.core.quiet import quietly
from rushlight.core.record import normal, slots
from rushlight.core.tangents import muted
from rushlight.core.where import Where, here
from rushlight.errors import advise
from rushlight.native import i64

__all__ = ["Run", "Target", "backward", "running", "task_number", "will_execute"]

_leaf_lock: Final = Lock()
_threads: Final = _thread._count
_NOTHING: Final = object()
_ndarray: Final = np.ndarray
_F32: Final = np.dtype(np.float32)
_F64: Final = np.dtype(np.float64)
_ONE32: Final = np.ones((), np.float32)
_ONE64: Final = np.ones((), np.float64)


class LeafHooks:
    """How many hooks on leaves were ever registered: while none, their order can't be seen."""

    def __init__(self) -> None:
        self.count: i64 = 0


leaf_hooks: Final = LeafHooks()


class Watch:
    """Who looks over each node's shoulder: `look(node, outs)` after its rule, `failed(node)` if
    it raised. None but in anomaly mode."""

    def __init__(self) -> None:
        self.check: Any = None


watch: Final = Watch()


class Target:
    """An input whose gradient is asked for: a leaf, or output `nr` of a node."""

    def __init__(self, node: Any, nr: int) -> None:
        self.node = node
        self.nr = nr
        self.grad: Any = None
        self.reached: bool = False


class Run:
    """One backward pass."""

    def __init__(
        self, keep: bool, tensors: bool, targets: list[Target] | None, store: bool
    ) -> None:
        self.keep = keep
        self.tensors = tensors
        self.record = tensors  # tensors, but not recorded: gradients that carry tangents
        self.store = store  # into `.grad` of the leaves
        self.targets = targets
        self.wanted: dict[Any, list[Target]] | None = None
        self.needed: set[Any] | None = None
        self.pending: dict[Node, Any] = {}
        self.leaves: dict[Any, Any] = {}
        self.owned: set[int] = set()  # ids of pending sums this run may add into
        self.uses: dict[Any, int] | None = None
        self.best: Node | None = None
        self.heap: list[tuple[i64, i64, Node]] = []
        self.ties: i64 = 0
        self.freed: Where | None = None
        self.check: Any = watch.check
        self.roots: Any = None  # where it started: a node, or a list of nodes and leaves
        self.number: int = -1  # given when someone asks; see `task_number`

    # --- ready nodes --------------------------------------------------------------------------
    def push(self, node: Node) -> None:
        best = self.best
        if best is None:
            self.best = node
        elif node.number > best.number:
            self.best = node
            self.shelve(best)
        else:
            self.shelve(node)

    def shelve(self, node: Node) -> None:
        self.ties += 1
        heappush(self.heap, (-node.number, self.ties, node))

    def pop(self) -> Node | None:
        best = self.best
        self.best = None
        heap = self.heap
        if heap:
            if best is None:
                return heappop(heap)[2]
            if -heap[0][0] > best.number:
                self.ties += 1
                return heapreplace(heap, (-best.number, self.ties, best))[2]
        return best

    # --- delivering ---------------------------------------------------------------------------
    def deliver(self, target: Node, nr: i64, g: Any) -> None:
        """Add `g` to what output `nr` of the node `target` has received."""
        if self.needed is not None and target not in self.needed:
            return
        pending = self.pending
        outs = target.outs
        if outs is None:
            old = pending.get(target, _NOTHING)
            if old is _NOTHING:
                pending[target] = g
                self.push(target)
            elif g is not None:
                pending[target] = self.sum(old, g)
            return
        slots: Any = pending.get(target)
        if slots is None:
            slots = [None] * len(outs)
            pending[target] = slots
            self.push(target)
        if g is not None:
            slots[nr] = self.sum(slots[nr], g)

    def deliver_leaf(self, leaf: TensorBase, g: Any, fresh: bool) -> None:
        if self.wanted is not None:
            if leaf not in self.wanted:
                return
        leaves = self.leaves
        if g is not None:
            if leaf in leaves and leaves[leaf] is not None:
                g = self.sum(leaves[leaf], g)
            elif fresh and not self.tensors:
                self.owned.add(id(g))
            leaves[leaf] = g
        elif leaf not in leaves:
            leaves[leaf] = None
        if self.uses is not None:
            left = self.uses.get(leaf, 1) - 1
            self.uses[leaf] = left
            if left == 0:
                self.settle_leaf(leaf, leaves.pop(leaf))

    def sum(self, old: Any, g: Any) -> Any:
        if old is None:
            return g
        if self.tensors:
            return old + g
        state.busy = True
        try:
            if id(old) in self.owned:
                old += g
                state.busy = False
                return old
            total = normal(old + g)
        except RuntimeWarning:  # see Note [Busy]; what was added in place is added
            state.busy = False
            if id(old) in self.owned:
                return old
            total = normal(quietly(add, old, g))
        state.busy = False
        if total.ndim:
            # kept alive by `pending` or `leaves` until it is delivered, so the id stays true
            self.owned.add(id(total))
        return total

    def disown(self, g: Any) -> None:
        """A sum that is handed to a rule may be passed on by it: it is nobody's to add into."""
        if isinstance(g, list):
            for x in g:
                self.owned.discard(id(x))
        else:
            self.owned.discard(id(g))

    # --- leaves -------------------------------------------------------------------------------
    def settle_leaf(self, leaf: TensorBase, g: Any) -> None:
        """The gradient of a leaf is complete: run its hooks, then store or hand it over."""
        extra = leaf.extra
        # its id must not outlive it here, and what hooks were shown they may keep
        mine = id(g) in self.owned
        self.owned.discard(id(g))
        if extra is not None and extra.hooks and g is not None:
            mine = False
            g = self.call_tensor_hooks(extra.hooks, g)
        node: Any = None
        if extra is not None and extra.accumulate is not None:
            node = extra.accumulate()
        if self.wanted is not None and leaf in self.wanted:
            for target in self.wanted[leaf]:
                target.reached = True
                target.grad = g
            if not self.store:
                return
        if node is not None and node.hooks is not None and (node.hooks.pre or node.hooks.post):
            mine = False
            if node.hooks.pre:
                g = self.call_pre_hooks(node.hooks.pre, g)
        if g is not None:
            self.store_leaf(leaf, g, mine)
        if node is not None and node.hooks is not None and node.hooks.post:
            self.call_post_hooks(node.hooks.post, (), (self.as_tensor(g),))
        if extra is not None and extra.post_accumulate:
            for hook in list(extra.post_accumulate.values()):
                result = self.call(hook, leaf)
                if result is not None:
                    raise RuntimeError("Tensor post accumulate grad hooks should return None.")

    def store_leaf(self, leaf: TensorBase, g: Any, mine: bool) -> None:
        """Add to `.grad`; `mine`: nobody else holds the array, so the leaf may keep it."""
        if self.tensors:
            t: TensorBase = g
            if self.record and leaf.held is None:
                t = g.clone()  # as PyTorch does: the tensor may be another's gradient too
            if not self.record:
                if leaf.held is not None:
                    mode = enter(False, False)
                    try:
                        leaf.held.add_(g)  # its tangent too
                    finally:
                        leave(mode)
                    return
                t = wrap(own_copy(t.array, leaf.array))  # as in PyTorch, without its tangent
        else:
            g = normal(g)
            held = leaf.held
            if held is None:
                like = leaf.array
                if not mine or g.base is not None or g.strides != like.strides:
                    g = own_copy(g, like)
            t = wrap(g)
        if _threads() > 0:
            with _leaf_lock:
                accumulate(leaf, t, self.record)
        else:
            accumulate(leaf, t, self.record)

    # --- hooks --------------------------------------------------------------------------------
    def as_tensor(self, g: Any) -> Any:
        if g is None or isinstance(g, TensorBase):
            return g
        return wrap(normal(g))

    def as_gradient(self, t: Any) -> Any:
        if t is None or self.tensors or not isinstance(t, TensorBase):
            return t
        return t.array

    def call(self, hook: Any, *args: Any) -> Any:
        """Call the user's code in the grad mode of this run."""
        mode = enter(self.record, False)
        token = _running.set(self)
        try:
            return hook(*args)
        finally:
            _running.reset(token)
            leave(mode)

    def call_tensor_hooks(self, hooks: Any, g: Any) -> Any:
        for hook in list(hooks.values()):
            t = self.as_tensor(g)
            result = self.call(hook, t)
            if result is not None:
                g = self.as_gradient(checked_hook_result(t, result))
        return g

    def call_pre_hooks(self, hooks: Any, g: Any) -> Any:
        several = isinstance(g, list)
        for hook in list(hooks.values()):
            given = tuple([self.as_tensor(x) for x in g]) if several else (self.as_tensor(g),)
            result = self.call(hook, given)
            if result is not None:
                if not isinstance(result, tuple):
                    result = (result,)
                if len(result) != len(given):
                    raise RuntimeError(
                        f"hook has returned an incorrect number of values (got {len(result)}, but "
                        f"expected {len(given)})"
                    )
                raw = [self.as_gradient(x) for x in result]
                g = raw if several else raw[0]
        return g

    def call_post_hooks(self, hooks: Any, grads_in: tuple[Any, ...], grads_out: Any) -> Any:
        """`hook(grad_inputs, grad_outputs)`; the gradients of the inputs, perhaps replaced."""
        for hook in list(hooks.values()):
            result = self.call(hook, grads_in, grads_out)
            if result is not None:
                if not isinstance(result, tuple):
                    result = (result,)
                if len(result) != len(grads_in):
                    raise RuntimeError(
                        f"hook has returned an incorrect number of values (got {len(result)}, but "
                        f"expected {len(grads_in)})"
                    )
                grads_in = result
        return grads_in

    def before(self, node: Node, g: Any) -> Any:
        try:
            return self.call_before(node, g)
        except BaseException as error:
            self.blame(node, error)
            raise

    def call_before(self, node: Node, g: Any) -> Any:
        """Tensor hooks of the node's outputs, then the gradients that are to be kept."""
        hooks = node.hooks
        assert hooks is not None
        if hooks.tensor_pre is not None:
            for nr, table in list(hooks.tensor_pre.items()):
                if node.outs is None:
                    if g is not None:
                        g = self.call_tensor_hooks(table, g)
                elif g[nr] is not None:
                    g[nr] = self.call_tensor_hooks(table, g[nr])
        if hooks.retain is not None:
            for nr, reference in list(hooks.retain.items()):
                t: Any = reference()
                mine = g if node.outs is None else g[nr]
                if t is not None and mine is not None:
                    keep_grad(t, self.as_tensor(mine), self.tensors)
        return g

    def own_pre_hooks(self, node: Node, hooks: Any, g: Any) -> Any:
        """The node's own pre-hooks, which run only if the node does."""
        try:
            return self.call_pre_hooks(hooks, g)
        except BaseException as error:
            self.blame(node, error)
            raise

    # --- the loop -----------------------------------------------------------------------------
    def run(self) -> None:
        pending = self.pending
        tensors = self.tensors
        while True:
            node = self.pop()
            if node is None:
                break
            g = pending[node]
            del pending[node]
            if self.owned:
                self.disown(g)
            if node.hooks is not None:
                g = self.before(node, g)
            if self.wanted is not None and node in self.wanted:
                for target in self.wanted[node]:
                    target.reached = True
                    target.grad = g if node.outs is None else g[target.nr]
                if self.needed is not None and not self.leads_on(node):
                    continue
            if node.hooks is not None and node.hooks.pre:
                g = self.own_pre_hooks(node, node.hooks.pre, g)
            if node.op is None or node.packed:
                outs = self.through_user(node, g)
            else:
                state.busy = not tensors
                try:
                    outs = backward_of(node, g, tensors)
                except BaseException as error:
                    outs = self.rescued(node, g, error)
                state.busy = False
            if node.hooks is not None and node.hooks.post:
                outs = self.after(node, g, outs)
            if self.check is not None:
                self.check.look(node, outs)
            self.hand_on(node, g, outs)
            if not self.keep:
                self.release(node)

    def through_user(self, node: Node, g: Any) -> Any:
        """Run a node that may call the user's code, which may ask for the run it is part of."""
        token = _running.set(self)
        try:
            return backward_of(node, g, self.tensors)
        except BaseException as error:
            return self.rescued(node, g, error)
        finally:
            _running.reset(token)

    def rescued(self, node: Node, g: Any, error: BaseException) -> Any:
        """After a rule that raised: run it again if it was but a warning, else say whose it was."""
        state.busy = False
        if isinstance(error, RuntimeWarning) and node.op is not None and not node.packed:
            return quietly(backward_of, node, g, self.tensors)
        self.blame(node, error)
        raise error

    def blame(self, node: Node, error: BaseException) -> None:
        """Say which forward line an error belongs to that is passing through."""
        if isinstance(error, Exception):
            made = Where(node.code, node.offset)
            if type(node).__name__ not in str(error):  # else the error itself says whose it is
                advise(error, f"in the backward of {type(node).__name__}, made at {made}")
            if self.check is not None:
                self.check.failed(node)

    def hand_on(self, node: Node, g: Any, outs: Any) -> None:
        """Deliver the gradients of a node's inputs, each in its input's shape and dtype."""
        nexts = node.nexts
        shapes = node.shapes
        dtypes = node.dtypes
        nrs = node.nrs
        n = len(nexts)
        plain = node.outs is None and g is not None and not self.tensors
        for i in range(n):
            target = nexts[i]
            if target is None:
                continue
            out = outs[i]
            if out is not None and not node.plain:
                if dtypes is not None:
                    shape = None if shapes is None or i >= len(shapes) else shapes[i]
                    out = fit(out, shape, dtypes[i])
                elif shapes is not None:
                    out = fit(out, shapes[i], None)
                elif plain and out.dtype is not g.dtype:
                    out = fit(out, None, g.dtype)
            if isinstance(target, Node) and not isinstance(target, AccumulateGradBase):
                nr: i64 = 0
                if nrs is not None:
                    nr = nrs[i]
                self.deliver(target, nr, out)
            else:
                leaf: TensorBase = end_of(target)
                self.deliver_leaf(leaf, out, self.fresh(node, g, outs, i, out))

    def fresh(self, node: Node, g: Any, outs: Any, i: i64, out: Any) -> bool:
        """Whether nobody else holds the array `out`, so that a leaf may keep it."""
        if out is g or self.tensors or out is None or out.base is not None or node.packed:
            return False
        if node.op is None:  # a custom function may return any tensor of the user's
            return False
        if node.hooks is not None and node.hooks.post:  # they were shown it, and may keep it
            return False
        for j in range(len(node.nexts)):
            if j != i and outs[j] is out:
                return False
        for value in node.saved:
            if value is out:
                return False
        return True

    def after(self, node: Node, g: Any, outs: Any) -> Any:
        hooks = node.hooks
        assert hooks is not None
        grads_in = tuple(
            [
                self.as_tensor(out) if node.nexts[i] is not None else None
                for i, out in enumerate(outs)
            ]
        )
        grads_out = (
            tuple([self.as_tensor(x) for x in g]) if node.outs is not None else (self.as_tensor(g),)
        )
        try:
            found = self.call_post_hooks(hooks.post, grads_in, grads_out)
        except BaseException as error:
            self.blame(node, error)
            raise
        return [self.as_gradient(x) for x in found]

    def release(self, node: Node) -> None:
        if self.freed is None:
            self.freed = here()
        free_saved(node, self.freed)

    # --- which nodes lead to the inputs that were asked for -----------------------------------
    def plan(self, roots: list[Any]) -> None:
        """Find the nodes through which the targets can be reached; the others do not run."""
        wanted: dict[Any, list[Target]] = {}
        targets = self.targets
        assert targets is not None
        for target in targets:
            wanted.setdefault(target.node, []).append(target)
        self.wanted = wanted
        order = reachable(roots)
        needed: set[Any] = set()
        for node in order:  # oldest first: the ends of all edges are decided already
            if node in wanted:
                needed.add(node)
                continue
            for target_of in node.nexts:
                end = end_of(target_of)
                if end is not None and (end in wanted or end in needed):
                    needed.add(node)
                    break
        self.needed = needed

    def leads_on(self, node: Node) -> bool:
        wanted = self.wanted
        needed = self.needed
        assert wanted is not None and needed is not None
        for target_of in node.nexts:
            end = end_of(target_of)
            if end is not None and (end in wanted or end in needed):
                return True
        return False

    def count_uses(self, roots: list[Any]) -> None:
        """How many gradients each leaf will receive, so that its hooks run once, and in time."""
        uses: dict[Any, int] = {}
        for root in roots:
            end = end_of(root)
            if isinstance(end, TensorBase):
                uses[end] = uses.get(end, 0) + 1
        for node in reachable(roots):
            if self.needed is not None and node not in self.needed:
                continue
            if self.wanted is not None and node in self.wanted and not self.leads_on(node):
                continue
            for target_of in node.nexts:
                end = end_of(target_of)
                if isinstance(end, TensorBase):
                    uses[end] = uses.get(end, 0) + 1
        self.uses = uses


# --- the run that the user's code is part of ------------------------------------------------------
_running: Final[ContextVar[Run | None]] = ContextVar("rushlight_run", default=None)
_runs: Final = count()


def running() -> Run | None:
    """The innermost backward pass that this code was called from, if any."""
    return _running.get()


def task_number(run: Run | None) -> int:
    """A number for a run, the same as long as it lasts and never given again; -1 for none."""
    if run is None:
        return -1
    if run.number < 0:
        run.number = next(_runs)
    return run.number


def will_execute(run: Run, end: Any) -> bool:
    """Whether a run reaches `end`, a node or a leaf, or has reached it."""
    if run.wanted is not None and run.needed is not None:
        return end in run.wanted or end in run.needed
    roots: list[Any] = run.roots if isinstance(run.roots, list) else [run.roots]
    nodes = reachable(roots)
    if isinstance(end, Node):
        return end in nodes
    for root in roots:
        if end_of(root) is end:
            return True
    for node in nodes:
        for target in node.nexts:
            if end_of(target) is end:
                return True
    return False


def end_of(target: Any) -> Any:
    """What an edge leads to: a node, a leaf, or None."""
    if isinstance(target, AccumulateGradBase):
        return target.variable
    return target


def reachable(roots: list[Any]) -> list[Node]:
    """All nodes that the roots lead to, oldest first."""
    seen: set[Any] = set()
    stack: list[Any] = []
    found: list[Node] = []
    for root in roots:
        if isinstance(root, Node) and root not in seen:
            seen.add(root)
            stack.append(root)
    while stack:
        node: Node = stack.pop()
        if isinstance(node, AccumulateGradBase):
            continue
        found.append(node)
        for target in node.nexts:
            if isinstance(target, Node) and target not in seen:
                seen.add(target)
                stack.append(target)
    found.sort(key=_number)
    return found


def _number(node: Node) -> int:
    return node.number


def own_copy(g: Any, like: Any) -> Any:
    """A copy of a gradient in the layout of the leaf it belongs to."""
    if type(g) is _ndarray and like.flags.c_contiguous:
        return g.copy()
    out = v.empty_as(like, g.dtype)
    if out.shape != g.shape:
        return v.copy(g)
    v.overwrite(out, g)
    return out


def keep_grad(t: TensorBase, g: TensorBase, tensors: bool) -> None:
    """`retain_grad`: an interior tensor's gradient is replaced or added to like a leaf's."""
    if t.held is None:
        t.held = g if tensors else wrap(v.copy(g.array))
    elif tensors:
        t.held = t.held + g
    else:
        t.held = wrap(normal(t.held.array + g.array))


def checked_hook_result(given: TensorBase, result: Any) -> TensorBase:
    """What a tensor hook returned, if it can stand in for the gradient it was given."""
    if not isinstance(result, TensorBase):
        raise TypeError(f"expected Tensor, but hook returned '{type(result).__name__}'")
    if result.array.shape != given.array.shape:
        raise RuntimeError("hook has changed the size of value")
    if result.array.dtype != given.array.dtype:
        raise RuntimeError("hook has changed the type of value")
    return result


def backward_scalar(t: TensorBase, keep: bool) -> bool:
    """`t.backward()` for a real scalar with a history, which is nearly always; else False."""
    node = t.node
    if node is None or t.as_view is not None or leaf_hooks.count != 0 or state.active != 0:
        return False
    x = t.array
    if type(x) is not _ndarray or x.ndim != 0:
        return False
    dtype = x.dtype
    if dtype is _F32:
        g: Any = _ONE32.copy()  # hooks may be shown it, and may write into it
    elif dtype is _F64:
        g = _ONE64.copy()
    else:
        return False
    run = Run(keep, False, None, True)
    run.roots = node
    run.deliver(node, t.index, g)
    run.run()
    for leaf, total in run.leaves.items():
        run.settle_leaf(leaf, total)
    return True


def with_tangents() -> bool:
    """Whether gradients computed now may have tangents: they then travel as tensors."""
    return slots.levels != 0 and not muted()


def backward(
    roots: list[Any],
    nrs: list[int],
    grads: list[Any],
    keep: bool,
    tensors: bool,
    targets: list[Target] | None,
    store: bool,
    like: Run | None = None,
) -> Run:
    """Run a backward pass from `roots` (nodes or leaves) with their gradients.

    `like` is a run from the same roots to the same targets: this one goes the same ways.
    """
    record = tensors
    if not tensors and with_tangents():
        tensors = True
        grads = [g if g is None or isinstance(g, TensorBase) else wrap(g) for g in grads]
    run = Run(keep, tensors, targets, store)
    run.record = record
    run.roots = roots
    if like is not None:
        run.wanted = like.wanted
        run.needed = like.needed
    elif targets is not None:
        run.plan(roots)
    if leaf_hooks.count != 0:
        run.count_uses(roots)
    for i in range(len(roots)):
        root = end_of(roots[i])
        if isinstance(root, Node):
            run.deliver(root, nrs[i], grads[i])
        else:
            run.deliver_leaf(root, grads[i], False)
    if tensors or state.active != 0:
        mode = enter(record, False)
        try:
            run.run()
        finally:
            leave(mode)
    else:
        run.run()
    leaves = run.leaves
    if leaves:
        for leaf in list(leaves):
            run.settle_leaf(leaf, leaves[leaf])
    return run
