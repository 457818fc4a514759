"""The op table: one class an op, its rules together, its public functions next to it.

Importing this package fills the table, by importing the files of this folder and those in it. Their
order does not matter: a file imports what it builds on. Files follow the families; see
`docs/adding-an-op.md`.

The folders and files of `LATER` wait until a name is asked for that the table does not have yet:
`torch.randn`, `x.matrix_exp`, anything of `torch.nn`. They come in two lots, by `fill_more`: first
what many programs use, then what few do. `fill_rest` imports all that is left.
"""

import os
import threading
import typing
from collections.abc import Callable

from rushlight.importing import import_all

LATER: typing.Final = (
    {
        "compat", "nn", "random",
        "indexing.gather", "indexing.index_select", "indexing.masked", "indexing.scatter",
        "indexing.scatter_reduce", "matmul.addmm", "matmul.einsum", "pointwise.clamp",
        "pointwise.special", "reduction.cumulative", "reduction.minmax", "reduction.quantile",
        "reduction.renorm", "reduction.sort", "reduction.unique", "reduction.var",
        "reduction.vector_norm", "shape.flip", "shape.meshgrid", "shape.pad", "shape.repeat",
        "shape.tril",
    },
    {
        "attention", "conv", "copies", "fft", "linalg", "lookup", "losses", "norms", "pooling",
        "recurrent", "removed", "sparse", "special", "statistics", "vision",
    },
)  # fmt: skip


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


_rest: typing.Final[list[list[str]]] = []  # modules of the table that wait, by lots
# What to do when the table has grown: `tensor.py` attaches methods, `described.py` signs functions.
after_filling: typing.Final[list[Callable[[], None]]] = []
_filling: typing.Final = threading.RLock()
_busy: typing.Final[list[bool]] = []  # not empty in the thread that fills: what it imports may ask


def fill_more() -> bool:
    """Import the next lot of what waits, and say whether there was one; see the module's text."""
    if not _rest:
        return False
    with _filling:  # other threads wait here until all is there
        if not _rest or _busy:
            return False
        _busy.append(True)
        try:
            import_all(_rest[0])
            for follow in after_filling:
                follow()
            _rest.pop(0)
        finally:
            _busy.clear()
    return True


def fill_rest() -> None:
    """Import all that is left of the table."""
    while fill_more():
        continue


def _fill_table() -> None:
    start = len(__name__) + 1
    at_once: list[str] = []
    _rest.extend([] for _ in LATER)
    for name in _files(os.path.dirname(__file__), __name__):
        title = name[start:]
        folder = title.partition(".")[0]
        waits = (lot for lot, late in zip(_rest, LATER) if title in late or folder in late)
        next(waits, at_once).append(name)
    import_all(at_once)


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
