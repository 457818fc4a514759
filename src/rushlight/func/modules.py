"""Modules as functions: `functional_call`, `stack_module_state` and what else modules need before
transforms can work on them. Nothing here knows the modules of `nn`, only their tables."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from rushlight.errors import readable
from rushlight.ops.registry import functions


@readable
def functional_call(
    module: Any, parameter_and_buffer_dicts: Any, args: Any = None,
    kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True, strict: bool = False,
) -> Any:  # fmt: skip
    """Call a module with other parameters and buffers, by name, than its own.

    Several dicts may be given; names that none of them has keep the module's own value (with
    `strict` that is an error). Parameters that are one tensor under two names stay one
    (`tie_weights`).

    >>> linear = torch.nn.Linear(2, 1)
    >>> weights = {"weight": torch.ones(1, 2), "bias": torch.zeros(1)}
    >>> torch.func.functional_call(linear, weights, (torch.tensor([[1., 2.]]),))
    tensor([[3.]])
    """
    given = join_state(parameter_and_buffer_dicts)
    own = {**dict(module.named_parameters(remove_duplicate=False)),
           **dict(module.named_buffers(remove_duplicate=False))}  # fmt: skip
    values = find_tied(own, given) if tie_weights else given
    if strict:
        check_names(module, own, values)
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with exchange(module, {k: t for k, t in values.items() if k in own}):
        return module(*args, **(kwargs or {}))


def join_state(dicts: Any) -> dict[str, Any]:
    """One dict from one or several."""
    if isinstance(dicts, dict):
        return dicts
    if not isinstance(dicts, Sequence):
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(dicts)}"
        )
    if not all(isinstance(d, dict) for d in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    found: dict[str, Any] = {}
    twice: list[str] = []
    for d in dicts:
        twice += [k for k in d if k in found]
        found.update(d)
    if twice:
        raise ValueError(
            f"{twice} appeared in multiple dictionaries; behavior of functional call is ambiguous"
        )
    return found


def find_tied(own: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The values for all names of a tensor that has several, if one of them is given."""
    names: dict[int, list[str]] = {}
    for name, t in own.items():
        names.setdefault(id(t), []).append(name)
    found = dict(given)
    for group in names.values():
        here = [n for n in group if n in given]
        if len(here) > 1 and any(given[n] is not given[here[0]] for n in here):
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(here)}, which are tied. "
                "Consider using tie_weights=False"
            )
        if here:
            for n in group:
                found[n] = given[here[0]]
    return found


def check_names(module: Any, own: dict[str, Any], given: dict[str, Any]) -> None:
    missing = sorted(k for k in own if k not in given)
    unexpected = sorted(k for k in given if k not in own)
    lines: list[str] = []
    if unexpected:
        lines.append("Unexpected key(s): " + ", ".join(map(repr, unexpected)) + ".")
    if missing:
        lines.append("Missing key(s): " + ", ".join(map(repr, missing)) + ".")
    if lines:
        raise RuntimeError(
            f"Error(s) in reparametrizing for {type(module).__name__}:\n\t" + "\n\t".join(lines)
        )


@contextlib.contextmanager
def exchange(module: Any, values: dict[str, Any]) -> Iterator[None]:
    """Put other tensors in the place of a module's parameters and buffers for a while."""
    places: list[tuple[dict[str, Any], str, Any]] = []
    try:
        for name, value in values.items():
            *path, last = name.split(".")
            home = module
            for step in path:
                home = getattr(home, step)
            table = home._parameters if last in home._parameters else home._buffers
            places.append((table, last, table[last]))
            table[last] = value
        yield
    finally:
        for table, last, old in reversed(places):
            table[last] = old


def check_alike(models: Sequence[Any], function: str) -> None:
    """Refuse no models at all, and models that cannot run as one."""
    if len(models) == 0:
        raise RuntimeError(f"{function}: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError(f"{function}: Expected all models to have the same training/eval mode.")
    if len({type(m) for m in models}) > 1:
        raise RuntimeError(f"{function}: Expected all models to be of the same class.")


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and the buffers of several modules alike, each stacked into a batch.

    With `functional_call` and `vmap` the models then run as one.

    >>> models = [torch.nn.Linear(2, 1) for _ in range(3)]
    >>> params, buffers = torch.func.stack_module_state(models)
    >>> params["weight"].shape
    torch.Size([3, 1, 2])
    """
    check_alike(models, "stack_module_state")
    params = [dict(m.named_parameters()) for m in models]
    buffers = [dict(m.named_buffers()) for m in models]
    return stack_values(params), stack_values(buffers)


def stack_values(dicts: list[dict[str, Any]]) -> dict[str, Any]:
    """One dict of batches from several of tensors; what requires grad is a leaf again."""
    found: dict[str, Any] = {}
    for name in dicts[0]:
        tensors = [d[name] for d in dicts]
        requires_grad = [t.requires_grad for t in tensors]
        if any(requires_grad) != all(requires_grad):
            raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
        batch = functions["stack"](tensors)
        found[name] = batch.detach().requires_grad_() if all(requires_grad) else batch
    return found


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Let the batch norms in a module keep no running statistics: inside a transform they may not
    be written. The module itself is changed, and returned.

    >>> net = torch.nn.Sequential(torch.nn.BatchNorm1d(2), torch.nn.ReLU())
    >>> torch.func.replace_all_batch_norm_modules_(net)[0].running_mean is None
    True
    """
    for module in root.modules():
        if getattr(module, "track_running_stats", False) and hasattr(module, "running_mean"):
            module.running_mean = None
            module.running_var = None
            module.num_batches_tracked = None
            module.track_running_stats = False
    return root
