"""Libraries that only pictures need: imported when they are, or an error that says what to do."""

from __future__ import annotations

import importlib
from typing import Any


def need(name: str) -> Any:
    """The module of that name; without it an ImportError that names the extra to install."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"this picture needs {name.partition('.')[0]}, which is not installed: "
            "pip install 'rushlight[viz]'"
        ) from error
