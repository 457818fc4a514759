"""State dicts of models and optimisers under names that do not depend on how the model is wrapped,
or in how many parts it lies.

An optimiser's own `state_dict` numbers its parameters, in the order in which it was given them;
here they have the names that the model gives them, so that the state is found again whatever the
order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.graph import TensorBase
from rushlight.nn.modules.module import Module
from rushlight.ops.registry import functions
from rushlight.optim.optimizer import Optimizer

__all__ = [
    "StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict",
    "set_model_state_dict", "set_optimizer_state_dict", "set_state_dict",
]  # fmt: skip
__dir__ = __all__.copy

_WRAPPED = ("_orig_mod", "_checkpoint_wrapped_module", "_fsdp_wrapped_module")


@dataclass
class StateDictOptions:
    """How state dicts are made, and taken back.

    full_state_dict: whole tensors in place of this rank's parts. With `cpu_offload` too, only rank
        0 gets them, and the others an empty dictionary.
    cpu_offload: tensors on the CPU.
    ignore_frozen_params: without parameters that do not require a gradient.
    keep_submodule_prefixes: of no effect without `submodules`.
    strict: whether names must be those of the model.
    broadcast_from_rank0: only rank 0 has the (full) state dict to be set; it sends it to the rest.
    flatten_optimizer_state_dict: one flat dictionary, in place of "state" and "param_groups".
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"

    def __post_init__(self) -> None:
        if self.broadcast_from_rank0 and not self.full_state_dict:
            raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")


# --- names ----------------------------------------------------------------------------------------
def _clean(model: Any, name: str) -> str:
    """A name of a model's state dict without what wrappers added to it."""
    from rushlight.nn.parallel import DistributedDataParallel

    parts: list[str] = []
    here: Any = model
    for part in name.split("."):
        wrapped = isinstance(here, Module) and (
            part in _WRAPPED or (part == "module" and isinstance(here, DistributedDataParallel))
        )
        if not wrapped:
            parts.append(part)
        here = getattr(here, part, None) if isinstance(here, Module) else None
    return ".".join(parts)


def _parameter_names(model: Any) -> dict[int, str]:
    """The name of each parameter, by its id."""
    found: dict[int, str] = {}
    for name, param in model.named_parameters(remove_duplicate=False):
        found.setdefault(id(param), _clean(model, name))
    return found


def _raw_state(model: Any) -> dict[str, Any]:
    """A model's state dict, each tensor as the part of it that this rank holds."""
    from rushlight.distributed import fsdp

    wrapped = any(isinstance(m, fsdp.FullyShardedDataParallel) for m in model.modules())
    kind = fsdp.StateDictType.SHARDED_STATE_DICT
    with fsdp.FullyShardedDataParallel.state_dict_type(model, kind) if wrapped else nullcontext():
        state: dict[str, Any] = model.state_dict()
    return state


def _is_dtensor(value: Any) -> bool:
    return hasattr(value, "full_tensor") and hasattr(value, "placements")


# --- getting --------------------------------------------------------------------------------------
def _has_rank_0() -> bool:
    from rushlight import distributed as dist

    return not dist.is_available() or not dist.is_initialized() or dist.get_rank() == 0


def _as_asked(state: Any, options: StateDictOptions) -> Any:
    """The tensors of a state dict whole, or on the CPU, as the options want them."""
    if not options.full_state_dict and not options.cpu_offload:
        return state

    def change(value: Any) -> Any:
        if isinstance(value, TensorBase):
            tensor: Any = value.detach()  # type: ignore[attr-defined]
            if options.full_state_dict and _is_dtensor(tensor):
                tensor = tensor.full_tensor()
            return tensor.cpu() if options.cpu_offload else tensor
        if isinstance(value, Mapping):
            return {key: change(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [change(inner) for inner in value]
        return value

    with no_grad():
        found = change(state)
    # every rank took part in gathering, but only one keeps what came of it
    return {} if options.full_state_dict and options.cpu_offload and not _has_rank_0() else found


def get_model_state_dict(
    model: Any, *, submodules: set[Any] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """The state dict of a model, under names without those of wrappers (`module.` of
    DistributedDataParallel).

    >>> from rushlight.distributed.checkpoint.state_dict import get_model_state_dict
    >>> sorted(get_model_state_dict(torch.nn.Linear(1, 1)))
    ['bias', 'weight']
    """
    chosen = options or StateDictOptions()
    state = {_clean(model, name): value for name, value in _raw_state(model).items()}
    if chosen.ignore_frozen_params:
        for name, param in model.named_parameters(remove_duplicate=False):
            if not param.requires_grad:
                state.pop(_clean(model, name), None)
    if submodules:
        state = _of_submodules(model, submodules, state, chosen.keep_submodule_prefixes)
    found: dict[str, Any] = _as_asked(state, chosen)
    return found


def _of_submodules(
    model: Any, submodules: set[Any], state: dict[str, Any], keep_prefix: bool
) -> dict[str, Any]:
    found = {}
    for name, module in model.named_modules():
        if module in submodules:
            prefix = _clean(model, name) + "."
            for key, value in state.items():
                if key.startswith(prefix):
                    found[key if keep_prefix else key.removeprefix(prefix)] = value
    return found


def _as_tuple(optimizers: Any) -> tuple[Any, ...]:
    return (optimizers,) if isinstance(optimizers, Optimizer) else tuple(optimizers)


def _init_optim_state(optimizer: Any) -> None:
    """Let an optimiser make its state, if it has made none yet: by a step of length 0 along
    gradients of 0."""
    if optimizer.state:
        return
    params = [p for group in optimizer.param_groups for p in group["params"]]
    if any(p.grad is not None for p in params):
        raise RuntimeError(
            "state_dict can only be used if the optimizer states are initialized (usually after "
            "one step() with gradients) or gradients are None. For the later case, state_dict will "
            "fake the gradients as zero to initialize the optimizer states. However, the gradients "
            "are not None."
        )
    rates = [group.get("lr") for group in optimizer.param_groups]
    for param in params:
        if param.requires_grad:
            param.grad = functions["zeros_like"](param.detach())
    for group in optimizer.param_groups:
        if "lr" in group:
            still = isinstance(group["lr"], TensorBase)
            group["lr"] = functions["tensor"](0.0) if still else 0.0
    try:
        optimizer.step(closure=None)
    finally:
        for group, rate in zip(optimizer.param_groups, rates):
            if "lr" in group:
                group["lr"] = rate
        optimizer.zero_grad(set_to_none=True)


def get_optimizer_state_dict(
    model: Any, optimizers: Any, *, submodules: set[Any] | None = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The state of one or several optimisers, under the model's names of its parameters. An
    optimiser that made no step yet gets a state first, for a checkpoint to be loaded into.

    >>> from rushlight.distributed.checkpoint.state_dict import get_optimizer_state_dict
    >>> model = torch.nn.Linear(1, 1)
    >>> found = get_optimizer_state_dict(model, torch.optim.Adam(model.parameters()))
    >>> sorted(found["state"]["weight"]), found["param_groups"][0]["params"]
    (['exp_avg', 'exp_avg_sq', 'step'], ['weight', 'bias'])
    """
    chosen = options or StateDictOptions()
    names = _parameter_names(model)
    kept = None
    if submodules:
        kept = {id(p) for module in submodules for p in module.parameters()}
    state: dict[str, Any] = {}
    groups: list[dict[str, Any]] = []
    for optimizer in _as_tuple(optimizers):
        _init_optim_state(optimizer)
        for group in optimizer.param_groups:
            params = [p for p in group["params"] if kept is None or id(p) in kept]
            if chosen.ignore_frozen_params:
                params = [p for p in params if p.requires_grad]
            for param in params:
                if param in optimizer.state:
                    state[names[id(param)]] = optimizer.state[param]
            rest = {key: value for key, value in group.items() if key != "params"}
            groups.append({**rest, "params": [names[id(p)] for p in params]})
    whole: dict[str, Any] = {"state": state, "param_groups": groups}
    if chosen.flatten_optimizer_state_dict:
        whole = _flatten(whole)
    found: dict[str, Any] = _as_asked(whole, chosen)
    return found


def _flatten(whole: dict[str, Any]) -> dict[str, Any]:
    """One flat dictionary: the options of a group stand under the name of each of its parameters,
    so that groups may be other ones when it is loaded."""
    flat = {
        f"state.{fqn}.{key}": value
        for fqn, kept in whole["state"].items()
        for key, value in kept.items()
    }
    for group in whole["param_groups"]:
        for fqn in group["params"]:
            for key, value in group.items():
                if key != "params":
                    flat[f"param_groups.{fqn}.{key}"] = value
    return flat


def _unflatten(flat: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    state: dict[str, Any] = {}
    groups: list[dict[str, Any]] = []
    for fqn in names:
        prefix = f"state.{fqn}."
        kept = {k.removeprefix(prefix): v for k, v in flat.items() if k.startswith(prefix)}
        if kept:
            state[fqn] = kept
        prefix = f"param_groups.{fqn}."
        rest = {k.removeprefix(prefix): v for k, v in flat.items() if k.startswith(prefix)}
        if rest:
            groups.append({**rest, "params": [fqn]})
    return {"state": state, "param_groups": groups}


def get_state_dict(
    model: Any, optimizers: Any, *, submodules: set[Any] | None = None,
    options: StateDictOptions | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:  # fmt: skip
    """The state dicts of a model and of its optimisers: what a checkpoint needs.

    >>> import rushlight.distributed.checkpoint as dcp
    >>> from rushlight.distributed.checkpoint.state_dict import get_state_dict
    >>> model = torch.nn.Linear(1, 1)
    >>> weights, state = get_state_dict(model, torch.optim.SGD(model.parameters(), lr=0.1))
    >>> sorted(weights), state["param_groups"][0]["lr"]
    (['bias', 'weight'], 0.1)
    """
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options),
    )


# --- setting --------------------------------------------------------------------------------------
def _from_rank_0(value: Any) -> Any:
    """What rank 0 has, on all ranks."""
    from rushlight import distributed as dist

    whole = [value]
    dist.broadcast_object_list(whole, src=0)
    return whole[0]


def _fit(value: Any, like: Any) -> Any:
    """A tensor as `like` lies: this rank's part of it, if that is but a part."""
    if not _is_dtensor(like) or _is_dtensor(value) or not isinstance(value, TensorBase):
        return value
    if value.dim() != like.dim() or tuple(value.shape) != tuple(like.shape):  # type: ignore[attr-defined]
        return value  # a count of steps, say
    from rushlight.distributed.tensor import distribute_tensor

    # every rank has the whole tensor: nothing needs to be sent
    return distribute_tensor(value, like.device_mesh, like.placements, src_data_rank=None)


def set_model_state_dict(
    model: Any, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Load what `get_model_state_dict` gave: each rank takes its part of whole tensors.

    >>> from rushlight.distributed.checkpoint.state_dict import (
    ...     get_model_state_dict, set_model_state_dict)
    >>> a, b = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)
    >>> set_model_state_dict(b, get_model_state_dict(a))
    <All keys matched successfully>
    >>> torch.equal(a.weight, b.weight)
    True
    """
    chosen = options or StateDictOptions()
    if chosen.broadcast_from_rank0:
        model_state_dict = _from_rank_0(model_state_dict)
    given = dict(model_state_dict)
    state: dict[str, Any] = {}
    for name, here in _raw_state(model).items():
        clean = _clean(model, name)
        if clean in given:
            state[name] = _fit(given.pop(clean), here)
    state.update(given)  # what the model does not have: `load_state_dict` says so
    from rushlight.distributed import fsdp

    wrapped = any(isinstance(m, fsdp.FullyShardedDataParallel) for m in model.modules())
    kind = fsdp.StateDictType.SHARDED_STATE_DICT
    with fsdp.FullyShardedDataParallel.state_dict_type(model, kind) if wrapped else nullcontext():
        return model.load_state_dict(state, strict=chosen.strict)


def set_optimizer_state_dict(
    model: Any, optimizers: Any, optim_state_dict: dict[str, Any], *,
    options: StateDictOptions | None = None,
) -> None:  # fmt: skip
    """Load what `get_optimizer_state_dict` gave: each rank takes its part of whole tensors."""
    chosen = options or StateDictOptions()
    if chosen.broadcast_from_rank0:
        optim_state_dict = _from_rank_0(optim_state_dict)
    names = _parameter_names(model)
    if "param_groups" not in optim_state_dict:
        optim_state_dict = _unflatten(optim_state_dict, names.values())
    groups = {fqn: g for g in optim_state_dict["param_groups"] for fqn in g["params"]}
    for optimizer in _as_tuple(optimizers):
        _init_optim_state(optimizer)
        _load_one(optimizer, names, optim_state_dict["state"], groups, chosen.strict)


def _load_one(
    optimizer: Any, names: dict[int, str], states: dict[str, Any], groups: dict[str, Any],
    strict: bool,
) -> None:  # fmt: skip
    """Number the parameters of a state by name as the optimiser numbers them, and load it."""
    mine = optimizer.state_dict()
    params = [p for group in optimizer.param_groups for p in group["params"]]
    numbers = [number for group in mine["param_groups"] for number in group["params"]]
    state: dict[Any, Any] = {}
    for number, param in zip(numbers, params):
        fqn = names[id(param)]
        if fqn in states:
            state[number] = {key: _fit(value, param) for key, value in states[fqn].items()}
        elif number in mine["state"]:
            if strict:
                raise RuntimeError(f"Missing optimizer state of parameter {fqn} in the state_dict")
            state[number] = mine["state"][number]
    for packed, group in zip(mine["param_groups"], optimizer.param_groups):
        for fqn in (names[id(p)] for p in group["params"]):
            if fqn in groups:
                packed.update({k: v for k, v in groups[fqn].items() if k != "params"})
                break
    optimizer.load_state_dict({"state": state, "param_groups": mine["param_groups"]})


def set_state_dict(
    model: Any, optimizers: Any, *, model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any], options: StateDictOptions | None = None,
) -> Any:  # fmt: skip
    """Load what `get_state_dict` gave, into a model and its optimisers.

    >>> from rushlight.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
    >>> model = torch.nn.Linear(1, 1)
    >>> adam = torch.optim.Adam(model.parameters())
    >>> weights, state = get_state_dict(model, adam)
    >>> set_state_dict(model, adam, model_state_dict=weights, optim_state_dict=state)
    <All keys matched successfully>
    """
    found = set_model_state_dict(model, model_state_dict, options=options)
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return found
