"""Which saved value was written before backward could read it. Interpreted: it is said once."""

from __future__ import annotations

from typing import Any

from rushlight.core.engine.accumulate_grad import AccumulateGradBase
from rushlight.core.graph import Node, OpSpec, Storage
from rushlight.core.saved.errors import describe_overwritten
from rushlight.core.saved.packed import Packed
from rushlight.core.saved.saved_tensor import storage_of


def overwritten(node: Node, stamp: int) -> str:
    """Which saved value was overwritten, where it was saved and where it was written."""
    position = first_overwritten(node)
    culprit = storage_of(node, position)
    plan: OpSpec = node._op.plan
    source: int = position if plan.variadic else plan.sources[position]
    maker: Node | None = node
    nr: int = -1 - source
    if source >= 0:
        target: Any = node._next_edges[source]
        plain = not isinstance(target, Node) or isinstance(target, AccumulateGradBase)
        maker = None if plain else target
        nr = 0 if node._output_nrs is None else node._output_nrs[source]
    expected = culprit.version - writes_to(node, culprit, stamp - node._version_sum)
    return describe_overwritten(node._kept_values[position], maker, nr, culprit, expected, node)


def first_overwritten(node: Node) -> int:
    """The position of the first saved value that was written, in the order they are read."""
    plan: OpSpec = node._op.plan
    values = node._kept_values
    first = -1
    for j in list(range(len(values))) if plan.variadic else plan.order:
        value = values[j]
        if value is None or isinstance(value, (int, float, complex, Packed)):
            continue
        if storage_of(node, j).when > node._seq_nr:
            return j
        if first < 0:
            first = j
    return first


def writes_to(node: Node, culprit: Storage, writes: int) -> int:
    """How many of the writes since the node was made were to `culprit`. Only their sum is known:
    with several storages written, at least one write is each of the others'."""
    mine: int = 0
    others: int = 0
    for storage in node._watched():
        if storage is culprit:
            mine += 1
        elif storage.when > node._seq_nr:
            others += 1
    found = (writes - others) // mine if mine > 0 else writes
    return min(max(found, 1), culprit.version)
