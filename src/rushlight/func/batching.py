"""`vmap`: a function written for one example, applied to a batch of them at once.

The function runs once, on tensors whose arrays hide the batch (`arrays.batched`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from rushlight.arrays.batched import Batched
from rushlight.core.graph import TensorBase, wrap
from rushlight.core.transforms.lift import as_recorded, is_tracked, plain_inside
from rushlight.core.transforms.stack import Transform, innermost
from rushlight.core.transforms.vmap import BatchLevel
from rushlight.errors import readable
from rushlight.ops.registry import functions
from rushlight.random import get_rng_state, set_rng_state
from rushlight.trees import TreeSpec, broadcast_prefix, tree_flatten, tree_structure, tree_unflatten

P = ParamSpec("P")
R = TypeVar("R")
Dims = Any  # an int, None, or a tree of them


def function_name(func: Any) -> str:
    """A function as errors name it."""
    return getattr(func, "__name__", None) or repr(func)


def vmap(
    func: Callable[P, R], in_dims: Dims = 0, out_dims: Dims = 0, randomness: str = "error", *,
    chunk_size: int | None = None,
) -> Callable[P, R]:  # fmt: skip
    """A function that applies `func` to each member of a batch: all in one go, not in a loop.

    `in_dims` says which dimension of each input counts the members (None: all share the input),
    `out_dims` where it is in each output. `randomness` says what random numbers do inside:
    "error", "same" for all members, or "different". `chunk_size` limits how many go at once.

    >>> dot = torch.func.vmap(torch.dot)              # [N, D], [N, D] -> [N]
    >>> dot(torch.tensor([[1., 2.], [3., 4.]]), torch.ones(2, 2))
    tensor([3., 7.])
    >>> torch.func.vmap(torch.mv, in_dims=(None, 1), out_dims=1)(torch.eye(2), torch.ones(2, 3))
    tensor([[1., 1., 1.],
            [1., 1., 1.]])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            "Only allowed values for randomness are 'error', 'different', or 'same'. Got "
            f"{randomness}"
        )
    if chunk_size is not None and not chunk_size > 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    @readable
    def mapped(*args: Any, **kwargs: Any) -> Any:
        size, leaves, dims, spec = batched_inputs(func, in_dims, args)
        if chunk_size is not None and chunk_size < size:
            return in_chunks(
                func, size, leaves, dims, spec, kwargs, out_dims, randomness, chunk_size
            )
        return over_batch(func, size, leaves, dims, spec, kwargs, out_dims, randomness)

    return mapped


# --- inputs ---------------------------------------------------------------------------------------
def batched_inputs(
    func: Any, in_dims: Dims, args: tuple[Any, ...]
) -> tuple[int, list[Any], list[int | None], TreeSpec]:
    """How many members there are, the leaves of the arguments, their dims, and their tree."""
    head = f"vmap({function_name(func)}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{head}: expected `in_dims` to be int or a (potentially nested) tuple matching the "
            f"structure of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({function_name(func)})(<inputs>): got no inputs. Maybe you forgot to add "
            "inputs, or you are trying to vmap over a function with no inputs. The latter is "
            "unsupported."
        )
    leaves, spec = tree_flatten(args)
    dims = broadcast_prefix(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"{head}: in_dims is not compatible with the structure of `inputs`. in_dims has "
            f"structure {tree_structure(in_dims)} but inputs has structure {spec}."
        )
    checked = [check_in_dim(head, x, d) for x, d in zip(leaves, dims, strict=True)]
    sizes = [x.shape[d] for x, d in zip(leaves, checked, strict=True) if d is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(n != sizes[0] for n in sizes):
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return sizes[0], leaves, checked, spec


def check_in_dim(head: str, x: Any, d: Any) -> int | None:
    """A dimension to map over, not negative."""
    if d is None:
        return None
    if not isinstance(d, int):
        raise ValueError(
            f"{head}: Got in_dim={d} for an input but in_dim must be either an integer dimension "
            "or None."
        )
    if not isinstance(x, TensorBase):
        raise ValueError(
            f"{head}: Got in_dim={d} for an input but the input is of type {type(x)}. We cannot "
            "vmap over non-Tensor arguments, please use None as the respective in_dim"
        )
    rank: int = x._array.ndim
    if not -rank <= d < rank:
        raise ValueError(
            f"{head}: Got in_dim={d} for some input, but that input is a Tensor of dimensionality "
            f"{rank} so expected in_dim to satisfy -{rank} <= in_dim < {rank}."
        )
    return d % rank


def to_front(x: Any, dim: int) -> Any:
    """The dimension `dim` of a tensor as its first: a view."""
    return x if dim == 0 else functions["movedim"](x, dim, 0)


# --- the call -------------------------------------------------------------------------------------
def over_batch(
    func: Callable[..., Any], size: int, leaves: list[Any], dims: list[int | None], spec: TreeSpec,
    kwargs: dict[str, Any], out_dims: Dims, randomness: str,
) -> Any:  # fmt: skip
    """Call `func` once for a whole batch, whose inputs are the leaves of `spec`."""
    fronts = [x if d is None else to_front(x, d) for x, d in zip(leaves, dims, strict=True)]
    tracked = innermost() is not None or any(
        isinstance(x, TensorBase) and is_tracked(x) for x in leaves
    )
    batch = BatchLevel(size, randomness, tracked)
    with Transform("vmap", batch) as level:
        inside: list[Any] = []
        for x, d in zip(fronts, dims, strict=True):
            if d is not None:
                given, x = x, wrap(Batched(as_recorded(x, batch), batch))
                level.give(given, x)
            inside.append(x)
        found = func(*tree_unflatten(inside, spec), **kwargs)
    return outputs_of(func, found, out_dims, batch)


def in_chunks(
    func: Callable[..., Any], size: int, leaves: list[Any], dims: list[int | None], spec: TreeSpec,
    kwargs: dict[str, Any], out_dims: Dims, randomness: str, chunk_size: int,
) -> Any:  # fmt: skip
    """The same, at most `chunk_size` members at a time; results are joined."""
    results: list[list[Any]] = []
    tree: Any = None
    numbers = get_rng_state() if randomness == "same" else None
    for start in range(0, size, chunk_size):
        if numbers is not None:  # every chunk draws what the first drew
            set_rng_state(numbers)
        count = min(chunk_size, size - start)
        part = [
            x if d is None else functions["narrow"](x, d, start, count)
            for x, d in zip(leaves, dims, strict=True)
        ]
        found = over_batch(func, count, part, dims, spec, kwargs, out_dims, randomness)
        flat, tree = tree_flatten(found)
        results.append(flat)
    dims_out = dims_for(func, out_dims, tree)
    joined = [
        parts[0] if d is None else functions["cat"](list(parts), d)
        for parts, d in zip(zip(*results, strict=True), dims_out, strict=True)
    ]
    return tree_unflatten(joined, tree)


# --- outputs --------------------------------------------------------------------------------------
def dims_for(func: Any, out_dims: Dims, spec: TreeSpec) -> list[int | None]:
    """Where the batch goes in each output."""
    flat, _ = tree_flatten(out_dims)
    if not all(d is None or isinstance(d, int) for d in flat):
        raise ValueError(
            f"vmap({function_name(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, "
            "None or a python collection of ints representing where in the outputs the vmapped "
            "dimension should appear."
        )
    dims = broadcast_prefix(out_dims, spec)
    if dims is None and isinstance(out_dims, tuple) and len(out_dims) == 1 and spec.is_leaf():
        dims = list(out_dims)
    if dims is None:
        raise ValueError(
            f"vmap({function_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not "
            "compatible with the structure of `outputs`. out_dims has structure "
            f"{tree_structure(out_dims)} but outputs has structure {spec}."
        )
    return dims


def outputs_of(func: Any, found: Any, out_dims: Dims, batch: BatchLevel) -> Any:
    """What the function gave, with the batch where `out_dims` says."""
    flat, spec = tree_flatten(found)
    dims = dims_for(func, out_dims, spec)
    results = [one_output(func, y, d, batch) for y, d in zip(flat, dims, strict=True)]
    return tree_unflatten(results, spec)


def one_output(func: Any, y: Any, dim: int | None, batch: BatchLevel) -> Any:
    if not isinstance(y, TensorBase):
        if dim is None:
            return y
        raise ValueError(
            f"vmap({function_name(func)}, ...): `{function_name(func)}` must only return Tensors, "
            f"got type {type(y)}. Did you mean to set out_dims= to None for output?"
        )
    inside: Any = y
    has_batch_dim = False
    if type(y._array) is Batched and y._array.level is batch:
        has_batch_dim = y._array.has_batch_dim
        inside = plain_inside(y._array.value)
    if dim is None:
        if has_batch_dim:
            raise ValueError(
                f"vmap({function_name(func)}, ...): `{function_name(func)}` can not return a "
                "BatchedTensor when out_dim is None"
            )
        return inside
    if not has_batch_dim:
        inside = inside.expand((batch.size, *inside.shape))
    return inside if dim == 0 else functions["movedim"](inside, 0, dim)


def debug_unwrap(tensor: Any, *, recurse: bool = True) -> Any:
    """What is inside a tensor of a batch: all members, the batch as first dimension. With
    `recurse=False` one level is opened, not all. For looking, not for computing.

    >>> seen = []
    >>> def f(x):
    ...     seen.append(torch.func.debug_unwrap(x))
    ...     return x.sum()
    >>> torch.func.vmap(f)(torch.ones(2, 3))
    tensor([3., 3.])
    >>> seen[0].shape
    torch.Size([2, 3])
    """
    if not isinstance(tensor, TensorBase):
        raise TypeError(f"debug_unwrap(): expected a Tensor, but got {type(tensor).__name__}")
    found = tensor
    while type(found._array) is Batched:
        found = plain_inside(found._array.value).detach()
        if not recurse:
            break
    return found
