"""Calling a module: `forward`, and the hooks around it.

The base of `Module`. A module without hooks goes straight to `forward`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NoReturn

from rushlight.core.graph import TensorBase
from rushlight.errors import hide_insides
from rushlight.nn.modules.everywhere import everywhere
from rushlight.nn.modules.where_failed import say_where
from rushlight.utils.hooks import BackwardHook, RemovableHandle, add_hook

__all__ = ["Calling"]

Hook = Callable[..., Any]

_MIXED = (
    "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use "
    "only one of them."
)


class Calling:
    """A thing that is called through hooks."""

    _forward_hooks: dict[int, Hook]
    _forward_hooks_with_kwargs: dict[int, bool]
    _forward_hooks_always_called: dict[int, bool]
    _forward_pre_hooks: dict[int, Hook]
    _forward_pre_hooks_with_kwargs: dict[int, bool]
    _backward_hooks: dict[int, Hook]
    _backward_pre_hooks: dict[int, Hook]
    _is_full_backward_hook: bool | None

    def _unimplemented(self, *input: Any) -> NoReturn:
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    # Any signature may override it, which a method would not let a type checker accept.
    forward: Callable[..., Any] = _unimplemented

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if (
                self._forward_hooks
                or self._forward_pre_hooks
                or self._backward_hooks
                or self._backward_pre_hooks
                or everywhere.calls
            ):
                return self._call_with_hooks(args, kwargs)
            return self.forward(*args, **kwargs)
        except Exception as error:
            say_where(self, args, kwargs, error)
            hide_insides(error)
            raise

    def _wrapped_call_impl(self, *args: Any, **kwargs: Any) -> Any:
        """A call, by the name under which some programs reach it."""
        return Calling.__call__(self, *args, **kwargs)

    _call_impl = _wrapped_call_impl
    _compiled_call_impl: Callable[..., Any] | None = None

    def _slow_forward(self, *input: Any, **kwargs: Any) -> Any:
        return self.forward(*input, **kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Accepts what `torch.compile` does; modules run uncompiled here, with the same results.

        >>> m = torch.nn.Linear(2, 1)
        >>> m.compile()
        >>> m(torch.ones(2)).shape
        torch.Size([1])
        """

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        called: set[int] = set()
        result = None
        try:
            watch, older = self._backward_hooks_now()
            args, kwargs = self._before(args, kwargs)
            if watch is not None:
                args = watch.setup_input_hook(args)
            result = self.forward(*args, **kwargs)
            for key, hook in (*everywhere.forward.items(), *self._forward_hooks.items()):
                called.add(key)
                answer = self._after(key, hook, args, kwargs, result)
                if answer is not None:
                    result = answer
            if watch is not None:
                result = self._watched(watch, result)
            if older:
                self._hook_last_node(older, result)
            return result
        except Exception:
            self._call_always(called, args, kwargs, result)
            raise

    def _before(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        for key, hook in (*everywhere.forward_pre.items(), *self._forward_pre_hooks.items()):
            if key in self._forward_pre_hooks_with_kwargs:
                both = hook(self, args, kwargs)
                if both is None:
                    continue
                if not (isinstance(both, tuple) and len(both) == 2):
                    raise RuntimeError(
                        "forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
                        f"but got {both}."
                    )
                args, kwargs = both
            else:
                answer = hook(self, args)
                if answer is not None:
                    args = answer if isinstance(answer, tuple) else (answer,)
        return args, kwargs

    def _after(
        self, key: int, hook: Hook, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> Any:
        if key in self._forward_hooks_with_kwargs or key in everywhere.with_kwargs:
            return hook(self, args, kwargs, result)
        return hook(self, args, result)

    def _call_always(
        self, called: set[int], args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None:
        """After an error: the hooks that asked to be called in any case, and were not yet."""
        always = {**everywhere.always_called, **self._forward_hooks_always_called}
        for key, hook in (*everywhere.forward.items(), *self._forward_hooks.items()):
            if key not in always or key in called:
                continue
            try:
                self._after(key, hook, args, kwargs, result)
            except Exception as error:
                which = "global module" if key in everywhere.forward else "module"
                warnings.warn(
                    f"{which} forward hook with ``always_call=True`` raised an exception that was "
                    f"silenced as another error was raised in forward: {error}",
                    stacklevel=2,
                )

    def _backward_hooks_now(self) -> tuple[BackwardHook | None, list[Hook]]:
        """Who watches this call's gradients, and the hooks of the older kind."""
        hooks: dict[bool | None, list[Hook]] = {True: [], False: [], None: []}
        hooks[everywhere.full].extend(everywhere.backward.values())
        hooks[self._is_full_backward_hook].extend(self._backward_hooks.values())
        pre = [*everywhere.backward_pre.values(), *self._backward_pre_hooks.values()]
        watch = BackwardHook(self, hooks[True], pre) if hooks[True] or pre else None
        return watch, hooks[False]

    def _get_backward_hooks(self) -> tuple[list[Hook], list[Hook]]:
        """The backward hooks of the newer kind and of the older, those of all modules first."""
        full: list[Hook] = []
        older: list[Hook] = []
        if everywhere.full is True:
            full += everywhere.backward.values()
        if self._is_full_backward_hook is True:
            full += self._backward_hooks.values()
        if everywhere.full is False:
            older += everywhere.backward.values()
        if self._is_full_backward_hook is False:
            older += self._backward_hooks.values()
        return full, older

    def _get_backward_pre_hooks(self) -> list[Hook]:
        return [*everywhere.backward_pre.values(), *self._backward_pre_hooks.values()]

    def _watched(self, watch: BackwardHook, result: Any) -> Any:
        if not isinstance(result, TensorBase | tuple):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of "
                f"Tensors but received {type(result)}",
                stacklevel=4,
            )
        return watch.setup_output_hook(result)

    def _hook_last_node(self, hooks: list[Hook], result: Any) -> None:
        """Hooks of the older kind see the last node of the module, whatever it is."""
        while not isinstance(result, TensorBase):
            result = next(iter(result.values() if isinstance(result, dict) else result))
        node = result.grad_fn  # type: ignore[attr-defined]
        if node is None:
            return
        for hook in hooks:

            def call(grad_inputs: Any, grad_outputs: Any, hook: Hook = hook) -> Any:
                return hook(self, grad_inputs, grad_outputs)

            node.register_hook(call)

    # --- registering ----------------------------------------------------------------------------
    def register_forward_pre_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args)` before `forward`; what it returns replaces the arguments.

        >>> m = torch.nn.Identity()
        >>> handle = m.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
        >>> m(torch.ones(2))
        tensor([2., 2.])
        """
        flags = (self._forward_pre_hooks_with_kwargs,) if with_kwargs else ()
        return add_hook(self._forward_pre_hooks, hook, first=prepend, flags=flags)

    def register_forward_hook(
        self,
        hook: Hook,
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call `hook(module, args, output)` after `forward`; what it returns replaces the output.

        >>> m = torch.nn.Linear(2, 1)
        >>> handle = m.register_forward_hook(lambda module, args, output: print(output.shape))
        >>> y = m(torch.ones(3, 2))
        torch.Size([3, 1])
        """
        flags = (self._forward_hooks_with_kwargs,) if with_kwargs else ()
        if always_call:
            flags = (*flags, self._forward_hooks_always_called)
        return add_hook(self._forward_hooks, hook, first=prepend, flags=flags)

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` when the gradients of the module's inputs
        are known; what it returns replaces them.

        >>> m = torch.nn.Tanh()
        >>> handle = m.register_full_backward_hook(lambda module, gi, go: print(gi, go))
        >>> m(torch.zeros(2, requires_grad=True)).sum().backward()
        (tensor([1., 1.]),) (tensor([1., 1.]),)
        """
        if self._is_full_backward_hook is False:
            raise RuntimeError(_MIXED)
        self._is_full_backward_hook = True
        return add_hook(self._backward_hooks, hook, first=prepend)

    def register_full_backward_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_output)` when the gradients of the module's outputs are known;
        what it returns replaces them."""
        return add_hook(self._backward_pre_hooks, hook, first=prepend)

    def register_backward_hook(self, hook: Hook) -> RemovableHandle:
        """The older kind of `register_full_backward_hook`: sees the module's last node alone."""
        if self._is_full_backward_hook is True:
            raise RuntimeError(_MIXED)
        self._is_full_backward_hook = False
        return add_hook(self._backward_hooks, hook)
