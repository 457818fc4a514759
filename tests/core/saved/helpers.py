"""Hooks on saved tensors."""

from __future__ import annotations

from typing import Any


def identity(x: Any) -> Any:
    return x


def noting(seen: list[Any]) -> Any:
    """A pack hook that notes what it is given."""

    def pack(t: Any) -> Any:
        seen.append(t.tolist())
        return t

    return pack
