"""The graph as an object of its own: nodes and edges, hooks on several gradients at once, and
hooks on what is saved for backward (those are written in `autograd.saved`)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rushlight.autograd.saved import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)
from rushlight.core.engine.accumulate_grad import accumulate_of
from rushlight.core.engine.engine import current_task, task_id
from rushlight.core.engine.hooks import RemovableHandle
from rushlight.core.engine.traverse import end_of, is_reached
from rushlight.core.graph import Node as _Node
from rushlight.core.graph import TensorBase
from rushlight.core.node_api import GraphNode as Node
from rushlight.core.views.history import edge_of_view
from rushlight.locks import lock

__all__ = [
    "GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks",
    "get_gradient_edge", "increment_version", "region_activation_memory_budget",
    "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks",
    "set_override_stale_capture_stream", "set_warn_on_accumulate_grad_stream_mismatch",
]  # fmt: skip
__dir__ = __all__.copy


class GradientEdge(NamedTuple):
    """Where a tensor's gradient goes: output `output_nr` of `node`."""

    node: Any
    output_nr: int
    ownership_token: Any = None  # PyTorch's, to keep a graph alive; here the node does that


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """The edge of a tensor that requires grad.

    >>> x = torch.ones(2, requires_grad=True)
    >>> torch.autograd.graph.get_gradient_edge(x * 2).node.name()
    'MulBackward0'
    """
    if not tensor.requires_grad:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require "
            "gradients"
        )
    edge = edge_of_view(tensor) if tensor._view is not None else (tensor._node or tensor)
    if isinstance(edge, TensorBase):
        edge = accumulate_of(edge)
    return GradientEdge(edge, int(tensor._output_nr) if isinstance(edge, _Node) else 0)


def increment_version(tensor: Any) -> None:
    """Tell autograd that a tensor's memory was written by something it cannot see.

    >>> x = torch.ones(2)
    >>> torch.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    if not isinstance(tensor, (TensorBase, Iterable)):
        raise RuntimeError("increment_version expect a Iterable[Tensor] as input")
    for t in [tensor] if isinstance(tensor, TensorBase) else list(tensor):
        if not isinstance(t, TensorBase):
            raise RuntimeError(
                "increment_version expects each element of the iterable to be a tensor"
            )
        if not t._storage.inference:
            t._storage.written()


# --- hooks on several gradients -------------------------------------------------------------------
class _MultiHandle(RemovableHandle):
    """The handles of one hook on several tensors, as one."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        super().__init__({})
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Take the hook away from all of its tensors."""
        for handle in self.handles:
            handle.remove()


class _AllGrads:
    """Collects the gradients of one hook, run by run, until those that will come have come."""

    def __init__(self, ends: list[Any], fn: Callable[..., Any]) -> None:
        self.ends = ends
        self.fn = fn
        self.lock = lock()
        self.expected: dict[int, int] = {}
        self.came: dict[int, list[Any]] = {}

    def receive(self, position: int, grad: Any) -> None:
        task = _current_graph_task_id()
        with self.lock:
            if task not in self.came:
                self.expected[task] = sum(map(_will_engine_execute_node, self.ends))
                self.came[task] = [None] * len(self.ends)
            grads = self.came[task]
            grads[position] = grad
            self.expected[task] -= 1
            complete = self.expected[task] == 0
            if complete:
                del self.expected[task], self.came[task]
        if complete:
            self.fn(grads)


def register_multi_grad_hook(
    tensors: Sequence[Any], fn: Callable[..., Any], *, mode: Literal["all", "any"] = "all"
) -> RemovableHandle:
    """Call `fn(grads)` once the gradients of all of `tensors` are known, in each backward pass.

    Tensors that the pass does not reach are not waited for: None stands for their gradients. With
    mode="any" `fn` is called with the first gradient that is known, and with no other.

    >>> a = torch.ones(2, requires_grad=True)
    >>> b, c = a * 2, a * 3
    >>> handle = torch.autograd.graph.register_multi_grad_hook(
    ...     (a, b, c), lambda grads: print([g is not None for g in grads]))
    >>> b.sum().backward()
    [True, True, False]
    """
    modes = ("all", "any")
    if mode not in modes:
        raise ValueError(f"Expects mode to be one of {modes} but got {mode}")
    if mode == "all":
        for t in tensors:
            if not t.requires_grad:
                raise AssertionError("Expected gradient function to be set")
        collect = _AllGrads([get_gradient_edge(t).node for t in tensors], fn)
        return _MultiHandle(
            [t.register_hook(functools.partial(collect.receive, i)) for i, t in enumerate(tensors)]
        )
    once = lock()
    done: set[int] = set()

    def first(grad: Any) -> None:
        task = _current_graph_task_id()
        with once:
            if task in done:
                return
            done.add(task)
        fn(grad)

    return _MultiHandle([t.register_hook(first) for t in tensors if t.requires_grad])


def _current_graph_task_id() -> int:
    """A number for the backward pass that calls this code; -1 outside of any."""
    return task_id(current_task())


def _will_engine_execute_node(node: Any) -> bool:
    """Whether the backward pass that calls this code runs `node`, or has run it."""
    task = current_task()
    if task is None:
        raise RuntimeError(
            "_get_should_execute_nodes should only be called during the backward pass"
        )
    end = end_of(node)
    roots = task.roots if isinstance(task.roots, list) else [task.roots]
    found = is_reached(end, roots, task.executes, task.needed)
    if found and isinstance(end, TensorBase) and task.captures and end in task.captures:
        raise RuntimeError(
            "A leaf node was passed to _will_engine_execute_node but we are currently running "
            "autograd.grad(). This is currently not supported."
        )
    return found


# --- settings of PyTorch's that concern only its streams and compiler -----------------------------
def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Accepted, and without effect: all work goes to one stream, in the order of the program."""


def set_override_stale_capture_stream(enabled: bool) -> None:
    """Accepted, and without effect: there are no captured streams."""


class region_activation_memory_budget:
    """For compiled regions only; raises elsewhere, as in PyTorch."""

    def __init__(self, budget: float) -> None:
        self.budget = budget

    def __enter__(self) -> None:
        raise RuntimeError(
            "torch.autograd.graph.region_activation_memory_budget can only be used inside a "
            "torch.compile region; it has no effect in eager mode."
        )

    def __exit__(self, *args: object) -> None:
        pass


if TYPE_CHECKING:
    from rushlight.autograd.steps import steps as steps
else:

    def __getattr__(name: str) -> Any:
        if name == "steps":  # of rushlight alone, and imported when first used
            from rushlight.autograd.steps import steps

            return steps
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
