"""What `gradcheck` does: derivatives by the rules against finite differences.

`gradcheck` imports this file when it is first called.

Note [Two numbers for one Jacobian]
    Slow mode compares every element: columns by differences, rows by backward passes. Fast mode
    compares one number for each pair of an output and an input: v'Ju with random u and v, from two
    evaluations and one backward pass.

Note [Complex]
    A complex output is checked as its imaginary part and then its real part, which are real
    functions. For a complex input z = x + iy both ways give ds/dx + i ds/dy, PyTorch's gradient
    of a real s. Forward mode needs real inputs: the two parts of each are checked in turn.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

from rushlight import dtypes
from rushlight.autograd import forward_ad
from rushlight.autograd.api import grad
from rushlight.autograd.function import Function
from rushlight.autograd.functional import slopes_along
from rushlight.autograd.gradcheck import GradcheckError
from rushlight.core.graph import TensorBase, wrap
from rushlight.ops.registry import functions
from rushlight.random import Generator

Func = Callable[..., Any]
Tensors = tuple[Any, ...]


# --- what is checked ------------------------------------------------------------------------------
def sequence_as_tuple(x: Any) -> Tensors:
    if isinstance(x, (tuple, list)):
        return tuple(x)
    return (x,)


def is_differentiable(x: Any) -> bool:
    return isinstance(x, TensorBase) and bool(x.requires_grad)  # type: ignore[attr-defined]


def is_continuous(x: Any) -> bool:
    """Whether `x` is a tensor that can have derivatives."""
    return isinstance(x, TensorBase) and x._array.dtype.kind in "fcVW"


def find_requiring(xs: Any) -> list[Any]:
    """The tensors that ask for gradients, also those inside lists and tuples."""
    if isinstance(xs, TensorBase):
        return [xs] if is_differentiable(xs) else []
    if isinstance(xs, (list, tuple)):
        return [t for x in xs for t in find_requiring(x)]
    return []


def requiring_grad(x: Any) -> Tensors:
    return tuple(y for y in sequence_as_tuple(x) if is_differentiable(y))


class Check:
    """One function at one point, and how closely its derivatives must agree."""

    def __init__(
        self, func: Func, inputs: Tensors, eps: float, atol: float, rtol: float,
        nondet_tol: float, dtypes_too: bool, fast: bool,
    ) -> None:  # fmt: skip
        self.func = func
        self.inputs = inputs
        self.eps = eps
        self.atol = atol
        self.rtol = rtol
        self.nondet_tol = nondet_tol
        self.dtypes_too = dtypes_too
        self.fast = fast
        self.forward = False  # check forward mode, not backward
        self.part = ""  # "real" or "imaginary", where one part of complex numbers is checked
        self.parts: list[int] = []  # of which outputs (backward) or inputs (forward)

    def of(self, func: Func, inputs: Tensors, forward: bool, part: str, parts: list[int]) -> Check:
        """The same check of a part of the function."""
        other = Check(
            func, inputs, self.eps, self.atol, self.rtol, self.nondet_tol, self.dtypes_too,
            self.fast,
        )  # fmt: skip
        other.forward, other.part, other.parts = forward, part, parts
        return other

    def run(self) -> None:
        (self.run_fast if self.fast else self.run_slow)(sequence_as_tuple(self.func(*self.inputs)))

    # --- slow mode ----------------------------------------------------------------------------
    def run_slow(self, outputs: Tensors) -> None:
        numerical = self.differences(outputs)
        at = [i for i, y in enumerate(outputs) if is_differentiable(y)]
        if not at:
            for of_input in numerical:
                for n in of_input:
                    if n is not None and bool((n != 0).any()):
                        raise GradcheckError("Numerical gradient for function expected to be zero")
            return
        if self.forward:
            tangents = self.by_tangents(outputs)
        for k, i in enumerate(at):
            analytical = [t[i] for t in tangents] if self.forward else self.by_rows(outputs[i])
            for j, a in enumerate(analytical):
                n = numerical[j][i]
                if not close(a, n, self.rtol, self.atol):
                    report = self.mismatch(a, n, k, j)
                    raise GradcheckError(report + self.worst(a, n, outputs[i], j))

    def differences(self, outputs: Tensors) -> list[list[Any]]:
        """The numerical Jacobians: for each asking input, for each output (None if integers)."""
        found: list[list[Any]] = []
        for x in find_requiring(self.inputs):
            columns: list[list[Any]] = [[] for _ in outputs]
            for index in product(*[range(n) for n in x.shape]):
                for i, d in enumerate(self.slope(x, index)):
                    columns[i].append(d)
            found.append([stack_rows(c, x, y) for c, y in zip(columns, outputs)])
        return found

    def slope(self, x: Any, index: tuple[int, ...]) -> list[Any]:
        """The derivative of each output by one element of the input `x`."""

        def along(step: complex) -> list[Any]:
            low = self.value_at(x, index, -step)
            high = self.value_at(x, index, step)
            return self.quotients(low, high, f"on index {index} ")

        by_real = along(self.eps)
        if not x.is_complex():
            return by_real
        return join_parts(by_real, along(self.eps * 1j))

    def value_at(self, x: Any, index: Any, step: Any) -> list[Any]:
        """The outputs with `step` added to `x[index]`, in its own memory: views see it too."""
        raw = x._array
        kept = raw[index].copy()
        raw[index] = kept + step
        try:
            return [
                y.detach().clone() if is_continuous(y) else None
                for y in sequence_as_tuple(self.func(*self.inputs))
            ]
        finally:
            raw[index] = kept

    def quotients(self, low: list[Any], high: list[Any], where: str) -> list[Any]:
        found: list[Any] = []
        for a, b in zip(low, high):
            if a is None:
                found.append(None)
                continue
            for what, one, other in (("shape", a.shape, b.shape), ("dtype", a.dtype, b.dtype)):
                if one != other:
                    raise AssertionError(
                        f"Expected `func` to return outputs with the same {what} when inputs are "
                        f"perturbed {where}by {self.eps}, but got: {what}s {one} and {other}."
                    )
            found.append(((b - a) / (2 * self.eps)).reshape(-1))
        return found

    def by_rows(self, y: Any) -> list[Any]:
        """The analytical Jacobians of an output, computed twice: they must come out the same."""
        units = functions["eye"](y.numel(), dtype=y.dtype, device=y.device)
        return self.checked_twice(y, [units[j].reshape(y.shape) for j in range(y.numel())])

    def checked_twice(self, y: Any, starts: list[Any]) -> list[Any]:
        """For each asking input its gradients for all `starts`, side by side."""
        xs = find_requiring(self.inputs)
        once, again = self.pulled(y, xs, starts), self.pulled(y, xs, starts)
        for a, b in zip(once, again):
            if a.numel() and float((a - b).abs().max()) > self.nondet_tol:
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and "
                    "grad_output multiple times gives different values, although analytical "
                    "gradient matches numerical gradient."
                    f"The tolerance for nondeterminism was {self.nondet_tol}.\n\n"
                    "If the function is meant to be random, or sums in no fixed order, allow for "
                    "it: `nondet_tol=...`."
                )
        return once

    def pulled(self, y: Any, xs: list[Any], starts: list[Any]) -> list[Any]:
        columns: list[list[Any]] = [[] for _ in xs]
        for start in starts:
            gs: tuple[Any, ...] = grad(y, xs, start, retain_graph=True, allow_unused=True)
            for x, g, column in zip(xs, gs, columns):
                if g is None:
                    g = functions["zeros_like"](x.detach())
                elif g.dtype != x.dtype and self.dtypes_too:
                    raise GradcheckError("Gradient has dtype mismatch")
                elif g.shape != x.shape:
                    raise GradcheckError("Analytical gradient has incorrect size")
                column.append(g.detach().reshape(-1))
        return [
            functions["stack"](column, 1) if column else x.new_zeros(x.numel(), 0)
            for x, column in zip(xs, columns)
        ]

    # --- fast mode ----------------------------------------------------------------------------
    def run_fast(self, outputs: Tensors) -> None:
        xs = find_requiring(self.inputs)
        at = [i for i, y in enumerate(outputs) if is_differentiable(y)]
        draw = directions()
        us = [(next(draw)(x), next(draw)(x) if x.is_complex() else None) for x in xs]
        vs: dict[int, Any] = {}
        if not self.forward:
            vs = {i: next(draw)(outputs[i]) for i in at}
        along = [self.slope_along(x, *u) for x, u in zip(xs, us)]
        if not at:
            for slopes in along:
                for s in slopes:
                    if s is not None and s.numel() and float(s.abs().max()) > self.nondet_tol:
                        raise GradcheckError("Numerical gradient for function expected to be zero")
            return
        if self.forward:
            tangents = self.by_tangents(outputs, [u for u, _ in us])
        for k, i in enumerate(at):
            v = vs.get(i)
            pulled: Any = None
            if v is not None:
                pulled = self.checked_twice(outputs[i], [v.reshape(outputs[i].shape)])
            for j, (u, w) in enumerate(us):
                n = along[j][i]
                atol = self.atol * (float(u.sum()) + (0.0 if w is None else float(w.sum())))
                if v is None:
                    a = tangents[j][i].reshape(-1)
                else:
                    n, a = (v * n).sum(), project(pulled[j].reshape(-1), u, w)
                    atol *= float(v.sum())
                if not close(a, n, self.rtol, atol):
                    raise GradcheckError(self.mismatch(a, n, k, j) + self.in_full(outputs, i, j))

    def slope_along(self, x: Any, u: Any, w: Any) -> list[Any]:
        """The derivative of each output along `u`, and along i times `w` for complex inputs."""

        def along(step: Any) -> list[Any]:
            raw = step.reshape(x.shape)._array
            low, high = self.value_at(x, ..., -raw), self.value_at(x, ..., raw)
            return self.quotients(low, high, "")

        by_real = along(u * self.eps)
        return by_real if w is None else join_parts(by_real, along(w * (self.eps * 1j)))

    def in_full(self, outputs: Tensors, i: int, j: int) -> str:
        """The Jacobians behind two projections that differ."""
        n = self.differences(outputs)[j][i]
        self.nondet_tol = float("inf")
        a = self.by_tangents(outputs)[j][i] if self.forward else self.by_rows(outputs[i])[j]
        text = (
            "\nThe above quantities are random projections (fast mode). The whole Jacobians:\n\n"
            f"Numerical:\n{n}\nAnalytical:\n{a}\n\n"
            f"The max per-element difference (slow mode) is: {float((n - a).abs().max())}.\n"
        )
        if close(a, n, self.rtol, self.atol):
            text += (
                "Fast gradcheck failed but element-wise differences are small: `fast_mode=False` "
                "passes.\n"
            )
        return text + self.worst(a, n, outputs[i], j)

    # --- forward mode -------------------------------------------------------------------------
    def by_tangents(self, outputs: Tensors, us: list[Any] | None = None) -> list[list[Any]]:
        """The Jacobians by forward mode, as `differences` gives them; with `us` only J u."""
        xs = find_requiring(self.inputs)
        found: list[list[Any]] = []
        for j, x in enumerate(xs):
            if us is not None:
                units = [us[j].reshape(x.shape)]
            else:
                eye = functions["eye"](x.numel(), dtype=x.dtype, device=x.device)
                units = [eye[k].reshape(x.shape) for k in range(x.numel())]
            columns: list[list[Any]] = [[] for _ in outputs]
            for unit in units:
                for i, t in enumerate(self.tangents({j: unit})):
                    columns[i].append(t)
            found.append([stack_rows(c, x, y) for c, y in zip(columns, outputs)])
        return found

    def tangents(self, given: dict[int, Any], absent: int = -1) -> list[Any]:
        """The outputs' tangents (None if integers), for tangents of some of the asking inputs;
        the others' are zeros, but for input `absent`, which is no dual at all."""
        with forward_ad.dual_level():
            duals: list[Any] = []
            j = 0
            for x in self.inputs:
                if is_differentiable(x):
                    if j != absent:
                        t = given.get(j)
                        zero = functions["zeros_like"](x.detach())
                        x = forward_ad.make_dual(x.detach(), zero if t is None else t)
                    else:
                        x = x.detach()
                    j += 1
                duals.append(x)
            found: list[Any] = []
            for y in sequence_as_tuple(self.func(*duals)):
                if not is_continuous(y):
                    found.append(None)
                    continue
                value, t = forward_ad.unpack_dual(y)
                if t is None:
                    t = functions["zeros_like"](value.detach())
                elif self.dtypes_too and value.is_complex() != t.is_complex():
                    raise GradcheckError("Forward AD gradient has dtype mismatch.")
                found.append(t.detach().reshape(-1).clone())
        return found

    def check_undefined_tangents(self) -> None:
        """An input without a tangent must count as one with a tangent of zeros."""
        xs = find_requiring(self.inputs)
        draw = directions()
        given = {j: next(draw)(x).reshape(x.shape) for j, x in enumerate(xs)}
        for j, x in enumerate(xs):
            others = {k: t for k, t in given.items() if k != j}
            zeros, absent = self.tangents(others), self.tangents(others, j)
            for i, (one, other) in enumerate(zip(zeros, absent)):
                if one is not None and not close(one, other, 1e-5, 1e-8):
                    raise GradcheckError(
                        f"Mismatch in tangent values for output with index: {i} when input: {x} "
                        f"has an undefined tangent value. Got: {one} but expected: {other}"
                    )

    # --- reports ------------------------------------------------------------------------------
    def mismatch(self, a: Any, n: Any, output: int, input: int) -> str:
        """PyTorch's report on Jacobians that differ."""
        considered = input if self.forward else output
        which = "inputs" if self.forward else "outputs"
        prefix = ""
        if self.part and considered in self.parts:
            prefix = f"While considering the {self.part} part of complex {which} only, "
        mode = "computed with forward mode " if self.forward else ""
        return (
            f"{prefix}Jacobian {mode}mismatch for output {output} with respect to input {input},\n"
            f"numerical:{n}\nanalytical:{a}\n"
        )

    def worst(self, a: Any, n: Any, y: Any, j: int) -> str:
        """The element that is furthest off, in places of the output and the input."""
        if a.numel() == 0:
            return ""
        excess = (a - n).abs() - (self.atol + self.rtol * n.abs())
        excess = functions["where"](functions["isnan"](excess), float("inf"), excess)
        at = int(excess.reshape(-1).argmax())
        row, column = divmod(at, a.shape[1])
        x = find_requiring(self.inputs)[j]
        one, other = n[row, column].item(), a[row, column].item()
        return (
            f"worst element: output{index_text(column, y.shape)} by "
            f"input{index_text(row, x.shape)}: numerical {one}, analytical {other}, "
            f"difference {abs(other - one):.3g} (allowed {self.atol + self.rtol * abs(one):.3g})\n"
        )


def index_text(at: int, shape: Any) -> str:
    """A place in a flattened tensor, as an index into it."""
    index: list[int] = []
    for n in reversed(tuple(shape)):
        at, i = divmod(at, n)
        index.insert(0, i)
    return f"{index}" if index else ""


def stack_rows(columns: list[Any], x: Any, y: Any) -> Any:
    """Derivatives by each element of `x` as the rows of a matrix; None if `y` has none."""
    if not is_continuous(y):
        return None
    dtype = x.dtype if x.is_complex() else y.dtype
    if not columns:
        return functions["zeros"](x.numel(), y.numel(), dtype=dtype, device=y.device)
    return functions["stack"](columns).to(dtype)


def join_parts(by_real: list[Any], by_imaginary: list[Any]) -> list[Any]:
    """ds/dx + i ds/dy of real outputs s; see Note [Complex]."""
    return [None if a is None else a + b * 1j for a, b in zip(by_real, by_imaginary)]


def project(g: Any, u: Any, w: Any) -> Any:
    """A gradient along `u`: for complex inputs its parts along `u` and `w`."""
    if w is None:
        return g.dot(u)
    return g.real.dot(u) + 1j * g.imag.dot(w)


def close(a: Any, b: Any, rtol: float, atol: float) -> bool:
    common = dtypes.promote_types(a.dtype, b.dtype)
    return bool(functions["allclose"](a.to(common), b.to(common), rtol, atol))


def directions() -> Iterator[Callable[[Any], Any]]:
    """Random unit vectors for tensors, real and positive; the user's generator is not touched."""
    source = Generator()

    def draw(x: Any) -> Any:
        dtype = x.dtype.to_real()
        u = functions["rand"](x.numel(), generator=source).to(x.device, dtype)
        return u / u.norm()

    while True:
        yield draw


# --- parts of complex functions -------------------------------------------------------------------
def of_outputs(func: Func, part: str) -> Func:
    """`func` with that part of its complex outputs."""
    take = functions["imag" if part == "imaginary" else "real"]

    def call(*xs: Any) -> Tensors:
        return tuple(take(y) if y.is_complex() else y for y in sequence_as_tuple(func(*xs)))

    return call


def of_inputs(func: Func, inputs: Tensors, part: str, parts: list[int]) -> Func:
    """`func` of that part of its complex inputs; the other part stays as it is in `inputs`."""

    def call(*xs: Any) -> Any:
        given = list(xs)
        for i in parts:
            whole = inputs[i]
            if part == "imaginary":
                given[i] = whole.real + xs[i] * 1j
            else:
                given[i] = xs[i] + whole.imag * 1j
        return func(*given)

    return call


def check_backward(check: Check, outputs: Tensors) -> None:
    parts = [i for i, y in enumerate(y for y in outputs if is_differentiable(y)) if y.is_complex()]
    if not any(isinstance(y, TensorBase) and y.is_complex() for y in outputs):  # type: ignore[attr-defined]
        check.of(check.func, check.inputs, False, "", []).run()
        return
    for part in ("imaginary", "real"):
        check.of(of_outputs(check.func, part), check.inputs, False, part, parts).run()


def check_forward(check: Check, undefined: bool) -> None:
    inputs = check.inputs
    parts = [i for i, x in enumerate(inputs) if isinstance(x, TensorBase) and x.is_complex()]  # type: ignore[attr-defined]
    if not parts:
        mine = [check.of(check.func, inputs, True, "", [])]
    else:
        mine = []
        for part in ("imaginary", "real"):
            real = tuple(
                (x.imag if part == "imaginary" else x.real) if i in parts else x
                for i, x in enumerate(inputs)
            )
            func = of_inputs(check.func, inputs, part, parts)
            mine.append(check.of(func, real, True, part, parts))
    for one in mine:
        one.run()
    if undefined:
        for one in mine:
            one.check_undefined_tangents()


# --- other properties of a backward ---------------------------------------------------------------
def check_inputs(inputs: Tensors) -> None:
    for i, x in enumerate(inputs):
        if not is_differentiable(x):
            continue
        if x.dtype not in (dtypes.float64, dtypes.complex128):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or "
                "complex. This check will likely fail if all the inputs are not of double "
                "precision floating point or complex. ",
                stacklevel=4,
            )
        flat = any(step == 0 and n > 1 for step, n in zip(x.stride(), x.shape))
        if flat or overlaps_itself(x.shape, x.stride()):
            has = "a dimension with stride 0" if flat else "elements that share memory"
            raise RuntimeError(
                f"The {i}th input has {has}. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You "
                "should call .contiguous on the input before passing it to gradcheck."
            )
    if not any(is_differentiable(x) for x in inputs):
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them "
            "have requires_grad=True."
        )


def overlaps_itself(shape: Any, strides: Any) -> bool:
    """Whether two elements of a tensor lie at one place."""
    reach = 0  # of the dimensions with smaller steps
    for step, n in sorted((abs(step), n) for step, n in zip(strides, shape) if n > 1):
        if step <= reach:
            break
        reach += step * (n - 1)
    else:
        return False
    seen: set[int] = set()
    for index in product(*[range(n) for n in shape]):
        at = sum(i * step for i, step in zip(index, strides))
        if at in seen:
            return True
        seen.add(at)
    return False


def check_scaled(outputs: Tensors, inputs: Tensors, masked: bool) -> None:
    """A gradient of zeros must give zeros, of the inputs' dtypes and shapes."""
    xs = find_requiring(inputs)
    if not outputs:
        return
    zeros = [functions["zeros_like"](y.detach()) for y in outputs]
    gs: tuple[Any, ...] = grad(outputs, xs, zeros, retain_graph=True, allow_unused=True)
    for g, x in zip(gs, xs):
        if g is None:
            continue
        if not bool((g.abs() <= (1e-8 if masked else 0.0)).all()):
            raise GradcheckError("backward not multiplied by grad_output")
        if g.dtype != x.dtype:
            raise GradcheckError("grad is incorrect type")
        if g.device != x.device:
            raise GradcheckError("grad is incorrect device")
        if g.shape != x.shape:
            raise GradcheckError("grad is incorrect size")


class UndefinedGrad(Function):
    """Passes a value on, and no gradient back."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return None


def check_undefined(func: Func, inputs: Tensors) -> None:
    """Outputs that no gradient reached must count as outputs with a gradient of zeros."""
    count = len(requiring_grad(func(*inputs)))
    tries = [set(range(count))]
    if count > 1:
        tries += [{i} for i in range(count)]
    for undefined in tries:
        outputs = [
            UndefinedGrad.apply(y) if i in undefined else y
            for i, y in enumerate(requiring_grad(func(*inputs)))
        ]
        if outputs:
            check_undefined_one(outputs, inputs)


def check_undefined_one(outputs: list[Any], inputs: Tensors) -> None:
    zeros = [functions["zeros_like"](y.detach()) for y in outputs]
    try:
        gs = grad(outputs, find_requiring(inputs), zeros, allow_unused=True)
    except RuntimeError as error:
        warn_undefined()
        raise GradcheckError(
            "Expected backward function to handle undefined output grads.\n"
            "They arrive as None where `ctx.set_materialize_grads(False)` asks for it."
        ) from error
    if any(g is not None and not bool((g == 0).all()) for g in gs):
        warn_undefined()
        raise GradcheckError(
            "Expected all input grads to be undefined or zero when all output grads are undefined "
            "or zero."
        )


def warn_undefined() -> None:
    warnings.warn(
        "Backwards compatibility: New undefined gradient support checking feature is enabled by "
        "default, but it may break existing callers of this function. If this is true for you, you "
        'can call this function with "check_undefined_grad=False" to disable the feature',
        stacklevel=6,
    )


def check_batched(inputs: Tensors, y: Any, i: int) -> None:
    """Two gradients at once must be what they are one by one."""
    xs = find_requiring(inputs)
    starts = [functions["randn_like"](y.detach()) for _ in range(2)]
    each = [
        grad(y, xs, s, retain_graph=True, allow_unused=True, materialize_grads=True) for s in starts
    ]
    try:
        both = grad(
            y, xs, functions["stack"](starts), retain_graph=True, allow_unused=True,
            is_grads_batched=True, materialize_grads=True,
        )  # fmt: skip
    except RuntimeError as error:
        raise unbatched(error, "check_batched_grad") from error
    for j, (got, *expected) in enumerate(zip(both, *each)):
        compare_batched(got, functions["stack"](expected), i, j, "check_batched_grad")


def check_batched_forward(func: Func, inputs: Tensors) -> None:
    """Two tangents at once must give what they give one by one."""
    xs = sequence_as_tuple(inputs)
    for j, x in enumerate(xs):
        if not is_differentiable(x):
            continue
        ts = [functions["randn_like"](x.detach()) for _ in range(2)]

        def along(t: Any, j: int = j) -> Any:
            return func(*[t if k == j else other for k, other in enumerate(xs)])

        mine = (x.detach(),)
        each = [slopes_along(along, mine, [functions["unsqueeze"](t, 0)], 1)[1] for t in ts]
        try:
            _, both = slopes_along(along, mine, [functions["stack"](ts)], 2)
        except RuntimeError as error:
            raise unbatched(error, "check_batched_forward_grad") from error
        for i, (got, *expected) in enumerate(zip(both, *each)):
            compare_batched(got, functions["cat"](expected), i, j, "check_batched_forward_grad")


def unbatched(error: RuntimeError, argument: str) -> GradcheckError:
    text = BATCHED.format(argument)
    return GradcheckError(f"While computing batched gradients, got: {error}\n\n{text}")


def compare_batched(got: Any, expected: Any, i: int, j: int, argument: str) -> None:
    if not close(got, expected, 1e-5, 1e-8):
        raise GradcheckError(
            f"For output {i} and input {j}:\n\n{BATCHED.format(argument)}\n\nGot:\n{got}\n\n"
            f"Expected:\n{expected}"
        )


BATCHED = (
    "gradcheck or gradgradcheck failed while testing batched gradient computation. Pass "
    "`{}=False` if the function cannot be batched."
)


def random_like(y: Any, gaps: bool) -> Any:
    """Numbers from -1 to 1 that ask for a gradient; with `gaps`, not contiguous."""
    dtype, shape = y.dtype, tuple(y.shape)
    wide = (*shape[:-1], 2 * shape[-1]) if gaps and shape else shape
    kind = {"dtype": dtype.to_real(), "device": y.device}
    t = functions["rand"](wide, **kind) * 2 - 1
    if dtype.is_complex:
        t = functions["complex"](t, functions["rand"](wide, **kind) * 2 - 1)
    if wide != shape:
        t = t[..., ::2]
    return wrap(t._array).requires_grad_()  # type: ignore[attr-defined]


# --- all of it ------------------------------------------------------------------------------------
def check_all(
    check: Check, undefined: bool, batched: bool, forward: bool, backward: bool, masked: bool,
    batched_forward: bool = False,
) -> None:  # fmt: skip
    """Every check that was asked for; raises at the first that fails."""
    func, inputs = check.func, check.inputs
    check_inputs(inputs)
    outputs = sequence_as_tuple(func(*inputs))
    if backward:
        check_backward(check, outputs)
    if forward:
        check_forward(check, undefined)
    if batched_forward:
        check_batched_forward(func, inputs)
    if not backward:
        return
    asked = requiring_grad(outputs)
    if batched:
        for i, y in enumerate(asked):
            check_batched(inputs, y, i)
    check_scaled(asked, inputs, masked)
    if undefined:
        check_undefined(func, inputs)


def gradients_of(func: Func, inputs: Any, grad_outputs: Any, gaps: bool) -> tuple[Func, Tensors]:
    """The gradients of `func` as a function of inputs and output gradients, and those."""
    xs = sequence_as_tuple(inputs)
    if grad_outputs is None:
        gs = tuple(random_like(y, gaps) for y in requiring_grad(func(*xs)))
    else:
        gs = sequence_as_tuple(grad_outputs)
    asked_x = [i for i, x in enumerate(xs) if is_differentiable(x)]
    asked_g = [i for i, g in enumerate(gs) if is_differentiable(g)]
    count = len(xs)

    def asked(x: Any) -> Any:
        return x if is_differentiable(x) else x.requires_grad_()

    def gradients(*args: Any) -> Tensors:
        # forward mode hands in values that do not ask any more
        mine = [asked(x) if i in asked_x else x for i, x in enumerate(args[:count])]
        starts = [asked(g) if i in asked_g else g for i, g in enumerate(args[count:])]
        found = grad(
            requiring_grad(func(*mine)), [mine[i] for i in asked_x], starts,
            create_graph=True, allow_unused=True,
        )  # fmt: skip
        return tuple(g for g in found if g is not None)

    return gradients, xs + gs
