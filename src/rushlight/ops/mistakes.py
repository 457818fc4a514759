"""Errors for calls whose arguments are of the wrong type, in PyTorch's words.

Functions do not look at the type of each argument before they start: that would cost every call.
When one fails, the table asks here whether the arguments were to blame, and says so instead of what
went wrong inside.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable
from typing import Any, Final

from rushlight import dtypes
from rushlight.arrays.host import is_scalar
from rushlight.core.graph import TensorBase
from rushlight.ops.checks import scalar_name
from rushlight.ops.numbers import number

# What a wrong argument may make a function raise without meaning to.
BLAMED: Final = (
    AttributeError, TypeError, ValueError, LookupError, ArithmeticError, AssertionError, NameError,
    SystemError,
)  # fmt: skip
_RAISES: Final = (dis.opmap["RAISE_VARARGS"], dis.opmap["RERAISE"])

# Parameters that are tensors wherever a function's annotations do not say.
_TENSORS: Final = frozenset(
    """A B L LU LU_data LU_pivots abs anchor angle batch1 batch2 bias boundaries condition imag
    index input input1 input2 logits mask mat mat1 mat2 negative pivots pos_weight positive real
    running_mean running_var sorted_sequence sorter source src target tensor1 tensor2 the_template
    vec vec1 vec2 weight x1 x2""".split()
)
_DIMS: Final = frozenset(
    {"dim", "dims", "axis", "size", "shape", "split_sizes", "indices_or_sections"}
)
_FLAGS: Final = frozenset({"keepdim", "requires_grad", "descending", "pin_memory"})


def _wanted(name: str, said: Any, default: Any) -> tuple[str, bool]:
    """What a parameter takes in PyTorch's words ("" if that is not known), and whether None."""
    optional = default is None
    if isinstance(said, str):
        optional = optional or said.endswith("None")
        kind = said.removesuffix(" | None")
        if kind in ("float", "int", "bool", "str", "Number", "Tensor"):
            return kind, optional
    if said == "Any":
        if name in _TENSORS:
            return "Tensor", optional
        if name in _FLAGS:
            return "bool", optional
        if name == "dtype":
            return "torch.dtype", optional
        if name in _DIMS:
            return "tuple of ints", optional
        if name == "tensors":
            return "tuple of Tensors", optional
    return "", optional


def _fits(x: Any, wanted: str) -> bool:
    if wanted == "Tensor":
        return isinstance(x, TensorBase)
    if wanted == "bool":
        return isinstance(x, bool) or (is_scalar(x) and x.dtype.kind == "b")
    if wanted == "torch.dtype":
        return isinstance(x, (dtypes.dtype, type))
    if wanted == "tuple of ints":
        return isinstance(x, (tuple, list, TensorBase)) or hasattr(x, "__index__")
    if wanted == "tuple of Tensors":
        return hasattr(x, "__iter__")
    if wanted == "str":
        return isinstance(x, str)
    if wanted == "int":
        if isinstance(x, TensorBase):
            return x._array.ndim == 0 and x._array.dtype.kind in "iub"
        return hasattr(x, "__index__")
    return number(x, wanted) is not NotImplemented


def _kind(x: Any) -> str:
    if isinstance(x, TensorBase):
        return "Tensor"
    if isinstance(x, tuple) and type(x) is tuple:
        return f"tuple of ({', '.join(_kind(part) for part in x[:4])})"
    return dtypes.type_name(x)


def _wrong(title: str, fn: Callable[..., Any], args: Any, kwargs: Any) -> TypeError | None:
    """PyTorch's error for the first argument that is of another type than its parameter."""
    if title.startswith("__"):
        return None  # operators and indexing have no names for what they take
    signature = inspect.signature(fn)
    try:
        bound = signature.bind(*args, **{k: x for k, x in kwargs.items() if k != "out"})
    except TypeError as error:
        return TypeError(f"{title}() {error}")
    for at, (name, x) in enumerate(bound.arguments.items(), 1):
        parameter = signature.parameters[name]
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        wanted, optional = _wanted(name, parameter.annotation, parameter.default)
        if not wanted or (x is None and optional) or _fits(x, wanted):
            continue
        place = "" if parameter.kind is parameter.KEYWORD_ONLY else f" (position {at})"
        kind = scalar_name(x)
        return TypeError(f"{title}(): argument '{name}'{place} must be {wanted}, not {kind}")
    return None


def _meant(error: BaseException) -> bool:
    """Whether an error says what its author wanted: a `raise` of rushlight's, or of code that is
    not rushlight's, such as a function of the user's. What Python or NumPy raised from within an
    expression was not foreseen."""
    at = error.__traceback__
    while at is not None:
        frame, last = at.tb_frame, at.tb_lasti
        home = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if home not in _INSIDE:
            return True
        at = at.tb_next
    if home != "rushlight":
        return False
    code = frame.f_code.co_code
    if str(error).startswith("only integer tensors of a single element"):
        return False  # a tensor where an int was expected
    if last < 0 or last >= len(code):  # compiled: there is no bytecode to look at
        return not (isinstance(error, AttributeError) or "object expected; got" in str(error))
    return code[last] in _RAISES


# What is no better told in other words, if all arguments are of the types they should be.
_LEFT: Final = (TypeError, ValueError, IndexError, OverflowError, NameError, SystemError)
_INSIDE: Final = ("rushlight", "numpy", "scipy", "ml_dtypes", "cupy")


def blame(
    title: str, fn: Callable[..., Any], args: Any, kwargs: Any, error: Exception
) -> Exception | None:
    """What to raise in place of `error`, which a call raised; None: nothing better is known."""
    text = str(error)
    if text.startswith("argument 'dim'"):  # from `one_dim`, which does not know for whom it looks
        names = list(inspect.signature(fn).parameters)
        at = names.index("dim") if "dim" in names else len(args)
        place = f" (position {at + 1})" if at < len(args) else ""
        return TypeError(text.replace("argument 'dim'", f"{title}(): argument 'dim'{place}", 1))
    if _meant(error):
        return None
    if "read-only" in str(error) and isinstance(error, ValueError):
        return RuntimeError(
            f"{title}(): the memory that would be written is read-only: it belongs to a NumPy "
            "array or a buffer that may not be changed. Write to a copy of it: `x.clone()`."
        )
    found = _wrong(title, fn, args, kwargs)
    if found is not None or (isinstance(error, _LEFT) and "ufunc" not in str(error)):
        return found
    got = [_kind(x) for x in args] + [f"{name}={_kind(x)}" for name, x in kwargs.items()]
    return TypeError(
        f"{title}() received an invalid combination of arguments - got ({', '.join(got)})"
    )
