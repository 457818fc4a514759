"""`DTensor`: a tensor of which each process has a part.

Note [A part that speaks for the whole]
    A DTensor is a tensor over the memory of this process's part. What works with its memory (an
    optimiser's step) works with the part. Functions, and questions about its form, come to
    `__torch_function__` first, which answers for the whole tensor: see `_rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.grad_mode import grad_enabled
from rushlight.core.graph import TensorBase
from rushlight.distributed.tensor import _rules
from rushlight.distributed.tensor._redistribute import Redistribute, my_part
from rushlight.distributed.tensor._utils import (
    compute_local_shape_and_global_offset,
    contiguous_stride,
)
from rushlight.distributed.tensor.placement_types import (
    Partial,
    Placement,
    Replicate,
    Shard,
    normalize,
)
from rushlight.ops.overriding import DisableTorchFunctionSubclass
from rushlight.ops.registry import functions
from rushlight.size import Size
from rushlight.tensor import Tensor
from rushlight.tensor_memory import _make_subclass

__all__ = ["DTensor", "distribute_module", "distribute_tensor"]
__dir__ = __all__.copy


class DTensorSpec:
    """How a DTensor lies: on which mesh, how along each of its dimensions, and its whole form."""

    def __init__(
        self, mesh: Any, placements: tuple[Placement, ...], shape: Sequence[int],
        stride: Sequence[int] | None = None,
    ) -> None:  # fmt: skip
        self.mesh = mesh
        self.placements = placements
        self.shape = Size(shape)
        self.stride = contiguous_stride(shape) if stride is None else tuple(stride)

    @property
    def is_whole(self) -> bool:
        """Whether each process has all of it."""
        return all(isinstance(p, Replicate) for p in self.placements)


class DTensor(Tensor):
    """A tensor of which each process of a `DeviceMesh` has a part. `distribute_tensor` makes one of
    a whole tensor, `DTensor.from_local` of the parts.

    Functions that work element by element, sums and norms of all elements are computed with the
    parts; others raise an error that says so. `full_tensor()` gives the whole, `to_local()` the
    part.
    """

    _spec: DTensorSpec

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _answer(func, args, kwargs or {})

    # --- making, and taking apart ---------------------------------------------------------------
    @staticmethod
    def from_local(
        local_tensor: Any, device_mesh: Any = None, placements: Sequence[Placement] | None = None,
        *, run_check: bool = False, shape: Sequence[int] | None = None,
        stride: Sequence[int] | None = None, grad_placements: Any = None,
    ) -> DTensor:  # fmt: skip
        """A DTensor of the parts that the processes have.

        Args:
            local_tensor: this process's part.
            device_mesh: the processes; all, in one row, if it is not given.
            placements: what kind of part it is, along each dimension of the mesh; `Replicate()` if
                it is not given.
            run_check: whether parts that should be equal are made so.
            shape, stride: of the whole tensor; needed where parts are not equally large.
        """
        mesh = _mesh_or_world(device_mesh)
        placed = normalize(placements, mesh, local_tensor.dim())
        whole = list(local_tensor.shape) if shape is None else list(shape)
        if shape is None:
            for n, placement in enumerate(placed):
                if isinstance(placement, Shard):
                    whole[placement.dim] *= mesh.size(n)
        if run_check:
            local_tensor = _made_equal(local_tensor, mesh, placed)
        return _wrap(_shared(local_tensor), DTensorSpec(mesh, placed, whole, stride))

    def to_local(self, *, grad_placements: Any = None) -> Any:
        """This process's part, as a plain tensor over the same memory."""
        with DisableTorchFunctionSubclass():
            return _shared(self)

    def full_tensor(self, *, grad_placements: Any = None) -> Any:
        """The whole tensor, on every process. All processes of the mesh must call it."""
        whole = [Replicate()] * self._spec.mesh.ndim
        return self.redistribute(placements=whole).to_local()

    def redistribute(
        self, device_mesh: Any = None, placements: Sequence[Placement] | None = None, *,
        async_op: bool = False, forward_dtype: Any = None, backward_dtype: Any = None,
    ) -> DTensor:  # fmt: skip
        """The same tensor, otherwise placed. All processes of the mesh must call it."""
        spec = self._spec
        if device_mesh is not None and device_mesh != spec.mesh:
            raise NotImplementedError("Cross device mesh comm not supported yet!")
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        placed = normalize(placements, spec.mesh, len(spec.shape))
        target = DTensorSpec(spec.mesh, placed, spec.shape, spec.stride)
        local = self.to_local()
        moved = Redistribute.apply(local, spec.mesh, tuple(spec.shape), spec.placements, placed)
        return _wrap(moved, target)

    @property
    def device_mesh(self) -> Any:
        """The processes."""
        return self._spec.mesh

    @property
    def placements(self) -> tuple[Placement, ...]:
        """How it lies along each dimension of the mesh."""
        return self._spec.placements

    @property
    def _local_tensor(self) -> Any:
        return self.to_local()

    # --- checkpoints: see `checkpoint.planner_helpers` ------------------------------------------
    def _box(self) -> Any:
        from rushlight.distributed.checkpoint.metadata import ChunkStorageMetadata

        spec = self._spec
        sizes, offsets = compute_local_shape_and_global_offset(
            spec.shape, spec.mesh, spec.placements
        )
        return ChunkStorageMetadata(Size(offsets), Size(sizes))

    def _holds_nothing(self) -> bool:
        if self._spec.mesh.get_coordinate() is None:
            return True
        return 0 in self._box().sizes and 0 not in self._spec.shape

    def __create_write_items__(self, fqn: str, object: Any) -> list[Any]:
        from rushlight.distributed.checkpoint.metadata import TensorProperties
        from rushlight.distributed.checkpoint.planner_helpers import write_item_for_box

        if any(isinstance(p, Partial) for p in self._spec.placements):
            raise RuntimeError(f"{fqn} is {self._spec.placements}: redistribute it to be saved")
        if self._holds_nothing():
            return []
        properties = TensorProperties.create_from_tensor(self.to_local())
        return [write_item_for_box(fqn, self._box(), properties, self._spec.shape)]

    def __create_chunk_list__(self) -> list[Any]:
        return [] if self._holds_nothing() else [self._box()]

    def __get_tensor_shard__(self, index: Any) -> Any:
        if index.offset is not None and index.offset != self._box().offsets:
            raise ValueError(f"Could not find shard at '{index.offset}' for FQN: '{index.fqn}'")
        return self.to_local()

    # --- Python ---------------------------------------------------------------------------------
    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return (
            f"DTensor(local_tensor={self.to_local().detach()!r}, device_mesh={self._spec.mesh}, "
            f"placements={self._spec.placements})"
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        with no_grad():
            copy = _wrap(self.to_local().clone(), self._spec)
        with DisableTorchFunctionSubclass():
            copy.requires_grad_(bool(self.requires_grad))
        if getattr(self, "_is_param", False):
            copy._is_param = True  # type: ignore[attr-defined]
        memo[id(self)] = copy
        return copy

    def __reduce_ex__(self, proto: Any) -> Any:
        raise RuntimeError(
            "a DTensor is a part of a tensor, and pickles of parts are no whole. Save it with "
            "torch.distributed.checkpoint, or save its `full_tensor()`."
        )


def _shared(tensor: Any) -> Any:
    """A plain tensor with the same memory, and in the same place of the graph."""
    if tensor.requires_grad and grad_enabled():
        found = tensor.view_as(tensor)
        if type(found) is not Tensor:
            found.__class__ = Tensor
        return found
    return _make_subclass(Tensor, tensor, False)


def _wrap(local: Any, spec: DTensorSpec) -> DTensor:
    """A tensor that nobody else has, as a DTensor."""
    local.__class__ = DTensor
    local._spec = spec
    found: DTensor = local
    return found


def _is_dtensor(x: Any) -> bool:
    return isinstance(x, DTensor)


def _mesh_or_world(mesh: Any) -> Any:
    if mesh is not None:
        return mesh
    from rushlight import distributed as dist
    from rushlight.distributed.device_mesh import init_device_mesh

    return init_device_mesh("cpu", (dist.get_world_size(),))


def _made_equal(local: Any, mesh: Any, placements: tuple[Placement, ...]) -> Any:
    """What the first process has, where all should have the same."""
    from rushlight import distributed as dist

    for n, placement in enumerate(placements):
        if isinstance(placement, Replicate):
            group: Any = mesh.get_group(n)
            local = local.contiguous()
            dist.broadcast(local.data, src=dist.get_global_rank(group, 0), group=group)
    return local


# --- functions ------------------------------------------------------------------------------------
_PROPERTIES: Final[dict[int, str]] = {}  # by the id of a property of Tensor: its name


def _property_name(func: Any) -> str | None:
    """The name of the property that a `__get__` or a `__set__` belongs to."""
    owner = getattr(func, "__self__", None)
    if not isinstance(owner, property):
        return None
    if not _PROPERTIES:
        for name, value in vars(Tensor).items():
            if isinstance(value, property):
                _PROPERTIES[id(getattr(value, "inner", value))] = name
    return _PROPERTIES.get(id(owner), "")


def _answer(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a function gives for arguments of which some are DTensors."""
    asked = _property_name(func)
    if asked is not None:
        return _answer_property(func, asked, args)
    name = _rules.plain_name(func)
    x = next(_x for _x in _rules.operands((*args, *kwargs.values())) if _is_dtensor(_x))
    spec = x._spec
    if name in ("size", "stride"):
        values: Any = spec.shape if name == "size" else tuple(spec.stride)
        dim = args[1] if len(args) > 1 else kwargs.get("dim")
        return values if dim is None else values[dim]
    known = _rules.facts(spec)
    if name in known:
        return known[name]
    if getattr(func, "__name__", "") in _rules.LOCAL or name in _rules.LOCAL:
        with DisableTorchFunctionSubclass():
            return func(*args, **kwargs)
    if name in ("backward",):
        with DisableTorchFunctionSubclass():
            return func(*args, **kwargs)
    found = list(_rules.operands((*args, *kwargs.values())))
    if name in _rules.POINTWISE:
        return _pointwise(func, name, found, args, kwargs)
    if all(y._spec.is_whole if _is_dtensor(y) else y.dim() == 0 for y in found):
        return _alone(func, spec, args, kwargs)
    if name in ("sum", "mean", "vector_norm", "norm"):
        return _reduction(func, name, x, args, kwargs)
    if name in ("item", "tolist", "numpy", "__float__", "__bool__", "__int__"):
        return func(x.full_tensor(), *args[1:], **kwargs)
    raise _rules.no_rule(func)


def _answer_property(func: Any, name: str, args: tuple[Any, ...]) -> Any:
    x = args[0]
    known = _rules.facts(x._spec)
    if name in known and func.__name__ == "__get__":
        return known[name]
    with DisableTorchFunctionSubclass():
        found = func(*args)
    # a gradient is computed of the parts: it lies as the tensor does
    if name in ("grad", "data") and type(found) is Tensor:
        found = _wrap(_shared(found), x._spec)
        if name == "grad":
            with DisableTorchFunctionSubclass():
                x.grad = found  # written once: `x.grad is x.grad`
    return found


def _pointwise(
    func: Any, name: str, found: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    if name == "copy" and _is_dtensor(args[0]) and not _is_dtensor(args[1]) and args[1].dim():
        raise RuntimeError(
            "aten.copy_.default got mixed torch.Tensor and DTensor, need to convert all "
            "torch.Tensor to DTensor before calling distributed operators!"
        )
    if name == "copy" and args[0]._spec.placements != args[1]._spec.placements:
        args = (args[0], args[1].redistribute(placements=args[0].placements), *args[2:])
        found = list(_rules.operands(args))
    spec = _rules.pointwise_spec(func, name, found, _is_dtensor)
    with DisableTorchFunctionSubclass():
        y = func(*args, **kwargs)
    return y if not isinstance(y, TensorBase) or y is args[0] else _wrap_result(y, spec, args)


def _wrap_result(y: Any, spec: DTensorSpec, args: tuple[Any, ...]) -> Any:
    """The result of a function of the parts, as a DTensor; not an operand that it gave back."""
    if any(y is x for x in _rules.operands(args)):
        return y
    return _wrap(y, spec)


def _alone(func: Any, spec: DTensorSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of whole tensors, which each process computes for itself."""
    with DisableTorchFunctionSubclass():
        found = func(*args, **kwargs)

        def wrapped(y: Any) -> Any:
            if type(y) is Tensor:
                return _wrap(y, DTensorSpec(spec.mesh, spec.placements, y.shape))
            if isinstance(y, (list, tuple)):
                parts = [wrapped(z) for z in y]
                return type(y)(*parts) if hasattr(y, "_fields") else type(y)(parts)
            return y

        return wrapped(found)


def _reduction(func: Any, name: str, x: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A sum, mean or norm of all elements."""
    spec = x._spec
    if name in ("vector_norm", "norm"):
        order = args[1] if len(args) > 1 else kwargs.get("ord", kwargs.get("p", 2.0))
        rest = {k: v for k, v in kwargs.items() if k not in ("ord", "p") and v is not None}
        if len(args) > 2 or rest or isinstance(order, str) or order == 0:
            raise _rules.no_rule(func, " (with a dimension, or of that order)")
        value = _rules.reduced_norm(x.to_local(), spec, float(order))
        whole: tuple[Placement, ...] = (Replicate(),) * spec.mesh.ndim
        return _wrap(value, DTensorSpec(spec.mesh, whole, ()))
    if len(args) > 1 or any(v is not None for k, v in kwargs.items() if k != "dtype"):
        raise _rules.no_rule(func, " (with a dimension)")
    value = x.to_local().sum(**kwargs)
    if name == "mean":
        value = value / spec.shape.numel()
    return _wrap(value, DTensorSpec(spec.mesh, _rules.summed_placements(spec), ()))


# --- public ---------------------------------------------------------------------------------------
def distribute_tensor(
    tensor: Any, device_mesh: Any = None, placements: Sequence[Placement] | None = None, *,
    src_data_rank: int | None = 0,
) -> DTensor:  # fmt: skip
    """A DTensor of a whole tensor: each process keeps its part. All processes must call it.

    Args:
        tensor: the whole tensor, of the same shape on every process.
        device_mesh: the processes; all, in one row, if it is not given.
        placements: which part each has, along each dimension of the mesh.
        src_data_rank: whose values count, by the place along a dimension; None: each takes its part
            of what it has, and nothing is sent.
    """
    from rushlight import distributed as dist

    mesh = _mesh_or_world(device_mesh)
    if _is_dtensor(tensor):
        if tuple(tensor.placements) != normalize(placements, mesh, tensor.dim()):
            raise ValueError(
                f"Cannot distribute a DTensor with placements {tensor.placements} to different "
                f"placements {placements}. do you want to call `redistribute` instead?"
            )
        kept: DTensor = tensor
        return kept
    placed = normalize(placements, mesh, tensor.dim())
    where = mesh.get_coordinate()
    spec = DTensorSpec(mesh, placed, tensor.shape)
    with no_grad():
        local = tensor.detach()
        if where is None:
            return _wrap(local.new_empty((0,)), spec)
        if src_data_rank is not None:
            local = local.clone().contiguous()
            for n in range(mesh.ndim):
                group = mesh.get_group(n)
                source: Any = dist.get_global_rank(group, src_data_rank)
                dist.broadcast(local, src=source, group=group)
        for n, placement in enumerate(placed):
            if isinstance(placement, Shard):
                local = my_part(local, placement.dim, mesh.size(n), where[n]).clone()
            elif placement.is_partial("sum"):
                local = local / mesh.size(n)  # summands of equal size
        found = _wrap(_shared(local), spec)
    with DisableTorchFunctionSubclass():
        found.requires_grad_(bool(tensor.requires_grad))
    return found


def distribute_module(
    module: Any, device_mesh: Any = None,
    partition_fn: Callable[[str, Any, Any], None] | None = None,
    input_fn: Callable[..., Any] | None = None, output_fn: Callable[..., Any] | None = None,
) -> Any:  # fmt: skip
    """Make the parameters and buffers of a module DTensors.

    Args:
        module: the module; it is changed.
        device_mesh: the processes.
        partition_fn: called with the name of each submodule, the submodule and the mesh, to make
            its parameters DTensors; what it leaves is replicated.
        input_fn, output_fn: called with the module, its inputs or its outputs, and the mesh.
    """
    from rushlight.nn.parameter import Parameter

    mesh = _mesh_or_world(device_mesh)
    whole = [Replicate()] * mesh.ndim
    for name, submodule in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, submodule, mesh)
        for key, param in submodule._parameters.items():
            if param is not None and not _is_dtensor(param):
                made = Parameter(distribute_tensor(param.data, mesh, whole), param.requires_grad)
                submodule.register_parameter(key, made)
        for key, buffer in submodule._buffers.items():
            if buffer is not None and not _is_dtensor(buffer):
                submodule._buffers[key] = distribute_tensor(buffer, mesh, whole)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda m, given: input_fn(m, given, mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda m, given, found: output_fn(m, found, mesh))
    return module


def new_filled(
    make: str, size: Sequence[int], *more: Any, device_mesh: Any, placements: Any, **how: Any
) -> DTensor:
    """A DTensor of a function that fills a shape: each process makes its part."""
    mesh = _mesh_or_world(device_mesh)
    requires_grad = how.pop("requires_grad", False)
    placed = normalize(placements, mesh, len(size))
    if any(isinstance(p, Partial) for p in placed):
        raise ValueError("a tensor cannot be made in summands")
    shape, _ = compute_local_shape_and_global_offset(size, mesh, placed)
    found = _wrap(functions[make](shape, *more, **how), DTensorSpec(mesh, placed, size))
    with DisableTorchFunctionSubclass():
        found.requires_grad_(requires_grad)
    return found
