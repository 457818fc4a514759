"""What else PyTorch's nodes show besides saved tensors: `_saved_dim`, `_saved_self_sym_sizes`, …

Tools that draw graphs print them. An op's parameters have names of their own here, so where an op
states `saved_names`, its nodes show these, worked out when someone reads them; the nodes of other
ops show their parameters as they are. Entries are separated by spaces:

    name      the parameter of that name          dim       one of `dim`, `dims`; not negative
    name=p    the parameter p                     dims*     all of them, as a tuple
    x.sizes   the shape of input x                dim+      of the result's, which has one more
    x.numel   the number of its elements          x.0       the size of its first dimension
    x.strides of a factor of a matrix product: () where it wants no gradient
"""

from __future__ import annotations

from typing import Any, Final

from rushlight.core.graph import Node
from rushlight.core.saved.output_meta import shape_of_input

_WHOLE: Final = 2**63 - 1  # where a slice without an end ends

_AXES: Final = ("dim", "dims", "dim0", "dim1", "dim2")


def show(cls: Any) -> None:
    """Give a class of nodes the names that PyTorch's has, and take its own parameters away."""
    names: str | None = None if cls._op_class is None else cls._op_class.saved_names
    if names is None:
        return
    for key, member in list(vars(cls).items()):
        if key.startswith("_saved_") and isinstance(member, property):
            raw = "_raw" + key
            if raw not in vars(cls):  # a parameter, not a saved tensor
                delattr(cls, key)
    for entry in names.split():
        name, _, source = entry.partition("=")
        setattr(cls, "_saved_" + name, _reader(source or name))


def _reader(source: str) -> property:
    def read(self: Any) -> Any:
        return value_of(self, source)

    return property(read)


def value_of(node: Node, source: str) -> Any:
    """What an entry stands for."""
    op: Any = node._op
    if "." in source:
        name, _, what = source.partition(".")
        inputs: tuple[str, ...] = op.inputs
        shape = shape_of_input(node, inputs.index(name) if name in inputs else 0)
        if what == "sizes":
            return shape
        if what.isdigit():
            return shape[int(what)]
        if what == "strides":
            at = inputs.index(name)
            if not node._needs_grad(at):
                return ()
            rows, columns = shape
            by_columns = op.columns >> (at - len(inputs) + 2) & 1
            return (1, rows) if by_columns else (columns, 1)
        numel = 1
        for n in shape:
            numel *= n
        return numel
    several = source.endswith("*")
    name = source.rstrip("*+")
    value = getattr(op, name)
    if name == "stop":
        return _WHOLE if value is None else value
    if name not in _AXES or value is None:
        return value
    rank = len(shape_of_input(node, 0))
    if source.endswith("+"):
        rank += 1
    axes = [d + rank if d < 0 else d for d in (value if isinstance(value, tuple) else (value,))]
    return tuple(axes) if several else axes[0]
