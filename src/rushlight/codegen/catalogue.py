"""Which rules of the op table become kernels: all element-wise ones, and those along the last axis,
that run on symbols and that C has words for.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
import math
from collections.abc import Iterator
from types import CellType, CodeType, FunctionType
from typing import Any

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.arrays.kernels import (
    axes_of,
    choice_of,
    name_of,
    number_of_inputs,
    numbers_of,
    rule_name,
)
from rushlight.codegen import recording
from rushlight.codegen.expressions import (
    ANY,
    COLUMN,
    EACH,
    NONE,
    ONE,
    ROW,
    Expr,
    Kernel,
    in_order,
)
from rushlight.codegen.language import can_write
from rushlight.codegen.module import INPUTS, LIMIT
from rushlight.codegen.recording import Unfit
from rushlight.core.graph import new_node

_F32, _BOOL = dtypes.float32.numpy, dtypes.bool_.numpy


def _node(op: Any, shapes: tuple[Any, ...], wanted: int | None = None) -> Any:
    """A node whose inputs, or those of `wanted`, want gradients, which is what rules look at."""
    count = len(shapes)
    wanted = (1 << count) - 1 if wanted is None else wanted
    edges = tuple(op if wanted >> i & 1 else None for i in range(count))
    node = new_node(op, edges, None, wanted)
    node._input_shapes = shapes
    node._input_dtypes = (_F32,) * count
    node._fits_as_is = True
    return node


def with_symbols(op: Any) -> Any:
    """The op with symbols for those of its parameters that are numbers, and for rows as the last
    axis of two if it goes along axes."""
    numbers = numbers_of(op)
    fixed = {"dims": (-1,), "keepdim": False, "dim": -1, "rank": 2} if axes_of(op) else {}
    if not numbers and not fixed:
        return op
    values = [
        recording.param(numbers.index(p), getattr(op, p))
        if p in numbers
        else fixed.get(p, getattr(op, p))
        for p in op.params
    ]
    return type(op)(*values)


# What each input of an op is, in its samples: a number, a truth, or nothing.
_NUMBER, _TRUTH, _NOTHING = "number", "truth", "nothing"


def kernel_of(
    op: Any, rule: str, by_rows: bool, whole: bool = False, wanted: int = 1,
    given: tuple[str, ...] | None = None,
) -> Kernel | None:  # fmt: skip
    """The kernel of an op's `forward`, or of its `vjp` for the gradients of `wanted` (bits); None
    if it cannot be one. `given` says what its inputs are, numbers if nothing is said."""
    given = given or (_NUMBER,) * len(op.inputs)
    number, above = len(op.inputs), None
    params = numbers_of(op)
    if "correction" in params:
        above = params.index("correction")
    try:
        made = with_symbols(op)
        reduces = by_rows and type(made).__qualname__ not in _KEEP_SHAPE

        def run(rows: int, columns: int) -> Any:
            shape = (rows, columns) if by_rows else (rows * columns,)
            result = shape if not reduces else () if whole else (rows,)
            if getattr(op, "reduction", None) == 0:
                result = shape

            def symbol(i: int, of: str, shape: tuple[int, ...]) -> Any:
                if of == _NOTHING:
                    return None
                kind = _F32 if of == _NUMBER else _BOOL
                return recording.array(i, shape, kind, rows, columns)

            with (
                recording.deciding()
                if above is not None
                else recording.valued()
                if choice_of(op)
                else contextlib.nullcontext()
            ):
                if rule == "forward":
                    return made.forward(*[symbol(i, of, shape) for i, of in enumerate(given)])
                kept = [symbol(0, _NUMBER, result)]
                for i, name in enumerate(op.saves):
                    if name in op.inputs:
                        kept.append(symbol(i + 1, given[op.inputs.index(name)], shape))
                    else:
                        kept.append(symbol(i + 1, _NUMBER, result))
                node = _node(made, (shape,) * len(op.inputs), wanted)
                outs = made.vjp(node, *kept)
                return tuple(out for i, out in enumerate(outs) if wanted >> i & 1)

        outputs, ranks = recording.trace(run, whole)
    except (Unfit, TypeError, AttributeError, NotImplementedError, ValueError):
        # of arrays that are None, or tuples of them; of shapes that a rule does not meet
        return None
    roles = {e.value: e for e in in_order(outputs) if e.word == "input"}
    kinds = list(given)
    if rule == "vjp":
        number = 1 + len(op.saves)
        kinds = [_NUMBER] + [
            given[op.inputs.index(n)] if n in op.inputs else _NUMBER for n in op.saves
        ]
        if 0 not in roles or any(e.word == "input" for e in outputs):
            return None  # what does not depend on g, or is handed on, needs no kernel
    inputs = tuple(
        roles.get(i, Expr("input", (), i, NONE if kinds[i] == _NOTHING else ANY))
        for i in range(number)
    )
    if rule == "forward" and any(e.role == ANY for e in inputs):
        return None
    name = (
        name_of(op, rule)
        if rule == "forward" or number_of_inputs(op) == 1
        else (f"{name_of(op, rule)}.{wanted}")
    )
    kernel = Kernel(
        name, inputs, len(params), outputs, tuple(n == 2 for n in ranks),
        (type(op).__doc__ or "").strip().split("\n")[0], whole, above,
    )  # fmt: skip
    fits = max(number, len(outputs), len(params)) <= LIMIT and can_write(kernel)
    computes = any(e.word not in ("input", "const") for e in outputs)
    of_elements = all(e.role != ONE for e in outputs) and any(e.role == EACH for e in inputs)
    return kernel if fits and computes and of_elements else None


# --- rules of optimisers: Note [Kernels of optimisers] in `arrays.kernels` ------------------------
_X = 0.5  # stands for any number but 0 and 1
# for each function, what its rule's free variables may be; what is not named is any number
_OPTIMISERS: dict[str, dict[str, tuple[Any, ...]]] = {
    "sgd": {"decay": (0, _X), "momentum": (0, _X), "damp": (1,), "nesterov": (False, True),
            "key": (False, True)},
    "adam": {"decay": (0, _X), "decoupled_weight_decay": (False, True), "targets": (3, 4)},
    "rmsprop": {"decay": (0, _X), "momentum": (0, _X), "centered": (False, True)},
    "adagrad": {"decay": (0, _X), "slowing": (0, _X)},
    "adadelta": {"decay": (0, _X)},
    "adamax": {"decay": (0, _X)},
    "rprop": {},
}  # fmt: skip
_TARGETS = {"adagrad": 2, "adadelta": 3, "adamax": 3, "rprop": 3}


def _targets(title: str, chosen: dict[str, Any]) -> Any:
    """How many arrays a rule writes."""
    if title == "sgd":
        return 1 if chosen["momentum"] == 0 else 2
    if title == "rmsprop":
        return 2 + (chosen["momentum"] != 0) + chosen["centered"]
    return chosen["targets"] if "targets" in chosen else _TARGETS[title]


def optimisers() -> Iterator[Kernel]:
    """The kernels of optimisers' rules."""
    for title, options in _OPTIMISERS.items():
        outer = getattr(importlib.import_module(f"rushlight.optim.{title}"), title)
        code = next(
            c for c in outer.__code__.co_consts if isinstance(c, CodeType) and c.co_name == "rule"
        )
        for values in itertools.product(*options.values()):
            chosen = dict(zip(options, values, strict=True))
            if title == "sgd" and chosen["momentum"] == 0 and (chosen["nesterov"] or chosen["key"]):
                continue
            yield _of_rule(outer, code, title, chosen)


def _of_rule(outer: Any, code: CodeType, title: str, chosen: dict[str, Any]) -> Kernel:
    count = _targets(title, chosen)
    said: list[Any] = []
    cells = []
    params = 0
    for name in code.co_freevars:
        value = chosen.get(name, False if name == "maximize" else _X)
        if value == _X and type(value) is float:
            said.append(None)
            cells.append(CellType(recording.param(params)))
            params += 1
        else:
            said.append(value)
            cells.append(CellType(value))
    rule = FunctionType(code, outer.__globals__, "rule", None, tuple(cells))
    rule.__qualname__ = f"{title}.<locals>.rule"
    key = chosen.get("key")
    given = recording.param(params) if key is None else key
    with recording.deciding():
        outputs, _ = recording.trace(
            lambda rows, columns: rule(
                given,
                *[recording.array(i, (rows * columns,), _F32, rows, columns)
                  for i in range(count + 1)],
            )
        )  # fmt: skip
    kernel = Kernel(
        rule_name(rule, tuple(said), key, count),
        tuple(Expr("input", (), i) for i in range(count + 1)),
        params + (key is None), outputs, (False,) * len(outputs), f"a step of {title}",
    )  # fmt: skip
    if not can_write(kernel):
        raise RuntimeError(f"no C for {kernel.name}")
    return kernel


# --- functions that are no ops --------------------------------------------------------------------
FUNCTIONS = (
    "arrays.recurrent.lstm_cell",
    "arrays.recurrent.lstm_cell_back",
    "arrays.fused.channel_map",
    "arrays.fused.follow_mean",
    "arrays.fused.follow_var",
)


# Which gradients of x, weight and bias a backward pass asks for, where there is a weight or none.
_WANTS = {
    False: ((True, False, False),),
    True: ((True, True, True), (False, True, True), (True, False, False)),
}


def norms() -> Iterator[Kernel]:
    """Normalisation of rows, and its gradients: with weights for each place of a row, as in layer
    normalisation, or for each row, as in batch normalisation, where rows are channels."""
    from rushlight.arrays.fused import by_mean_square
    from rushlight.ops.nn.normalization import LayerNorm, Normalise

    class ByRow(Normalise):
        axes = summed = (-1,)

        def align_weight(self, w: Any) -> Any:
            return v.reshape(w, (*w.shape, 1))

    eps: Any = recording.param(0)
    by_row = ByRow()
    by_row.eps = eps
    yield from _norms("layer_norm", LayerNorm(1, 2, eps), COLUMN)
    yield from _norms("batch_norm", by_row, ROW)

    def arrays(m: int, n: int) -> Any:
        return [recording.array(i, (m, n) if i == 0 else (m, 1), _F32, m, n) for i in range(3)]

    def affine(m: int, n: int) -> Any:
        x, scale, shift = arrays(m, n)
        return (x * scale + shift,)

    def product(m: int, n: int) -> Any:
        x, scale, _ = arrays(m, n)
        return (x * scale,)

    def mean_square(m: int, n: int, weighs: bool) -> Any:
        x = recording.array(0, (m, n), _F32, m, n)
        w = recording.array(1, (n,), _F32, m, n) if weighs else None
        return (by_mean_square(x, w, eps),)

    for name, weighs in (("rms_norm", False), ("rms_norm_w", True)):
        kinds = (EACH, COLUMN) if weighs else (EACH,)
        yield _traced(name, kinds, functools.partial(mean_square, weighs=weighs))
    yield _traced("channel_affine", (EACH, ROW, ROW), affine)
    yield _traced("channel_product", (EACH, ROW), product)


def _norms(title: str, op: Any, role: str) -> Iterator[Kernel]:
    from rushlight.ops.nn.normalization import Normalise

    def array(i: int, kind: str, m: int, n: int) -> Any:
        shape = {EACH: (m, n), ROW: (m, 1), COLUMN: (n,)}[kind]
        return recording.array(i, (m,) if i == 4 and kind == ROW else shape, _F32, m, n)

    def forward(m: int, n: int, count: int) -> Any:
        x = array(0, EACH, m, n)
        size = (m,) if role == ROW else (n,)
        more = [recording.array(i, size, _F32, m, n) if i <= count else None for i in (1, 2)]
        return Normalise.forward(op, x, *more)

    def back(m: int, n: int, kinds: tuple[str, ...], wants: tuple[bool, ...]) -> Any:
        given = [None if k == NONE else array(i, k, m, n) for i, k in enumerate(kinds)]
        size = (m,) if role == ROW else (n,)
        node = _node(op, ((m, n), size, size), sum(1 << i for i in range(3) if wants[i]))
        outs = Normalise.vjp(op, node, given[:3], *given[3:])
        return tuple(out for out in outs if out is not None)

    for count, name in enumerate(("", "_w", "_wb")):
        kinds = (EACH, role, role)[: count + 1]
        yield _traced(title + name, kinds, functools.partial(forward, count=count))
    for weighs, choices in _WANTS.items():
        kinds = (EACH, ROW, ROW, EACH, role if weighs else NONE, ROW, ROW)
        for wants in choices:
            run = functools.partial(back, kinds=kinds, wants=wants)
            said = "".join(letter for letter, want in zip("xwb", wants, strict=True) if want)
            yield _traced(f"{title}_back{'_w' if weighs else ''}.{said}", kinds, run)


def _traced(name: str, kinds: tuple[str, ...], run: Any) -> Kernel:
    outputs, ranks = recording.trace(run)
    found = {e.value: e for e in in_order(outputs) if e.word == "input"}
    inputs = tuple(
        found.get(i, Expr("input", (), i, NONE if kind == NONE else ANY))
        for i, kind in enumerate(kinds)
    )
    params = sum(e.word == "param" for e in in_order(outputs))
    keeps = tuple(n == 2 for n in ranks)
    return Kernel(name, inputs, params, outputs, keeps, "normalisation, row by row")


def of_function(path: str) -> Kernel:
    """The kernel of a function of arrays, element by element."""
    module, name = path.rsplit(".", 1)
    fn = getattr(importlib.import_module(f"rushlight.{module}"), name)
    count = fn.__code__.co_argcount
    outputs, _ = recording.trace(
        lambda rows, columns: fn(
            *[recording.array(i, (rows * columns,), _F32, rows, columns) for i in range(count)]
        )
    )
    inputs = tuple(Expr("input", (), i) for i in range(count))
    return Kernel(name, inputs, 0, outputs, (False,) * len(outputs), f"rushlight.{path}")


# --- all of them ----------------------------------------------------------------------------------
_KEEP_SHAPE = ("Softmax", "LogSoftmax", "SafeSoftmax")  # along rows, but an element for each


def instances(cls: Any) -> Iterator[Any]:
    """Ops of a class, one for each choice between formulas that its samples make."""
    for op, _ in described(cls):
        yield op


def described(cls: Any) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """The same, with what their inputs are."""
    from rushlight.ops.sample_inputs import Draw, samples_of

    found: dict[str, Any] = {}
    for sample in samples_of(cls, Draw(1)):
        if type(sample[0]) is not cls:
            continue
        kinds = tuple(_kind(x) for x in sample[1:])
        found.setdefault(name_of(sample[0], ""), (sample[0], None if "" in kinds else kinds))
    for op, kinds in found.values():
        yield op, kinds


def _kind(x: Any) -> str:
    """What an input of a sample is; "" for what kernels do not take."""
    if x is None:
        return _NOTHING
    kind = x.dtype.kind if hasattr(x, "dtype") else "f"
    return _TRUTH if kind == "b" else _NUMBER if kind == "f" else ""


def is_everyday(cls: Any) -> bool:
    """Whether an op is one of those that many programs use: the others are in no kernel."""
    return cls.__module__.split(".")[2] in ("arithmetic", "pointwise", "nn", "reduction")


def kernels_of(op: Any, given: tuple[str, ...] | None, by_rows: bool, whole: bool) -> Iterator[Any]:
    """The kernels of an op's rules; of gradients one for each set of inputs that may want one."""
    yield kernel_of(op, "forward", by_rows, whole, 1, given)
    inputs = len(op.inputs)
    if not op.differentiable or inputs > INPUTS:
        return
    wanting = [i for i in range(inputs) if given is None or given[i] == _NUMBER]
    if "rank" in op.params:
        wanting = [0]  # of losses: few ask for the gradient of a target
    for wanted in range(1, 1 << inputs):
        if all(i in wanting for i in range(inputs) if wanted >> i & 1):
            yield kernel_of(op, "vjp", by_rows, whole, wanted, given)


def of_table() -> Iterator[Kernel]:
    """The kernels of all ops of the table that give some."""
    from rushlight.core.families import Elementwise
    from rushlight.ops import fill_rest
    from rushlight.ops.nn.loss import Loss
    from rushlight.ops.registry import table

    fill_rest()
    seen: set[str] = set()
    for name in sorted(table):
        cls = table[name]
        title = cls.__qualname__
        if not (is_everyday(cls) or title in ELEMENTWISE) or cls.variadic or title in _RARE:
            continue
        along = "dims" in cls.params or cls.__qualname__ in _KEEP_SHAPE
        loss = issubclass(cls, Loss)
        if not (issubclass(cls, Elementwise) or along or loss or cls.__qualname__ in ELEMENTWISE):
            continue
        for op, given in described(cls):
            if getattr(op, "ord", 2) not in (1, 2, math.inf):
                continue
            whole = loss and op.reduction != 0
            for kernel in kernels_of(op, given, along or whole, whole):
                if kernel is not None and kernel.name not in seen:
                    seen.add(kernel.name)
                    yield kernel


ELEMENTWISE = ("Where", "MaskedFill")  # that are of no family
# Used so rarely that their kernels are not worth their place in the package.
_RARE = frozenset(
    ("Dist", "Renorm", "Logaddexp", "Logaddexp2", "Xlog1py", "NextAfter",
     "MedianAll", "NanMedianAll", "RreluWithNoise", "PowToComplex", "Angle", "StdMean", "AminMax",
     "Erfcx", "Ndtri", "Entr", "AddCDiv", "Ldexp", "Fmod")
)  # fmt: skip


def shipped() -> Iterator[Kernel]:
    """The kernels that are compiled with the package."""
    yield from of_table()
    yield from optimisers()
    yield from map(of_function, FUNCTIONS)
    yield from norms()
