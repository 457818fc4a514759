"""Hooks on modules: handles that remove them, and the nodes that call them in a backward pass.

Imported by `nn.modules` and `optim`, which register hooks, and by users for `RemovableHandle`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from rushlight.autograd.function import Function
from rushlight.core.graph import TensorBase
from rushlight.core.hooks import RemovableHandle

__all__ = ["BackwardHook", "RemovableHandle", "add_hook"]


class FlaggedHandle(RemovableHandle):
    """The handle of a hook that also stands, by its id, in dictionaries of flags."""

    def __init__(self, hooks: dict[int, Any], flags: tuple[dict[int, bool], ...]) -> None:
        super().__init__(hooks)
        self.flags = flags

    def remove(self) -> None:
        super().remove()
        for flag in self.flags:
            flag.pop(self.id, None)


def add_hook(
    hooks: dict[int, Any],
    hook: Callable[..., Any],
    *,
    first: bool = False,
    flags: tuple[dict[int, bool], ...] = (),
) -> RemovableHandle:
    """Add `hook` behind the others, or before them, and its id to each of `flags`.

    >>> from rushlight.utils.hooks import add_hook
    >>> hooks = {}
    >>> handle = add_hook(hooks, print)
    >>> list(hooks.values()) == [print]
    True
    >>> handle.remove()
    >>> hooks
    {}
    """
    handle = FlaggedHandle(hooks, flags)
    hooks[handle.id] = hook
    if first:
        others = [key for key in hooks if key != handle.id]
        for key in others:
            hooks[key] = hooks.pop(key)
    for flag in flags:
        flag[handle.id] = True
    return handle


class BackwardHookFunction(Function):
    """The identity. Its node stands at the border of a module, where the hooks are called."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        ctx.mark_non_differentiable(*[arg for arg in args if not arg.requires_grad])
        return args

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads


class BackwardHook:
    """One call of a module with backward hooks.

    A node behind the outputs catches their gradients, one before the inputs theirs; when both are
    known the hooks are called with the two. Where no input asks for a gradient, they are called
    with the outputs' gradients alone.
    """

    def __init__(self, module: Any, hooks: list[Any], pre_hooks: list[Any]) -> None:
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.grad_outputs: tuple[Any, ...] | None = None
        self.input_count = -1
        self.output_count = -1
        self.inputs: list[int] | None = None  # positions of the tensors among the inputs
        self.outputs: list[int] | None = None

    def watch_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments of the module, seen through a node that reports their gradients."""
        seen, self.inputs = self._through(args, lambda node: node.register_hook(self._at_inputs))
        self.input_count = len(args)
        return seen

    def watch_outputs(self, result: Any) -> Any:
        """What the module returned, seen through a node that reports its gradients."""
        alone = not isinstance(result, tuple)
        results = (result,) if alone else result
        self.output_count = len(results)
        seen, self.outputs = self._through(
            results, lambda node: node.register_prehook(self._at_outputs)
        )
        return seen[0] if alone else seen

    def _through(
        self, values: tuple[Any, ...], attach: Callable[[Any], Any]
    ) -> tuple[tuple[Any, ...], list[int] | None]:
        places = [i for i, value in enumerate(values) if isinstance(value, TensorBase)]
        if not any(values[i].requires_grad for i in places):
            return values, None
        made = BackwardHookFunction.apply(*[values[i] for i in places])
        attach(next(t.grad_fn for t in made if t.grad_fn is not None))
        seen = list(values)
        for i, t in zip(places, made):
            seen[i] = t
        return tuple(seen), places

    def _at_outputs(self, grads: tuple[Any, ...]) -> Any:
        grads = spread(self.outputs or [], grads, self.output_count)
        changed = False
        for hook in self.pre_hooks:
            answer = hook(self.module, grads)
            if answer is None:
                continue
            grads = checked(answer, grads, "pre hook", "grad_output")
            changed = True
        self.grad_outputs = grads
        if self.inputs is None:
            self._without_inputs(grads)
        if changed:
            return tuple(grads[i] for i in self.outputs or [])
        return None

    def _without_inputs(self, grads: tuple[Any, ...]) -> None:
        if self.hooks:
            warnings.warn(
                "Full backward hook is firing when gradients are computed with respect to module "
                "outputs since no inputs require gradients. See "
                "https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
                "#torch.nn.Module.register_full_backward_hook for more details.",
                stacklevel=5,
            )
        nothing = (None,) * self.input_count
        for hook in self.hooks:
            answer = hook(self.module, nothing, grads)
            if answer is not None and not (
                isinstance(answer, tuple) and all(g is None for g in answer)
            ):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always "
                    "return None or None for all gradients."
                )
        self.grad_outputs = None

    def _at_inputs(self, grads: tuple[Any, ...], _: Any) -> Any:
        outputs = self.grad_outputs
        if outputs is None:  # the pass ended inside the module: the outputs' gradients are unknown
            return None
        found = spread(self.inputs or [], grads, self.input_count)
        for hook in self.hooks:
            answer = hook(self.module, found, outputs)
            if answer is not None:
                found = checked(answer, found, "hook", "grad_input")
        self.grad_outputs = None
        return tuple(found[i] for i in self.inputs or [])


def spread(places: list[int], values: tuple[Any, ...], size: int) -> tuple[Any, ...]:
    """`values` at `places` of a tuple of `size`, None elsewhere."""
    found: list[Any] = [None] * size
    for i, value in zip(places, values):
        found[i] = value
    return tuple(found)


def checked(answer: Any, grads: tuple[Any, ...], what: str, which: str) -> tuple[Any, ...]:
    """The gradients that a hook gave in place of `grads`, if it gave as many."""
    given = answer if isinstance(answer, tuple) else (answer,)
    if len(given) != len(grads):
        raise RuntimeError(
            f"Backward {what} returned an invalid number of {which}, got {len(given)}, but "
            f"expected {len(grads)}"
        )
    return given
