"""Hooks of all modules at once: `register_module_forward_hook` and its kin.

`calling` calls those around a module's `forward` and its gradients, before the module's own; the
module calls those on its parts. Users find the functions in `nn.modules.module`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from rushlight.utils.hooks import RemovableHandle, add_hook

Hook = Callable[..., Any]


class Everywhere:
    """The hooks of all modules, by kind. `calls` has the ids of all that a call must care for, so
    that a call without any asks one question."""

    def __init__(self) -> None:
        self.calls: dict[int, bool] = {}
        self.forward_pre: dict[int, Hook] = {}
        self.forward: dict[int, Hook] = {}
        self.with_kwargs: dict[int, bool] = {}
        self.always_called: dict[int, bool] = {}
        self.backward: dict[int, Hook] = {}
        self.backward_pre: dict[int, Hook] = {}
        self.full: bool | None = None  # of which kind those in `backward` are
        self.buffers: dict[int, Hook] = {}
        self.modules: dict[int, Hook] = {}
        self.parameters: dict[int, Hook] = {}


everywhere: Final = Everywhere()


def call_registration_hooks(hooks: dict[int, Hook], module: Any, name: str, part: Any) -> Any:
    """A part that a module is given, or what the hooks on parts of its kind put in its place."""
    for hook in list(hooks.values()):
        answer = hook(module, name, part)
        if answer is not None:
            part = answer
    return part


# --- around calls ---------------------------------------------------------------------------------
def register_module_forward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, args)` before the `forward` of any module; see
    `Module.register_forward_pre_hook`."""
    return add_hook(everywhere.forward_pre, hook, flags=(everywhere.calls,))


def register_module_forward_hook(
    hook: Hook, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call `hook(module, args, output)` after the `forward` of any module; see
    `Module.register_forward_hook`.

    >>> from rushlight.nn.modules.module import register_module_forward_hook
    >>> net = torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Flatten())
    >>> with register_module_forward_hook(lambda module, args, y: print(type(module).__name__)):
    ...     y = net(torch.ones(2, 3))
    Tanh
    Flatten
    Sequential
    """
    flags = [everywhere.calls]
    if with_kwargs:
        flags.append(everywhere.with_kwargs)
    if always_call:
        flags.append(everywhere.always_called)
    return add_hook(everywhere.forward, hook, flags=tuple(flags))


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` when the gradients of any module's inputs are
    known; see `Module.register_full_backward_hook`."""
    return _backward(hook, True)


def register_module_backward_hook(hook: Hook) -> RemovableHandle:
    """The older kind of `register_module_full_backward_hook`: sees a module's last node alone."""
    return _backward(hook, False)


def _backward(hook: Hook, full: bool) -> RemovableHandle:
    if everywhere.full is (not full):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module "
            "hook. Please use only one of them."
        )
    everywhere.full = full
    return add_hook(everywhere.backward, hook, flags=(everywhere.calls,))


def register_module_full_backward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, grad_output)` when the gradients of any module's outputs are known; see
    `Module.register_full_backward_pre_hook`."""
    return add_hook(everywhere.backward_pre, hook, flags=(everywhere.calls,))


# --- on the parts of modules ----------------------------------------------------------------------
def register_module_buffer_registration_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, name, buffer)` when any module is given a buffer; what it returns takes
    the buffer's place."""
    return add_hook(everywhere.buffers, hook)


def register_module_module_registration_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, name, submodule)` when any module is given a module; what it returns takes
    the submodule's place."""
    return add_hook(everywhere.modules, hook)


def register_module_parameter_registration_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, name, parameter)` when any module is given a parameter; what it returns
    takes the parameter's place."""
    return add_hook(everywhere.parameters, hook)
