"""Write the type stubs of what the op table exports, which no source file spells out.

    python tools/make_stubs.py           write them
    python tools/make_stubs.py --check   fail if they are not what would be written

`src/rushlight/_functions.pyi` has the functions of `rushlight`, `_methods.pyi` the methods of
`Tensor`. Neither has a module behind it: `rushlight/__init__.py` and `tensor.py` import them for
type checkers alone. The others are the stubs of the modules of their names.

Types come from signatures (`rushlight.ops.described`); what one signature cannot say, such as that
`max(x)` is a tensor and `max(x, 0)` a pair, stands in `OVERLOADS` below.
"""

from __future__ import annotations

import ast
import inspect
import keyword
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rushlight
from rushlight import dtypes, ops, return_types
from rushlight.core.operators import Operators
from rushlight.ops.registry import functions, methods, namespaces
from rushlight.storage_types import storage_types
from rushlight.tensor import Tensor
from rushlight.tensor_types import tensor_types

ops.fill_rest()

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "rushlight"

HEAD = '''"""{what}

Written by tools/make_stubs.py from the op table; not to be edited.
"""

'''
IMPORTS = """import builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeAlias, overload

import numpy as _numpy

from rushlight import return_types
from rushlight.arrays.device import device as _device
from rushlight.core.engine.hooks import RemovableHandle
from rushlight.core.graph import TensorBase
from rushlight.dtypes import dtype as _dtype
from rushlight.dtypes import layout as _layout
from rushlight.dtypes import memory_format as _memory_format
from rushlight.random import Generator as _Generator
from rushlight.size import Size
from rushlight.storage import TypedStorage, UntypedStorage
from rushlight.tensor import Tensor

_bool: TypeAlias = builtins.bool
_int: TypeAlias = builtins.int
_float: TypeAlias = builtins.float
_complex: TypeAlias = builtins.complex
_str: TypeAlias = builtins.str
_Number: TypeAlias = _bool | _int | _float | _complex

"""
# `float` and its like are dtypes in rushlight: the stubs give Python's types another name.
RENAMED = re.compile(
    r"\b(?<![.\w'])(bool|int|float|complex|str|Number|dtype|device|layout|memory_format|Generator)\b(?![(=:'])"
)
# Types that are Python's own or that the stubs import.
KNOWN = {
    "Any", "Callable", "Literal", "None", "RemovableHandle", "Sequence", "Size", "Tensor",
    "TypedStorage", "UntypedStorage", "dict", "list", "object", "return_types", "tuple", "type",
}  # fmt: skip
NAMED = {
    "bool", "int", "float", "complex", "str", "Number", "dtype", "device", "layout",
    "memory_format", "Generator", "numpy", "ndarray", *return_types.__all__,
}  # fmt: skip

_OUT = "*, out: Tensor | None = None"
_OPTIONS = (
    "dtype: dtype | None = None, layout: layout | None = None, "
    "device: device | str | int | None = None, requires_grad: bool = False, "
    "pin_memory: bool = False"
)
_LIMITS = [
    ("", "Tensor"),
    (f"other: Tensor, {_OUT}", "Tensor"),
    ("dim: int, keepdim: bool = False, *, out: tuple[Tensor, ...] | None = None",
     "return_types.{0}"),
]  # fmt: skip
_MEDIANS = [_LIMITS[0], _LIMITS[2]]
_SHAPED = [
    (f"size: Sequence[int], *, {{more}}{_OPTIONS}", "Tensor"),
    (f"*size: int, {{more}}{_OPTIONS}", "Tensor"),
]
_LIST = [("*{1}: int", "Tensor"), ("{0}: Sequence[int]", "Tensor")]
_FLAGS = "return_inverse: Literal[{0}]{d0}, return_counts: Literal[{1}]{d1}"


def _shaped(more: str) -> list[tuple[str, str]]:
    return [(text.format(more=more), kind) for text, kind in _SHAPED]


def _listed(name: str, rest: str) -> list[tuple[str, str]]:
    """Sizes one by one, or in a sequence that may be named."""
    return [(f"{name}: Sequence[int]", "Tensor"), (f"*{rest}: int", "Tensor")]


def _unique(before: str) -> list[tuple[str, str]]:
    """How many tensors come back depends on two flags; either may be given by name."""
    pair, triple = "tuple[Tensor, Tensor]", "tuple[Tensor, Tensor, Tensor]"
    last = "dim: int | None = None"
    inverse = "return_inverse: Literal[{}]{}".format
    counts = "return_counts: Literal[{}]{}".format
    plain = ", ".join([inverse(False, " = False"), counts(False, " = False"), last])
    first = ", ".join([inverse(True, ""), counts(False, " = False"), last])
    second = ", ".join([inverse(False, " = False"), "*", counts(True, ""), last])
    both = ", ".join([inverse(True, ""), counts(True, ""), last])
    comma = f"{before}, " if before else ""
    star = "" if not before else "*, "
    return [
        (comma + plain, "Tensor"),
        (comma + star + first, pair),
        (comma + second, pair),
        (comma + star + both, triple),
    ]


# What one signature does not say: the parameters behind the first, and the result, of each form.
OVERLOADS: dict[str, list[tuple[str, str]]] = {
    "max": [(p, r.format("max")) for p, r in _LIMITS],
    "min": [(p, r.format("min")) for p, r in _LIMITS],
    "median": [(p, r.format("median")) for p, r in _MEDIANS],
    "nanmedian": [(p, r.format("nanmedian")) for p, r in _MEDIANS],
    "nonzero": [
        (f"{_OUT}, as_tuple: Literal[False] = False", "Tensor"),
        ("*, as_tuple: Literal[True]", "tuple[Tensor, ...]"),
    ],
    "unique": _unique("sorted: bool = True"),
    "unique_consecutive": _unique(""),
}
# The same for what is a function alone, with all parameters.
FUNCTION_OVERLOADS: dict[str, list[tuple[str, str]]] = {
    "arange": [
        (f"end: Number, *, out: Tensor | None = None, {_OPTIONS}", "Tensor"),
        (f"start: Number, end: Number, step: Number = 1, *, out: Tensor | None = None, {_OPTIONS}",
         "Tensor"),
    ],
    "atleast_1d": [("tensors: Tensor, /", "Tensor"),  # one tensor is no tuple
                   ("*tensors: Tensor | Sequence[Tensor]", "tuple[Tensor, ...]")],
    "einsum": [("equation: str, *operands: Tensor | Sequence[Tensor]", "Tensor")],
    "empty": _shaped(
        "out: Tensor | None = None, memory_format: memory_format | None = None, "),
    "ones": _shaped("out: Tensor | None = None, "),
    "rand": _shaped("generator: Generator | None = None, out: Tensor | None = None, "),
    "randn": _shaped("generator: Generator | None = None, out: Tensor | None = None, "),
    "zeros": _shaped("out: Tensor | None = None, "),
    "randint": [
        (f"high: int, size: Sequence[int], *, generator: Generator | None = None, "
         f"out: Tensor | None = None, {_OPTIONS}", "Tensor"),
        (f"low: int, high: int, size: Sequence[int], *, generator: Generator | None = None, "
         f"out: Tensor | None = None, {_OPTIONS}", "Tensor"),
    ],
    "where": [
        ("condition: Tensor", "tuple[Tensor, ...]"),
        ("condition: Tensor, input: Tensor | Number, other: Tensor | Number, "
         "*, out: Tensor | None = None", "Tensor"),
    ],
}  # fmt: skip
FUNCTION_OVERLOADS["atleast_2d"] = FUNCTION_OVERLOADS["atleast_1d"]
FUNCTION_OVERLOADS["atleast_3d"] = FUNCTION_OVERLOADS["atleast_1d"]
# And for methods, behind `self`.
METHOD_OVERLOADS: dict[str, list[tuple[str, str]]] = {
    "expand": _listed("size", "sizes"),
    "flip": _listed("dims", "order"),
    "new_empty": _shaped(""),
    "new_ones": _shaped(""),
    "new_zeros": _shaped(""),
    "permute": _listed("dims", "order"),
    "repeat": _listed("repeats", "sizes"),
    "reshape": _listed("shape", "sizes"),
    "size": [("dim: None = None", "Size"), ("dim: int", "int")],
    "stride": [("dim: None = None", "tuple[int, ...]"), ("dim: int", "int")],
    "tile": _listed("dims", "sizes"),
    "to": [
        ("dtype: dtype, non_blocking: bool = False, copy: bool = False, *, "
         "memory_format: memory_format | None = None", "Tensor"),
        ("device: device | str | int | None = None, dtype: dtype | None = None, "
         "non_blocking: bool = False, copy: bool = False, *, "
         "memory_format: memory_format | None = None", "Tensor"),
        ("other: Tensor, non_blocking: bool = False, copy: bool = False, *, "
         "memory_format: memory_format | None = None", "Tensor"),
    ],
    "type": [
        ("dtype: None = None, non_blocking: bool = False", "str"),
        ("dtype: str | dtype | type, non_blocking: bool = False", "Tensor"),
    ],
    "view": [
        ("dtype: dtype", "Tensor"),
        ("size: Sequence[int]", "Tensor"),
        ("*shape: int", "Tensor"),
    ],
}  # fmt: skip

_OTHER = "Tensor | _Number"
# Methods whose types Python or mypy fix.
FIXED = {
    "__contains__": "def __contains__(self, element: Any) -> _bool: ...",
    "__len__": "def __len__(self) -> _int: ...",
    "__iter__": "def __iter__(self) -> Iterator[Tensor]: ...",
    "__eq__": f"def __eq__(self, other: {_OTHER}) -> Tensor: ...  # type: ignore[override]",
    "__ne__": f"def __ne__(self, other: {_OTHER}) -> Tensor: ...  # type: ignore[override]",
    "__getitem__": "def __getitem__(self, index: Any) -> Tensor: ...",
    "__setitem__": "def __setitem__(self, index: Any, value: Any) -> None: ...",
    "__delitem__": "def __delitem__(self, index: Any) -> None: ...",
    "__reduce_ex__": "def __reduce_ex__(self, proto: Any) -> tuple[Any, ...]: ...",
}
OPERATORS = (
    "add", "radd", "iadd", "sub", "rsub", "isub", "mul", "rmul", "imul", "truediv", "rtruediv",
    "itruediv", "pow", "rpow", "ipow", "floordiv", "rfloordiv", "mod", "rmod",
    "and", "rand", "iand", "or", "ror", "ior", "xor", "rxor", "ixor", "lshift", "rlshift",
    "ilshift", "rshift", "rrshift", "irshift", "ifloordiv", "imod", "div", "rdiv",
    "idiv", "lt", "le", "gt", "ge",
)  # fmt: skip
PRODUCTS = ("__matmul__", "__rmatmul__", "__imatmul__")
UNARY = ("__neg__", "__pos__", "__abs__", "__invert__", "__reversed__")
VIEWS = ("T", "H", "mT", "mH", "real", "imag")


def in_stub(text: str) -> str:
    """A type, or parameters with types, in the names of the stubs; Any where one is unknown."""
    return re.sub(r"\btype\b(?!\()", "builtins.type", RENAMED.sub(r"_\1", text)).replace(
        "numpy._ndarray", "numpy.ndarray"
    )


def annotation(text: str) -> str:
    """A type of a signature as the stubs write it; Any if they do not know it."""
    words = set(re.findall(r"[A-Za-z_]\w*", text))
    if words - KNOWN - NAMED or not re.fullmatch(r"[\w\[\], .|]+", text):
        return "Any"
    if text == "numpy.ndarray":
        return "_numpy.ndarray[Any, Any]"
    return in_stub(text)


def default(value: object) -> str:
    """A default as the stubs write it."""
    plain = value is None or type(value) in (bool, int, float, str)
    return repr(value) if plain and repr(value) not in ("inf", "nan") else "..."


def parameters(fn: Callable[..., Any], method: bool) -> str:
    """A function's parameters as a stub writes them."""
    written, star = [], False
    for at, p in enumerate(inspect.signature(fn).parameters.values()):
        if at == 0 and method:
            written.append("self")
            if p.kind is p.POSITIONAL_ONLY:
                written.append("/")
            continue
        kind = annotation(str(p.annotation))
        if p.kind is p.VAR_POSITIONAL:
            written.append(f"*{p.name}: {kind}")
            star = True
            continue
        if p.kind is p.VAR_KEYWORD:
            written.append(f"**{p.name}: {kind}")
            continue
        if p.kind is p.KEYWORD_ONLY and not star:
            written.append("*")
            star = True
        given = "" if p.default is p.empty else f" = {default(p.default)}"
        written.append(f"{p.name}: {kind}{given}")
    return ", ".join(written)


def overloads(name: str, first: str, forms: list[tuple[str, str]]) -> str:
    """The forms of one function."""
    lines = []
    for text, kind in forms:
        both = ", ".join(part for part in (first, in_stub(text)) if part)
        lines.append(f"def {name}({both}) -> {in_stub(kind)}: ...")
    if name.startswith("atleast_"):  # a tensor alone is no tuple of one
        lines[0] += "  # type: ignore[overload-overlap]"
    if len(lines) == 1:
        return lines[0]
    return "\n".join(f"@overload\n{line}" for line in lines)


def stub(name: str, fn: Callable[..., Any], method: bool, space: str = "") -> str:
    """The lines of a function in a stub."""
    if method and name in FIXED:
        return FIXED[name]
    if method and name.strip("_") in OPERATORS and name.startswith("__"):
        return f"def {name}(self, other: {_OTHER}) -> Tensor: ..."
    if method and name in PRODUCTS:
        return f"def {name}(self, other: Tensor) -> Tensor: ..."
    if method and name in UNARY:
        return f"def {name}(self) -> Tensor: ..."
    own = METHOD_OVERLOADS if method else FUNCTION_OVERLOADS
    if name in own and not space:
        return overloads(name, "self" if method else "", own[name])
    if name in OVERLOADS and not space:
        return overloads(name, "self" if method else "input: Tensor", OVERLOADS[name])
    result = annotation(str(inspect.signature(fn).return_annotation))
    return f"def {name}({parameters(fn, method)}) -> {result}: ..."


def function_stub() -> str:
    """The text of `_functions.pyi`."""
    exported = [name for name in functions if _usable(name) and hasattr(rushlight, name)]
    lines = [stub(name, functions[name], False) for name in sorted(exported)]
    typed = [
        f"class {name}:\n    dtype: _dtype\n    def __new__(cls, *args: Any) -> Tensor: ...  "
        "# type: ignore[misc]"
        for name in sorted(tensor_types)
    ]
    typed += [f"class {name}(TypedStorage): ..." for name in sorted(storage_types)]
    # the parts of the package that are imported when first used
    later = [
        f"from rushlight{f'.{home}' if home else ''} import {name} as {name}"
        for name, home in rushlight._LATER.items()
        if name not in tensor_types and name not in storage_types  # the classes below
    ]
    aliases = [f"{name}: _dtype" for name in sorted(dtypes.aliases)]
    head = HEAD.format(what="The functions of `rushlight` that the op table makes.")
    head += IMPORTS.replace("import return_types", "import return_types as return_types")
    parts = ["\n".join(part) for part in (later, aliases, lines)]
    return head + "\n\n".join([*parts, *typed]) + "\n"


def namespace_stub(namespace: str, more: str = "") -> str:
    """The text of `special.pyi` or its like; `more` is what stands beside the functions."""
    found = sorted(namespaces[namespace].items())
    head = HEAD.format(what=f"`torch.{namespace}`.") + IMPORTS
    return head + more + "\n".join(stub(name, fn, False, namespace) for name, fn in found) + "\n"


def results_stub() -> str:
    """The text of `return_types.pyi`."""
    lines = [
        HEAD.format(what="Results with names.")
        + "from collections.abc import Iterable\nfrom typing import Any, ClassVar, Self\n\n"
        "from rushlight.tensor import Tensor\n\n"
        f"__all__ = {return_types.__all__!r}\n\n"
        "class Named(tuple[Any, ...]):\n"
        "    fields: ClassVar[tuple[str, ...]]\n    n_fields: ClassVar[int]\n"
        "    n_sequence_fields: ClassVar[int]\n    n_unnamed_fields: ClassVar[int]\n"
        "    def __new__(cls, values: Iterable[Any]) -> Self: ...\n"
    ]
    for name, kind in sorted(vars(return_types).items()):
        if not isinstance(kind, type) or kind is return_types.Named or not hasattr(kind, "fields"):
            continue
        items = ", ".join("Tensor" for _ in kind.fields)
        body = "".join(
            f"    @property\n    def {field}(self) -> Tensor: ...\n" for field in kind.fields
        )
        lines.append(
            f"class {name}(tuple[{items}]):\n    fields: ClassVar[tuple[str, ...]]\n"
            "    n_fields: ClassVar[int]\n    n_sequence_fields: ClassVar[int]\n"
            "    n_unnamed_fields: ClassVar[int]\n"
            f"    def __new__(cls, values: Iterable[Any]) -> Self: ...\n{body}"
        )
    return "\n".join(lines)


def written_out() -> set[str]:
    """The names that the body of class Tensor spells out, and so types itself."""
    tree = ast.parse((PACKAGE / "tensor.py").read_text("utf-8"))
    (body,) = [n.body for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Tensor"]
    return {n.name for n in body if isinstance(n, ast.FunctionDef)}


def method_stub() -> str:
    """The text of `_methods.pyi`."""
    own = written_out()
    found: dict[str, Any] = {
        name: value
        for name, value in vars(Operators).items()
        if name[2:-2] in (*OPERATORS, "neg") or name in PRODUCTS
    }
    found.update(methods)
    for name, value in vars(Tensor).items():
        # what later layers hang on the class, such as `backward`
        if inspect.isfunction(value) and value.__module__.startswith("rushlight.autograd"):
            found.setdefault(name, value)
    lines = [
        stub(name, fn, True)
        for name, fn in sorted(found.items())
        if _usable(name) and not isinstance(fn, property) and (name in FIXED or name not in own)
    ]
    properties = [
        f"@property\ndef {name}(self) -> {'Tensor' if name in VIEWS else 'Any'}: ..."
        for name, value in sorted(found.items())
        if isinstance(value, property) and name not in own
    ]
    # flags that other modules hang on the class: what a tensor is not, and such
    flags = [
        f"{name}: _bool"
        for name, value in sorted(vars(Tensor).items())
        if isinstance(value, (bool, property))
        and name not in own
        and name not in found
        and not name.startswith("_")
        and name not in VIEWS
        and name not in Tensor.__annotations__
    ]
    body = "\n".join(
        "    " + line for text in [*flags, *properties, *lines] for line in text.split("\n")
    )
    head = HEAD.format(what="The methods of `Tensor` that the op table makes.") + IMPORTS
    return head + "class Methods(TensorBase):\n" + body + "\n"


def _usable(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name)


def stubs() -> dict[str, str]:
    """File name and text of each stub."""
    return {
        "_functions.pyi": function_stub(),
        "_methods.pyi": method_stub(),
        "linalg.pyi": namespace_stub(
            "linalg", "from rushlight.ops.linalg.common import LinAlgError as LinAlgError\n\n"
        ),
        "nn/functional.pyi": namespace_stub("nn.functional"),
        "return_types.pyi": results_stub(),
        "special.pyi": namespace_stub("special"),
    }


def main() -> None:
    stale = []
    for name, text in stubs().items():
        path = PACKAGE / name
        if not path.exists() or path.read_text("utf-8") != text:
            stale.append(name)
            if "--check" not in sys.argv:
                path.write_text(text, "utf-8")
    if stale and "--check" in sys.argv:
        sys.exit(f"not current: {', '.join(stale)}; run `python tools/make_stubs.py`")


if __name__ == "__main__":
    assert rushlight.__version__
    main()
