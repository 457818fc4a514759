"""How `DistributedDataParallel` keeps parameters and buffers equal in all processes."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from rushlight.nn.modules.module import Module
from rushlight.nn.parallel.module_states import broadcast_coalesced
from rushlight.nn.parallel.reducer import Reducer
from rushlight.ops.registry import functions

__all__ = ["ModuleSync"]
__dir__ = __all__.copy


class _BufferCommHookLocation(enum.Enum):
    PRE_FORWARD = enum.auto()
    POST_FORWARD = enum.auto()


class ModuleSync(Module):
    """A wrapper of a module that takes parameters and buffers from one of several processes."""

    module: Any
    device: Any
    process_group: Any
    parameters_to_ignore: set[str]
    reducer: Reducer
    forward_sync_buffers: bool
    require_forward_param_sync: bool
    broadcast_bucket_size: int
    _join_config: Any

    def _choose_buffers(self, broadcast: bool | None, forward_sync: bool | None) -> bool:
        """Set which buffers each forward pass takes over; returns whether this constructor does."""
        if forward_sync is None:
            forward_sync = broadcast is not False
            self.forward_sync_buffers = forward_sync
            return forward_sync
        self.forward_sync_buffers = forward_sync
        return True

    def _assign_modules_buffers(self) -> None:
        self.named_module_buffers = {
            n: b for n, b in self.module.named_buffers() if n not in self.parameters_to_ignore
        }
        self.modules_buffers = list(self.named_module_buffers.values())

    def _sync_module_states(self, source: int, buffers: bool) -> None:
        """Take the parameters, and the buffers if asked, of one process."""
        states = [
            p for n, p in self.module.named_parameters() if n not in self.parameters_to_ignore
        ]
        if buffers:
            self._assign_modules_buffers()
            states += self.modules_buffers
        self._distributed_broadcast_coalesced(states, self.broadcast_bucket_size, source)

    def _distributed_broadcast_coalesced(
        self, tensors: Any, buffer_size: int, authoritative_rank: int = 0
    ) -> None:
        broadcast_coalesced(self.process_group, tensors, buffer_size, authoritative_rank)

    @property
    def _distributed_rank(self) -> int:
        from rushlight import distributed as dist

        return dist.get_rank(self.process_group)

    def _find_common_rank(self, candidate: bool) -> int:
        """The largest number of a process that is a candidate."""
        from rushlight import distributed as dist

        mine = self._distributed_rank if candidate else -1
        largest = functions["tensor"]([mine], device=self.device)
        dist.all_reduce(largest, op=dist.ReduceOp.MAX, group=self.process_group)
        return int(largest.item())

    @property
    def broadcast_buffers(self) -> bool:
        """The older name of `forward_sync_buffers`."""
        return self.forward_sync_buffers

    @broadcast_buffers.setter
    def broadcast_buffers(self, value: bool) -> None:
        self.forward_sync_buffers = value

    def will_sync_module_buffers(self) -> bool:
        """Whether the next forward pass takes the buffers of process 0."""
        return (
            self.require_forward_param_sync
            and self.forward_sync_buffers
            and len(self.modules_buffers) > 0
        )

    def _buffer_hook_at(self, place: _BufferCommHookLocation) -> bool:
        there = getattr(self, "buffer_hook", None)
        return there is not None and there[2] is place

    def _check_sync_bufs_pre_fwd(self) -> bool:
        return self.will_sync_module_buffers() and not self._buffer_hook_at(
            _BufferCommHookLocation.POST_FORWARD
        )

    def _check_sync_bufs_post_fwd(self) -> bool:
        return self.will_sync_module_buffers() and self._buffer_hook_at(
            _BufferCommHookLocation.POST_FORWARD
        )

    def _sync_buffers(self) -> None:
        # Process 0 may have run out of inputs, with buffers that are out of date.
        source = self._find_common_rank(True) if self._join_config.enable else 0
        self._assign_modules_buffers()
        self._sync_module_buffers(source)

    def _sync_module_buffers(self, authoritative_rank: int) -> None:
        if not hasattr(self, "buffer_hook"):
            self._distributed_broadcast_coalesced(
                self.modules_buffers, self.broadcast_bucket_size, authoritative_rank
            )
            return
        state, hook, _ = self.buffer_hook
        futures = hook(state, self.named_module_buffers)
        if futures is not None:
            self.reducer.post_backward_futures += futures

    def _register_buffer_comm_hook(
        self, state: Any, hook: Callable[..., Any],
        comm_hook_location: _BufferCommHookLocation = _BufferCommHookLocation.POST_FORWARD,
    ) -> None:  # fmt: skip
        """Have a hook synchronise the buffers, which it gets by name."""
        if not callable(hook):
            raise AssertionError(f"hook must be callable, got {type(hook).__name__}")
        self.buffer_hook = (state, hook, comm_hook_location)
