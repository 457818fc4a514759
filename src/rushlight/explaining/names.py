"""What tensors are called in the program that asks: by its variables and its modules' parameters.

Names are looked up in the caller's frame and in those around it, only when someone asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import FrameType, ModuleType
from typing import Any, Final

from rushlight.core.graph import TensorBase, caller

MOST: Final = 2000  # members of a list or dict that are looked at


class Names:
    """Names of tensors, and of the results of nodes."""

    def __init__(self, given: Any = None, frame: FrameType | None = None) -> None:
        self.tensors: dict[int, str] = {}
        self.results: dict[tuple[int, int], str] = {}
        self.known: list[Any] = []  # all tensors that were found, in order
        if given is not None:
            self.add_all(given.items() if isinstance(given, Mapping) else named(given, ""))
        while frame is not None:
            spaces = [frame.f_locals]
            if frame.f_globals is not frame.f_locals:
                spaces.append(frame.f_globals)
            for space in spaces:
                for name, value in list(space.items()):
                    if not name.startswith("__") and name.isidentifier():
                        self.add_all(named(value, name))
            frame = frame.f_back

    def add_all(self, pairs: Any) -> None:
        for name, t in pairs:
            if id(t) not in self.tensors:
                self.tensors[id(t)] = name
                self.known.append(t)
                if t._node is not None and not name.startswith("_"):
                    self.results.setdefault((id(t._node), int(t._output_nr)), name)

    def of(self, t: Any) -> str:
        """The name of a tensor; "" if none was found."""
        return self.tensors.get(id(t), "")

    def leaf(self, t: Any) -> str:
        """A leaf's name, or what it looks like."""
        return self.of(t) or f"a leaf {list(t.shape)}"

    def result(self, node: Any, nr: int = 0) -> str:
        """The name of a node's result; "" if none was found."""
        return self.results.get((id(node), nr), "")


def named(value: Any, name: str, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """The tensors that a variable leads to, with how one would write them."""
    if isinstance(value, TensorBase):
        yield name, value
    elif isinstance(value, (ModuleType, type, str, bytes, int, float)) or value is None:
        return
    elif hasattr(value, "named_parameters"):
        dot = f"{name}." if name else ""
        try:
            pairs = [*value.named_parameters(), *value.named_buffers()]
        except (TypeError, AttributeError):  # a class of the user's, with other such methods
            return
        for inner, t in pairs:
            yield dot + inner, t
    elif isinstance(value, dict):
        if len(value) <= MOST:
            for key, x in list(value.items()):
                if isinstance(x, TensorBase):
                    yield f"{name}[{key!r}]", x
    elif isinstance(value, (list, tuple)):
        if len(value) <= MOST:
            for i, x in enumerate(value):
                if isinstance(x, TensorBase) or (depth == 0 and isinstance(x, (list, tuple))):
                    yield from named(x, f"{name}[{i}]", depth + 1)
    elif depth == 0 and type(value).__module__.split(".")[0] not in ("rushlight", "builtins"):
        for inner, x in list(getattr(value, "__dict__", {}).items()):
            if isinstance(x, TensorBase) or hasattr(x, "named_parameters"):
                yield from named(x, f"{name}.{inner}", depth + 1)


def names_here(given: Any = None) -> Names:
    """The names in the program that called rushlight."""
    return Names(given, caller())
