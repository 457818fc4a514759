"""Hooks on modules: handles that remove them, and the nodes that call them in a backward pass."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from rushlight.autograd.function import Function
from rushlight.core.engine.hooks import RemovableHandle
from rushlight.core.grad_mode import grad_enabled
from rushlight.core.graph import TensorBase

__all__ = ["BackwardHook", "RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]
__dir__ = __all__.copy


def add_hook(
    hooks: dict[int, Any], hook: Callable[..., Any], *, first: bool = False,
    flags: tuple[dict[int, bool], ...] = (),
) -> RemovableHandle:  # fmt: skip
    """Add `hook` behind the others, or before them, and its id to each of `flags`.

    >>> hooks = {}
    >>> handle = add_hook(hooks, print)
    >>> list(hooks.values()) == [print]
    True
    >>> handle.remove()
    >>> hooks
    {}
    """
    handle = RemovableHandle(hooks, extra_dict=list(flags))
    hooks[handle.id] = hook
    if first:
        others = [key for key in hooks if key != handle.id]
        for key in others:
            hooks[key] = hooks.pop(key)
    for flag in flags:
        flag[handle.id] = True
    return handle


def unserializable_hook(f: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a hook as one that pickling a tensor may drop without a warning.

    >>> from rushlight.utils.hooks import unserializable_hook
    >>> @unserializable_hook
    ... def hook(grad): ...
    >>> hook.__torch_unserializable__
    True
    """
    marked: Any = f
    marked.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Warn of each hook of a tensor that pickling it would drop."""
    for hook in (tensor._backward_hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, "
                "you can decorate the function with @torch.utils.hooks.unserializable_hook to "
                "suppress this warning",
                stacklevel=2,
            )


class BackwardHookFunction(Function):
    """The identity. Its node is at the border of a module, where the hooks are called."""

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
    known the hooks are called with the two. Where no input wants a gradient, they are called
    with the outputs' gradients alone.
    """

    def __init__(self, module: Any, user_hooks: list[Any], user_pre_hooks: list[Any]) -> None:
        self.module = module
        self.hooks = user_hooks
        self.pre_hooks = user_pre_hooks
        self.grad_outputs: tuple[Any, ...] | None = None
        self.input_count = -1
        self.output_count = -1
        self.inputs: list[int] | None = None  # positions of the tensors among the inputs
        self.outputs: list[int] | None = None

    def setup_input_hook(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments of the module, seen through a node that reports their gradients."""

        def hook(grads: tuple[Any, ...], _: Any) -> Any:  # errors name it
            return self._at_inputs(grads)

        seen, self.inputs = self._through(args, lambda node: node.register_hook(hook))
        self.input_count = len(args)
        return seen

    def setup_output_hook(self, args: Any) -> Any:
        """What the module returned, seen through a node that reports its gradients."""
        alone = not isinstance(args, tuple)
        results = (args,) if alone else args
        self.output_count = len(results)

        def hook(grads: tuple[Any, ...]) -> Any:
            return self._at_outputs(grads)

        seen, self.outputs = self._through(results, lambda node: node.register_prehook(hook))
        return seen[0] if alone else seen

    def _through(
        self, values: tuple[Any, ...], attach: Callable[[Any], Any]
    ) -> tuple[tuple[Any, ...], list[int] | None]:
        places = [i for i, value in enumerate(values) if isinstance(value, TensorBase)]
        if not grad_enabled() or not any(values[i].requires_grad for i in places):
            return values, None
        made = BackwardHookFunction.apply(*[values[i] for i in places])
        attach(next(t.grad_fn for t in made if t.grad_fn is not None))
        seen = list(values)
        for i, t in zip(places, made):
            seen[i] = t
        return tuple(seen), places

    def _at_outputs(self, grads: tuple[Any, ...]) -> Any:
        grads = place_among_none(self.outputs or [], grads, self.output_count)
        changed = False
        for hook in self.pre_hooks:
            answer = hook(self.module, grads)
            if answer is None:
                continue
            grads = check_hook_gradients(answer, grads, "pre hook", "grad_output")
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

    def _at_inputs(self, grads: tuple[Any, ...]) -> Any:
        outputs = self.grad_outputs
        if outputs is None:  # the pass ended inside the module: the outputs' gradients are unknown
            return None
        found = place_among_none(self.inputs or [], grads, self.input_count)
        for hook in self.hooks:
            answer = hook(self.module, found, outputs)
            if answer is not None:
                found = check_hook_gradients(answer, found, "hook", "grad_input")
        self.grad_outputs = None
        return tuple(found[i] for i in self.inputs or [])


def place_among_none(places: list[int], values: tuple[Any, ...], size: int) -> tuple[Any, ...]:
    """`values` at `places` of a tuple of `size`, None elsewhere."""
    found: list[Any] = [None] * size
    for i, value in zip(places, values):
        found[i] = value
    return tuple(found)


def check_hook_gradients(
    answer: Any, grads: tuple[Any, ...], what: str, which: str
) -> tuple[Any, ...]:
    """The gradients that a hook gave in place of `grads`, if it gave as many."""
    if len(answer) != len(grads):
        raise RuntimeError(
            f"Backward {what} returned an invalid number of {which}, got {len(answer)}, but "
            f"expected {len(grads)}"
        )
    return tuple(answer)
