"""Errors for calls whose arguments are of the wrong type, in PyTorch's words.

Functions do not look at the type of each argument before they start: that would cost every call.
When one fails, the table asks here whether the arguments were to blame, and says so instead of what
went wrong inside. The forms that a call is compared with are those that PyTorch lists
(`ops/forms.txt`), or else the one that the function's own signature makes.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import re
from collections.abc import Callable, Mapping, Sequence
from types import FrameType, ModuleType
from typing import Any, Final

from rushlight.core.graph import TensorBase, caller
from rushlight.errors import hide_insides, is_meant, raised_by_user_code, was_told
from rushlight.ops.forms import Form, Parameter, is_in_python, kind_of, list_forms, misfit

BLAMED: Final = (Exception,)
# What a wrong argument may make a function raise without meaning to.
_BLAMED: Final = (
    AttributeError, TypeError, ValueError, LookupError, ArithmeticError, AssertionError, NameError,
    SystemError,
)  # fmt: skip
# What is no better told in other words, if all arguments are of the types they should be.
_LEFT: Final = (TypeError, ValueError, IndexError, OverflowError, NameError, SystemError)

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


# --- how it was called ----------------------------------------------------------------------------
def _expression(frame: FrameType) -> Any:
    """The call that a frame is at, as it is written; None where the source is not known."""
    places = list(frame.f_code.co_positions())
    at = frame.f_lasti // 2
    if not 0 <= at < len(places):
        return None
    first, last, start, end = places[at]
    if first is None or last is None or start is None or end is None:
        return None
    lines = [
        linecache.getline(frame.f_code.co_filename, n).encode() for n in range(first, last + 1)
    ]
    lines[-1] = lines[-1][:end]  # before the start is cut, which may be in the same line
    lines[0] = lines[0][start:]
    try:
        found = ast.parse(b"(" + b"".join(lines) + b")", mode="eval").body
    except (SyntaxError, ValueError):
        return None
    return found.func if isinstance(found, ast.Call) else None


def _value(where: Any, frame: FrameType) -> Any:
    """What a name of a module, or in modules, stands for; None for any other expression."""
    if isinstance(where, ast.Name):
        return frame.f_locals.get(where.id, frame.f_globals.get(where.id))
    if isinstance(where, ast.Attribute):
        space = _value(where.value, frame)
        return getattr(space, where.attr, None) if isinstance(space, ModuleType) else None
    return None


def _called(title: str, fn: Callable[..., Any], args: Sequence[Any]) -> tuple[str, bool]:
    """The name by which a function was called, and whether as a method: `x.sum()` and
    `torch.sum(x)` are one function here, and two in PyTorch's words."""
    from rushlight.ops.registry import functions, methods, namespaces

    def is_it(table: Mapping[str, Any], name: str) -> bool:
        found = table.get(name)
        while found is not None and found is not fn:
            found = getattr(found, "__wrapped__", None)
        return found is fn

    space = next((n for n, table in namespaces.items() if is_it(table, title)), "")
    method = is_it(methods, title)
    frame = caller()
    written = None if frame is None else _expression(frame)
    if isinstance(written, ast.Attribute) and frame is not None:
        owner = _value(written.value, frame)
        if isinstance(owner, ModuleType):
            method = False
            home = owner.__name__.partition(".")[2]
            space = home if home in namespaces else ""
            table = namespaces[home] if space else functions
        else:
            table, method, space = methods, True, ""
        if is_it(table, written.attr):
            title = written.attr
    elif is_it(functions, title):
        method, space = False, ""
    if method:
        return title, bool(args) and isinstance(args[0], TensorBase)
    return {"": "", "nn.functional": "F."}.get(space, f"{space}_") + title, False


def _own_form(fn: Callable[..., Any], method: bool) -> Form | None:
    """The form that a function's signature makes; None if it takes any number of arguments."""
    parameters = list(inspect.signature(fn).parameters.values())
    found = []
    shown: list[str] = []
    alone = False
    for p in parameters[1:] if method else parameters:
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            return None
        if p.kind is p.KEYWORD_ONLY and not alone:
            alone = True
            shown.append("*")
        kind, none = _wanted(p.name, p.annotation, p.default)
        needed = p.default is p.empty
        found.append(Parameter(kind, p.name, needed, none, alone))
        shown.append(f"{kind} {p.name}".strip() + ("" if needed else f" = {p.default}"))
    return Form(f"({', '.join(shown)})", found)


# --- what was wrong -------------------------------------------------------------------------------
def _by_python(title: str, fn: Callable[..., Any], args: Any, kwargs: Any) -> str:
    """What Python says of a call that a function's signature does not take; "" if it does."""
    parameters = inspect.signature(fn).parameters
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters.values()):
        return ""
    places = [name for name, p in parameters.items() if p.kind is not p.KEYWORD_ONLY]
    for name in kwargs:
        if name not in parameters:
            return f"{title}() got an unexpected keyword argument '{name}'"
        if name in places[: len(args)]:
            return f"{title}() got multiple values for argument '{name}'"
    form = _own_form(fn, False)
    if form is not None and len(args) > len(places):
        return form.fault(title, args, {})
    missing = [
        f"'{name}'"
        for name in places[len(args) :]
        if name not in kwargs and parameters[name].default is inspect.Parameter.empty
    ]
    if not missing:
        return ""
    last = missing.pop()
    listed = (
        f"{', '.join(missing)}{',' if len(missing) > 1 else ''} and {last}" if missing else last
    )
    plural = "s" if missing else ""
    return f"{title}() missing {len(missing) + 1} required positional argument{plural}: {listed}"


def _wrong(
    name: str, method: bool, fn: Callable[..., Any], args: Any, kwargs: Any
) -> TypeError | None:
    """PyTorch's error for the first argument that is not what its parameter takes."""
    if name.startswith("__"):
        return None  # operators and indexing have no names for what they take
    title = name.removeprefix("F.")
    given = args[1:] if method else args
    named = {k: x for k, x in kwargs.items() if k != "out"}
    in_python = is_in_python(name) or (method and is_in_python(f".{name}"))
    if in_python and (text := _by_python(title, fn, args, named)):
        return TypeError(text)
    form = _own_form(fn, method)
    if form is None:
        text = _by_python(title, fn, args, named)
    elif method and not form.parameters and (given or named):
        n = "keyword arguments" if named else f"arguments ({len(given)} given)"
        text = f"TensorBase.{title}() takes no {n}"
    else:
        text = form.fault(title, given, named)
    return TypeError(text) if text else None


_PLACE: Final = re.compile(r"^(\w+\(\): argument '(\w+)' \(position )(\d+)\)")


def _in_place(text: str, fn: Callable[..., Any]) -> str:
    """The text of a method's error with the position as PyTorch counts it, without the tensor.

    >>> def mm(input, mat2): ...
    >>> _in_place("mm(): argument 'mat2' (position 2) must be Tensor, not int", mm)
    "mm(): argument 'mat2' (position 1) must be Tensor, not int"
    """
    found = _PLACE.match(text)
    if found is None:
        return text
    names = list(inspect.signature(fn).parameters)
    if found[2] not in names or names.index(found[2]) + 1 != int(found[3]):
        return text  # it counts so already
    return f"{found[1]}{max(int(found[3]) - 1, 1)}){text[found.end() :]}"


def _better(
    title: str, fn: Callable[..., Any], args: Any, kwargs: Any, error: Exception
) -> Exception | None:
    """What to raise in place of `error`; None: nothing better is known."""
    text = str(error)
    name, method = _called(title, fn, args)
    said = name.removeprefix("F.")
    given = args[1:] if method else args
    # a tensor stood where an int was expected, or something else where a tensor was
    unmeant = "only integer tensors of a single element" in text or "no attribute '_" in text
    meant = is_meant(error) and not unmeant
    listed = [] if meant and not isinstance(error, TypeError) else list_forms(name, method)
    if found := misfit(said, listed, given, kwargs):
        return TypeError(found)
    if text.startswith("argument 'dim'"):  # from `one_dim`, which does not know for whom it looks
        names = list(inspect.signature(fn).parameters)
        at = names.index("dim") if "dim" in names else len(args)
        place = f" (position {at + 1})" if at < len(args) else ""
        text = text.replace("argument 'dim'", f"{said}(): argument 'dim'{place}", 1)
        return TypeError(_in_place(text, fn) if method else text)
    if meant:
        moved = text
        if isinstance(error, TypeError):
            if text.startswith(f"{title}()"):  # by another name, or in place
                moved = said + text.removeprefix(title)
            moved = _in_place(moved, fn) if method else moved
        return None if moved == text else TypeError(moved)
    if "read-only" in text and isinstance(error, ValueError):
        return RuntimeError(
            f"{said}(): the memory that would be written is read-only: it belongs to a NumPy "
            "array or a buffer that may not be changed. Write to a copy of it: `x.clone()`."
        )
    wrong = _wrong(name, method, fn, args, kwargs)
    if wrong is not None or (isinstance(error, _LEFT) and "ufunc" not in text):
        return wrong
    got = [kind_of(x) for x in given] + [f"{key}={kind_of(x)}" for key, x in kwargs.items()]
    form = _own_form(fn, method)
    expected = "" if form is None else f", but expected {form.text}"
    return TypeError(
        f"{said}() received an invalid combination of arguments - got ({', '.join(got)}){expected}"
    )


def better_error(
    title: str, fn: Callable[..., Any], args: Any, kwargs: Any, error: Exception
) -> Exception | None:
    """What to raise in place of `error`, which a call raised; None: `error` itself, the traceback
    of which shows the user's lines by now."""
    better = None
    if isinstance(error, _BLAMED) and not was_told(error) and not raised_by_user_code(error):
        better = _better(title, fn, args, kwargs, error)
    if better is None:
        hide_insides(error)
    return better
