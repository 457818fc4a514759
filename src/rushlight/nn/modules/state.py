"""Saving and loading a module's values: `state_dict`, `load_state_dict`, and their hooks."""

from __future__ import annotations

import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.graph import TensorBase
from rushlight.nn.parameter import Parameter, is_lazy
from rushlight.utils.hooks import RemovableHandle, add_hook

Hook = Callable[..., Any]

EXTRA_STATE = "_extra_state"


class IncompatibleKeys(namedtuple("IncompatibleKeys", ("missing_keys", "unexpected_keys"))):
    """What `load_state_dict` found missing, and what it had no use for."""

    __slots__ = ()
    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (
            f"_IncompatibleKeys(missing_keys={self.missing_keys!r}, "
            f"unexpected_keys={self.unexpected_keys!r})"
        )

    __str__ = __repr__


class WithModule:
    """A hook that wants the module too. It does not hold it: a copied module has its own."""

    def __init__(self, hook: Hook) -> None:
        self.hook = hook


class Stateful:
    """A thing whose parameters and buffers are saved by name."""

    _version: int = 1
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _state_dict_hooks: dict[int, Hook]
    _state_dict_pre_hooks: dict[int, Hook]
    _load_state_dict_pre_hooks: dict[int, Any]
    _load_state_dict_post_hooks: dict[int, Hook]

    def get_extra_state(self) -> Any:
        """What else belongs into the `state_dict`; a module that has such state overrides this."""
        raise RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called."
        )

    def set_extra_state(self, state: Any) -> None:
        """Take back what `get_extra_state` gave."""
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called."
        )

    def _has_extra_state(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(Stateful, method)

    # --- saving ---------------------------------------------------------------------------------
    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """The parameters and persistent buffers of the module and all below it, by name.

        The tensors share memory with the module's; `keep_vars` gives the very parameters.

        >>> list(torch.nn.Sequential(torch.nn.Linear(2, 1)).state_dict())
        ['0.weight', '0.bias']
        """
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead. Refer to "
                "https://pytorch.org/docs/main/generated/torch.nn.Module.html"
                "#torch.nn.Module.state_dict for details.",
                FutureWarning,
                stacklevel=2,
            )
            named = {"destination": destination, "prefix": prefix, "keep_vars": keep_vars}
            named.update(zip(named, args))
            return self.state_dict(**named)
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(
                    destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
                )
        for hook in self._state_dict_hooks.values():
            answer = hook(self, destination, prefix, metadata)
            if answer is None:
                continue
            if getattr(hook, "_from_public_api", False):
                raise RuntimeError("state_dict post-hook must return None")
            destination = answer
        state: dict[str, Any] = destination
        return state

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """The values of this module alone, into `destination`."""
        for name, value in self._own_state():
            destination[prefix + name] = value if keep_vars else value.detach()
        if self._has_extra_state("get_extra_state"):
            destination[prefix + EXTRA_STATE] = self.get_extra_state()

    def _own_state(self) -> Iterator[tuple[str, Any]]:
        for name, value in chain(self._parameters.items(), self._buffers.items()):
            if value is not None and name not in self._non_persistent_buffers_set:
                yield name, value

    # --- loading --------------------------------------------------------------------------------
    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy values from a `state_dict` into this module.

        With `strict` both must have the same names. With `assign` the given tensors themselves
        become the module's.

        >>> a, b = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
        >>> a.load_state_dict(b.state_dict())
        <All keys matched successfully>
        >>> torch.equal(a.weight, b.weight)
        True
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        loading = Loading(OrderedDict(state_dict), strict, assign)
        loading.metadata = getattr(state_dict, "_metadata", None)
        loading.load_into(self, loading.state, "")
        errors = loading.errors
        if strict:
            if loading.missing:
                errors.insert(0, f"Missing key(s) in state_dict: {quote(loading.missing)}. ")
            if loading.unexpected:
                at = 1 if loading.missing else 0
                errors.insert(at, f"Unexpected key(s) in state_dict: {quote(loading.unexpected)}. ")
        if errors:
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t"
                + "\n\t".join(errors)
                + _cure_of_keys(loading.missing, loading.unexpected)
            )
        return IncompatibleKeys(loading.missing, loading.unexpected)

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: dict[str, Any], strict: bool,
        missing_keys: list[str], unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:  # fmt: skip
        """Copy the values of this module alone; modules whose saved form changed override this."""
        rest = (prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        for hook in self._load_state_dict_pre_hooks.values():
            if isinstance(hook, WithModule):
                hook.hook(self, state_dict, *rest)
            else:
                hook(state_dict, *rest)
        assign = bool(local_metadata.get("assign_to_params_buffers", False))
        own = dict(self._own_state())
        for name, param in own.items():
            key = prefix + name
            if key in state_dict:
                error = self._load_one(name, key, param, state_dict[key], assign)
                if error:
                    error_msgs.append(error)
            elif strict:
                missing_keys.append(key)
        extra = prefix + EXTRA_STATE
        if self._has_extra_state("set_extra_state"):
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra:
                    first, *below = key[len(prefix) :].split(".", 1)
                    known: Any = self._modules if below else own
                    if first not in known:
                        unexpected_keys.append(key)

    def _load_one(self, name: str, key: str, param: Any, given: Any, assign: bool) -> str:
        """Copy or assign one value; what is wrong with it, or an empty string."""
        if not isinstance(given, TensorBase):
            return (
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like '
                f"object from checkpoint but received {type(given)}"
            )
        value: Any = given
        if param.ndim == 0 and value.ndim == 1 and len(value) == 1:
            value = value[0]  # scalars were once saved with one dimension
        if not is_lazy(param) and value.shape != param.shape:
            return (
                f"size mismatch for {key}: copying a param with shape {value.shape} from "
                f"checkpoint, the shape in current model is {param.shape}."
            )
        if param.is_meta and not value.is_meta and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta "
                "parameter in the current model, which is a no-op. (Did you mean to pass "
                "`assign=True` to assign items in the state dictionary to their corresponding key "
                "in the module instead of copying them in place?)",
                stacklevel=2,
            )
        try:
            with no_grad():
                if not assign:
                    param.copy_(value)
                elif isinstance(param, Parameter):
                    requires_grad = param.requires_grad
                    if isinstance(value, Parameter):
                        value.requires_grad_(requires_grad)
                    else:
                        value = Parameter(value, requires_grad=requires_grad)
                    setattr(self, name, value)
                else:
                    setattr(self, name, value)
        except Exception as error:
            what = "swapping" if assign else "copying"
            return (
                f'While {what} the parameter named "{key}", whose dimensions in the model are '
                f"{param.shape} and whose dimensions in the checkpoint are {value.shape}, an "
                f"exception occurred : {error.args}."
            )
        return ""

    # --- hooks ----------------------------------------------------------------------------------
    def _register_state_dict_hook(self, hook: Hook) -> RemovableHandle:
        return add_hook(self._state_dict_hooks, hook)

    def register_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after `state_dict`."""
        hook._from_public_api = True  # type: ignore[attr-defined]
        return add_hook(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before `state_dict`."""
        return add_hook(self._state_dict_pre_hooks, hook)

    def _register_load_state_dict_pre_hook(
        self, hook: Hook, with_module: bool = False
    ) -> RemovableHandle:
        kept: Any = WithModule(hook) if with_module else hook
        return add_hook(self._load_state_dict_pre_hooks, kept)

    def register_load_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs)` before `load_state_dict` copies into this module."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after `load_state_dict`."""
        return add_hook(self._load_state_dict_post_hooks, hook)


class Loading:
    """One `load_state_dict`: goes down the tree of modules and collects what does not fit."""

    def __init__(self, state: Any, strict: bool, assign: bool) -> None:
        self.state = state
        self.strict = strict
        self.assign = assign
        self.metadata: Any = None
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self.errors: list[str] = []

    def load_into(self, module: Any, state: Any, prefix: str) -> None:
        metadata = {} if self.metadata is None else self.metadata.get(prefix[:-1], {})
        if self.assign:
            metadata["assign_to_params_buffers"] = True
        module._load_from_state_dict(
            state, prefix, metadata, True, self.missing, self.unexpected, self.errors
        )
        for name, child in module._modules.items():
            if child is not None:
                inner = f"{prefix}{name}."
                part = {k: v for k, v in state.items() if k.startswith(inner)}
                self.load_into(child, part, inner)
        keys = IncompatibleKeys(self.missing, self.unexpected)
        for hook in module._load_state_dict_post_hooks.values():
            if hook(module, keys) is not None:
                raise AssertionError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not expected "
                    "to return new values, if incompatible_keys need to be modified, it should be "
                    "done inplace."
                )


def _cure_of_keys(missing: list[str], unexpected: list[str]) -> str:
    """What to do about keys that do not fit; "" where only sizes differ."""
    for prefix in ("module.", "_orig_mod."):  # what DataParallel and compile put in front
        if missing and {prefix + key for key in missing} <= set(unexpected):
            return (
                f"\nThe file's keys begin with {prefix!r}, for the model was saved in a wrapper: "
                f"`{{k.removeprefix({prefix!r}): v for k, v in state_dict.items()}}` loads."
            )
    if missing or unexpected:
        return "\nIs it the same model? `strict=False` loads what fits, and returns what does not."
    return ""


def quote(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
