"""Paths of leaves, and the names of PyTorch's insides that libraries import."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, namedtuple
from typing import Any

import pytest

import rushlight as torch
from rushlight.utils import _pytree

Point = namedtuple("Point", "x y")
TREE = {"a": [1, (2, Point(3, 4))], "b": OrderedDict(c=5)}


def test_paths() -> None:
    leaves, spec = _pytree.tree_flatten_with_path(TREE)
    paths = ["['a'][0]", "['a'][1][0]", "['a'][1][1].x", "['a'][1][1].y", "['b']['c']"]
    assert [(_pytree.keystr(path), leaf) for path, leaf in leaves] == list(zip(paths, range(1, 6)))
    assert [_pytree.key_get(TREE, path) for path, _ in leaves] == [1, 2, 3, 4, 5]
    assert spec == _pytree.tree_structure(TREE)
    named = _pytree.tree_map_with_path(lambda path, x, y: (_pytree.keystr(path), x + y), TREE, TREE)
    assert named["a"][1][1] == Point(("['a'][1][1].x", 6), ("['a'][1][1].y", 8))


def test_registered_classes() -> None:
    @dataclasses.dataclass
    class Pair:
        left: Any
        right: Any

    _pytree.register_dataclass(Pair)
    found = _pytree.tree_leaves_with_path([Pair(1, 2)])
    assert [_pytree.keystr(path) for path, _ in found] == ["[0].left", "[0].right"]
    assert _pytree.tree_map(lambda x: -x, Pair(1, [2])) == Pair(-1, [-2])
    assert _pytree.SUPPORTED_NODES[Pair].flatten_fn(Pair(1, 2))[0] == [1, 2]
    _pytree._deregister_pytree_node(Pair)
    assert _pytree.tree_leaves(Pair(1, 2)) == [Pair(1, 2)]

    class Closed:
        pass

    _pytree.register_pytree_node(Closed, lambda c: ([1], None), lambda xs, _: Closed())
    with pytest.raises(ValueError, match="Did not find a flatten_with_keys_fn for type"):
        _pytree.tree_leaves_with_path(Closed())
    _pytree._deregister_pytree_node(Closed)


def test_more_ways_through_a_tree() -> None:
    assert list(_pytree.tree_iter(TREE)) == [1, 2, 3, 4, 5]
    assert _pytree.tree_is_leaf(3) and not _pytree.tree_is_leaf([3])
    assert _pytree.arg_tree_leaves(1, [2], k=3) == [1, 2, 3]
    assert _pytree.tree_map(_pytree.map_only(int)(lambda x: x + 1), [1, "a"]) == [2, "a"]
    assert _pytree.tree_all_only(int, lambda x: x > 0, [1, "a"])
    assert not _pytree.tree_any_only(int, lambda x: x > 1, [1, "a"])
    seen: list[Any] = []
    _pytree.tree_map_only_(str, seen.append, [1, "a"])
    assert seen == ["a"]
    assert _pytree._get_node_type(Point(1, 2)) is namedtuple
    assert _pytree.is_structseq_instance(torch.max(torch.ones(2), 0))
    assert _pytree._dict_flatten_with_keys({"a": 1}) == ([(_pytree.MappingKey("a"), 1)], ["a"])
