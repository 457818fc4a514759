"""Parametrizations: parameters that are functions of other parameters.

A parametrized tensor is computed each time it is read, from `module.parametrizations.name.original`
by the modules registered for it, one after the other. The module gets a class of its own, with a
property in the parameter's place.
"""

from __future__ import annotations

import copy
import typing as _typing
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.graph import TensorBase
from rushlight.missing import face as _face
from rushlight.nn.modules.container import ModuleDict, ModuleList
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]  # fmt: skip


class _Cache:
    """Values computed inside `cached`, by module and name."""

    def __init__(self) -> None:
        self.depth = 0
        self.values: dict[tuple[int, str], Any] = {}


_cache = _Cache()


@contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrized tensor once while the block runs.

    >>> from rushlight.nn.utils import parametrize
    >>> with parametrize.cached():
    ...     pass  # model(x), which reads its weights many times
    """
    _cache.depth += 1
    try:
        yield
    finally:
        _cache.depth -= 1
        if _cache.depth == 0:
            _cache.values = {}


def _register_parameter_or_buffer(module: Module, name: str, X: Any) -> None:
    if isinstance(X, Parameter):
        module.register_parameter(name, X)
    else:
        module.register_buffer(name, X)


def _maybe_set(dest: Any, src: Any) -> None:
    """Give `dest` the data of `src`."""
    dest.data = src.data


class ParametrizationList(ModuleList):
    """ParametrizationList(modules, original, unsafe=False): the parametrizations of one tensor,
    and what it is computed from: `original`, or `original0`, `original1` and so on where the first
    `right_inverse` gives several.

    `register_parametrization` makes it; calling it computes the tensor.
    """

    original: Any
    unsafe: bool

    def __init__(self, modules: Sequence[Module], original: Any, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        with no_grad():
            new = original
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    # one that says it has none leaves the tensor as it is
                    with suppress(NotImplementedError):
                        new = module.right_inverse(new)
        if not isinstance(new, (TensorBase, Sequence)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, TensorBase)
        self.ntensors = 1 if self.is_tensor else len(new)  # type: ignore[arg-type]
        if self.is_tensor:
            value: Any = new
            if original.dtype != value.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {original.dtype}\nright_inverse(original).dtype: "
                    f"{value.dtype}"
                )
            if original.device != value.device:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the device.\n"
                    f"original.device: {original.device}\nright_inverse(original).device: "
                    f"{value.device}"
                )
            with no_grad():
                _maybe_set(original, value)
            _register_parameter_or_buffer(self, "original", original)
        else:
            for i, part in enumerate(new):  # type: ignore[arg-type]
                if not isinstance(part, TensorBase):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors (list, "
                        f"tuple...). Got element {i} of the sequence with type "
                        f"{type(part).__name__}."
                    )
                if isinstance(original, Parameter):
                    part = Parameter(part, original.requires_grad)
                part.requires_grad_(original.requires_grad)
                _register_parameter_or_buffer(self, f"original{i}", part)
        if not self.unsafe:
            self._check_result(shape, dtype)

    def _check_result(self, shape: Any, dtype: Any) -> None:
        result = self()
        if not isinstance(result, TensorBase):
            raise ValueError(
                "A parametrization must return a tensor. Got " + type(result).__name__ + "."
            )
        Z: Any = result
        if Z.dtype != dtype:
            raise ValueError(
                "Registering a parametrization may not change the dtype of the tensor, unless "
                f"`unsafe` flag is enabled.\nunparametrized dtype: {dtype}\nparametrized dtype: "
                f"{Z.dtype}"
            )
        if Z.shape != shape:
            raise ValueError(
                "Registering a parametrization may not change the shape of the tensor, unless "
                f"`unsafe` flag is enabled.\nunparametrized shape: {shape}\nparametrized shape: "
                f"{Z.shape}"
            )

    def right_inverse(self, value: Any) -> None:
        """Let the parametrized tensor become `value`: change what it is computed from."""
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
                value = module.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, TensorBase):
                    raise ValueError(
                        f"`right_inverse` should return a tensor. Got {type(value).__name__}"
                    )
                given: Any = value
                if given.dtype != self.original.dtype:
                    raise ValueError(
                        f"The tensor returned by `right_inverse` has dtype {given.dtype} while "
                        f"`original` has dtype {self.original.dtype}"
                    )
                _maybe_set(self.original, value)
                return
            if not isinstance(value, Sequence):
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors. Got "
                    f"{type(value).__name__}."
                )
            if len(value) != self.ntensors:
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors of length "
                    f"{self.ntensors}. Got a sequence of length {len(value)}."
                )
            for i, part in enumerate(value):
                own = getattr(self, f"original{i}")
                if not isinstance(part, TensorBase):
                    raise ValueError(
                        f"`right_inverse` must return a sequence of tensors. Got element {i} of "
                        f"type {type(part).__name__}"
                    )
                if own.dtype != part.dtype:  # type: ignore[attr-defined]
                    raise ValueError(
                        f"Tensor {i} returned by `right_inverse` has dtype "
                        f"{part.dtype} while `original{i}` has dtype {own.dtype}"  # type: ignore[attr-defined]
                    )
                _maybe_set(own, part)

    def forward(self) -> Any:
        first, *others = self
        if self.is_tensor:
            x = first(self.original)
        else:
            x = first(*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        for module in others:
            x = module(x)
        return x


def _inject_new_class(module: Module) -> None:
    """Give a module a class of its own, in which properties can stand."""
    cls: Any = type(module)

    def getstate(self: Any) -> Any:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). See:\n"
            "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
            "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
        )

    def deepcopy(self: Any, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        made = self.__new__(type(self))
        memo[id(self)] = made
        made.__dict__ = copy.deepcopy(self.__dict__, memo)
        return made

    space: dict[str, Any] = {"__getstate__": getstate}
    if not hasattr(cls, "__deepcopy__"):
        space["__deepcopy__"] = deepcopy
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), space)


def _inject_property(module: Any, tensor_name: str) -> None:
    """Put a property for a parametrized tensor into a module's own class."""
    assert not hasattr(module, tensor_name)

    def get(self: Any) -> Any:
        parametrization = self.parametrizations[tensor_name]
        if _cache.depth == 0:
            return parametrization()
        key = (id(self), tensor_name)
        value = _cache.values.get(key)
        if value is None:
            value = _cache.values[key] = parametrization()
        return value

    def put(self: Any, value: Any) -> None:
        self.parametrizations[tensor_name].right_inverse(value)

    setattr(type(module), tensor_name, property(get, put))


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Let a parameter or buffer of a module be a function of what it was.

    Where the parametrization has a `right_inverse`, the tensor keeps its value, and can be
    assigned to. `unsafe` leaves the checks of shape and dtype out.

    >>> from rushlight.nn.utils import parametrize
    >>> class Symmetric(torch.nn.Module):
    ...     def forward(self, X):
    ...         return X.triu() + X.triu(1).T
    >>> m = torch.nn.Linear(3, 3)
    >>> m = parametrize.register_parametrization(m, "weight", Symmetric())
    >>> bool((m.weight == m.weight.T).all())
    True
    >>> m
    ParametrizedLinear(
      in_features=3, out_features=3, bias=True
      (parametrizations): ModuleDict(
        (weight): ParametrizationList(
          (0): Symmetric()
        )
      )
    )
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_next(getattr(module, tensor_name), parametrization, tensor_name)
        held: Any = module.parametrizations
        held[tensor_name].append(parametrization)
        held[tensor_name].unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        made = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _inject_new_class(module)
            module.parametrizations = ModuleDict()
        _inject_property(module, tensor_name)
        held = module.parametrizations
        held[tensor_name] = made
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    return module


def _check_next(Y: Any, parametrization: Any, name: str) -> None:
    """Whether a parametrization can follow those of a tensor `Y`."""
    X = parametrization(Y)
    if not isinstance(X, TensorBase):
        raise ValueError(f"A parametrization must return a tensor. Got {type(X).__name__}.")
    new: Any = X
    if new.dtype != Y.dtype:
        raise ValueError(
            "Registering a parametrization may not change the dtype of the tensor, unless the "
            f"`unsafe` flag is enabled.\nmodule.{name}.dtype: {Y.dtype}\n"
            f"parametrization(module.{name}).dtype: {new.dtype}"
        )
    if new.shape != Y.shape:
        raise ValueError(
            "Registering a parametrization may not change the shape of the tensor, unless the "
            f"`unsafe` flag is enabled.\nmodule.{name}.shape: {Y.shape}\n"
            f"parametrization(module.{name}).shape: {new.shape}"
        )
    if hasattr(parametrization, "right_inverse"):
        try:
            Z = parametrization.right_inverse(X)
        except NotImplementedError:
            return
        if not isinstance(Z, TensorBase):
            raise ValueError(
                f"parametrization.right_inverse must return a tensor. Got: {type(Z).__name__}"
            )
        back: Any = Z
        if back.dtype != Y.dtype:
            raise ValueError(
                "The tensor returned by parametrization.right_inverse must have the same dtype "
                f"as module.{name}, unless the `unsafe` flag is enabled.\nreturned dtype: "
                f"{back.dtype}"
            )
        if back.shape != Y.shape:
            raise ValueError(
                "The tensor returned by parametrization.right_inverse must have the same shape "
                f"as module.{name}, unless the `unsafe` flag is enabled.\nreturned shape: "
                f"{back.shape}"
            )


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a module has parametrizations, or one of the named tensor.

    >>> from rushlight.nn.utils import parametrize
    >>> parametrize.is_parametrized(torch.nn.Linear(1, 1))
    False
    """
    held = getattr(module, "parametrizations", None)
    if held is None or not isinstance(held, ModuleDict):
        return False
    return len(held) > 0 if tensor_name is None else tensor_name in held


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Make a parametrized tensor an ordinary one again, with its present value, or with
    `leave_parametrized=False` that of the original.

    >>> from rushlight.nn.utils import parametrize
    >>> m = parametrize.register_parametrization(torch.nn.Linear(1, 1), "bias", torch.nn.Tanh())
    >>> parametrize.remove_parametrizations(m, "bias")
    Linear(in_features=1, out_features=1, bias=True)
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    held: Any = module.parametrizations
    parametrization = held[tensor_name]
    if parametrization.is_tensor:
        original = parametrization.original
        if leave_parametrized:
            with no_grad():
                value = getattr(module, tensor_name)
                _maybe_set(original, value)
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del held[tensor_name]
    _register_parameter_or_buffer(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class that a module had before it was parametrized.

    >>> from rushlight.nn.utils import parametrize
    >>> m = parametrize.register_parametrization(torch.nn.Linear(1, 1), "bias", torch.nn.Tanh())
    >>> parametrize.type_before_parametrizations(m).__name__
    'Linear'
    """
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Give a module the parametrizations of another, of one tensor or of all, and their values."""
    if not is_parametrized(from_module):
        return to_module
    theirs: Any = from_module.parametrizations
    for name in list(theirs) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for parametrization in theirs[name]:
            register_parametrization(to_module, name, parametrization)
        ours: Any = to_module.parametrizations
        if hasattr(theirs[name], "original"):
            ours[name].original = theirs[name].original
        else:
            for i in range(theirs[name].ntensors):
                setattr(ours[name], f"original{i}", getattr(theirs[name], f"original{i}"))
    return to_module


if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.nn.utils.parametrize", globals())
