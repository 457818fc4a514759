"""Walking through nested state dicts, and setting what stands at the end of a path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from rushlight.core.graph import TensorBase

__all__ = ["get_element", "set_element", "traverse_state_dict"]
__dir__ = __all__.copy

OBJ_PATH = tuple[str | int, ...]
_ABSENT = object()


def _is_tensor(value: Any) -> bool:
    return isinstance(value, TensorBase)


def traverse_state_dict(
    state_dict: Mapping[Any, Any], visitor: Callable[[OBJ_PATH, Any], None],
    keep_traversing: Callable[[Any], bool] = _is_tensor,
) -> None:  # fmt: skip
    """Call `visitor(path, value)` for each value of nested dictionaries. A list counts as one value
    unless tensors or dictionaries stand in it.

    >>> from rushlight.distributed.checkpoint._traverse import traverse_state_dict
    >>> traverse_state_dict({"a": {"b": [1, 2]}, "c": [{"d": 3}]}, print)
    ('a', 'b') [1, 2]
    ('c', 0, 'd') 3
    """

    def is_terminal(value: Any) -> bool:
        if isinstance(value, Mapping):
            return False
        if not isinstance(value, list):
            return True
        return all(
            not keep_traversing(entry)
            and not (isinstance(entry, (Mapping, list)) and not is_terminal(entry))
            for entry in value
        )

    def visit(path: OBJ_PATH, value: Any) -> None:
        if isinstance(value, Mapping):
            for key, inner in value.items():
                visit((*path, str(key)), inner)
        elif is_terminal(value):
            visitor(path, value)
        else:
            for i, inner in enumerate(value):
                visit((*path, i), inner)

    for key, value in state_dict.items():
        visit((str(key),), value)


def _key_in(container: Mapping[Any, Any], part: str | int) -> Any:
    """The key that a part of a path means: paths have text where a dictionary may have numbers."""
    if part in container:
        return part
    return next((key for key in container if str(key) == part), part)


def set_element(root_dict: dict[Any, Any], path: OBJ_PATH, value: Any) -> None:
    """Set what stands at the end of a path, and make what is missing on the way.

    >>> from rushlight.distributed.checkpoint._traverse import set_element
    >>> nested = {}
    >>> set_element(nested, ("a", 1, "b"), 5)
    >>> nested
    {'a': [None, {'b': 5}]}
    """
    here: Any = root_dict
    for part, following in pairwise(path):
        if isinstance(here, Mapping):
            part = _key_in(here, part)
            missing = part not in here
        else:
            here.extend([None] * (int(part) + 1 - len(here)))
            missing = here[part] is None
        if missing:
            here[part] = {} if isinstance(following, str) else []
        here = here[part]
    last = path[-1]
    if isinstance(here, Mapping):
        last = _key_in(here, last)
    else:
        here.extend([None] * (int(last) + 1 - len(here)))
    here[last] = value


def get_element(root_dict: Mapping[Any, Any], path: OBJ_PATH, default_value: Any = None) -> Any:
    """What stands at the end of a path, or `default_value`.

    >>> from rushlight.distributed.checkpoint._traverse import get_element
    >>> get_element({"a": [{"b": 5}]}, ("a", 0, "b")), get_element({}, ("a",), "none")
    (5, 'none')
    """
    here: Any = root_dict
    for part in path:
        if isinstance(part, int) and isinstance(here, list) and part < len(here):
            here = here[part]
        elif isinstance(here, Mapping) and (key := _key_in(here, part)) in here:
            here = here[key]
        else:
            return default_value
    return here
