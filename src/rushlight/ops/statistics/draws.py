"""Poisson, binomial, gamma and Dirichlet numbers, from the values of tensors."""

from __future__ import annotations

from typing import Any, Final

from rushlight import dtypes
from rushlight.arrays.formulas import formula
from rushlight.arrays.host import from_host, to_host
from rushlight.core.dispatch import binary
from rushlight.core.elementwise import elementwise
from rushlight.core.graph import Node, Op
from rushlight.core.record import keep_record
from rushlight.core.transforms.stack import stack
from rushlight.errors import broadcast_mismatch
from rushlight.ops.checks import check_tensor
from rushlight.ops.creation.tensor import write_created
from rushlight.ops.pointwise.family import Unfinished
from rushlight.ops.random import batching
from rushlight.ops.random.batching import enclosing_vmap
from rushlight.ops.random.sampling import drawn_op, generator_of
from rushlight.ops.registry import function, implements
from rushlight.random import rejection


# --- nodes ----------------------------------------------------------------------------------------
class StandardGamma(Op):
    """Gamma numbers, which move with their shape."""

    name, node, saves = "_standard_gamma", "StandardGammaBackward0", ("self", "result")

    def vjp(self, node: Node, g: Any, x: Any, y: Any) -> Any:
        return (g * formula(x, "implicit_gamma", y),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        raise NotImplementedError(
            "Trying to use forward AD with _standard_gamma that does not support it because it has "
            "not been implemented yet."
        )


class SampleDirichlet(Unfinished):
    """Dirichlet numbers: `distributions` differentiates them."""

    name = "_sample_dirichlet"


class StandardGammaGrad(Unfinished):
    """How gamma numbers move with their shape."""

    name, inputs = "_standard_gamma_grad", ("self", "output")

    def forward(self, *xs: Any) -> Any:
        return formula(xs[0], "implicit_gamma", xs[1])


class DirichletGrad(Unfinished):
    """How beta numbers move with their first shape, over what is left of 1."""

    name, inputs = "_dirichlet_grad", ("x", "alpha", "total")

    def forward(self, *xs: Any) -> Any:
        return formula(xs[0], "implicit_beta", xs[1], xs[2])


_POISSON: Final = drawn_op("poisson", "PoissonBackward0")
_BINOMIAL: Final = drawn_op("binomial", "BinomialBackward0", "count", "prob")
_GAMMA: Final = StandardGamma()
_DIRICHLET: Final = SampleDirichlet()
_GAMMA_GRAD: Final = StandardGammaGrad()
_DIRICHLET_GRAD: Final = DirichletGrad()


def _draw(name: str, op: Any, draw: Any, generator: Any, out: Any, *xs: Any) -> Any:
    """Numbers from the values of tensors of one shape, drawn on the host in the order of rows."""
    gen = generator_of(name, generator)
    if stack.batches != 0 and (level := enclosing_vmap()) is not None:
        batching.refuse_out_in_vmap(out)
        return batching.draw_from(
            level, op, xs, lambda *xs: _draw(name, op, draw, gen, None, *xs)
        )  # fmt: skip
    raws = [to_host(x._array) for x in xs]
    drawn = from_host(draw(*raws, gen), xs[0]._array)
    if out is not None:
        return write_created(name, out, drawn, None, False)
    return keep_record(op, xs, tuple([x._array for x in xs]), drawn)


@function(method=False)
def poisson(input: Any, generator: Any = None, *, out: Any = None) -> Any:
    """Poisson numbers, each with the rate that stands in its place in `input`.

    >>> generator = torch.manual_seed(0)
    >>> torch.poisson(torch.tensor([1., 4., 100.]))
    tensor([ 2.,  5., 94.])
    """
    check_tensor(input, "poisson")
    return _draw("poisson", _POISSON, rejection.poisson, generator, out, input)


@function(method=False)
def binomial(count: Any, prob: Any, generator: Any = None, *, out: Any = None) -> Any:
    """How many of `count` tries succeed, each with probability `prob`.

    Args:
        count: how many tries, element by element.
        prob: the probability of success of each.

    >>> generator = torch.manual_seed(0)
    >>> torch.binomial(torch.tensor([10., 10.]), torch.tensor([0.0, 1.0]))
    tensor([ 0., 10.])
    """
    check_tensor(count, "binomial", "count", 1)
    check_tensor(prob, "binomial", "prob", 2)
    for what, x in (("count", count), ("prob", prob)):
        kind = dtypes.of(x._array.dtype)
        if not kind.is_floating_point:
            raise ValueError(
                f"binomial only supports floating-point dtypes for {what}, got: {kind.scalar_type}"
            )
    have, want = dtypes.of(prob._array.dtype), dtypes.of(count._array.dtype)
    if have is not want:
        raise RuntimeError(f"Found dtype {have.scalar_type} but expected {want.scalar_type}")
    if count._array.shape != prob._array.shape:
        try:
            shape = _broadcast(count, prob)
        except ValueError:
            raise RuntimeError(broadcast_mismatch(count._array.shape, prob._array.shape)) from None
        count, prob = count.expand(shape), prob.expand(shape)
    return _draw("binomial", _BINOMIAL, rejection.binomial, generator, out, count, prob)


def _broadcast(a: Any, b: Any) -> tuple[int, ...]:
    one, two = a._array.shape, b._array.shape
    rank = max(len(one), len(two))
    one, two = (1,) * (rank - len(one)) + one, (1,) * (rank - len(two)) + two
    if any(m != n and 1 not in (m, n) for m, n in zip(one, two, strict=True)):
        raise ValueError
    return tuple([n if m == 1 else m for m, n in zip(one, two, strict=True)])


@function(method=False)
def _standard_gamma(input: Any, generator: Any = None) -> Any:
    """Gamma numbers of rate 1, each with the shape that stands in its place in `input`.

    >>> generator = torch.manual_seed(0)
    >>> torch._standard_gamma(torch.tensor([2., 2.])) > 0
    tensor([True, True])
    """
    check_tensor(input, "_standard_gamma")
    return _draw("_standard_gamma", _GAMMA, rejection.standard_gamma, generator, None, input)


@function(method=False)
def _sample_dirichlet(input: Any, generator: Any = None) -> Any:
    """Rows of positive numbers that sum to 1, of a Dirichlet distribution with the parameters
    `input`.

    >>> torch._sample_dirichlet(torch.ones(3)).sum().round()
    tensor(1.)
    """
    check_tensor(input, "_sample_dirichlet")
    return _draw("_sample_dirichlet", _DIRICHLET, rejection.dirichlet, generator, None, input)


@function(method=False)
def _standard_gamma_grad(input: Any, output: Any) -> Any:
    """The derivatives of gamma numbers `output` by their shapes `input`.

    >>> torch._standard_gamma_grad(torch.tensor([1.0]), torch.tensor([1.0]))
    tensor([1.1736])
    """
    return binary(_GAMMA_GRAD, input, output)


@function(method=False)
def _dirichlet_grad(x: Any, alpha: Any, total: Any) -> Any:
    """The derivatives of Dirichlet numbers `x` by their parameters `alpha`, which sum to `total`,
    over 1 - x.

    >>> torch._dirichlet_grad(torch.tensor([0.5]), torch.tensor([1.0]), torch.tensor([2.0]))
    tensor([0.6931])
    """
    return elementwise(_DIRICHLET_GRAD, (x, alpha, total))


@implements("formula")
def _formula_of(x: Any, name: str, *others: Any) -> Any:
    if name == "implicit_gamma":
        return binary(_GAMMA_GRAD, x, others[0])
    raise NotImplementedError(f"no op answers to the formula {name!r} on tensors")
