"""Warnings that point at the user's line, however many of rushlight's own calls lie between."""

from __future__ import annotations

import warnings

from rushlight.core.graph import caller
from rushlight.core.observer import observer


def warn_caller(text: str, category: type[Warning] = UserWarning) -> None:
    """`warnings.warn`, from the innermost line that is not rushlight's; each time it is called, so
    what a function that warns comes down to is not kept (`core.recall`)."""
    observer.keep_nothing()
    frame = caller()
    if frame is None:
        warnings.warn(text, category, stacklevel=2)
        return
    space = frame.f_globals
    warnings.warn_explicit(
        text,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        space.get("__name__", "<unknown>"),
        space.setdefault("__warningregistry__", {}),
    )
