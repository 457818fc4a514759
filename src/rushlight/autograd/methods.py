"""Tensor methods that touch the graph: hooks, kept gradients, detaching."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, cast

from rushlight import dtypes
from rushlight.arrays.batched import Batched
from rushlight.core.engine.hooks import LeafTable, RemovableHandle, add_to_hooks
from rushlight.core.grad_mode import _lock, inference_enabled, state
from rushlight.core.graph import extra_of, hooks_of, retain_on
from rushlight.core.transforms.stack import refuse_inside
from rushlight.core.views.history import edge_of_view
from rushlight.dtypes import c_name
from rushlight.ops.checks import check_tensor
from rushlight.ops.view.select import detached_array
from rushlight.tensor import Tensor


def register_hook(self: Any, hook: Callable[[Any], Any]) -> RemovableHandle:
    """Call `hook(grad)` when this tensor's gradient is computed; a result replaces it.

    >>> x = torch.ones(2, requires_grad=True)
    >>> handle = x.register_hook(lambda g: g * 2)
    >>> x.sum().backward()
    >>> x.grad
    tensor([2., 2.])
    """
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if self._view is not None:
        edge_of_view(self)
    if self._node is None:
        extra = extra_of(self)
        with _lock:
            if extra.hooks is None:
                extra.hooks = LeafTable()
        return add_to_hooks(extra.hooks, hook)
    hooks = hooks_of(self._node)
    with _lock:
        if hooks.tensor_pre is None:
            hooks.tensor_pre = {}
    return add_to_hooks(hooks.tensor_pre.setdefault(int(self._output_nr), {}), hook)


def register_post_accumulate_grad_hook(self: Any, hook: Callable[[Any], None]) -> RemovableHandle:
    """Call `hook(leaf)` each time a gradient was added to this leaf's `.grad`."""
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if self.grad_fn is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    extra = extra_of(self)
    with _lock:
        if extra.post_accumulate is None:
            extra.post_accumulate = LeafTable()
    return add_to_hooks(extra.post_accumulate, hook)


def retain_grad(self: Any) -> None:
    """Keep this interior tensor's gradient in `.grad`, as leaves do.

    >>> x = torch.ones(2, requires_grad=True)
    >>> y = x * 3
    >>> y.retain_grad()
    >>> y.sum().backward()
    >>> y.grad
    tensor([1., 1.])
    """
    if not self.requires_grad:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if state.level != 0:
        refuse_inside("retain_grad")
    if self._node is None:
        if self._view is not None and self._view.how == "":
            edge_of_view(self)  # its base may have a history by now
        if self._node is None:
            return  # a leaf; so are views that were not recorded, even if they are stale
    extra = extra_of(self)
    if not extra.retains:
        edge_of_view(self)
        extra.retains = True
        retain_on(self, self._node)


def detach_(self: Any) -> Any:
    """Take this tensor out of the graph: it becomes a leaf that wants no gradient."""
    if inference_enabled():
        return self  # there, autograd is not even asked
    if self._view is not None:
        raise RuntimeError(
            "Can't detach views in-place. Use detach() instead. If you are using "
            "DistributedDataParallel (DDP) for training, and gradient_as_bucket_view is set as "
            "True, gradients are views of DDP buckets, and hence detach_() cannot be called on "
            "these gradients. To fix this error, please refer to the Optimizer.zero_grad() "
            "function in torch/optim/optimizer.py as the solution."
        )
    if type(self._array) is Batched:
        self._array = detached_array(self._array)
    self._node = None
    self._output_nr = 0
    self._requires_grad = False
    return self


def _is_inference(self: Any) -> bool:
    """Whether this tensor was made inside `inference_mode`."""
    return bool(self._storage.inference)


def is_inference(input: Any) -> bool:
    """Whether a tensor was made inside `inference_mode`.

    >>> with torch.inference_mode():
    ...     x = torch.ones(2)
    >>> torch.is_inference(x), torch.is_inference(x.clone())
    (True, False)
    """
    check_tensor(input, "is_inference")
    return _is_inference(input)


# --- attributes -----------------------------------------------------------------------------------
def _retains_grad(self: Any) -> bool:
    """Whether this interior tensor keeps its gradient; see `retain_grad`."""
    return self._extra is not None and bool(self._extra.retains)


def _grad_dtype(self: Any) -> dtypes.dtype | None:
    """The dtype that this leaf's gradient is given: its own, or what you set; None allows any.

    >>> x = torch.ones(2, requires_grad=True)
    >>> x.grad_dtype = torch.float16
    >>> x.sum().backward()
    >>> x.grad
    tensor([1., 1.], dtype=torch.float16)
    """
    if not self.is_leaf:
        raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
    extra = self._extra
    if extra is not None:
        if extra.any_grad:
            return None
        if extra.grad_dtype is not None:
            return dtypes.of(extra.grad_dtype)
    return cast(dtypes.dtype, self.dtype)


def _set_grad_dtype(self: Any, value: Any) -> None:
    if not self.is_leaf:
        raise RuntimeError("grad_dtype can only be set on leaf tensors.")
    if value is not None and not isinstance(value, dtypes.dtype):
        raise RuntimeError(
            f"grad_dtype must be a torch.dtype or None, but got {type(value).__name__}"
        )
    if (
        value is not None
        and self._accumulated_grad is not None
        and self._accumulated_grad.dtype is not value
    ):
        raise RuntimeError(
            f"Cannot set grad_dtype to '{value.scalar_type}' because there is already a gradient "
            f"with dtype '{c_name(self._accumulated_grad.dtype)}'. Please clear the gradient "
            "(.grad = None) before changing grad_dtype, or ensure the new grad_dtype matches the "
            "existing gradient's dtype."
        )
    extra = extra_of(self)
    extra.any_grad = value is None
    extra.grad_dtype = None if value is None or value is self.dtype else value.numpy


def _post_accumulate_grad_hooks(self: Any) -> Any:
    return None if self._extra is None else self._extra.post_accumulate or None


def _volatile(self: Any) -> bool:
    """Always False: long ago it meant what `no_grad` does."""
    warnings.warn("volatile was removed (Variable.volatile is always False)", stacklevel=2)
    return False


def _set_volatile(self: Any, value: Any) -> None:
    warnings.warn(
        "volatile was removed and now has no effect. Use `with torch.no_grad():` instead.",
        stacklevel=2,
    )


for _method in (register_hook, register_post_accumulate_grad_hook, retain_grad, detach_):
    setattr(Tensor, _method.__name__, _method)
for _name, _value in {
    "is_inference": _is_inference,
    "retains_grad": property(_retains_grad),
    "grad_dtype": property(_grad_dtype, _set_grad_dtype),
    "_post_accumulate_grad_hooks": property(_post_accumulate_grad_hooks),
    "volatile": property(_volatile, _set_volatile),
}.items():
    setattr(Tensor, _name, _value)
_is_inference.__name__ = "is_inference"
