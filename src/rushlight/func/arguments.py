"""Arguments of transforms: which of them derivatives are taken of, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.core.graph import TensorBase
from rushlight.trees import tree_leaves

Argnums = int | tuple[int, ...]
Function = Callable[..., Any]


def chosen(args: tuple[Any, ...], argnums: Any) -> Any:
    """The arguments that derivatives are taken of: one, or a tuple."""
    if isinstance(argnums, int):
        return args[positive_argnum(argnums, len(args))]
    if not isinstance(argnums, tuple):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    if not argnums:
        raise RuntimeError("argnums must be non-empty")
    places = tuple([positive_argnum(a, len(args)) for a in argnums])
    if len(set(places)) != len(places):
        raise RuntimeError(f"argnums elements must be unique, got {places}")
    return tuple([args[a] for a in places])


def unchosen(args: tuple[Any, ...], argnums: Any) -> tuple[Any, ...]:
    """The other arguments; None in the place of those that `chosen` gives."""
    return replace(args, argnums, None if isinstance(argnums, int) else (None,) * len(argnums))


def positive_argnum(argnum: Any, count: int) -> int:
    """Where the argument number `argnum` of `count` stands, counted from the first."""
    if not isinstance(argnum, int):
        raise RuntimeError(f"argnum must be int, got: {type(argnum)}")
    if not -count <= argnum < count:
        raise RuntimeError(f"Got argnum={argnum}, but only {count} positional inputs")
    return argnum % count


def replace(args: tuple[Any, ...], argnums: Any, new: Any) -> tuple[Any, ...]:
    """The arguments with those of `argnums` exchanged."""
    out = list(args)
    if isinstance(argnums, int):
        out[argnums] = new
    else:
        for a, value in zip(argnums, new, strict=True):
            out[a] = value
    return tuple(out)


def split_aux(found: Any, who: str) -> tuple[Any, Any]:
    """Output and auxiliary value, a tree of tensors, of a function that gives both."""
    if not (isinstance(found, tuple) and len(found) == 2):
        raise RuntimeError(
            f"{who}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    for x in tree_leaves(found[1]):
        if not isinstance(x, TensorBase):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(x)}")
    return found


def differentiable(x: TensorBase) -> bool:
    """Whether a tensor is of a dtype that has derivatives."""
    return x._array.dtype.kind in "fcVW"


def check_real(tree: Any, who: str, what: str) -> None:
    """Refuse complex inputs or outputs: their Jacobian would have two parts."""
    for i, x in enumerate(tree_leaves(tree)):
        if isinstance(x, TensorBase) and x._array.dtype.kind == "c":
            raise RuntimeError(
                f"{who}: Expected all {what} to be real but received complex tensor at flattened "
                f"input idx: {i}"
            )
