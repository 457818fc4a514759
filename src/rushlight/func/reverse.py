"""Derivatives backward: `grad`, `grad_and_value`, `vjp`, `linearize`, `jacrev`.

Each runs its function once inside a level of its own (`Trace`), and then goes back through it
(`Trace.pull`) once, several times, or with a batch of cotangents.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, ParamSpec

from rushlight.arrays import vocabulary as v
from rushlight.autograd.api import check_gradient, gradient_tensor
from rushlight.autograd.context import without_history
from rushlight.core.engine import engine
from rushlight.core.engine.engine import Capture
from rushlight.core.grad_mode import grad_enabled
from rushlight.core.graph import TensorBase, requires_grad, wrap
from rushlight.core.saved.packed import Saving, saving_now
from rushlight.core.transforms.histories import leads_outside
from rushlight.core.transforms.stack import Transform, stack
from rushlight.errors import readable
from rushlight.func.arguments import (
    Argnums,
    Function,
    check_real,
    chosen,
    differentiable,
    replace,
    split_aux,
    unchosen,
)
from rushlight.func.batching import vmap
from rushlight.func.tracking import Loans, history_end, records_of, release, track
from rushlight.ops.registry import functions
from rushlight.trees import tree_flatten, tree_map, tree_unflatten, treespec_pprint

P = ParamSpec("P")
NO_HOOKS: Final = (
    "torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an "
    "issue with your use case."
)


# --- there and back -------------------------------------------------------------------------------
class Trace:
    """A function that ran inside a level of its own: what it gave, and the way back.

    `call(tree, others)` is the function of the inputs, a tree of tensors, and of the arguments not
    differentiated; `check(found)` refuses what is no output to differentiate; `who` is the
    transform's name in errors about the auxiliary value.
    """

    def __init__(
        self, call: Callable[[Any, Any], Any], inputs: Any, check: Callable[[Any], None],
        has_aux: bool, who: str, others: Any = None,
    ) -> None:  # fmt: skip
        refuse_hooks()
        flat, self.in_spec = tree_flatten(inputs)
        with Transform("grad") as self.level:
            assert self.level.mode is not None
            self.level.mode.saving = Saving(None, None, NO_HOOKS, None)
            self.sources = [track(x, self.level) for x in flat]
            loans = Loans(self.level)
            lent = loans.lend(others)
            found = call(tree_unflatten([s.leaf for s in self.sources], self.in_spec), lent)
            aux: Any = None
            if has_aux:
                found, aux = split_aux(found, who)
            check(found)
            self.flat, self.spec = tree_flatten(found)
            flat_aux, aux_spec = tree_flatten(aux)
            self.ends = [history_end(y) for y in self.flat]
            inside = [*self.flat, *flat_aux, *loans.inside]
            self.outside = self.level.recording and leads_outside(
                [history_end(y) for y in inside], self.level
            )
            seen = self.released(inside, self.outside)
        results = len(self.flat) + len(flat_aux)
        loans.settle(seen[results:])
        seen = [loans.returned(t, y) for t, y in zip(inside[:results], seen, strict=False)]
        self.output = tree_unflatten(seen[: len(self.flat)], self.spec)
        self.aux = tree_unflatten(seen[len(self.flat) :], aux_spec)

    def released(self, tensors: list[Any], outside: bool) -> list[Any]:
        return release(tensors, self.sources, self.level, outside)

    def pull(self, cotangents: list[Any], keep: bool, create: bool | None) -> Any:
        """The product of cotangents, one an output, with the Jacobian: a tree like the inputs.

        `create` says whether it is to be recorded; None: where somebody may ask for that.
        """
        if create is None:
            create = grad_enabled()
        create = create and (self.outside or any(map(leaves_traces, cotangents)))
        starts = [
            (end, int(y._output_nr), g)
            for end, y, g in zip(self.ends, self.flat, cotangents, strict=True)
            if end is not None
        ]
        targets = [Capture(s.node, 0) for s in self.sources]
        if starts:
            tensors = create or engine.with_tangents()
            engine.backward(
                [end for end, _, _ in starts],
                [nr for _, nr, _ in starts],
                [g if tensors else g._array for _, _, g in starts],
                keep, create, targets, False, None, stack.batches != 0 and self.level.recording,
            )  # fmt: skip
        grads = self.released([gradient_tensor(t.grad) for t in targets], create)
        made = [
            functions["zeros_like"](without_history(s.x)) if g is None else hand_on(g, cotangents)
            for s, g in zip(self.sources, grads, strict=True)
        ]
        return tree_unflatten(made, self.in_spec)


def hand_on(g: Any, cotangents: list[Any]) -> Any:
    """A gradient; if it is a cotangent that was given, that very tensor."""
    return next((x for x in cotangents if g._array is x._array), g)


def leaves_traces(g: Any) -> bool:
    """Whether somebody wants derivatives of a cotangent, or of its tangents."""
    return requires_grad(g) or any(
        r.value is not None and requires_grad(r.value) for r in records_of(g)
    )


def refuse_hooks() -> None:
    """Saved-tensor hooks would see values of a level that is gone when they are called."""
    saving = saving_now()
    if saving is not None and saving.pack is not None:
        raise RuntimeError(NO_HOOKS)


# --- grad -----------------------------------------------------------------------------------------
def grad(func: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[P, Any]:
    """A function that computes the gradient of `func`, which gives a tensor of one element.

    `argnums` says of which arguments; an argument may be a tree of tensors, and its gradient is
    then a tree too. With `has_aux` the function gives `(output, aux)`, and the gradient comes as
    `(gradient, aux)`.

    >>> from rushlight.func import grad
    >>> grad(lambda x: x ** 3)(torch.tensor(2.))
    tensor(12.)
    >>> grad(grad(lambda x: x ** 3))(torch.tensor(2.))
    tensor(12.)
    """

    @functools.wraps(func)
    @readable
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradient, trace = gradient_of(func, argnums, has_aux, args, kwargs)
        return (gradient, trace.aux) if has_aux else gradient

    return wrapper


def grad_and_value(
    func: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[P, tuple[Any, Any]]:
    """A function that computes the gradient of `func` and its value: `(gradient, value)`.

    With `has_aux` it gives `(gradient, (value, aux))`.

    >>> torch.func.grad_and_value(lambda x: x ** 2)(torch.tensor(3.))
    (tensor(6.), tensor(9.))
    """

    @functools.wraps(func)
    @readable
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradient, trace = gradient_of(func, argnums, has_aux, args, kwargs)
        return gradient, ((trace.output, trace.aux) if has_aux else trace.output)

    return wrapper


def gradient_of(
    func: Function, argnums: Any, has_aux: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, Trace]:
    given = chosen(args, argnums)
    call = with_arguments(func, argnums)
    others = (unchosen(args, argnums), kwargs)
    trace = Trace(call, given, check_scalar, has_aux, "grad_and_value(f)(*args)", others)
    return trace.pull([one_like(trace.flat[0])], trace.outside, trace.outside), trace


def with_arguments(func: Function, argnums: Any) -> Callable[[Any, Any], Any]:
    """`func` of those of its arguments that are differentiated, and of the others and keywords."""

    def call(given: Any, others: Any) -> Any:
        args, kwargs = others
        return func(*replace(args, argnums, given), **kwargs)

    return call


def one_like(y: Any) -> Any:
    if y._array.dtype.kind == "c" and requires_grad(y):
        raise RuntimeError(
            f"grad can be implicitly created only for real scalar outputs but got {y.dtype}"
        )
    return wrap(v.full(y._array, y._array.shape, 1, y._array.dtype))


def check_scalar(y: Any) -> None:
    if not isinstance(y, TensorBase):
        raise RuntimeError(
            f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(y)}"
        )
    if y._array.ndim != 0:
        raise RuntimeError(
            "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor "
            f"with {y._array.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
        )


# --- vjp ------------------------------------------------------------------------------------------
@readable
def vjp(func: Function, *primals: Any, has_aux: bool = False) -> Any:
    """The value of `func` at `primals`, and a function that multiplies cotangents with its
    Jacobian there. With `has_aux`, also what `func` gave besides its output.

    >>> y, vjp_fn = torch.func.vjp(torch.sin, torch.zeros(2))
    >>> vjp_fn(torch.tensor([1., 2.]))
    (tensor([1., 2.]),)
    """
    trace = Trace(lambda xs, _: func(*xs), primals, check_vjp_outputs, has_aux, "vjp(f, *primals)")

    def vjp_fn(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given, spec = tree_flatten(cotangents)
        if spec != trace.spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of "
                f"outputs to the function. cotangents: {treespec_pprint(spec)}, primal output: "
                f"{treespec_pprint(trace.spec)}"
            )
        given = [cotangent(i, y, g) for i, (y, g) in enumerate(zip(trace.flat, given, strict=True))]
        return trace.pull(given, retain_graph, create_graph)

    return (trace.output, vjp_fn, trace.aux) if has_aux else (trace.output, vjp_fn)


def check_vjp_outputs(found: Any) -> None:
    flat, _ = tree_flatten(found)
    if not flat or found is None:
        raise RuntimeError(
            "vjp(f, *primals): Expected f to be a function that has non-empty output (got output = "
            f"{flat})"
        )
    for y in flat:
        if not isinstance(y, TensorBase):
            raise RuntimeError(
                "vjp(f, *primals): expected f(*primals) to return only tensors, got unsupported "
                f"type {type(y)}"
            )
    for y in flat:
        if not differentiable(y):
            raise RuntimeError(
                "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got "
                f"Tensor with dtype {y.dtype}"
            )


def cotangent(i: int, y: Any, g: Any) -> Any:
    """A cotangent that was given for output `y`; None stands for the 1 of a scalar."""
    if g is None:
        if y._array.size != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        return one_like(y)
    if not isinstance(g, TensorBase):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
    return check_gradient(y, g, i, False)


# --- linearize ------------------------------------------------------------------------------------
@readable
def linearize(func: Function, *primals: Any) -> tuple[Any, Function]:
    """The value of `func` at `primals`, and its linear part there: a function of tangents, which
    does not call `func` again.

    >>> y, along = torch.func.linearize(lambda x: x ** 2, torch.tensor([1., 2.]))
    >>> along(torch.tensor([1., 1.]))
    tensor([2., 4.])
    """
    flat, spec = tree_flatten(primals)
    for x in flat:
        if isinstance(x, TensorBase) and not differentiable(x):
            raise ValueError(f"Expected primal to be floating point or complex, but got: {x.dtype}")  # type: ignore[attr-defined]
    trace = Trace(lambda xs, _: func(*xs), primals, check_vjp_outputs, False, "linearize")
    # g -> J'g is linear, so its own derivative is J: taken once, at a g of zeros
    zeros = [functions["zeros_like"](without_history(y)) for y in trace.flat]
    back = Trace(
        lambda gs, _: trace.pull(gs, True, True), zeros, check_vjp_outputs, False, "linearize"
    )

    def jvp_fn(*tangents: Any) -> Any:
        given, given_spec = tree_flatten(tangents)
        if given_spec != spec:
            raise RuntimeError(
                f"Expected the tangents {given_spec} to have the same argspec as the primals {spec}"
            )
        for i, (t, x) in enumerate(zip(given, flat, strict=True)):
            check_tangent(i, t, x)
        return tree_unflatten(back.pull(given, True, None), trace.spec)

    return trace.output, jvp_fn


def check_tangent(i: int, t: Any, x: Any) -> None:
    for what in ("shape", "device", "dtype"):
        have, want = getattr(t, what), getattr(x, what)
        if have != want:
            raise RuntimeError(
                f"tangent:{i} with {what} {have} in flattened pytree doesn't match the {what} "
                f"{want} of the corresponding primal."
            )


# --- jacrev ---------------------------------------------------------------------------------------
def jacrev(
    func: Function, argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Function:  # fmt: skip
    """A function that computes the Jacobian of `func` backward: all rows at once, or `chunk_size`
    rows at a time.

    >>> torch.func.jacrev(torch.sin)(torch.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    if chunk_size is not None and not chunk_size > 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    @readable
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        given = chosen(args, argnums)
        check_real(given, "jacrev", "inputs")
        call = with_arguments(func, argnums)
        others = (unchosen(args, argnums), kwargs)
        trace = Trace(call, given, check_vjp_outputs, has_aux, "vjp(f, *primals)", others)
        check_real(trace.output, "jacrev", "outputs")
        found, spec = tree_flatten(rows_of(trace, chunk_size))
        parts: list[Any] = []  # of each output, a tree like the inputs
        start = 0
        for y in trace.flat:
            blocks = [
                jacobian_block(r, start, y, s.x) for r, s in zip(found, trace.sources, strict=True)
            ]
            parts.append(tree_unflatten(blocks, spec))
            start += y.numel()
        jacobian = tree_unflatten(parts, trace.spec)
        return (jacobian, trace.aux) if has_aux else jacobian

    return wrapper


def rows_of(trace: Trace, chunk_size: int | None) -> Any:
    """The rows of the Jacobian, one an element of the outputs: a tree like the inputs."""
    if len(trace.flat) == 1 and trace.flat[0]._array.size == 1:  # one row: no batch is needed
        row = trace.pull([functions["ones_like"](without_history(trace.flat[0]))], True, None)
        return tree_map(lambda g: functions["unsqueeze"](g, 0), row)
    rows = vmap(lambda *gs: trace.pull(list(gs), True, None), chunk_size=chunk_size)
    return rows(*basis(trace.flat))


def jacobian_block(rows: Any, start: int, y: Any, x: Any) -> Any:
    """The derivative of output `y` by input `x`, whose rows begin at `start`."""
    part = functions["narrow"](rows, 0, start, y.numel())
    return functions["reshape"](part, (*y.shape, *x.shape))


def basis(flat: list[Any]) -> tuple[Any, ...]:
    """For each of several tensors, a batch of its shape: together the unit vectors of them all."""
    total = sum(y.numel() for y in flat)
    found: list[Any] = []
    start = 0
    for y in flat:
        eye = functions["eye"](total, dtype=y.dtype, device=y.device)
        part = functions["narrow"](eye, 1, start, y.numel())
        found.append(functions["reshape"](part, (total, *y.shape)))
        start += y.numel()
    return tuple(found)
