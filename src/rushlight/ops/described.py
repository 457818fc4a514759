"""What `help` says of the functions of the op table: types in the signature, and `Args:`.

Both are made when someone looks: for all functions they would be half a megabyte, and milliseconds
of every import. A signature can wait until it is read (`Told`). A docstring cannot: a function gets
its `Args:` when a module first hands it out (`rushlight.__getattr__`), or with its signature, which
`help` reads first. Only `x.sum.__doc__`, if nobody has said `torch.sum` before, is without.
`tools/make_stubs.py` reads the same types.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from types import FunctionType
from typing import Any, Final

from rushlight.ops.argument_words import words
from rushlight.ops.registry import functions, is_function, methods, namespaces, takes_out
from rushlight.return_types import __all__ as return_names

__all__ = [
    "Told",
    "arguments_of",
    "describe",
    "describe_all",
    "kind_of",
    "result_of",
    "sign",
    "sign_all",
]

# Results with names, called as their functions are.
_NAMED: Final = frozenset(return_names)
# Names of types that are rushlight's own.
_ALIASES: Final = {
    "Operand": "Tensor | Number", "Function": "Callable[..., Any]",
    "Argnums": "int | tuple[int, ...]", "Dims": "int | tuple[int | None, ...] | None",
    "Contexts": "tuple[Any, Any]", "Message": "str | Callable[[str], str] | None",
    "dtypes.dtype": "dtype",
}  # fmt: skip
_ALIAS: Final = rf"\b({'|'.join(_ALIASES)})\b"
# Functions that reduce all elements to one tensor, or a dimension to a tensor and indices.
_EITHER: Final = frozenset({"max", "median", "min", "nanmedian"})


class Words(str):
    """A type as it is written. Shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class Told(inspect.Signature):
    """A function's signature with the types of the table, made when it is first looked at."""

    __slots__ = ("_fn", "_title")
    _fn: Any  # the function
    _title: str  # its name in the table, `linalg_` before it for the functions of `linalg`

    def __getattr__(self, name: str) -> Any:
        # `Signature` keeps what it knows in these two slots: they are empty before
        if name not in ("_parameters", "_return_annotation") or not hasattr(self, "_fn"):
            raise AttributeError(name)
        describe(self._fn)
        made = _signature(self._fn, self._title)
        self._parameters: Any = made.parameters
        self._return_annotation: Any = made.return_annotation
        return object.__getattribute__(self, name)


def _signature(fn: FunctionType, title: str) -> inspect.Signature:
    plain = _without_told(_innermost(fn))
    parameters = list(plain.parameters.values())
    if fn in takes_out and "out" not in plain.parameters:
        extra = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None)
        last = bool(parameters) and parameters[-1].kind is inspect.Parameter.VAR_KEYWORD
        parameters.insert(len(parameters) - last, extra)
    result = result_of(fn, title)
    told = []
    for p in parameters:
        if p.kind is p.VAR_KEYWORD and p.name == "wrong":
            continue  # it is there to be refused in PyTorch's words
        kind = kind_of(title, p.name, p.annotation, p.default)
        if p.name == "out" and not result.startswith("Tensor"):
            kind = "tuple[Tensor, ...] | None"
        default = p.default
        if default is ... or type(default) is object:  # a stand-in for "not given"
            default = None if kind.endswith("None") else Words("...")
        told.append(p.replace(annotation=Words(kind), default=default))
    return plain.replace(parameters=told, return_annotation=Words(result))


def _without_told(fn: Any) -> inspect.Signature:
    """The signature that Python sees."""
    if not is_function(fn):
        return inspect.signature(fn)
    bare = FunctionType(fn.__code__, {}, fn.__name__, fn.__defaults__, fn.__closure__)
    bare.__kwdefaults__, bare.__annotations__ = fn.__kwdefaults__, fn.__annotations__
    return inspect.signature(bare)


def _family(fn: str, name: str) -> tuple[str, str] | None:
    """What an argument is in the family of functions that `fn`, or `fn_` in place, belongs to."""
    return words().get(fn.removesuffix("_"), {}).get(name)


def kind_of(fn: str, name: str, annotation: object, default: object) -> str:
    """The type of an argument: as annotated, or as the table has it."""
    kind = annotation if isinstance(annotation, str) else "Any"
    family = _family(fn, name)
    if family is not None and family[0]:
        kind = family[0]
    elif kind == "Any":
        kind = words()[""].get(name, ("Any", ""))[0]
    kind = re.sub(_ALIAS, lambda found: _ALIASES[found[0]], kind)
    optional = default is None and kind != "Any" and "None" not in kind
    return f"{kind} | None" if optional else kind


def result_of(fn: Callable[..., Any], title: str) -> str:
    """The type of a result: as annotated, or as its name says."""
    given = fn.__annotations__.get("return", "Any")
    text = given if isinstance(given, str) else getattr(given, "__name__", "Any")
    if title in _NAMED:
        named = f"return_types.{title}"
        return f"Tensor | {named}" if title in _EITHER else named
    if re.fullmatch(r"[a-z]\w*[a-z0-9]_", title):  # in place: they return their own tensor
        return "Tensor"
    return text


def _innermost(fn: Any) -> Any:
    """The function as it was written, inside what was wrapped around it."""
    while hasattr(fn, "__wrapped__"):
        fn = fn.__wrapped__
    return fn


def arguments_of(fn: FunctionType) -> tuple[str, ...]:
    """The names of a function's arguments, in the order of its signature."""
    code = _innermost(fn).__code__
    flags, count = code.co_flags, code.co_argcount + code.co_kwonlyargcount
    names: tuple[str, ...] = code.co_varnames[:count]
    if flags & inspect.CO_VARARGS:  # it comes behind the others there
        at = code.co_argcount
        names = (*names[:at], code.co_varnames[count], *names[at:])
        count += 1
    if fn in takes_out and "out" not in names:
        names = (*names, "out")
    if flags & inspect.CO_VARKEYWORDS:
        names = (*names, code.co_varnames[count])
    return names


def _lines(title: str, names: tuple[str, ...], own: dict[str, str]) -> str:
    """What `Args:` says; `own` are the function's own words."""
    text = ""
    for name in names:
        said = _family(title, name) or words()[""].get(name)
        meaning = own.get(name) or (f"{said[1]}." if said is not None else "")
        if meaning:  # a test finds names that have none
            text += f"    {name}: {meaning}\n"
    return text


def _told_doc(fn: FunctionType, doc: str) -> str:
    """A docstring as PyTorch's are: a header, the text, `Args:`, and an example that runs."""
    told = fn.__dict__.get("__signature__")
    title = told._title if isinstance(told, Told) else fn.__name__
    written = inspect.cleandoc(_innermost(fn).__doc__ or "")  # `f_` has the words of `f`
    said = written.partition("Args:\n")[2].partition("\n\n")[0]
    said = re.sub(r"\n {5,}", " ", said)  # meanings that go on in the next line
    own = dict(re.findall(r"^ +(\w+): (.*)$", said, re.M))
    text, found, example = inspect.cleandoc(doc).partition("\n>>> ")
    text = text.partition("Args:\n")[0].rstrip()
    lines = _lines(title, arguments_of(fn), own)
    parts = [_header(fn, title), text] if isinstance(told, Told) else [text]
    if lines:
        parts.append(f"Args:\n{lines}".rstrip())
    if found:
        start = "" if "import rushlight" in example else ">>> import rushlight as torch\n"
        parts.append(f"{start}>>> {example}")
    return "\n\n".join(parts) + "\n"


def _header(fn: FunctionType, title: str) -> str:
    """The call of a function, as PyTorch's docstrings begin."""
    full = _signature(fn, title)
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in full.parameters.values()]
    name = title.removeprefix("linalg_")
    return f"{name}{inspect.Signature(bare)} -> {full.return_annotation}"


_described: Final[set[FunctionType]] = set()


def describe(fn: Callable[..., Any]) -> None:
    """Give a function of the op table its `Args:`."""
    if is_function(fn) and fn not in _described:
        _described.add(fn)
        if fn.__doc__:
            fn.__doc__ = _told_doc(fn, fn.__doc__)


def describe_all(space: dict[str, Any], names: list[str]) -> None:
    """Do the same for functions of a module that are not in the table, and sign them."""
    for name in names:
        fn = space.get(name)
        if is_function(fn):
            sign(fn, name)
            describe(fn)


def sign(fn: Callable[..., Any], title: str) -> None:
    """Give a function a signature with types."""
    if is_function(fn) and "__signature__" not in fn.__dict__:
        told = Told.__new__(Told)
        told._fn, told._title = fn, title
        fn.__signature__ = told  # type: ignore[attr-defined]


def sign_all() -> None:
    """Give every function of the op table a signature with types."""
    for space, table in (("", functions), ("", methods), *namespaces.items()):
        prefix = "linalg_" if space == "linalg" else ""
        for name, fn in table.items():
            sign(fn, prefix + name)
