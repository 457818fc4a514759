"""The backward pass: from roots and their gradients to the leaves.

`backward` starts a pass for whoever asks in `autograd`; `backward_scalar` is the short way for
`loss.backward()`. What a pass does stands in `core.engine.run`.

Gradients travel as raw arrays; as tensors, recorded, when `create_graph` asks for it.

Note [Passes inside passes]
    A hook or a custom function may run a backward pass of its own, whose hooks may do so too, and
    so on. Each level is some frames of Python deep, and many of them would meet its recursion
    limit. So the deepest one that a thread should carry continues on a new thread, in the same
    context, and the other waits.
"""

from __future__ import annotations

from contextvars import copy_context
from threading import Thread
from typing import Any, Final

import numpy as np

from rushlight.core.engine.call_hooks import call
from rushlight.core.engine.hooks import leaf_hooks
from rushlight.core.engine.ordered import OrderedRun
from rushlight.core.engine.run import Run, watch
from rushlight.core.engine.task import Target, running
from rushlight.core.engine.traverse import dependencies, end_of, plan
from rushlight.core.grad_mode import state, within
from rushlight.core.graph import Node, TensorBase, wrap
from rushlight.core.transforms.forward_ad import muted
from rushlight.core.transforms.stack import stack

__all__ = [
    "Run", "Target", "backward", "backward_scalar", "running", "watch", "with_tangents",
]  # fmt: skip

DEEPEST: Final = 16  # passes inside one another on one thread
_ndarray: Final = np.ndarray
_F32: Final = np.dtype(np.float32)
_F64: Final = np.dtype(np.float64)
_ONE32: Final = np.ones((), np.float32)
_ONE64: Final = np.ones((), np.float64)


def backward_scalar(t: TensorBase, keep: bool) -> bool:
    """`t.backward()` for a real scalar with a history, which is nearly always; else False."""
    node = t._node
    if node is None or t._view is not None or leaf_hooks.count != 0 or state.active != 0:
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
    run = Run(keep, False, None, True)
    run.roots = node
    run.deliver(node, t._output_nr, g)
    run.run()
    finish(run)
    if run.callbacks is not None:
        call_back(run)
    return True


def with_tangents() -> bool:
    """Whether gradients computed now may have tangents: they then travel as tensors."""
    return stack.tangents != 0 and not muted()


def backward(
    roots: list[Any],
    nrs: list[int],
    grads: list[Any],
    keep: bool,
    tensors: bool,
    targets: list[Target] | None,
    store: bool,
    like: Run | None = None,
    beneath: bool = False,
) -> Run:
    """Run a backward pass from `roots` (nodes or leaves) with their gradients.

    `like` is a run from the same roots to the same targets: this one goes the same ways.
    `beneath`: raw arrays, but what stands inside batched ones is recorded: see
    `core.transforms.vmap`.
    """
    record = tensors or beneath
    if not tensors and with_tangents():
        tensors = True
        grads = [g if g is None or isinstance(g, TensorBase) else wrap(g) for g in grads]
    ordered = leaf_hooks.count != 0
    run: Run
    if ordered:
        run = OrderedRun(keep, tensors, targets, store)
    else:
        run = Run(keep, tensors, targets, store)
    run.record = record
    run.roots = roots
    if like is not None:
        run.executes = like.executes
        run.needed = like.needed
        run.captures = like.captures
    elif targets is not None:
        plan(run, roots, targets)
    if run.executes is not None and len(roots) == 1:
        run.executes.add(end_of(roots[0]))  # the hooks of its tensor run even if nothing follows
    if ordered:
        run.uses = dependencies(run, roots)
    start(run, roots, nrs, grads)
    if tensors or state.active != 0:
        outer = running()
        if outer is not None:
            run.depth = outer.depth + 1
        if run.depth % DEEPEST == DEEPEST - 1:
            on_a_new_thread(run)
        else:
            in_its_mode(run)
    else:
        run.run()
        finish(run)
    if run.callbacks is not None:
        call_back(run)
    return run


def call_back(run: Run) -> None:
    """Call what was to be called when the pass is over; it may ask for more."""
    waiting = run.callbacks
    at = 0
    while waiting is not None and at < len(waiting):
        call(run, waiting[at])
        at += 1


def in_its_mode(run: Run) -> None:
    """Run a pass where modes are in force, or its own gradients are recorded."""
    profile = watch.profile  # another thread may set it to None
    if profile is not None:
        run.profile = profile()
    try:
        with within(run.record, False):
            run.run()
            finish(run)
    finally:
        if run.profile is not None:
            run.profile.finish()


def on_a_new_thread(run: Run) -> None:
    """Run a pass with a stack of its own; see Note [Passes inside passes]."""
    outcome: list[BaseException] = []
    thread = Thread(target=copy_context().run, args=(_caught, run, outcome))
    thread.start()
    try:
        thread.join()
    except BaseException:  # an interrupt: the pass must not go on behind the caller's back
        thread.join()
        raise
    if outcome:
        raise outcome.pop()  # a list that held it would close a cycle through its traceback


def _caught(run: Run, outcome: list[BaseException]) -> None:
    try:
        in_its_mode(run)
    except BaseException as error:  # handed to the thread that waits
        outcome.append(error)


def start(run: Run, roots: list[Any], nrs: list[int], grads: list[Any]) -> None:
    """Deliver to each root the gradient it starts with."""
    for i in range(len(roots)):
        root = end_of(roots[i])
        if isinstance(root, Node):
            run.deliver(root, nrs[i], grads[i])
        else:
            run.deliver_leaf(root, grads[i], False)


def hooked(run: Run) -> bool:
    """Whether someone is called as the leaves get their gradients."""
    if run.profile is not None or run.uses is not None:
        return True
    if leaf_hooks.count == 0:
        return False
    for leaf in run.leaves:
        if leaf._extra is not None:
            return True
    return False


def finish(run: Run) -> None:
    """Give the leaves that waited their gradients."""
    if len(run.leaves) > 1 and not hooked(run):
        run.settle_together()
        return
    for leaf, g in run.leaves.items():
        run.accumulate_leaf(leaf, g)
