"""Along a sampled curve: integrals by the trapezoid rule, and slopes by differences."""

from __future__ import annotations

from typing import Any, Final

from rushlight.core.graph import TensorBase
from rushlight.ops.checks import check_tensor, is_number, one_dim, some_dims, unmatched
from rushlight.ops.numbers import Number, python_number
from rushlight.ops.registry import function, functions

# --- integrals ------------------------------------------------------------------------------------
_FORMS: Final = """
 * (Tensor y, Tensor x, *, int dim = -1)
 * (Tensor y, *, Number dx = 1, int dim = -1)
"""


def _sides(name: str, y: Any, x: Any, dx: Any, dim: int) -> tuple[Any, Any, int]:
    """Sums of neighbours, how far apart they stand (a number, or a tensor), and the dimension."""
    array = check_tensor(y, name, "y")
    if x is not None and dx is not None:
        raise unmatched(name, _FORMS, (y,), {"dx": dx, "x": x})
    if array.dtype.kind == "b" or (isinstance(x, TensorBase) and x._array.dtype.kind == "b"):
        which = "`y`" if x is None else "`x` or `y`"
        raise RuntimeError(f"{name}: received a bool input for {which}, but bool is not supported")
    if isinstance(dx, (bool, complex)):
        raise RuntimeError(f"{name}: Currently, we only support dx as a real number.")
    d = one_dim(dim, array.ndim)
    n = array.shape[d] if array.ndim else 0
    width: Any = 1 if dx is None else dx
    if x is not None:
        check_tensor(x, name, "x", 2)
        if x._array.ndim == 1:
            if x._array.shape[0] != n:
                raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
            place = [1] * array.ndim
            place[d] = n
            x = x.reshape(place)
        elif x._array.ndim < array.ndim:
            x = x.reshape((1,) * (array.ndim - x._array.ndim) + x._array.shape)
        m = x._array.shape[d]
        width = x.narrow(d, 1, m - 1) - x.narrow(d, 0, m - 1)
    if n == 0:
        return y, width, d
    return y.narrow(d, 0, n - 1) + y.narrow(d, 1, n - 1), width, d


def _integral(y: Any, x: Any, dx: Any, dim: int) -> Any:
    both, width, d = _sides("trapezoid", y, x, dx, dim)
    if y._array.ndim == 0 or y._array.shape[d] == 0:
        return functions["zeros"](both.sum(d)._array.shape, dtype=y.dtype, device=y.device)
    if x is None:
        return both.sum(d) * (width / 2.0)
    return (both * width).sum(d) / 2.0


@function(method=False)
def trapezoid(y: Any, x: Any = None, *, dx: Number | None = None, dim: int = -1) -> Any:
    """The integral of a curve through the points `y`, by straight lines between them.

    Args:
        y: the heights of the points.
        x: where they stand along the axis.
        dx: how far apart they stand, where no `x` says it; 1 by default.

    >>> torch.trapezoid(torch.tensor([1., 5., 10.]))
    tensor(10.5000)
    """
    return _integral(y, x, dx, dim)


@function(method=False)
def trapz(y: Any, x: Any = None, *, dx: float | None = None, dim: int = -1) -> Any:
    """The older name of `trapezoid`.

    Args:
        y: the heights of the points.
        x: where they stand along the axis.
        dx: how far apart they stand, where no `x` says it; 1 by default.

    >>> torch.trapz(torch.tensor([1., 5., 10.]))
    tensor(10.5000)
    """
    return _integral(y, x, dx, dim)


@function(method=False)
def cumulative_trapezoid(y: Any, x: Any = None, *, dx: Number | None = None, dim: int = -1) -> Any:
    """The integrals of a curve up to each of its points but the first: see `trapezoid`.

    Args:
        y: the heights of the points.
        x: where they stand along the axis.
        dx: how far apart they stand, where no `x` says it; 1 by default.

    >>> torch.cumulative_trapezoid(torch.tensor([1., 5., 10.]))
    tensor([ 3.0000, 10.5000])
    """
    both, width, d = _sides("cumulative_trapezoid", y, x, dx, dim)
    if x is None:
        return functions["cumsum"](both * (width / 2.0), d)
    return functions["cumsum"](both * width, d) / 2.0


# --- slopes ---------------------------------------------------------------------------------------
_GRADIENT: Final = """
 * (Tensor input, *, Number spacing = None, int dim = None, int edge_order = 1)
 * (Tensor input, *, Number spacing, tuple of ints dim, int edge_order = 1)
 * (Tensor input, *, tuple of Tensors spacing, tuple of ints dim, int edge_order = 1)
"""


def _slope(x: Any, d: int, at: Any, edge_order: int) -> Any:
    """Slopes along a dimension. `at` is the step between points, or where they stand."""
    n = x._array.shape[d]

    def part(start: int, stop: int) -> Any:
        return x.narrow(d, start, stop - start)

    if not isinstance(at, TensorBase):
        h: Any = at
        inside = (part(2, n) - part(0, n - 2)) / (2 * h)
        if edge_order == 1:
            first, last = (part(1, 2) - part(0, 1)) / h, (part(n - 1, n) - part(n - 2, n - 1)) / h
        else:
            first = (4 * part(1, 2) - 3 * part(0, 1) - part(2, 3)) / (2 * h)
            last = (part(n - 3, n - 2) - 4 * part(n - 2, n - 1) + 3 * part(n - 1, n)) / (2 * h)
        return functions["cat"]([first, inside, last], d)
    places: Any = at
    steps = places.narrow(0, 1, n - 1) - places.narrow(0, 0, n - 1)
    shape = [1] * x._array.ndim
    shape[d] = n - 1
    steps = steps.reshape(shape)

    def step(start: int, stop: int) -> Any:
        return steps.narrow(d, start, stop - start)

    a, b = step(0, n - 2), step(1, n - 1)
    inside = (
        part(0, n - 2) * (-b / (a * (a + b)))
        + part(1, n - 1) * ((b - a) / (a * b))
        + part(2, n) * (a / (b * (a + b)))
    )
    a, b = step(0, 1), step(n - 2, n - 1)
    if edge_order == 1:
        first, last = (part(1, 2) - part(0, 1)) / a, (part(n - 1, n) - part(n - 2, n - 1)) / b
    else:
        c = step(1, 2)
        first = (
            part(0, 1) * (-(2 * a + c) / (a * (a + c)))
            + part(1, 2) * ((a + c) / (a * c))
            + part(2, 3) * (-a / (c * (a + c)))
        )
        c = step(n - 3, n - 2)
        last = (
            part(n - 3, n - 2) * (b / (c * (c + b)))
            + part(n - 2, n - 1) * (-(b + c) / (b * c))
            + part(n - 1, n) * ((2 * b + c) / (b * (c + b)))
        )
    return functions["cat"]([first, inside, last], d)


@function(method=False, returns="tuple[Tensor, ...]")
def gradient(input: Any, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> Any:
    """The slopes of a sampled function along dimensions, by differences between neighbours.

    Args:
        spacing: how far apart the samples stand: a number, one for each dimension, or tensors with
            their places.
        edge_order: 1 or 2: of how many neighbours the slopes at both ends are made, less one.

    >>> torch.gradient(torch.tensor([1., 4., 9., 16.]))
    (tensor([3., 4., 6., 7.]),)
    """
    array = check_tensor(input, "gradient")
    dims = some_dims(dim, array.ndim)
    axes = [d + array.ndim for d in dims] if dims is not None else list(range(array.ndim))
    spacing = (
        python_number(spacing)
        if isinstance(spacing, TensorBase) and not spacing._array.ndim
        else spacing
    )
    spacing = 1 if spacing is None else spacing
    many = isinstance(spacing, (tuple, list))
    if not (many or is_number(spacing)):
        raise unmatched("gradient", _GRADIENT, (input,), {"spacing": spacing})
    at = list(spacing) if many else [spacing] * len(axes)
    if len(at) != len(axes):
        if dims is None:
            raise RuntimeError(
                "torch.gradient expected spacing to be unspecified, a scalar, or a list of length "
                f"equal to 'self.dim() = {array.ndim}', since dim argument was not given, but got "
                f"a list of length {len(at)}"
            )
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim "
            f"arguments to have the same length, but got a spacing argument of length {len(at)} "
            f"and a dim argument of length {len(axes)}."
        )
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    for d in axes:
        if array.shape[d] < edge_order + 1:
            raise RuntimeError(
                "torch.gradient expected each dimension size to be at least edge_order+1"
            )
    return tuple([_slope(input, d, place, edge_order) for d, place in zip(axes, at, strict=True)])
