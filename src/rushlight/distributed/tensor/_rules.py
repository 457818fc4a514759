"""What functions mean for tensors of which each process has a part.

facts       `shape`, `numel`: of the whole tensor
pointwise   each process computes with its parts, if all operands are cut alike
sums        each process sums its part: the result is partial; norms are finished at once
all whole   where each process has all of each operand, it computes alone
else        an error says that there is no rule
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final

from rushlight.core.graph import TensorBase
from rushlight.distributed.tensor._redistribute import all_reduce
from rushlight.distributed.tensor.placement_types import Partial, Replicate, Shard
from rushlight.ops.registry import functions
from rushlight.size import Size

# Functions that compute each element by itself; those with `_` behind write their first operand.
POINTWISE: Final = frozenset(
    """abs add addcdiv addcmul bfloat16 bool ceil clamp clamp_max clamp_min clip clone contiguous
    copy copysign cos cpu cuda detach div divide double empty_like eq exp expm1 fill float floor
    full_like ge gelu gt half int isfinite isinf isnan le leaky_relu lerp log log1p logical_and
    logical_not logical_or long lt maximum minimum mul multiply nan_to_num ne neg negative
    ones_like positive pow reciprocal relu round rsqrt sigmoid sign silu sin softplus sqrt square
    sub subtract tanh to true_divide type type_as view_as where zero zeros_like
    __add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __neg__ __pow__
    __rpow__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __iadd__ __isub__ __imul__ __itruediv__
    __abs__""".split()
)
# Of these, the ones that may be applied to each summand of a sum.
LINEAR: Final = frozenset(
    """add sub neg negative clone contiguous detach zeros_like empty_like ones_like full_like zero
    fill copy to cpu cuda float double half bfloat16 mul div true_divide view_as
    __add__ __radd__ __sub__ __rsub__ __neg__ __mul__ __rmul__ __truediv__ __iadd__ __isub__
    __imul__ __itruediv__""".split()
)
_SCALING: Final = frozenset(
    "mul div true_divide __mul__ __rmul__ __truediv__ __imul__ __itruediv__".split()
)
# Answers that do not depend on how a tensor is cut, and hooks: asked of this process's part.
LOCAL: Final = frozenset(
    """is_floating_point is_complex is_signed element_size data_ptr requires_grad_ is_pinned
    register_hook register_post_accumulate_grad_hook retain_grad get_device is_inference
    untyped_storage storage _typed_storage is_conj is_neg is_shared has_names __hash__
    detach_ is_contiguous storage_offset""".split()
)


def plain_name(func: Any) -> str:
    """The name of a function without the `_` of those that write their operand."""
    name = str(getattr(func, "__name__", func))
    return name.rstrip("_") if not name.startswith("__") else name


def operands(values: Any) -> Iterator[Any]:
    """The tensors among arguments, in lists too."""
    for value in values:
        if isinstance(value, TensorBase):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from operands(value)


def no_rule(func: Any, why: str = "") -> NotImplementedError:
    """The error for a function that has no rule here."""
    name = getattr(func, "__name__", func)
    return NotImplementedError(
        f"Operator {name} does not have a sharding strategy registered.{why}\n"
        "Call it on `x.full_tensor()`, or on this process's part, `x.to_local()`."
    )


def pointwise_spec(func: Any, name: str, found: list[Any], is_dtensor: Callable[..., bool]) -> Any:
    """How the result of a function that works element by element lies: as its operands do."""
    sharded = [x for x in found if is_dtensor(x) and x.dim()] or [x for x in found if is_dtensor(x)]
    spec = sharded[0]._spec
    for x in found:
        if not is_dtensor(x):
            if x.dim():
                raise RuntimeError(
                    f"aten.{name}.Tensor got mixed torch.Tensor and DTensor, need to convert all "
                    "torch.Tensor to DTensor before calling distributed operators!"
                )
        elif x.dim() == 0 and x._spec.is_whole:
            continue
        elif x._spec.placements != spec.placements or x._spec.mesh != spec.mesh:
            raise no_rule(func, f" (of placements {spec.placements} and {x._spec.placements})")
        elif tuple(x._spec.shape) != tuple(spec.shape):
            raise no_rule(func, f" (of shapes {tuple(spec.shape)} and {tuple(x._spec.shape)})")
    if any(isinstance(p, Partial) for p in spec.placements):
        summands = [x for x in found if is_dtensor(x) and not x._spec.is_whole]
        if name not in LINEAR or (name in _SCALING and len(summands) > 1):
            raise no_rule(func, f" (of placements {spec.placements})")
        if name not in _SCALING and len(summands) != len(found):
            raise no_rule(func, f" (of placements {spec.placements} and a number)")
    return spec


def facts(spec: Any) -> dict[str, Any]:
    """What is asked of a tensor's form, and the answer for the whole of it."""
    shape = Size(spec.shape)
    return {
        "shape": shape, "ndim": len(shape), "dim": len(shape), "ndimension": len(shape),
        "numel": math.prod(shape), "nelement": math.prod(shape),
        "__len__": shape[0] if shape else 0,
    }  # fmt: skip


def reduced_norm(local: Any, spec: Any, order: float) -> Any:
    """The norm of all elements, from the norms of the parts; a plain tensor, equal everywhere."""
    if any(isinstance(p, Partial) for p in spec.placements):
        raise NotImplementedError("the norm of a sum is no sum of norms: redistribute it first")
    from rushlight import distributed as dist

    endless = math.isinf(order)
    top = functions["amax"] if order > 0 else functions["amin"]
    sizes = local.detach().abs()
    if endless:
        value = top(sizes) if sizes.numel() else sizes.new_full((), 0.0 if order > 0 else order)
        op = dist.ReduceOp.MAX if order > 0 else dist.ReduceOp.MIN
    else:
        value, op = (sizes**order).sum(), dist.ReduceOp.SUM
    for n, placement in enumerate(spec.placements):
        if isinstance(placement, Shard):
            value = all_reduce(value, op, spec.mesh.get_group(n))
    return value if endless else value ** (1.0 / order)


def summed_placements(spec: Any) -> tuple[Any, ...]:
    """How the sum of all elements lies: where the tensor was cut, as summands."""
    return tuple(
        Partial() if isinstance(p, Shard) else Replicate() if isinstance(p, Replicate) else p
        for p in spec.placements
    )
