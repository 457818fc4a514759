"""Kernels at run time: the compiled function of an op's rule, where the package has one.

`rushlight.codegen` writes kernels from the op table while the package is built. An op looks for its
own once, when it is first run; a kernel gives None for what it is not made for (it takes float32,
float64, bfloat16 and float16 of NumPy's, and Python numbers beside them), and then the rule itself
is run. With RUSHLIGHT_KERNELS=0 in the environment there are none.

Note [Kernels of optimisers]
    An optimiser's rule is a function inside another, and what it reads of that one's variables are
    numbers and choices. The name of its kernel says which of them are what: a number that is 0 or
    1 often stands for a choice too ("no momentum"), and has kernels of its own. All others are the
    kernel's parameters, in the order of the rule's free variables; the step's key comes last.
"""

from __future__ import annotations

import functools
import importlib
import os
from typing import Any, Final

import ml_dtypes
import numpy as np

from rushlight.random.generator import draw_with

# parameters that say where, not how much: a kernel is told of them when an op looks for it
_AXES: Final = ("dim", "dims", "keepdim", "rank")
# numbers that choose between formulas
_CHOICES: Final = ("width", "decimals", "reduction", "exponent", "ord", "p", "n")
_INPUTS: Final = 4  # of an op whose gradients have kernels


def _find_module() -> Any:
    if os.environ.get("RUSHLIGHT_KERNELS") == "0":
        return None
    try:
        return importlib.import_module("rushlight._kernels")
    except ImportError:  # not compiled: every op takes the way over NumPy
        return None


def _is_absent(*args: Any) -> None:
    """In the place of a function that is not there."""


_module: Final = _find_module()
table: Final[dict[str, Any]] = getattr(_module, "table", {})
Kernel: Final[Any] = type(next(iter(table.values()), object()))
# The sum of two arrays of 16 bits, which NumPy is slow to add.
add_halves: Final[Any] = table.get("Add.alpha=1.forward", _is_absent)
# How many threads kernels use: Note [Workers] in `codegen.multithreading`.
use_threads: Final[Any] = getattr(_module, "use_threads", _is_absent)
# The loss of class numbers: `codegen.classes`.
nll: Final[Any] = getattr(_module, "nll", _is_absent)
nll_back: Final[Any] = getattr(_module, "nll_back", _is_absent)
# Running sums: Note [Running sums] in `codegen.scans`.
running: Final[Any] = getattr(_module, "running", _is_absent)
products_of_others: Final[Any] = getattr(_module, "products_of_others", _is_absent)
# Products of matrices: `codegen.matrices`.
multiplied: Final[Any] = getattr(_module, "multiplied", _is_absent)
multiplied_back: Final[Any] = getattr(_module, "multiplied_back", _is_absent)
multiplied_batches: Final[Any] = getattr(_module, "multiplied_batches", _is_absent)
multiplied_vectors: Final[Any] = getattr(_module, "multiplied_vectors", _is_absent)
# Vector products: `codegen.vectors`.
crossed: Final[Any] = getattr(_module, "crossed", _is_absent)
crossed_back: Final[Any] = getattr(_module, "crossed_back", _is_absent)
# Convolutions that move by 1: Note [Shifted products] in `codegen.products`.
correlate: Final[Any] = getattr(_module, "correlate", _is_absent)
correlate_weight: Final[Any] = getattr(_module, "correlate_weight", _is_absent)
# Random numbers: `codegen.draws`.
Twister: Final[Any] = getattr(_module, "Twister", None)
if Twister is not None:
    draw_with(Twister)
# Where the user's code is: `codegen.call_site`; None where there are no kernels.
offset_in: Final[Any] = getattr(_module, "offset_in", None)
# Functions that ask compiled code first: Note [Public functions] in `codegen.public_function`.
PublicFunction: Final[Any] = getattr(_module, "PublicFunction", None)
_look: Final[Any] = getattr(_module, "look", _is_absent)
# Views: `codegen.strides`.
view_transpose: Final[Any] = getattr(_module, "view_transpose", _is_absent)
view_permute: Final[Any] = getattr(_module, "view_permute", _is_absent)
view_select: Final[Any] = getattr(_module, "view_select", _is_absent)
view_slice: Final[Any] = getattr(_module, "view_slice", _is_absent)
view_unsqueeze: Final[Any] = getattr(_module, "view_unsqueeze", _is_absent)
view_squeeze: Final[Any] = getattr(_module, "view_squeeze", _is_absent)
view_reshape: Final[Any] = getattr(_module, "view_reshape", _is_absent)
view_expand: Final[Any] = getattr(_module, "view_expand", _is_absent)
# Copies: `codegen.moves`.
copied: Final[Any] = getattr(_module, "copied", _is_absent)
in_new_rows: Final[Any] = getattr(_module, "in_new_rows", _is_absent)
joined: Final[Any] = getattr(_module, "joined", _is_absent)
stacked: Final[Any] = getattr(_module, "stacked", _is_absent)
embedded: Final[Any] = getattr(_module, "embedded", _is_absent)
padded: Final[Any] = getattr(_module, "padded", _is_absent)
flipped: Final[Any] = getattr(_module, "flipped", _is_absent)
rolled: Final[Any] = getattr(_module, "rolled", _is_absent)
tiled: Final[Any] = getattr(_module, "tiled", _is_absent)
triangle: Final[Any] = getattr(_module, "triangle", _is_absent)
recast: Final[Any] = getattr(_module, "recast", _is_absent)
getattr(_module, "know_bfloat", _is_absent)(np.dtype(ml_dtypes.bfloat16).num)
same: Final[Any] = getattr(_module, "same", _is_absent)
margined: Final[Any] = getattr(_module, "margined", _is_absent)
unmargined: Final[Any] = getattr(_module, "unmargined", _is_absent)
# Reading and writing by index: `codegen.members`.
within: Final[Any] = getattr(_module, "within", _is_absent)
picked: Final[Any] = getattr(_module, "picked", _is_absent)
selected: Final[Any] = getattr(_module, "selected", _is_absent)
looked_up: Final[Any] = getattr(_module, "looked_up", _is_absent)
unpicked: Final[Any] = getattr(_module, "unpicked", _is_absent)
put_rows: Final[Any] = getattr(_module, "put_rows", _is_absent)
gathered: Final[Any] = getattr(_module, "gathered", _is_absent)
put_along: Final[Any] = getattr(_module, "put_along", _is_absent)
# New arrays: `codegen.makers`.
filled: Final[Any] = getattr(_module, "filled", _is_absent)
filled_as: Final[Any] = getattr(_module, "filled_as", _is_absent)
of_numbers: Final[Any] = getattr(_module, "of_numbers", _is_absent)
spread: Final[Any] = getattr(_module, "spread", _is_absent)
counted: Final[Any] = getattr(_module, "counted", _is_absent)
# Order and masks: `codegen.sorting`.
ranked: Final[Any] = getattr(_module, "ranked", _is_absent)
extreme: Final[Any] = getattr(_module, "extreme", _is_absent)
extreme_place: Final[Any] = getattr(_module, "extreme_place", _is_absent)
nonzero: Final[Any] = getattr(_module, "nonzero", _is_absent)
nonzero_places: Final[Any] = getattr(_module, "nonzero_places", _is_absent)
masked: Final[Any] = getattr(_module, "masked", _is_absent)
unmasked: Final[Any] = getattr(_module, "unmasked", _is_absent)
# Attention: `codegen.attention`.
attention_forward: Final[Any] = getattr(_module, "attention_forward", _is_absent)
attention_backward: Final[Any] = getattr(_module, "attention_backward", _is_absent)
attention_weights: Final[Any] = getattr(_module, "attention_weights", _is_absent)
attention_gradients: Final[Any] = getattr(_module, "attention_gradients", _is_absent)
if_within: Final[Any] = getattr(_module, "if_within", _is_absent)
of_given: Final[Any] = getattr(_module, "of_given", _is_absent)
bound: Final[Any] = functools.partial  # a kernel with the parameters of an op


def look(source: Any, shown: Any) -> Any:
    """A function that gives this view of any array that lies in memory as `source` does, and None
    of all others; None if `shown` is no view of `source`. See `codegen.looks`."""
    base = getattr(shown, "base", None)
    if base is None or shown is source:
        return None
    return _look(source, shown) if base is source or base is source.base else None


@functools.cache
def sum_over(axes: tuple[int, ...] | None, keep: bool) -> Any:
    """The kernel of a sum over these axes."""
    kernel = table.get("Sum.dtype=None.forward")
    return _is_absent if kernel is None else kernel.over(axes, keep)


_titles: Final = {name.partition(".")[0] for name in table}  # of classes that have a kernel


def kernel_of(op: Any, rule: str) -> Any:
    """The kernel of an op's `forward` or `vjp`, with the op's parameters; None if there is none.

    The kernel of a `vjp` of several inputs takes first which of their gradients are wanted (bits),
    and gives a tuple with None for the others. An op whose kernel is no expression (it moves
    numbers, or runs along an axis) has a method `mover` that says which it is.
    """
    if not table:
        return None
    mover = getattr(op, "mover", None)
    return expression_of(op, rule) if mover is None else mover(rule)


def expression_of(op: Any, rule: str) -> Any:
    """The kernel that was made of the rule itself; None if there is none."""
    if not table or _class_of(op).__qualname__ not in _titles:
        return None
    key = (rule, *_choices_of(op))
    known = _by_choices.get(key)
    if known is None:
        known = _by_choices[key] = (numbers_of(op), _kernels_by_name(op, rule))
    numbers, kernels = known
    if not kernels:
        return None
    values = [getattr(op, p) for p in numbers]
    if 0 in kernels:
        return _for_op(op, kernels[0], values)
    bound = {wanted: _for_op(op, kernel, values) for wanted, kernel in kernels.items()}
    return _module.family(number_of_inputs(op), bound)


# Of ops that differ in numbers alone, the names of these numbers, and the kernels: by which
# gradients are wanted, or one under 0. To find them takes longer than to compute on small arrays,
# and programs make such ops at every step, of a learning rate that falls.
_by_choices: Final[dict[Any, tuple[list[str], dict[int, Any]]]] = {}


def _choices_of(op: Any) -> list[Any]:
    """What the kernels of an op depend on: its class, and parameters that are no numbers."""
    cls = _class_of(op)
    found = [cls, type(op)]
    for p in cls.params:
        if p in _AXES:
            continue
        value = getattr(op, p)
        kind = type(value)
        if kind is float and p not in _CHOICES:
            found.append(float)
        elif kind is int and p not in _CHOICES:
            found.append(1 if value == 1 and _is_factor(op, p) else float)
        else:
            found.append(repr(value))
    return found if not hasattr(op, "choice") else [*found, op.choice()]


def _kernels_by_name(op: Any, rule: str) -> dict[int, Any]:
    name = name_of(op, rule)
    inputs = number_of_inputs(op)
    if rule == "forward" or inputs == 1:
        kernel = table.get(name)
        if kernel is not None and rule == "vjp" and getattr(op, "has_rule_for_halves", False):
            kernel = kernel.wide()
        return {} if kernel is None else {0: kernel}
    every = range(1, 1 << inputs if inputs <= _INPUTS else 0)
    return {wanted: k for wanted in every if (k := table.get(f"{name}.{wanted}")) is not None}


def is_expression(kernel: Any) -> bool:
    """Whether a kernel computes what a rule says and nothing else: it asks nobody, never warns."""
    return type(kernel) is Kernel


def _for_op(op: Any, kernel: Any, numbers: list[Any]) -> Any:
    """A kernel with the numbers and the axes of an op."""
    if numbers:
        kernel = kernel.bind(*numbers)
    axes = axes_of(op)
    return kernel if axes is None else kernel.over(axes[0], getattr(op, "keepdim", False))


def number_of_inputs(op: Any) -> int:
    """How many gradients its `vjp` gives."""
    return len(op.inputs)


def axes_of(op: Any) -> Any:
    """The axes that an op goes along, in a tuple: None there means all, an empty tuple none. None
    if the op is not of such."""
    if "rank" in op.params:
        return (tuple(range(-op.rank, 0)),)
    along = "dims" in op.params or ("dim" in op.params and hasattr(op, "dims"))
    return (op.dims,) if along else None


def name_of(op: Any, rule: str) -> str:
    """What the kernel of an op's rule is called: parameters that choose between formulas are part
    of its name, those that are numbers or axes are given to it."""
    numbers = numbers_of(op)
    chosen = [
        f"{p}={value:g}" if type(value) in (int, float) else f"{p}={value}"
        for p, value in [(p, getattr(op, p)) for p in _class_of(op).params]
        if p not in numbers and p not in _AXES
    ]
    return ".".join([_class_of(op).__qualname__, *chosen, *choice_of(op), rule])


def choice_of(op: Any) -> list[str]:
    """What a rule asks about a number that is a parameter: such an op says it as `choice`."""
    return [op.choice()] if hasattr(op, "choice") else []


def _class_of(op: Any) -> Any:
    """The class whose kernels an op has: its own, or the one that it `has_rules_of`."""
    return vars(type(op)).get("has_rules_of", type(op))


def _is_factor(op: Any, p: str) -> bool:
    """Whether a parameter is what something is multiplied by."""
    return p == "alpha" or (p == "value" and len(op.inputs) == 3)


def numbers_of(op: Any) -> list[str]:
    """The parameters of an op that a kernel is given as numbers. A factor that is the whole number
    1 is none: it says that there is no factor."""
    found = []
    for p in _class_of(op).params:
        value = getattr(op, p)
        if p in _CHOICES or p in _AXES:
            continue
        if type(value) is float or (type(value) is int and (value != 1 or not _is_factor(op, p))):
            found.append(p)
    return found


# --- Note [Kernels of optimisers] -----------------------------------------------------------------
def rule_name(rule: Any, chosen: tuple[Any, ...], key: Any, targets: int) -> str:
    """What the kernel of an optimiser's rule is called; `chosen` has a value for each of its free
    variables, None where that is a parameter."""
    names = rule.__code__.co_freevars
    said = [f"{n}={v}" for n, v in zip(names, chosen, strict=True) if v is not None]
    title = rule.__qualname__.split(".")[0]
    return ".".join([title, *said, f"key={key}" if type(key) is bool else "key", f"{targets}"])


_by_values: Final[dict[Any, tuple[Any, list[Any]]]] = {}
_PLAIN: Final = frozenset((bool, int, float, type(None)))


def rule_kernel(rule: Any, key: Any, targets: int) -> Any:
    """The kernel of an optimiser's rule with these free variables; None if there is none."""
    if not table:
        return None
    values = [cell.cell_contents for cell in rule.__closure__ or ()]
    kinds = [type(value) for value in values]
    if not _PLAIN.issuperset(kinds):
        return None
    chosen = key if type(key) is bool else None
    at = (rule.__code__, targets, chosen, *values, *kinds)  # True is not 1
    found = _by_values.get(at)
    if found is None:
        if len(_by_values) >= 512:  # of a learning rate that falls
            _by_values.clear()
        found = _by_values[at] = _kernel_and_numbers(rule, values, chosen, targets)
    kernel, numbers = found
    if kernel is None:
        return None
    if type(key) is bool:
        return kernel.bind(*numbers)
    return kernel.bind(*numbers, key) if type(key) in (float, int) else None


def _kernel_and_numbers(
    rule: Any, values: list[Any], key: bool | None, targets: int
) -> tuple[Any, list[Any]]:
    chosen: list[Any] = []
    numbers: list[Any] = []
    for value in values:
        if type(value) is bool or value is None:
            chosen.append(value is True)
        elif value < 0:
            return None, numbers
        elif value in (0, 1):
            chosen.append(int(value))
        else:
            chosen.append(None)
            numbers.append(value)
    return table.get(rule_name(rule, tuple(chosen), key, targets)), numbers
