"""Views with axes repeated without copying: `expand` and broadcasting."""

from __future__ import annotations

from typing import Any

from rushlight.arrays import vocabulary as v
from rushlight.core.families import ViewOp
from rushlight.core.views import plain_views
from rushlight.core.views.views import apply_view
from rushlight.errors import broadcast_mismatch, expand_mismatch, too_few_sizes
from rushlight.ops.checks import check_tensor, ints, tensor_type, tuple_of_ints
from rushlight.ops.registry import function, implements, op
from rushlight.ops.sample_inputs import drawn
from rushlight.size import Size


def sum_to(g: Any, shape: tuple[int, ...]) -> Any:
    """Sum what broadcasting from `shape` repeated."""
    have = g.shape
    if have == shape:
        return g
    lead = len(have) - len(shape)
    axes = [*range(lead)]
    axes += [lead + d for d, n in enumerate(shape) if n == 1 and have[lead + d] != 1]
    if axes:
        g = v.reduce_sum(g, tuple(axes), True)
    return v.reshape(g, shape) if lead else g


@op
class Expand(ViewOp):
    """Axes of size 1 repeated without copying, and new axes in front."""

    name, params = "expand", ("size",)
    saved_names = "self_sym_sizes=self.sizes"
    size: tuple[int, ...]

    def forward(self, x: Any) -> Any:
        return v.broadcast(x, self.size)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return sum_to(g, shape)

    samples = drawn(
        real=[((2, 2, 3), (2, 1)), ((2, 3), ()), ((0, 3), (1, 3))], complex=[((2, 3), (2, 3))]
    )


plain_views.view_ops.expand = Expand


@function(free=False, settles=True, quick=plain_views.expand, told=True)
def expand(input: Any, *sizes: Any, size: Any = None, implicit: bool = False) -> Any:
    """A view with dimensions of size 1 repeated; -1 keeps a size.

    >>> torch.tensor([[1], [2]]).expand(-1, 3)
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    given = ints("expand", "size", sizes if size is None else (size,))
    shape = input._array.shape
    lead = len(given) - len(shape)
    if lead < 0:
        raise RuntimeError(too_few_sizes(tensor_type(input), shape, given))
    full = list(given)
    for d, n in enumerate(given):
        have = shape[d - lead] if d >= lead else 1
        if n == -1:
            if d < lead:
                raise RuntimeError(
                    f"The expanded size of the tensor (-1) isn't allowed in a leading, "
                    f"non-existing dimension {d}"
                )
            full[d] = have
        elif have != n and (have != 1 or n < 0):
            if n < -1 and d < lead:
                raise RuntimeError(f"Trying to create tensor with negative dimension {n}")
            raise RuntimeError(expand_mismatch(d, have, shape, given))
    return apply_view(Expand(tuple(full)), input)


@function(free=False)
def expand_as(input: Any, other: Any) -> Any:
    """`expand` to the shape of `other`.

    >>> torch.tensor([1, 2]).expand_as(torch.zeros(2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return expand(input, tuple(other._array.shape))


@function()
def broadcast_to(input: Any, size: Any) -> Any:
    """A view of `input` in the broadcast shape `size`.

    >>> torch.broadcast_to(torch.tensor([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    check_tensor(input, "broadcast_to")
    return expand(input, tuple_of_ints("broadcast_to", "size", size, 2))


def broadcast_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that several broadcast to, or PyTorch's error."""
    out: tuple[int, ...] = ()
    for shape in shapes:
        rank = max(len(out), len(shape))
        a = (1,) * (rank - len(out)) + tuple(out)
        b = (1,) * (rank - len(shape)) + tuple(shape)
        if any(m != n and m != 1 and n != 1 for m, n in zip(a, b, strict=True)):
            raise RuntimeError(broadcast_mismatch(out, shape))
        out = tuple([n if m == 1 else m for m, n in zip(a, b, strict=True)])
    return out


@function(method=False, returns="tuple[Tensor, ...]")
def broadcast_tensors(*tensors: Any) -> Any:
    """Views of all the tensors in the shape that they broadcast to.

    >>> a, b = torch.broadcast_tensors(torch.zeros(3, 1), torch.zeros(2))
    >>> a.shape
    torch.Size([3, 2])
    """
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    shape = broadcast_shape(*[x._array.shape for x in tensors])
    return tuple([x if x._array.shape == shape else expand(x, shape) for x in tensors])


@function(method=False)
def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that tensors of these shapes broadcast to; a number is a shape of one dimension.

    >>> torch.broadcast_shapes((2, 1), 3)
    torch.Size([2, 3])
    """
    given = [tuple(s) if isinstance(s, (tuple, list)) else (s,) for s in shapes]
    for shape in given:
        if not all(hasattr(n, "__index__") for n in shape):
            raise RuntimeError(
                "Input shapes should be of type ints, a tuple of ints, or a list of ints, got "
                f"{shape[0] if len(shape) == 1 else shape}"
            )
    result = [1] * max((len(s) for s in given), default=0)
    for at, shape in enumerate(given):
        for i in range(-1, -1 - len(shape), -1):
            n = shape[i]
            if n == 1 or n == result[i]:
                continue
            if result[i] != 1:
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {n} at {i}! Mismatching "
                    f"argument at index {at} had {shape}; but expected shape should be "
                    f"broadcastable to {result}"
                )
            if n < 0:
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            result[i] = n
    return Size(result)


@implements("broadcast")
def _broadcast(x: Any, shape: Any) -> Any:
    return apply_view(Expand(tuple(shape)), x)
