"""First values: orthogonal matrices, names of old, and errors."""

from __future__ import annotations

import warnings
from typing import Any

from tests.harness import PlainCases, attempt

exact = PlainCases()
close = PlainCases()


def orthogonal(torch: Any) -> Any:
    found = {}
    for shape in ((3, 3), (2, 5), (5, 2), (4, 2, 3), (0, 3)):
        torch.manual_seed(1)
        made = torch.nn.init.orthogonal_(torch.empty(shape), 1.5)
        found[str(shape)] = [made.tolist(), torch.rand(1).item()]
    return found


def old_names(torch: Any) -> Any:
    init = torch.nn.init
    found = {}
    for name in ("uniform", "normal", "eye", "xavier_uniform", "xavier_normal", "kaiming_uniform",
                 "kaiming_normal"):  # fmt: skip
        torch.manual_seed(2)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            made = getattr(init, name)(torch.empty(2, 3))
        found[name] = [made.tolist(), [f"{w.category.__name__}: {w.message}" for w in said]]
    return found


def errors(torch: Any) -> Any:
    init, empty = torch.nn.init, torch.empty
    calls = [
        lambda: init.orthogonal_(empty(3)), lambda: init.calculate_gain("x"),
        lambda: init.calculate_gain("leaky_relu", "x"), lambda: init.dirac_(empty(2, 2, 3), 3),
        lambda: init.dirac_(empty(2)), lambda: init.sparse_(empty(3), 0.1),
        lambda: init.eye_(empty(3)), lambda: init.xavier_uniform_(empty(3)),
        lambda: init.kaiming_uniform_(empty(3, 2), mode="x"),
    ]  # fmt: skip
    return [attempt(call) for call in calls]


exact["old names"], exact["errors"], close["orthogonal"] = old_names, errors, orthogonal


def results(torch: Any) -> Any:
    return exact.results(torch) | close.results(torch)
