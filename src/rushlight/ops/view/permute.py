"""Views with the axes in another order: `permute`, `transpose`, `movedim`, and `T` with its kin."""

from __future__ import annotations

from typing import Any, Final

from rushlight.arrays import vocabulary as v
from rushlight.core.families import ViewOp
from rushlight.core.views import plain_views
from rushlight.core.views.views import apply_view
from rushlight.ops.checks import ints, one_dim, tuple_of_ints
from rushlight.ops.registry import describe, function, methods, op, variant
from rushlight.ops.sample_inputs import drawn
from rushlight.ops.shape.contiguous import attribute
from rushlight.ops.view.family import view_in_place
from rushlight.ops.view.select import Alias
from rushlight.ops.warned import warn_caller


# --- any order ------------------------------------------------------------------------------------
@op
class Permute(ViewOp):
    """The axes in another order (negative ints; further axes in front stay)."""

    name, params = "permute", ("dims",)
    word = "permute"
    saved_names = "dims=dims*"
    dims: tuple[int, ...]

    def forward(self, x: Any) -> Any:
        return v.permute(x, (*range(x.ndim - len(self.dims)), *self.dims))

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        rank = len(self.dims)
        back = [0] * rank
        for position, d in enumerate(self.dims):
            back[d] = position - rank
        return v.permute(g, (*range(g.ndim - rank), *back))

    samples = drawn(real=[((-1, -3, -2), (2, 3, 4)), ((), ())], complex=[((-1, -2), (2, 3))])


plain_views.view_ops.permute = Permute


@function(method=False, settles=True, quick=plain_views.permute)
def permute(input: Any, dims: Any) -> Any:
    """A view with the dimensions in the order `dims`.

    >>> torch.permute(torch.zeros(2, 3, 4), (2, 0, 1)).shape
    torch.Size([4, 2, 3])
    """
    order = tuple_of_ints("permute", "dims", dims, 2)
    rank = input._array.ndim
    if len(order) != rank:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the "
            f"length of the desired ordering of dimensions i.e. input.dim() = {rank} is not equal "
            f"to len(dims) = {len(order)}"
        )
    found = tuple([one_dim(d, rank) for d in order])
    if len(set(found)) != rank:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return apply_view(Permute(found), input)


@function(name="permute", free=False, settles=True, quick=plain_views.permute, told=True)
def _permute_method(input: Any, *order: Any, dims: Any = None) -> Any:
    """A view with the dimensions in the order `dims`.

    >>> torch.zeros(2, 3, 4).permute(2, 0, 1).shape
    torch.Size([4, 2, 3])
    """
    return permute(input, ints("permute", "dims", order if dims is None else (dims,)))


@function(settles=True)
def movedim(input: Any, source: Any, destination: Any) -> Any:
    """Dimensions moved to other places; the rest keep their order.

    Args:
        source: the dimensions to move.

    >>> torch.movedim(torch.zeros(2, 3, 4), 0, -1).shape
    torch.Size([3, 4, 2])
    """
    src = list(source) if isinstance(source, (tuple, list)) else [source]
    dst = list(destination) if isinstance(destination, (tuple, list)) else [destination]
    if len(src) != len(dst):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({src} dims) should contain the "
            f"same number of dims as destination ({dst} dims)"
        )
    rank = input._array.ndim
    a = [one_dim(d, rank) for d in src]
    b = [one_dim(d, rank) for d in dst]
    for found, title, given in ((a, "source", src), (b, "destination", dst)):
        if len(set(found)) != len(found):
            raise RuntimeError(f"movedim: repeated dim in `{title}` ({given})")
    if rank == 0:
        return apply_view(Alias(), input)
    order: list[Any] = [None] * rank
    for s, d in zip(a, b, strict=True):
        order[d] = s
    rest = iter([d for d in range(-rank, 0) if d not in a])
    return apply_view(Permute(tuple([next(rest) if d is None else d for d in order])), input)


_MOVEAXIS: Final = describe(
    "Another name of `movedim`.",
    "torch.moveaxis(torch.zeros(2, 3, 4), 0, -1).shape", "torch.Size([3, 4, 2])",
)  # fmt: skip
function()(variant(movedim, "moveaxis", _MOVEAXIS))


# --- two axes exchanged ---------------------------------------------------------------------------
@op
class Transpose(ViewOp):
    """Two axes exchanged."""

    name, params = "transpose", ("dim0", "dim1")
    word = "swap"
    aten = "transpose.int"
    saved_names = "dim0 dim1"
    dim0: int
    dim1: int

    def forward(self, x: Any) -> Any:
        return v.swap(x, self.dim0, self.dim1) if self.dim0 != self.dim1 else v.window(x, (...,))

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return v.swap(g, self.dim0, self.dim1) if self.dim0 != self.dim1 else g

    samples = drawn(real=[(-3, -1, (2, 3, 4)), (-1, -1, ())], complex=[(-2, -1, (2, 0))])


class TransposeInplace(Transpose):
    node, aten = "TransposeBackward1", "transpose_.default"


plain_views.view_ops.transpose = Transpose


@function(settles=True, quick=plain_views.transpose)
def transpose(input: Any, dim0: int, dim1: int) -> Any:
    """A view with two dimensions exchanged.

    >>> torch.transpose(torch.zeros(2, 3, 4), 0, 2).shape
    torch.Size([4, 3, 2])
    """
    rank = input._array.ndim
    return apply_view(Transpose(one_dim(dim0, rank), one_dim(dim1, rank)), input)


def _export_swap(name: str, first: str, second: str) -> None:
    def swap(input: Any, a: int, b: int) -> Any:
        return transpose(input, a, b)

    example = f"torch.{name}(torch.zeros(2, 3), 0, 1).shape"
    doc = describe("Another name of `transpose`.", example, "torch.Size([3, 2])")
    function()(variant(swap, name, doc, a=first, b=second))


_export_swap("swapaxes", "axis0", "axis1")
_export_swap("swapdims", "dim0", "dim1")


@function(free=False, aliases=("swapdims_", "swapaxes_"))
def transpose_(input: Any, dim0: int, dim1: int) -> Any:
    """In-place version of `transpose`."""
    rank = input._array.ndim
    return view_in_place(TransposeInplace(one_dim(dim0, rank), one_dim(dim1, rank)), input)


# --- matrices -------------------------------------------------------------------------------------
@op
class T(ViewOp):
    """`t()`: a matrix transposed; vectors and numbers stay."""

    name, params = "t", ("rank",)
    saved_names = ""
    rank: int

    def forward(self, x: Any) -> Any:
        return v.swap(x, -2, -1) if self.rank == 2 else v.window(x, (...,))

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return v.swap(g, -2, -1) if self.rank == 2 else g

    samples = drawn(real=[(2, (2, 3)), (1, (3,)), (0, ())])


class TInplace(T):
    node = "TBackward1"


def t_op(cls: Any, input: Any, name: str) -> Any:
    """The op that `t` and `t_` mean."""
    rank = input._array.ndim
    if rank > 2:
        raise RuntimeError(f"{name}() expects a tensor with <= 2 dimensions, but self is {rank}D")
    return cls(rank)


plain_views.view_ops.t = T


@function(settles=True, quick=plain_views.t)
def t(input: Any) -> Any:
    """A matrix transposed, as a view.

    >>> torch.t(torch.zeros(2, 3)).shape
    torch.Size([3, 2])
    """
    return apply_view(t_op(T, input, "t"), input)


@function(free=False)
def t_(input: Any) -> Any:
    """In-place version of `t`."""
    return view_in_place(t_op(TInplace, input, "t_"), input)


def _transpose_last(input: Any, name: str, most: int) -> Any:
    """The last two dimensions exchanged, for `mT`, `mH`, `H` and `adjoint`."""
    rank = input._array.ndim
    if rank == 0:
        warn_caller(f"{name} is deprecated on 0-D tensors. Consider using x.conj() or x.")
        return apply_view(Permute(()), input)
    if rank == 1 or rank > most:
        what = "matrices (2-D tensors)" if most == 2 else "matrices or batches of matrices"
        more = " For batches of matrices, consider using tensor.mH" if rank > 2 else ""
        raise RuntimeError(f"{name} is only supported on {what}. Got {rank}-D tensor.{more}")
    return apply_view(Transpose(-2, -1), input)


def _conjugate(x: Any) -> Any:
    return methods["conj"](x)


@function()
def adjoint(input: Any) -> Any:
    """The last two dimensions exchanged, and the elements conjugated.

    >>> torch.adjoint(torch.tensor([[1., 2.]]))
    tensor([[1.],
            [2.]])
    """
    return _conjugate(_transpose_last(input, "tensor.adjoint()", 64))


def _T(input: Any) -> Any:
    """All dimensions in reverse order, as a view."""
    rank = input._array.ndim
    if rank not in (0, 2):
        if rank == 1:
            return apply_view(Permute((-1,)), input)
        warn_caller(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is "
            "deprecated and it will throw an error in a future release. Consider `x.mT` to "
            "transpose batches of matrices or `x.permute(*torch.arange(x.ndim - 1, -1, -1))` to "
            "reverse the dimensions of a tensor."
        )
    elif rank == 0:
        warn_caller(
            "Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases."
        )
    return apply_view(Permute(tuple(range(-1, -rank - 1, -1))), input)


def _mT(input: Any) -> Any:
    """The last two dimensions exchanged, as a view."""
    return _transpose_last(input, "tensor.mT", 64)


def _H(input: Any) -> Any:
    """A matrix transposed and conjugated."""
    return _conjugate(_transpose_last(input, "tensor.H", 2))


def _mH(input: Any) -> Any:
    """The last two dimensions exchanged, and the elements conjugated."""
    return _conjugate(_transpose_last(input, "tensor.mH", 64))


attribute("T", _T, settles=True)
attribute("mT", _mT, settles=True)
attribute("H", _H)
attribute("mH", _mH)
