"""Repeated structure, folded: modules, steps of loops, layers of the same kind.

Note [Stretches]
    A group is always a stretch of nodes that were made one after the other. What is computed later
    never feeds what was computed before, so a picture in which stretches are single boxes has no
    cycles, whichever of them are folded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

from rushlight.viz.model import GraphModel, Place

FEW = 44  # what stands side by side in one group, at most, if it can be helped
_TRIED = 8  # how many lengths of a loop's body are tried at each place


@dataclass
class Group:
    """Some nodes as one. `kind` is graph (all of them), module, loop, step, function, line or part;
    `children` are groups and ids of items."""

    id: str
    kind: str
    title: str
    children: list[Child]
    subtitle: str = ""
    shape_of: int = 0  # what it looks like inside: groups with the same number look alike
    leaves: list[int] = field(default_factory=list)  # items that only this group reads

    def nodes(self) -> list[int]:
        """The ids of all nodes in it, in order."""
        found: list[int] = []
        stack: list[Child] = [self]
        while stack:
            top = stack.pop()
            if isinstance(top, Group):
                stack.extend(reversed(top.children))
            else:
                found.append(top)
        return found


Child = Union[Group, int]  # noqa: UP007  # evaluated while Group is made


def fold(model: GraphModel) -> Group:
    """All nodes as one group of groups."""
    return _Folder(model).run()


class _Folder:
    def __init__(self, model: GraphModel) -> None:
        self.model = model
        self.items = model.items
        self.made = Counter(item.place for item in model.nodes)
        self.kinds: dict[Any, int] = {}
        self.count = 0

    def run(self) -> Group:
        ids = [item.id for item in self.model.nodes]
        root = Group("all", "graph", "graph", self.by_modules(ids, 0, False))
        self.settle_leaves(root)
        return root

    # --- modules --------------------------------------------------------------------------------
    def by_modules(self, ids: list[int], depth: int, inside: bool) -> list[Child]:
        """Stretches of nodes of one module as groups, and what repeats as loops."""
        found: list[Child] = []
        for path, stretch in _runs(ids, lambda i: self.items[i].module[: depth + 1]):
            deeper = len(path) > depth
            if not deeper or len(stretch) == 1:
                found.extend(stretch)
                continue
            children = self.by_modules(stretch, depth + 1, True)
            cls = self.model.classes.get(path, "")
            found.append(self.group("module", path[-1], children, cls))
        return self.by_length(self.by_repeats(found, inside), inside)

    # --- loops ----------------------------------------------------------------------------------
    def by_repeats(self, children: list[Child], inside: bool) -> list[Child]:
        """What comes again and again, one right after the other, as loops. Short bodies first: an
        inner loop that goes round now three, now four times is then alike, whatever it counts."""
        limit = 1
        while True:
            found = self._fold_once(children, inside, limit)
            if len(found) < len(children):
                children, limit = found, 1
            elif limit > len(children):
                return children
            else:
                limit *= 2

    def _fold_once(self, children: list[Child], inside: bool, limit: int) -> list[Child]:
        kinds = [self.kind_of(child, inside) for child in children]
        places: dict[int, list[int]] = {}
        for at, kind in enumerate(kinds):
            places.setdefault(kind, []).append(at)
        position = {at: n for where in places.values() for n, at in enumerate(where)}
        found: list[Child] = []
        at = 0
        while at < len(kinds):
            where, n = places[kinds[at]], position[at]
            best = (0, 0, 0)  # how much is covered, minus the body's length, how often
            for later in where[n + 1 : n + 1 + _TRIED]:
                length = later - at
                if length > limit:
                    break
                times = _times(kinds, at, length)
                if (times > 2 or length > 2) and times > 1 and times * length > 3:
                    best = max(best, (times * length, -length, times))
            covered, minus, times = best
            if covered == 0:
                found.append(children[at])
                at += 1
                continue
            found.append(self.loop(children[at : at + covered], -minus, times, inside))
            at += covered
        return found

    def loop(self, children: list[Child], length: int, times: int, inside: bool) -> Group:
        """`times` steps of `length` children each."""
        steps: list[Child] = []
        for n in range(times):
            body = children[n * length : (n + 1) * length]
            if length == 1:
                steps.append(body[0])
            else:
                inner = self.by_length(self.by_repeats(body, inside), inside)
                steps.append(self.group("step", *_titles_of_step(body, n, inner)))
        group = self.group("loop", self.title_of_loop(children[:length], times), _nest(self, steps))
        first = self.items[_first(children[0])].place
        group.subtitle = str(first) if first else ""
        # however often it goes round: loops of other lengths look alike
        group.shape_of = self.number(("loop", self.kind_of(steps[0], inside)))
        return group

    def title_of_loop(self, body: Sequence[Child], times: int) -> str:
        """`50 × h = cell(x, h)`, `3 × EncoderLayer`, or the names of the ops."""
        modules = [c.subtitle or c.title for c in body if isinstance(c, Group)]
        count = sum(len(_ids(child)) for child in body) * times
        lines = {self.items[i].place for child in body for i in _ids(child)}
        # a line that made more than this called something that has a loop inside
        texts = [p.source for p in lines if p is not None and self.made[p] == count]
        if modules:
            text = ", ".join(dict.fromkeys(modules))
        elif len(lines) == 1 and texts and texts[0]:
            text = texts[0]
        else:
            text = ", ".join(dict.fromkeys(self.items[_first(c)].title for c in body))
        return f"{times} × {text if len(text) <= 28 else text[:27] + '…'}"

    # --- long lists -----------------------------------------------------------------------------
    def by_length(self, children: list[Child], inside: bool) -> list[Child]:
        """A list that is still long, by function, by line, then in parts."""
        for kind, key in (("function", _function), ("line", _line)):
            if len(children) <= FEW:
                return children
            found: list[Child] = []
            for place, stretch in _runs(children, self.placed(key)):
                if len(stretch) == 1 or not place or len(stretch) == len(children):
                    found.extend(stretch)
                    continue
                title, subtitle = place
                inner = self.by_length(stretch, inside) if kind == "function" else stretch
                found.append(self.group(kind, title, _in_parts(self, inner), subtitle))
            children = found
        return _in_parts(self, children)

    def placed(self, key: Callable[[Place | None], Any]) -> Callable[[Child], Any]:
        return lambda child: key(self.items[_first(child)].place)

    # --- groups ---------------------------------------------------------------------------------
    def group(self, kind: str, title: str, children: list[Child], subtitle: str = "") -> Group:
        self.count += 1
        made = Group(f"g{self.count}", kind, title, children, subtitle)
        named = subtitle if kind == "module" else kind  # by its class, whatever its own name
        inside = kind == "module" or kind == "part"
        made.shape_of = self.number((named, *[self.kind_of(c, inside) for c in children]))
        return made

    def number(self, key: Any) -> int:
        return self.kinds.setdefault(key, len(self.kinds))

    def kind_of(self, child: Child, inside: bool) -> int:
        """A number that is the same for what looks alike. Nodes of modules are alike wherever they
        were called; other nodes, if the same line made them."""
        if isinstance(child, Group):
            return child.shape_of
        item = self.items[child]
        if inside or item.place is None:
            return self.number((item.title,))
        node = item.graph_node
        return self.number((item.title, node._code, node._code_offset))

    # --- leaves ---------------------------------------------------------------------------------
    def settle_leaves(self, root: Group) -> None:
        """A leaf that only one group reads is drawn inside it."""
        paths: dict[int, tuple[Group, ...]] = {}
        stack: list[tuple[Child, tuple[Group, ...]]] = [(root, ())]
        while stack:
            child, above = stack.pop()
            if isinstance(child, Group):
                stack.extend((c, (*above, child)) for c in child.children)
            else:
                paths[child] = above
        readers: dict[int, tuple[Group, ...]] = {}
        for edge in self.model.edges:
            if self.items[edge.source].kind in ("parameter", "leaf", "constant"):
                path = paths.get(edge.target, (root,))
                held = readers.get(edge.source)
                readers[edge.source] = path if held is None else _shared(held, path)
        for leaf, path in readers.items():
            path[-1].leaves.append(leaf)


def _titles_of_step(
    body: Sequence[Child], n: int, inner: list[Child]
) -> tuple[str, list[Child], str]:
    """The title of a step, what is in it, and its subtitle: those of its modules, if it has any."""
    modules = [c for c in body if isinstance(c, Group) and c.kind == "module"]
    if not modules:
        return f"step {n + 1}", inner, ""
    titles = dict.fromkeys([modules[0].title, modules[-1].title])
    classes = dict.fromkeys([modules[0].subtitle, modules[-1].subtitle])
    return " … ".join(titles), inner, " … ".join(filter(None, classes))


def _shared(a: tuple[Group, ...], b: tuple[Group, ...]) -> tuple[Group, ...]:
    n = 0
    while n < min(len(a), len(b)) and a[n] is b[n]:
        n += 1
    return a[:n]


def _runs(things: Sequence[Any], key: Callable[[Any], Any]) -> list[tuple[Any, list[Any]]]:
    """Neighbours with the same key, together."""
    found: list[tuple[Any, list[Any]]] = []
    for thing in things:
        k = key(thing)
        if found and found[-1][0] == k:
            found[-1][1].append(thing)
        else:
            found.append((k, [thing]))
    return found


def _times(kinds: list[int], at: int, length: int) -> int:
    """How often the `length` entries at `at` come, one right after the other."""
    body = kinds[at : at + length]
    times = 1
    while kinds[at + times * length : at + (times + 1) * length] == body:
        times += 1
    return times


def _first(child: Child) -> int:
    while isinstance(child, Group):
        child = child.children[0]
    return child


def _ids(child: Child) -> list[int]:
    return child.nodes() if isinstance(child, Group) else [child]


def _function(place: Place | None) -> tuple[str, str] | None:
    return None if place is None else (f"{place.function.rpartition('.')[2]}()", place.file)


def _line(place: Place | None) -> tuple[str, str] | None:
    return None if place is None else (str(place), place.source)


def _nest(folder: _Folder, steps: list[Child]) -> list[Child]:
    """The steps of a loop; if there are many the first two, the last, and the rest in parts."""
    if len(steps) <= 10:
        return steps
    middle = _parts(folder, steps, 2, len(steps) - 1)
    many = folder.group("part", f"steps 3 to {len(steps) - 1}", middle)
    return [*steps[:2], many, steps[-1]]


def _parts(folder: _Folder, steps: list[Child], first: int, end: int) -> list[Child]:
    size = -(-(end - first) // 6)
    found: list[Child] = []
    for at in range(first, end, size):
        last = min(at + size, end)
        if last - at == 1:
            found.append(steps[at])
            continue
        inner = steps[at:last] if last - at <= 10 else _parts(folder, steps, at, last)
        found.append(folder.group("part", f"steps {at + 1} to {last}", inner))
    return found


def _in_parts(folder: _Folder, children: list[Child]) -> list[Child]:
    """At most FEW, whatever they are."""
    while len(children) > FEW:
        size = -(-len(children) // FEW)
        size = max(size, 6)
        found: list[Child] = []
        for at in range(0, len(children), size):
            part = children[at : at + size]
            if len(part) == 1:
                found.append(part[0])
                continue
            ids = [_first(part[0]), _last(part[-1])]
            titles = [folder.items[i].title for i in ids]
            title = f"{titles[0]} … {titles[1]}"
            found.append(folder.group("part", title, _in_parts(folder, part)))
        children = found
    return children


def _last(child: Child) -> int:
    while isinstance(child, Group):
        child = child.children[-1]
    return child
