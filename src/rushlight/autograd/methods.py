"""Tensor methods that touch the graph: hooks, kept gradients, detaching."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.core.engine import leaf_hooks
from rushlight.core.graph import wrap_as
from rushlight.core.hooks import RemovableHandle, register
from rushlight.core.node import extra_of, hooks_of, retain_on
from rushlight.core.views import edge_of_view
from rushlight.tensor import Tensor

__all__: list[str] = []


def register_hook(self: Any, hook: Callable[[Any], Any]) -> RemovableHandle:
    """Call `hook(grad)` when this tensor's gradient is computed; a result replaces it.

    >>> import rushlight as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> handle = x.register_hook(lambda g: g * 2)
    >>> x.sum().backward()
    >>> x.grad
    tensor([2., 2.])
    """
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if self.as_view is not None:
        edge_of_view(self)
    if self.node is None:
        extra = extra_of(self)
        if extra.hooks is None:
            extra.hooks = {}
        leaf_hooks.count += 1
        return register(extra.hooks, hook)
    hooks = hooks_of(self.node)
    if hooks.tensor_pre is None:
        hooks.tensor_pre = {}
    return register(hooks.tensor_pre.setdefault(int(self.index), {}), hook)


def register_post_accumulate_grad_hook(self: Any, hook: Callable[[Any], None]) -> RemovableHandle:
    """Call `hook(leaf)` each time a gradient was added to this leaf's `.grad`."""
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if self.grad_fn is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    extra = extra_of(self)
    if extra.post_accumulate is None:
        extra.post_accumulate = {}
    leaf_hooks.count += 1
    return register(extra.post_accumulate, hook)


def retain_grad(self: Any) -> None:
    """Keep this interior tensor's gradient in `.grad`, as leaves do.

    >>> import rushlight as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> y = x * 3
    >>> y.retain_grad()
    >>> y.sum().backward()
    >>> y.grad
    tensor([1., 1.])
    """
    if not self.requires_grad:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if self.grad_fn is None:
        return
    extra = extra_of(self)
    if not extra.retains:
        extra.retains = True
        retain_on(self, self.node)


def detach(self: Any) -> Any:
    """A tensor on the same memory, outside the graph.

    >>> import rushlight as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> x.detach().requires_grad
    False
    """
    return wrap_as(self.array, self.memory)


def detach_(self: Any) -> Any:
    """Take this tensor out of the graph: it becomes a leaf that asks for no gradient."""
    if self.as_view is not None and (self.requires_grad or self.as_view.base.requires_grad):
        raise RuntimeError(
            "Can't detach views in-place. Use detach() instead. If you are using "
            "DistributedDataParallel (DDP) for training, and gradient_as_bucket_view is set as "
            "True, gradients are views of DDP buckets, and hence detach_() cannot be called on "
            "these gradients. To fix this error, please refer to the Optimizer.zero_grad() "
            "function in torch/optim/optimizer.py as a reference."
        )
    self.node = None
    self.index = 0
    self.leaf = False
    return self


for _method in (register_hook, register_post_accumulate_grad_hook, retain_grad, detach, detach_):
    setattr(Tensor, _method.__name__, _method)


def is_inference(self: Any) -> bool:
    """Whether this tensor was made inside `inference_mode`."""
    return bool(self.memory.inference)


setattr(Tensor, "is_inference", is_inference)  # noqa: B010
setattr(  # noqa: B010
    Tensor,
    "retains_grad",
    property(lambda self: self.extra is not None and self.extra.retains),
)
