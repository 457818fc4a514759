"""A schema from a function's annotations: `infer_schema`, and the `Tag`s that an op may have."""

from __future__ import annotations

import collections.abc
import enum
import inspect
import typing
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import or_
from types import GenericAlias
from typing import Any, NoReturn

from rushlight import dtypes
from rushlight.arrays.device import device
from rushlight.tensor import Tensor

Number = int | float | bool


Tag = enum.Enum(
    "Tag",
    "core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout generated "
    "inplace inplace_view maybe_aliasing_or_mutating needs_contiguous_strides needs_exact_strides "
    "needs_fixed_stride_order nondeterministic_bitwise nondeterministic_seeded out out_variant "
    "pointwise pt2_compliant_tag reduction view_copy",
    start=0,
)
Tag.__doc__ = "What is known of an operator beyond its schema (`torch.Tag`)."


def tags_of(tags: Tag | Iterable[Tag] | None) -> tuple[Tag, ...]:
    """One tag, several or none as a tuple, each once."""
    if tags is None:
        return ()
    return (tags,) if isinstance(tags, Tag) else tuple(dict.fromkeys(tags))


# --- which annotations there are ------------------------------------------------------------------
def derive(base: Any, name: str, lists: bool, of_optional: bool, optional_list: bool) -> Any:
    """A type, `Optional` of it, and the lists that are allowed of it."""
    yield base, name
    yield base | None, f"{name}?"
    if lists:
        for each in sequences(base):
            yield each, f"{name}[]"
    if of_optional:
        for each in sequences(base | None):
            yield each, f"{name}?[]"
    if optional_list:
        for each in sequences(base):
            yield each | None, f"{name}[]?"


def sequences(of: Any) -> tuple[Any, ...]:
    return (
        typing.Sequence[of],  # the old spellings are other objects
        typing.List[of],  # noqa: UP006
        GenericAlias(collections.abc.Sequence, (of,)),
        GenericAlias(list, (of,)),
    )


PARAMETERS: dict[Any, str] = dict(
    pair
    for row in (
        (Tensor, "Tensor", True, True, False),
        (int, "SymInt", True, False, True),
        (float, "float", True, False, True),
        (bool, "bool", True, False, True),
        (str, "str", False, False, False),
        (Number, "Scalar", True, False, False),
        (dtypes.dtype, "ScalarType", False, False, False),
        (device, "Device", False, False, False),
    )
    for pair in derive(*row)
)
RETURNS: dict[Any, str] = {
    Tensor: "Tensor",
    typing.List[Tensor]: "Tensor[]",  # noqa: UP006
    list[Tensor]: "Tensor[]",
    int: "SymInt",
    float: "float",
    bool: "bool",
    Number: "Scalar",
}


class Signature:
    """A function that is to become an operator, while its schema is worked out."""

    def __init__(self, fn: Callable[..., Any], mutates: Any, tags: tuple[Tag, ...]) -> None:
        self.fn = fn
        self.signature = inspect.signature(fn)
        self.mutates: Any = mutates if isinstance(mutates, str) else tuple(mutates)
        self.inplace = Tag.inplace in tags
        self.out = Tag.out in tags
        self.outs: list[tuple[str, str]] = []  # name and alias of what an `out` operator writes

    def refuse(self, what: str) -> NoReturn:
        said = f"infer_schema(func): {what} Got func with signature {self.signature})"
        raise ValueError(said.replace("rushlight.tensor.Tensor", "torch.Tensor"))

    # --- annotations --------------------------------------------------------------------------
    def resolved(self, annotation: Any) -> Any:
        """An annotation with what it says in strings read as Python."""
        if isinstance(annotation, str):
            return self.evaluated(annotation)
        origin = typing.get_origin(annotation)
        if origin is None:
            return annotation
        parts = typing.get_args(annotation)
        found = tuple([self.resolved(part) for part in parts])
        return annotation if found == parts else GenericAlias(origin, found)

    def evaluated(self, text: str) -> Any:
        try:
            return eval(text, getattr(self.fn, "__globals__", {}))
        except NameError as error:
            self.refuse(
                f"Unsupported type annotation {text}. It is not a type. ({error}). If you are "
                "using 'from __future__ import annotations', note that annotations are evaluated "
                "lazily as strings; make sure all types referenced in annotations are importable "
                "at module scope, not only inside a local function."
            )
        except Exception as error:  # whatever evaluating the user's text raises
            self.refuse(
                f"Unsupported type annotation {text}. It is not a type. "
                f"({type(error).__name__}: {error})"
            )

    def kind(self, name: str, annotation: Any) -> str:
        """The schema's word for an argument's annotation."""
        found = self.resolved(annotation)
        word = lookup_annotation(PARAMETERS, found)
        if word is not None:
            return word
        said = f"Parameter {name} has unsupported type {annotation}. "
        if typing.get_origin(found) is tuple:
            said += (
                "We do not support Tuple inputs in schema. As a workaround, please try to use List "
                f"instead. {suggest(found)}"
            )
        self.refuse(said + f"The valid types are: {PARAMETERS.keys()}.")

    # --- parameters ---------------------------------------------------------------------------
    def parameter(self, at: int, param: inspect.Parameter) -> str:
        """One argument of the schema."""
        if param.annotation is inspect.Parameter.empty:
            self.refuse(f"Parameter {param.name} must have a type annotation.")
        kind = self.kind(param.name, param.annotation)
        if self.is_mutated(param.name, kind):
            if self.out:
                self.check_out(param, kind)
                self.outs.append((param.name, f"a{at}"))
            kind = f"Tensor(a{at}!){kind.removeprefix('Tensor')}"
        if param.default is inspect.Parameter.empty:
            return f"{kind} {param.name}"
        return f"{kind} {param.name}={self.default(param)}"

    def is_mutated(self, name: str, kind: str) -> bool:
        if isinstance(self.mutates, str):
            if self.mutates != "unknown":
                raise ValueError(
                    "mutates_args must either be a sequence of the names of the arguments that are "
                    "mutated or the string 'unknown'. "
                )
            return kind.startswith("Tensor")
        if name in self.mutates and not kind.startswith("Tensor"):
            self.refuse(
                f"Parameter {name} is in mutable_args but only Tensors or collections of Tensors "
                "can be mutated"
            )
        return name in self.mutates

    def check_out(self, param: inspect.Parameter, kind: str) -> None:
        if param.kind != inspect.Parameter.KEYWORD_ONLY:
            self.refuse("torch.Tag.out requires mutable arguments to be keyword-only.")
        if kind != "Tensor":
            self.refuse("torch.Tag.out only supports mutable keyword-only Tensor arguments.")

    def default(self, param: inspect.Parameter) -> str:
        value = param.default
        if value is None or isinstance(value, (int, float, bool)):
            return str(value)
        if isinstance(value, (str, device)):
            return f'"{value}"'
        if isinstance(value, dtypes.dtype):
            return str(value).removeprefix("torch.")
        self.refuse(
            f"Parameter {param.name} has an unsupported default value type {type(value)}. Please "
            "file an issue on GitHub so we can prioritize this."
        )

    # --- results ------------------------------------------------------------------------------
    def returns(self) -> str:
        """What is behind the arrow."""
        annotation = self.resolved(self.signature.return_annotation)
        if self.out:
            return self.returned_outs(annotation)
        if annotation is None or annotation is type(None):
            return "()"
        if annotation is inspect.Signature.empty:
            self.refuse("No return type annotation was provided. Please add one.")
        several = typing.get_origin(annotation) is tuple
        parts = typing.get_args(annotation) if several else (annotation,)
        words = [lookup_annotation(RETURNS, part) for part in parts]
        if None in words:
            self.refuse(
                f"Return has unsupported type {annotation}. The valid types are: {RETURNS}."
            )
        inside = ", ".join(str(word) for word in words)
        if not several:
            return inside
        return f"(({inside}))" if len(parts) == 1 else f"({inside})"

    def returned_outs(self, annotation: Any) -> str:
        """An `out` operator returns what it writes."""
        if not self.outs:
            self.refuse("torch.Tag.out requires at least one mutable keyword-only Tensor argument.")
        expected = [Tensor] * len(self.outs)
        given = list(typing.get_args(annotation)) if len(expected) > 1 else [annotation]
        if given != expected:
            self.refuse(
                "torch.Tag.out requires the return annotation to match the mutable keyword-only "
                f"Tensor arguments {tuple(name for name, _ in self.outs)}."
            )
        found = [f"Tensor({alias}!)" for _, alias in self.outs]
        return found[0] if len(found) == 1 else f"({', '.join(found)})"

    def returned_self(self, result: str) -> str:
        """An `inplace` operator writes and returns its first argument."""
        first = next(
            (p for p in self.signature.parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD),
            None,
        )
        if first is None:
            self.refuse("torch.Tag.inplace requires a positional Tensor argument.")
        if self.kind(first.name, first.annotation) != "Tensor":
            self.refuse("torch.Tag.inplace requires the first positional argument to be a Tensor.")
        if isinstance(self.mutates, str) or set(self.mutates) != {first.name}:
            self.refuse(
                "torch.Tag.inplace requires mutates_args to contain exactly the first positional "
                f"argument, got {self.mutates}."
            )
        if result != "Tensor":
            self.refuse("torch.Tag.inplace requires the return annotation to be torch.Tensor.")
        return "Tensor(a0!)"

    # --- the whole ----------------------------------------------------------------------------
    def schema(self) -> str:
        """The schema, without a name."""
        words: list[str] = []
        starred = False
        params = self.signature.parameters
        for at, (_, param) in enumerate(params.items()):
            if param.kind not in (param.POSITIONAL_OR_KEYWORD, param.KEYWORD_ONLY):
                self.refuse("We do not support positional-only args, varargs, or varkwargs.")
            if param.kind is param.KEYWORD_ONLY and not starred:
                words.append("*")
                starred = True
            words.append(self.parameter(at, param))
        unknown = set() if isinstance(self.mutates, str) else set(self.mutates) - set(params)
        if unknown:
            self.refuse(
                f"{unknown} in mutates_args were not found in the custom op's signature. "
                "mutates_args should contain the names of all args that the custom op mutates, or "
                "just the string 'unknown' if you don't know."
            )
        result = self.returns()
        if self.inplace:
            result = self.returned_self(result)
        return f"({', '.join(words)}) -> {result}"


def lookup_annotation(table: dict[Any, str], annotation: Any) -> str | None:
    """The word for an annotation; some annotations cannot be hashed."""
    try:
        return table.get(annotation)
    except TypeError:
        return None


def suggest(annotation: Any) -> str:
    """The list to use instead of a tuple, where there is one."""
    parts = [part for part in typing.get_args(annotation) if part is not ...]
    if not parts:
        return "\n\n"
    list_type = GenericAlias(list, (reduce(or_, parts),))
    return f"For example, {list_type}.\n\n" if list_type in PARAMETERS else "\n\n"


def infer_schema(
    prototype_function: Callable[..., Any], /, *, mutates_args: str | Iterable[str],
    op_name: str | None = None, tags: Tag | Sequence[Tag] | None = (),
) -> str:  # fmt: skip
    """The schema that a function's annotations say.

    `mutates_args` names the arguments that it writes in place, or is "unknown": then all tensors.

    >>> def scale(x: torch.Tensor, by: float = 2.0) -> torch.Tensor:
    ...     return x * by
    >>> torch.library.infer_schema(scale, op_name="scale", mutates_args=())
    'scale(Tensor x, float by=2.0) -> Tensor'
    """
    given = tags_of(tags)
    if Tag.inplace in given and Tag.out in given:
        raise AssertionError("torch.Tag.inplace and torch.Tag.out are mutually exclusive")
    text = Signature(prototype_function, mutates_args, given).schema()
    return text if op_name is None else op_name + text
