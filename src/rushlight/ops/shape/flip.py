"""Copies with the elements in another order: `flip`, `roll`, `rot90`."""

from __future__ import annotations

from math import prod
from typing import Any

from rushlight.arrays import kernels
from rushlight.arrays import vocabulary as v
from rushlight.core.families import Linear
from rushlight.ops.apply import run
from rushlight.ops.checks import check_tensor, ints, one_dim, tuple_of_ints
from rushlight.ops.each_member import batch_leading
from rushlight.ops.registry import function, op
from rushlight.ops.sample_inputs import drawn


@op
class Flip(Linear):
    """The order along `dims` reversed."""

    name, params = "flip", ("dims",)
    word = "flip"
    saved_names = "dims=dims*"
    dims: tuple[int, ...]
    vmap_rule = batch_leading

    def mover(self, rule: str) -> Any:
        return kernels.bound(kernels.flipped, self.dims)

    def forward(self, x: Any) -> Any:
        return v.flip(x, self.dims) if self.dims else v.copy(x)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return v.flip(g, self.dims) if self.dims else g

    samples = drawn(real=[((-1,), (2, 3)), ((), ())], complex=[((-2, -1), (2, 3))])


def _flip(input: Any, dims: tuple[int, ...]) -> Any:
    rank = input._array.ndim
    found = tuple([one_dim(d, rank) for d in dims])
    for d in found:
        if found.count(d) > 1:
            raise RuntimeError(f"dim {d + max(rank, 1)} appears multiple times in the list of dims")
    return run(Flip(found if rank else ()), (input,))


@function(method=False, settles=True)
def flip(input: Any, dims: Any) -> Any:
    """A copy with the order along `dims` reversed.

    >>> torch.flip(torch.tensor([1, 2, 3]), (0,))
    tensor([3, 2, 1])
    """
    check_tensor(input, "flip")
    return _flip(input, tuple_of_ints("flip", "dims", dims, 2))


@function(name="flip", free=False, settles=True)
def _flip_method(input: Any, *order: Any, dims: Any = None) -> Any:
    """A copy with the order along `dims` reversed.

    >>> torch.tensor([1, 2, 3]).flip(0)
    tensor([3, 2, 1])
    """
    return flip(input, ints("flip", "dims", order if dims is None else (dims,)))


@function(settles=True)
def fliplr(input: Any) -> Any:
    """A copy with the columns in reverse order.

    >>> torch.fliplr(torch.tensor([[1, 2]]))
    tensor([[2, 1]])
    """
    if input._array.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return _flip(input, (1,))


@function(settles=True)
def flipud(input: Any) -> Any:
    """A copy with the rows in reverse order.

    >>> torch.flipud(torch.tensor([1, 2]))
    tensor([2, 1])
    """
    if input._array.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return _flip(input, (0,))


@op
class Roll(Linear):
    """Elements moved along `dims`; what leaves at one end enters at the other. No dims: flat."""

    name, params = "roll", ("shifts", "dims")
    word = "roll"
    saved_names = "shifts dims=dims*"
    shifts: tuple[int, ...]
    dims: tuple[int, ...]

    @property
    def lies(self) -> str:  # type: ignore[override]  # of this instance
        return "channels" if self.dims else "rows"

    def forward(self, x: Any) -> Any:
        return self.moved(v.contiguous(x) if self.dims else x, self.shifts)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return self.moved(g, tuple([-s for s in self.shifts]))

    def mover(self, rule: str) -> Any:
        shifts = self.shifts if rule == "forward" else tuple([-s for s in self.shifts])
        return kernels.bound(kernels.rolled, shifts, self.dims)

    def moved(self, x: Any, shifts: tuple[int, ...]) -> Any:
        if self.dims:
            return v.roll(x, shifts, self.dims)
        return v.reshape(v.roll(v.reshape(x, (prod(x.shape),)), shifts, (0,)), x.shape)

    samples = drawn(
        real=[((1,), (-1,), (2, 3)), ((1,), (), (2, 3)), ((3,), (), ())],
        complex=[((2, -1), (-2, -1), (3, 3))],
    )


@function(settles=True)
def roll(input: Any, shifts: Any, dims: Any = ()) -> Any:
    """Elements moved along `dims`, round the end; without dims, of the flattened tensor.

    Args:
        dims: the dimensions that `shifts` belong to; none: the flattened tensor.

    >>> torch.roll(torch.tensor([1, 2, 3]), 1)
    tensor([3, 1, 2])
    """
    check_tensor(input, "roll")
    by = ints("roll", "shifts", (shifts,))
    given = () if dims is None else ints("roll", "dims", (dims,))
    if not by:
        raise RuntimeError("`shifts` required")
    if len(by) != len(given) and not (len(by) == 1 and not given):
        raise RuntimeError(
            f"shifts and dimensions must align. shifts: {len(by)}, dims:{len(given)}"
        )
    rank = input._array.ndim
    if given and not rank:
        raise IndexError(f"Dimension specified as {given[0]} but tensor has no dimensions")
    found = tuple([one_dim(d, rank) for d in given])
    return run(Roll(by, found if rank else ()), (input,))


@op
class Rot90(Linear):
    """A quarter turn, `k` times, from the first of `dims` towards the second."""

    name, params = "rot90", ("k", "dims")
    saved_names = "k dims=dims*"
    k: int
    dims: tuple[int, int]

    def forward(self, x: Any) -> Any:
        return self.turned(x, self.k % 4)

    def turned(self, x: Any, k: int) -> Any:
        a, b = self.dims
        if k == 1:
            return v.swap(v.flip(x, (b,)), a, b)
        if k == 2:
            return v.flip(x, (a, b))
        if k == 3:
            return v.swap(v.flip(x, (a,)), a, b)
        return v.laid_out(x, None)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return self.turned(g, -self.k % 4)

    samples = drawn(
        real=[(1, (-2, -1), (2, 3)), (2, (-3, -1), (2, 3, 2)), (4, (-2, -1), (2, 2))],
        complex=[(-1, (-1, -2), (2, 3))],
    )


@function(settles=True)
def rot90(input: Any, k: int = 1, dims: Any = (0, 1)) -> Any:
    """A copy turned by `k` quarter turns in the plane of two dimensions.

    Args:
        k: how many quarter turns.
        dims: the two dimensions of the plane to turn.

    >>> torch.rot90(torch.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    given = ints("rot90", "dims", (dims,))
    rank = input._array.ndim
    if len(given) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(given)}")
    if rank < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {rank}")
    a, b = one_dim(given[0], rank), one_dim(given[1], rank)
    if a == b:
        raise RuntimeError(
            "expected rotation dims to be different, but got dim0 = "
            f"{given[0]} and dim1 = {given[1]}"
        )
    return run(Rot90(k, (a, b)), (input,))
