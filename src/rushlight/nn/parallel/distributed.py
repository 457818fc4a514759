"""`DistributedDataParallel`: the same module in several processes, each with its own part of the
batch, and gradients averaged over all of them.

All processes start with equal parameters and add equal averages to them, so they stay equal.
`reducer` explains how gradients travel while the backward pass is running.
"""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rushlight.autograd.grad_mode import is_grad_enabled, no_grad
from rushlight.distributed.algorithms.join import Join, Joinable, JoinHook, notify
from rushlight.nn.parallel.module_states import verify_parameters
from rushlight.nn.parallel.module_sync import ModuleSync
from rushlight.nn.parallel.module_sync import _BufferCommHookLocation as _BufferCommHookLocation
from rushlight.nn.parallel.outputs import find_tensors, map_tensors
from rushlight.nn.parallel.reducer import Reducer
from rushlight.nn.parallel.scatter_gather import gather, scatter_kwargs
from rushlight.nn.parallel.sink import watch_end
from rushlight.ops.registry import functions

__all__ = ["DistributedDataParallel"]
__dir__ = __all__.copy

_MB = 1024 * 1024
_FIRST_BUCKET = _MB  # small, so that the first message leaves early
_BROADCAST_SIZE = 250 * _MB


class _DDPJoinHook(JoinHook):
    """Takes part in the communication of `DistributedDataParallel` with nothing to add."""

    def __init__(self, ddp: DistributedDataParallel, divide_by_initial_world_size: bool) -> None:
        super().__init__()
        self.ddp = ddp
        ddp._divide_by_initial_world_size = divide_by_initial_world_size

    def main_hook(self) -> None:
        ddp = self.ddp
        ddp.reducer.rebuild_buckets()
        if ddp._check_sync_bufs_pre_fwd():
            ddp._sync_module_buffers(ddp._find_common_rank(False))
        ddp.require_forward_param_sync = ddp._any_process_syncs(False)
        if ddp.require_forward_param_sync:
            ddp.reducer.shadow()

    def post_hook(self, is_last_joiner: bool) -> None:
        ddp = self.ddp
        ddp._authoritative_rank = ddp._find_common_rank(is_last_joiner)
        ddp._sync_module_states(ddp._authoritative_rank, ddp.forward_sync_buffers)


class DistributedDataParallel(ModuleSync, Joinable):
    """DistributedDataParallel(module, device_ids=None, output_device=None, dim=0,
    broadcast_buffers=None, init_sync=True, process_group=None, bucket_cap_mb=None,
    find_unused_parameters=False, check_reduction=False, gradient_as_bucket_view=False,
    static_graph=False, ...): a module trained by several processes at once.

    Each process calls it with its own part of the batch. After `backward` every process has the
    average of all gradients, which is the gradient of the mean loss over the whole batch; an
    optimizer then takes the same step everywhere.

    Args:
        module: the module; its parameters and buffers become those of process 0.
        device_ids: the one GPU that the module is on, and inputs are moved to; None on the CPU.
        process_group: the processes; None: all.
        bucket_cap_mb: gradients travel in messages of about so many megabytes: 25, after a first
            one of 1.
        find_unused_parameters: some parameters may not take part in a forward pass.
        gradient_as_bucket_view: gradients are views of those messages, which saves memory.
        static_graph: every iteration uses the same parameters, as often as the first.
        forward_sync_buffers: each forward pass takes the buffers of process 0.

    >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1)
    >>> net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1, bias=False))
    >>> net(torch.ones(3, 2)).mean().backward()
    >>> net.module.weight.grad, list(net.state_dict())
    (tensor([[1., 1.]]), ['module.weight'])
    >>> torch.distributed.destroy_process_group()
    """

    _active_ddp_module: DistributedDataParallel | None = None
    module: Any
    reducer: Reducer

    def __init__(
        self, module: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0,
        broadcast_buffers: bool | None = None, init_sync: bool = True, process_group: Any = None,
        bucket_cap_mb: float | None = None, find_unused_parameters: bool = False,
        check_reduction: bool = False, gradient_as_bucket_view: bool = False,
        static_graph: bool = False, delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None, mixed_precision: Any = None, device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False, bucket_cap_mb_list: list[int] | None = None,
        batched_grad_copy: bool = False, forward_sync_buffers: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        Joinable.__init__(self)
        if (delay_all_reduce_named_params is None) != (param_to_hook_all_reduce is None):
            raise ValueError(
                "delay_all_reduce_named_params and param_to_hook_all_reduce need to be set at the "
                "same time."
            )
        if mixed_precision is not None:
            raise NotImplementedError(
                "DistributedDataParallel(mixed_precision=...): rushlight has it not. Run the "
                "module under torch.autocast, and send gradients in fewer bits with "
                "register_comm_hook(None, default_hooks.fp16_compress_hook)."
            )
        self.process_group = self._choose_group(process_group, device_mesh)
        self.parameters_to_ignore: set[str] = set(
            getattr(module, "_ddp_params_and_buffers_to_ignore", ())
        )
        self._delay_all_reduce_params: list[Any] = []
        for name, p in delay_all_reduce_named_params or ():
            self.parameters_to_ignore.add(name)
            self._delay_all_reduce_params.append(p)
        self._module_parameters = [
            p for n, p in module.named_parameters() if n not in self.parameters_to_ignore
        ]
        self._check_parameters(device_ids)
        self._choose_devices(device_ids, output_device)
        self.dim = dim
        self.module = module
        init_sync_buffers = self._choose_buffers(broadcast_buffers, forward_sync_buffers)
        if check_reduction:
            warnings.warn(
                "The `check_reduction` argument in `DistributedDataParallel` module is deprecated. "
                "Please avoid using it.",
                FutureWarning,
                stacklevel=2,
            )
        self.find_unused_parameters = find_unused_parameters
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.skip_all_reduce_unused_params = skip_all_reduce_unused_params
        self.batched_grad_copy = batched_grad_copy
        self.mixed_precision = mixed_precision
        self.static_graph = False
        self.broadcast_bucket_size = _BROADCAST_SIZE
        self.bucket_bytes_cap = int((25 if bucket_cap_mb is None else bucket_cap_mb) * _MB)
        if bucket_cap_mb_list:
            self._limits = [int(mb * _MB) for mb in bucket_cap_mb_list]
        elif bucket_cap_mb is None:
            self._limits = [_FIRST_BUCKET, self.bucket_bytes_cap]
        else:
            self._limits = [self.bucket_bytes_cap]
        self._comm_hooks: list[tuple[Callable[..., Any], object]] = []
        self._divide_by_initial_world_size = True
        self._has_rebuilt_buckets = False
        self._assign_modules_buffers()
        named = self._named_reduced()
        if init_sync:
            verify_parameters(self.process_group, [p for _, p in named], [n for n, _ in named])
            self._sync_module_states(0, init_sync_buffers)
        self._delay_grad_buffer: Any = None
        if self._delay_all_reduce_params:
            self._delay_all_reduce(param_to_hook_all_reduce)
        self._delay_all_reduce_all_params = not named
        if named:
            self._make_reducer()
            if static_graph:
                self._set_static_graph()

    # --- what the constructor is made of ----------------------------------------------------------
    def _choose_group(self, process_group: Any, device_mesh: Any) -> Any:
        from rushlight.distributed.distributed_c10d import _get_default_group

        if process_group and device_mesh is not None:
            raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
        if device_mesh is None:
            return _get_default_group() if process_group is None else process_group
        if device_mesh.ndim != 1:
            raise RuntimeError(f"Only 1D device mesh is supported, but got {device_mesh}.")
        self.device_mesh = device_mesh
        return device_mesh.get_group(mesh_dim=0)

    def _check_parameters(self, device_ids: Any) -> None:
        from rushlight.nn.parameter import UninitializedParameter

        given = self._module_parameters
        if not self._delay_all_reduce_params and not any(p.requires_grad for p in given):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter "
                "that requires a gradient."
            )
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        if any(isinstance(p, UninitializedParameter) for p in given):
            raise RuntimeError(
                "Modules with uninitialized parameters can't be used with "
                "`DistributedDataParallel`. Run a dummy forward pass to correctly initialize the "
                "modules"
            )

    def _choose_devices(self, device_ids: Any, output_device: Any) -> None:
        from rushlight.arrays.device import device

        everything = self._module_parameters or self._delay_all_reduce_params
        places = {p.device for p in everything}
        kinds = {place.type for place in places}
        if len(kinds) != 1:
            raise ValueError(
                "DistributedDataParallel's input module must be on the same type of devices, but "
                f"input module parameters locate in {kinds}."
            )
        self.device = everything[0].device
        self.device_type = self.device.type
        self.is_multi_device_module = len(places) > 1
        self.device_ids: list[int] | None = None
        self.output_device: int | None = None
        if not device_ids or self.device_type == "cpu" or self.is_multi_device_module:
            if device_ids or output_device:
                raise ValueError(
                    "DistributedDataParallel device_ids and output_device arguments only work with "
                    "single-device/multiple-device GPU modules or CPU modules, but got device_ids "
                    f"{device_ids}, output_device {output_device}, and module parameters {places}."
                )
            return

        def number(place: Any) -> int:
            return place if isinstance(place, int) else device(place).index or 0

        self.device_ids = [number(place) for place in device_ids]
        self.output_device = number(device_ids[0] if output_device is None else output_device)

    def _named_reduced(self) -> list[tuple[str, Any]]:
        """The parameters whose gradients the reducer averages, with their names."""
        return [
            (n, p)
            for n, p in self.module.named_parameters()
            if p.requires_grad and n not in self.parameters_to_ignore
        ]

    def _make_reducer(self) -> None:
        named = self._named_reduced()
        self.reducer = Reducer(
            [p for _, p in named], [n for n, _ in named], self.process_group, self._limits,
            self.find_unused_parameters, self.gradient_as_bucket_view,
            self.skip_all_reduce_unused_params,
        )  # fmt: skip

    # --- gradients that wait for a given moment ---------------------------------------------------
    def _delay_all_reduce(self, moment: Any) -> None:
        """Keep the delayed parameters' gradients in one tensor, averaged when the gradient of
        `moment` is computed."""
        from rushlight.nn.parallel.buckets import Bucket

        delayed = self._delay_all_reduce_params
        self._distributed_broadcast_coalesced(delayed, self.broadcast_bucket_size)
        bucket = Bucket(range(len(delayed)), delayed)
        self._delay_grad_buffer, self._delay_grad_views = bucket.buffer, bucket.views
        moment.register_hook(self._delayed_all_reduce_hook)

    def _delayed_all_reduce_hook(self, grad: Any) -> Any:
        from rushlight import distributed as dist

        with no_grad():
            self._delay_grad_buffer.div_(dist.get_world_size(self.process_group))
            dist.all_reduce(self._delay_grad_buffer, group=self.process_group)
        return grad

    def _clear_grad_buffer(self) -> None:
        """Let the delayed gradients add up in their tensor, from 0 where they were let go."""
        if self._delay_grad_buffer is None:
            return
        for p, view in zip(self._delay_all_reduce_params, self._delay_grad_views):
            if p.grad is None:
                p.grad = view.zero_()

    # --- copies -----------------------------------------------------------------------------------
    def _check_default_group(self) -> None:
        from rushlight.distributed.distributed_c10d import _get_default_group

        if self.process_group != _get_default_group():
            raise RuntimeError(
                "DDP Pickling/Unpickling are only supported when using DDP with the default "
                "process group. That is, when you have called init_process_group and have not "
                "passed process_group argument to DDP constructor"
            )

    def __getstate__(self) -> dict[str, Any]:
        self._check_default_group()
        state = copy.copy(self.__dict__)
        for name in ("process_group", "reducer"):
            state.pop(name, None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        from rushlight.distributed.distributed_c10d import _get_default_group

        self.process_group = _get_default_group()
        super().__setstate__(state)
        self._make_reducer()
        self.reducer.static_graph = self.static_graph

    # --- running ----------------------------------------------------------------------------------
    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Inside, gradients only add up in this process; the first pass after it averages the sums.
        The forward pass belongs inside too."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if self._delay_all_reduce_all_params:
            self._clear_grad_buffer()
            return self.module.forward(*inputs, **kwargs)
        inputs, kwargs = self._pre_forward(*inputs, **kwargs)
        before = DistributedDataParallel._active_ddp_module
        DistributedDataParallel._active_ddp_module = self
        try:
            output = self.module(*inputs, **kwargs)
        finally:
            DistributedDataParallel._active_ddp_module = before
        return self._post_forward(output)

    def _pre_forward(self, *inputs: Any, **kwargs: Any) -> tuple[Any, Any]:
        # The order of what is sent here is that of `_DDPJoinHook.main_hook`.
        told = notify(self)
        self.reducer.divisor = self.reducer.world_size
        if told is not None:
            work, alive = told
            work.wait()
            if not self._divide_by_initial_world_size:
                self.reducer.divisor = int(alive.item())
        if is_grad_enabled() and self.reducer.rebuild_buckets():
            self._has_rebuilt_buckets = True
        if self._check_sync_bufs_pre_fwd():
            self._sync_buffers()
        if self._join_config.enable:
            self._any_process_syncs(self.require_backward_grad_sync)
        if not self.device_ids:
            return inputs, kwargs
        return self.to_kwargs(inputs, kwargs, self.device_ids[0])

    def _post_forward(self, output: Any) -> Any:
        if self._check_sync_bufs_post_fwd():
            self._sync_buffers()
        self._clear_grad_buffer()
        syncs = is_grad_enabled() and self.require_backward_grad_sync
        self.require_forward_param_sync = syncs
        if not syncs:
            return output
        walks = self.find_unused_parameters and not self.static_graph
        self.reducer.prepare_for_backward(find_tensors(output) if walks else None)
        return watch_end(output, self.reducer) if self.reducer.awaits_end() else output

    def scatter(self, inputs: Any, kwargs: Any, device_ids: Any) -> Any:
        """The arguments, cut for each device."""
        return scatter_kwargs(inputs, kwargs, device_ids, self.dim)

    def to_kwargs(self, inputs: Any, kwargs: Any, device_id: Any) -> tuple[Any, Any]:
        """The arguments on one device."""
        place = f"{self.device_type}:{device_id}" if isinstance(device_id, int) else device_id

        def move(t: Any) -> Any:
            return t.to(place)

        return map_tensors(move, tuple(inputs)), map_tensors(move, dict(kwargs))

    def gather(self, outputs: Any, output_device: Any) -> Any:
        """The results of several devices together."""
        return gather(outputs, output_device, self.dim)

    # --- uneven inputs ----------------------------------------------------------------------------
    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Join:  # fmt: skip
        """`with net.join():` around a training loop lets processes have different numbers of
        batches: those that ran out add nothing to the averages. In the end all have the module of
        one that ran longest.

        Args:
            divide_by_initial_world_size: divide sums by the number of all processes; otherwise by
                that of those that still have batches.
            enable: False does nothing.
            throw_on_early_termination: raise an error everywhere when the first runs out.
        """
        return Join(
            [self],
            enable,
            throw_on_early_termination,
            divide_by_initial_world_size=divide_by_initial_world_size,
        )

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What `Join` calls when this process has run out of batches."""
        return _DDPJoinHook(self, kwargs.get("divide_by_initial_world_size", True))

    @property
    def join_device(self) -> Any:
        return self.device

    @property
    def join_process_group(self) -> Any:
        return self.process_group

    def _any_process_syncs(self, mine: bool) -> bool:
        """Whether some process will average its gradients in this iteration."""
        from rushlight import distributed as dist

        count = functions["full"]((1,), float(mine), device=self.device)
        dist.all_reduce(count, group=self.process_group)
        return bool(count.item() != 0)

    # --- hooks ------------------------------------------------------------------------------------
    def register_comm_hook(self, state: object, hook: Callable[..., Any]) -> None:
        """Have a hook average the gradients: `hook(state, bucket) -> Future` of a flat tensor.

        The hook gets a `GradBucket` with the plain gradients of this process and returns a future
        of what they shall become; dividing is up to it.
        `torch.distributed.algorithms.ddp_comm_hooks.default_hooks` has some.

        >>> from rushlight.distributed.algorithms.ddp_comm_hooks import default_hooks
        >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1)
        >>> net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1, bias=False))
        >>> net.register_comm_hook(None, default_hooks.fp16_compress_hook)
        >>> (net(torch.ones(1, 1)) / 3).sum().backward()
        >>> net.module.weight.grad
        tensor([[0.3333]])
        >>> net.module.weight.grad.item() == 1 / 3
        False
        >>> torch.distributed.destroy_process_group()
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        self._check_annotations(hook)
        if self.reducer.hook is not None:
            raise RuntimeError(
                "register_comm_hook or register_builtin_comm_hook can only be called once."
            )
        self._comm_hooks.append((hook, state))
        self.reducer.hook = (state, hook)

    def _check_annotations(self, hook: Callable[..., Any]) -> None:
        from rushlight.futures import Future
        from rushlight.nn.parallel.buckets import GradBucket
        from rushlight.tensor import Tensor

        signature = inspect.signature(hook)
        bucket = signature.parameters["bucket"].annotation
        result = signature.return_annotation
        # An annotation that is still a string says nothing that could be relied on.
        if not isinstance(bucket, str) and bucket not in (inspect.Parameter.empty, GradBucket):
            raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
        if not isinstance(result, str) and result not in (inspect.Signature.empty, Future[Tensor]):
            raise ValueError(
                "Communication hook: return annotation should be "
                "torch.futures.Future[torch.Tensor]."
            )

    # --- the graph --------------------------------------------------------------------------------
    def _set_static_graph(self) -> None:
        """Promise that every iteration uses the same parameters, as often as the first."""
        if self.static_graph:
            warnings.warn(
                "You've set static_graph to be True, no need to set it again.", stacklevel=2
            )
            return
        self.static_graph = True
        self.reducer.static_graph = True
        if self.find_unused_parameters:
            warnings.warn(
                "You passed find_unused_parameters=true to DistributedDataParallel, "
                "`_set_static_graph` will detect unused parameters automatically, so you do not "
                "need to set find_unused_parameters=true, just be sure these unused parameters "
                "will not change during training loop while calling `_set_static_graph`.",
                stacklevel=2,
            )

    def _remove_autograd_hooks(self) -> None:
        self.reducer.remove_hooks()

    def _check_reducer_finalized(self) -> None:
        self.reducer.check_finished()

    @staticmethod
    def _get_data_parallel_params(module: Any, named_params: bool = False) -> Iterator[Any]:
        """The parameters of a module that `DistributedDataParallel` takes care of."""
        ignored: set[str] = getattr(module, "parameters_to_ignore", set())
        inner = module.module if isinstance(module, DistributedDataParallel) else module
        for name, p in inner.named_parameters():
            if name not in ignored:
                yield (name, p) if named_params else p

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(
        module: Any, params_and_buffers_to_ignore: Any
    ) -> None:
        """Have `DistributedDataParallel` leave these, given by name, to each process."""
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore
        for name, p in [*module.named_parameters(), *module.named_buffers()]:
            if name in params_and_buffers_to_ignore:
                p._ddp_ignored = True

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """Facts about the set-up, for a log."""
        from rushlight import distributed as dist

        sizes = [b.buffer.numel() * b.buffer.element_size() for b in self.reducer.buckets]
        return {
            "world_size": dist.get_world_size(self.process_group),
            "rank": self._distributed_rank,
            "module_name": type(self.module).__name__,
            "bucket_cap_bytes": self.bucket_bytes_cap,
            "find_unused_parameters": int(self.find_unused_parameters),
            "gradient_as_bucket_view": int(self.gradient_as_bucket_view),
            "static_graph": int(self.static_graph),
            "has_rebuilt_buckets": int(self.reducer.rebuilt),
            "num_parameter_tensors": len(self.reducer.parameters),
            "rebuilt_bucket_sizes" if self.reducer.rebuilt else "bucket_sizes": ", ".join(
                map(str, sizes)
            ),
        }
