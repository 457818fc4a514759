"""`custom_op`: a function as an operator, with kernels, derivative and more registered on it."""

from __future__ import annotations

import contextlib
import inspect
import logging
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from rushlight.arrays.device import device
from rushlight.core.transforms.forward_ad import owner_of
from rushlight.library.derivative import Formula
from rushlight.library.infer import Tag, infer_schema, tags_of
from rushlight.library.operator import EVERYWHERE, OpOverload, find, forget, written_of
from rushlight.library.schema import FunctionSchema, parse_schema
from rushlight.library.values import tensors_among

log = logging.getLogger(__name__)
OPDEFS: weakref.WeakValueDictionary[str, CustomOpDef] = weakref.WeakValueDictionary()
Devices = str | Sequence[str] | None


def custom_op(
    name: str, fn: Callable[..., Any] | None = None, /, *, mutates_args: str | Iterable[str],
    device_types: Devices = None, schema: str | None = None,
    tags: Tag | Sequence[Tag] | None = None,
) -> Any:  # fmt: skip
    """Make an operator of a function: autograd then sees one op, however it computes.

    Its schema is worked out from the annotations, or given. `mutates_args` names the arguments that
    it writes in place, which must be all of them. It may not return an argument, nor what shares
    memory with one.

    >>> import numpy as np
    >>> @torch.library.custom_op("doc::sine", mutates_args=())
    ... def sine(x: torch.Tensor) -> torch.Tensor:
    ...     return torch.from_numpy(np.sin(x.numpy(force=True)))
    >>> def save(ctx, inputs, output):
    ...     ctx.save_for_backward(*inputs)
    >>> def backward(ctx, g):
    ...     return g * ctx.saved_tensors[0].cos()
    >>> sine.register_autograd(backward, setup_context=save)
    >>> x = torch.zeros(2, requires_grad=True)
    >>> sine(x).sum().backward()
    >>> x.grad
    tensor([1., 1.])
    """

    def define(fn: Callable[..., Any]) -> CustomOpDef:
        given = tags_of(tags)
        text = schema
        if text is None:
            text = infer_schema(fn, mutates_args=mutates_args, tags=given)
        namespace, opname = name.split("::")
        made = CustomOpDef(namespace, opname, text, fn, given)
        if schema is not None:
            made._check_mutated(mutates_args, schema)
        made.register_kernel(device_types)(fn)
        return made

    return define if fn is None else define(fn)


class CustomOpDef:
    """An operator that `custom_op` made of a function. Call it as the function."""

    def __init__(
        self, namespace: str, name: str, schema: str, fn: Callable[..., Any], tags: tuple[Tag, ...]
    ) -> None:
        self._namespace = namespace
        self._name = name
        self._qualname = f"{namespace}::{name}"
        self._schema = schema
        self._tags = tags
        self._init_fn = fn
        self._backend_fns: dict[str | None, Callable[..., Any]] = {}
        self._disabled_kernel: set[str | None] = set()
        parsed = parse_schema(name + schema)
        if any(a.type.holds("Tensor") for a in parsed.keyword_only) and Tag.out not in tags:
            raise NotImplementedError(
                "custom_op with kwarg-only Tensor args. Please make your tensors not kwarg-only. "
                f"Got: {name + schema}"
            )
        forget(find(self._qualname))  # a new definition replaces the old one
        op = find(self._qualname)
        op._schema = FunctionSchema(
            f"{namespace}::{parsed.name}", parsed.overload_name, parsed.arguments, parsed.returns
        )
        op.check = self._check_result
        op.derivative = self._formula = Formula(op)
        self._opoverload: OpOverload = op
        OPDEFS[self._qualname] = self

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    # --- checks -------------------------------------------------------------------------------
    def _check_mutated(self, mutates_args: Any, schema: str) -> None:
        """The schema and `mutates_args` must name the same arguments."""
        expected = {a.name for a in self._opoverload.schema.arguments if a.is_write}
        if expected != set(mutates_args):
            raise ValueError(
                f"Attempted to create a custom op with `mutates_args={mutates_args}` and "
                f"`schema={schema}. The schema suggests that the op mutates {expected}"
                "which is different from what was provided to us in `mutates_args`. Please make "
                "these consistent."
            )

    def _check_result(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """Refuse results that share memory with an argument or with one another."""
        results = result if isinstance(result, tuple) else (result,)
        schema = self._opoverload.schema
        if Tag.inplace in self._tags or Tag.out in self._tags:
            self._check_returned(written_of(schema, args, kwargs), results)
        elif not schema.is_view:
            seen = tensors_among((*args, *kwargs.values()))
            for t in tensors_among(results):
                if any(share_memory(t, x) for x in seen):
                    raise RuntimeError(
                        f"{self._said()}: The output of this custom operator (1) must not also be "
                        "an input to this custom operator and (2) may not alias any inputs to this "
                        "custom operator or other returns. The most common way to trigger this "
                        "error is if we have y = custom_op(x) and y and x are the same Tensor. "
                        "Please instead return a clone of the offending output tensor(s) (e.g. "
                        "return x.clone()) or refactor the custom operator to not return y."
                    )
                seen.append(t)

    def _check_returned(self, expected: list[Any], results: tuple[Any, ...]) -> None:
        """An operator in place, or with `out`, returns what it writes."""
        same = len(expected) == len(results) and all(map(lambda a, b: a is b, expected, results))
        if same:
            return
        if Tag.inplace in self._tags:
            raise RuntimeError(
                f"{self._said()}: An operator tagged with torch.Tag.inplace must return its first "
                "argument."
            )
        raise RuntimeError(
            f"{self._said()}: An operator tagged with torch.Tag.out must return its mutable "
            "keyword-only arguments."
        )

    def _said(self) -> str:
        return f"{self._name} (with implementation in {inspect.getmodule(self._init_fn)})"

    # --- registering --------------------------------------------------------------------------
    def register_kernel(
        self, device_types: Devices, fn: Callable[..., Any] | None = None, /
    ) -> Callable[..., Any]:
        """Give the operator another implementation on some kinds of device.

        >>> @torch.library.custom_op("doc::one", mutates_args=())
        ... def one(x: torch.Tensor) -> torch.Tensor:
        ...     return x + 1
        >>> @one.register_kernel("cpu")
        ... def _(x):
        ...     return x + 100
        >>> one(torch.zeros(2))
        tensor([100., 100.])
        """
        op = self._opoverload
        if device_types is not None and not any(
            a.type.holds("Tensor") for a in op.schema.arguments
        ):
            op.select = self._device_argument()

        def register(fn: Callable[..., Any]) -> Callable[..., Any]:
            one = device_types is None or isinstance(device_types, str)
            for each in [device_types] if one else list(device_types or ()):
                self._set_kernel(each, fn)  # type: ignore[arg-type]  # one: a str, or None
            return fn

        return register if fn is None else register(fn)

    def _set_kernel(self, device_type: str | None, fn: Callable[..., Any]) -> None:
        key = EVERYWHERE if device_type is None else device(device_type).type.upper()

        def kernel(*args: Any, **kwargs: Any) -> Any:
            chosen = self._init_fn if device_type in self._disabled_kernel else fn
            return chosen(*args, **kwargs)

        self._backend_fns[device_type] = kernel
        self._opoverload.kernels[key] = kernel

    def _device_argument(self) -> int:
        for at, a in enumerate(self._opoverload.schema.positional):
            if a.name == "device" and a.type.name == "Device":
                return at
        raise ValueError(
            "Functions without tensor inputs are required to have a `device: torch.device` argument"
        )

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """For a block, leave a kernel out (or not): the first function given computes instead."""
        before = device_type in self._disabled_kernel
        action = "enable" if enabled else "disable"
        if device_type not in self._backend_fns:
            log.warning(
                "Attempted to %s kernel for %s but no kernel was registered for this device type.",
                action,
                device_type,
            )
        if enabled is not before:
            log.warning(
                "Attempted to %s kernel for %s but it was already %sd.", action, device_type, action
            )
        (self._disabled_kernel.discard if enabled else self._disabled_kernel.add)(device_type)
        try:
            yield
        finally:
            (self._disabled_kernel.add if before else self._disabled_kernel.discard)(device_type)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Say what the results look like, without computing them: shape, dtype and device.

        >>> @torch.library.custom_op("doc::square", mutates_args=())
        ... def square(x: torch.Tensor) -> torch.Tensor:
        ...     return x * x
        >>> @square.register_fake
        ... def _(x):
        ...     return torch.empty_like(x)
        >>> torch.library.opcheck(square, (torch.ones(2),), test_utils="test_faketensor")
        {'test_faketensor': 'SUCCESS'}
        """
        self._opoverload.fake = fn
        return fn

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Give the operator a derivative.

        `backward(ctx, *grads)` returns one gradient an argument. What it needs,
        `setup_context(ctx, inputs, output)` saves on `ctx`; an operator with keyword-only arguments
        has them passed as `keyword_only_inputs`. See `custom_op` for an example.
        """
        op = self._opoverload
        if Tag.out in self._tags:
            raise RuntimeError(
                "Cannot register autograd formula for operator tagged with torch.Tag.out: "
                f"{self}. Out variants do not support autograd."
            )
        if op.schema.is_mutable or (
            not op.schema.is_view and any(r.alias_info is not None for r in op.schema.returns)
        ):
            raise RuntimeError(
                f"Cannot register autograd formula for non-functional operator {self} with schema "
                f"{op.schema}. Please create a functional operator and register an autograd "
                "formula for that."
            )
        self._formula.backward = backward
        self._formula.setup_context = setup_context

    def register_vmap(self, func: Callable[..., Any] | None = None) -> Any:
        """Say what the operator gives for a batch: `func(info, in_dims, *args)` returns
        `(output, out_dims)`.

        >>> @torch.library.custom_op("doc::half", mutates_args=())
        ... def half(x: torch.Tensor) -> torch.Tensor:
        ...     return x / 2
        >>> @half.register_vmap
        ... def _(info, in_dims, x):
        ...     return half(x), in_dims[0]
        """

        def register(func: Callable[..., Any]) -> None:
            self._opoverload.batched = func

        return register if func is None else register(func)


def share_memory(a: Any, b: Any) -> bool:
    """Whether two tensors look into one piece of memory."""
    return a._storage is b._storage or owner_of(a._array) is owner_of(b._array)
