"""What the modules of this package share: flags as attributes of a module, set for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Precision:
    """The precision of one kind of operation: `fp32_precision`."""

    def __init__(self, fp32_precision: str) -> None:
        self.fp32_precision = fp32_precision


@contextmanager
def changed(space: dict[str, Any], **values: Any) -> Iterator[None]:
    """Flags of a module, whose globals are `space`, within a `with` block; None leaves one as it
    is."""
    given = {name: value for name, value in values.items() if value is not None}
    before = {name: space[name] for name in given}
    space.update(given)
    try:
        yield
    finally:
        space.update(before)


def exchange_flags(space: dict[str, Any], names: str, *values: Any) -> tuple[Any, ...]:
    """Set flags for good; what they were. None leaves one as it is."""
    listed = names.split()
    before = tuple(space[name] for name in listed)
    space.update({n: value for n, value in zip(listed, values) if value is not None})
    return before
