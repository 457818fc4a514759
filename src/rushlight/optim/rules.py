"""How the rules of optimisers read and write tensors, and what they share.

Note [Rules of optimisers]
    A rule is plain maths, element by element: (key, gradient, parameter, what is kept) to (new
    parameter, new kept). The key holds what is the same for the whole parameter: its step's number,
    and what else a rule reads. `add_to`, `scale` and `compute_into` change the parameter and what
    is kept in their own memory, which spares a pass over it; the gradient is nobody's to change.
    Usually a rule runs on raw arrays, which nothing records: on large ones block by block, so that
    what it computes on the way stays in the processor's cache, and on many small ones at once, side
    by side in one array. While gradients are recorded, as a step with `differentiable=True` does,
    the same rule runs on tensors: then the step itself can be differentiated, by the learning rate
    for one.
    A rule stands in the function that PyTorch has for it (`adam`, `sgd`), which takes lists of
    tensors; the optimisers' classes call that.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import nullcontext
from itertools import chain
from typing import Any, Final, TypeAlias

from rushlight import dtypes
from rushlight.arrays.host import is_array, put_off
from rushlight.arrays.kernels import rule_kernel
from rushlight.arrays.vocabulary import add, as_complex, as_pairs, concat, multiply, overwrite
from rushlight.core.fp_warnings import quietly
from rushlight.core.grad_mode import grad_enabled
from rushlight.core.graph import TensorBase
from rushlight.core.optimizer_loops import arrays_of, count_up, count_writes
from rushlight.core.saved.packed import before_write, saving_now
from rushlight.core.views.inplace import turn
from rushlight.ops.numbers import python_number
from rushlight.ops.registry import functions

Rule: TypeAlias = Callable[..., tuple[Any, ...]]

BLOCK: Final = 1 << 16  # elements: from there on NumPy reuses what it computed on the way
SMALL: Final = 1 << 11  # elements: larger arrays are not worth laying side by side
FLAGS: Final[dict[str, Any]] = {  # options that came late: older states lack them
    "foreach": None, "maximize": False, "capturable": False, "differentiable": False,
}  # fmt: skip


def update(rule: Rule, keys: Sequence[Hashable], grads: list[Any], *targets: list[Any]) -> None:
    """targets = rule(key, grad, *targets), for each parameter: `targets` are lists, the parameters
    first, then what the optimiser keeps. See Note [Rules of optimisers]."""
    if not grads:
        return
    if grad_enabled():
        for key, grad, *into in zip(keys, grads, *targets):
            into = [as_real_pairs(t) for t in into]
            grad = functions["resolve_conj"](grad)
            for t, y in zip(into, rule(key, as_real_pairs(grad), *into)):
                t.copy_(y)
        return
    if saving_now() is not None:
        for t in chain(*targets):
            before_write(t)
    columns = [list(column) for column in (grads, *targets)]
    left = _by_kernel(rule, keys, columns)
    if left:
        quietly(_on_arrays, rule, keys, columns, left)
    count_writes(columns[1:])


def update_whole(rule: Rule, keys: Sequence[Any], grads: Sequence[Any], *targets: Any) -> None:
    """The same for a rule that reads a parameter as a whole, its rows and columns, say."""
    if grad_enabled():
        update(rule, keys, list(grads), *targets)
        return
    for key, grad, *into in zip(keys, grads, *targets):
        for t in into:
            before_write(t)
        raws = [_raw(t) for t in (grad, *into)]
        quietly(_one, rule, key, into[0], raws, False)
        _put_back(_conjugates(into, raws))
        for t in into:
            t._storage.written()


def update_rows(rule: Rule, key: Hashable, grad: Any, *targets: Any) -> None:
    """The same for a sparse gradient: only the rows that it has are read and written."""
    grad = grad.coalesce()
    where, values = grad._indices(), grad._values()
    if values.numel() == 0:
        return
    rows = tuple(where[i] for i in range(where.shape[0]))
    into = [t.detach() for t in targets]
    for t, new in zip(into, rule(key, values, *(t[rows] for t in into))):
        t[rows] = new


def add_to(x: Any, y: Any) -> Any:
    """x + y, for a rule: in the memory of `x` where that is a raw array."""
    return add(x, y, out=x) if is_array(x) else x + y


def scale(x: Any, factor: Any) -> Any:
    """factor x, for a rule: in the memory of `x` where that is a raw array."""
    return multiply(x, factor, out=x) if is_array(x) else x * factor


def descent_direction(g: Any, p: Any, maximize: bool, decay: Any) -> Any:
    """The gradient to step against, for a rule: negated to maximize, with weight decay added."""
    if maximize:
        g = -g
    return g + decay * p if decay != 0 else g


def compute_into(word: Any, x: Any, *operands: Any) -> Any:
    """word(*operands), for a rule: in the memory of `x` where that is a raw array."""
    return word(*operands, out=x) if is_array(x) else word(*operands)


def _by_kernel(rule: Rule, keys: Sequence[Hashable], columns: list[list[Any]]) -> list[int]:
    """One pass of a kernel over each parameter, its gradient and what is kept for it, if there is
    one: all that have one key in one call. Gives the numbers of the parameters that it left."""
    arrays = arrays_of(columns)
    params = columns[1]
    alone = turn(params[0]) is None  # no other thread is to wait for
    if alone and keys.count(keys[0]) == len(keys):
        kernel = rule_kernel(rule, keys[0], len(columns) - 1)
        return list(range(len(keys))) if kernel is None else kernel.update(*arrays)
    numbers: dict[Hashable, list[int]] = {}
    for i, key in enumerate(keys):
        numbers.setdefault(key, []).append(i)
    left = []
    for key, own in numbers.items():
        kernel = rule_kernel(rule, key, len(columns) - 1)
        if kernel is None:
            left += own
            continue
        for some in [own] if alone else [[i] for i in own]:
            with turn(params[some[0]]) or nullcontext():
                found = kernel.update(*[[column[i] for i in some] for column in arrays])
            left += [some[j] for j in found]
    return left


def _on_arrays(
    rule: Rule, keys: Sequence[Hashable], columns: list[list[Any]], left: list[int]
) -> None:
    """The rule by NumPy, for the parameters of the numbers `left`."""
    bundles: dict[tuple[Hashable, Any], list[list[Any]]] = {}
    several = len(left) > 1 and turn(columns[1][0]) is None  # no other thread is to wait for
    apart: list[tuple[Any, Any]] = []
    for i in left:
        key = keys[i]
        grad, *into = [column[i] for column in columns]
        raws = [_raw(grad)]
        for t in into:
            raws.append(_raw(t))
        g = raws[0]
        if grad._array.dtype.kind == "c":
            apart += _conjugates(into, raws)
        if several and g.size <= SMALL and _is_plain(raws):
            bundles.setdefault((key, g.dtype), []).append(raws)
        else:
            _one(rule, key, into[0], raws, g.size > BLOCK and _is_plain(raws))
    for (key, _), rows in bundles.items():
        start, total = 0, 0
        for i, raws in enumerate(rows):
            total += raws[0].size
            if total >= BLOCK or i == len(rows) - 1:
                _side_by_side(rule, key, rows[start : i + 1])
                start, total = i + 1, 0
    _put_back(apart)


def _conjugates(into: Sequence[Any], raws: list[Any]) -> list[tuple[Any, Any]]:
    """Those that are conjugate views, with the pairs that the rule writes: copies, for no view of
    their memory shows those."""
    return [(t, raw) for t, raw in zip(into, raws[1:]) if put_off(t._array) & 1]


def _put_back(apart: list[tuple[Any, Any]]) -> None:
    for t, raw in apart:
        overwrite(t._array, as_complex(raw))


def _is_plain(raws: list[Any]) -> bool:
    """Whether arrays lie in one piece, and are of one dtype."""
    kind = raws[0].dtype
    for a in raws:
        if not is_array(a) or not a.flags.c_contiguous or a.dtype is not kind:
            return False
    return True


def _one(rule: Rule, key: Hashable, param: Any, raws: list[Any], cut: bool) -> None:
    mine = turn(param)
    if mine is None:
        _run(rule, key, raws, cut)
    else:
        with mine:
            _run(rule, key, raws, cut)


def _run(rule: Rule, key: Hashable, raws: list[Any], cut: bool) -> None:
    if not cut:
        _write(raws, rule(key, *raws))
        return
    raws = [raw.reshape(-1) for raw in raws]
    for start in range(0, raws[0].size, BLOCK):
        parts = [raw[start : start + BLOCK] for raw in raws]
        _write(parts, rule(key, *parts))


def _write(raws: list[Any], results: tuple[Any, ...]) -> None:
    for i, y in enumerate(results):
        raw = raws[i + 1]  # behind the gradient
        if y is not raw:
            overwrite(raw, y)


def _side_by_side(rule: Rule, key: Hashable, rows: list[list[Any]]) -> None:
    """Small arrays, laid into one another's place: one run of the rule does for all."""
    columns = [[raw.reshape(-1) for raw in column] for column in zip(*rows)]
    results = rule(key, *(concat(column, 0) for column in columns))
    for column, y in zip(columns[1:], results):
        start = 0
        for raw in column:
            stop = start + raw.size
            raw[:] = y[start:stop]
            start = stop


def _raw(t: Any) -> Any:
    a = t._array
    return as_pairs(a) if a.dtype.kind == "c" else a


def as_real_pairs(t: Any) -> Any:
    """A complex tensor as pairs of real numbers, over the same memory."""
    return functions["view_as_real"](t) if t._array.dtype.kind == "c" else t


# --- options and states ---------------------------------------------------------------------------
def option_values(*options: Any) -> tuple[Any, ...]:
    """Options as numbers; while gradients are recorded tensors stay tensors, for their own."""
    recorded = grad_enabled()
    return tuple([x if type(x) is float else _number(x, recorded) for x in options])


def _number(x: Any, recorded: bool) -> Any:
    if isinstance(x, TensorBase):
        return x if recorded else x._array.item()
    return python_number(x)


def put_scalar(kept: Any, value: float) -> float:
    """Put a number into the 0-d tensor that is kept for a parameter: gives it as it is kept."""
    a = kept._array
    if is_array(a):
        a.fill(value)
        kept._storage.version += 1
    else:
        kept.fill_(value)
    return float(kept._array.item())


def put_product(kept: Any, factor: float) -> float:
    """The same of the kept number times a factor, multiplied in the dtype it is kept in."""
    a = kept._array
    return put_scalar(kept, (a * factor).item() if is_array(a) else a.item() * factor)


def count_steps(steps: Iterable[Any]) -> list[int]:
    """One step more for each parameter, kept as the 0-d tensors that PyTorch keeps."""
    steps = list(steps)
    counts = count_up(steps)
    if counts is not None:
        return counts
    return [int(put_scalar(step, step._array.item() + 1.0)) for step in steps]


def scalar_dtype() -> Any:
    """Of the numbers that are kept for a parameter, such as its count of steps."""
    return dtypes.float64 if dtypes.default is dtypes.float64 else dtypes.float32


def scalar(value: float) -> Any:
    """A number that is kept for a parameter."""
    return functions["tensor"](float(value), dtype=scalar_dtype())


def zero_step() -> Any:
    """The step count of a new state."""
    return scalar(0.0)


def column(states: list[dict[str, Any]], name: str) -> list[Any]:
    """What is kept under one name, of all parameters."""
    return [state[name] for state in states]


def unscaled(grads: list[Any], scale: Any, found_inf: Any) -> list[Any]:
    """Gradients divided by the scale of a `GradScaler`; none if they are not finite."""
    if found_inf is not None and found_inf.item():
        return []
    return grads if scale is None else [g / scale for g in grads]


# --- checks ---------------------------------------------------------------------------------------
def check_lr(lr: Any, text: str = "Invalid learning rate: {}") -> None:
    if isinstance(lr, TensorBase):
        if lr._array.size != 1:
            raise ValueError("Tensor lr must be 1-element")
        lr = lr._array.item()
    if not lr >= 0.0:  # nan neither
        raise ValueError(text.format(lr))


def check(**options: Any) -> None:
    """Refuse options that are out of range, in the order given. Most must not be negative."""
    for name, value in options.items():
        if name == "lr":
            check_lr(value)
        elif name == "betas":
            for i, beta in enumerate(value):
                if not 0.0 <= beta < 1.0:
                    raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
        elif not value >= 0.0:
            shown = "epsilon" if name == "eps" else name
            raise ValueError(f"Invalid {shown} value: {value}")


def check_flags(fused: bool | None, foreach: bool | None, differentiable: bool) -> None:
    """The combinations of implementations that PyTorch refuses. Here there is one."""
    if fused:
        if differentiable:
            raise RuntimeError("`fused` does not support `differentiable`")
        if foreach:
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
