"""The public names of PyTorch, by module.

`tools/make_missing.py` compares them with rushlight's.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

MODULES = [
    "torch", "torch.Tensor", "torch.amp", "torch.autograd", "torch.autograd.anomaly_mode",
    "torch.autograd.forward_ad", "torch.autograd.function", "torch.autograd.functional",
    "torch.autograd.grad_mode", "torch.autograd.graph", "torch.autograd.profiler", "torch.backends",
    "torch.cpu",
    "torch.distributions", "torch.distributions.constraints", "torch.distributions.transforms",
    "torch.fx", "torch.sparse", "torch.cuda", "torch.fft", "torch.func", "torch.futures", "torch.jit",
    "torch.library", "torch.linalg", "torch.masked", "torch.multiprocessing", "torch.nn",
    "torch.nn.attention", "torch.nn.functional", "torch.nn.init", "torch.nn.parameter",
    "torch.nn.utils", "torch.nn.utils.parametrizations", "torch.nn.utils.parametrize",
    "torch.nn.utils.prune", "torch.nn.utils.rnn", "torch.optim", "torch.optim.lr_scheduler",
    "torch.optim.swa_utils", "torch.overrides", "torch.profiler", "torch.quasirandom",
    "torch.random", "torch.serialization", "torch.signal.windows", "torch.special", "torch.testing",
    "torch.utils", "torch.utils.benchmark", "torch.utils.checkpoint", "torch.utils.data",
    "torch.utils.hooks",
]  # fmt: skip


def belongs(value: Any) -> bool:
    """Whether something is PyTorch's own, and not what one of its files imported."""
    if isinstance(value, ModuleType):
        return value.__name__.partition(".")[0] == "torch"
    home = getattr(value, "__module__", None)
    if not isinstance(home, str):
        return True  # a number, a dtype, a function written in C
    return home.partition(".")[0] in ("torch", "builtins")


def names_of(title: str) -> list[str]:
    if title == "torch.Tensor":
        tensor = importlib.import_module("torch").Tensor
        return sorted(n for n in dir(tensor) if not n.startswith("_"))
    module = importlib.import_module(title)
    found = {n for n, x in vars(module).items() if not n.startswith("_") and belongs(x)}
    stated = [n for n in getattr(module, "__all__", ()) if not n.startswith("_")]
    return sorted(found | set(stated) if title == "torch" or not stated else set(stated))


def results(torch: Any) -> dict[str, list[str]]:
    return {title: names_of(title) for title in MODULES}
