"""`Optimizer`: what every optimiser is. How their rules are run stands in `rules`."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any, ClassVar, Final, TypeVar, overload

from rushlight.autograd.grad_mode import enable_grad
from rushlight.core.grad_mode import inference_enabled, within
from rushlight.core.graph import TensorBase
from rushlight.core.observer import observer
from rushlight.core.optimizer_loops import dense_grads
from rushlight.errors import hide_insides, sentence
from rushlight.ops.registry import functions
from rushlight.optim.rules import scalar, zero_step
from rushlight.tensor_types import typename
from rushlight.utils.hooks import RemovableHandle, add_hook

__all__ = [
    "Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook",
]  # fmt: skip
__dir__ = __all__.copy

Hook = Callable[..., Any]
R = TypeVar("R")  # what a closure returns


class Required:
    """The default of a parameter that has none."""

    def __repr__(self) -> str:
        return "<required parameter>"


required: Final = Required()
_before_steps: Final[dict[int, Hook]] = {}  # hooks of all optimisers
_after_steps: Final[dict[int, Hook]] = {}


def register_optimizer_step_pre_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before each step of any optimiser.

    >>> from rushlight.optim.optimizer import register_optimizer_step_pre_hook
    >>> optimiser = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
    >>> with register_optimizer_step_pre_hook(lambda o, args, kwargs: print(type(o).__name__)):
    ...     optimiser.step()
    SGD
    """
    return add_hook(_before_steps, hook)


def register_optimizer_step_post_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after each step of any optimiser."""
    return add_hook(_after_steps, hook)


class Optimizer:
    """Base class of all optimisers: parameters in groups, each with its options.

    >>> w = torch.ones(2, requires_grad=True)
    >>> opt = torch.optim.SGD([w], lr=0.1)
    >>> w.sum().backward()
    >>> opt.step()
    >>> w
    tensor([0.9000, 0.9000], requires_grad=True)
    """

    # options that a state saved by an older version may lack, and their values then
    _added: ClassVar[dict[str, Any]] = {}
    # what is kept of a parameter as a 0-d tensor, and was a number in older versions
    _scalars: ClassVar[tuple[str, ...]] = ("step",)
    # what is kept of a parameter as a tensor like it, of zeros at first
    _zeros: ClassVar[tuple[str, ...]] = ()
    _sparse_cure: ClassVar[str] = ""  # what to do about sparse gradients

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not hasattr(cls.step, "hooked"):  # its own, or the one that calls its `_step`
            cls.step = _with_hooks(cls.step)  # type: ignore[method-assign]

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._make_hooks()
        if isinstance(params, TensorBase):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                f"but got {typename(params)}"
            )
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if not groups:
            raise ValueError(
                sentence(
                    "optimizer got an empty parameter list",
                    "",
                    "`model.parameters()` gives what was assigned to attributes of the model: "
                    "modules in a plain list are not seen (`nn.ModuleList` is), and an iterator "
                    "that was read once is empty.",
                )
            )
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _make_hooks(self) -> None:
        for name in (
            "_optimizer_step_pre_hooks", "_optimizer_step_post_hooks",
            "_optimizer_state_dict_pre_hooks", "_optimizer_state_dict_post_hooks",
            "_optimizer_load_state_dict_pre_hooks", "_optimizer_load_state_dict_post_hooks",
        ):  # fmt: skip
            self.__dict__.setdefault(name, OrderedDict())

    def _hooks(self, name: str) -> list[Hook]:
        """Those of one kind; none if a subclass did not call our `__init__`."""
        return list(self.__dict__.get(name, {}).values())

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_hooks()
        self.__dict__.setdefault("defaults", {}).setdefault("differentiable", False)
        for group in self.param_groups:
            for name, value in self._added.items():
                group.setdefault(name, value)
            if self._added:  # one of our own, not a user's
                for param in group["params"]:
                    self._renew(self.state.get(param, {}))

    def _renew(self, state: dict[str, Any]) -> None:
        for name in self._scalars:
            if name in state and not isinstance(state[name], TensorBase):
                state[name] = scalar(state[name])

    # --- what copies of PyTorch's optimisers call -----------------------------------------------
    OptimizerPreHook: ClassVar[Any] = Hook
    OptimizerPostHook: ClassVar[Any] = Hook

    def _accelerator_graph_capture_health_check(self) -> None:
        """Nothing is captured here, and all is well."""

    _cuda_graph_capture_health_check = _accelerator_graph_capture_health_check

    def _optimizer_step_code(self) -> None:
        """A mark for profilers."""

    def _patch_step_function(self) -> None:
        """Hooks are around `step` from the making of a class."""
        self._make_hooks()

    @staticmethod
    def profile_hook_step(func: Hook) -> Hook:
        """`func` as a `step`, with hooks around it."""
        return _with_hooks(func)

    @staticmethod
    def _group_tensors_by_device_and_dtype(
        tensorlistlist: list[list[Any]], with_indices: bool = False
    ) -> dict[Any, Any]:
        from rushlight.optim.private import group_tensors

        return group_tensors(tensorlistlist, with_indices)

    @staticmethod
    def _process_value_according_to_param_policy(
        param: Any, value: Any, param_id: int, param_groups: list[Any], key: Hashable = None
    ) -> Any:
        return _fit_state(param, value, key)

    def __repr__(self) -> str:
        text = type(self).__name__ + " ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            for key in sorted(group):
                if key != "params":
                    text += f"    {key}: {group[key]}\n"
        return text + ")"

    # --- parameters -----------------------------------------------------------------------------
    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own: layers that were frozen so far, say.

        >>> a, b = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
        >>> opt = torch.optim.SGD([a], lr=0.1)
        >>> opt.add_param_group({"params": [b], "lr": 0.01})
        >>> [group["lr"] for group in opt.param_groups]
        [0.1, 0.01]
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        param_group["params"] = _as_list(param_group["params"])
        _split_names(param_group)
        for param in param_group["params"]:
            if not isinstance(param, TensorBase):
                raise TypeError(
                    f"optimizer can only optimize Tensors, but one of the params is "
                    f"{typename(param)}"
                )
            leaf = param.grad_fn is None or param.retains_grad  # type: ignore[attr-defined]
            if not self.defaults.get("differentiable") and not leaf:
                raise ValueError(
                    sentence(
                        "can't optimize a non-leaf Tensor",
                        f"it is the result of {type(param.grad_fn).__name__}",  # type: ignore[attr-defined]
                        "Optimize the tensor it was computed from, or begin anew from its values: "
                        "`x.detach().requires_grad_()`.",
                    )
                )
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    "parameter group didn't specify a value of required optimization parameter "
                    f"{name}"
                )
            param_group.setdefault(name, default)
        params = param_group["params"]
        if len(params) != len({id(p) for p in params}):
            _warn_repeated()
        self._check_names(param_group)
        known = {id(p) for group in self.param_groups for p in group["params"]}
        if any(id(p) in known for p in params):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def _check_names(self, group: dict[str, Any]) -> None:
        named = "param_names" in group
        if any(("param_names" in other) is not named for other in self.param_groups):
            which = "with names" if named else "without names"
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add param group "
                f"{which} to the optimizer"
            )

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the parameters' gradients, or with `set_to_none=False` set them to zero."""
        if observer.profile is None:
            self._zero_grad(set_to_none)
            return
        from rushlight.autograd.profiler import record_function

        with record_function(f"Optimizer.zero_grad#{type(self).__name__}.zero_grad"):
            self._zero_grad(set_to_none)

    def _zero_grad(self, set_to_none: bool) -> None:
        for group in self.param_groups:
            for param in group["params"]:
                grad = param.grad
                if grad is None:
                    continue
                if set_to_none:
                    param.grad = None
                    continue
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                grad.zero_()

    # --- steps ----------------------------------------------------------------------------------
    @overload
    def step(self, closure: None = None) -> None: ...

    @overload
    def step(self, closure: Callable[[], R]) -> R: ...

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters by their gradients. `closure` computes the loss anew."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            with within(bool(group.get("differentiable")), inference_enabled()):
                self._step(group)
        return loss

    def _step(self, group: dict[str, Any]) -> None:
        """Change the parameters of one group."""
        raise NotImplementedError

    def _start(self, state: dict[str, Any], param: Any, group: dict[str, Any]) -> None:
        """Fill the state of a parameter before its first step."""
        state["step"] = zero_step()
        for name in self._zeros:
            state[name] = functions["zeros_like"](param)

    def _gather(self, group: dict[str, Any]) -> tuple[list[Any], list[Any], list[dict[str, Any]]]:
        """The parameters of a group that have a gradient, these, and the parameters' states."""
        params, grads = dense_grads(group["params"]) or self._all_grads(group["params"])
        states = []
        for param in params:
            state = self.state[param]
            if not state:
                self._start(state, param, group)
            states.append(state)
        return params, grads, states

    def _all_grads(self, params: list[Any]) -> tuple[list[Any], list[Any]]:
        """The parameters that have a gradient, and these, of any kind but sparse."""
        having = [param for param in params if param.grad is not None]
        grads = [param.grad for param in having]
        if any(grad.is_sparse for grad in grads):
            raise RuntimeError(
                f"{type(self).__name__} does not support sparse gradients{self._sparse_cure}"
            )
        return having, grads

    def register_step_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each step; a pair that it returns replaces
        the arguments, of which the optimiser is the first."""
        return add_hook(self.__dict__["_optimizer_step_pre_hooks"], hook)

    def register_step_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return add_hook(self.__dict__["_optimizer_step_post_hooks"], hook)

    # --- saving and loading ---------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """The state and the groups, with numbers in place of the parameters.

        >>> opt = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
        >>> opt.state_dict()["param_groups"][0]["params"]
        [0]
        """
        for hook in self._hooks("_optimizer_state_dict_pre_hooks"):
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            packed = {key: value for key, value in group.items() if key != "params"}
            for param in group["params"]:
                numbers.setdefault(id(param), len(numbers))
            packed["params"] = [numbers[id(param)] for param in group["params"]]
            groups.append(packed)
        state = {
            numbers[id(key)] if isinstance(key, TensorBase) else key: value
            for key, value in self.state.items()
        }
        found: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in self._hooks("_optimizer_state_dict_post_hooks"):
            answer = hook(self, found)
            if answer is not None:
                found = answer
        return found

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over the state and the groups' options from a `state_dict`."""
        state_dict = state_dict.copy()
        for hook in self._hooks("_optimizer_load_state_dict_pre_hooks"):
            answer = hook(self, state_dict)
            if answer is not None:
                state_dict = answer
        groups, saved = self.param_groups, deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(groups, saved)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of "
                "optimizer's group\nThe state is of other parameters: give the optimizer those of "
                "the model it was saved with, in the same order, before it is loaded."
            )
        numbers = chain.from_iterable(group["params"] for group in saved)
        params = chain.from_iterable(group["params"] for group in groups)
        by_number = dict(zip(numbers, params))
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in by_number:
                param = by_number[key]
                state[param] = _fit_state(param, value)
            else:
                state[key] = value
        for old, new in zip(groups, saved):
            new["params"] = old["params"]
            if "param_names" in old:
                new.setdefault("param_names", old["param_names"])
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._hooks("_optimizer_load_state_dict_post_hooks"):
            hook(self)

    def register_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` before `state_dict`."""
        hooks = self.__dict__["_optimizer_state_dict_pre_hooks"]
        return add_hook(hooks, hook, first=prepend)

    def register_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` after `state_dict`; a result replaces it."""
        hooks = self.__dict__["_optimizer_state_dict_post_hooks"]
        return add_hook(hooks, hook, first=prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Hook, prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before `load_state_dict`; a result replaces it."""
        hooks = self.__dict__["_optimizer_load_state_dict_pre_hooks"]
        return add_hook(hooks, hook, first=prepend)

    def register_load_state_dict_post_hook(
        self, hook: Hook, prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer)` after `load_state_dict`."""
        hooks = self.__dict__["_optimizer_load_state_dict_post_hooks"]
        return add_hook(hooks, hook, first=prepend)


def _with_hooks(step: Hook) -> Hook:
    """An optimiser's `step`, with the hooks around it. Schedulers see that it was called."""

    @functools.wraps(step)
    def call(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        try:
            if observer.profile is None:
                return inside(self, *args, **kwargs)
            from rushlight.autograd.profiler import record_function

            with record_function(f"Optimizer.step#{type(self).__name__}.step"):
                return inside(self, *args, **kwargs)
        except Exception as error:
            hide_insides(error)
            raise

    def inside(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        own = self.__dict__
        args = (self, *args)  # as hooks see them, and may give them back
        if "_optimizer_step_pre_hooks" not in own:  # its `__init__` did not call ours
            return step(*args, **kwargs)
        for hook in (*_before_steps.values(), *own["_optimizer_step_pre_hooks"].values()):
            answer = hook(self, args, kwargs)
            if answer is None:
                continue
            if not (isinstance(answer, tuple) and len(answer) == 2):
                raise RuntimeError(
                    f"{step} must return None or a tuple of (new_args, new_kwargs), but got "
                    f"{answer}."
                )
            args, kwargs = answer
        result = step(*args, **kwargs)
        own["_opt_called"] = True
        for hook in (*own["_optimizer_step_post_hooks"].values(), *_after_steps.values()):
            hook(self, args, kwargs)
        return result

    call.hooked = True  # type: ignore[attr-defined]  # a step is wrapped once
    return call


def _as_list(params: Any) -> list[Any]:
    if isinstance(params, TensorBase):
        return [params]
    if isinstance(params, set):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering of "
            "tensors in sets will change between runs. Please use a list instead."
        )
    return list(params)


def _split_names(group: dict[str, Any]) -> None:
    """Pairs of name and parameter, as `named_parameters()` gives them, become two lists."""
    params, names = [], []
    for item in group["params"]:
        if isinstance(item, tuple):
            names.append(item[0])
            params.append(item[1])
        else:
            params.append(item)
    group["params"] = params
    if names:
        if len(names) != len(params):
            raise ValueError(
                "all optimizer params should be with/without names. Some param names are missing"
            )
        group["param_names"] = names


def _warn_repeated() -> None:
    warnings.warn(
        "optimizer contains a parameter group with duplicate parameters; in future, this will "
        "cause an error; see github.com/pytorch/pytorch/issues/40967 for more information",
        stacklevel=4,
    )


def _fit_state(param: Any, value: Any, key: Hashable = None) -> Any:
    """A saved state, in a parameter's dtype and on its device; the count of steps stays. What fits
    is not copied, as PyTorch does not: both optimisers then work on the same tensors."""
    if isinstance(value, TensorBase):
        t: Any = value
        if key == "step":
            return t
        if param.is_floating_point():
            return t.to(dtype=param.dtype, device=param.device)
        return t.to(device=param.device)
    if isinstance(value, dict):
        return {k: _fit_state(param, v, k) for k, v in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return type(value)(_fit_state(param, v, key) for v in value)  # type: ignore[call-arg]
    return value


def __getattr__(name: str) -> Any:
    """What copies of PyTorch's optimisers import from here."""
    from rushlight.optim import private

    if name in private.__all__:
        return getattr(private, name)
    raise AttributeError(f"module 'torch.optim.optimizer' has no attribute {name!r}")
