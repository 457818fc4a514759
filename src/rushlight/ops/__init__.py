"""The op table: one class an op, its rules together, its public functions beside it.

Importing this package fills the table, by importing every file of this folder and those in it.
Their order does not matter: a file imports what it builds on. Files follow the families; see
`docs/adding-an-op.md`.
"""

import gc
import importlib
import pkgutil
import typing


def _fill_table() -> None:
    collecting = gc.isenabled()
    gc.disable()  # nothing here becomes garbage: looking for it would take a tenth of the time
    try:
        for name in sorted(m.name for m in pkgutil.walk_packages(__path__, f"{__name__}.")):
            importlib.import_module(name)
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
