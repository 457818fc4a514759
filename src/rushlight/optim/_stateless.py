"""An optimiser that steps other tensors than its own for a while."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rushlight.optim.optimizer import Optimizer

__all__ = ["swap_in_optimizer_params_and_state"]
__dir__ = __all__.copy

_NAME = "swap_in_optimizer_params_and_state"


@contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer, swapin_parameters: dict[str, Any], swapin_optim_state: dict[str, Any]
) -> Iterator[None]:
    """Let an optimiser work on other parameters and another state; on leaving it has its own again.

    `swapin_parameters` are in the order of the optimiser's own, `swapin_optim_state` is like its
    `state_dict()`. Tensors of both are changed in place; all else that happens inside is forgotten.

    >>> w = torch.ones(1, requires_grad=True)
    >>> opt = torch.optim.SGD([w], lr=0.5, momentum=0.9)
    >>> w.sum().backward()
    >>> opt.step()
    >>> other = torch.ones(1)
    >>> other.grad = torch.ones(1)
    >>> swap = torch.optim.swap_in_optimizer_params_and_state
    >>> with swap(opt, {"w": other}, opt.state_dict()):
    ...     opt.step()
    >>> other, w
    (tensor([0.0500]), tensor([0.5000], requires_grad=True))
    """
    if not optimizer.state:
        raise RuntimeError(f"{_NAME} requires initialized optimizer state.")
    groups = _swapped(optimizer, list(swapin_parameters.values()), swapin_optim_state)
    state: defaultdict[Any, Any] = defaultdict(dict)
    for group, saved in zip(groups, swapin_optim_state["param_groups"]):
        for param, number in zip(group["params"], saved["params"]):
            state[param] = dict(swapin_optim_state["state"].get(number, {}))
    own = optimizer.param_groups, optimizer.state
    optimizer.param_groups, optimizer.state = groups, state
    try:
        yield
    finally:
        optimizer.param_groups, optimizer.state = own


def _swapped(optimizer: Optimizer, params: list[Any], saved: dict[str, Any]) -> list[Any]:
    """The optimiser's groups, of these parameters and with the saved options."""
    state, groups = saved.get("state"), saved.get("param_groups")
    if not isinstance(state, dict):
        raise RuntimeError(
            f"{_NAME} requires swapin_optim_state['state'] to be a dict mapping packed parameter "
            f"ids to per-param state dicts, got {type(state).__name__}."
        )
    if not isinstance(groups, list):
        raise RuntimeError(
            f"{_NAME} requires swapin_optim_state['param_groups'] to be a list of param-group "
            f"dicts, got {type(groups).__name__}."
        )
    live = optimizer.param_groups
    if len(params) < sum(len(group["params"]) for group in live):
        raise RuntimeError(
            f"{_NAME} requires the explicit parameter state to match optimizer.param_groups "
            "ordering."
        )
    if len(groups) != len(live):
        raise RuntimeError(
            "swapin_optim_state has a different number of parameter groups than the live optimizer."
        )
    found, start = [], 0
    for i, (mine, group) in enumerate(zip(live, groups)):
        _check_group(i, mine, group)
        stop = start + len(mine["params"])
        found.append({**group, "params": params[start:stop]})
        start = stop
    known = {number for group in groups for number in group["params"]}
    if extra := [number for number in state if number not in known]:
        raise RuntimeError(
            f"{_NAME} requires swapin_optim_state['state'] to be keyed only by packed parameter "
            f"ids from param_groups[*]['params']; got extra keys {extra}."
        )
    return found


def _check_group(i: int, live: dict[str, Any], group: dict[str, Any]) -> None:
    if len(live["params"]) != len(group["params"]):
        raise RuntimeError(
            f"swapin_optim_state param group {i} has a different number of params than the live "
            "optimizer param group."
        )
    if live.keys() != group.keys():
        raise RuntimeError(
            f"{_NAME} requires optimizer.state_dict()-style param group keys to exactly match the "
            f"live optimizer group keys for group {i}. Keys only in swap-in: "
            f"{sorted(group.keys() - live.keys())}. Keys only in live: "
            f"{sorted(live.keys() - group.keys())}."
        )
