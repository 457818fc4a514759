"""What else PyTorch's nodes show beside saved tensors: `_saved_dim`, `_saved_self_sym_sizes`, …

Tools that draw graphs print them. An op's parameters have names of their own here, so for the
nodes listed below the names are PyTorch's and are worked out when someone reads them; the nodes of
other ops show their parameters as they are. Imported by `core.saved.saved_values` alone.

    name      the parameter of that name          dim       one of `dim`, `dims`; not negative
    name=p    the parameter p                     dims*     all of them, as a tuple
    x.sizes   the shape of input x                x.numel   the number of its elements
"""

from __future__ import annotations

from typing import Any, Final

from rushlight.core.graph import Node
from rushlight.core.saved.output_meta import shape_of_input

__all__ = ["show"]

_WHOLE: Final = 2**63 - 1  # where a slice without an end ends

_TABLE: Final = """
AminmaxBackward0: dim=dims keepdim
AmaxBackward0: dim=dims* keepdim
AminBackward0: dim=dims* keepdim
AsStridedBackward0: size stride storage_offset
BinaryCrossEntropyBackward0: reduction
BinaryCrossEntropyWithLogitsBackward0: reduction
CatBackward0: dim
CloneBackward0:
ConstantPadNdBackward0: pad
CummaxBackward0: dim
CumminBackward0: dim
CumprodBackward0: dim
CumsumBackward0: dim
DiagonalBackward0: offset dim1 dim2 self_sym_sizes=self.sizes
DistBackward0: p
ExpandBackward0: self_sym_sizes=self.sizes
FillBackward2:
FlipBackward0: dims=dims*
FmodBackward0:
GatherBackward0: dim
HuberLossBackward0: reduction delta
IndexAddBackward0: dim alpha
IndexBackward0: self_sym_sizes=self.sizes
IndexCopyBackward0: dim
IndexFillBackward0: dim
IndexSelectBackward0: dim self_sym_sizes=self.sizes
KthvalueBackward0: dim=dims keepdim self_sym_sizes=self.sizes
LinalgCrossBackward0: dim
LinalgEighBackward0:
LinalgSolveExBackward0: left
LinalgVectorNormBackward0: ord dim=dims* keepdim
LogSoftmaxBackward0: dim
LogcumsumexpBackward0: dim
LogsumexpBackward0: dim=dims* keepdim
MaskedFillBackward0:
MaxBackward0: dim=dims keepdim self_sym_sizes=self.sizes
MaxBackward1:
MeanBackward0: self_sym_numel=self.numel self_sym_sizes=self.sizes
MeanBackward1: dim=dims* keepdim self_sym_numel=self.numel self_sym_sizes=self.sizes
MedianBackward0:
MedianBackward1: dim=dims keepdim self_sym_sizes=self.sizes
MinBackward0: dim=dims keepdim self_sym_sizes=self.sizes
MinBackward1:
MmBackward0: self_sym_sizes=self.sizes mat2_sym_sizes=mat2.sizes
MseLossBackward0: reduction
NanToNumBackward0:
NansumBackward0: dim=dims* keepdim
PermuteBackward0: dims=dims*
PowBackward2: self=base
ProdBackward0:
ProdBackward1: dim=dims keepdim
RemainderBackward0:
RenormBackward0: p maxnorm
RepeatBackward0: repeats self_sym_sizes=self.sizes
RollBackward0: shifts dims=dims*
Rot90Backward0: k dims=dims*
ScatterAddBackward0: dim
ScatterBackward0: dim
ScatterBackward1: dim
SelectBackward0: dim index self_sym_sizes=self.sizes
SliceBackward0: dim start end=stop step self_sym_sizes=self.sizes
SmoothL1LossBackward0: reduction beta
SoftmaxBackward0: dim
SortBackward0: dim self_sym_sizes=self.sizes
SplitBackward0: split_size dim self_sym_sizes=self.sizes
SplitWithSizesBackward0: split_sizes dim self_sym_sizes=self.sizes
SqueezeBackward0: self_sym_sizes=self.sizes
SqueezeBackward1: dim self_sym_sizes=self.sizes
SqueezeBackward2: dim=dim* self_sym_sizes=self.sizes
StackBackward0: dim
StdBackward0: dim=dims* keepdim correction
StdMeanBackward0: dim=dims* keepdim correction
SumBackward0: self_sym_sizes=self.sizes
SumBackward1: dim=dims* keepdim self_sym_sizes=self.sizes
TBackward0:
ToCopyBackward0:
TopkBackward0: dim self_sym_sizes=self.sizes
TraceBackward0: self_sym_sizes=self.sizes
TransposeBackward0: dim0 dim1
UnbindBackward0: dim
UnfoldBackward0: dimension=dim size step self_sym_sizes=self.sizes
UnsafeViewBackward0: self_sym_sizes=self.sizes
UnsqueezeBackward0: dim
VarBackward0: dim=dims* keepdim correction
VarMeanBackward0: dim=dims* keepdim correction
ViewBackward0: self_sym_sizes=self.sizes
WhereBackward0:
"""


def _read() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in _TABLE.split("\n"):
        if line:
            title, names = line.split(":", 1)
            found[title] = names.split()
    return found


_shown: Final = _read()
_AXES: Final = ("dim", "dims", "dim0", "dim1", "dim2")
_ONE_MORE: Final = ("StackBackward0", "UnsqueezeBackward0")  # `dim` is one of the result's


def show(cls: Any) -> None:
    """Give a class of nodes the names that PyTorch's has, and take its own parameters away."""
    entries = _shown.get(cls.__name__)
    if entries is None:
        return
    for key, member in list(vars(cls).items()):
        if key.startswith("_saved_") and isinstance(member, property):
            raw = "_raw" + key
            if raw not in vars(cls):  # a parameter, not a saved tensor
                delattr(cls, key)
    for entry in entries:
        name, _, source = entry.partition("=")
        setattr(cls, "_saved_" + name, _reader(source or name))


def _reader(source: str) -> property:
    def read(self: Any) -> Any:
        return value_of(self, source)

    return property(read)


def value_of(node: Node, source: str) -> Any:
    """What an entry of the table stands for."""
    op: Any = node._op
    if "." in source:
        name, _, what = source.partition(".")
        inputs: tuple[str, ...] = op.inputs
        shape = shape_of_input(node, inputs.index(name) if name in inputs else 0)
        if what == "sizes":
            return shape
        numel = 1
        for n in shape:
            numel *= n
        return numel
    several = source.endswith("*")
    name = source.rstrip("*")
    value = getattr(op, name)
    if name == "stop":
        return _WHOLE if value is None else value
    if name not in _AXES or value is None:
        return value
    rank = len(shape_of_input(node, 0))
    if type(node).__name__ in _ONE_MORE:
        rank += 1
    axes = [d + rank if d < 0 else d for d in (value if isinstance(value, tuple) else (value,))]
    return tuple(axes) if several else axes[0]
