"""`GraphPicture`: a graph, how it is folded, and the files it can be written to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from rushlight.viz.dot import dot
from rushlight.viz.drawing import Drawing, draw
from rushlight.viz.folding import Group
from rushlight.viz.model import GraphModel
from rushlight.viz.shapes import Shapes
from rushlight.viz.svg import svg
from rushlight.viz.visible import View, groups_of, open_at_first, view_of

ROOM = 40  # boxes that are shown at first, at most, if folding can do it


class GraphPicture:
    """A picture of a backward graph, made by `viz.graph`.

    In a notebook it shows itself. `save` writes it as `.svg`, `.png`, `.html` (a page to explore)
    or `.dot`. `fold` and `unfold` give another picture of the same graph.
    """

    def __init__(
        self, model: GraphModel, root: Group, shapes: Shapes, opened: frozenset[str] | None = None,
        recorded: Any = None,
    ) -> None:  # fmt: skip
        self.model = model
        self._root = root
        self._shapes = shapes
        self._recorded = recorded
        self._opened = open_at_first(root, ROOM) if opened is None else opened
        self._drawing: Drawing | None = None

    # --- folding ----------------------------------------------------------------------------------
    @property
    def groups(self) -> list[str]:
        """The names of the groups, outer ones first; a module's is its path: 'encoder.layers.0'."""
        return list(dict.fromkeys(self._paths().values()))

    def unfold(self, *names: str) -> GraphPicture:
        """A picture with these groups open, and what they are in; without names, with all."""
        return self._with(self._opened | self._chosen(names, upwards=True))

    def fold(self, *names: str) -> GraphPicture:
        """A picture with these groups folded, and what is in them; without names, with all."""
        return self._with(self._opened - self._chosen(names, upwards=False))

    def _with(self, opened: frozenset[str]) -> GraphPicture:
        return GraphPicture(self.model, self._root, self._shapes, opened, self._recorded)

    def _paths(self) -> dict[str, str]:
        """The name of each group, by its id."""
        found: dict[str, str] = {}
        stack: list[tuple[Group, str]] = [(self._root, "")]
        for group, above in stack:
            for child in group.children:
                if isinstance(child, Group):
                    found[child.id] = f"{above}.{child.title}" if above else child.title
                    stack.append((child, found[child.id]))
        return found

    def _chosen(self, names: tuple[str, ...], upwards: bool) -> frozenset[str]:
        groups = {group.id: group for group in groups_of(self._root)}
        if not names:
            return frozenset(groups)
        paths = self._paths()
        found: set[str] = set()
        for name in names:
            ids = [i for i, path in paths.items() if name in (path, i, groups[i].title)]
            if not ids:
                shown = ", ".join(map(repr, self.groups[:8])) or "none: nothing here repeats"
                raise ValueError(f"there is no group {name!r}. Groups: {shown}")
            for i in ids:
                near = _above(self._root, i) if upwards else groups_of(groups[i])
                found.update({i}, (group.id for group in near))
        return frozenset(found)

    # --- showing ----------------------------------------------------------------------------------
    def _view(self) -> View:
        return view_of(self.model, self._root, self._opened)

    def _draw(self) -> Drawing:
        if self._drawing is None:
            self._drawing = draw(self._view(), str(self))
        return self._drawing

    def _repr_svg_(self) -> str:
        return svg(self._draw())

    def _repr_html_(self) -> str:
        """For notebooks: the picture, as wide as the cell at most."""
        return f'<div style="max-width:100%;overflow:auto">{self._repr_svg_()}</div>'

    def html(self) -> str:
        """The page to explore the graph, as one file that needs no other."""
        from rushlight.viz.page import page  # reads formulas and values: wanted for pages alone

        opened = self._opened
        return page(self.model, self._root, self._shapes, opened, self._recorded, str(self))

    def dot(self) -> str:
        """What is seen, in the language of Graphviz."""
        return dot(self._view(), str(self))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file; its ending says what: `.svg`, `.png`, `.html` or `.dot`.

        >>> import tempfile, os
        >>> x = torch.ones(2, requires_grad=True)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     torch.viz.graph(x.exp().sum()).save(os.path.join(folder, "exp.dot"))
        ...     print(open(os.path.join(folder, "exp.dot")).readline().strip())
        digraph "graph of output: 2 nodes, 1 leaf" {
        """
        ending = Path(path).suffix.lower()
        if ending == ".png":
            from rushlight.viz.png import save_png

            save_png(self._draw(), os.fspath(path))
            return
        writers = {".svg": self._repr_svg_, ".html": self.html, ".htm": self.html, ".dot": self.dot}
        if ending not in writers:
            raise ValueError(f"a picture is saved as .svg, .png, .html or .dot, not {ending!r}")
        Path(path).write_text(writers[ending](), "utf-8")

    def __str__(self) -> str:
        names = [item.title for item in self.model.outputs]
        shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        nodes, leaves = len(self.model.nodes), len(self.model.leaves)
        ends = f"{leaves} lea{'f' if leaves == 1 else 'ves'}"
        return f"graph of {shown}: {nodes} node{'' if nodes == 1 else 's'}, {ends}"

    def __repr__(self) -> str:
        return f"<{self}>"


def _above(root: Group, wanted: str) -> list[Group]:
    """The groups that a group is in."""
    stack: list[tuple[Group, list[Group]]] = [(root, [])]
    while stack:
        group, above = stack.pop()
        for child in group.children:
            if isinstance(child, Group):
                if child.id == wanted:
                    return [g for g in [*above, group] if g is not root]
                stack.append((child, [*above, group]))
    return []
