"""Calling the user's hooks in a backward pass, with PyTorch's order, checks and texts.

For one node: hooks of the tensors it made, then gradients to be kept (`retain_grad`), then its own
pre-hooks, its rule, its post-hooks. A leaf's node has, after adding to `.grad`, the leaf's
post-accumulate hooks before its own post-hooks. A gradient that is not there is None to all of
them, and stays None.
"""

from __future__ import annotations

from typing import Any

from rushlight.core.engine.accumulate_grad import keep_grad
from rushlight.core.engine.task import Pass, Place, now
from rushlight.core.grad_mode import within
from rushlight.core.graph import Hooks, Node, TensorBase, factory
from rushlight.core.node_api import differentiable_outputs

__all__ = [
    "call", "call_post_accumulate", "call_post_hooks", "call_pre_hooks", "call_tensor_hooks",
    "given_to", "has_user_code", "tensor_hooks_of",
]  # fmt: skip


def has_user_code(hooks: Hooks) -> bool:
    """Whether any of a node's hooks is the user's."""
    return bool(hooks.tensor_pre or hooks.pre or hooks.post)


def call(run: Pass, hook: Any, *args: Any) -> Any:
    """Call the user's code in the grad mode of the pass."""
    place = Place(now.get())
    with within(run.record, False):
        token = now.set(place)
        try:
            place.run = run
            return hook(*args)
        finally:
            place.run = None
            now.reset(token)


# --- tensors --------------------------------------------------------------------------------------
def tensor_hooks_of(run: Pass, node: Node, hooks: Hooks, g: Any) -> Any:
    """Hooks of the tensors that a node made, then the gradients of those that keep theirs."""
    if hooks.tensor_pre is not None:
        for nr, table in list(hooks.tensor_pre.items()):
            if node._output_metas is None:
                g = call_tensor_hooks(run, table, g)
            else:
                g[nr] = call_tensor_hooks(run, table, g[nr])
    if hooks.retain is not None:
        for nr, reference in list(hooks.retain.items()):
            t: Any = reference()
            mine = g if node._output_metas is None else g[nr]
            if t is not None and mine is not None:
                keep_grad(t, run.as_tensor(mine), run.tensors)
    return g


def call_tensor_hooks(run: Pass, hooks: Any, g: Any) -> Any:
    """`hook(grad)`, one after the other; the gradient, perhaps replaced."""
    for hook in list(hooks.values()):
        t = run.as_tensor(g)
        result = call(run, hook, t)
        if result is not None:
            check_result(t, result, hook)
            g = run.as_gradient(result)
    return g


# --- nodes ----------------------------------------------------------------------------------------
def given_to(run: Pass, node: Node | None, g: Any) -> tuple[Any, ...]:
    """What a node receives, as its hooks see it. None stands for the node of a leaf."""
    if node is None or node._output_metas is None:
        return (run.as_tensor(g),)
    return tuple([run.as_tensor(g[i]) for i in differentiable_outputs(node)])


def call_pre_hooks(run: Pass, node: Node | None, hooks: Any, g: Any) -> Any:
    """`hook(grad_outputs)`, one after the other; the gradients, perhaps replaced."""
    for hook in list(hooks.values()):
        given = given_to(run, node, g)
        result = call(run, hook, given)
        if result is None:
            continue
        found = checked_results(given, result, hook)
        if node is None or node._output_metas is None:
            g = run.as_gradient(found[0])
        else:
            for at, i in enumerate(differentiable_outputs(node)):
                g[i] = run.as_gradient(found[at])
    return g


def call_post_hooks(
    run: Pass, hooks: Any, grads_in: tuple[Any, ...], grads_out: tuple[Any, ...]
) -> tuple[Any, ...]:
    """`hook(grad_inputs, grad_outputs)`; the gradients of the inputs, perhaps replaced."""
    for hook in list(hooks.values()):
        result = call(run, hook, grads_in, grads_out)
        if result is not None:
            grads_in = checked_results(grads_in, result, hook)
    return grads_in


def call_post_accumulate(run: Pass, hooks: Any, leaf: TensorBase) -> None:
    """`hook(leaf)` after its gradient was added; nothing may come back but the leaf itself, which
    is what writing it in place gives."""
    given = leaf
    for hook in list(hooks.values()):
        result = call(run, hook, given)
        if result is not None and result is not given:
            check_result(given, result, hook)
            given = result
    if given is not leaf:
        raise RuntimeError("Tensor post accumulate grad hooks should return None.")


# --- what may come back ---------------------------------------------------------------------------
def checked_results(given: tuple[Any, ...], result: Any, hook: Any) -> tuple[Any, ...]:
    """What a hook of a node returned, if it can stand in for the gradients it was given."""
    if not isinstance(result, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(result).__name__}'")
    if len(result) != len(given):
        raise RuntimeError(
            f"hook '{name_of(hook)}' has returned an incorrect number of values "
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
        raise TypeError(_not_a_tensor(result))
    was, got = factory.cls.type(given), factory.cls.type(result)
    if was != got:
        raise RuntimeError(
            f"hook '{name_of(hook)}' has changed the type of value (was {was} got {got})"
        )
    if result._array.shape != given._array.shape:
        raise RuntimeError(f"hook '{name_of(hook)}' has changed the size of value")


def _not_a_tensor(result: Any) -> str:
    return f"expected Variable, but hook returned '{type(result).__name__}'"


def name_of(hook: Any) -> str:
    """A hook's name, for errors."""
    name = getattr(hook, "__name__", None)
    return name if isinstance(name, str) else "<unknown>"
