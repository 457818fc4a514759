"""Nested containers as flat lists and back: what `func` does with dicts, lists and tuples.

A tree is made of containers (tuple, list, dict, namedtuple, OrderedDict, defaultdict, deque and
those registered); whatever else is in it is a leaf, None too.

>>> from rushlight.utils._pytree import tree_flatten, tree_unflatten
>>> leaves, spec = tree_flatten({"a": 1, "b": (2, [3])})
>>> leaves
[1, 2, 3]
>>> tree_unflatten([10, 20, 30], spec)
{'a': 10, 'b': (20, [30])}
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from rushlight.size import Size


class Container(NamedTuple):
    """How a kind of container comes apart and together."""

    apart: Callable[[Any], tuple[list[Any], Any]]  # children, and what else it is
    together: Callable[[Iterable[Any], Any], Any]
    name: str
    keyed: Callable[[Any], tuple[list[tuple[Any, Any]], Any]] | None = None  # children by key

    @property
    def flatten_fn(self) -> Callable[[Any], tuple[list[Any], Any]]:
        """PyTorch's name of `apart`."""
        return self.apart

    @property
    def unflatten_fn(self) -> Callable[[Iterable[Any], Any], Any]:
        """PyTorch's name of `together`."""
        return self.together


SUPPORTED_NODES: Final[dict[Any, Container]] = {}


def register_pytree_node(
    cls: type, flatten_fn: Callable[[Any], tuple[list[Any], Any]],
    unflatten_fn: Callable[[Iterable[Any], Any], Any], *,
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Any]] | None = None,
    **_: Any,
) -> None:  # fmt: skip
    """Let instances of a class be containers of trees.

    >>> from rushlight.utils import _pytree
    >>> class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> _pytree.register_pytree_node(
    ...     Pair, lambda p: ([p.a, p.b], None), lambda xs, _: Pair(*xs))
    >>> _pytree.tree_leaves([Pair(1, 2), 3])
    [1, 2, 3]
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    SUPPORTED_NODES[cls] = Container(flatten_fn, unflatten_fn, cls.__name__, flatten_with_keys_fn)


def _register(cls: Any, apart: Any, together: Any) -> None:
    SUPPORTED_NODES[cls] = Container(apart, together, cls.__name__)


_register(tuple, lambda t: (list(t), None), lambda xs, _: tuple(xs))
_register(list, lambda t: (list(t), None), lambda xs, _: list(xs))
_register(Size, lambda t: (list(t), None), lambda xs, _: tuple(xs))
_register(dict, lambda d: (list(d.values()), list(d)), lambda xs, keys: dict(zip(keys, xs)))
_register(
    OrderedDict, lambda d: (list(d.values()), list(d)), lambda xs, keys: OrderedDict(zip(keys, xs))
)
_register(
    defaultdict,
    lambda d: (list(d.values()), [d.default_factory, list(d)]),
    lambda xs, made: defaultdict(made[0], zip(made[1], xs)),
)
_register(deque, lambda d: (list(d), d.maxlen), lambda xs, longest: deque(xs, longest))

_NAMED: Final = Container(lambda t: (list(t), type(t)), lambda xs, cls: cls(*xs), "namedtuple")
_RESULT: Final = Container(lambda t: (list(t), type(t)), lambda xs, cls: cls(tuple(xs)), "result")


def _container(x: Any) -> Container | None:
    """How `x` comes apart, or None for a leaf."""
    found = SUPPORTED_NODES.get(type(x))
    if found is None and isinstance(x, tuple):
        if hasattr(x, "_fields") and hasattr(x, "_make"):
            return _NAMED
        if type(x).__module__.endswith("return_types"):
            return _RESULT
    return found


class TreeSpec:
    """The shape of a tree, without its leaves."""

    def __init__(self, kind: Container | None, context: Any, children: list[TreeSpec]) -> None:
        self.kind = kind
        self.context = context
        self.children_specs = children
        self.num_leaves: int = 1 if kind is None else sum(c.num_leaves for c in children)

    @property
    def type(self) -> Any:
        """The class of the container; None for a leaf."""
        if self.kind is None:
            return None
        return next((c for c, kind in SUPPORTED_NODES.items() if kind is self.kind), self.context)

    def is_leaf(self) -> bool:
        return self.kind is None

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TreeSpec)
            and self.kind is other.kind
            and self.context == other.context
            and self.children_specs == other.children_specs
        )

    def __hash__(self) -> int:
        return hash((self.num_leaves, len(self.children_specs)))

    def __repr__(self) -> str:
        return self._text(0)

    def _text(self, indent: int) -> str:
        if self.kind is None:
            return "*"
        indent += 2
        inside = [child._text(indent) for child in self.children_specs]
        lines = (",\n" + " " * indent).join(inside)
        return f"TreeSpec({self.kind.name}, {self.context}, [{lines}])"

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree with these leaves."""
        return tree_unflatten(leaves, self)


class LeafSpec(TreeSpec):
    """The shape of a leaf."""

    def __init__(self) -> None:
        super().__init__(None, None, [])


LEAF: Final = LeafSpec()


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The leaves of a tree in order, and its shape.

    >>> from rushlight.utils._pytree import tree_flatten
    >>> tree_flatten((1, [2, 3]))[0]
    [1, 2, 3]
    """
    leaves: list[Any] = []
    return leaves, _flatten_into(tree, leaves, is_leaf)


def _flatten_into(tree: Any, leaves: list[Any], is_leaf: Any) -> TreeSpec:
    kind = None if is_leaf is not None and is_leaf(tree) else _container(tree)
    if kind is None:
        leaves.append(tree)
        return LEAF
    children, context = kind.apart(tree)
    return TreeSpec(kind, context, [_flatten_into(c, leaves, is_leaf) for c in children])


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The tree of this shape with these leaves."""
    found = list(leaves)
    if len(found) != treespec.num_leaves:
        raise ValueError(
            f"treespec.unflatten(leaves): `leaves` has length {len(found)} but the spec refers to "
            f"a pytree that holds {treespec.num_leaves} items ({treespec})."
        )
    rest = iter(found)
    return _build(treespec, rest)


def _build(spec: TreeSpec, rest: Any) -> Any:
    if spec.kind is None:
        return next(rest)
    return spec.kind.together([_build(c, rest) for c in spec.children_specs], spec.context)


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves of a tree, in order."""
    leaves: list[Any] = tree_flatten(tree, is_leaf)[0]
    return leaves


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """The shape of a tree."""
    spec: TreeSpec = tree_flatten(tree, is_leaf)[1]
    return spec


def tree_map(
    func: Callable[..., Any], tree: Any, *rests: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:  # fmt: skip
    """A tree of `func` of each leaf (and of the leaves at the same place in `rests`).

    >>> from rushlight.utils._pytree import tree_map
    >>> tree_map(lambda x: x + 1, {"a": 1, "b": [2]})
    {'a': 2, 'b': [3]}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [_leaves_like(spec, rest) for rest in rests]
    return tree_unflatten([func(*xs) for xs in zip(leaves, *others, strict=True)], spec)


def _leaves_like(spec: TreeSpec, tree: Any) -> list[Any]:
    """The children of a tree where `spec` has leaves."""
    if spec.kind is None:
        return [tree]
    kind = _container(tree)
    if kind is not spec.kind:
        raise ValueError(f"Node type mismatch; expected {spec.type!r}, but got {type(tree)!r}.")
    if isinstance(tree, dict):
        return _leaves_of_dict(spec, tree)
    children, _ = kind.apart(tree)
    if len(children) != len(spec.children_specs):
        raise ValueError(
            f"Node arity mismatch; expected {len(spec.children_specs)}, but got {len(children)}."
        )
    found: list[Any] = []
    for child, inner in zip(children, spec.children_specs, strict=True):
        found.extend(_leaves_like(inner, child))
    return found


def _leaves_of_dict(spec: TreeSpec, tree: dict[Any, Any]) -> list[Any]:
    """The children of a dict, in the order of the keys that `spec` has."""
    keys = spec.context[1] if spec.type is defaultdict else spec.context
    missing, extra = set(keys) - set(tree), set(tree) - set(keys)
    if missing or extra:
        said = [f"missing key(s): {missing}"] if missing else []
        said += [f"extra key(s): {extra}"] if extra else []
        raise ValueError("Node keys mismatch; " + "; ".join(said) + ".")
    found: list[Any] = []
    for key, inner in zip(keys, spec.children_specs, strict=True):
        found.extend(_leaves_like(inner, tree[key]))
    return found


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any) -> Any:
    """Call `func` on each leaf for what it does; the tree itself."""
    tree_map(func, tree, *rests)
    return tree


def tree_map_only(kinds: Any, func: Callable[[Any], Any], tree: Any) -> Any:
    """`tree_map` of the leaves that are instances of `kinds`; the others stay."""
    return tree_map(lambda x: func(x) if isinstance(x, kinds) else x, tree)


def tree_all(pred: Callable[[Any], bool], tree: Any) -> bool:
    """Whether `pred` holds for every leaf."""
    return all(map(pred, tree_leaves(tree)))


def tree_any(pred: Callable[[Any], bool], tree: Any) -> bool:
    """Whether `pred` holds for some leaf."""
    return any(map(pred, tree_leaves(tree)))


class _Star:
    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """A shape as the tree itself would print, with stars for leaves."""
    return repr(tree_unflatten([_Star() for _ in range(treespec.num_leaves)], treespec))


def broadcast_prefix(tree: Any, spec: TreeSpec) -> list[Any] | None:
    """A tree whose leaves may stand for whole subtrees of `spec`, as one value a leaf of it; None
    if it does not fit. `in_dims=0` fits every tree."""
    kind = _container(tree)
    if kind is None:
        return [tree] * spec.num_leaves
    if spec.kind is not kind:
        return None
    children, context = kind.apart(tree)
    if len(children) != len(spec.children_specs) or context != spec.context:
        return None
    found: list[Any] = []
    for child, inner in zip(children, spec.children_specs, strict=True):
        part = broadcast_prefix(child, inner)
        if part is None:
            return None
        found.extend(part)
    return found
