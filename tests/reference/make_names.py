"""Write names.json.gz and faces.json.gz: PyTorch's names, by module. Run by `make references`.

The first has the public names, which `tools/make_missing.py` compares with rushlight's; the second,
for each module that rushlight has too, what a star import gives and what `dir` shows of it.
"""

from __future__ import annotations

import gzip
import importlib
import json
import pkgutil
from pathlib import Path
from types import ModuleType
from typing import Any

MODULES = [
    "torch", "torch.Tensor", "torch.autograd", "torch.autograd.anomaly_mode",
    "torch.autograd.forward_ad", "torch.autograd.function", "torch.autograd.functional",
    "torch.autograd.grad_mode", "torch.autograd.graph", "torch.autograd.profiler", "torch.cuda",
    "torch.func", "torch.library", "torch.linalg", "torch.nn", "torch.nn.functional",
    "torch.nn.init", "torch.nn.parameter", "torch.nn.utils", "torch.optim",
    "torch.optim.lr_scheduler", "torch.profiler", "torch.random", "torch.special",
    "torch.testing", "torch.utils", "torch.utils.checkpoint", "torch.utils.hooks",
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


def collected() -> dict[str, list[str]]:
    return {title: names_of(title) for title in MODULES}


def shared_modules() -> list[str]:
    """The modules of rushlight that PyTorch has too, by PyTorch's names."""
    found = ["torch"]
    rushlight = importlib.import_module("rushlight")
    for module in pkgutil.walk_packages(rushlight.__path__, "rushlight."):
        title = "torch" + module.name.removeprefix("rushlight")
        try:
            importlib.import_module(title)
        except ImportError:  # rushlight's own
            continue
        found.append(title)
    return found


def faces() -> dict[str, dict[str, list[str]]]:
    """What each of them gives to `import *`, and what `dir` shows of its own."""
    found = {}
    for title in shared_modules():
        module = importlib.import_module(title)
        space = vars(module)
        stated = space.get("__all__")
        shown = [n for n in dir(module) if n in (stated or ()) or belongs(space[n])]
        shown = [n for n in shown if not n.startswith("__")]
        found[title] = {"shown": shown, "star": sorted(stated) if stated is not None else shown}
    return found


def main() -> None:
    for file, content in (("names", collected()), ("faces", faces())):
        packed = gzip.compress(json.dumps(content, indent=0).encode(), mtime=0)
        Path(__file__).with_name(f"{file}.json.gz").write_bytes(packed)


if __name__ == "__main__":
    main()
