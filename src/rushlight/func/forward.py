"""Derivatives forward: `jvp`, `jacfwd`, `hessian`. Tangents travel next to the values
(`core.transforms.forward_ad`)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from rushlight.autograd.context import without_history
from rushlight.autograd.forward_ad import dual_at, primal_at, tangent_at
from rushlight.core.graph import TensorBase
from rushlight.core.transforms.forward_ad import LevelBlock
from rushlight.core.transforms.stack import Transform
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
from rushlight.func.reverse import basis, jacrev
from rushlight.func.tracking import Loans, at_level
from rushlight.ops.registry import functions
from rushlight.trees import tree_flatten, tree_unflatten

WHO: Final = "jvp(f, primals, tangents)"


@readable
def jvp(
    func: Function, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False
) -> Any:
    """The value of `func` at `primals`, and its derivative along `tangents`.

    Both arguments are tuples: `func(*primals)` must be valid. With `strict` a function that does
    not depend on its inputs is an error; otherwise its derivative is zero. With `has_aux` there is
    a third result, what `func` gave besides its output.

    >>> torch.func.jvp(torch.sin, (torch.tensor(0.),), (torch.tensor(2.),))
    (tensor(0.), tensor(2.))
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{WHO}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    flat, spec = tree_flatten(primals)
    directions, other = tree_flatten(tangents)
    if spec != other:
        raise RuntimeError(
            f"{WHO}: Expected primals and tangents to have the same python structure. For example, "
            "if primals is a tuple of 3 tensors, tangents also must be. Got primals with structure "
            f"{spec} and tangents with structure {other}"
        )
    check_only_tensors(flat, "primals")
    check_only_tensors(directions, "tangents")
    output, along, aux = push_forward(
        lambda xs, _: func(*tree_unflatten(xs, spec)), flat, directions, strict, has_aux
    )
    return (output, along, aux) if has_aux else (output, along)


def check_only_tensors(flat: list[Any], what: str) -> None:
    if not flat:
        raise RuntimeError(f"{WHO}: Expected {what} to contain at least one Tensor.")
    for x in flat:
        if not isinstance(x, TensorBase):
            raise RuntimeError(f"{WHO}: Expected {what} to only contain Tensors, got {type(x)}")


def push_forward(
    call: Callable[[list[Any], Any], Any], flat: list[Any], directions: list[Any], strict: bool,
    has_aux: bool, others: Any = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """What a function of a list of tensors, and of other arguments, gives; its derivative along the
    directions; and the auxiliary value."""
    for what, xs in (("primal", flat), ("tangent", directions)):
        for x in xs:
            if not differentiable(x):
                raise ValueError(
                    f"Expected {what} to be floating point or complex, but got: {x.dtype}"
                )
    with Transform("jvp") as level:
        for x in flat:
            level.give(x, x)
        flat = [at_level(x, level) for x in flat]
        with LevelBlock(True) as inner:
            level.forward = inner
            loans = Loans(level)
            lent = loans.lend(others)
            duals = [dual_at(x, inner, t) for x, t in zip(flat, directions, strict=True)]
            found = call(duals, lent)
            aux: Any = None
            if has_aux:
                found, aux = split_aux(found, WHO)
            values, out_spec = tree_flatten(found)
            check_jvp_outputs(values, found)
            slopes = [output_tangent(y, inner, strict) for y in values]
            flat_aux, aux_spec = tree_flatten(aux)
            values, rest, results = [
                [primal_at(y, inner) if isinstance(y, TensorBase) else y for y in ys]
                for ys in (values, flat_aux, loans.inside)
            ]
    loans.settle(results)
    return (
        tree_unflatten(values, out_spec),
        tree_unflatten(slopes, out_spec),
        tree_unflatten(rest, aux_spec),
    )


def check_jvp_outputs(values: list[Any], found: Any) -> None:
    if not values or found is None:
        raise RuntimeError(
            f"{WHO}: Expected f to be a function that has non-empty output (got output = {values})"
        )
    for y in values:
        if not isinstance(y, TensorBase):
            raise RuntimeError(
                f"{WHO}: expected f(*primals) to return only tensors, got unsupported type "
                f"{type(y)}"
            )


def output_tangent(y: Any, level: Any, strict: bool) -> Any:
    """The tangent of an output; zeros where it does not depend on the inputs."""
    found = tangent_at(y, level)
    if found is not None:
        return found
    if strict:
        raise RuntimeError(
            f"{WHO[:-1]}, strict=True): The output of f is independent of the inputs. This is not "
            "allowed with strict=True."
        )
    return functions["zeros_like"](without_history(y))


# --- Jacobians ------------------------------------------------------------------------------------
def jacfwd(
    func: Function, argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Function:
    """A function that computes the Jacobian of `func` forward: all columns at once.

    >>> torch.func.jacfwd(lambda x: x ** 2)(torch.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    """

    @functools.wraps(func)
    @readable
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        given = chosen(args, argnums)
        check_real(given, "jacfwd", "inputs")
        flat, spec = tree_flatten(given)
        check_only_tensors(flat, "primals")

        others = (unchosen(args, argnums), kwargs)

        def call(leaves: list[Any], others: Any) -> Any:
            args, kwargs = others
            return func(*replace(args, argnums, tree_unflatten(leaves, spec)), **kwargs)

        def along(*directions: Any) -> Any:
            output, slopes, aux = push_forward(call, flat, list(directions), False, has_aux, others)
            check_real(output, "jacfwd", "outputs")
            return slopes, aux

        columns, aux = vmap(along, out_dims=(0, None), randomness=randomness)(*basis(flat))
        outs, out_spec = tree_flatten(columns)
        blocks = [tree_unflatten(split(y, flat), spec) for y in outs]
        jacobian = tree_unflatten(blocks, out_spec)
        return (jacobian, aux) if has_aux else jacobian

    return wrapper


def split(columns: Any, flat: list[Any]) -> list[Any]:
    """The derivatives of one output, a batch of them, as one tensor an input."""
    shape = tuple(columns.shape[1:])
    found: list[Any] = []
    start = 0
    for x in flat:
        block = functions["narrow"](columns, 0, start, x.numel())
        block = functions["movedim"](block, 0, -1)
        found.append(functions["reshape"](block, (*shape, *x.shape)))
        start += x.numel()
    return found


def hessian(func: Function, argnums: Argnums = 0) -> Function:
    """A function that computes the Hessian of `func`, forward over backward.

    >>> torch.func.hessian(lambda x: (x ** 3).sum())(torch.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
