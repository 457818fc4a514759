"""The names of functorch, the library that became `torch.func`, for programs of that time.

Each warns with the name of its successor, as PyTorch's do. With `compat` it is what
`import functorch` finds.

>>> import rushlight as torch, warnings
>>> from rushlight import functorch
>>> net = torch.nn.Linear(2, 1, bias=False)
>>> with warnings.catch_warnings():
...     warnings.simplefilter("ignore", FutureWarning)
...     f, params = functorch.make_functional(net)
>>> f((torch.ones(1, 2),), torch.ones(3, 2)).tolist()
[[2.0], [2.0], [2.0]]
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from typing import Any

from rushlight import func, nn
from rushlight._version import __version__ as __version__
from rushlight.func.modules import check_alike, exchange
from rushlight.ops.registry import functions
from rushlight.ops.warned import warn_caller

__all__ = [
    "FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "grad",
    "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "make_functional",
    "make_functional_with_buffers", "vjp", "vmap",
]  # fmt: skip


def _warn(name: str, successor: str) -> None:
    warn_caller(
        "We've integrated functorch into PyTorch. As the final step of the integration, "
        f"`functorch.{name}` is deprecated as of PyTorch 2.0 and will be deleted in a future "
        f"version of PyTorch >= 2.3. Please use `{successor}` instead; see the PyTorch 2.0 release "
        "notes and/or the `torch.func` migration guide for more details "
        "https://pytorch.org/docs/main/func.migrating.html",
        FutureWarning,
    )


def _renamed(name: str, successor: str) -> Callable[..., Any]:
    fn: Callable[..., Any] = getattr(func, name)

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        _warn(name, successor)
        return fn(*args, **kwargs)

    return call


vmap = _renamed("vmap", "torch.vmap")
grad = _renamed("grad", "torch.func.grad")
grad_and_value = _renamed("grad_and_value", "torch.func.grad_and_value")
hessian = _renamed("hessian", "torch.func.hessian")
jacfwd = _renamed("jacfwd", "torch.func.jacfwd")
jacrev = _renamed("jacrev", "torch.func.jacrev")
jvp = _renamed("jvp", "torch.func.jvp")
vjp = _renamed("vjp", "torch.func.vjp")


class _Functional(nn.Module):
    """A module as a function of its state: a copy of it, and the names of what it is given."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.stateless_model = copy.deepcopy(model)
        self.param_names = tuple(name for name, _ in self.stateless_model.named_parameters())
        self.buffer_names = tuple(name for name, _ in self.stateless_model.named_buffers())

    def state(self, still: bool) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Parameters and buffers of the copy, which ask for no gradient if `still`."""
        params = tuple(p for _, p in self.stateless_model.named_parameters())
        if still:
            for p in params:
                p.requires_grad_(False)
        return params, tuple(b for _, b in self.stateless_model.named_buffers())

    def called(self, names: Sequence[str], values: Any, args: Any, kwargs: Any) -> Any:
        model = self.stateless_model
        own = {**dict(model.named_parameters(remove_duplicate=False)),
               **dict(model.named_buffers(remove_duplicate=False))}  # fmt: skip
        given = {id(own[name]): value for name, value in zip(names, values, strict=True)}
        with exchange(model, {name: given[id(t)] for name, t in own.items() if id(t) in given}):
            return model(*args, **kwargs)


class FunctionalModule(_Functional):
    """What `make_functional` returns: call it with parameters, then the arguments."""

    def forward(self, params: Any, *args: Any, **kwargs: Any) -> Any:
        return self.called(self.param_names, tuple(params), args, kwargs)


class FunctionalModuleWithBuffers(_Functional):
    """What `make_functional_with_buffers` returns: call it with parameters, buffers, arguments."""

    def forward(self, params: Any, buffers: Any, *args: Any, **kwargs: Any) -> Any:
        names = (*self.param_names, *self.buffer_names)
        return self.called(names, (*params, *buffers), args, kwargs)


def make_functional(model: Any, disable_autograd_tracking: bool = False) -> Any:
    """A module as a function, and its parameters: use `func.functional_call` instead."""
    _warn("make_functional", "torch.func.functional_call")
    if any(True for _ in model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use "
            "make_functional_with_buffers(model) instead."
        )
    made = FunctionalModule(model)
    return made, made.state(disable_autograd_tracking)[0]


def make_functional_with_buffers(model: Any, disable_autograd_tracking: bool = False) -> Any:
    """A module as a function, its parameters, its buffers: use `func.functional_call` instead."""
    _warn("make_functional_with_buffers", "torch.func.functional_call")
    made = FunctionalModuleWithBuffers(model)
    return made, *made.state(disable_autograd_tracking)


def combine_state_for_ensemble(models: Sequence[Any]) -> Any:
    """Modules alike as one function, and their stacked state: use `func.stack_module_state`."""
    _warn("combine_state_for_ensemble", "torch.func.stack_module_state")
    check_alike(models, "combine_state_for_ensemble")
    made = [FunctionalModuleWithBuffers(m) for m in models]
    states = [f.state(still=True) for f in made]
    stack = functions["stack"]
    params, buffers = (
        tuple(stack([s[part][i] for s in states]).detach() for i in range(len(states[0][part])))
        for part in (0, 1)
    )
    return made[0], params, buffers
