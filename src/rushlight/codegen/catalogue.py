"""Which rules of the op table become kernels: all element-wise ones, and those along the last axis,
that run on symbols and that C has words for.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Iterator
from types import CellType, CodeType, FunctionType
from typing import Any

from rushlight import dtypes
from rushlight.arrays.kernels import name_of, numbers_of, rule_name
from rushlight.codegen import recording
from rushlight.codegen.expressions import COLUMN, EACH, ONE, ROW, Expr, Kernel, in_order
from rushlight.codegen.language import can_write
from rushlight.codegen.module import LIMIT
from rushlight.codegen.recording import Unfit
from rushlight.core.graph import new_node

_F32 = dtypes.float32.numpy


def _node(op: Any, shapes: tuple[Any, ...]) -> Any:
    """A node whose inputs all want gradients, which is what rules look at."""
    count = len(shapes)
    node = new_node(op, (op,) * count, None, (1 << count) - 1)
    node._input_shapes = shapes
    node._input_dtypes = (_F32,) * count
    node._fits_as_is = True
    return node


def with_symbols(op: Any) -> Any:
    """The op with symbols for those of its parameters that are numbers."""
    numbers = numbers_of(op)
    if not numbers:
        return op
    values = [
        recording.param(numbers.index(p)) if p in numbers else getattr(op, p) for p in op.params
    ]
    return type(op)(*values)


def _shapes(count: int, by_rows: bool, rows: int, columns: int) -> list[tuple[int, ...]]:
    return [(rows, columns) if by_rows else (rows * columns,)] * count


def kernel_of(op: Any, rule: str, by_rows: bool, whole: bool = False) -> Kernel | None:
    """The kernel of an op's `forward` or `vjp`; None if it cannot be one."""
    try:
        made, params = with_symbols(op), len(numbers_of(op))
        count = len(op.inputs)

        def run(rows: int, columns: int) -> Any:
            shapes = _shapes(count, by_rows, rows, columns)
            if rule == "forward":
                xs = [recording.array(i, s, _F32, rows, columns) for i, s in enumerate(shapes)]
                return made.forward(*xs)
            kept = len(op.saves)
            given = [recording.array(i, shapes[0], _F32, rows, columns) for i in range(1 + kept)]
            outs = made.vjp(_node(made, tuple(shapes)), *given)
            return tuple(outs)

        outputs, ranks = recording.trace(run, whole)
    except Unfit:
        return None
    number = len(op.inputs) if rule == "forward" else 1 + len(op.saves)
    inputs = tuple(Expr("input", (), i) for i in range(number))
    kernel = Kernel(
        name_of(op, rule), inputs, params, outputs, tuple(n == 2 for n in ranks),
        (type(op).__doc__ or "").strip().split("\n")[0], whole,
    )  # fmt: skip
    fits = max(number, len(outputs), params) <= LIMIT and can_write(kernel)
    computes = any(e.word not in ("input", "const") for e in outputs)
    of_elements = all(e.role != ONE for e in outputs)
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
FUNCTIONS = ("arrays.recurrent.lstm_cell", "arrays.recurrent.lstm_cell_back")


def layer_norms() -> Iterator[Kernel]:
    """Layer normalisation over the last axis, and its gradients."""
    from rushlight.ops.nn.normalization import LayerNorm, Normalise

    eps: Any = recording.param(0)
    op = LayerNorm(1, 2, eps)

    def forward(m: int, n: int, *weights: int) -> Any:
        x = recording.array(0, (m, n), _F32, m, n)
        more = [recording.array(i, (n,), _F32, m, n) if i else None for i in weights]
        return Normalise.forward(op, x, *more)

    def back(m: int, n: int) -> Any:
        gy, x = (recording.array(i, (m, n), _F32, m, n) for i in (0, 3))
        gmean, grstd, mean, rstd = (recording.array(i, (m, 1), _F32, m, n) for i in (1, 2, 5, 6))
        w = recording.array(4, (n,), _F32, m, n)
        node = _node(op, ((m, n), (n,), (n,)))
        return Normalise.vjp(op, node, (gy, gmean, grstd), x, w, mean, rstd)

    def each(i: int) -> Expr:
        return Expr("input", (), i, EACH)

    def column(i: int) -> Expr:
        return Expr("input", (), i, COLUMN)

    def row(i: int) -> Expr:
        return Expr("input", (), i, ROW)

    for title, run, inputs in (
        ("layer_norm", lambda m, n: forward(m, n, 0, 0), (each(0),)),
        ("layer_norm_w", lambda m, n: forward(m, n, 1, 0), (each(0), column(1))),
        ("layer_norm_wb", lambda m, n: forward(m, n, 1, 2), (each(0), column(1), column(2))),
        ("layer_norm_back", back,
         (each(0), row(1), row(2), each(3), column(4), row(5), row(6))),
    ):  # fmt: skip
        outputs, ranks = recording.trace(run)
        keeps = tuple(n == 2 for n in ranks)
        params = sum(e.word == "param" for e in in_order(outputs))
        yield Kernel(title, inputs, params, outputs, keeps, "layer normalisation, row by row")


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
ALONG_ROWS = (("Softmax", (-1,)), ("LogSoftmax", (-1,)))


def instances(cls: Any) -> Iterator[Any]:
    """Ops of a class, one for each choice between formulas that its samples make."""
    from rushlight.ops.sample_inputs import Draw, samples_of

    found: dict[str, Any] = {}
    for sample in samples_of(cls, Draw(1)):
        if type(sample[0]) is cls:
            found.setdefault(name_of(sample[0], ""), sample[0])
    yield from found.values()


def is_everyday(cls: Any) -> bool:
    """Whether an op is one of those that many programs use: the others are in no kernel."""
    return cls.__module__.split(".")[2] in ("arithmetic", "pointwise", "nn", "reduction")


def reductions() -> Iterator[Kernel]:
    """Reductions over the last axis, or over all of an array."""
    from rushlight.ops import fill_rest
    from rushlight.ops.registry import table

    fill_rest()
    for name in sorted(table):
        cls = table[name]
        if not is_everyday(cls) or "dims" not in cls.params or len(cls.inputs) != 1:
            continue
        for op in instances(cls):
            dims = op.dims
            if dims is None or dims == (-1,):
                kernel = kernel_of(op, "forward", by_rows=True, whole=dims is None)
                if kernel is not None:
                    yield kernel


def shipped() -> Iterator[Kernel]:
    """The kernels that are compiled with the package."""
    from rushlight.core.families import Elementwise
    from rushlight.ops.registry import table

    yield from reductions()  # by which the table is full
    for name in sorted(table):
        cls = table[name]
        if not is_everyday(cls) or not issubclass(cls, Elementwise) or cls.variadic:
            continue
        for op in instances(cls):
            for rule in ("forward", "vjp"):
                if rule == "vjp" and (not cls.differentiable or len(cls.inputs) != 1):
                    continue
                kernel = kernel_of(op, rule, by_rows=False)
                if kernel is not None:
                    yield kernel
    by_class = {cls.__qualname__: cls for cls in table.values()}
    for title, values in ALONG_ROWS:
        for rule in ("forward", "vjp"):
            kernel = kernel_of(by_class[title](*values), rule, by_rows=True)
            if kernel is None:
                raise RuntimeError(f"{title}.{rule} gives no kernel")
            yield kernel
    yield from optimisers()
    yield from map(of_function, FUNCTIONS)
    yield from layer_norms()
