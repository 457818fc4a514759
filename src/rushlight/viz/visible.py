"""What is seen of a folded graph: the items and folded groups, and the edges between them."""

from __future__ import annotations

from dataclasses import dataclass

from rushlight.viz.folding import Group
from rushlight.viz.model import GraphModel, Item

Shown = Item | Group
FEW_READERS = 2  # boxes that a leaf is joined to; more groups name it instead,
MANY_READERS = 6  # and of so many boxes all but the first


@dataclass
class View:
    """What is drawn, by key (an item's number as text, or a group's id), and which are joined:
    (from, to) -> how many edges that stands for. A leaf that many boxes read would be joined to
    all of them: they name it in `reads` instead."""

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
    """Which groups stand open: all, if there is room for them; else the outer ones, as far as
    there is. Of steps and of modules of one kind the first is enough to see what they do."""
    every = groups_of(root)
    if sum(len(g.leaves) for g in [root, *every]) + len(root.nodes()) <= room:
        return frozenset(g.id for g in every)
    seen = _crowd(root)
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
    found: list[Group] = []
    kinds: set[str] = set()
    for child in group.children:
        if not isinstance(child, Group) or child.kind == "part":
            continue
        in_parts = any(isinstance(c, Group) and c.kind == "part" for c in child.children)
        if in_parts and child.kind != "loop":
            continue
        kind = child.subtitle if child.kind == "module" else child.kind
        if kind not in kinds or len(child.nodes()) <= 4:
            kinds.add(kind)
            found.append(child)
    return found


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
    readers: dict[str, dict[str, None]] = {}
    for edge in model.edges:
        pair = (place[edge.source], place[edge.target])
        if pair[0] != pair[1]:
            joined[pair] = joined.get(pair, 0) + 1
            readers.setdefault(pair[0], {})[pair[1]] = None
    reads: dict[str, list[str]] = {}
    for a, b in list(joined):
        leaf = shown[a]
        if isinstance(leaf, Group) or leaf.kind not in ("parameter", "leaf", "constant"):
            continue
        count, first = len(readers[a]), next(iter(readers[a]))
        folded = isinstance(shown[b], Group)
        if (count > FEW_READERS and folded) or (count > MANY_READERS and b != first):
            reads.setdefault(b, []).append(leaf.title)
            del joined[a, b]
    return View(shown, joined, reads)
