"""Scripts that run on PyTorch and on rushlight, each logging what happens, in order.

A script is a function of a library and a `log`. `outcome` runs one and gives its events, with what
it raised; `reference/make_scripts.py` stores what PyTorch does, and `differing` compares.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

Log = Callable[..., None]
Script = Callable[[Any, Log], None]


class Bank(dict[str, Script]):
    """Scripts by name. Use it as a decorator to enter one."""

    def __call__(self, fn: Script) -> Script:
        self[fn.__name__] = fn
        return fn


def plain(x: Any) -> Any:
    """A value as JSON knows it."""
    if x is None or isinstance(x, (bool, int, str)):
        return x
    if isinstance(x, float):
        return round(x, 6)
    if isinstance(x, (tuple, list)):
        return [plain(y) for y in x]
    if isinstance(x, dict):
        return {str(k): plain(v) for k, v in x.items()}
    if hasattr(x, "tolist"):
        return plain(x.detach().tolist())
    return type(x).__name__


def first_line(error: BaseException) -> str:
    text = str(error).splitlines()[0] if str(error) else ""
    return f"{type(error).__name__}: {text}"[:160]


def outcome(run: Script, library: Any) -> list[Any]:
    """What a script logged, and the error that ended it."""
    events: list[Any] = []

    def log(*what: Any) -> None:
        events.append([plain(x) for x in what])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            run(library, log)
        except Exception as error:
            events.append(["raised", first_line(error)])
    return events


def differing(bank: dict[str, Script], library: Any, stored: dict[str, Any]) -> list[str]:
    """The scripts in which a library does something else than what is stored."""
    found: list[str] = []
    for name, run in bank.items():
        got, want = outcome(run, library), stored.get(name)
        if got != want:
            at = next((i for i, pair in enumerate(zip(got, want or [])) if pair[0] != pair[1]), -1)
            found.append(f"{name}, event {at}\n  got    {got[at:]}\n  stored {(want or [])[at:]}")
    return found


def attempt(log: Log, what: str, fn: Callable[[], Any]) -> None:
    """Log what a call gives, or what it raises."""
    try:
        log(what, fn())
    except Exception as error:
        log(what, "raised", first_line(error))


def leaf(torch: Any, *values: float) -> Any:
    return torch.tensor(list(values), requires_grad=True)


def tensor_hook(log: Log, name: str, result: Callable[[Any], Any] | None = None) -> Any:
    def hook(g: Any) -> Any:
        log(name, g)
        return None if result is None else result(g)

    return hook
