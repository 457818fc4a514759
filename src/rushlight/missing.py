"""The public face of a module: what `dir` shows, what is imported late, and what is missing.

Names that PyTorch has and rushlight lacks are in `missing.txt`, which `tools/make_missing.py`
writes together with `docs/missing.md`. They raise an AttributeError, so `hasattr` works.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from rushlight.tables import read_table

PAGE: Final = "docs/missing.md"

# What comes closest, where spelling does not tell.
HINTS: Final[dict[str, str]] = {
    "torch.ao": "tensors in bfloat16 or float16",
    "torch.quantization": "tensors in bfloat16 or float16",
    "torch.quantize_per_channel": "x.to(torch.bfloat16)",
    "torch.quantize_per_tensor": "x.to(torch.bfloat16)",
    "torch.nested": "torch.nn.utils.rnn.pad_sequence, for sequences of several lengths",
}


@functools.cache
def _table() -> dict[str, list[str]]:
    """The names, by module: a line of its own, with its names below it, indented."""
    table: dict[str, list[str]] = {}
    names: list[str] = []
    for line in read_table(__file__):
        if not line.startswith(" "):
            names = table[line] = []
        else:
            names += line.split()
    return table


def names_missing(home: str) -> list[str]:
    """The names that PyTorch has in `home` and rushlight has not."""
    return _table().get(home, [])


def is_missing(home: str, name: str) -> bool:
    """Whether PyTorch has `home.name` and rushlight does not."""
    return name in names_missing(home)


def nearest(home: str, name: str, there: Iterable[str]) -> str:
    """The thing that exists and comes closest to a missing one."""
    import difflib  # slow to import, and wanted here alone

    hint = HINTS.get(f"{home}.{name}")
    if hint is not None:
        return hint
    folded = {n.lower(): n for n in there if not n.startswith("_")}
    found = difflib.get_close_matches(name.lower(), folded, 1, 0.0)
    return f"{home}.{folded[found[0]]}" if found else home


def advice(home: str, name: str, there: Iterable[str]) -> str:
    """What to say behind the first line of an error about `home.name`; "" if PyTorch lacks it too.

    >>> print(advice("torch", "jagged", ["strided"]))
    PyTorch has torch.jagged, rushlight has not. Nearest to it: torch.strided.
    docs/missing.md lists all that is missing.
    """
    if not is_missing(home, name):
        return ""
    return (
        f"PyTorch has {home}.{name}, rushlight has not. Nearest to it: "
        f"{nearest(home, name, there)}.\n{PAGE} lists all that is missing."
    )


def missing_error(home: str, name: str, there: Iterable[str]) -> AttributeError:
    """The error for a name that a module has not; `there` are those it has."""
    first = f"module {home!r} has no attribute {name!r}"
    if name.startswith("_"):  # probed for by tools, and nobody reads the answer
        return AttributeError(first)
    more = advice(home, name, there)
    return AttributeError(f"{first}\n{more}" if more else first)


# While rushlight stands in for `torch`: gives a module that only says what it lacks, or None.
stand_ins: Final[list[Callable[[str], Any]]] = []


def face(
    home: str, space: dict[str, Any], later: Mapping[str, str] | None = None,
    unlisted: Iterable[str] = (), given: Callable[[str], Any] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:  # fmt: skip
    """`__getattr__` and `__dir__` of the module that PyTorch calls `home`; `space` is its globals.

    `dir` shows `__all__`, and the names `unlisted` in it. Those in `later` are imported when first
    used: each is a submodule (""), or in the submodule given. `given` gives what else the module
    has, or None.
    """
    waiting = later or {}

    def __dir__() -> list[str]:
        listed = space["__all__"] if "__all__" in space or given is None else __getattr__("__all__")
        dunders = (name for name in space if name.startswith("__"))
        return sorted({*listed, *waiting, *unlisted, *dunders})

    def __getattr__(name: str) -> Any:
        if name in waiting:
            place = waiting[name]
            found = importlib.import_module(f"{space['__name__']}.{place or name}")
            space[name] = getattr(found, name) if place else found
            return space[name]
        if given is not None and (made := given(name)) is not None:
            space[name] = made
            return made
        if stand_ins and (module := stand_ins[0](f"{home}.{name}")) is not None:
            return module
        error = missing_error(home, name, __dir__())
        if is_missing(home, name) and _is_importing(sys._getframe(1)):
            more = str(error).partition("\n")[2]
            raise ImportError(f"cannot import name {name!r} from {home!r}\n{more}", name=home)
        raise error

    return __getattr__, __dir__


def _is_importing(frame: Any) -> bool:
    """Whether a frame is at `from module import name`, which hides an AttributeError's text."""
    from opcode import opmap

    return bool(frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"])


class Lacking:
    """A method that a class lacks, or that is imported late: then it is given when it is looked up,
    and otherwise an error says what is missing.

    `__getattr__` would do the same, and make each attribute that exists dearer."""

    def __init__(self, home: str, name: str, fill: Callable[[], bool]) -> None:
        self.home = home
        self.name = name
        self.fill = fill

    def __get__(self, instance: Any, owner: type) -> Any:
        more = True
        while more:
            more = self.fill()
            for cls in owner.__mro__:
                found = vars(cls).get(self.name, self)
                if not isinstance(found, Lacking):
                    get = getattr(found, "__get__", None)
                    return found if get is None else get(instance, owner)
        kind = self.home.rpartition(".")[2]
        who = f"type object {kind!r}" if instance is None else f"{kind!r} object"
        raise AttributeError(
            f"{who} has no attribute {self.name!r}\n"
            + advice(self.home, self.name, [n for n in dir(owner) if n != self.name])
        )


def hide_lacking(cls: type, names: Iterable[str]) -> list[str]:
    """What `dir` shows of a class that answers for names it lacks."""
    hidden = {n for c in cls.__mro__ for n, x in vars(c).items() if isinstance(x, Lacking)}
    return sorted(set(names) - hidden)


def hide_in(cls: Any, home: str, fill: Callable[[], bool]) -> None:
    """Let a class answer for the names it lacks, and for those that come late, by `fill`: it adds
    some of them, and says whether there were more to add."""
    for name in names_missing(home) + names_missing("later"):
        if name not in vars(cls):
            setattr(cls, name, Lacking(home, name, fill))
