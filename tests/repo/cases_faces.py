"""What each module of PyTorch that rushlight has too gives to `import *`, and what `dir` shows."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from tests.repo.cases_names import belongs


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


def results(torch: Any) -> dict[str, dict[str, list[str]]]:
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
