"""What tensors are called in the program that asks, in words for a table."""

from __future__ import annotations

from types import FrameType
from typing import Any

from rushlight.core.graph import TensorBase, caller
from rushlight.viz import naming


class Names(naming.Names):
    """The names that were given, then those of the caller's variables, nearest first."""

    def __init__(self, given: Any = None, frame: FrameType | None = None) -> None:
        super().__init__()
        if given is not None:
            self.add_params(given)
        self.add_frames(frame)

    @property
    def known(self) -> list[Any]:
        """All tensors that have a name."""
        return [t for t in self._alive if isinstance(t, TensorBase)]

    def leaf(self, t: Any) -> str:
        """A leaf's name, or what it looks like."""
        return self.of_tensor(t) or f"a leaf {list(t.shape)}"


def names_here(given: Any = None) -> Names:
    """The names in the program that called rushlight."""
    return Names(given, caller())
