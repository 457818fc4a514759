"""Trees: containers as flat lists and back, as PyTorch's `torch.utils._pytree` does it."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch
import rushlight.utils._pytree as ours
from rushlight import trees
from rushlight.trees import SUPPORTED_NODES

try:
    import torch.utils._pytree as theirs
except ImportError:
    theirs = None

Pair = namedtuple("Pair", ["a", "b"])

# a tree, its leaves, and how its shape prints
TREES: list[tuple[Any, list[Any], str]] = [
    (1, [1], "*"),
    (None, [None], "*"),
    ("ab", ["ab"], "*"),
    ({1, 2}, [{1, 2}], "*"),
    (range(3), [range(3)], "*"),
    ((1, 2), [1, 2], "TreeSpec(tuple, None, [*,\n  *])"),
    ([1, [2]], [1, 2], "TreeSpec(list, None, [*,\n  TreeSpec(list, None, [*])])"),
    ([1, [2, (3,)]], [1, 2, 3], ""),
    ((), [], "TreeSpec(tuple, None, [])"),
    ({"b": 1, "a": 2}, [1, 2], "TreeSpec(dict, ['b', 'a'], [*,\n  *])"),
    ({"b": 1, "a": {"c": 2}}, [1, 2], ""),
    (OrderedDict(z=1, a=2), [1, 2], "TreeSpec(OrderedDict, ['z', 'a'], [*,\n  *])"),
    (defaultdict(list, x=[1, 2]), [1, 2], ""),
    (deque([1, 2], maxlen=3), [1, 2], "TreeSpec(deque, 3, [*,\n  *])"),
    (Pair(1, (2, 3)), [1, 2, 3], ""),
    (((), [], {}), [], ""),
]  # fmt: skip


def kinds() -> list[Any]:
    return [ours] if theirs is None else [ours, theirs]


@pytest.mark.parametrize("tree, leaves, shape", TREES, ids=lambda x: str(x)[:20])
def test_apart_and_together(tree: Any, leaves: list[Any], shape: str) -> None:
    for lib in kinds():
        found, spec = lib.tree_flatten(tree)
        assert found == leaves
        assert not shape or str(spec) == shape
        assert spec.num_leaves == len(leaves)
        again = lib.tree_unflatten(found, spec)
        assert again == tree
        assert type(again) is type(tree)
        assert spec == lib.tree_structure(again)
        assert lib.tree_leaves(tree) == leaves
        assert spec.is_leaf() == (leaves == [tree])


def test_what_is_kept_of_containers() -> None:
    found = ours.tree_map(lambda x: x, defaultdict(list, x=1))
    assert found.default_factory is list
    assert ours.tree_map(lambda x: x, deque([1], 3)).maxlen == 3


CALLS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "map": (lambda m: m.tree_map(lambda x: x + 1, {"a": 1, "b": [2]}), {"a": 2, "b": [3]}),
    "map two": (lambda m: m.tree_map(lambda a, b: a + b, [1, (2,)], [10, (20,)]), [11, (22,)]),
    "map with subtrees": (
        lambda m: m.tree_map(lambda a, b: (a, b), [1, 2], [10, {"a": 1}]),
        [(1, 10), (2, {"a": 1})],
    ),
    "map with keys in another order": (
        lambda m: m.tree_map(lambda a, b: (a, b), {"a": 1, "b": 2}, {"b": 20, "a": 10}),
        {"a": (1, 10), "b": (2, 20)},
    ),
    "map with leaves of one's own": (
        lambda m: m.tree_map(len, {"a": (1, 2)}, is_leaf=lambda x: isinstance(x, tuple)),
        {"a": 2},
    ),
    "map only": (lambda m: m.tree_map_only(int, lambda x: x + 1, (1, "a", 2.0)), (2, "a", 2.0)),
    "map in place": (lambda m: m.tree_map_(lambda x: None, [1, 2]), [1, 2]),
    "all": (lambda m: m.tree_all(lambda x: x > 0, [1, [2]]), True),
    "any": (lambda m: m.tree_any(lambda x: x > 2, [1, [2]]), False),
    "equal shapes": (lambda m: m.tree_structure((1, 2)) == m.tree_structure((3, 4)), True),
    "list and tuple": (lambda m: m.tree_structure([1]) == m.tree_structure((1,)), False),
    "hash": (lambda m: hash(m.tree_structure([1])) == hash(m.tree_structure([2])), True),
    "pprint": (lambda m: m.treespec_pprint(m.tree_structure({"a": (1, [2])})), "{'a': (*, [*])}"),
}

REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "another kind": (
        lambda m: m.tree_map(lambda a, b: 0, [1, (2,)], [10, [20]]),
        "Node type mismatch; expected <class 'tuple'>, but got <class 'list'>.",
    ),
    "another length": (
        lambda m: m.tree_map(lambda a, b: 0, [1, 2], [10]),
        "Node arity mismatch; expected 2, but got 1.",
    ),
    "other keys": (
        lambda m: m.tree_map(lambda a, b: 0, {"a": 1}, {"b": 1}),
        "Node keys mismatch; missing key(s): {'a'}; extra key(s): {'b'}.",
    ),
    "too few leaves": (
        lambda m: m.tree_unflatten([1], m.tree_structure((1, 2))),
        "treespec.unflatten(leaves): `leaves` has length 1 but the spec refers to a pytree that "
        "holds 2 items (TreeSpec(tuple, None, [*,\n  *])).",
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name: str) -> None:
    call, want = CALLS[name]
    for lib in kinds():
        assert call(lib) == want


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    call, want = REFUSED[name]
    for lib in kinds():
        with pytest.raises(ValueError) as caught:
            call(lib)
        assert str(caught.value) == want


class Box:
    def __init__(self, inside: Any) -> None:
        self.inside = inside


@pytest.fixture
def boxes() -> Any:
    ours.register_pytree_node(Box, lambda b: ([b.inside], "box"), lambda xs, _: Box(*xs))
    yield
    del SUPPORTED_NODES[Box]


def test_a_class_of_ones_own(boxes: None) -> None:
    assert ours.tree_leaves([Box(1), 2]) == [1, 2]
    assert str(ours.tree_structure(Box(1))) == "TreeSpec(Box, box, [*])"
    with pytest.raises(ValueError, match="is already registered as pytree node"):
        ours.register_pytree_node(Box, lambda b: ([], None), lambda xs, _: Box(1))


def test_transforms_take_it(boxes: None) -> None:
    x = torch.arange(3.0)
    found = torch.func.grad(lambda b: (b.inside**2).sum())(Box(x))
    assert isinstance(found, Box)
    assert torch.equal(found.inside, 2 * x)
    assert torch.equal(torch.func.vmap(lambda b: Box(b.inside * 2))(Box(x)).inside, 2 * x)


def test_prefixes() -> None:
    spec = ours.tree_structure(({"a": 1, "b": [2, 3]}, 4))
    assert trees.broadcast_prefix(0, spec) == [0, 0, 0, 0]
    assert trees.broadcast_prefix((0, None), spec) == [0, 0, 0, None]
    assert trees.broadcast_prefix(({"a": 1, "b": 2}, 3), spec) == [1, 2, 2, 3]
    assert trees.broadcast_prefix((0,), spec) is None
    assert trees.broadcast_prefix(({"a": 1}, 3), spec) is None
