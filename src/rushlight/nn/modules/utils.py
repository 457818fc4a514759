"""Arguments of modules that are one number for all dimensions, or one for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["consume_prefix_in_state_dict_if_present"]


def __dir__() -> list[str]:
    return [
        *__all__, "_list_with_default", "_ntuple", "_pair", "_quadruple", "_reverse_repeat_tuple",
        "_single", "_triple",
    ]  # fmt: skip


def several(x: Any, n: int) -> tuple[Any, ...]:
    """One number as `n` of them; several as a tuple.

    >>> several(3, 2), several([1, 2], 2)
    ((3, 3), (1, 2))
    """
    return tuple(x) if isinstance(x, Iterable) else (x,) * n


def explain(arguments: str, *kinds: type) -> None:
    """Say in the docstrings of a family of classes, before the examples, what its arguments are.

    >>> class Scale:
    ...     "Scale(by): a product."
    >>> explain("by: a number.", Scale)
    >>> print(Scale.__doc__)
    Scale(by): a product.
    <BLANKLINE>
        Args:
            by: a number.
    """
    lines = "".join(f"        {line}\n" for line in arguments.strip().splitlines())
    for kind in kinds:
        head, mark, examples = (kind.__doc__ or "").partition("    >>> ")
        if head:  # Python's option -OO takes docstrings away
            if mark:
                kind.__doc__ = f"{head}    Args:\n{lines}\n{mark}{examples}"
            else:
                kind.__doc__ = f"{head}\n\n    Args:\n{lines.rstrip()}"


def unusual(module: Any, **usual: Any) -> str:
    """The attributes of a module that differ from their usual values, as `extra_repr` shows them.

    >>> unusual(torch.nn.LSTM(1, 2, num_layers=3), num_layers=1, bias=True)
    ', num_layers=3'
    """
    text = ""
    for name, value in usual.items():
        given = getattr(module, name)
        single = value is None or isinstance(value, bool)  # compared as PyTorch does: 1 is not True
        if given is not value if single else given != value:
            text += f", {name}={given}"
    return text


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """`several` of `n` numbers, by one of the names that other libraries import."""

    def parse(x: Any) -> tuple[Any, ...]:
        return several(x, n)

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: Iterable[Any], n: int) -> tuple[Any, ...]:
    """Each element `n` times, from the last on.

    >>> _reverse_repeat_tuple((1, 2), 2)
    (2, 2, 1, 1)
    """
    return tuple(x for x in reversed(tuple(t)) for _ in range(n))


def _list_with_default(out_size: Any, defaults: list[int]) -> Any:
    """The sizes given, and those of `defaults` (from its end) where None stands.

    >>> _list_with_default([None, 3], [1, 5, 6])
    [5, 3]
    """
    if isinstance(out_size, (int, type(None))):
        return out_size  # one size for all is handed on as it is
    if len(defaults) <= len(out_size):
        raise ValueError(
            f"Input dimension should be at least {len(out_size) + 1}, but got: {len(defaults)}"
        )
    usual = defaults[-len(out_size) :]
    return [d if size is None else size for size, d in zip(out_size, usual, strict=True)]


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take a prefix off the keys of a state, in place, where they have it.

    >>> state = {"module.weight": 1}
    >>> consume_prefix_in_state_dict_if_present(state, "module.")
    >>> state
    {'weight': 1}
    """
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    notes = getattr(state_dict, "_metadata", None)
    if notes is not None:
        for key in list(notes):
            if key and (key == prefix.replace(".", "") or key.startswith(prefix)):
                notes[key[len(prefix) :]] = notes.pop(key)
