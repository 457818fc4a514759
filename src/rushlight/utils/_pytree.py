"""Trees under the name that PyTorch's users import them by; they stand in `rushlight.trees`. Here
is what belongs to the path of a leaf, and what libraries import of PyTorch's insides."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from rushlight.trees import (
    LEAF,
    SUPPORTED_NODES,
    Container,
    LeafSpec,
    TreeSpec,
    _container,
    register_pytree_node,
    tree_all,
    tree_any,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_map_,
    tree_map_only,
    tree_structure,
    tree_unflatten,
    treespec_pprint,
)

__all__ = [
    "Context", "DumpableContext", "LeafSpec", "PyTree", "TreeSpec", "is_namedtuple_class",
    "is_namedtuple_instance", "is_structseq_instance", "key_get", "keystr",
    "register_pytree_node", "tree_all", "tree_all_only", "tree_any", "tree_any_only",
    "tree_flatten", "tree_flatten_with_path", "tree_is_leaf", "tree_iter", "tree_leaves",
    "tree_leaves_with_path", "tree_map", "tree_map_", "tree_map_only", "tree_map_only_",
    "tree_map_with_path", "tree_structure", "tree_unflatten", "treespec_pprint",
]  # fmt: skip
_UNLISTED = [
    "GetAttrKey", "KeyEntry", "KeyPath", "MappingKey", "NodeDef",
    "SUPPORTED_NODES", "SequenceKey", "arg_tree_leaves", "map_only",
    "register_constant", "register_dataclass",
]  # fmt: skip
__dir__ = (__all__ + _UNLISTED).copy

PyTree: TypeAlias = Any
Context: TypeAlias = Any
DumpableContext: TypeAlias = Any
FlattenFunc: TypeAlias = Callable[[Any], tuple[list[Any], Any]]
UnflattenFunc: TypeAlias = Callable[[Iterable[Any], Any], Any]
ToDumpableContextFunc: TypeAlias = Callable[[Any], Any]
FromDumpableContextFunc: TypeAlias = Callable[[Any], Any]
NodeDef = Container


# --- the path of a leaf ---------------------------------------------------------------------------
@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """A step of a path: the place in a list or tuple."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """What is there."""
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    """A step of a path: the key in a dict."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """What is there."""
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """A step of a path: the name of an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """What is there."""
        return getattr(obj, self.name)


KeyEntry: TypeAlias = Any
KeyPath: TypeAlias = tuple[Any, ...]


def keystr(kp: KeyPath) -> str:
    """A path as Python would write it.

    >>> from rushlight.utils._pytree import keystr, MappingKey, SequenceKey
    >>> keystr((MappingKey("a"), SequenceKey(0)))
    "['a'][0]"
    """
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """What is at the end of a path."""
    for step in kp:
        obj = step.get(obj)
    return obj


def _keyed(kind: Container, tree: Any) -> list[tuple[Any, Any]]:
    """The children of a container, each with the step that leads to it."""
    if kind.keyed is not None:
        return list(kind.keyed(tree)[0])
    if isinstance(tree, dict):
        return [(MappingKey(k), x) for k, x in tree.items()]
    children = kind.apart(tree)[0]
    if is_namedtuple_instance(tree):
        return [(GetAttrKey(k), x) for k, x in zip(tree._fields, children, strict=True)]
    if not isinstance(tree, Iterable):
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {type(tree)}. Please pass a "
            "flatten_with_keys_fn argument to register_pytree_node."
        )
    return [(SequenceKey(i), x) for i, x in enumerate(children)]


def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> list[tuple[KeyPath, Any]]:
    """The leaves of a tree in order, each behind its path."""
    found: list[tuple[KeyPath, Any]] = []
    _walk(tree, (), is_leaf, found)
    return found


def _walk(tree: Any, path: KeyPath, is_leaf: Any, found: list[tuple[KeyPath, Any]]) -> None:
    kind = None if is_leaf is not None and is_leaf(tree) else _container(tree)
    if kind is None:
        found.append((path, tree))
        return
    for key, child in _keyed(kind, tree):
        _walk(child, (*path, key), is_leaf, found)


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """The leaves of a tree in order, each behind its path, and the tree's shape.

    >>> from rushlight.utils._pytree import tree_flatten_with_path
    >>> tree_flatten_with_path({"a": [1, 2]})[0]
    [((MappingKey(key='a'), SequenceKey(idx=0)), 1), ((MappingKey(key='a'), SequenceKey(idx=1)), 2)]
    """
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """`tree_map` of a function that gets the path first.

    >>> from rushlight.utils._pytree import keystr, tree_map_with_path
    >>> tree_map_with_path(lambda path, x: keystr(path), {"a": (1, 2)})
    {'a': ("['a'][0]", "['a'][1]")}
    """
    paths = tree_unflatten(
        [_Path(path) for path, _ in tree_leaves_with_path(tree, is_leaf)],
        tree_structure(tree, is_leaf),
    )
    return tree_map(lambda path, *xs: func(path.steps, *xs), paths, tree, *rests)


class _Path:
    """A path as one leaf, where the tuple itself would be a container."""

    def __init__(self, steps: KeyPath) -> None:
        self.steps = steps


# --- more ways through a tree ---------------------------------------------------------------------
def tree_iter(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Iterator[Any]:
    """The leaves of a tree, in order."""
    return iter(tree_leaves(tree, is_leaf))


def tree_is_leaf(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether a tree is a single leaf."""
    return (is_leaf is not None and is_leaf(tree)) or _container(tree) is None


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list[Any]:
    """The leaves of all arguments."""
    return tree_leaves((args, kwargs))


def map_only(type_or_types_or_pred: Any, /) -> Callable[[Any], Callable[[Any], Any]]:
    """A decorator: the function of what is of a type (or what a predicate holds for), and
    everything else as it is."""
    asked = type_or_types_or_pred
    by_type = isinstance(asked, (type, tuple))

    def decorate(func: Any) -> Callable[[Any], Any]:
        def wrapped(x: Any) -> Any:
            return func(x) if (isinstance(x, asked) if by_type else asked(x)) else x

        return wrapped

    return decorate


def tree_map_only_(kinds: Any, func: Callable[[Any], Any], tree: Any) -> Any:
    """Call `func` on each leaf of a type for what it does; the tree itself."""
    return tree_map_(map_only(kinds)(func), tree)


def tree_all_only(kinds: Any, pred: Callable[[Any], bool], tree: Any) -> bool:
    """Whether `pred` holds for every leaf of a type."""
    return all(pred(x) for x in tree_leaves(tree) if isinstance(x, kinds))


def tree_any_only(kinds: Any, pred: Callable[[Any], bool], tree: Any) -> bool:
    """Whether `pred` holds for some leaf of a type."""
    return any(pred(x) for x in tree_leaves(tree) if isinstance(x, kinds))


# --- kinds of containers --------------------------------------------------------------------------
def register_dataclass(
    cls: type, *, field_names: list[str] | None = None, drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:  # fmt: skip
    """Let instances of a dataclass be containers: their fields are the children.

    >>> import dataclasses
    >>> from rushlight.utils import _pytree
    >>> @dataclasses.dataclass
    ... class Point:
    ...     x: int
    ...     y: int
    >>> _pytree.register_dataclass(Point)
    >>> _pytree.tree_map(lambda n: n + 1, Point(1, 2))
    Point(x=2, y=3)
    """
    dropped = drop_field_names or []
    names = field_names or [
        f.name for f in dataclasses.fields(cls) if f.init and f.name not in dropped
    ]
    register_pytree_node(
        cls,
        lambda obj: ([getattr(obj, n) for n in names], names),
        lambda xs, names: cls(**dict(zip(names, xs, strict=True))),
        flatten_with_keys_fn=lambda obj: ([(GetAttrKey(n), getattr(obj, n)) for n in names], names),
    )


def register_constant(cls: type) -> None:
    """Let instances of a class be containers without children."""
    register_pytree_node(cls, lambda obj: ([], obj), lambda xs, obj: obj)


def _register_pytree_node(
    cls: type, flatten_fn: FlattenFunc, unflatten_fn: UnflattenFunc, **more: Any
) -> None:
    """An older name of `register_pytree_node`."""
    register_pytree_node(cls, flatten_fn, unflatten_fn, **more)


_private_register_pytree_node = _register_pytree_node


def _deregister_pytree_node(cls: type) -> None:
    del SUPPORTED_NODES[cls]


def is_namedtuple_class(cls: type) -> bool:
    """Whether a class was made by `namedtuple`."""
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and isinstance(getattr(cls, "_fields", None), tuple)
    )


def is_namedtuple_instance(obj: object) -> bool:
    """Whether an object is a named tuple."""
    return is_namedtuple_class(type(obj))


_is_namedtuple_instance = is_namedtuple_instance
is_namedtuple = is_namedtuple_instance


def is_structseq_instance(obj: object) -> bool:
    """Whether an object is a result with names, as of `torch.max(x, 0)`."""
    return isinstance(obj, tuple) and type(obj).__module__.endswith("return_types")


def _get_node_type(tree: Any) -> Any:
    return namedtuple if is_namedtuple_instance(tree) else type(tree)  # PyTorch's mark


def _is_leaf(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    return tree_is_leaf(tree, is_leaf)


_list_flatten, _list_unflatten = SUPPORTED_NODES[list].apart, SUPPORTED_NODES[list].together
_tuple_flatten, _tuple_unflatten = SUPPORTED_NODES[tuple].apart, SUPPORTED_NODES[tuple].together
_dict_flatten, _dict_unflatten = SUPPORTED_NODES[dict].apart, SUPPORTED_NODES[dict].together
_ordereddict_flatten = SUPPORTED_NODES[OrderedDict].apart
_ordereddict_unflatten = SUPPORTED_NODES[OrderedDict].together
_defaultdict_flatten = SUPPORTED_NODES[defaultdict].apart
_defaultdict_unflatten = SUPPORTED_NODES[defaultdict].together


def _list_flatten_with_keys(tree: Any) -> tuple[list[tuple[Any, Any]], Any]:
    return _keyed(SUPPORTED_NODES[list], tree), None


_tuple_flatten_with_keys = _list_flatten_with_keys


def _dict_flatten_with_keys(tree: Any) -> tuple[list[tuple[Any, Any]], Any]:
    return _keyed(SUPPORTED_NODES[dict], tree), list(tree)


def _broadcast_to_and_flatten(tree: Any, treespec: TreeSpec) -> list[Any] | None:
    from rushlight.trees import broadcast_prefix

    return broadcast_prefix(tree, treespec)


def treespec_leaf() -> LeafSpec:
    """The shape of a leaf."""
    return LEAF
