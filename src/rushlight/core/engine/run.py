"""One backward pass: delivering gradients, running nodes newest first, and giving leaves theirs.

Note [Newest first is enough]
    A node's number is larger than the numbers of all nodes its edges lead to. So the node with
    the largest number among those that hold a gradient has all of it: whatever else could add to
    it would have run before. No counting of dependencies is needed.

Note [No state in the nodes]
    All state of a run lives in its own `Run`: threads may run over a shared graph, a run may
    start another inside itself, and an exception leaves nothing behind.

Note [Leaves in time]
    PyTorch adds to a leaf's `.grad` as soon as its gradient is complete. Nobody can tell, unless
    the user's code looks in the middle of a pass. So leaves wait for the end until the first hook,
    custom function or unpacking; before that is called the run counts, once, what the leaves have
    still to receive, and from then on gives each its gradient in time. Hooks on leaves show even
    the order among leaves: where there are some, the run is an `OrderedRun` from its start.

Started by `core.engine.engine`. Hooks are called in `core.engine.call_hooks`, `.grad` is written in
`core.engine.accumulate_grad`, graphs are walked in `core.engine.traverse`: none of them is on the
way of an ordinary pass.
"""

from __future__ import annotations

import re
from heapq import heappop, heappush, heapreplace
from typing import Any, Final

from rushlight.arrays.vocabulary import add
from rushlight.core.call_site import Where
from rushlight.core.engine.accumulate_grad import Deposit, _threads, commit, prepared, store
from rushlight.core.engine.accumulate_grad import _lock as _leaves_lock
from rushlight.core.engine.call_hooks import (
    call_post_accumulate,
    call_post_hooks,
    call_pre_hooks,
    call_tensor_hooks,
    given_to,
    has_user_code,
    tensor_hooks_of,
)
from rushlight.core.engine.task import Pass, Place, Target, now
from rushlight.core.engine.traverse import end_of, leaf_uses
from rushlight.core.fp_warnings import quietly
from rushlight.core.grad_mode import state
from rushlight.core.graph import Extra, Node, TensorBase, here, normal
from rushlight.core.node import AccumulateGradBase, CopySlicesBase, backward_of, fit, free_saved
from rushlight.core.node_api import accumulate_of, edges_shown
from rushlight.errors import advise, broadcast_mismatch
from rushlight.native import i64

__all__ = ["Run", "Watch", "watch"]

_NOTHING: Final = object()


class Watch:
    """Who looks over each node's shoulder: `look(node, outs)` after its rule, `failed(node)` if
    it raised. None but in anomaly mode. While a profiler is on, `profile()` gives who times a pass
    of this thread, or None."""

    def __init__(self) -> None:
        self.check: Any = None
        self.profile: Any = None


watch: Final = Watch()


class Run(Pass):
    """One backward pass."""

    def __init__(
        self, keep: bool, tensors: bool, targets: list[Target] | None, store: bool
    ) -> None:
        super().__init__(keep, tensors, targets, store)
        self.pending: dict[Node, Any] = {}
        self.leaves: dict[Any, Any] = {}
        self.owned: set[int] = set()  # ids of pending sums this run may add into
        self.uses: dict[Any, int] | None = None  # what leaves have still to receive, if counted
        self.best: Node | None = None
        self.heap: list[tuple[i64, i64, Node]] = []
        self.ties: i64 = 0
        self.freed: Where | None = None
        self.check: Any = watch.check
        self.profile: Any = None  # told of what begins and ends; see `Watch`

    # --- ready nodes --------------------------------------------------------------------------
    def push(self, node: Node) -> None:
        best = self.best
        if best is None:
            self.best = node
        elif node._seq_nr > best._seq_nr:
            self.best = node
            self.shelve(best)
        else:
            self.shelve(node)

    def shelve(self, node: Node) -> None:
        self.ties += 1
        heappush(self.heap, (-node._seq_nr, self.ties, node))

    def pop(self) -> Node | None:
        best = self.best
        self.best = None
        heap = self.heap
        if heap:
            if best is None:
                return heappop(heap)[2]
            if -heap[0][0] > best._seq_nr:
                self.ties += 1
                return heapreplace(heap, (-best._seq_nr, self.ties, best))[2]
        return best

    # --- delivering ---------------------------------------------------------------------------
    def deliver(self, target: Node, nr: i64, g: Any) -> None:
        """Add `g` to what output `nr` of the node `target` has received."""
        if self.executes is not None and target not in self.executes:
            return
        pending = self.pending
        outs = target._output_metas
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
        """Add `g` to what a leaf has received; `fresh`: nobody else holds the array."""
        if self.executes is not None and leaf not in self.executes:
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
                self.complete(leaf)

    def complete(self, leaf: TensorBase) -> None:
        """All of a leaf's gradient is there, and its uses are counted: it gets it now."""
        self.accumulate_leaf(leaf, self.leaves.pop(leaf))

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
    def accumulate_leaf(self, leaf: TensorBase, g: Any) -> None:
        """The gradient of a leaf is complete: run its hooks, then store or hand it over."""
        if self.profile is not None:
            self.profile.leaf(g, self.store and (self.needed is None or leaf in self.needed))
        extra = leaf._extra
        # its id must not outlive it here
        mine = id(g) in self.owned
        self.owned.discard(id(g))
        if extra is None:
            if self.captures is not None and leaf in self.captures:
                self.capture(leaf, g)
            if g is not None and self.store and (self.needed is None or leaf in self.needed):
                store(self, leaf, g, mine)
            return
        try:
            self.accumulate_hooked_leaf(leaf, extra, g, mine)
        except BaseException as error:
            self.blame_leaf(leaf, error)
            raise

    def settle_together(self) -> None:
        """`accumulate_leaf` of all leaves that wait, none of which has hooks, in one piece."""
        if _threads() > 0:
            with _leaves_lock:  # what is read must still be there when it is written
                self.deposit_all()
        else:
            self.deposit_all()

    def deposit_all(self) -> None:
        deposits: list[Deposit] = []
        for leaf, g in self.leaves.items():
            mine = id(g) in self.owned
            self.owned.discard(id(g))
            extra: Extra | None = leaf._extra
            try:
                if extra is not None and extra.grad_dtype is not None and g is not None:
                    g = fit(g, None, extra.grad_dtype)
                if self.captures is not None and leaf in self.captures:
                    self.capture(leaf, g)
                if g is not None and self.store and (self.needed is None or leaf in self.needed):
                    deposit = prepared(self, leaf, g, mine)
                    if deposit is not None:
                        deposits.append(deposit)
            except BaseException as error:
                if extra is not None:
                    self.blame_leaf(leaf, error)
                raise
        commit(deposits)

    def accumulate_hooked_leaf(self, leaf: TensorBase, extra: Extra, g: Any, mine: bool) -> None:
        """`accumulate_leaf` of a leaf that may have hooks."""
        if extra.grad_dtype is not None and g is not None:
            g = fit(g, None, extra.grad_dtype)
        if extra.hooks:
            mine = False  # what hooks were shown they may keep
            g = call_tensor_hooks(self, extra.hooks, g)
        if self.captures is not None and leaf in self.captures:
            self.capture(leaf, g)
        if not self.store or (self.needed is not None and leaf not in self.needed):
            return
        node: Any = None if extra.accumulate is None else extra.accumulate()
        hooks: Any = None if node is None else node._hooks
        if hooks is not None and (hooks.pre or hooks.post):
            mine = False
            if hooks.pre:
                g = call_pre_hooks(self, None, hooks.pre, g)
        if g is not None:
            store(self, leaf, g, mine)
        if extra.post_accumulate:
            call_post_accumulate(self, extra.post_accumulate, leaf)
        if hooks is not None and hooks.post:
            call_post_hooks(self, hooks.post, (), given_to(self, None, g))

    def capture(self, end: Any, g: Any) -> None:
        """Hand over the gradient of a node or leaf that was asked for."""
        captures = self.captures
        assert captures is not None
        for target in captures[end]:
            several = isinstance(end, Node) and end._output_metas is not None
            target.grad = g[target.nr] if several else g

    def count_leaf_uses(self, node: Node) -> None:
        """The user's code is about to be called, in `node`: see Note [Leaves in time]."""
        if self.uses is not None:
            return
        starts: list[Any] = [node]
        starts.extend(self.pending)
        uses = leaf_uses(self, starts)
        self.uses = uses
        for leaf in list(self.leaves):
            if leaf not in uses:
                self.complete(leaf)

    # --- hooks --------------------------------------------------------------------------------
    def should_execute(self, node: Node, g: Any) -> bool:
        """In a pass to given inputs: whether the node's rule is to run. Its gradient is handed
        over here; before its hooks if it goes on, else behind them, as in PyTorch."""
        needed = self.needed
        captures = self.captures
        on = needed is None or node in needed
        if not on and node._hooks is not None:
            g = self.before(node, g, False)
        if captures is not None and node in captures:
            self.capture(node, list(g) if isinstance(g, list) else g)
        return on

    def before(self, node: Node, g: Any, own: bool) -> Any:
        """Hooks of the node's tensors and, with `own`, its own pre-hooks."""
        hooks = node._hooks
        assert hooks is not None
        if has_user_code(hooks):
            self.count_leaf_uses(node)
        try:
            g = tensor_hooks_of(self, node, hooks, g)
            if own and hooks.pre:
                g = call_pre_hooks(self, node, hooks.pre, g)
        except BaseException as error:
            self.blame(node, error)
            raise
        return g

    def after(self, node: Node, g: Any, outs: Any) -> Any:
        """The node's post-hooks, which see gradients as the inputs will get them."""
        hooks = node._hooks
        assert hooks is not None
        self.count_leaf_uses(node)
        seen = edges_shown(node)
        grads_in = tuple([self.as_tensor(outs[i]) for i in seen])
        try:
            found = call_post_hooks(self, hooks.post, grads_in, given_to(self, node, g))
        except BaseException as error:
            self.blame(node, error)
            raise
        for at, i in enumerate(seen):
            outs[i] = self.as_gradient(found[at])
        return outs

    def trimmed(self, node: Node, g: Any, outs: Any) -> Any:
        """Gradients of a node's inputs as they will be delivered; None for those that won't."""
        found: list[Any] = []
        plan_of: Any = None if node._op is None else node._op.plan
        whole = node._op is None or plan_of.variadic  # PyTorch computes all of them or none
        for i in range(len(node._next_edges)):
            end = end_of(node._next_edges[i])
            out = outs[i]
            if end is None or (
                not whole and self.executes is not None and end not in self.executes
            ):
                out = None
            found.append(out if out is None or node._fits_as_is else self.fitted(node, i, out, g))
        return found

    # --- the loop -----------------------------------------------------------------------------
    def run(self) -> None:
        pending = self.pending
        tensors = self.tensors
        profile = self.profile
        while True:
            node = self.pop()
            if node is None:
                break
            if profile is not None:
                profile.begin(node)
            g = pending[node]
            del pending[node]
            if self.owned:
                self.disown(g)
            if self.executes is not None and not self.should_execute(node, g):
                continue
            if node._hooks is not None:
                g = self.before(node, g, True)
            if profile is not None:
                profile.rule(node, g)
            if node._op is None or node._has_packed:
                outs = self.through_user(node, g)
            else:
                state.busy = not tensors
                try:
                    outs = backward_of(node, g, tensors)
                except BaseException as error:
                    outs = self.rescued(node, g, error)
                state.busy = False
            if profile is not None:
                profile.done(outs)
            if self.check is not None or node._hooks is not None:
                outs = self.watched(node, g, outs)
            self.propagate(node, g, outs)
            if not self.keep:
                self.release(node)

    def watched(self, node: Node, g: Any, outs: Any) -> Any:
        """After a rule, where someone looks: the node's own hooks, or anomaly mode."""
        hooks = node._hooks
        post = hooks is not None and bool(hooks.post)
        if post or self.check is not None:
            outs = self.trimmed(node, g, outs)
        if post:
            outs = self.after(node, g, outs)
        if self.check is not None:
            self.check.check_outputs(node, outs)
        return outs

    def through_user(self, node: Node, g: Any) -> Any:
        """Run a node that may call the user's code, which may ask for the run it is part of."""
        if node._has_packed or not isinstance(node, CopySlicesBase) or node._calls_user():
            self.count_leaf_uses(node)
        place = Place(now.get())
        token = now.set(place)
        try:
            place.run = self
            return backward_of(node, g, self.tensors)
        except BaseException as error:
            return self.rescued(node, g, error)
        finally:
            place.run = None
            now.reset(token)

    def rescued(self, node: Node, g: Any, error: BaseException) -> Any:
        """After a rule that raised: run it again if it was but a warning, else say whose it was."""
        state.busy = False
        if isinstance(error, RuntimeWarning) and node._op is not None and not node._has_packed:
            return quietly(backward_of, node, g, self.tensors)
        said = mismatch(error) if node._op is not None and isinstance(error, ValueError) else None
        try:
            if said is not None:
                self.blame(node, said)
                raise said from error
            self.blame(node, error)
            raise error
        finally:  # their traceback leads to this frame, which would keep the graph in a cycle
            del error, said

    def blame(self, node: Node, error: BaseException) -> None:
        """Say which forward line an error belongs to that is passing through."""
        if isinstance(error, Exception):
            made = str(Where(node._code, node._code_offset))
            if made not in str(error):  # else the error itself says whose it is
                advise(error, f"in the backward of {type(node).__name__}, made at {made}")
            if self.check is not None:
                self.check.failed(node)

    def blame_leaf(self, leaf: TensorBase, error: BaseException) -> None:
        """Say whose hooks they were."""
        if isinstance(error, Exception):
            shape = list(leaf._array.shape)
            advise(error, f"in giving a leaf of shape {shape} its gradient, or in its hooks")
            if self.check is not None:
                self.check.failed(accumulate_of(leaf))

    def propagate(self, node: Node, g: Any, outs: Any) -> None:
        """Deliver the gradients of a node's inputs, each in its input's shape and dtype."""
        nexts = node._next_edges
        nrs = node._output_nrs
        n = len(nexts)
        for i in range(n):
            target = nexts[i]
            if target is None:
                continue
            out = outs[i]
            if out is not None and not node._fits_as_is:
                out = self.fitted(node, i, out, g)
            if isinstance(target, Node) and not isinstance(target, AccumulateGradBase):
                nr: i64 = 0
                if nrs is not None:
                    nr = nrs[i]
                self.deliver(target, nr, out)
            else:
                leaf: TensorBase = end_of(target)
                if leaf._extra is not None and leaf._extra.swapped > node._seq_nr:
                    self.refuse_swapped(leaf, node)
                self.deliver_leaf(leaf, out, self.fresh(node, g, outs, i, out))

    def refuse_swapped(self, leaf: TensorBase, node: Node) -> None:
        """An edge leads to a leaf that has become another tensor since the edge was made."""
        if self.executes is not None and leaf not in self.executes:
            return
        error = RuntimeError(
            "Trying to execute AccumulateGrad node that was poisoned by swap_tensors this can "
            "happen when you try to run backward on a tensor that was swapped. For a module m with "
            "`torch.__future__.set_swap_module_params_on_conversion(True)` you should not change "
            "the device or dtype of the module (e.g. `m.cpu()` or `m.half()`) between running "
            "forward and backward. To resolve this, please only change the device/dtype before "
            "running forward (or after both forward and backward)."
        )
        self.blame(node, error)
        raise error

    def fitted(self, node: Node, i: i64, out: Any, g: Any) -> Any:
        """A gradient in the shape and dtype of the input it is for."""
        shapes = node._input_shapes
        dtypes = node._input_dtypes
        if dtypes is not None:
            shape = None if shapes is None or i >= len(shapes) else shapes[i]
            return fit(out, shape, dtypes[i])
        if shapes is not None:
            return fit(out, shapes[i], None)
        if (
            node._output_metas is None
            and g is not None
            and not self.tensors
            and out.dtype is not g.dtype
        ):
            return fit(out, None, g.dtype)
        return out

    def fresh(self, node: Node, g: Any, outs: Any, i: i64, out: Any) -> bool:
        """Whether nobody else holds the array `out`, so that a leaf may keep it."""
        if out is g or self.tensors or out is None or out.base is not None or node._has_packed:
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

    def release(self, node: Node) -> None:
        if self.freed is None:
            self.freed = here()
        free_saved(node, self.freed)


def mismatch(error: ValueError) -> RuntimeError | None:
    """PyTorch's error for NumPy's about shapes that do not fit: a hook unpacked a wrong one."""
    shapes = re.findall(r"\(([\d,]*)\)", str(error))
    if len(shapes) < 2 or "could not be broadcast" not in str(error):
        return None
    a, b = [[int(n) for n in shape.split(",") if n] for shape in shapes[:2]]
    return RuntimeError(broadcast_mismatch(a, b))
