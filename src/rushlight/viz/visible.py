"""What is seen of a folded graph: the items and folded groups, and the edges between them."""

from __future__ import annotations

from dataclasses import dataclass

from rushlight.viz.folding import Group
from rushlight.viz.model import GraphModel, Item

Shown = Item | Group
FEW_READERS = 2  # boxes that a leaf is joined to; see `View`


@dataclass
class View:
    """What is drawn, by key (an item's number as text, or a group's id), and which are joined:
    (from, to) -> how many edges that stands for. A leaf that many boxes read would be joined to
    all of them: folded groups name it in `reads` instead."""

    shown: dict[str, Shown]
    joined: dict[tuple[str, str], int]
    reads: dict[str, list[str]]


def groups_of(root: Group) -> list[Group]:
    """All groups, outer ones first, level by level; without the graph itself."""
    level, found = [root], []
    while level:
        level = [c for g in level for c in g.children if isinstance(c, Group)]
        found += level
    return found


def open_at_first(root: Group, room: int) -> frozenset[str]:
    """Which groups stand open: the outer ones, as far as there is room for what is in them. Of a
    loop one step is enough to see what it does."""
    seen = len(root.children) + len(root.leaves)
    found: set[str] = set()
    level = _worth_opening(root)
    while level:
        below: list[Group] = []
        for group in sorted(level, key=_crowd):
            more = _crowd(group) - 1
            if seen + more <= room:
                seen += more
                found.add(group.id)
                below += _worth_opening(group)
        level = below
    return frozenset(found)


def _worth_opening(group: Group) -> list[Group]:
    inner = [c for c in group.children if isinstance(c, Group) and c.kind != "part"]
    small = len(group.nodes()) <= 24
    return inner if group.kind != "loop" or small else inner[:1]


def _crowd(group: Group) -> int:
    return len(group.children) + len(group.leaves)


def view_of(model: GraphModel, root: Group, opened: frozenset[str]) -> View:
    """What is seen when these groups are open."""
    place: dict[int, str] = {}
    shown: dict[str, Shown] = {}

    def show(group: Group, inside: str) -> None:
        """Show what is in a group; all of it as one box, if that box has a key."""
        stack: list[tuple[Group, str]] = [(group, inside)]
        while stack:
            top, key = stack.pop()
            for leaf in top.leaves:
                place[leaf] = key or str(leaf)
                if not key:
                    shown[str(leaf)] = model.items[leaf]
            for child in top.children:
                if isinstance(child, Group):
                    closed = key or ("" if child.id in opened else child.id)
                    if closed and not key:
                        shown[closed] = child
                    stack.append((child, closed))
                else:
                    place[child] = key or str(child)
                    if not key:
                        shown[str(child)] = model.items[child]

    show(root, "")
    for item in model.items:
        if item.id not in place:
            place[item.id] = str(item.id)
            shown[str(item.id)] = item
    joined: dict[tuple[str, str], int] = {}
    readers: dict[str, set[str]] = {}
    for edge in model.edges:
        pair = (place[edge.source], place[edge.target])
        if pair[0] != pair[1]:
            joined[pair] = joined.get(pair, 0) + 1
            readers.setdefault(pair[0], set()).add(pair[1])
    reads: dict[str, list[str]] = {}
    for a, b in list(joined):
        leaf = shown[a]
        if isinstance(leaf, Group) or leaf.kind not in ("parameter", "leaf", "constant"):
            continue
        if len(readers[a]) > FEW_READERS and isinstance(shown[b], Group):
            reads.setdefault(b, []).append(leaf.title)
            del joined[a, b]
    return View(shown, joined, reads)
