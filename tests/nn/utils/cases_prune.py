"""Pruning: masks, names, several methods on one weight, and errors."""

from __future__ import annotations

import importlib
from typing import Any

from tests.harness import PlainCases, attempt

exact = PlainCases()
close = PlainCases()


def prune_of(torch: Any) -> Any:
    return importlib.import_module(f"{torch.__name__}.nn.utils.prune")


def masks(torch: Any) -> Any:
    """Each method, on the same weight: the mask, the names, and the hook's class."""
    p = prune_of(torch)
    calls = {
        "random": lambda m: p.random_unstructured(m, "weight", 0.3),
        "l1": lambda m: p.l1_unstructured(m, "weight", 5),
        "l1 scores": lambda m: p.l1_unstructured(
            m, "weight", 5, importance_scores=torch.arange(12.0).reshape(4, 3)
        ),
        "random channels": lambda m: p.random_structured(m, "weight", 2, 0),
        "l2 channels": lambda m: p.ln_structured(m, "weight", 0.5, 2, 1),
        "mask": lambda m: p.custom_from_mask(m, "bias", torch.tensor([1, 0, 1, 0])),
        "identity": lambda m: p.identity(m, "weight"),
    }
    found = {}
    for name, call in calls.items():
        torch.manual_seed(0)
        m = call(torch.nn.Linear(3, 4))
        hook = next(iter(m._forward_pre_hooks.values()))
        found[name] = [
            {key: value.tolist() for key, value in m.state_dict().items()},
            [key for key, _ in m.named_parameters()], type(hook).__name__, p.is_pruned(m),
            torch.rand(1).item(),
        ]  # fmt: skip
    return found


def several(torch: Any) -> Any:
    p = prune_of(torch)
    torch.manual_seed(0)
    m = torch.nn.Linear(3, 4)
    p.random_unstructured(m, "weight", 0.3)
    p.l1_unstructured(m, "weight", 2)
    p.ln_structured(m, "weight", 1, 2, 0)
    p.random_structured(m, "weight", 1, 1)
    held = next(iter(m._forward_pre_hooks.values()))
    found = [type(held).__name__, len(held), [type(x).__name__ for x in held], held._tensor_name]
    found += [m.weight_mask.tolist(), m.weight.tolist()]
    m(torch.ones(3)).sum().backward()
    found.append(m.weight_orig.grad.tolist())
    p.remove(m, "weight")
    found += [p.is_pruned(m), [n for n, _ in m.named_parameters()], m.weight.tolist()]
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    which = [(net[0], "weight"), (net[1], "weight")]
    p.global_unstructured(which, p.L1Unstructured, amount=0.4)
    found += [layer.weight_mask.tolist() for layer, _ in which]
    found.append(p.L1Unstructured(2).prune(torch.tensor([1.0, -3, 2, 0.5])).tolist())
    return found


def errors(torch: Any) -> Any:
    p, nn = prune_of(torch), torch.nn
    calls = [
        *[lambda a=a: p.l1_unstructured(nn.Linear(3, 4), "weight", a) for a in (-1, 1.5, 100, "x")],
        lambda: p.global_unstructured(3, p.L1Unstructured, amount=1),
        lambda: p.remove(nn.Linear(3, 4), "weight"),
        lambda: p.ln_structured(nn.Linear(3, 4), "bias", 1, 2, 0),
        lambda: p.ln_structured(nn.Linear(3, 4), "weight", 1, 2, 5),
        lambda: p.random_structured(nn.Linear(3, 4), "weight", 9, 0),
        lambda: p.PruningContainer(3),
        lambda: p.L1Unstructured(2).prune(torch.ones(3), importance_scores=torch.ones(2)),
    ]  # fmt: skip
    return [attempt(call) for call in calls]


exact["masks"], exact["errors"], close["several"] = masks, errors, several


def results(torch: Any) -> Any:
    return exact.results(torch) | close.results(torch)
