"""Cases of `utils.data` as expressions: what one gives, with its warnings, as text.

An expression may use the names of `torch.utils.data`, `torch`, `numpy`, and the datasets below.
"""

from __future__ import annotations

import collections
import re
import warnings
from typing import Any

import numpy

from tests.harness import Cases, attempt


def space_of(lib: Any) -> dict[str, Any]:
    """The names that expressions use."""
    data = lib.utils.data

    class Count(data.IterableDataset):  # type: ignore[misc,name-defined]
        """0, 1, 2; or a worker's share of the first seven."""

        def __iter__(self) -> Any:
            info = data.get_worker_info()
            return iter(range(3) if info is None else range(info.id, 7, info.num_workers))

        def __repr__(self) -> str:
            return "Count()"

    class Sized(Count):
        def __len__(self) -> int:
            return 2

    class Squares(data.Dataset):  # type: ignore[misc,name-defined]
        def __len__(self) -> int:
            return 5

        def __getitem__(self, i: int) -> int:
            return i * i

    names = {name: getattr(data, name) for name in data.__all__ if hasattr(data, name)}
    g = lambda seed: lib.Generator().manual_seed(seed)
    return {
        **names, "torch": lib, "data": data, "np": numpy, "collections": collections, "g": g,
        "Count": Count, "Sized": Sized, "Squares": Squares,
        "rows": data.TensorDataset(lib.arange(10.0)), "Pair": collections.namedtuple("Pair", "x y"),
    }  # fmt: skip


def evaluate(lib: Any, text: str) -> list[Any]:
    """What an expression gives or raises, and the warnings on the way."""

    def result() -> str:
        lib.manual_seed(0)
        return re.sub(r" object at 0x\w+", "", repr(eval(text, space_of(lib))))

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = attempt(result)
    # how many workers are too many depends on the machine, what Python says of forks on its version
    told = [f"{w.category.__name__}: {w.message}" for w in said]
    machine = ("UserWarning: This DataLoader will create", "DeprecationWarning")
    return [found, [text for text in told if not text.startswith(machine)]]


def enter(cases: Cases, text: str) -> None:
    """Enter expressions, a line each."""
    for line in text.strip().splitlines():
        cases.enter(line.strip(), lambda lib, line=line: evaluate(lib, line.strip()))
