"""Operators inside `vmap`: their registered rule, or one member after the other.

`OpOverload.run` hands a call over when a tensor among its arguments is batched. It is computed one
level down, on what is inside the batch, where it is recorded like any other call.
"""

from __future__ import annotations

from typing import Any

from rushlight.arrays.batched import Batched
from rushlight.autograd.batched_function import VmapInfo, rewrap
from rushlight.core.graph import TensorBase
from rushlight.core.transforms.lift import lift, plain_inside
from rushlight.core.transforms.vmap import BatchLevel
from rushlight.library.values import tensors_among
from rushlight.ops.registry import functions
from rushlight.ops.warned import warn_caller


def run_batch(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], batch: BatchLevel) -> Any:
    """The result of an operator for a batch: tensors of its level."""
    tensors = tensors_among(args)
    at_level = dict(zip(map(id, tensors), lift(tuple(tensors)), strict=True))
    inside, dims = unwrap_arguments([replace_lifted(x, at_level) for x in args], batch)
    if op.batched is None:
        return run_each_member(op, inside, dims, kwargs, batch)
    answer = op.batched(VmapInfo(batch.size, batch.randomness), tuple(dims), *inside, **kwargs)
    if not (isinstance(answer, tuple) and len(answer) == 2):
        raise RuntimeError(
            "Expected the vmap function to have two returns, an output and out_dims with pytree "
            f"structure compatible with the output. Got a {type(answer)} instead"
        )
    return rewrap(*answer, batch)


def replace_lifted(value: Any, lifted: dict[int, Any]) -> Any:
    if isinstance(value, TensorBase):
        return lifted[id(value)]
    return [replace_lifted(x, lifted) for x in value] if isinstance(value, list) else value


def unwrap_arguments(values: list[Any], batch: BatchLevel) -> tuple[list[Any], list[Any]]:
    """Arguments one level down, and for each tensor where its batch dimension is, if it has one."""
    inside: list[Any] = []
    dims: list[Any] = []
    for x in values:
        if isinstance(x, list):
            parts, places = unwrap_arguments(x, batch)
            inside.append(parts)
            dims.append(places if tensors_among(x) else None)
        elif isinstance(x, TensorBase) and type(x._array) is Batched and x._array.level is batch:
            inside.append(plain_inside(x._array.value))
            dims.append(0 if x._array.has_batch_dim else None)
        else:
            inside.append(x)
            dims.append(None)
    return inside, dims


def run_each_member(
    op: Any, inside: list[Any], dims: list[Any], kwargs: dict[str, Any], batch: BatchLevel
) -> Any:
    """Run an operator that has no rule for batches on each member, and stack what it gives."""
    for a, dim in zip(op.schema.positional, dims, strict=True):
        if a.is_write and dim is None:
            raise RuntimeError(
                f"vmap: {op.name()} writes into `{a.name}`, which is not being vmapped over but "
                "has to hold the results of all members"
            )
    warn_caller(
        "There is a performance drop because we have not yet implemented the batching rule for "
        f"{op.name()}. Use register_vmap to give it one."
    )
    results = [
        op.run(tuple([member(x, d, i) for x, d in zip(inside, dims, strict=True)]), kwargs)
        for i in range(batch.size)
    ]
    return join_results(results, batch)


def member(value: Any, dim: Any, i: int) -> Any:
    if isinstance(value, list) and isinstance(dim, list):
        return [member(x, d, i) for x, d in zip(value, dim, strict=True)]
    return value if dim is None else value.select(0, i)


def join_results(results: list[Any], batch: BatchLevel) -> Any:
    """The results of all members as one."""
    first = results[0]
    if isinstance(first, (tuple, list)):
        parts = [join_results([r[k] for r in results], batch) for k in range(len(first))]
        return tuple(parts) if isinstance(first, tuple) else parts
    if not isinstance(first, TensorBase):
        return first
    return rewrap(functions["stack"](results), 0, batch)
