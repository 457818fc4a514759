"""Write the type stubs of what the op table exports, which no source file spells out.

    python tools/make_stubs.py           write them
    python tools/make_stubs.py --check   fail if they are not what would be written

`src/rushlight/_functions.pyi` has the functions of `rushlight`, `_methods.pyi` the methods of
`Tensor`. Neither has a module behind it: `rushlight/__init__.py` and `tensor.py` import them for
type checkers alone. `special.pyi` and `linalg.pyi` are the stubs of the modules of these names.
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
from rushlight import dtypes
from rushlight.core.operators import Operators
from rushlight.ops.registry import functions, methods, namespaces, signature_of
from rushlight.tensor import Tensor
from rushlight.tensor_types import tensor_types

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "rushlight"

HEAD = '''"""{what}

Written by tools/make_stubs.py from the op table; not to be edited.
"""

import builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from rushlight.arrays.device import device as _device
from rushlight.core.engine.hooks import RemovableHandle
from rushlight.core.operators import Operators
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

'''

# What a parameter of a name means wherever its function does not say.
BY_NAME = {
    "input": "Tensor", "out": "Tensor | None", "dtype": "_dtype | None",
    "device": "_device | _str | _int | None", "layout": "_layout | None",
    "memory_format": "_memory_format | None", "generator": "_Generator | None",
    "requires_grad": "_bool", "keepdim": "_bool", "pin_memory": "_bool", "descending": "_bool",
    "other": "Tensor | _Number",
}  # fmt: skip
# What a documented result means; `Tensor` where a docstring says so.
RESULTS = {
    "Tensor": "Tensor", "bool": "_bool", "int": "_int", "float": "_float", "str": "_str",
    "numpy.ndarray": "Any", "None": "None", "Size": "Size",
    "(Tensor, Tensor)": "tuple[Tensor, Tensor]", "(Tensor, LongTensor)": "tuple[Tensor, Tensor]",
    "tuple of Tensors": "tuple[Tensor, ...]", "seq": "tuple[Tensor, ...]",
}  # fmt: skip
BUILTINS = ("bool", "int", "float", "complex", "str", "Number", "Operand")
# Methods whose types Python or mypy fix.
FIXED = {
    "__len__": "def __len__(self) -> _int: ...",
    "__iter__": "def __iter__(self) -> Iterator[Tensor]: ...",
    "__eq__": "def __eq__(self, other: Any) -> Tensor: ...  # type: ignore[override]",
    "__ne__": "def __ne__(self, other: Any) -> Tensor: ...  # type: ignore[override]",
    "__setitem__": "def __setitem__(self, index: Any, value: Any) -> None: ...",
    "__reduce_ex__": "def __reduce_ex__(self, proto: Any) -> tuple[Any, ...]: ...",
    "size": "def size(self, dim: _int | None = ...) -> Any: ...",
    "type": "def type(self, dtype: Any = ..., non_blocking: _bool = ...) -> Any: ...",
}
OPERATORS = (
    "add", "radd", "iadd", "sub", "rsub", "isub", "mul", "rmul", "imul", "truediv", "rtruediv",
    "itruediv", "pow", "rpow", "ipow", "matmul", "rmatmul", "floordiv", "rfloordiv", "mod", "rmod",
    "and", "rand", "iand", "or", "ror", "ior", "xor", "rxor", "ixor", "lshift", "rlshift",
    "ilshift", "rshift", "rrshift", "irshift", "imatmul", "ifloordiv", "imod", "div", "rdiv",
    "idiv", "lt", "le", "gt", "ge",
)  # fmt: skip
UNARY = ("__neg__", "__pos__", "__abs__", "__invert__", "__reversed__")
VIEWS = ("T", "H", "mT", "mH", "real", "imag")


def annotation(given: object, name: str) -> str:
    """The type of a parameter: its own, or what its name means."""
    text = given if isinstance(given, str) else getattr(given, "__name__", "Any")
    if given is inspect.Parameter.empty or text == "Any":
        return BY_NAME.get(name, "Any")
    if not re.fullmatch(r"[\w\[\], .|]+", text):
        return "Any"
    words = set(re.findall(r"[A-Za-z_]\w*", text))
    known = {"Any", "None", "Sequence", "Callable", "tuple", "list", "dict", "Tensor", *BUILTINS}
    if words - known:
        return "Any"
    text = re.sub(r"\bOperand\b", "Tensor | Number", text)
    # `float` and its like are dtypes in rushlight: the stubs give Python's types another name
    return re.sub(r"\b(bool|int|float|complex|str|Number)\b", r"_\1", text)


def result(fn: Callable[..., Any]) -> str:
    """The type of a result: as annotated, or as the first line of the docstring says."""
    given = fn.__annotations__.get("return", "Any")
    text = given if isinstance(given, str) else getattr(given, "__name__", "Any")
    if text == "Tensor":
        return "Tensor"
    if text != "Any":
        return annotation(text, "")
    first = (fn.__doc__ or "").strip().splitlines()[:1]
    said = re.search(r"-> ([^:]*)", first[0]) if first else None
    return RESULTS.get(said[1].strip(), "Any") if said else "Any"


def parameters(fn: Callable[..., Any], method: bool) -> str:
    """A function's parameters as a stub writes them."""
    written, star = [], False
    for at, p in enumerate(signature_of(fn).parameters.values()):
        if at == 0 and method:
            written.append("self")
            if p.kind is p.POSITIONAL_ONLY:
                written.append("/")
            continue
        kind = annotation(p.annotation, p.name)
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
        written.append(f"{p.name}: {kind}" + ("" if p.default is p.empty else " = ..."))
    return ", ".join(written)


def stub(name: str, fn: Callable[..., Any], method: bool) -> str:
    """One line of a stub."""
    if method and name in FIXED:
        return FIXED[name]
    if method and name.strip("_") in OPERATORS and name.startswith("__"):
        return f"def {name}(self, other: Any) -> Tensor: ..."
    if method and name in UNARY:
        return f"def {name}(self) -> Tensor: ..."
    # in place: in PyTorch a method's trailing underscore means that it returns its own tensor
    kind = "Tensor" if re.fullmatch(r"[a-z]\w*[a-z0-9]_", name) else result(fn)
    return f"def {name}({parameters(fn, method)}) -> {kind}: ..."


def function_stub() -> str:
    """The text of `_functions.pyi`."""
    exported = [name for name in functions if _usable(name) and hasattr(rushlight, name)]
    lines = [stub(name, functions[name], False) for name in sorted(exported)]
    typed = [
        f"class {name}:\n    dtype: _dtype\n    def __new__(cls, *args: Any) -> Tensor: ...  "
        "# type: ignore[misc]"
        for name in sorted(tensor_types)
    ]
    # the parts of the package that are imported when first used
    later = [
        f"from rushlight import {name} as {name}"
        for name in rushlight._LATER
        if (PACKAGE / f"{name}.py").exists() or (PACKAGE / name / "__init__.py").exists()
    ]
    aliases = [f"{name}: _dtype" for name in sorted(dtypes.aliases)]
    head = HEAD.format(what="The functions of `rushlight` that the op table makes.")
    parts = ["\n".join(part) for part in (later, aliases, lines)]
    return head + "\n\n".join([*parts, *typed]) + "\n"


def namespace_stub(namespace: str, more: str = "") -> str:
    """The text of `special.pyi` or its like; `more` is what stands beside the functions."""
    found = sorted(namespaces[namespace].items())
    head = HEAD.format(what=f"`torch.{namespace}`.")
    return head + more + "\n".join(stub(name, fn, False) for name, fn in found) + "\n"


def written_out() -> set[str]:
    """The names that the body of class Tensor spells out, and so types itself."""
    tree = ast.parse((PACKAGE / "tensor.py").read_text("utf-8"))
    (body,) = [n.body for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Tensor"]
    return {n.name for n in body if isinstance(n, ast.FunctionDef)}


def method_stub() -> str:
    """The text of `_methods.pyi`."""
    own = written_out()
    found: dict[str, Any] = {
        name: value for name, value in vars(Operators).items() if name[2:-2] in (*OPERATORS, "neg")
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
    body = "\n".join("    " + line for text in [*properties, *lines] for line in text.split("\n"))
    head = HEAD.format(what="The methods of `Tensor` that the op table makes.")
    return head + "class Methods(Operators):\n" + body + "\n"


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
