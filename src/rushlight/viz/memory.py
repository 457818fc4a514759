"""`viz.memory`: what a graph holds for the backward pass, by line and by node."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from html import escape
from typing import Any, Final, NamedTuple

from rushlight.arrays.batched import bottom
from rushlight.arrays.host import root_of
from rushlight.autograd.api import as_tuple, root_edge
from rushlight.core.call_site import Where
from rushlight.core.engine.traverse import end_of, reachable
from rushlight.core.graph import Node, TensorBase
from rushlight.core.saved.packed import Packed
from rushlight.viz.sheet import page, table, write

MANY: Final = 3  # iterations that are more than a coincidence


class Kept(NamedTuple):
    """One storage that a node holds."""

    node: Any
    name: str  # which saved value it is
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    leaf: bool  # a parameter's, or another leaf's, own memory


class Line(NamedTuple):
    """What one line of the program holds."""

    place: str
    bytes: int
    storages: int
    nodes: int


class MemoryReport:
    """What is held, by line and by node; `str()` of it is a table."""

    def __init__(self, nodes: list[Any], kept: list[Kept], warned: list[str]) -> None:
        self.nodes = len(nodes)
        self.kept = sorted(kept, key=lambda each: -each.bytes)
        self.total = sum(each.bytes for each in kept)
        self.of_leaves = sum(each.bytes for each in kept if each.leaf)
        self.warnings = warned
        self._places: dict[tuple[Any, int], str] = {}
        rows: dict[str, list[int]] = {}
        for node in nodes:
            rows.setdefault(self.place(node), [0, 0, 0])[2] += 1
        for each in kept:
            row = rows[self.place(each.node)]
            row[0] += each.bytes
            row[1] += 1
        found = [Line(place, *row) for place, row in rows.items()]
        self.lines = sorted(found, key=lambda line: (-line.bytes, -line.nodes))

    def place(self, node: Any) -> str:
        """The line that made a node; many nodes are of one line, and the text takes time."""
        key = (node._code, node._code_offset)
        if key not in self._places:
            self._places[key] = str(Where(*key))
        return self._places[key]

    @property
    def head(self) -> str:
        storages = f"{len(self.kept)} storage{'' if len(self.kept) == 1 else 's'}"
        text = f"{size(self.total)} held for backward, in {storages} of {self.nodes} nodes"
        return text + (f"; {size(self.of_leaves)} of it are leaves' own" if self.of_leaves else "")

    def values(self) -> list[tuple[int, str, str]]:
        """What is kept, largest first, with what one line kept several times together: (bytes, in
        words, line)."""
        groups: dict[tuple[str, str], list[int]] = {}
        for each in self.kept:
            groups.setdefault((words(each), self.place(each.node)), []).append(each.bytes)
        found = [
            (sum(sizes), f"{len(sizes)} times {text}" if len(sizes) > 1 else text, place)
            for (text, place), sizes in groups.items()
        ]
        return sorted(found, key=lambda row: -row[0])

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = [self.head, "", f"{'held':>10}  {'storages':>8}  {'nodes':>6}  line"]
        for line in self.lines[:20]:
            lines.append(
                f"{size(line.bytes):>10}  {line.storages:>8}  {line.nodes:>6}  {line.place}"
            )
        if len(self.lines) > 20:
            lines.append(f"{'':10}  {'':8}  {'':6}  ... {len(self.lines) - 20} more lines")
        if self.kept:
            lines += ["", f"{'held':>10}  value"]
        for held, text, _ in self.values()[:10]:
            lines.append(f"{size(held):>10}  {text}")
        for text in self.warnings:
            lines += ["", f"Warning: {text}"]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return self._body()

    def _body(self) -> str:
        most = max([1, *(line.bytes for line in self.lines)])
        rows = [
            (size(line.bytes), line.place, line.storages, line.nodes) for line in self.lines[:200]
        ]
        parts = [line.bytes / most for line in self.lines[:200]]
        values = [(size(held), text, place) for held, text, place in self.values()[:50]]
        warned = "".join(f'<p class="warn">{text}</p>' for text in map(escape, self.warnings))
        return (
            f"<p>{escape(self.head)}</p>{warned}<h2>By line</h2>"
            + table(["#held", "`line", "#storages", "#nodes"], rows, parts)
            + "<h2>The largest values</h2>"
            + table(["#held", "value", "`line"], values)
        )

    def save(self, path: Any) -> None:
        """Write it as a page: `memory.html`."""
        write(path, page("Held for the backward pass", self._body()))


def words(each: Kept) -> str:
    """A saved value in words: 'result of ExpBackward0, 64x10 float32'."""
    shape = "x".join(map(str, each.shape)) or "scalar"
    mine = ", a leaf's own" if each.leaf else ""
    return f"{each.name} of {type(each.node).__name__}, {shape} {each.dtype}{mine}"


def size(n: float) -> str:
    """Bytes, for people.

    >>> size(512), size(1536), size(3 * 2**20)
    ('512 B', '1.5 KB', '3.0 MB')
    """
    if n < 1024:
        return f"{int(n)} B"
    for unit in ("KB", "MB", "GB"):
        n /= 1024
        if n < 1024 or unit == "GB":
            break
    return f"{n:.1f} {unit}"


# --- what nodes keep ------------------------------------------------------------------------------
def saved_by(node: Any) -> Iterator[tuple[str, Any]]:
    """The arrays that a node keeps, by name."""
    inner = getattr(node, "fn", None)
    if isinstance(inner, Node):  # a write through a view: the op is inside
        yield from saved_by(inner)
    op = node._op
    if op is None:
        for i, record in enumerate(getattr(node, "_records", ())):
            if record is not None:
                value = record.array if record.packed is None else record.packed.value
                yield f"saved tensor {i}", value
        return
    for name in op.params:  # indices and masks that are no tensors of the graph
        value = getattr(op, name)
        for part in value if isinstance(value, (tuple, list)) else [value]:
            if hasattr(bottom(part), "strides"):
                yield name, part
    names = op.plan.names
    for i, value in enumerate(node._kept_values):
        if isinstance(value, Packed):
            value = value.value
        yield names[i] if i < len(names) and not op.plan.variadic else f"input {i}", value


def memories(value: Any) -> Iterator[Any]:
    """The pieces of memory behind an array or tensor; nothing for numbers and what has none."""
    x = bottom(value)
    parts = [getattr(x, name) for name in ("indices", "values") if hasattr(x, name)]
    for part in parts if parts and not hasattr(x, "strides") else [x]:
        if hasattr(part, "nbytes") and hasattr(part, "strides") and part.nbytes:
            yield root_of(part)


def look(nodes: list[Any]) -> list[Kept]:
    """What nodes keep, each storage counted to the oldest node that holds it."""
    own: set[int] = set()
    alive = []  # so that an id stays what it is
    for node in nodes:
        for target in node._next_edges:
            end = end_of(target)
            if isinstance(end, TensorBase):
                for root in memories(end):
                    own.add(id(root))
                    alive.append(root)
    seen: set[int] = set()
    found = []
    for node in nodes:
        for name, value in saved_by(node):
            for root in memories(value):
                if id(root) not in seen:
                    seen.add(id(root))
                    alive.append(root)
                    x = bottom(value)
                    found.append(
                        Kept(node, name, tuple(x.shape), str(x.dtype), int(root.nbytes),
                             id(root) in own)
                    )  # fmt: skip
    return found


# --- many iterations ------------------------------------------------------------------------------
def iterations(root: Any) -> tuple[int, Any]:
    """How often one line has added to the same sum: `total += loss` in a loop; and its node."""
    best, at = 0, None
    start = root if isinstance(root, Node) else None
    seen: set[int] = set()
    node: Any = start
    while node is not None and id(node) not in seen:
        seen.add(id(node))
        count, walk = 1, node
        while True:
            following = next((
                end_of(t) for t in walk._next_edges
                if isinstance(t, Node) and type(end_of(t)) is type(node) and same_line(t, node)
            ), None)  # fmt: skip
            if following is None or "Add" not in type(node).__name__:
                break
            seen.add(id(following))
            count, walk = count + 1, following
        if count > best:
            best, at = count, node
        edges = [t for t in walk._next_edges if isinstance(end_of(t), Node)]
        node = end_of(edges[0]) if edges else None
    return best, at


def same_line(a: Any, b: Any) -> bool:
    return a._code is b._code and a._code_offset == b._code_offset


def warn_of_iterations(roots: list[Any]) -> list[str]:
    found = []
    for root in roots:
        count, node = iterations(root)
        if count < MANY:
            continue
        below = [end_of(t) for t in node._next_edges if isinstance(end_of(t), Node)]
        done = any(n._freed_at is not None for each in below for n in reachable([each], None))
        found.append(
            f"{count} iterations are kept alive by one sum:\n"
            f"  {Where(node._code, node._code_offset)}\n"
            + ("backward() was called on them already: " if done else "If it is only for a log, ")
            + "add up numbers instead, `total += loss.item()`, or `loss.detach()`."
        )  # fmt: skip
    return found


def memory(outputs: Any, *, warn: bool = True) -> MemoryReport:
    """What the graph of a tensor (or of several) holds for the backward pass: bytes by line of your
    program and by node. Memory that several nodes share is counted once, to the oldest of them;
    what belongs to leaves (parameters) is marked, for it would be there anyway.

    If a loop adds losses up, so that the sum keeps all its iterations alive, that is warned of.
    Print what is returned, or `.save("memory.html")`.

    >>> x = torch.ones(1000, requires_grad=True)
    >>> y = x.exp().sin().sum()
    >>> print(torch.viz.memory(y).head)
    3.9 KB held for backward, in 1 storage of 3 nodes
    """
    roots = [root_edge(out, i)[0] for i, out in enumerate(as_tuple(outputs))]
    nodes = sorted(reachable(roots, None), key=lambda node: int(node._seq_nr))
    warned = warn_of_iterations(roots)
    if warn:
        for text in warned:
            warnings.warn(text, UserWarning, stacklevel=2)
    return MemoryReport(nodes, look(nodes), warned)
