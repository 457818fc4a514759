"""The public Tensor: the compiled base, with every method of the op table attached.

What a method computes is in `ops`; here are the tensor's own attributes: what it is, its place
in the graph, what it is to Python and NumPy. Its memory is in `tensor_memory`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, cast

from rushlight import dtypes, tensor_memory
from rushlight import tensor_resize as tensor_resize  # its methods enter the table
from rushlight.arrays.batched import Batched
from rushlight.arrays.device import device
from rushlight.arrays.host import device_of, is_array, is_scalar, to_host
from rushlight.core.engine.accumulate_grad import AccumulateGradBase
from rushlight.core.grad_mode import COMPILED, inference_enabled, state
from rushlight.core.graph import TensorBase, View, factory, requires_grad, wrap
from rushlight.core.operators import (
    Operators,
    read_dtype,
    read_grad,
    read_ndim,
    read_requires_grad,
    read_shape,
)
from rushlight.core.operators import table as operators
from rushlight.core.record import finish
from rushlight.core.transforms.lift import plain_inside
from rushlight.core.transforms.stack import refuse_inside, stack
from rushlight.core.transforms.tangents import tangent_of
from rushlight.core.views.history import edge_of_view
from rushlight.dtypes import c_name, type_name
from rushlight.errors import sentence
from rushlight.missing import Lacking, hide_in, hide_lacking
from rushlight.ops import after_filling, fill_more, fill_rest, overriding
from rushlight.ops.checks import is_batched, varies
from rushlight.ops.creation.tensor import raw_from
from rushlight.ops.registry import implementation_of, methods
from rushlight.size import Size, unchecked
from rushlight.tensor_legacy import legacy_new

if TYPE_CHECKING:
    from rushlight._methods import Methods  # what `_attach` adds below, for type checkers
else:
    Methods = Operators


_made: list[type] = []  # Tensor, once there is one


class TensorClass(type):
    """The class of Tensor and its subclasses: prints Tensor as PyTorch's, and lets subclasses take
    over functions (Note [Overrides])."""

    def __repr__(cls) -> str:
        return "<class 'torch.Tensor'>" if cls is Tensor else type.__repr__(cls)

    def __dir__(cls) -> list[str]:
        fill_rest()
        return hide_lacking(cls, type.__dir__(cls))

    def __init__(cls, name: str, bases: tuple[type, ...], space: dict[str, Any], **kw: Any) -> None:
        super().__init__(name, bases, space)
        if _made and not overriding.is_disabled(cls):
            overriding.switch_on()
            overriding.attach_overrides(cls)


class Tensor(Methods, metaclass=TensorClass):
    """An n-dimensional array that remembers how it was computed.

    >>> x = torch.tensor([1., 2.], requires_grad=True)
    >>> y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 4.])
    """

    __hash__ = object.__hash__
    __array_priority__ = 1000  # NumPy's operators leave the answer to the tensor
    grad_dtype: Any  # a property, from `autograd.methods`

    def __dir__(self) -> list[str]:
        fill_rest()
        return hide_lacking(type(self), object.__dir__(self))

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """What is done when a function gets an instance of a subclass: the function computes as
        ever, and its result gets the class. Subclasses override it to see or change calls."""
        return overriding.default_torch_function(cls, func, types, args, kwargs)

    def __new__(cls, *args: Any, device: Any = None) -> Self:
        """`Tensor([1., 2.])`: values; `Tensor(2, 3)`: an uninitialised tensor of that shape."""
        if cls is Tensor:
            return cast(Self, legacy_new(dtypes.default, args))
        return cast(Self, legacy_new(dtypes.default, args).as_subclass(cls))

    # --- what it is -----------------------------------------------------------------------------
    @property
    def shape(self) -> Size:
        return unchecked(self._array.shape)

    @property
    def ndim(self) -> int:
        return int(self._array.ndim)

    @property
    def dtype(self) -> dtypes.dtype:
        return dtypes.of(self._array.dtype)

    @property
    def device(self) -> device:
        return device_of(self._array)

    @property
    def layout(self) -> dtypes.layout:
        found: dtypes.layout = getattr(self._array, "layout", dtypes.strided)
        return found

    @property
    def itemsize(self) -> int:
        return int(self._array.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        return int(self._array.size * self._array.dtype.itemsize)

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    @property
    def is_cpu(self) -> bool:
        return self.device.type == "cpu"

    # --- its place in the graph -----------------------------------------------------------------
    @property
    def grad_fn(self) -> Any:
        """The node that made this tensor; None for a leaf."""
        if self._view is not None:
            edge_of_view(self)
        node = self._node  # an input of a transform is a leaf though it has one
        return None if self._requires_grad or isinstance(node, AccumulateGradBase) else node

    @property
    def is_leaf(self) -> bool:
        return self.grad_fn is None

    @property
    def output_nr(self) -> int:
        """Which output of its `grad_fn` this tensor is."""
        return int(self._output_nr)

    @property
    def requires_grad(self) -> bool:
        """Whether gradients are asked for with respect to this tensor."""
        return requires_grad(self)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise RuntimeError("requires_grad must be a bool")
        if not _is_leaf(self):
            text = "you can only change requires_grad flags of leaf variables."
            if not value:
                text += (
                    " If you want to use a computed variable in a subgraph that doesn't require "
                    "differentiation use var_no_grad = var.detach()."
                )
            raise RuntimeError(text)
        if value and self._array.dtype.kind not in "fcVW":
            raise RuntimeError(
                "only Tensors of floating point and complex dtype can require gradients"
            )
        if value and self._storage.inference and not inference_enabled():
            raise RuntimeError(
                "Setting requires_grad=True on inference tensor outside InferenceMode is not "
                "allowed."
            )
        self._requires_grad = value

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Ask for gradients with respect to this tensor, or stop asking."""
        if not isinstance(requires_grad, bool):
            raise TypeError(
                "requires_grad_(): argument 'requires_grad' (position 1) must be bool, "
                f"not {type_name(requires_grad)}"
            )
        if state.level != 0:
            refuse_inside("requires_grad_")
        if requires_grad and self._array.dtype.kind not in "fcVW":
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        if not requires_grad or _is_leaf(self):  # a computed result requires it already
            self.requires_grad = requires_grad
        return self

    @property
    def grad(self) -> Tensor | None:
        """The gradient that backward passes have added up; None before the first."""
        grad: Tensor | None = read_grad(self)
        return grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            _check_grad(self, value)
        self._accumulated_grad = value

    @grad.deleter
    def grad(self) -> None:
        self._accumulated_grad = None

    @property
    def _grad(self) -> Any:
        return self._accumulated_grad

    @property
    def _grad_fn(self) -> Any:
        return self.grad_fn

    @property
    def _backward_hooks(self) -> Any:
        return None if self._extra is None else self._extra.hooks

    @property
    def name(self) -> str | None:
        return None if self._extra is None else self._extra.name

    # --- its memory -----------------------------------------------------------------------------
    @property
    def data(self) -> Tensor:
        """The values alone: the same memory, outside the graph and with its own version."""
        if stack.batches != 0 and varies(self._array):
            raise RuntimeError("accessing `data` under vmap transform is not allowed")
        bare: Tensor = tensor_memory.alias_without_history(self)
        return bare

    @data.setter
    def data(self, value: Tensor) -> None:
        if stack.batches != 0 and (varies(self._array) or is_batched(value)):
            raise RuntimeError(
                "mutating directly with `.data` under vmap transform is not allowed."
            )
        tensor_memory.set_data(self, value)

    @property
    def _version(self) -> int:
        if self._storage.inference:
            raise RuntimeError("Inference tensors do not track version counter.")
        return int(self._storage.version)

    @property
    def _base(self) -> Any:
        view: View | None = self._view
        return None if view is None else view.base

    @property
    def _cdata(self) -> int:
        return id(self)

    @property
    def __cuda_array_interface__(self) -> Any:
        if not self.is_cuda:
            raise AttributeError(
                f"Can't get __cuda_array_interface__ on non-CUDA tensor type: {self.dtype} If CUDA "
                "data is required use tensor.cuda() to copy tensor to device memory."
            )
        return self._array.__cuda_array_interface__

    def _is_view(self) -> bool:
        return self._view is not None

    # --- Python ---------------------------------------------------------------------------------
    def __repr__(self, *, tensor_contents: Any = None) -> str:
        if type(self._array) is Batched:
            return _batch_str(self._array)
        from rushlight.printing import tensor_str  # loaded when a tensor is first printed

        name = "tensor" if type(self) is Tensor else type(self).__name__
        with overriding.DisableTorchFunctionSubclass():
            return tensor_str(self, tensor_contents, name=name, tangent=tangent_of(self))

    def __format__(self, format_spec: str) -> str:
        from rushlight.printing import tensor_format

        return tensor_format(self, format_spec)

    def __bool__(self) -> bool:
        raw = self._array
        if raw.size == 1:
            return bool(raw)
        how = "no values" if raw.size == 0 else "more than one value"
        raise RuntimeError(
            sentence(
                f"Boolean value of Tensor with {how} is ambiguous",
                f"the tensor has the shape {list(raw.shape)}",
                "Say which is meant: `if x.any():` or `if x.all():`; `if x is not None:` or "
                "`if x.numel():` to ask whether there is one. Masks are joined with `&`, `|` and "
                "`~`, not with `and`, `or` and `not`.",
            )
        )

    def __int__(self) -> int:
        return int(_fitting(self, "int64_t"))

    def __float__(self) -> float:
        return float(_fitting(self, "double"))

    __nonzero__ = __bool__
    __long__ = __int__

    def __complex__(self) -> complex:
        return complex(_number(self))

    def __index__(self) -> int:
        raw = self._array
        if raw.size != 1 or raw.dtype.kind not in "iub":
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(raw.item())

    def item(self) -> int | float | bool:
        """The one element as a Python number.

        >>> torch.tensor([2.5]).item()
        2.5
        """
        raw = self._array
        if raw.size != 1 and not varies(raw):
            raise RuntimeError(
                sentence(
                    f"a Tensor with {raw.size} elements cannot be converted to Scalar",
                    f"the tensor has the shape {list(raw.shape)}",
                    "Reduce it first (`x.mean().item()`), pick one (`x[0].item()`), or take them "
                    "all: `x.tolist()`.",
                )
            )
        value: int | float | bool = raw.item()  # or complex, which PyTorch's types leave out too
        return value

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers; of a 0-d tensor, the number.

        >>> torch.tensor([[1, 2], [3, 4]]).tolist()
        [[1, 2], [3, 4]]
        """
        return to_host(self._array).tolist()

    def __contains__(self, element: Any) -> bool:
        if isinstance(element, (TensorBase, bool, int, float, complex)):
            me: Any = self
            return bool((element == me).any())
        raise RuntimeError(
            "Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
            f"{type(element)}."
        )

    def __reversed__(self) -> Any:
        me: Any = self
        return me.flip(0) if self.ndim else self

    # --- NumPy ----------------------------------------------------------------------------------
    def _host_array(self) -> Any:
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raw = tensor_memory.numpy(self)
        if dtype is not None and raw.dtype != dtype:
            if copy is False:
                raise ValueError("Unable to avoid copy while creating an array as requested.")
            return raw.astype(dtype)
        return raw.copy() if copy else raw

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return finish(wrap(array))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """NumPy's functions on tensors: `ndarray + tensor` and `np.exp(tensor)` are tensors."""
        answer = implementation_of(ufunc.__name__)
        if method == "__call__" and not kwargs and answer is not None:
            return answer(*inputs)
        return _by_numpy(ufunc, method, inputs, kwargs)


def _batch_str(array: Batched) -> str:
    """A tensor of a batch as PyTorch prints it; one that all members share, as it is outside."""
    value = plain_inside(array.value)
    if not array.has_batch_dim:
        return repr(value)
    from rushlight.printing import wrapper_str

    return wrapper_str("BatchedTensor", value, lvl=array.level.nesting, bdim=0)


def _is_leaf(t: Tensor) -> bool:
    """Whether it has no node; stale views are taken as they were, and so raise no errors."""
    return t._requires_grad or t._node is None or isinstance(t._node, AccumulateGradBase)


def _number(t: Any) -> Any:
    """The one element of a tensor, for Python's conversions."""
    raw = t._array
    if raw.size != 1:
        raise ValueError(
            sentence(
                "only one element tensors can be converted to Python scalars",
                f"the tensor has the shape {list(raw.shape)}",
                "Reduce it first (`float(x.mean())`), or take all its numbers: `x.tolist()`.",
            )
        )
    if requires_grad(t):
        warnings.warn(
            "Converting a tensor with requires_grad=True to a scalar may lead to unexpected "
            "behavior.\nConsider using tensor.detach() first.",
            UserWarning,
            stacklevel=4,
        )
    return raw.item()


def _fitting(t: Any, kind: str) -> Any:
    value = _number(t)
    if not isinstance(value, complex):
        return value
    if value.imag != 0:
        raise RuntimeError(f"value cannot be converted to type {kind} without overflow")
    return value.real


def _check_grad(t: Tensor, value: Any) -> None:
    """PyTorch's conditions on what may be assigned to `.grad`."""
    if not isinstance(value, TensorBase):
        raise TypeError(
            f"assigned grad expected to be a Tensor or None but got grad of type {type_name(value)}"
        )
    if value is t:
        raise RuntimeError("can't assign Variable as its own grad")
    have, want = dtypes.of(value._array.dtype), t.grad_dtype if t.is_leaf else t.dtype
    if want is not None and have is not want:
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{c_name(have)}' to a tensor with "
            f"grad_dtype '{want.scalar_type}'. The gradient must match the tensor's grad_dtype "
            "(defaults to the tensor's dtype). You can set the tensor's grad_dtype attribute with "
            "a specific dtype, or None to allow any dtype. Set grad_dtype with caution. Diverging "
            "the dtypes of a tensor and its gradient may break downstream systems that assume "
            "they match."
        )
    here, there = t.device, device_of(value._array)
    if here != there:
        raise RuntimeError(
            f"attempting to assign a gradient with device type '{there.type}' to a tensor with "
            f"device type '{here.type}'. Please ensure that the gradient and the tensor are on the "
            "same device"
        )
    if value._array.shape != t._array.shape:
        raise RuntimeError(
            f"attempting to assign a gradient of size '{list(value._array.shape)}' to a tensor of "
            f"size '{list(t._array.shape)}'. Please ensure that the gradient and the tensor are "
            "the same size"
        )


def _by_numpy(ufunc: Any, method: str, inputs: Any, kwargs: dict[str, Any]) -> Any:
    """A ufunc computed by NumPy itself: forms that no op stands for, such as `out=` or `reduce`."""
    plain = [_plain(x) for x in inputs]
    outs = kwargs.pop("out", None)
    if outs is not None:
        kwargs["out"] = tuple(_plain(x) for x in outs)
    for key, value in kwargs.items():
        if isinstance(value, TensorBase):
            kwargs[key] = _plain(value)
    result = getattr(ufunc, method)(*plain, **kwargs)
    if outs is not None:
        for given in outs:
            if isinstance(given, TensorBase):
                given._storage.written()
        return outs[0] if len(outs) == 1 else outs
    if isinstance(result, tuple):
        return tuple(_wrapped(r) for r in result)
    return _wrapped(result)


def _plain(x: Any) -> Any:
    return tensor_memory.numpy(x) if isinstance(x, Tensor) else x


def _wrapped(x: Any) -> Any:
    if is_scalar(x):
        return finish(wrap(raw_from(x, None)))
    return finish(wrap(x)) if is_array(x) else x


def _warn_of_no_grad(t: Tensor) -> None:
    """Of a tensor that is no leaf: its gradient is not kept, unless someone asked for it."""
    if t._requires_grad or (t._extra is not None and t._extra.retains):
        return
    warnings.warn(
        "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its "
        ".grad attribute won't be populated during autograd.backward(). If you indeed want "
        "the .grad field to be populated for a non-leaf Tensor, use .retain_grad() on the "
        "non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you "
        "access the leaf Tensor instead.",
        UserWarning,
        stacklevel=2 if COMPILED else 4,
    )


def _read_by_core() -> None:
    """Let compiled functions read the attributes that programs read most."""
    for name, read in (
        ("shape", read_shape), ("ndim", read_ndim), ("dtype", read_dtype), ("grad", read_grad),
        ("requires_grad", read_requires_grad),
    ):  # fmt: skip
        old: property = vars(Tensor)[name]
        setattr(Tensor, name, property(read, old.fset, old.fdel, old.__doc__))


def _always(value: bool) -> property:
    return property(lambda self: value)


factory.cls = Tensor
_made.append(Tensor)


def _attach_methods() -> None:
    table: dict[str, Callable[..., Any]] = methods
    for name, method in table.items():
        if name not in vars(Tensor) or isinstance(vars(Tensor)[name], Lacking):
            setattr(Tensor, name, method)


def _is_meta(t: Any) -> bool:
    """Whether the tensor has a shape and a dtype, and no numbers."""
    return device_of(t._array).type == "meta"


def _has_layout(layout: dtypes.layout) -> property:
    return property(lambda self: getattr(self._array, "layout", None) is layout)


def _attach() -> None:
    for name, method in methods.items():
        setattr(Tensor, name, method)
    after_filling.append(_attach_methods)
    for name in (
        "is_quantized", "is_mps", "is_mkldnn", "is_nested",
        "is_xla", "is_xpu", "is_vulkan", "is_ipu", "is_maia", "is_mtia",
    ):  # fmt: skip
        setattr(Tensor, name, _always(False))
    setattr(Tensor, "is_sparse", _has_layout(dtypes.sparse_coo))  # noqa: B010  # likewise
    setattr(Tensor, "is_sparse_csr", _has_layout(dtypes.sparse_csr))  # noqa: B010  # likewise
    setattr(Tensor, "is_meta", property(_is_meta))  # noqa: B010  # the stubs call it a plain bool
    for maker in (tensor_memory._make_subclass,):
        setattr(Tensor, maker.__name__, staticmethod(maker))
    if COMPILED:
        _read_by_core()
    operators.warn_of_no_grad = _warn_of_no_grad
    operators.accepts = lambda x: (
        is_array(x) or is_scalar(x) or isinstance(x, complex) or type(x) is Batched
    )
    hide_in(Tensor, "torch.Tensor", fill_more)


_attach()
