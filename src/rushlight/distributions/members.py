"""What classes of this package share in how their members are written: properties that only pass on
another attribute, and docstrings that follow from those of the base class."""

from __future__ import annotations

from operator import attrgetter
from types import FunctionType
from typing import Any

__all__ = ["alias", "inherit_docs"]


def alias(path: str, doc: str) -> Any:
    """A property that reads another attribute, or an attribute of one: "base_dist.loc"."""
    return property(attrgetter(path), doc=doc)


def inherit_docs(cls: type) -> None:
    """Complete the docstrings of a class of ours: a public method without one takes that of the
    method it overrides, and one that explains no arguments takes the `Args:` of that method."""
    if not cls.__module__.startswith("rushlight."):
        return  # what users write stays as it is
    for name, method in vars(cls).items():
        if name.startswith("_") or not isinstance(method, FunctionType):
            continue
        text = method.__doc__ or ""
        overridden = getattr(super(cls, cls), name, None)
        if overridden is None or not overridden.__doc__ or "Args:" in text:
            continue
        summary, mark, arguments = overridden.__doc__.partition("Args:")
        if not text:
            method.__doc__ = overridden.__doc__
        elif mark:
            space = summary[len(summary.rstrip()) :]  # the blank line, and the indentation
            method.__doc__ = text.rstrip() + space + mark + arguments
