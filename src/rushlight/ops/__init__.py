"""The op table: one class an op, its rules together, its public functions beside it.

Importing this package fills the table, by importing every file of this folder. Their order does not
matter: a file imports what it builds on. Files follow the families; see `docs/adding-an-op.md`.
"""

import importlib
import os

for _file in sorted(os.listdir(os.path.dirname(__file__))):
    if _file.endswith(".py") and _file != "__init__.py":
        importlib.import_module(f"{__name__}.{_file[:-3]}")
