"""`Module`: what every layer, network and loss is.

Calling and hooks stand in `calling`, saving and loading in `state`; here are the module's parts
(parameters, buffers, submodules), the walks over them, conversions, and the printed form.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, Self, TypeVar

from rushlight import dtypes
from rushlight.arrays.device import device as Device
from rushlight.arrays.host import NO_DATA
from rushlight.autograd.grad_mode import no_grad
from rushlight.core.graph import TensorBase
from rushlight.nn.modules.calling import Calling
from rushlight.nn.modules.everywhere import (
    call_registration_hooks,
    everywhere,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from rushlight.nn.modules.state import EXTRA_STATE, IncompatibleKeys, Stateful, WithModule
from rushlight.nn.parameter import Buffer, Parameter
from rushlight.ops.registry import functions
from rushlight.tensor import Tensor
from rushlight.tensor_types import typename

__all__ = [
    "Module", "register_module_backward_hook", "register_module_buffer_registration_hook",
    "register_module_forward_hook", "register_module_forward_pre_hook",
    "register_module_full_backward_hook", "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook", "register_module_parameter_registration_hook",
]  # fmt: skip
__dir__ = __all__.copy

# By PyTorch's names, which libraries reach for.
_EXTRA_STATE_KEY_SUFFIX = EXTRA_STATE
_IncompatibleKeys = IncompatibleKeys
_WrappedHook = WithModule
_global_backward_hooks = everywhere.backward
_global_backward_pre_hooks = everywhere.backward_pre
_global_buffer_registration_hooks = everywhere.buffers
_global_forward_hooks = everywhere.forward
_global_forward_hooks_always_called = everywhere.always_called
_global_forward_hooks_with_kwargs = everywhere.with_kwargs
_global_forward_pre_hooks = everywhere.forward_pre
_global_module_registration_hooks = everywhere.modules
_global_parameter_registration_hooks = everywhere.parameters


def _has_any_global_hook() -> bool:
    return bool(everywhere.calls)


_DICTIONARIES = (
    "_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)  # fmt: skip


class Module(Calling, Stateful):
    """Base class of all neural network modules.

    Parameters and modules assigned to attributes are found by `parameters()`, `to()`,
    `state_dict()`; `forward` says what a call computes.

    >>> class Doubled(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.inner = torch.nn.Linear(2, 3)
    ...     def forward(self, x):
    ...         return 2 * self.inner(x)
    >>> Doubled()
    Doubled(
      (inner): Linear(in_features=2, out_features=3, bias=True)
    )
    >>> Doubled()(torch.ones(4, 2)).shape
    torch.Size([4, 3])
    """

    dump_patches = False
    T_destination = TypeVar("T_destination", bound=dict[str, Any])
    training: bool
    call_super_init = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        own = self.__dict__  # not through __setattr__, which reads what is only made here
        if not self.call_super_init:
            if kwargs:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument "
                    f"'{next(iter(kwargs))}'"
                )
            if args:
                raise TypeError(
                    f"{type(self).__name__}.__init__() takes 1 positional argument but "
                    f"{len(args) + 1} were given"
                )
        own["training"] = True
        own["_parameters"] = {}
        own["_buffers"] = {}
        own["_non_persistent_buffers_set"] = set()
        own["_is_full_backward_hook"] = None
        for name in _DICTIONARIES:
            own[name] = OrderedDict()
        own["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    # --- its parts ------------------------------------------------------------------------------
    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for kind in ("_parameters", "_buffers", "_modules"):
            found = own.get(kind)
            if found is not None and name in found:
                return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if isinstance(value, Parameter):
            if "_parameters" not in own:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
        elif name in own.get("_parameters", ()):
            if value is not None:
                _refuse(value, "parameter", name, "torch.nn.Parameter or None expected")
            self.register_parameter(name, None)
        elif isinstance(value, Module):
            if "_modules" not in own:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, "_modules")
            own["_modules"][name] = call_registration_hooks(everywhere.modules, self, name, value)
        elif name in own.get("_modules", ()):
            if value is not None:
                _refuse(value, "child module", name, "torch.nn.Module or None expected")
            own["_modules"][name] = call_registration_hooks(everywhere.modules, self, name, None)
        elif isinstance(value, TensorBase) and isinstance(value, Buffer):
            if "_buffers" not in own:
                raise AttributeError("cannot assign buffer before Module.__init__() call")
            self._forget(name, "_buffers")
            self.register_buffer(name, value, value.persistent)
        elif name in own.get("_buffers", ()):
            if value is not None and not isinstance(value, TensorBase):
                _refuse(value, "buffer", name, "torch.nn.Buffer, torch.Tensor or None expected")
            own["_buffers"][name] = call_registration_hooks(everywhere.buffers, self, name, value)
        else:
            object.__setattr__(self, name, value)

    def _forget(self, name: str, but: str) -> None:
        """A name is one thing only: drop what it was before."""
        own = self.__dict__
        own.pop(name, None)
        for kind in ("_parameters", "_buffers", "_modules"):
            if kind != but:
                own.get(kind, {}).pop(name, None)
        own["_non_persistent_buffers_set"].discard(name)

    def __delattr__(self, name: str) -> None:
        for kind in ("_parameters", "_buffers", "_modules"):
            found = self.__dict__.get(kind)
            if found is not None and name in found:
                del found[name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Keep a tensor with the module without learning it.

        What is not `persistent` stays out of the `state_dict`.

        >>> m = torch.nn.Module()
        >>> m.register_buffer("mean", torch.zeros(2))
        >>> m.mean
        tensor([0., 0.])
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name(name, "buffer", "_buffers")
        if tensor is not None and not isinstance(tensor, TensorBase):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' "
                "(torch Tensor or None required)"
            )
        self._buffers[name] = call_registration_hooks(everywhere.buffers, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Any) -> None:
        """Add a parameter; None keeps the name for one that is not there."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name(name, "parameter", "_parameters")
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{typename(param)}' object to parameter '{name}' "
                    "(torch.nn.Parameter or None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must "
                    f"be created explicitly. To express '{name}' as a function of another Tensor, "
                    "compute the value in the forward() method."
                )
            param = call_registration_hooks(everywhere.parameters, self, name, param)
        self._parameters[name] = param

    def _check_name(self, name: Any, what: str, kind: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string. Got {typename(name)}")
        if "." in name:
            raise KeyError(f'{what} name can\'t contain "."')
        if name == "":
            raise KeyError(f'{what} name can\'t be empty string ""')
        if hasattr(self, name) and name not in self.__dict__[kind]:
            raise KeyError(f"attribute '{name}' already exists")

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a module under a name, as an assignment to an attribute does."""
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{typename(module)} is not a Module subclass")
        if not isinstance(name, str):
            raise TypeError(f"module name should be a string. Got {typename(name)}")
        if hasattr(self, name) and name not in self._modules:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'module name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError('module name can\'t be empty string ""')
        self._modules[name] = call_registration_hooks(everywhere.modules, self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """`add_module`."""
        self.add_module(name, module)

    # --- by dotted name -------------------------------------------------------------------------
    def get_submodule(self, target: str) -> Module:
        """The module at a dotted name; the empty name is this module.

        >>> net = torch.nn.Sequential(torch.nn.Sequential(torch.nn.ReLU()))
        >>> net.get_submodule("0.0")
        ReLU()
        """
        found: Module = self
        for name in target.split(".") if target else ():
            if not hasattr(found, name):
                raise AttributeError(f"{found._get_name()} has no attribute `{name}`")
            inner = getattr(found, name)
            if not isinstance(inner, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
            found = inner
        return found

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put a module at a dotted name; with `strict`, only where there is one already."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        above, _, name = target.rpartition(".")
        parent = self.get_submodule(above)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted name."""
        found = self._get_member(target)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{target.rpartition('.')[2]}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Any:
        """The buffer at a dotted name."""
        above, _, name = target.rpartition(".")
        found = self._get_member(target)
        if name not in self.get_submodule(above)._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return found

    def _get_member(self, target: str) -> Any:
        above, _, name = target.rpartition(".")
        module = self.get_submodule(above)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        return getattr(module, name)

    # --- walks ----------------------------------------------------------------------------------
    def _named_members(
        self, get_members_fn: Callable[[Module], Any], prefix: str = "", recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:  # fmt: skip
        seen: set[Any] = set()
        modules: Any = ((prefix, self),)
        if recurse:
            modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        for path, module in modules:
            for name, value in get_members_fn(module):
                if value is None or value in seen:
                    continue
                if remove_duplicate:
                    seen.add(value)
                yield f"{path}.{name}" if path else name, value

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters of the module and, with `recurse`, of all below it; each once.

        >>> [p.shape for p in torch.nn.Linear(2, 3).parameters()]
        [torch.Size([3, 2]), torch.Size([3])]
        """
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """`parameters` with their dotted names.

        >>> net = torch.nn.Sequential(torch.nn.Linear(2, 3))
        >>> [name for name, _ in net.named_parameters()]
        ['0.weight', '0.bias']
        """
        yield from self._named_members(
            lambda module: module._parameters.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers of the module and, with `recurse`, of all below it; each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """`buffers` with their dotted names."""
        yield from self._named_members(
            lambda module: module._buffers.items(), prefix, recurse, remove_duplicate
        )

    def children(self) -> Iterator[Module]:
        """The modules one level below; each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """`children` with their names."""
        seen: set[Module] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """The module itself and all below it; each once, unless `remove_duplicate` is False."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """`modules` with their dotted names; that of the module itself is `prefix`.

        >>> [name for name, _ in torch.nn.Sequential(torch.nn.ReLU()).named_modules()]
        ['', '0']
        """
        seen = set() if memo is None else memo
        if self in seen:
            return
        if remove_duplicate:
            seen.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(seen, path, remove_duplicate)

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call `fn` on every module below, then on this one.

        >>> net = torch.nn.Sequential(torch.nn.ReLU())
        >>> _ = net.apply(lambda module: print(type(module).__name__))
        ReLU
        Sequential
        """
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    # --- modes ----------------------------------------------------------------------------------
    def train(self, mode: bool = True) -> Self:
        """Training mode, on or off, here and in all modules below: dropout and batch
        normalisation behave differently."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """`train(False)`.

        >>> torch.nn.Dropout().eval().training
        False
        """
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Ask for gradients of the parameters, or stop asking: freeze them.

        >>> m = torch.nn.Linear(1, 1).requires_grad_(False)
        >>> m(torch.ones(1)).requires_grad
        False
        """
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the parameters' gradients, or with `set_to_none=False` set them to zero."""
        for param in self.parameters():
            if param.grad is not None:
                if set_to_none:
                    param.grad = None
                else:
                    if param.grad.grad_fn is not None:
                        param.grad.detach_()
                    else:
                        param.grad.requires_grad_(False)
                    param.grad.zero_()

    # --- conversions ----------------------------------------------------------------------------
    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> Self:
        """Replace the values of all parameters, gradients and buffers by what `fn` makes of them.

        The parameters stay the same objects, so that an optimiser keeps its hold on them.
        """
        if recurse:
            for module in self.children():
                module._apply(fn)
        for param in self._parameters.values():
            if param is None:
                continue
            with no_grad():
                param.data = fn(param)
                if param.grad is not None:
                    # made anew: a gradient of another dtype could not be assigned to
                    gradient = fn(param.grad).detach()
                    gradient.requires_grad_(param.grad.requires_grad)
                    param._accumulated_grad = gradient
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """to(device=None, dtype=None, non_blocking=False), to(dtype), to(tensor): move or cast
        the module, in place. Integer buffers keep their dtype.

        >>> torch.nn.Linear(1, 1).to(torch.float64).weight.dtype
        torch.float64
        """
        dtype, where = _wanted(args, kwargs)

        def convert(t: Any) -> Any:
            want = dtype if t.is_floating_point() or t.is_complex() else None
            try:
                return t.to(where, want)
            except NotImplementedError as error:
                if str(error) != NO_DATA:
                    raise
                raise NotImplementedError(
                    f"{NO_DATA} Please use torch.nn.Module.to_empty() instead of "
                    "torch.nn.Module.to() when moving module from meta to a different device."
                ) from None

        return self._apply(convert)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Move to a device without the values."""
        return self._apply(lambda t: functions["empty_like"](t, device=device), recurse=recurse)

    def type(self, dst_type: Any) -> Self:
        """Cast all parameters and buffers to a dtype."""
        return self._apply(lambda t: t.type(dst_type))

    def cpu(self) -> Self:
        """Move to the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device: Any = None) -> Self:
        """Move to a GPU."""
        return self._apply(lambda t: t.cuda(device))

    def ipu(self, device: Any = None) -> Self:
        """Move to an IPU, which there is none of here."""
        return self._apply(lambda t: t.to("ipu" if device is None else device))

    def xpu(self, device: Any = None) -> Self:
        """Move to an XPU, which there is none of here."""
        return self._apply(lambda t: t.to("xpu" if device is None else device))

    def mtia(self, device: Any = None) -> Self:
        """Move to an MTIA device, which there is none of here."""
        return self._apply(lambda t: t.to("mtia" if device is None else device))

    def _cast_floats(self, dtype: dtypes.dtype) -> Self:
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def float(self) -> Self:
        """Cast floating-point parameters and buffers to float32."""
        return self._cast_floats(dtypes.float32)

    def double(self) -> Self:
        """Cast floating-point parameters and buffers to float64."""
        return self._cast_floats(dtypes.float64)

    def half(self) -> Self:
        """Cast floating-point parameters and buffers to float16."""
        return self._cast_floats(dtypes.float16)

    def bfloat16(self) -> Self:
        """Cast floating-point parameters and buffers to bfloat16."""
        return self._cast_floats(dtypes.bfloat16)

    def share_memory(self) -> Self:
        """Move parameters and buffers to where other processes can see them."""
        return self._apply(lambda t: t.share_memory_())

    # --- Python ---------------------------------------------------------------------------------
    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in _DICTIONARIES:  # what a module pickled by an older version lacks
            self.__dict__.setdefault(name, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    def _replicate_for_data_parallel(self) -> Self:
        """A module of the same parts in tables of its own, as a replica on another device is."""
        replica = self.__new__(type(self))
        own = replica.__dict__
        own.update(self.__dict__)
        own["_parameters"] = {}
        own["_buffers"] = dict(self._buffers)
        own["_modules"] = dict(self._modules)
        own["_is_replica"] = True
        return replica

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What stands in the parentheses of the printed form; modules override it."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {indent(repr(module))}" for name, module in self._modules.items()]
        return module_block(self._get_name(), lines, children)

    def __dir__(self) -> list[str]:
        names = [*dir(type(self)), *self.__dict__]
        for part in (self._parameters, self._modules, self._buffers):
            names += part
        return sorted(name for name in names if not name[0].isdigit())


def module_block(name: str, extra: list[str], children: list[str]) -> str:
    """A module's printed form: on one line where there are no modules below."""
    if len(extra) == 1 and not children:
        return f"{name}({extra[0]})"
    if not extra and not children:
        return f"{name}()"
    return f"{name}(\n  " + "\n  ".join([*extra, *children]) + "\n)"


def indent(text: str) -> str:
    """All lines after the first, two columns to the right."""
    return text.replace("\n", "\n  ")


def _addindent(s_: str, numSpaces: int) -> str:
    """`indent` by so many columns, under PyTorch's name."""
    first, *rest = s_.split("\n")
    return "\n".join([first, *(" " * numSpaces + line for line in rest)])


def _refuse(value: Any, what: str, name: str, expected: str) -> NoReturn:
    raise TypeError(f"cannot assign '{typename(value)}' as {what} '{name}' ({expected})")


def _wanted(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """The dtype and device that arguments of `Module.to` ask for; None where they say nothing."""
    dtype, where = parse_to(args, kwargs)
    if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
        raise TypeError(
            "nn.Module.to only accepts floating point or complex dtypes, but got desired "
            f"dtype={dtype}"
        )
    return dtype, where


def parse_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """The dtype and device that arguments of a tensor's `to` ask for."""
    probe = functions["empty"](0)
    moved = probe.to(*args, **kwargs)  # the tensor's `to` reads and checks the arguments
    named = {**kwargs, **{str(i): arg for i, arg in enumerate(args)}}
    dtype: Any = None
    where: Any = None
    for value in named.values():
        if isinstance(value, TensorBase):
            dtype, where = moved.dtype, moved.device
        elif isinstance(value, dtypes.dtype) or value in (float, int, bool, complex):
            dtype = moved.dtype
        elif isinstance(value, Device | str | int) and not isinstance(value, bool):
            where = moved.device
    return dtype, where
