"""Views that copy: `t_copy`, `select_copy` and their kin, all made here from the views.

A view is taken, and the op that made it becomes an op whose result is a copy in rows. So shapes,
errors and derivatives are those of the view.
"""

from __future__ import annotations

import functools
from typing import Any, Final

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.core.families import Linear
from rushlight.core.graph import Node
from rushlight.core.record import apply
from rushlight.core.views.views import apply_view
from rushlight.ops.checks import check_tensor
from rushlight.ops.out import write_out
from rushlight.ops.registry import describe, function, functions, methods, variant
from rushlight.ops.view.reshape import ViewShape
from rushlight.ops.view.select import ALIAS


class ViewCopy(Linear):
    """What the view op `view` shows, copied."""

    params = ("view",)
    view: Any

    def forward(self, x: Any) -> Any:
        return v.laid_out(self.view.forward(x), None)

    def vjp(self, node: Node, g: Any) -> Any:
        return self.view.vjp(node, g)

    def explain(self, error: Exception, xs: tuple[Any, ...]) -> Exception:
        found: Exception = self.view.explain(error, xs)
        return found


_PARTED: Final = {
    "split_copy": "SplitBackward0", "split_with_sizes_copy": "SplitWithSizesBackward0",
    "unbind_copy": "UnbindBackward0",
}  # fmt: skip


@functools.cache
def _copying(cls: Any, title: str) -> type[ViewCopy]:
    """The class of copies of what a class of views shows; `title` is its node, if it has another
    than the view's."""
    words = "".join(w.capitalize() for w in cls.name.split("_"))
    title = title or cls.node or f"{words}Backward0"
    shown = (cls.aten or cls.name).split(".")[0]
    facts = {
        "name": f"{cls.name}_copy", "node": f"{title}_copy", "profile_name": f"{shown}_copy",
    }  # fmt: skip
    made: type[ViewCopy] = type(cls.__name__ + "Copy", (ViewCopy,), facts)
    return made


def _copied(name: str, input: Any, seen: Any) -> Any:
    """A copy of a view, recorded as a function of what it is a view of."""
    if isinstance(seen, (tuple, list)):
        return tuple([_copied(name, input, one) for one in seen])
    view = seen._view
    if view is None or len(view.last) != 1 or seen is input or view.before is not input._view:
        return seen.clone(memory_format=dtypes.contiguous_format)
    op = view.last[0]
    kind: Any = type(op)
    return apply(_copying(kind, _PARTED.get(name, ""))(op), input)


def _finish(name: str, input: Any, out: Any, seen: Any) -> Any:
    if out is None:
        return _copied(name, input, seen)
    if isinstance(seen, (tuple, list)):
        for target, one in zip(out, seen, strict=True):
            target.copy_(one)
        return None
    return write_out(name, (input,), out, lambda: _copied(name, input, seen))


# --- the table ------------------------------------------------------------------------------------
# Signatures are PyTorch's: the parameters of a view, and out=.
def _view_copy(input: Any, size: Any = None, *, dtype: Any = None, out: Any = None) -> Any:
    check_tensor(input, "view_copy")
    if size is None:
        size = dtype
    if not isinstance(size, dtypes.dtype):  # a copy has any shape, whatever the strides
        seen = methods["reshape"](input, size)
        if seen._view is None:
            made = _copying(ViewShape, "")(ViewShape(tuple(seen.shape)))
            return write_out("view_copy", (input,), out, lambda: apply(made, input))
    return _finish("view_copy", input, out, methods["view"](input, size))


def _permute_copy(input: Any, dims: Any, *, out: Any = None) -> Any:
    return _finish("permute_copy", input, out, functions["permute"](input, dims))


def _select_copy(input: Any, dim: int, index: int, *, out: Any = None) -> Any:
    return _finish("select_copy", input, out, functions["select"](input, dim, index))


def _slice_copy(
    input: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1, *,
    out: Any = None,
) -> Any:  # fmt: skip
    check_tensor(input, "slice_copy")
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    at = dim % max(input.ndim, 1)
    seen = input[(*[slice(None)] * at, slice(start, end, step))]
    return _finish("slice_copy", input, out, seen)


def _split_copy(input: Any, split_size: Any, dim: int = 0, *, out: Any = None) -> Any:
    return _finish("split_copy", input, out, functions["split"](input, split_size, dim))


def _split_with_sizes_copy(input: Any, split_sizes: Any, dim: int = 0, *, out: Any = None) -> Any:
    seen = functions["split_with_sizes"](input, split_sizes, dim)
    return _finish("split_with_sizes_copy", input, out, seen)


def _unbind_copy(input: Any, dim: int = 0, *, out: Any = None) -> Any:
    return _finish("unbind_copy", input, out, functions["unbind"](input, dim))


def _unfold_copy(input: Any, dimension: int, size: int, step: int, *, out: Any = None) -> Any:
    return _finish("unfold_copy", input, out, methods["unfold"](input, dimension, size, step))


def _as_strided_copy(
    input: Any, size: Any, stride: Any, storage_offset: int | None = None, *, out: Any = None
) -> Any:
    seen = functions["as_strided"](input, size, stride, storage_offset)
    return _finish("as_strided_copy", input, out, seen)


def _diagonal_copy(
    input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1, *, out: Any = None
) -> Any:
    return _finish("diagonal_copy", input, out, functions["diagonal"](input, offset, dim1, dim2))


def _expand_copy(input: Any, size: Any, *, implicit: bool = False, out: Any = None) -> Any:
    return _finish("expand_copy", input, out, methods["expand"](input, size))


def _squeeze_copy(input: Any, dim: Any = None, *, out: Any = None) -> Any:
    given = () if dim is None else (dim,)
    return _finish("squeeze_copy", input, out, functions["squeeze"](input, *given))


def _transpose_copy(input: Any, dim0: int, dim1: int, *, out: Any = None) -> Any:
    return _finish("transpose_copy", input, out, functions["transpose"](input, dim0, dim1))


def _unsqueeze_copy(input: Any, dim: int, *, out: Any = None) -> Any:
    return _finish("unsqueeze_copy", input, out, functions["unsqueeze"](input, dim))


def _plain(name: str) -> Any:
    """Of a view without parameters."""

    def copy(input: Any, *, out: Any = None) -> Any:
        check_tensor(input, f"{name}_copy")
        seen = apply_view(ALIAS, input) if name == "alias" else functions[name](input)
        return _finish(f"{name}_copy", input, out, seen)

    return copy


def _detach_copy(input: Any, *, out: Any = None) -> Any:
    check_tensor(input, "detach_copy")
    return write_out("detach_copy", (), out, lambda: input.detach().clone())


_COPIES: Final[tuple[tuple[str, Any, str, str], ...]] = (
    ("view", _view_copy, "torch.arange(4), (2, 2)", "tensor([[0, 1],\n        [2, 3]])"),
    ("permute", _permute_copy, "torch.zeros(2, 3), (1, 0)", ""),
    ("select", _select_copy, "torch.arange(3), 0, 1", "tensor(1)"),
    ("slice", _slice_copy, "torch.arange(4), 0, 1, 3", "tensor([1, 2])"),
    ("split", _split_copy, "torch.arange(3), 2", "(tensor([0, 1]), tensor([2]))"),
    ("split_with_sizes", _split_with_sizes_copy, "torch.arange(3), (1, 2)",
     "(tensor([0]), tensor([1, 2]))"),
    ("unbind", _unbind_copy, "torch.arange(2)", "(tensor(0), tensor(1))"),
    ("unfold", _unfold_copy, "torch.arange(3), 0, 2, 1", "tensor([[0, 1],\n        [1, 2]])"),
    ("as_strided", _as_strided_copy, "torch.arange(4), (2,), (2,)", "tensor([0, 2])"),
    ("diagonal", _diagonal_copy, "torch.eye(2)", "tensor([1., 1.])"),
    ("expand", _expand_copy, "torch.zeros(1), (2,)", "tensor([0., 0.])"),
    ("squeeze", _squeeze_copy, "torch.zeros(1, 2)", "tensor([0., 0.])"),
    ("transpose", _transpose_copy, "torch.zeros(1, 2), 0, 1", "tensor([[0.],\n        [0.]])"),
    ("unsqueeze", _unsqueeze_copy, "torch.arange(2), 0", "tensor([[0, 1]])"),
    ("t", _plain("t"), "torch.zeros(1, 2)", "tensor([[0.],\n        [0.]])"),
    ("view_as_real", _plain("view_as_real"), "torch.tensor([1j])", "tensor([[0., 1.]])"),
    ("view_as_complex", _plain("view_as_complex"), "torch.tensor([[0., 1.]])", "tensor([0.+1.j])"),
    ("alias", _plain("alias"), "torch.arange(2)", "tensor([0, 1])"),
    ("detach", _detach_copy, "torch.arange(2)", "tensor([0, 1])"),
)  # fmt: skip


def _export_copies() -> None:
    for name, fn, at, gives in _COPIES:
        example = f"torch.{name}_copy({at})" + ("" if gives else ".shape")
        text = describe(
            f"What `{name}` shows, in memory of its own.", example, gives or "torch.Size([3, 2])"
        )
        function(method=False)(variant(fn, f"{name}_copy", text))


_export_copies()
