"""The graph as plain data: what pictures and pages are made of, with no engine behind it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Place:
    """A line of the user's program."""

    file: str
    line: int
    function: str
    source: str

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line}" if self.file else ""


@dataclass
class Item:
    """Something that is drawn: an op's node, a leaf, a constant that was kept, or an output.

    `kind` is op, function (a custom one), parameter, leaf, constant or output. `label` is the name
    of the user's variable that holds it, `details` its parameters by name, `kept` the shapes of
    what it keeps for the backward pass. `graph_node` is the node itself, or the tensor of a leaf.
    """

    id: int
    kind: str
    title: str
    label: str = ""
    shape: tuple[int, ...] | None = None
    dtype: str = ""
    place: Place | None = None
    module: tuple[str, ...] = ()
    details: dict[str, str] = field(default_factory=dict)
    kept: dict[str, tuple[int, ...]] = field(default_factory=dict)
    graph_node: Any = None

    @property
    def size_text(self) -> str:
        """`float32 [3, 4]`, as far as it is known."""
        shape = "scalar"
        if self.shape is None or self.shape:
            shape = "" if self.shape is None else f"[{', '.join(map(str, self.shape))}]"
        return f"{self.dtype} {shape}".strip()


@dataclass(frozen=True)
class Edge:
    """From what was computed first to what was computed from it. `input` says as which input, of
    the name `name`; `output` is which of the first one's outputs it was."""

    source: int
    target: int
    input: int
    name: str = ""
    output: int = 0


@dataclass
class GraphModel:
    """All items, in the order in which they were made: ops first, then leaves and constants, then
    outputs. `classes` has the class of each module by its path."""

    items: list[Item] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    classes: dict[tuple[str, ...], str] = field(default_factory=dict)

    def _of(self, *kinds: str) -> list[Item]:
        return [item for item in self.items if item.kind in kinds]

    @property
    def nodes(self) -> list[Item]:
        """The ops and custom functions."""
        return self._of("op", "function")

    @property
    def leaves(self) -> list[Item]:
        """Where gradients end."""
        return self._of("parameter", "leaf")

    @property
    def outputs(self) -> list[Item]:
        """Where the backward pass begins."""
        return self._of("output")
