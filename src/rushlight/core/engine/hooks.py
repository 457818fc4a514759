"""The user's hooks: tables of them, handles that remove them, and calling them in a backward pass,
with PyTorch's order, checks and texts.

For one node: hooks of the tensors it made, then gradients to be kept (`retain_grad`), then its own
pre-hooks, its rule, its post-hooks. A leaf's node has, after adding to `.grad`, the leaf's
post-accumulate hooks before its own post-hooks. A gradient that is not there is None to all of
them, and stays None.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from rushlight.arrays import vocabulary as v
from rushlight.core.engine.observers import leaf_hooks
from rushlight.core.graph import Extra, Hooks, Node, TensorBase, factory, normal, wrap
from rushlight.dtypes import contiguous_format
from rushlight.locks import lock

if TYPE_CHECKING:
    from rushlight.core.engine.engine import GraphTask

_ids: Final = count()
_lock: Final = lock()  # a table may go, and be counted, while its thread is counting


# --- tables and handles ---------------------------------------------------------------------------
class LeafTable(dict[int, Any]):
    """The hooks of one kind on one leaf, counted in `leaf_hooks` as long as they are there.

    `node` keeps the leaf's `AccumulateGrad` once it has hooks of its own: in a graph the leaf
    is in its place, so nothing else might.
    """

    node: Any = None
    counted: int = 0

    def __setitem__(self, key: int, hook: Any) -> None:
        with _lock:
            super().__setitem__(key, hook)
            self.count(len(self))

    def pop(self, key: int, default: Any = None) -> Any:
        with _lock:
            found = super().pop(key, default)
            self.count(len(self))
        return found

    def count(self, hooks: int) -> None:
        """Let the total know of so many; it is put right here if an interrupt came before."""
        leaf_hooks.count += hooks - self.counted
        self.counted = hooks

    def __del__(self) -> None:
        if self.counted:
            with _lock:
                self.count(0)


class RemovableHandle:
    """What a `register_…_hook` gives back: `.remove()`, or use it as a context manager.

    `extra_dict` is a dict, or a list of them, in which the hook's id stands too.
    """

    def __init__(self, hooks_dict: dict[int, Any], *, extra_dict: Any = None) -> None:
        self.hooks = hooks_dict
        self.id: int = next(_ids)
        self.others: list[dict[int, Any]] = []
        if isinstance(extra_dict, dict):
            self.others.append(extra_dict)
        elif extra_dict is not None:
            self.others.extend(extra_dict)

    def remove(self) -> None:
        """Take the hook away; a second call does nothing."""
        self.hooks.pop(self.id, None)
        for other in self.others:
            other.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        self.remove()


def add_to_hooks(hooks: dict[int, Any], hook: Callable[..., Any]) -> RemovableHandle:
    """Add `hook` to the hooks of one kind, kept in the order of registration."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


# --- around a node's rule -------------------------------------------------------------------------
def before_rule(task: GraphTask, node: Node, g: Any, own: bool) -> Any:
    """Hooks of the node's tensors and, with `own`, its own pre-hooks; the gradient they leave."""
    hooks = node._hooks
    assert hooks is not None
    if hooks.tensor_pre or hooks.pre or hooks.post:
        task.count_leaf_uses(node)
    try:
        g = call_hooks_of_tensors(task, node, hooks, g)
        if own and hooks.pre:
            g = call_pre_hooks(task, node, hooks.pre, g)
    except BaseException as error:
        task.blame(node, error)
        raise
    return g


def after_rule(task: GraphTask, node: Any, g: Any, outs: Any) -> Any:
    """The node's post-hooks, which see gradients as the inputs will get them, then whoever
    observes the pass."""
    post = None if node._hooks is None else node._hooks.post
    if not post and task.observer is None:
        return outs
    outs = task.as_delivered(node, g, outs)
    if post:
        task.count_leaf_uses(node)
        shown = node._shown_edges()
        grads_in = tuple([task.as_tensor(outs[i]) for i in shown])
        try:
            found = call_post_hooks(task, post, grads_in, given_to(task, node, g))
        except BaseException as error:
            task.blame(node, error)
            raise
        for at, i in enumerate(shown):
            outs[i] = task.as_gradient(found[at])
    if task.observer is not None:
        task.observer.after_node(node, outs)
    return outs


def accumulate_hooked(task: GraphTask, leaf: TensorBase, extra: Extra, g: Any, mine: bool) -> None:
    """`GraphTask.accumulate_leaf` of a leaf that may have hooks."""
    if extra.hooks:
        mine = False  # what hooks were shown they may keep
        g = call_tensor_hooks(task, extra.hooks, g)
    if task.captures is not None and leaf in task.captures:
        task.capture(leaf, g)
    if not task.stores_into(leaf):
        return
    node: Any = None if extra.accumulate is None else extra.accumulate()
    hooks: Any = None if node is None else node._hooks
    if hooks is not None and (hooks.pre or hooks.post):
        mine = False
        if hooks.pre:
            g = call_pre_hooks(task, None, hooks.pre, g)
    if g is not None:
        task.store(leaf, g, mine)
    if extra.post_accumulate:
        call_post_accumulate(task, extra.post_accumulate, leaf)
    if hooks is not None and hooks.post:
        call_post_hooks(task, hooks.post, (), given_to(task, None, g))


# --- of tensors -----------------------------------------------------------------------------------
def call_hooks_of_tensors(task: GraphTask, node: Node, hooks: Hooks, g: Any) -> Any:
    """Hooks of the tensors that a node made, then the gradients of those that keep theirs."""
    if hooks.tensor_pre is not None:
        for nr, table in list(hooks.tensor_pre.items()):
            if node._output_metas is None:
                g = call_tensor_hooks(task, table, g)
            else:
                g[nr] = call_tensor_hooks(task, table, g[nr])
    if hooks.retain is not None:
        for nr, reference in list(hooks.retain.items()):
            t: Any = reference()
            mine = g if node._output_metas is None else g[nr]
            if t is not None and mine is not None:
                retain(t, task.as_tensor(mine), task.tensors)
    return g


def call_tensor_hooks(task: GraphTask, hooks: Any, g: Any) -> Any:
    """`hook(grad)`, one after the other; the gradient, perhaps replaced."""
    for hook in list(hooks.values()):
        t = task.as_tensor(g)
        result = task.call(hook, t)
        if result is not None:
            check_result(t, result, hook)
            g = task.as_gradient(result)
    return g


def retain(t: TensorBase, g: Any, tensors: bool) -> None:
    """`retain_grad`: an interior tensor keeps a copy, and the sum of that and later gradients."""
    held: Any = t._accumulated_grad
    if tensors:
        t._accumulated_grad = g.clone(memory_format=contiguous_format) if held is None else held + g
    elif held is None:
        t._accumulated_grad = wrap(v.laid_out(g._array, None))
    else:
        t._accumulated_grad = wrap(normal(held._array + g._array))


# --- of nodes -------------------------------------------------------------------------------------
def given_to(task: GraphTask, node: Any, g: Any) -> tuple[Any, ...]:
    """What a node receives, as its hooks see it. None stands for the node of a leaf."""
    if node is None or node._output_metas is None:
        return (task.as_tensor(g),)
    return tuple([task.as_tensor(g[i]) for i in node._differentiable_outputs()])


def call_pre_hooks(task: GraphTask, node: Any, hooks: Any, g: Any) -> Any:
    """`hook(grad_outputs)`, one after the other; the gradients, perhaps replaced."""
    for hook in list(hooks.values()):
        given = given_to(task, node, g)
        result = task.call(hook, given)
        if result is None:
            continue
        found = check_results(given, result, hook)
        if node is None or node._output_metas is None:
            g = task.as_gradient(found[0])
        else:
            for at, i in enumerate(node._differentiable_outputs()):
                g[i] = task.as_gradient(found[at])
    return g


def call_post_hooks(
    task: GraphTask, hooks: Any, grads_in: tuple[Any, ...], grads_out: tuple[Any, ...]
) -> tuple[Any, ...]:
    """`hook(grad_inputs, grad_outputs)`; the gradients of the inputs, perhaps replaced."""
    for hook in list(hooks.values()):
        result = task.call(hook, grads_in, grads_out)
        if result is not None:
            grads_in = check_results(grads_in, result, hook)
    return grads_in


def call_post_accumulate(task: GraphTask, hooks: Any, leaf: TensorBase) -> None:
    """`hook(leaf)` after its gradient was added; nothing may come back but the leaf itself, which
    is what writing it in place gives."""
    given = leaf
    for hook in list(hooks.values()):
        result = task.call(hook, given)
        if result is not None and result is not given:
            check_result(given, result, hook)
            given = result
    if given is not leaf:
        raise RuntimeError("Tensor post accumulate grad hooks should return None.")


# --- what may come back ---------------------------------------------------------------------------
def check_results(given: tuple[Any, ...], result: Any, hook: Any) -> tuple[Any, ...]:
    """What a hook of a node returned, if it can stand in for the gradients it was given."""
    if not isinstance(result, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(result).__name__}'")
    if len(result) != len(given):
        raise RuntimeError(
            f"hook '{hook_name(hook)}' has returned an incorrect number of values "
            f"(got {len(result)}, but expected {len(given)})"
        )
    for i in range(len(given)):
        if result[i] is not None:
            check_result(given[i], result[i], hook)
    return result


def check_result(given: Any, result: Any, hook: Any) -> None:
    """Refuse what cannot stand in for the gradient a hook was given."""
    if given is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if not isinstance(result, TensorBase):
        raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
    was, got = factory.cls.type(given), factory.cls.type(result)
    if was != got:
        raise RuntimeError(
            f"hook '{hook_name(hook)}' has changed the type of value (was {was} got {got})"
        )
    if result._array.shape != given._array.shape:
        raise RuntimeError(f"hook '{hook_name(hook)}' has changed the size of value")


def hook_name(hook: Any) -> str:
    """A hook's name, for errors."""
    name = getattr(hook, "__name__", None)
    return name if isinstance(name, str) else "<unknown>"
