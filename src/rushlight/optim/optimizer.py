"""`Optimizer`: what every optimiser is, and how its rules read and write tensors.

Note [Rules of optimisers]
    A rule is plain maths, element by element: (step number, gradient, parameter, what is kept) to
    (new parameter, new kept). Usually it runs on raw arrays, which nothing records, and on large
    ones block by block, so that what it computes on the way stays in the processor's cache. With
    `differentiable=True` the same rule runs on tensors: then the step itself can be
    differentiated, by the learning rate for one.
"""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from copy import deepcopy
from itertools import chain
from typing import Any, ClassVar, Final, TypeVar, overload

from rushlight import dtypes
from rushlight.arrays.host import is_array
from rushlight.arrays.vocabulary import overwrite
from rushlight.autograd.grad_mode import enable_grad
from rushlight.core.fp_warnings import quietly
from rushlight.core.graph import TensorBase
from rushlight.core.observer import observer
from rushlight.core.saved.packed import before_write
from rushlight.core.views.inplace import turn
from rushlight.errors import hide_insides, sentence
from rushlight.ops.numbers import plain
from rushlight.ops.registry import functions
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
BLOCK: Final = 1 << 14  # elements
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


def update(
    rule: Callable[..., tuple[Any, ...]], n: int, recorded: bool, grad: Any, targets: list[Any]
) -> None:
    """targets = rule(n, grad, *targets): the parameter first, then what the optimiser keeps.

    See Note [Rules of optimisers].
    """
    if recorded:
        for t, y in zip(targets, rule(n, grad, *targets)):
            t.copy_(y)
        return
    for t in targets:
        before_write(t)
    raws = [t._array for t in targets]
    mine = turn(targets[0])
    if mine is None:
        quietly(_on_arrays, rule, n, grad._array, raws)
    else:
        with mine:
            quietly(_on_arrays, rule, n, grad._array, raws)
    for t in targets:
        t._storage.written()


def _on_arrays(rule: Callable[..., tuple[Any, ...]], n: int, g: Any, raws: list[Any]) -> None:
    if g.size > BLOCK and all(is_array(a) and a.flags.c_contiguous for a in (g, *raws)):
        _by_blocks(rule, n, g, raws)
    else:
        for raw, y in zip(raws, rule(n, g, *raws)):
            overwrite(raw, y)


def _by_blocks(rule: Callable[..., tuple[Any, ...]], n: int, g: Any, raws: list[Any]) -> None:
    g = g.reshape(-1)
    raws = [raw.reshape(-1) for raw in raws]
    for start in range(0, g.size, BLOCK):
        here = slice(start, start + BLOCK)
        parts = [raw[here] for raw in raws]
        for part, y in zip(parts, rule(n, g[here], *parts)):
            overwrite(part, y)


def number(x: Any, recorded: bool) -> Any:
    """An option as a number; a tensor stays one if its own gradient may be asked for."""
    if type(x) is float:
        return x
    if isinstance(x, TensorBase):
        return x if recorded else x._array.item()
    return plain(x)


def count(state: dict[str, Any]) -> int:
    """One step more, kept as the 0-d tensor that PyTorch keeps."""
    step = state["step"]
    n = int(step.item()) + 1
    step.fill_(float(n))
    return n


def zero_step() -> Any:
    """The step count of a new state."""
    kind = dtypes.float64 if dtypes.default is dtypes.float64 else dtypes.float32
    return functions["tensor"](0.0, dtype=kind)


def real(t: Any) -> Any:
    """A complex tensor as pairs of real numbers, over the same memory."""
    return functions["view_as_real"](t) if t._array.dtype.kind == "c" else t


def check_lr(lr: Any) -> None:
    if isinstance(lr, TensorBase):
        if lr._array.size != 1:
            raise ValueError("Tensor lr must be 1-element")
        lr = lr._array.item()
    if not lr >= 0.0:  # nan neither
        raise ValueError(f"Invalid learning rate: {lr}")


def check_not_negative(what: str, value: Any) -> None:
    if not value >= 0.0:
        raise ValueError(f"Invalid {what} value: {value}")


def check_flags(fused: bool | None, foreach: bool | None, differentiable: bool) -> None:
    """The combinations of implementations that PyTorch refuses. Here there is one."""
    if fused:
        if differentiable:
            raise RuntimeError("`fused` does not support `differentiable`")
        if foreach:
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


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

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _with_hooks(cls.__dict__["step"])  # type: ignore[method-assign]

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

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_hooks()
        self.defaults.setdefault("differentiable", False)
        for name, value in self._added.items():
            for group in self.param_groups:
                group.setdefault(name, value)

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
        raise NotImplementedError

    def _step_groups(self, closure: Callable[[], Any] | None) -> Any:
        """What `step` does in all optimisers here: the loss, then the groups, by `_step`."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            if group["differentiable"]:
                with enable_grad():
                    self._step(group, True)
            else:
                self._step(group, False)
        return loss

    def _step(self, group: dict[str, Any], recorded: bool) -> None:
        """Change the parameters of one group."""
        raise NotImplementedError

    def _work(self, group: dict[str, Any]) -> Iterator[tuple[Any, Any, dict[str, Any]]]:
        """The parameters of a group that have a gradient, with it and with their state."""
        for param in group["params"]:
            grad = param.grad
            if grad is not None:
                yield param, grad, self.state[param]

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
        for hook in self.__dict__["_optimizer_state_dict_pre_hooks"].values():
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
        for hook in self.__dict__["_optimizer_state_dict_post_hooks"].values():
            answer = hook(self, found)
            if answer is not None:
                found = answer
        return found

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over the state and the groups' options from a `state_dict`."""
        state_dict = state_dict.copy()
        for hook in self.__dict__["_optimizer_load_state_dict_pre_hooks"].values():
            answer = hook(self, state_dict)
            if answer is not None:
                state_dict = answer
        groups, saved = self.param_groups, deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(groups, saved)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of "
                "optimizer's group"
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
                new["param_names"] = old["param_names"]
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self.__dict__["_optimizer_load_state_dict_post_hooks"].values():
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
    """A saved state, in a parameter's dtype and on its device; the count of steps stays."""
    if isinstance(value, TensorBase):
        t: Any = value
        if key == "step":
            return t.clone()
        if param.is_floating_point():
            return t.to(dtype=param.dtype, device=param.device, copy=True)
        return t.to(device=param.device, copy=True)
    if isinstance(value, dict):
        return {k: _fit_state(param, v, k) for k, v in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return type(value)(_fit_state(param, v, key) for v in value)  # type: ignore[call-arg]
    return value
