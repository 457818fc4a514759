"""The forms in which a function may be called, and how PyTorch tells that a call fits none.

A form is a signature as PyTorch writes it: `(Tensor input, int dim, bool keepdim = False)`. PyTorch
compares a call with each form of a function. If only one takes as many arguments, it says what is
wrong with that one; otherwise it lists all. Nothing here runs before a call has failed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from rushlight import dtypes
from rushlight.arrays.device import device
from rushlight.arrays.host import is_scalar
from rushlight.core.graph import TensorBase
from rushlight.ops.numbers import number
from rushlight.random.generator import Generator
from rushlight.tables import read_table

FACTORY: Final = (
    "torch.dtype dtype = None, torch.layout layout = None, torch.device device = None, "
    "bool pin_memory = False, bool requires_grad = False"
)
# NumPy's names for parameters, which PyTorch takes too.
_ALSO: Final = {
    "dim": ("axis",), "keepdim": ("keepdims",), "input": ("x", "a", "x1"), "other": ("x2",),
}  # fmt: skip
# Functions that take a number where a tensor is written.
_NUMBERS_TOO: Final = frozenset(
    name + end
    for name in ("add", "div", "divide", "floor_divide", "mul", "multiply", "sub", "subtract",
                 "true_divide", "fmod", "copysign")
    for end in ("", "_")
)  # fmt: skip


class Parameter:
    """One parameter of a form."""

    __slots__ = ("alone", "kind", "name", "needed", "none")

    def __init__(self, kind: str, name: str, needed: bool, none: bool, alone: bool) -> None:
        self.kind, self.name = kind, name  # kind "": whatever there is
        self.needed = needed
        self.none = none  # may None stand for it?
        self.alone = alone  # by keyword alone

    def fits(self, x: Any, numbers: bool = False) -> bool:
        if x is None and self.none:
            return True
        return accepts(x, self.kind) or (
            numbers and self.kind == "Tensor" and number(x) is not NotImplemented
        )


class Form:
    """A signature."""

    __slots__ = ("fewest", "parameters", "positions", "text")

    def __init__(self, text: str, parameters: Sequence[Parameter]) -> None:
        self.text = text
        self.parameters = parameters
        self.positions = sum(not p.alone for p in parameters)
        self.fewest = sum(p.needed for p in parameters)

    @staticmethod
    @functools.cache
    def read(text: str) -> Form:
        """From PyTorch's way to write it."""
        found: list[Parameter] = []
        alone = False
        for part in filter(None, text[1:-1].split(", ")):
            if part == "*":
                alone = True
                continue
            said, equals, default = part.partition(" = ")
            kind, _, name = said.rpartition(" ")
            found.append(Parameter(kind, name, not equals, default == "None", alone))
        return Form(text, found)

    def fault(self, title: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        """What is wrong with a call in this form, in PyTorch's words; "" if nothing is."""
        n = len(args)
        numbers = title in _NUMBERS_TOO
        spread = self.positions == 1 and self.parameters[0].kind == "tuple of ints"
        if n > self.positions and not spread:
            return f"{title}() {self._too_many(n)}"
        at, used = 0, set()
        for i, p in enumerate(self.parameters):
            name = next((m for m in (p.name, *_ALSO.get(p.name, ())) if m in kwargs), "")
            if at < n:
                if p.alone:
                    return f"{title}() {self._too_many(n)}"
                x, place = args[at], f" (position {at + 1})"
                if name and name == p.name:
                    return f"{title}() got multiple values for argument '{name}'"
                at += 1
            elif name:
                x, place = kwargs[name], ""
                used.add(name)
            elif p.needed:
                missing = [q.name for q in self.parameters[i:] if q.needed]
                plural = "s" if len(missing) == 1 else ""  # so does PyTorch say it
                listed = ", ".join(f'"{q}"' for q in missing)
                return (
                    f"{title}() missing {len(missing)} required positional argument{plural}: "
                    + listed
                )
            else:
                continue
            if p.fits(x, numbers):
                continue
            if spread and i == 0 and not name and accepts(args, "tuple of ints"):
                at = n
                continue
            return f"{title}(): argument '{p.name}'{place} must be {p.kind}, not {kind_of(x)}"
        for name in kwargs:
            if name not in used:
                return f"{title}() got an unexpected keyword argument '{name}'"
        return ""

    def _too_many(self, given: int) -> str:
        least = sum(p.needed and not p.alone for p in self.parameters)
        most = self.positions
        takes = f"from {least} to {most}" if least < most else f"{most}"
        return (
            f"takes {takes} positional argument{'' if takes == '1' else 's'} but {given} "
            f"{'was' if given == 1 else 'were'} given"
        )

    def compared(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        """Why the form was not it, if it has as many parameters as there are arguments."""
        names = {p.name: p for p in self.parameters}
        count = self.text.count(", ") + 1  # PyTorch counts the `*`, and one for `()`
        if "out" in names and "out" not in kwargs:
            count -= 1
        if len(args) + len(kwargs) != count:
            return ""
        foreign = [name for name in kwargs if name not in names]
        because = "      didn't match because some of the "
        if foreign:
            return f"{because}keywords were incorrect: {', '.join(foreign)}\n"
        parts: list[Parameter | None] = list(self.parameters)
        if len(parts) != self.positions:
            parts.insert(self.positions, None)
        shown = [_mark(x, parts[at] if at < len(parts) else None) for at, x in enumerate(args)]
        shown += [f"{name}={_mark(x, names[name])}" for name, x in kwargs.items()]
        return f"{because}arguments have invalid types: ({', '.join(shown)})\n"


def _mark(x: Any, p: Parameter | None) -> str:
    """A value's type, between marks if it is not the one that is written in the form."""
    said = kind_of(x, True)
    return said if p is not None and said == p.kind else f"!{said}!"


def kind_of(x: Any, inside: bool = False) -> str:
    """A value's type in PyTorch's words; `inside`: and of what is in it."""
    if inside and type(x) in (tuple, list) and x:
        parts = ", ".join(kind_of(part) for part in x)
        if type(x) is list:
            return f"list of [{parts}]"
        return f"tuple of ({parts}{',' if len(x) == 1 else ''})"
    if isinstance(x, TensorBase) and type(x).__name__ == "Tensor":
        return "Tensor"
    return dtypes.type_name(x)


def accepts(x: Any, wanted: str) -> bool:
    """Whether PyTorch would take a value for a parameter of a kind, "tuple of ints" say."""
    check = _CHECKS.get(wanted)
    return check is None or check(x)


def _whole(x: Any) -> bool:
    if isinstance(x, TensorBase):
        return x._array.ndim == 0 and x._array.dtype.kind in "iub"
    return hasattr(x, "__index__") and not isinstance(x, bool)


def _whole_ones(x: Any) -> bool:
    """A list of ints, by its first element; one int may stand for it."""
    if isinstance(x, (tuple, list)):
        return not x or _whole(x[0])
    return _whole(x)


_CHECKS: Final[dict[str, Callable[[Any], bool]]] = {
    "Tensor": lambda x: isinstance(x, TensorBase),
    "bool": lambda x: isinstance(x, bool) or (is_scalar(x) and x.dtype.kind == "b"),
    "int": _whole,
    "tuple of ints": _whole_ones,
    "tuple of Tensors": lambda x: hasattr(x, "__iter__"),
    "str": lambda x: isinstance(x, str),
    "float": lambda x: number(x, "float") is not NotImplemented,
    "Number": lambda x: number(x) is not NotImplemented,
    "torch.dtype": lambda x: isinstance(x, (dtypes.dtype, type)),
    "torch.device": lambda x: isinstance(x, (device, str)) or _whole(x),
    "torch.layout": lambda x: isinstance(x, dtypes.layout),
    "torch.memory_format": lambda x: isinstance(x, dtypes.memory_format),
    "torch.Generator": lambda x: isinstance(x, Generator),
}


def misfit(
    title: str, listed: Sequence[Form], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> str:
    """PyTorch's error for a call that fits no form; "" if one fits, or it cannot be told."""
    faults = [form.fault(title, args, kwargs) for form in listed]
    if not faults or not all(faults):
        return ""
    n = len(args) + len(kwargs)
    likely = [i for i, f in enumerate(listed) if f.fewest <= n <= len(f.parameters)]
    if len(likely) == 1:
        return faults[likely[0]]
    got = ", ".join([kind_of(x) for x in args] + [f"{k}={kind_of(x)}" for k, x in kwargs.items()])
    if kwargs and not args:
        got += ", "
    text = f"{title}() received an invalid combination of arguments - got ({got}), but expected "
    if len(listed) == 1:
        names = [p.name for p in listed[0].parameters]
        if foreign := ", ".join(name for name in kwargs if name not in names):
            return f"{text.partition('got')[0]}got unrecognized keyword arguments: {foreign}"
        return text + listed[0].text
    return f"{text}one of:\n" + "".join(f" * {f.text}\n{f.compared(args, kwargs)}" for f in listed)


@functools.cache
def _table() -> tuple[dict[str, list[str]], set[str]]:
    """The forms that PyTorch lists, by function; and the functions that it has in Python."""
    found: dict[str, list[str]] = {}
    python: set[str] = set()
    forms: list[str] = []
    for line in read_table(__file__):  # 20 kB that few programs need
        if line.startswith(" "):
            forms.append(line[1:].replace("...", FACTORY))
        elif line.startswith("python: "):
            python.update(line.split(" ")[1:])
        else:
            forms = []
            found.update(dict.fromkeys(line.split(" "), forms))
    return found, python


def is_in_python(name: str) -> bool:
    """Whether PyTorch has a function (`.name`: a method) written in Python, which tells what it is
    not given in Python's words."""
    return name in _table()[1]


def method_forms(name: str, functions: Mapping[str, list[str]]) -> list[str]:
    """The forms of a method, by those of the function: without the tensor and `out=`."""
    listed = functions.get(name) or functions.get(name.removesuffix("_"), [])
    found: list[str] = []
    for form in listed:
        if "Tensor input" not in form:
            continue
        parts = [
            part
            for part in form[1:-1].split(", ")
            if part != "Tensor input" and not part.endswith(" out = None")
        ]
        if parts and parts[-1] == "*":
            parts.pop()
        text = f"({', '.join(parts)})"
        if text not in found:
            found.append(text)
    return found


def list_forms(title: str, method: bool) -> list[Form]:
    """The forms that PyTorch lists for a function; none where it lists none."""
    table, _ = _table()
    if method:
        texts = table.get("." + title)
        if texts is None:
            texts = method_forms(title, table)
    else:
        texts = table.get(title, [])
    return [Form.read(text) for text in texts]
