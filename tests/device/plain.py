"""Runs the device suite where pytest is not installed, as on a GPU machine nobody can install on.

    PYTHONPATH=src python tests/device/plain.py

A stand-in for the few parts of pytest that the suite uses, and a loop over its tests. Its output
has the lines that `tools/gpu_check.sh` looks for.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
import time
import traceback
import types
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
MODULES = ("test_device_ops", "test_device_api", "test_device_training")


class Param:
    """One set of arguments, with a name."""

    def __init__(self, *values: Any, id: str) -> None:
        self.values, self.id = values, id


class Raises:
    """`with raises(error, match=...)`."""

    def __init__(self, kinds: Any, match: str = "") -> None:
        self.kinds, self.match = kinds, match
        self.value: Any = None

    def __enter__(self) -> Raises:
        return self

    def __exit__(self, kind: Any, error: Any, where: Any) -> bool:
        assert error is not None, f"did not raise {self.kinds}"
        if not isinstance(error, self.kinds):
            return False
        assert re.search(self.match, str(error)), f"{self.match!r} is not in {str(error)!r}"
        self.value = error
        return True


class MonkeyPatch:
    """`setitem` alone; undone after the test."""

    def __init__(self) -> None:
        self.before: list[tuple[Any, Any, Any]] = []

    def setitem(self, table: Any, key: Any, value: Any) -> None:
        self.before.append((table, key, table.get(key)))
        table[key] = value

    def undo(self) -> None:
        for table, key, value in self.before:
            table[key] = value


def parametrize(names: Any, cases: Any) -> Callable[[Any], Any]:
    keys = [names] if isinstance(names, str) else list(names)

    def mark(test: Any) -> Any:
        test.cases = [(keys, case) for case in cases]
        return test

    return mark


def stand_in() -> types.ModuleType:
    module: Any = types.ModuleType("pytest")
    module.param, module.raises, module.MonkeyPatch = Param, Raises, MonkeyPatch
    unchanged = lambda *args, **kwargs: lambda test: test
    module.mark = types.SimpleNamespace(parametrize=parametrize, filterwarnings=unchanged)
    module.fixture = unchanged
    return module  # type: ignore[no-any-return]


def runs(test: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The names and arguments under which a test function is called."""
    for position, (keys, case) in enumerate(getattr(test, "cases", [([], ())])):
        values = case.values if isinstance(case, Param) else (case,) if len(keys) == 1 else case
        name = case.id if isinstance(case, Param) else str(case) if keys else str(position)
        yield name, dict(zip(keys, values, strict=True))


def main() -> int:
    sys.modules["pytest"] = stand_in()
    sys.path.insert(0, str(HERE))
    warnings.simplefilter("ignore")
    if os.environ.get("RUSHLIGHT_DEVICE") == "fake":
        import fakecupy

        sys.modules.update(fakecupy.modules())
    shard, _, count = os.environ.get("RUSHLIGHT_SHARD", "0/1").partition("/")
    passed = failed = 0
    began = time.monotonic()
    for title in MODULES:
        module = importlib.import_module(title)
        for name, test in list(vars(module).items()):
            if not name.startswith("test_") or not inspect.isfunction(test):
                continue
            for case, arguments in runs(test):
                subject = case.rpartition("-")[0] or f"{name} {case}"
                if zlib.crc32(subject.encode()) % int(count) != int(shard):
                    continue
                patch = MonkeyPatch()
                if "monkeypatch" in inspect.signature(test).parameters:
                    arguments["monkeypatch"] = patch
                try:
                    test(**arguments)
                    passed += 1
                except Exception as error:
                    failed += 1
                    traceback.print_exc(limit=-4)
                    print(f"E   {type(error).__name__}: {str(error).strip().splitlines()[:1]}")
                    print(f"FAILED {title}::{name}[{case}]")
                finally:
                    patch.undo()
    print(f"{failed} failed, {passed} passed in {time.monotonic() - began:.2f}s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
