"""Nested state dicts as flat ones, and back: the names of a checkpoint are paths with dots."""

from __future__ import annotations

from typing import Any

from rushlight.distributed.checkpoint._traverse import OBJ_PATH, set_element, traverse_state_dict

__all__ = ["flatten_state_dict", "unflatten_state_dict"]
__dir__ = __all__.copy

FLATTEN_MAPPING = dict[str, OBJ_PATH]


def flatten_state_dict(state_dict: dict[str, Any]) -> tuple[dict[str, Any], FLATTEN_MAPPING]:
    """A flat dictionary of a nested one, and the path of each of its names.

    >>> from rushlight.distributed.checkpoint._nested_dict import flatten_state_dict
    >>> flatten_state_dict({"a": {"b": 1}})
    ({'a.b': 1}, {'a.b': ('a', 'b')})
    """
    flat: dict[str, Any] = {}
    paths: FLATTEN_MAPPING = {}

    def put(path: OBJ_PATH, value: Any) -> None:
        name = ".".join(map(str, path))
        if name in flat:
            raise ValueError(f"duplicated flatten key {name}")
        flat[name], paths[name] = value, path

    traverse_state_dict(state_dict, put)
    return flat, paths


def unflatten_state_dict(state_dict: dict[str, Any], mapping: FLATTEN_MAPPING) -> dict[str, Any]:
    """The nested dictionary that `flatten_state_dict` was given.

    >>> from rushlight.distributed.checkpoint._nested_dict import unflatten_state_dict
    >>> unflatten_state_dict({"a.b": 1}, {"a.b": ("a", "b")})
    {'a': {'b': 1}}
    """
    nested: dict[str, Any] = {}
    for name, value in state_dict.items():
        set_element(nested, mapping[name], value)
    return nested
