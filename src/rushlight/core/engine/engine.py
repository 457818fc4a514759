"""The backward pass: from roots and their gradients to the leaves. To be read from top to bottom.

    backward, backward_scalar   start a pass
    GraphTask                   one pass: what it was asked for, and the loop that carries it out
    backward_of, free_saved     one node: running its rule, letting go of what it saved

Hooks are called in `core.engine.hooks`, `.grad` is written in `core.engine.accumulate_grad`, graphs
are walked in `core.engine.traverse`; anomaly mode and profilers are told of each step
(`core.engine.observers`), and `core.engine.ordered` keeps PyTorch's order where users can see it.

Gradients travel as raw arrays; as tensors, recorded, when `create_graph` wants it.

Note [Newest first is enough]
    A node's number is larger than the numbers of all nodes its edges lead to. So the node with
    the largest number among those that hold a gradient has all of it: whatever else could add to
    it would have run before. No counting of dependencies is needed.

Note [No state in the nodes]
    All state of a pass lives in its own `GraphTask`: threads may run over a shared graph, a pass
    may start another inside itself, and an exception leaves nothing behind.

Note [Leaves in time]
    PyTorch adds to a leaf's `.grad` as soon as its gradient is complete. Nobody can tell, unless
    the user's code looks in the middle of a pass. So leaves wait for the end until the first hook,
    custom function or unpacking; before that is called the task counts, once, what the leaves have
    still to receive, and from then on gives each its gradient in time. Hooks on leaves show even
    the order among leaves: where there are some, it is an `OrderedGraphTask` from its start.

Note [Passes inside passes]
    A hook or a custom function may run a backward pass of its own, whose hooks may do so too, and
    so on. Each level is some frames of Python deep, and many of them would meet its recursion
    limit. So the deepest one that a thread should carry continues on a new thread, in the same
    context, and the other waits.
"""

from __future__ import annotations

from contextvars import ContextVar, copy_context
from heapq import heappop, heappush, heapreplace
from itertools import count
from threading import Thread
from typing import Any, Final, cast

import numpy as np

from rushlight.arrays.host import is_sparse, settled
from rushlight.arrays.kernels import add_halves, look
from rushlight.arrays.vocabulary import add
from rushlight.core.call_site import Where
from rushlight.core.engine.accumulate_grad import (
    AccumulateGradBase,
    Deposit,
    accumulate_locked,
    commit,
    leaves_lock,
    other_threads,
    prepare,
    whole_of,
)
from rushlight.core.engine.errors import blame, blame_leaf, broadcast_error, describe_swapped
from rushlight.core.engine.hooks import accumulate_hooked, after_rule, before_rule
from rushlight.core.engine.observers import PassObserver, begins, leaf_hooks, observer_of_pass
from rushlight.core.engine.traverse import dependencies, end_of, leaf_uses, paths_to
from rushlight.core.fp_warnings import quietly
from rushlight.core.grad_mode import state, within
from rushlight.core.graph import (
    UNSOUGHT,
    Extra,
    Node,
    Op,
    OpSpec,
    TensorBase,
    here,
    next_number,
    normal,
    wrap,
)
from rushlight.core.node import anchor, backward_of_packed, fit, materialise
from rushlight.core.node_api import GraphNode
from rushlight.core.recall_rules import backward_on_tensors
from rushlight.core.saved.saved_values import check_saved, unpack
from rushlight.core.transforms.forward_ad import muted
from rushlight.core.transforms.stack import stack
from rushlight.errors import alone
from rushlight.native import i64

DEEPEST: Final = 16  # passes inside one another on one thread
_NOTHING: Final = object()
_ndarray: Final = np.ndarray
_F32: Final = np.dtype(np.float32)
_F64: Final = np.dtype(np.float64)
_ONE32: Final = np.ones((), np.float32)
_ONE64: Final = np.ones((), np.float64)


# --- starting a pass ------------------------------------------------------------------------------
def backward_scalar(t: TensorBase, keep: bool) -> bool:
    """`t.backward()` for a real scalar with a history, which is nearly always; else False."""
    node = t._node
    if node is None or t._view is not None or leaf_hooks.count != 0 or state.active != 0 or begins:
        return False
    x = t._array
    if type(x) is not _ndarray or x.ndim != 0:
        return False
    dtype = x.dtype
    if dtype is _F32:
        g: Any = _ONE32.copy()  # hooks may be shown it, and may write into it
    elif dtype is _F64:
        g = _ONE64.copy()
    else:
        return False
    task = GraphTask(keep, False, None, True)
    task.roots = node
    task.deliver(node, t._output_nr, g)
    task.run()
    task.finish()
    if task.callbacks is not None:
        task.call_back()
    return True


def with_tangents() -> bool:
    """Whether gradients computed now may have tangents: they then travel as tensors."""
    return stack.tangents != 0 and not muted()


def backward(
    roots: list[Any],
    output_nrs: list[int],
    grads: list[Any],
    keep: bool,
    tensors: bool,
    captures: list[Capture] | None,
    stores: bool,
    like: GraphTask | None = None,
    beneath: bool = False,
) -> GraphTask:
    """Run a backward pass from `roots` (nodes or leaves) with their gradients.

    `like` is a pass from the same roots to the same inputs: this one goes the same ways.
    `beneath`: raw arrays, but what is inside batched ones is recorded: see
    `core.transforms.vmap`.
    """
    record = tensors or beneath
    if not tensors and with_tangents():
        tensors = True
        grads = [g if g is None or isinstance(g, TensorBase) else wrap(g) for g in grads]
    ordered = leaf_hooks.count != 0  # asked once: another thread may add one
    task = new_task(ordered, keep, tensors, captures, stores)
    task.record = record
    task.roots = roots
    if like is not None:
        task.executes = like.executes
        task.needed = like.needed
        task.captures = like.captures
    elif captures is not None:
        task.restrict_to(captures)
    if task.executes is not None and len(roots) == 1:
        task.executes.add(end_of(roots[0]))  # the hooks of its tensor run even if nothing follows
    if ordered:
        task.uses = dependencies(roots, task.executes, task.needed)
    for i in range(len(roots)):
        root = end_of(roots[i])
        if isinstance(root, Node):
            task.deliver(root, output_nrs[i], grads[i])
        else:
            task.deliver_leaf(root, grads[i], False)
    if tensors or state.active != 0:
        outer = current_task()
        if outer is not None:
            task.depth = outer.depth + 1
        if task.depth % DEEPEST == DEEPEST - 1:
            execute_on_a_new_thread(task)
        else:
            execute_in_its_mode(task)
    else:
        task.execute()
    if task.callbacks is not None:
        task.call_back()
    return task


def execute_in_its_mode(task: GraphTask) -> None:
    """Run a pass where modes are in force, or its own gradients are recorded."""
    with within(task.record, False):
        task.execute()


def execute_on_a_new_thread(task: GraphTask) -> None:
    """Run a pass with a stack of its own; see Note [Passes inside passes]."""
    outcome: list[BaseException] = []
    thread = Thread(target=copy_context().run, args=(_caught, task, outcome))
    thread.start()
    try:
        thread.join()
    except BaseException:  # an interrupt: the pass must not go on behind the caller's back
        thread.join()
        raise
    if outcome:
        raise outcome.pop()  # a list that held it would close a cycle through its traceback


def _caught(task: GraphTask, outcome: list[BaseException]) -> None:
    try:
        execute_in_its_mode(task)
    except BaseException as error:  # handed to the thread that waits
        outcome.append(error)


# --- the pass -------------------------------------------------------------------------------------
class Capture:
    """An input whose gradient is asked for: a leaf, or output `nr` of a node."""

    def __init__(self, node: Any, nr: int) -> None:
        self.node = node
        self.nr = nr
        self.grad: Any = None


class GraphTask:
    """One backward pass.

    Where it is to reach given inputs, `restrict_to` fills `executes`, the nodes and leaves that
    anything is delivered to, `needed`, those of them whose rule runs, and `captures`, those whose
    gradient is handed over. Otherwise these are None, and everything runs.
    """

    def __init__(
        self, keep: bool, tensors: bool, inputs: list[Capture] | None, stores: bool
    ) -> None:
        # what was asked for
        self.keep = keep  # what nodes saved
        self.tensors = tensors  # gradients travel as tensors, not as raw arrays
        self.record = tensors  # tensors, but not recorded: gradients that carry tangents
        self.stores = stores  # into `.grad` of the leaves
        self.inputs = inputs
        self.roots: Any = None  # where it started: a node, or a list of nodes and leaves
        self.executes: set[Any] | None = None
        self.needed: set[Any] | None = None
        self.captures: dict[Any, list[Capture]] | None = None
        # what is known on the way
        self.pending: dict[Node, Any] = {}  # gradients that nodes have received
        self.leaves: dict[Any, Any] = {}  # and leaves
        self.owned: set[int] = set()  # ids of pending sums this pass may add into
        self.views: set[int] = set()  # ids of views for leaves, held by this pass alone
        self.uses: dict[Any, int] | None = None  # what leaves have still to receive, if counted
        self.newest: Node | None = None  # of the ready nodes; the others are in the heap
        self.heap: list[tuple[i64, i64, Node]] = []
        self.ties: i64 = 0
        self.freed_at: Where | None = None
        # who looks on
        self.observer: PassObserver | None = None
        self.callbacks: list[Any] | None = None  # what users want called when it is over
        self.depth: int = 0  # how many passes it is inside of
        self.number: int = -1  # given when someone asks; see `task_id`

    def restrict_to(self, inputs: list[Capture]) -> None:
        """Let only those nodes run that lead to given inputs."""
        ends = [target.node for target in inputs]
        roots: list[Any] = self.roots
        self.executes, self.needed = paths_to(ends, roots, self.stores)
        captures: dict[Any, list[Capture]] = {}
        if not self.stores:
            for target in inputs:
                captures.setdefault(target.node, []).append(target)
        self.captures = captures

    # --- the loop ---------------------------------------------------------------------------------
    def execute(self) -> None:
        """The whole pass, observed by those who want to."""
        if begins:
            self.observer = observer_of_pass()
        try:
            self.run()
            self.finish()
        finally:
            if self.observer is not None:
                self.observer.finish()

    def run(self) -> None:
        """Run the ready nodes, newest first, until there are none; what leaves get is kept."""
        pending = self.pending
        observer = self.observer
        while True:
            node = self.pop()
            if node is None:
                break
            if observer is not None:
                observer.before_node(node)
            g = pending[node]
            del pending[node]
            if self.owned:
                self.disown(g)
            if self.executes is not None and not self.should_execute(node, g):
                continue
            if node._hooks is not None:
                g = before_rule(self, node, g, True)
            if observer is not None:
                observer.before_rule(node, g)
            outs = self.evaluate(node, g)
            if observer is not None:
                observer.after_rule(node, outs)
            if node._hooks is not None or observer is not None:
                outs = after_rule(self, node, g, outs)
            self.propagate(node, g, outs)
            if not self.keep:
                if self.freed_at is None:
                    self.freed_at = here()
                free_saved(node, self.freed_at)

    def push(self, node: Node) -> None:
        """A node has received its first gradient: it waits for its turn."""
        newest = self.newest
        if newest is None:
            self.newest = node
        elif node._seq_nr > newest._seq_nr:
            self.newest = node
            self.shelve(newest)
        else:
            self.shelve(node)

    def shelve(self, node: Node) -> None:
        self.ties += 1
        heappush(self.heap, (-node._seq_nr, self.ties, node))

    def pop(self) -> Node | None:
        """The newest ready node, which has all of its gradient."""
        newest = self.newest
        self.newest = None
        heap = self.heap
        if heap:
            if newest is None:
                return heappop(heap)[2]
            if -heap[0][0] > newest._seq_nr:
                self.ties += 1
                return heapreplace(heap, (-newest._seq_nr, self.ties, newest))[2]
        return newest

    def should_execute(self, node: Node, g: Any) -> bool:
        """In a pass to given inputs: whether the node's rule is to run. Its gradient is handed
        over here; before its hooks if it goes on, else behind them, as in PyTorch."""
        needed = self.needed
        captures = self.captures
        on = needed is None or node in needed
        if not on and node._hooks is not None:
            g = before_rule(self, node, g, False)
        if captures is not None and node in captures:
            self.capture(node, list(g) if isinstance(g, list) else g)
        return on

    # --- one node's rule --------------------------------------------------------------------------
    def evaluate(self, node: Node, g: Any) -> Any:
        """The gradients of a node's inputs, by its rule."""
        if node._op is None or node._has_packed:
            return self.evaluate_user_code(node, g)
        state.busy = not self.tensors
        try:
            outs = backward_of(node, g, self.tensors)
        except BaseException as error:
            state.busy = False
            outs = self.rescue(node, g, error)
        state.busy = False
        return outs

    def evaluate_user_code(self, node: Node, g: Any) -> Any:
        """Run a node that may call the user's code, which may ask for the pass it is part of."""
        if node._has_packed or cast(GraphNode, node)._calls_user():
            self.count_leaf_uses(node)
        here = Current(_current.get())
        token = _current.set(here)
        try:
            here.task = self
            return backward_of(node, g, self.tensors)
        except BaseException as error:
            return self.rescue(node, g, error)
        finally:
            here.task = None
            _current.reset(token)

    def rescue(self, node: Node, g: Any, error: BaseException) -> Any:
        """After a rule that raised: run it again if it was but a warning, else say whose it was."""
        state.busy = False
        if isinstance(error, RuntimeWarning) and node._op is not None and not node._has_packed:
            return quietly(backward_of, node, g, self.tensors)
        said: Any = None if node._op is None else broadcast_error(error)
        try:
            if said is not None:
                self.blame(node, said)
                raise alone(said) from None
            self.blame(node, error)
            raise error
        finally:  # their traceback leads to this frame, which would keep the graph in a cycle
            del error, said

    def blame(self, node: Node, error: BaseException) -> None:
        """Say which forward line an error belongs to that is passing through."""
        blame(self, node, error)

    # --- handing gradients on ---------------------------------------------------------------------
    def propagate(self, node: Node, g: Any, outs: Any) -> None:
        """Deliver the gradients of a node's inputs, each in its input's shape and dtype."""
        next_edges = node._next_edges
        output_nrs = node._output_nrs
        n = len(next_edges)
        for i in range(n):
            target = next_edges[i]
            if target is None:
                continue
            out = outs[i]
            if out is not None and not node._fits_as_is:
                out = self.fitted(node, i, out, g)
            if isinstance(target, Node) and not isinstance(target, AccumulateGradBase):
                nr: i64 = 0
                if output_nrs is not None:
                    nr = output_nrs[i]
                self.deliver(target, nr, out)
                continue
            leaf: TensorBase = target.variable if isinstance(target, AccumulateGradBase) else target
            if leaf._extra is not None and leaf._extra.swapped > node._seq_nr:
                self.refuse_swapped(leaf, node)
            self.deliver_leaf(leaf, out, self.is_fresh(node, g, outs, i, out))

    def fitted(self, node: Node, i: i64, out: Any, g: Any) -> Any:
        """A gradient in the shape and dtype of the input it is for."""
        shapes = node._input_shapes
        dtypes = node._input_dtypes
        shape: Any = None if shapes is None or i >= len(shapes) else shapes[i]
        dtype: Any = None if dtypes is None else dtypes[i]
        if self.tensors:
            return fit(out, shape, dtype)
        if shapes is None and dtypes is None and node._output_metas is None and g is not None:
            dtype = g.dtype
        if (dtype is None or out.dtype is dtype) and (shape is None or out.shape == shape):
            return out
        return fit(out, shape, dtype)

    def as_delivered(self, node: Node, g: Any, outs: Any) -> list[Any]:
        """Gradients of a node's inputs as they will be delivered; None for those that won't."""
        found: list[Any] = []
        op: Any = node._op
        whole = op is None or op.plan.variadic  # PyTorch computes all of them or none
        for i in range(len(node._next_edges)):
            end = end_of(node._next_edges[i])
            out = outs[i]
            if end is None or (
                not whole and self.executes is not None and end not in self.executes
            ):
                out = None
            found.append(out if out is None or node._fits_as_is else self.fitted(node, i, out, g))
        return found

    def deliver(self, target: Node, nr: i64, g: Any) -> None:
        """Add `g` to what output `nr` of the node `target` has received."""
        if self.executes is not None and target not in self.executes:
            return
        pending = self.pending
        metas = target._output_metas
        if metas is None:
            old = pending.get(target, _NOTHING)
            if old is _NOTHING:
                pending[target] = g
                self.push(target)
            elif g is not None:
                pending[target] = self.added(old, g)
            return
        received: Any = pending.get(target)
        if received is None:
            received = [None] * len(metas)
            pending[target] = received
            self.push(target)
        if g is not None:
            received[nr] = self.added(received[nr], g)

    def deliver_leaf(self, leaf: TensorBase, g: Any, fresh: bool) -> None:
        """Add `g` to what a leaf has received; `fresh`: see `is_fresh`."""
        if self.executes is not None and leaf not in self.executes:
            return
        leaves = self.leaves
        if g is not None:
            if leaf in leaves and leaves[leaf] is not None:
                self.views.discard(id(leaves[leaf]))
                g = self.added(leaves[leaf], g)
            elif fresh:
                if g.base is None:
                    self.owned.add(id(g))
                else:
                    self.views.add(id(g))
            leaves[leaf] = g
        elif leaf not in leaves:
            leaves[leaf] = None
        if self.uses is not None:
            left = self.uses.get(leaf, 1) - 1
            self.uses[leaf] = left
            if left == 0:
                self.complete(leaf)

    def added(self, old: Any, g: Any) -> Any:
        """The sum of two gradients; in place where the first is this pass's own."""
        if old is None:
            return g
        if self.tensors:
            return old + g
        if type(old) is not np.ndarray and is_sparse(old):
            return g + old  # the order of PyTorch, in which elements at one place stay apart
        mine = id(old) in self.owned
        if type(old) is np.ndarray and old.dtype.itemsize == 2:
            sum_of_halves = add_halves(old, g)
            if sum_of_halves is not None:
                self.owned.discard(id(old))
                self.owned.add(id(sum_of_halves))
                return sum_of_halves
        state.busy = True
        try:
            total = old
            if mine:
                total += g
            else:
                total = old + g
        except RuntimeWarning:  # see Note [Busy]; what was added in place is added
            state.busy = False
            if not mine:
                total = quietly(add, old, g)
        finally:
            state.busy = False
        if mine:
            return total  # a batch of arrays is another one after adding to it
        total = normal(total)
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

    def is_fresh(self, node: Node, g: Any, outs: Any, i: i64, out: Any) -> bool:
        """Whether nobody else holds the array `out`, so that a leaf may keep it. What it is a view
        of may be held: see `whole_of`."""
        if out is g or self.tensors or out is None or node._has_packed:
            return False
        if node._op is None:  # a custom function may return any tensor of the user's
            return False
        if node._hooks is not None and node._hooks.post:  # they were shown it, and may keep it
            return False
        if isinstance(g, list):  # of a node with several outputs, one of which may be handed on
            for given in g:
                if given is out:
                    return False
        for j in range(len(node._next_edges)):
            if j != i and outs[j] is out:
                return False
        for value in node._kept_values:
            if value is out:
                return False
        return True

    def refuse_swapped(self, leaf: TensorBase, node: Node) -> None:
        """An edge leads to a leaf that has become another tensor since the edge was made."""
        if self.executes is not None and leaf not in self.executes:
            return
        error = describe_swapped()
        self.blame(node, error)
        raise error

    # --- what was asked for -----------------------------------------------------------------------
    def capture(self, end: Any, g: Any) -> None:
        """Hand over the gradient of a node or leaf that was asked for."""
        captures = self.captures
        assert captures is not None
        for target in captures[end]:
            several = isinstance(end, Node) and end._output_metas is not None
            target.grad = g[target.nr] if several else g

    def finish(self) -> None:
        """Give the leaves that waited their gradients: in one piece, unless someone looks."""
        if self.leaf_by_leaf():
            for leaf, g in self.leaves.items():
                self.accumulate_leaf(leaf, g)
        elif other_threads() > 0:
            with leaves_lock:  # what is read must still be there when it is written
                self.accumulate_leaves()
        else:
            self.accumulate_leaves()

    def leaf_by_leaf(self) -> bool:
        """Whether someone is called as the leaves get their gradients."""
        if self.uses is not None or (self.observer is not None and self.observer.sees_leaves()):
            return True
        if leaf_hooks.count == 0:
            return False
        for leaf in self.leaves:
            if leaf._extra is not None:
                return True
        return False

    def accumulate_leaves(self) -> None:
        """`accumulate_leaf` of all leaves that wait, none of which has hooks; see Note [All leaves
        or none] in `core.engine.accumulate_grad`."""
        deposits: list[Deposit] = []
        needed = self.needed
        for leaf, g in self.leaves.items():
            mine = id(g) in self.owned
            self.owned.discard(id(g))
            if id(g) in self.views:
                whole = whole_of(g)
                if whole is not None:
                    g, mine = whole, True
            extra: Extra | None = leaf._extra
            try:
                if extra is not None and extra.grad_dtype is not None and g is not None:
                    g = fit(g, None, extra.grad_dtype)
                if self.captures is not None and leaf in self.captures:
                    self.capture(leaf, g)
                if g is not None and self.stores and (needed is None or leaf in needed):
                    deposit = prepare(leaf, g, mine, self.tensors, self.record)
                    if deposit is not None:
                        deposits.append(deposit)
            except BaseException as error:
                if extra is not None:
                    blame_leaf(self, leaf, error)
                raise
        commit(deposits)

    def accumulate_leaf(self, leaf: TensorBase, g: Any) -> None:
        """The gradient of a leaf is complete: run its hooks, then store or hand it over."""
        if self.observer is not None:
            self.observer.before_leaf(g, self.stores_into(leaf))
        extra = leaf._extra
        mine = id(g) in self.owned
        self.owned.discard(id(g))  # its id must not outlive it here
        if extra is None:
            if self.captures is not None and leaf in self.captures:
                self.capture(leaf, g)
            if g is not None and self.stores_into(leaf):
                self.store(leaf, g, mine)
            return
        try:
            if extra.grad_dtype is not None and g is not None:
                g = fit(g, None, extra.grad_dtype)
            accumulate_hooked(self, leaf, extra, g, mine)
        except BaseException as error:
            blame_leaf(self, leaf, error)
            raise

    def store(self, leaf: TensorBase, g: Any, mine: bool) -> None:
        """Add a gradient to `.grad`; `mine`: nobody else holds it."""
        accumulate_locked(leaf, g, mine, self.tensors, self.record)

    def stores_into(self, leaf: TensorBase) -> bool:
        """Whether the gradient of a leaf is added to its `.grad`."""
        return self.stores and (self.needed is None or leaf in self.needed)

    def complete(self, leaf: TensorBase) -> None:
        """All of a leaf's gradient is there, and its uses are counted: it gets it now."""
        self.accumulate_leaf(leaf, self.leaves.pop(leaf))

    def count_leaf_uses(self, node: Node) -> None:
        """The user's code is about to be called, in `node`: see Note [Leaves in time]."""
        if self.uses is not None:
            return
        starts: list[Any] = [node]
        starts.extend(self.pending)
        uses = leaf_uses(starts, self.executes, self.needed)
        self.uses = uses
        for leaf in list(self.leaves):
            if leaf not in uses:
                self.complete(leaf)

    # --- the user's code --------------------------------------------------------------------------
    def call(self, function: Any, *args: Any) -> Any:
        """Call the user's code in the grad mode of the pass."""
        here = Current(_current.get())
        with within(self.record, False):
            token = _current.set(here)
            try:
                here.task = self
                return function(*args)
            finally:
                here.task = None
                _current.reset(token)

    def call_back(self) -> None:
        """Call what was to be called when the pass is over; it may ask for more."""
        waiting = self.callbacks
        at = 0
        while waiting is not None and at < len(waiting):
            self.call(waiting[at])
            at += 1

    def as_tensor(self, g: Any) -> Any:
        """A gradient as the user's code gets it."""
        if g is None or isinstance(g, TensorBase):
            return g
        return wrap(normal(g))

    def as_gradient(self, t: Any) -> Any:
        """What the user's code gave, as gradients travel in this pass."""
        if t is None or self.tensors or not isinstance(t, TensorBase):
            return t
        return settled(t._array)


def new_task(
    ordered: bool, keep: bool, tensors: bool, captures: list[Capture] | None, stores: bool
) -> GraphTask:
    """A pass; with `ordered` one that keeps PyTorch's order, which hooks on leaves show."""
    if not ordered:
        return GraphTask(keep, tensors, captures, stores)
    from rushlight.core.engine.ordered import OrderedGraphTask  # it is a GraphTask itself

    return cast(GraphTask, OrderedGraphTask(keep, tensors, captures, stores))


# --- which pass runs here -------------------------------------------------------------------------
class Current:
    """A call of the user's code from a pass. After an interrupt the context may still hold one
    that was left: it has no pass any more."""

    def __init__(self, outer: Current | None) -> None:
        self.outer = outer
        self.task: GraphTask | None = None


_current: Final[ContextVar[Current | None]] = ContextVar("rushlight_task", default=None)
_numbers: Final = count()


def current_task() -> GraphTask | None:
    """The innermost backward pass that this code was called from, if any."""
    here = _current.get()
    while here is not None and here.task is None:
        here = here.outer
    return None if here is None else here.task


def task_id(task: GraphTask | None) -> int:
    """A number for a pass, the same as long as it lasts and never given again; -1 for none."""
    if task is None:
        return -1
    if task.number < 0:
        task.number = next(_numbers)
    return task.number


def queue_callback(callback: Any) -> None:
    """Have the pass that this code was called from call something when it is over."""
    task = current_task()
    if task is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    if task.callbacks is None:
        task.callbacks = []
    task.callbacks.append(callback)


# --- one node -------------------------------------------------------------------------------------
def backward_of(node: Node, g: Any, tensors: bool) -> Any:
    """Gradients of a node's inputs from `g`, the gradient of its output (a list if it has several).

    With `tensors` everything is a tensor and is recorded; otherwise all are raw arrays.
    """
    op: Any = node._op
    if op is None:
        return cast(GraphNode, node)._run(g, tensors)
    metas = node._output_metas
    if metas is not None:
        g = materialise(g, metas)
    if g is None:
        return [None] * len(node._next_edges)
    saved = node._kept_values
    plan: OpSpec = op.plan
    if plan.saves:
        if node._needs_grad_mask == 0:
            return [None] * len(node._next_edges)  # no edge leads anywhere, and nothing was kept
        if node._freed_at is not None or was_written(node):
            check_saved(node)  # raises
        if node._has_packed:
            return backward_of_packed(node, g, tensors)
        if tensors:
            saved = tuple([unpack(node, j) for j in range(len(saved))])
    n = len(saved)
    mark: i64 = next_number() if tensors else 0
    if not tensors:
        known: Op = op
        kernel = known.vjp_kernel
        if kernel is UNSOUGHT:
            known.seek_vjp_kernel()
            kernel = known.vjp_kernel
        if kernel is not None:
            if not plan.one_input:
                made = kernel(node._needs_grad_mask, g, *saved)
                if made is not None:
                    return made
            else:
                if n == 1:
                    made = kernel(g, saved[0])
                elif n == 0:
                    made = kernel(g)
                else:
                    made = kernel(g, *saved)
                if made is not None:
                    return (made,)
    elif plan.asked_once and node._compiled_op is None:
        outs = backward_on_tensors(node, op, g, saved)
        return anchor(node, outs, saved, mark) if n != 0 else outs
    rule = node._compiled_op
    if rule is not None:
        if n == 2:
            return rule.vjp_binary(node, g, saved[0], saved[1])
        return rule.vjp_binary(node, g, None, None)
    if n == 0:
        outs = op.vjp(node, g)
        if not tensors and cast(Op, op).for_one_layout:
            learn_view(op, g, outs)
    elif n == 1:
        outs = op.vjp(node, g, saved[0])
    elif n == 2:
        outs = op.vjp(node, g, saved[0], saved[1])
    else:
        outs = op.vjp(node, g, *saved)
    return anchor(node, outs, saved, mark) if tensors and n != 0 else outs


def learn_view(op: Op, g: Any, outs: Any) -> None:
    """Let an op that serves one layout know how its gradient lies, if that is a view of `g`; else
    the kernel for its shape: next time there is no rule to run."""
    op.for_one_layout = False
    if (op.vjp_kernel is None or op.vjp_kernel is UNSOUGHT) and len(outs) == 1:
        out = outs[0]
        if out is not None:
            found = look(g, out)
            op.vjp_kernel = op.vjp_kernel_for(out.shape) if found is None else found


def was_written(node: Node) -> bool:
    """Whether anything that a node saved was written since; see Note [Kept versions]."""
    version: i64 = 0
    first = node._first_storage
    if first is not None:
        version = first.version
        second = node._second_storage
        if second is not None:
            version += second.version
            for storage in node._other_storages:
                version += storage.version
    return version != node._version_sum


def free_saved(node: Node, where: Where) -> None:
    """Let go of what a node keeps; `where` is the call that no longer needs it."""
    op: Any = node._op
    if op is None:
        cast(GraphNode, node)._release(where)
        return
    plan: OpSpec = op.plan
    if plan.saves:
        node._freed_at = where
        node._kept_values = ()
        node._first_storage = None
        node._second_storage = None
        node._other_storages = ()
        node._version_sum = 0
