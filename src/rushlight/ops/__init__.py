"""The op table: one class an op, its rules together, its public functions next to it.

Importing this package fills the table, by importing the files of this folder and those in it. Their
order does not matter: a file imports what it builds on. Files follow the families; see
`docs/adding-an-op.md`.

The folders and files of `LATER` hold what many programs never use. They are imported together, by
`fill_rest`, when a name is asked for that the table does not have yet: `torch.conv2d`,
`x.matrix_exp`, anything of `torch.nn`.
"""

import gc
import importlib
import os
import threading
import typing
from collections.abc import Callable, Iterable

LATER: typing.Final = {
    "attention", "conv", "copies", "fft", "linalg", "lookup", "losses", "norms", "pooling",
    "recurrent", "removed", "sparse", "special", "statistics", "vision",
}  # fmt: skip


def _files(folder: str, package: str) -> list[str]:
    """The modules in a folder and the folders in it. `pkgutil` finds them too, in three times the
    time, which every `import rushlight` would take."""
    found = []
    for name in sorted(os.listdir(folder)):
        stem, ending = os.path.splitext(name)
        if ending == ".py" and stem != "__init__":
            found.append(f"{package}.{stem}")
        elif not ending and stem != "__pycache__":
            found += _files(os.path.join(folder, name), f"{package}.{name}")
    return found


def _import_all(names: Iterable[str]) -> None:
    collecting = gc.isenabled()
    gc.disable()  # nothing here becomes garbage: looking for it would take a tenth of the import
    try:
        for name in names:
            importlib.import_module(name)
        if gc.get_freeze_count() == 0:
            gc.freeze()
            gc.unfreeze()  # together: what there is counts as old, and is not looked through now
    finally:
        if collecting:
            gc.enable()


_rest: typing.Final[list[str]] = []  # modules of the table that wait
# What to do when the table has grown: `tensor.py` attaches methods, `described.py` signs functions.
after_filling: typing.Final[list[Callable[[], None]]] = []
_filling: typing.Final = threading.RLock()
_busy: typing.Final[list[bool]] = []  # not empty in the thread that fills: what it imports may ask


def fill_rest() -> None:
    """Import what is left of the table; see the module's text."""
    if not _rest:
        return
    with _filling:  # other threads wait here until all is there
        if not _rest or _busy:
            return
        _busy.append(True)
        try:
            _import_all(_rest)
            for follow in after_filling:
                follow()
            _rest.clear()
        finally:
            _busy.clear()


def _fill_table() -> None:
    start = len(__name__) + 1
    at_once: list[str] = []
    for name in _files(os.path.dirname(__file__), __name__):
        (_rest if name[start:].partition(".")[0] in LATER else at_once).append(name)
    _import_all(at_once)


_fill_table()

# The operators of users, by namespace: `torch.ops.mylib`. Filled by `rushlight.library`.
namespaces: dict[str, typing.Any] = {}

refused: typing.Final[list[str]] = []  # compiled libraries that a program tried to load


def load_library(path: object) -> typing.NoReturn:
    """load_library(path): raises: rushlight cannot load operators that are compiled for PyTorch.
    Libraries go on without them; what they say about those operators is then not heeded."""
    refused.append(str(path))
    raise OSError(f"Could not load this library: {path}: its operators are compiled for PyTorch")


if not typing.TYPE_CHECKING:

    def __getattr__(name: str) -> typing.Any:
        if name not in namespaces:
            raise AttributeError(f"module 'torch.ops' has no attribute {name!r}")
        return namespaces[name]


def __dir__() -> list[str]:
    return ["aten", *namespaces]
