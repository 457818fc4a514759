"""`fully_shard`: a module whose parameters, gradients and optimiser's state are shared out over the
processes.

    before forward     parameters are gathered                 all_gather
    after forward      their memory is given back
    in backward        they are gathered when they are used    all_gather
    after backward     gradients are averaged, each process    reduce_scatter
                       gets those of its rows
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.autograd.graph import saved_tensors_hooks
from rushlight.core.grad_mode import grad_enabled
from rushlight.core.graph import TensorBase
from rushlight.distributed.fsdp._param_group import ParamGroup, pack, unpack
from rushlight.distributed.fsdp.api import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy
from rushlight.nn.modules.container import ModuleDict, ModuleList
from rushlight.utils._pytree import tree_map

__all__ = ["FSDPModule", "UnshardHandle", "fully_shard", "register_fsdp_forward_method"]
__dir__ = __all__.copy


class UnshardHandle:
    """What `unshard(async_op=True)` returns."""

    def wait(self) -> None:
        """Wait until the parameters are whole: they are."""


class FSDPState:
    """What a sharded module remembers."""

    def __init__(
        self, module: Any, group: ParamGroup, reshard: bool | None, policy: MixedPrecisionPolicy
    ) -> None:
        self.module = module
        self.group = group
        self.policy = policy
        self.reshards: bool | None = reshard
        self.is_root: bool | None = None  # known when it is called first
        self.hooks: list[Any] = []

    def before(self, module: Any, args: Any, kwargs: Any) -> Any:
        """Before `forward`: gather, and watch what is saved."""
        if self.is_root is None:
            for inner in module.modules():
                state = getattr(inner, "_fsdp_state", None)
                if state is not None:
                    state.is_root = inner is module
        self.group.unshard()
        hooks = saved_tensors_hooks(pack, unpack)
        hooks.__enter__()
        self.hooks.append(hooks)
        dtype = self.policy.param_dtype
        if dtype is not None and self.policy.cast_forward_inputs:
            args, kwargs = cast(args, dtype), cast(kwargs, dtype)
        return args, kwargs

    def after(self, module: Any, args: Any, output: Any) -> Any:
        """After `forward`, and after an error in it: give memory back."""
        if self.hooks:
            self.hooks.pop().__exit__(None, None, None)
        # what the outermost module gave back would be gathered again at once, for backward
        kept = self.reshards is False or (self.reshards is None and bool(self.is_root))
        if not kept or self.hooks or not grad_enabled():
            self.group.reshard()
        if self.policy.output_dtype is not None:
            return cast(output, self.policy.output_dtype)
        return output


def cast(values: Any, dtype: Any) -> Any:
    """The floating-point tensors of nested containers in another dtype."""

    def change(x: Any) -> Any:
        if isinstance(x, TensorBase) and x.is_floating_point():  # type: ignore[attr-defined]
            return x.to(dtype)  # type: ignore[attr-defined]
        return x

    return tree_map(change, values)


class FSDPModule:
    """What `fully_shard` adds to the class of a module."""

    _fsdp_state: FSDPState

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """A new module of this class is one of the class it was made from, with nothing shared."""
        original: Any = cls.__mro__[2]
        return original(*args, **kwargs)

    def _states(self, recurse: bool) -> list[FSDPState]:
        modules: Any = self.modules() if recurse else [self]  # type: ignore[attr-defined]
        return [m._fsdp_state for m in modules if isinstance(m, FSDPModule)]

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Gather the parameters of this module (not of sharded ones within it)."""
        self._fsdp_state.group.unshard()
        return UnshardHandle() if async_op else None

    def reshard(self) -> None:
        """Give the memory of the gathered parameters back."""
        self._fsdp_state.group.reshard()

    def set_requires_gradient_sync(
        self, requires_gradient_sync: bool, *, recurse: bool = True
    ) -> None:
        """Whether backward averages gradients; while it does not they are added up here, whole."""
        for state in self._states(recurse):
            state.group.syncs = requires_gradient_sync

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Whether memory is given back after forward; otherwise after backward."""
        for state in self._states(recurse):
            state.reshards = reshard_after_forward

    def set_gradient_divide_factor(self, factor: float) -> None:
        """What the sum of gradients is divided by, in place of the number of processes."""
        self._fsdp_state.group.divide_by = factor


_classes: dict[type, type] = {}  # by the class of a module: the one with `FSDPModule` in front


def fully_shard(
    module: Any, *, mesh: Any = None, reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable[..., Any] | None = None,
    mp_policy: MixedPrecisionPolicy | None = None, offload_policy: OffloadPolicy | None = None,
    ignored_params: set[Any] | None = None, dp_mesh_dims: Any = None,
) -> Any:  # fmt: skip
    """Share the parameters of a module out over the processes: each keeps some rows of each, as
    `DTensor`s, and an optimiser made afterwards keeps the state of these alone. The module gets the
    methods of `FSDPModule`. Call it on inner modules first: what is sharded in one call is gathered
    at once.

    Args:
        module: the module; it is changed, and returned.
        mesh: the processes; all if it is not given. Of a mesh with two dimensions rows are shared
            out along the second, and gradients averaged along both.
        reshard_after_forward: whether the whole parameters are given back after forward, and
            gathered again in backward. None: unless it is the outermost module.
        mp_policy: in which dtypes it computes.
        offload_policy: whether parts are kept on the CPU.
        ignored_params: parameters that stay as they are.
        shard_placement_fn, dp_mesh_dims: not possible here.

    Like PyTorch's, it takes the values of each process as they are: they must be equal.
    """
    if shard_placement_fn is not None or dp_mesh_dims is not None:
        raise NotImplementedError("rushlight's fully_shard cuts parameters along dimension 0 only")
    if isinstance(module, (list, tuple)):
        raise NotImplementedError("rushlight's fully_shard takes one module at a time")
    if isinstance(module, FSDPModule):
        raise AssertionError(
            "Each distinct composable distributed API can only be applied to a "
            "module once. fully_shard has already been applied to this module."
        )
    if isinstance(module, (ModuleList, ModuleDict)):
        raise ValueError(
            f"fully_shard does not support containers that do not implement forward: {module}"
        )
    mesh = _world_mesh() if mesh is None else mesh
    if mesh.ndim not in (1, 2):
        raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
    params = _managed(module, ignored_params or set())
    group = ParamGroup(
        params, mesh, mp_policy or MixedPrecisionPolicy(),
        isinstance(offload_policy, CPUOffloadPolicy),
    )  # fmt: skip
    reshard = None if reshard_after_forward is None else bool(reshard_after_forward)
    state = FSDPState(module, group, reshard, group.policy)
    cls = type(module)
    if cls not in _classes:
        _classes[cls] = type(
            f"FSDP{cls.__name__}", (FSDPModule, cls), {"__module__": cls.__module__}
        )
    module.__class__ = _classes[cls]
    module._fsdp_state = state
    module.register_forward_pre_hook(state.before, prepend=True, with_kwargs=True)
    module.register_forward_hook(state.after, always_call=True)
    # a state dict holds parts, whenever it is asked for
    module.register_state_dict_pre_hook(lambda *_: group.reshard())
    module.register_load_state_dict_pre_hook(lambda *_: group.reshard())
    return module


def _world_mesh() -> Any:
    from rushlight import distributed as dist
    from rushlight.distributed.device_mesh import init_device_mesh

    if not dist.is_initialized():
        dist.init_process_group()
    kind = "cuda" if dist.get_backend() == "nccl" else "cpu"
    return init_device_mesh(kind, (dist.get_world_size(),))


def _managed(module: Any, ignored: set[Any]) -> list[tuple[Any, list[tuple[Any, str]]]]:
    """The parameters of a module that no sharded module within it has, with where they stand."""
    found: dict[int, tuple[Any, list[tuple[Any, str]]]] = {}

    def visit(here: Any, prefix: str) -> None:
        for name, param in here._parameters.items():
            if param is None or param in ignored:
                continue
            if param.dim() == 0:
                raise ValueError(
                    "fully_shard doesn't support scalar parameters. Change "
                    f"{prefix + name} to a 1D tensor with numel equal to 1."
                )
            found.setdefault(id(param), (param, []))[1].append((here, name))
        for name, child in here.named_children():
            if not isinstance(child, FSDPModule):
                visit(child, f"{prefix}{name}.")

    visit(module, "")
    return list(found.values())


def register_fsdp_forward_method(module: Any, method_name: str) -> None:
    """Let another method of a sharded module gather its parameters, too, as `forward` does."""
    if not isinstance(module, FSDPModule):
        return
    state, method = module._fsdp_state, getattr(module, method_name)

    def call(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = state.before(module, args, kwargs)
        output = None
        try:
            output = method(*args, **kwargs)
        finally:
            output = state.after(module, args, output)
        return output

    setattr(module, method_name, call)
