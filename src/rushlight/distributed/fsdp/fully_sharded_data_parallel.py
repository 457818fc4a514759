"""`FullyShardedDataParallel`: `fully_shard` as a module around a module."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.graph import TensorBase
from rushlight.distributed.fsdp._fully_shard import FSDPModule, cast, fully_shard
from rushlight.distributed.fsdp.api import (
    CPUOffload,
    CPUOffloadPolicy,
    FullStateDictConfig,
    MixedPrecision,
    MixedPrecisionPolicy,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictConfig,
    StateDictSettings,
    StateDictType,
)
from rushlight.distributed.fsdp.wrap import modules_to_wrap
from rushlight.distributed.tensor import distribute_tensor
from rushlight.nn.modules.module import Module

__all__ = ["FullyShardedDataParallel"]
__dir__ = __all__.copy

_WRAPPED = "_fsdp_wrapped_module"


class FullyShardedDataParallel(Module):
    """FullyShardedDataParallel(module, process_group=None, sharding_strategy=None,
    cpu_offload=None, auto_wrap_policy=None, ..., sync_module_states=False,
    use_orig_params=False, device_mesh=None)

    A module whose parameters are shared out over the processes, by `fully_shard`. Parameters keep
    their names and forms (as PyTorch's with `use_orig_params=True`); `state_dict` gives whole
    tensors, or with `state_dict_type(..., StateDictType.SHARDED_STATE_DICT)` DTensors.

    Args:
        module: the module; its parameters become DTensors.
        process_group: the processes; all if it is not given.
        sharding_strategy: `FULL_SHARD`, or `SHARD_GRAD_OP`: whole from forward to backward.
        cpu_offload: whether parts are kept on the CPU.
        auto_wrap_policy: which modules within it are gathered on their own; see `wrap`.
        mixed_precision: in which dtypes it computes.
        ignored_modules, ignored_states: what stays as it is.
        sync_module_states: whether rank 0's values count.
        device_mesh: the processes, in place of `process_group`.
        backward_prefetch, forward_prefetch, limit_all_gathers, use_orig_params, device_id,
        param_init_fn: of no effect here.
    """

    def __init__(
        self, module: Any, process_group: Any = None,
        sharding_strategy: ShardingStrategy | None = None, cpu_offload: CPUOffload | None = None,
        auto_wrap_policy: Callable[..., Any] | None = None, backward_prefetch: Any = None,
        mixed_precision: MixedPrecision | None = None, ignored_modules: Any = None,
        param_init_fn: Any = None, device_id: Any = None, sync_module_states: bool = False,
        forward_prefetch: bool = False, limit_all_gathers: bool = True,
        use_orig_params: bool = False, ignored_states: Any = None, device_mesh: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        if strategy is ShardingStrategy.NO_SHARD:
            raise ValueError(
                "ShardingStrategy.NO_SHARD shares nothing out: use DistributedDataParallel"
            )
        mesh = device_mesh
        if mesh is None and process_group is not None:
            from rushlight.distributed.device_mesh import DeviceMesh

            mesh = DeviceMesh.from_group(process_group, "cpu")
        if sync_module_states:
            _from_rank_0(module, process_group)
        precision = mixed_precision or MixedPrecision()
        self._inputs_in = precision.param_dtype if precision.cast_root_forward_inputs else None
        how: dict[str, Any] = {
            "mesh": mesh,
            "reshard_after_forward": None if strategy.name.endswith("FULL_SHARD") else False,
            "mp_policy": MixedPrecisionPolicy(
                precision.param_dtype, precision.reduce_dtype,
                cast_forward_inputs=precision.cast_forward_inputs,
            ),
            "offload_policy": (
                CPUOffloadPolicy() if cpu_offload and cpu_offload.offload_params else None
            ),
            "ignored_params": _ignored(ignored_modules, ignored_states),
        }  # fmt: skip
        if strategy is ShardingStrategy.HYBRID_SHARD:
            how["reshard_after_forward"] = None
        if auto_wrap_policy is not None:
            for inner in modules_to_wrap(module, auto_wrap_policy):
                if not isinstance(inner, FSDPModule):
                    fully_shard(inner, **how)
        self.sharding_strategy = strategy
        self.process_group = process_group
        self._settings = StateDictSettings(StateDictType.FULL_STATE_DICT, FullStateDictConfig())
        self._fsdp_wrapped_module = fully_shard(module, **how)

    @property
    def module(self) -> Any:
        """The module inside."""
        return self._fsdp_wrapped_module

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__(_WRAPPED), name)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module inside gives."""
        if self._inputs_in is not None:
            args, kwargs = cast(args, self._inputs_in), cast(kwargs, self._inputs_in)
        return self._fsdp_wrapped_module(*args, **kwargs)

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """Names without that of the wrapper, and this process's parts."""
        for name, param in super().named_parameters(*args, **kwargs):
            yield name.replace(_WRAPPED + ".", ""), param

    def named_buffers(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """Names without that of the wrapper, and buffers."""
        for name, buffer in super().named_buffers(*args, **kwargs):
            yield name.replace(_WRAPPED + ".", ""), buffer

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Within it, backward adds gradients up in this process; the first one outside averages."""
        self._fsdp_wrapped_module.set_requires_gradient_sync(False)
        try:
            yield
        finally:
            self._fsdp_wrapped_module.set_requires_gradient_sync(True)

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Any:
        """Scale all gradients so that their norm, taken together, is at most `max_norm`."""
        from rushlight.nn.utils import clip_grad_norm_

        total: Any = clip_grad_norm_(self.parameters(), max_norm, norm_type)
        return total.full_tensor() if hasattr(total, "full_tensor") else total

    @staticmethod
    def fsdp_modules(module: Any, root_only: bool = False) -> list[Any]:
        """The wrapped modules within a module."""
        found = [m for m in module.modules() if isinstance(m, FullyShardedDataParallel)]
        inner = {id(m) for outer in found for m in outer.modules() if m is not outer}
        return [m for m in found if id(m) not in inner] if root_only else found

    @staticmethod
    @contextmanager
    def summon_full_params(
        module: Any, recurse: bool = True, writeback: bool = True, rank0_only: bool = False,
        offload_to_cpu: bool = False, with_grads: bool = False,
    ) -> Iterator[None]:  # fmt: skip
        """Within it, parameters are whole. What is written to them is kept, with `writeback`."""
        inside: Any = module.modules() if recurse else [getattr(module, _WRAPPED, module)]
        states = [m._fsdp_state for m in inside if isinstance(m, FSDPModule)]
        for state in states:
            state.group.unshard()
        try:
            yield
        finally:
            for state in states:
                if writeback:
                    _write_back(state.group)
                state.group.reshard()

    # --- state dicts ----------------------------------------------------------------------------
    @staticmethod
    def set_state_dict_type(
        module: Any, state_dict_type: StateDictType,
        state_dict_config: StateDictConfig | None = None, optim_state_dict_config: Any = None,
    ) -> StateDictSettings:  # fmt: skip
        """What `state_dict` of the wrapped modules within a module holds from now on; returns what
        it held."""
        default = (
            FullStateDictConfig()
            if state_dict_type is StateDictType.FULL_STATE_DICT
            else ShardedStateDictConfig()
        )
        settings = StateDictSettings(
            state_dict_type, state_dict_config or default, optim_state_dict_config
        )
        before = FullyShardedDataParallel.get_state_dict_type(module)
        for inner in FullyShardedDataParallel.fsdp_modules(module):
            inner._settings = settings
        return before

    @staticmethod
    def get_state_dict_type(module: Any) -> StateDictSettings:
        """What `state_dict` of the wrapped modules within a module holds."""
        for inner in FullyShardedDataParallel.fsdp_modules(module):
            found: StateDictSettings = inner._settings
            return found
        return StateDictSettings(StateDictType.FULL_STATE_DICT, FullStateDictConfig())

    @staticmethod
    @contextmanager
    def state_dict_type(
        module: Any, state_dict_type: StateDictType,
        state_dict_config: StateDictConfig | None = None, optim_state_dict_config: Any = None,
    ) -> Iterator[None]:  # fmt: skip
        """Within it, `state_dict` of the wrapped modules holds something else."""
        before = FullyShardedDataParallel.set_state_dict_type(
            module, state_dict_type, state_dict_config, optim_state_dict_config
        )
        try:
            yield
        finally:
            FullyShardedDataParallel.set_state_dict_type(
                module, before.state_dict_type, before.state_dict_config,
                before.optim_state_dict_config,
            )  # fmt: skip

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Whole tensors, or this process's parts: see `state_dict_type`. All processes must call
        it for whole ones."""
        prefix = kwargs.get("prefix", args[1] if len(args) > 1 else "")
        found = super().state_dict(*args, **kwargs)
        mine = [name for name in found if name.startswith(prefix)]
        config = self._settings.state_dict_config
        full = self._settings.state_dict_type is StateDictType.FULL_STATE_DICT
        dropped = full and getattr(config, "rank0_only", False) and not _is_rank_0()
        renamed = []
        with no_grad():
            for name in mine:
                value = found.pop(name)
                if full and hasattr(value, "full_tensor"):
                    value = value.detach().full_tensor()
                if config.offload_to_cpu and isinstance(value, TensorBase):
                    value = value.cpu()  # type: ignore[attr-defined]
                clean = prefix + name.removeprefix(prefix).replace(_WRAPPED + ".", "")
                renamed.append((clean, value))
        if not dropped:
            found.update(renamed)
        return found

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        """Load whole tensors or parts, of which each process takes its own."""
        given: OrderedDict[str, Any] = OrderedDict()
        names = {
            name.replace(_WRAPPED + ".", ""): (name, value)
            for name, value in Module.state_dict(self).items()
        }
        for name, value in state_dict.items():
            raw, here = names.get(name, (name, None))
            if hasattr(here, "placements") and not hasattr(value, "placements"):
                value = distribute_tensor(
                    value, here.device_mesh, here.placements, src_data_rank=None
                )
            given[raw] = value
        return super().load_state_dict(given, strict, assign)


def _is_rank_0() -> bool:
    from rushlight import distributed as dist

    return int(dist.get_rank()) == 0


def _from_rank_0(module: Any, group: Any) -> None:
    from rushlight import distributed as dist

    source = 0 if group is None else dist.get_global_rank(group, 0)
    with no_grad():
        for tensor in (*module.parameters(), *module.buffers()):
            if not hasattr(tensor, "placements"):
                dist.broadcast(tensor.data, src=source, group=group)


def _ignored(modules: Any, states: Any) -> set[Any]:
    found = {param for module in modules or () for param in module.parameters()}
    for item in states or ():
        found.update(item.parameters() if isinstance(item, Module) else (item,))
    return found


def _write_back(group: Any) -> None:
    """Take what was written to the whole parameters into the parts."""
    with no_grad():
        for param in group.params:
            part = param.sharded
            new = distribute_tensor(
                param.whole.detach(), part.device_mesh, part.placements, src_data_rank=None
            )
            part.copy_(new.to(part.dtype))
