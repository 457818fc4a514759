"""Lists and dicts that refuse to change: what a node's arguments are kept in."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["immutable_dict", "immutable_list"]
__dir__ = __all__.copy

_CURE = (
    "object does not support mutation. If you are attempting to modify the kwargs or args of a "
    "torch.fx.Node object,\ninstead create a new copy of it and assign the copy to the node:\n\n"
    "    new_args = ...  # copy and mutate args\n    node.args = new_args"
)


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(f"{type(self).__name__!r} {_CURE}")


class immutable_list(list[Any]):
    """A list that cannot be changed.

    >>> from rushlight.fx.immutable_collections import immutable_list
    >>> immutable_list([1, 2])
    [1, 2]
    """

    append = extend = insert = pop = remove = reverse = sort = clear = _refuse
    __delitem__ = __setitem__ = __iadd__ = __imul__ = _refuse

    def __hash__(self) -> int:  # type: ignore[override]  # it cannot change
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return immutable_list, (tuple(self),)


class immutable_dict(dict[Any, Any]):
    """A dict that cannot be changed.

    >>> from rushlight.fx.immutable_collections import immutable_dict
    >>> immutable_dict(dim=1)
    {'dim': 1}
    """

    clear = pop = popitem = setdefault = update = _refuse
    __delitem__ = __setitem__ = __ior__ = _refuse

    def __hash__(self) -> int:  # type: ignore[override]  # it cannot change
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return immutable_dict, (tuple(self.items()),)
