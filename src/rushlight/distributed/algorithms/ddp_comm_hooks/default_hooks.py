"""Hooks that average gradients, as they are or in 16 bits.

    net.register_comm_hook(None, default_hooks.fp16_compress_hook)

The state of each is the group of processes, None for all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight import dtypes
from rushlight.futures import Future
from rushlight.nn.parallel.buckets import GradBucket
from rushlight.tensor import Tensor

__all__ = [
    "allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook",
    "fp16_compress_wrapper",
]  # fmt: skip
__dir__ = __all__.copy


def _average(group: Any, t: Any) -> Future[Any]:
    """The average of a tensor over a group, in place. Divided first: sums may overflow."""
    from rushlight import distributed as dist

    t.div_(dist.get_world_size(group))
    work = dist.all_reduce(t, group=group, async_op=True)
    averaged: Future[Any] = work.get_future().then(lambda future: future.value()[0])
    return averaged


def _compress(dtype: Any, group: Any, bucket: GradBucket) -> Future[Any]:
    """The average computed in another dtype, and written to the buffer of the bucket."""
    buffer: Any = bucket.buffer()
    return _average(group, buffer.to(dtype)).then(lambda future: buffer.copy_(future.value()))


def allreduce_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """allreduce_hook(process_group, bucket): the average: what happens without a hook."""
    return _average(process_group, bucket.buffer())


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """fp16_compress_hook(process_group, bucket): the average, sent in float16: half the bytes."""
    return _compress(dtypes.float16, process_group, bucket)


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """bf16_compress_hook(process_group, bucket): the average, sent in bfloat16: half the bytes."""
    return _compress(dtypes.bfloat16, process_group, bucket)


def _wrap(dtype: Any, hook: Callable[..., Any], name: str) -> Callable[..., Future[Tensor]]:
    def compressed(hook_state: Any, bucket: GradBucket) -> Future[Tensor]:
        buffer: Any = bucket.buffer()
        bucket.set_buffer(buffer.to(dtype))

        def restore(future: Any) -> Any:
            value = future.value()
            return buffer.copy_(value[0] if isinstance(value, list | tuple) else value)

        restored: Future[Tensor] = hook(hook_state, bucket).then(restore)
        return restored

    compressed.__name__ = compressed.__qualname__ = name
    return compressed


def fp16_compress_wrapper(hook: Callable[..., Any]) -> Callable[..., Future[Tensor]]:
    """fp16_compress_wrapper(hook): the hook, which gets gradients in float16.

    >>> from rushlight.distributed.algorithms.ddp_comm_hooks import default_hooks
    >>> default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook).__name__
    'fp16_compress_wrapper_hook'
    """
    return _wrap(dtypes.float16, hook, "fp16_compress_wrapper_hook")


def bf16_compress_wrapper(hook: Callable[..., Any]) -> Callable[..., Future[Tensor]]:
    """bf16_compress_wrapper(hook): the hook, which gets gradients in bfloat16.

    >>> from rushlight.distributed.algorithms.ddp_comm_hooks import default_hooks
    >>> default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook).__name__
    'bf16_compress_wrapper_hook'
    """
    return _wrap(dtypes.bfloat16, hook, "bf16_compress_wrapper_hook")
