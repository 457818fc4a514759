"""Signatures of operators: what is in "(Tensor x, float y=2.) -> Tensor".

A schema is read from such a text, or worked out from a function's annotations by `infer`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from rushlight import dtypes
from rushlight.arrays.device import device

# What Python's error messages and PyTorch's `str(argument.type)` call the basic types.
BASIC = {
    "Tensor": "Tensor", "int": "int", "SymInt": "int", "float": "float", "bool": "bool",
    "str": "str", "Scalar": "number", "ScalarType": "int", "Device": "Device",
    "Any": "Any", "complex": "complex", "Generator": "Generator",
}  # fmt: skip
NO_DEFAULT: Any = object()


@dataclass(frozen=True)
class Kind:
    """A type: a basic one, or an `optional`, `list` or `tuple` of others."""

    name: str
    parts: tuple[Kind, ...] = ()
    size: int | None = None  # of a list that one number may stand for
    alias: Alias | None = field(default=None, compare=False)

    def __str__(self) -> str:
        """As Python names it, which is how errors do."""
        inside = ", ".join(map(str, self.parts))
        if self.name in ("Optional", "List", "Tuple"):
            return f"{self.name}[{inside}]"
        return BASIC[self.name]

    def written(self, alias: Alias | None = None) -> str:
        """As a schema writes it."""
        if self.name == "Optional":
            return self.parts[0].written(alias) + "?"
        if self.name == "List":
            size = "" if self.size is None else str(self.size)
            return f"{self.parts[0].written(alias)}[{size}]"
        if self.name == "Tuple":
            return f"({', '.join(part.written() for part in self.parts)})"
        return self.name if alias is None else f"{self.name}({alias})"

    def holds(self, name: str) -> bool:
        """Whether it is, or contains, the basic type `name`."""
        return self.name == name or any(part.holds(name) for part in self.parts)

    def list_of_tensors(self) -> bool:
        """Whether it is a list of tensors, or of tensors and None."""
        return self.name == "List" and self.holds("Tensor")


@dataclass(frozen=True)
class Alias:
    """Which memory an argument or result may share, and whether it is written: `(a!)`."""

    before_set: frozenset[str]
    is_write: bool
    after_set: frozenset[str]

    def __str__(self) -> str:
        before = "|".join(sorted(self.before_set)) + ("!" if self.is_write else "")
        if self.after_set == self.before_set:
            return before
        return f"{before} -> {'|'.join(sorted(self.after_set))}"


@dataclass(frozen=True)
class Argument:
    """One argument of an operator."""

    name: str
    type: Kind
    default_value: Any = NO_DEFAULT
    kwarg_only: bool = False
    alias_info: Alias | None = None
    printed: str = ""  # the default, where it is written otherwise than its value

    def has_default_value(self) -> bool:
        """Whether the argument may be left out."""
        return self.default_value is not NO_DEFAULT

    @property
    def is_write(self) -> bool:
        """Whether the operator writes into it."""
        return self.alias_info is not None and self.alias_info.is_write

    def __str__(self) -> str:
        text = f"{self.type.written(self.alias_info)} {self.name}"
        return f"{text}={self.shown()}" if self.has_default_value() else text

    def shown(self) -> str:
        """The default as a schema writes it."""
        return self.printed or written(self.default_value)


@dataclass(frozen=True)
class Return:
    """One result of an operator."""

    name: str
    type: Kind
    alias_info: Alias | None = None

    def __str__(self) -> str:
        text = self.type.written(self.alias_info)
        return f"{text} {self.name}" if self.name else text


@dataclass(frozen=True)
class FunctionSchema:
    """The signature of an operator.

    >>> s = parse_schema("mylib::scale(Tensor x, float by=2) -> Tensor")
    >>> print(s)
    mylib::scale(Tensor x, float by=2.) -> Tensor
    >>> [a.name for a in s.arguments], s.arguments[1].default_value, s.is_mutable
    (['x', 'by'], 2.0, False)
    """

    name: str
    overload_name: str
    arguments: tuple[Argument, ...]
    returns: tuple[Return, ...]

    @property
    def is_mutable(self) -> bool:
        """Whether the operator writes into one of its arguments."""
        return any(a.is_write for a in self.arguments)

    @property
    def is_view(self) -> bool:
        """Whether a result may look into an argument that is not written."""
        seen: set[str] = set()
        for a in self.arguments:
            if a.alias_info is not None and not a.alias_info.is_write:
                seen |= a.alias_info.before_set
        return any(
            r.alias_info is not None and seen & r.alias_info.before_set for r in self.returns
        )

    @property
    def positional(self) -> tuple[Argument, ...]:
        """The arguments that may be given by position."""
        return tuple([a for a in self.arguments if not a.kwarg_only])

    @property
    def keyword_only(self) -> tuple[Argument, ...]:
        """The arguments that stand behind the `*`."""
        return tuple([a for a in self.arguments if a.kwarg_only])

    def __str__(self) -> str:
        parts = [str(a) for a in self.positional]
        if self.keyword_only:
            parts += ["*", *[str(a) for a in self.keyword_only]]
        name = f"{self.name}.{self.overload_name}" if self.overload_name else self.name
        return f"{name}({', '.join(parts)}) -> {self.results()}"

    def __repr__(self) -> str:
        return str(self)

    def results(self) -> str:
        """What is behind the arrow."""
        inside = ", ".join(map(str, self.returns))
        alone = len(self.returns) == 1 and not self.returns[0].name
        if alone and self.returns[0].type.name != "Tuple":
            return inside
        return f"({inside})"


def written(value: Any) -> str:
    """A default value as PyTorch prints it: floats end in a point, not in a zero."""
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, float):
        return f"{int(value)}." if value.is_integer() else repr(value)
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, dtypes.dtype):
        return str(value).removeprefix("torch.")
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(written, value))}]"
    return str(value)


# --- reading --------------------------------------------------------------------------------------
TOKEN = re.compile(
    r"\s*(?:(?P<arrow>->)|(?P<string>\"[^\"]*\"|'[^']*')"
    r"|(?P<number>-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
    r"|(?P<ident>[A-Za-z_]\w*)|(?P<sign>::|[()\[\]?,*=!|.]))"
)


class Reader:
    """Reads a schema from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str, int]] = []
        at = 0
        end = len(text.rstrip())
        while at < end:
            found = TOKEN.match(text, at)
            if found is None or found.lastgroup is None:
                raise RuntimeError(f"unexpected character in schema here:\n{text}\n{' ' * at}~")
            kind = found.lastgroup
            word = found.group(kind)
            self.tokens.append(
                (word if kind in ("sign", "arrow") else kind, word, found.start(kind))
            )
            at = found.end()
        self.tokens.append(("eof", "", end))
        self.at = 0

    @property
    def next(self) -> str:
        """The kind of the next token; signs are kinds of their own."""
        return self.tokens[self.at][0]

    def take(self, kind: str) -> str:
        """The next token, which must be of a kind."""
        have, word, start = self.tokens[self.at]
        if have != kind:
            here = "" if have == "eof" else f"\n{' ' * start}{'~' * max(len(word), 1)} <--- HERE"
            raise RuntimeError(f"expected {kind} but found '{have}' here:\n{self.text}{here}")
        self.at += 1
        return word

    def skip(self, kind: str) -> bool:
        """Take the next token if it is of a kind."""
        if self.next != kind:
            return False
        self.at += 1
        return True

    def fail(self, message: str, at: int) -> RuntimeError:
        _, word, start = self.tokens[at]
        return RuntimeError(f"{message}:\n{self.text}\n{' ' * start}{'~' * len(word)} <--- HERE")

    # --- types --------------------------------------------------------------------------------
    def type(self) -> tuple[Kind, Alias | None]:
        """A type and the memory it may share."""
        start = self.at
        alias: Alias | None = None
        if self.skip("("):
            parts = [self.type()[0]]
            while self.skip(","):
                parts.append(self.type()[0])
            self.take(")")
            kind = Kind("Tuple", tuple(parts))
        else:
            name = self.take("ident")
            if name not in BASIC:
                raise self.fail(
                    "unknown type specifier. Common valid schema types include Tensor, SymInt, "
                    "int, float, bool, Scalar; for a full list, please see "
                    "https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/README.md"
                    "#func ",
                    start,
                )
            kind = Kind(name)
            if name == "Tensor" and self.next == "(":
                alias = self.alias()
        while self.next in ("?", "["):
            if self.skip("?"):
                kind = Kind("Optional", (kind,))
            else:
                self.take("[")
                size = int(self.take("number")) if self.next == "number" else None
                self.take("]")
                kind = Kind("List", (kind,), size)
        return kind, alias

    def alias(self) -> Alias:
        """What is in the parentheses of `Tensor(a!)`."""
        self.take("(")
        before = self.names()
        write = self.skip("!")
        after = self.names() if self.skip("->") else before
        self.take(")")
        return Alias(frozenset(before), write, frozenset(after))

    def names(self) -> set[str]:
        found = {self.take("*" if self.next == "*" else "ident")}
        while self.skip("|"):
            found.add(self.take("*" if self.next == "*" else "ident"))
        return found

    # --- arguments ----------------------------------------------------------------------------
    def argument(self, kwarg_only: bool) -> Argument:
        kind, alias = self.type()
        name = self.take("ident")
        if not self.skip("="):
            return Argument(name, kind, kwarg_only=kwarg_only, alias_info=alias)
        value, printed = self.default(kind)
        return Argument(name, kind, value, kwarg_only, alias, printed)

    def default(self, kind: Kind) -> tuple[Any, str]:
        """A default value, and how it is printed if that is not how it is written."""
        inner = kind.parts[0] if kind.name == "Optional" else kind
        if self.next == "[":
            self.take("[")
            values: list[Any] = []
            while self.next != "]":
                values.append(self.default(inner.parts[0])[0])
                self.skip(",")
            self.take("]")
            return values, ""
        start = self.at
        if self.next == "ident":
            return self.word(self.take("ident"), inner, start), ""
        if inner.name == "Tensor":
            self.take("None")
        if self.next == "string":
            text = self.take("string")[1:-1]
            return (device(text), text) if inner.name == "Device" else (text, "")
        number = self.take("number")
        if inner.name == "List":
            value = self.number(number, inner.parts[0])
            return [value] * (inner.size or 1), written(value)
        return self.number(number, inner), ""

    def number(self, text: str, kind: Kind) -> Any:
        if kind.name == "float" or not re.fullmatch(r"-?\d+", text):
            return float(text)
        return int(text)

    def word(self, word: str, kind: Kind, start: int) -> Any:
        """A default that is a word: None, True, False, or a dtype's name."""
        simple = {"None": None, "True": True, "False": False, "true": True, "false": False}
        if word in simple:
            return simple[word]
        found = getattr(dtypes, word, None)
        if kind.name == "ScalarType" and isinstance(found, dtypes.dtype):
            return found
        raise self.fail("invalid numeric default value", start)

    # --- the whole ----------------------------------------------------------------------------
    def schema(self) -> FunctionSchema:
        name = self.take("ident")
        if self.skip("::"):
            name += "::" + self.take("ident")
        overload = self.take("ident") if self.skip(".") else ""
        if self.next == "eof":
            raise RuntimeError(
                "Tried to parse a function schema but only the operator name was given"
            )
        self.take("(" if self.next == "(" else "eof")
        arguments: list[Argument] = []
        kwarg_only = False
        while self.next != ")":
            if self.skip("*"):
                kwarg_only = True
            else:
                arguments.append(self.argument(kwarg_only))
            if not self.skip(","):
                break
        self.take(")")
        self.take("->")
        returns = self.returns()
        self.take("eof")
        check_defaults(name, arguments)
        return FunctionSchema(name, overload, tuple(arguments), returns)

    def returns(self) -> tuple[Return, ...]:
        if not self.skip("("):
            kind, alias = self.type()
            return (Return("", kind, alias),)
        found: list[Return] = []
        while self.next != ")":
            kind, alias = self.type()
            name = self.take("ident") if self.next == "ident" else ""
            found.append(Return(name, kind, alias))
            if not self.skip(","):
                break
        self.take(")")
        return tuple(found)


def check_defaults(name: str, arguments: list[Argument]) -> None:
    """Refuse an argument without default behind one that has one."""
    seen = False
    for a in arguments:
        if a.has_default_value():
            seen = True
        elif seen and not a.kwarg_only and a.type.name != "List":
            raise RuntimeError(
                f"Non-default positional argument follows default argument. Parameter {a.name} in "
                f"{name}({', '.join(map(str, arguments))})"
            )


def parse_schema(text: str) -> FunctionSchema:
    """Read a schema.

    >>> parse_schema("f(Tensor(a!) x, int[2] n=1, *, ScalarType? t=None) -> (Tensor, Tensor[])")
    f(Tensor(a!) x, int[2] n=1, *, ScalarType? t=None) -> (Tensor, Tensor[])
    """
    return Reader(text).schema()
