"""Arguments and results of operators, checked and converted as their schema says."""

from __future__ import annotations

from typing import Any

from rushlight import dtypes
from rushlight.arrays.device import device
from rushlight.core.graph import TensorBase
from rushlight.library.schema import Argument, FunctionSchema, Kind

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class Mismatch(Exception):
    """A value is not of the type that is asked for."""


# --- one value ------------------------------------------------------------------------------------
def convert_value(kind: Kind, value: Any) -> Any:
    """`value` as a value of type `kind`; raises Mismatch if it is none."""
    name = kind.name
    if name == "Tensor":
        if value is None or isinstance(value, TensorBase):
            return value
    elif name == "Optional":
        return None if value is None else convert_value(kind.parts[0], value)
    elif name == "List":
        return list_of(kind, value)
    elif name == "Tuple":
        if isinstance(value, (tuple, list)) and len(value) == len(kind.parts):
            return tuple([convert_value(k, x) for k, x in zip(kind.parts, value, strict=True)])
    elif name == "Device":
        if isinstance(value, (str, device)):
            return device(value)
    elif name in NUMBERS:
        return NUMBERS[name](value)
    elif name in ("Any", "Generator") or isinstance(value, EXACT[name]):
        return value
    raise Mismatch


def list_of(kind: Kind, value: Any) -> list[Any]:
    """A list; one number stands for all of a list whose length is known."""
    inner = kind.parts[0]
    if isinstance(value, (list, tuple, range)):
        if inner.name == "Tensor" and None in [x for x in value if not isinstance(x, TensorBase)]:
            raise Mismatch
        return [convert_value(inner, x) for x in value]
    if kind.size is not None and isinstance(value, (int, float)):
        return [convert_value(inner, value)] * kind.size
    raise Mismatch


def int_value(value: Any) -> int:
    """An int, or a number or tensor of one element that is not a Python float."""
    if isinstance(value, (float, complex, str)) or not hasattr(type(value), "__int__"):
        raise Mismatch
    return int(single_element(value))


def float_value(value: Any) -> float:
    """A float, or a number or tensor of one element."""
    if isinstance(value, (complex, str)) or not hasattr(type(value), "__float__"):
        raise Mismatch
    return float(single_element(value))


def bool_value(value: Any) -> bool:
    """A bool, or what has a truth value of its own."""
    if value is None:
        return False
    if not hasattr(type(value), "__bool__"):
        raise Mismatch
    return bool(single_element(value))


def whichever(value: Any) -> complex:
    """A complex number, or a number or tensor of one element."""
    if isinstance(value, complex):
        return value
    return complex(float_value(value))


def single_element(value: Any) -> Any:
    """The number in a tensor of one element; anything else as it is."""
    if not isinstance(value, TensorBase):
        return value
    if value._array.size != 1:
        raise Mismatch
    return value.item()  # type: ignore[attr-defined]


NUMBERS: dict[str, Any] = {
    "int": int_value, "SymInt": int_value, "float": float_value, "bool": bool_value,
    "complex": whichever,
}  # fmt: skip
EXACT: dict[str, Any] = {
    "str": str, "Scalar": (bool, int, float, complex), "ScalarType": dtypes.dtype,
}  # fmt: skip


# --- arguments ------------------------------------------------------------------------------------
def bind(schema: FunctionSchema, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
    """The arguments of a call, converted: those that may be given by position, and the others."""
    positional = schema.positional
    if len(args) > len(positional):
        raise RuntimeError(
            f"{schema.name}() expected at most {len(positional)} argument(s) but received "
            f"{len(args)} argument(s). Declaration: {schema}"
        )
    check_keywords(schema, args, kwargs)
    found: list[Any] = []
    for at, a in enumerate(positional):
        given = args[at] if at < len(args) else kwargs.get(a.name, MISSING)
        found.append(accept(schema, at, a, given))
    named: dict[str, Any] = {}
    for at, a in enumerate(schema.keyword_only, len(positional)):
        named[a.name] = accept(schema, at, a, kwargs.get(a.name, MISSING))
    return tuple(found), named


MISSING: Any = object()


def check_keywords(schema: FunctionSchema, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse keywords that the schema has not, or that were given by position already."""
    if not kwargs:
        return
    names = [a.name for a in schema.arguments]
    given = names[: len(args)]
    for name in kwargs:
        if name in given:
            raise RuntimeError(
                f"Argument '{name}' specified both as positional and keyword argument. Schema: "
                f"{schema}"
            )
        if name not in names:
            raise RuntimeError(
                f"Unknown keyword argument '{name}' for operator '{schema.name}'. Schema: {schema}"
            )


def accept(schema: FunctionSchema, at: int, a: Argument, value: Any) -> Any:
    """The value of one argument: as given, converted, or its default."""
    if value is MISSING:
        if not a.has_default_value():
            raise RuntimeError(
                f"{schema.name}() is missing value for argument '{a.name}'. Declaration: {schema}"
            )
        return a.default_value
    try:
        return convert_value(a.type, value)
    except Mismatch:
        raise RuntimeError(
            f"{schema.name}() Expected a value of type '{a.type}' for argument '{a.name}' but "
            f"instead found type '{type(value).__name__}'.\nPosition: {at}\nValue: {value!r}\n"
            f"Declaration: {schema}"
        ) from None


def trim_defaults(
    schema: FunctionSchema, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Arguments:
    """The arguments without those that have their default value: a kernel has defaults itself."""
    n = len(args)
    positional = schema.positional
    while n > 0 and is_default(positional[n - 1], args[n - 1]):
        n -= 1
    named = {a.name: a for a in schema.keyword_only}
    return args[:n], {k: x for k, x in kwargs.items() if not is_default(named[k], x)}


def is_default(a: Argument, value: Any) -> bool:
    if not a.has_default_value() or isinstance(value, TensorBase):
        return False
    return type(value) is type(a.default_value) and bool(value == a.default_value)


def tensors_among(values: Any) -> list[Any]:
    """All tensors among values and lists of values."""
    found: list[Any] = []
    for x in values:
        if isinstance(x, TensorBase):
            found.append(x)
        elif isinstance(x, (list, tuple)):
            found.extend(tensors_among(x))
    return found


# --- results --------------------------------------------------------------------------------------
def convert_result(schema: FunctionSchema, value: Any) -> Any:
    """What a kernel returned, as the schema says it: None, one value, or a tuple."""
    kinds = [r.type for r in schema.returns]
    if not kinds:
        if value is not None:
            raise RuntimeError(
                f"Expected PythonKernelHolder for {schema.name} to return None but it returned "
                "something else instead."
            )
        return None
    if len(kinds) == 1:
        return cast_result(kinds[0], value)
    if not isinstance(value, (tuple, list)):
        raise TypeError(f"Object of type '{type(value).__name__}' is not an instance of 'sequence'")
    if len(value) != len(kinds):
        raise RuntimeError(
            f"{schema.name} returned {len(value)} values, but its schema says {len(kinds)}: "
            f"{schema}"
        )
    return tuple([cast_result(kind, x) for kind, x in zip(kinds, value, strict=True)])


def cast_result(kind: Kind, value: Any) -> Any:
    """One result, converted."""
    try:
        return convert_value(kind, value)
    except Mismatch:
        if kind.name == "Tensor":
            raise RuntimeError(f"Unable to cast {value} to Tensor") from None
        raise RuntimeError(
            f"Unable to cast Python instance of type {type(value)} to C++ type '?' (the schema "
            f"says '{kind}')"
        ) from None
