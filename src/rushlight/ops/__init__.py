"""The op table: one class an op, its rules together, its public functions beside it.

Importing this package fills the table, by importing every file of this folder and those in it.
Their order does not matter: a file imports what it builds on. Files follow the families; see
`docs/adding-an-op.md`.
"""

import gc
import importlib
import os
import typing


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


def _fill_table() -> None:
    collecting = gc.isenabled()
    gc.disable()  # nothing here becomes garbage: looking for it would take a tenth of the import
    try:
        for name in _files(os.path.dirname(__file__), __name__):
            importlib.import_module(name)
        if gc.get_freeze_count() == 0:
            gc.freeze()
            gc.unfreeze()  # together: what there is counts as old, and is not looked through now
    finally:
        if collecting:
            gc.enable()


_fill_table()

# The operators of users, by namespace: `torch.ops.mylib`. Filled by `rushlight.library`.
namespaces: dict[str, typing.Any] = {}

if not typing.TYPE_CHECKING:

    def __getattr__(name: str) -> typing.Any:
        if name not in namespaces:
            raise AttributeError(f"module 'torch.ops' has no attribute {name!r}")
        return namespaces[name]


def __dir__() -> list[str]:
    return ["aten", *namespaces]
