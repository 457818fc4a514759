"""`torch.library`'s functions that name an operator: `define`, `impl` and the `register_` ones."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rushlight import ops
from rushlight.library.custom import OPDEFS, CustomOpDef
from rushlight.library.derivative import Formula
from rushlight.library.fragment import Library, kept_alive, key_for
from rushlight.library.infer import Tag
from rushlight.library.operator import OpOverload, find, lookup, split_name

Operator = str | OpOverload | CustomOpDef
_NAMELESS = re.compile(r"\(.*\) -> .*")


def library_for(qualname: str, lib: Library | None) -> Library:
    """The library given, or one of the name's namespace that stays."""
    if lib is not None:
        return lib
    made = Library(split_name(qualname)[0], "FRAGMENT")
    kept_alive.append(made)
    return made


def resolve(op: Operator, function: str) -> str | CustomOpDef:
    """A custom op, if `op` is one or names one; else the name."""
    if isinstance(op, CustomOpDef):
        return op
    if not isinstance(op, (str, OpOverload)):
        raise ValueError(f"{function}({op}): got unexpected type for op: {type(op)}")
    name = op._name if isinstance(op, OpOverload) else op
    return OPDEFS.get(name, name)


def define(qualname: Any, schema: Any, *args: Any, **kwargs: Any) -> Any:
    """Define an operator by its name and schema. The old form, `define(lib, schema)`, decorates the
    implementation.

    >>> torch.library.define("docs::inc", "(Tensor x) -> Tensor")
    >>> @torch.library.impl("docs::inc", "default")
    ... def inc(x):
    ...     return x + 1
    >>> torch.ops.docs.inc(torch.zeros(2))
    tensor([1., 1.])
    """
    if isinstance(qualname, Library):
        return _define_in(qualname, schema, *args, **kwargs)
    _define(qualname, schema, *args, **kwargs)


def _define(
    qualname: str, schema: str, *, lib: Library | None = None, tags: Tag | Iterable[Tag] | None = ()
) -> None:
    if not isinstance(qualname, str):
        raise ValueError(
            "define(qualname, schema): expected qualname to be instance of str, got "
            f"{type(qualname)}"
        )
    split_name(qualname)
    if not _NAMELESS.fullmatch(schema):
        raise ValueError(
            "define(qualname, schema, ...): expected schema to look like e.g. "
            f'"(Tensor x) -> Tensor" but got "{schema}"'
        )
    library_for(qualname, lib).define(qualname.split("::")[1] + schema, tags=tags)


def _define_in(lib: Library, schema: str, alias_analysis: str = "") -> Callable[..., Any]:
    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        lib.impl(lib.define(schema, alias_analysis), fn)
        return fn

    return register


def impl(qualname: Any, *args: Any, **kwargs: Any) -> Any:
    """Register a kernel for device types: `impl("mylib::f", "cpu", fn)`, or as a decorator.

    "default" stands for all devices. The old form is `impl(lib, name, dispatch_key)`. See `define`
    for an example.
    """
    return (_impl_in if isinstance(qualname, Library) else _impl)(qualname, *args, **kwargs)


def _impl(
    qualname: str, types: str | Sequence[str], func: Callable[..., Any] | None = None, *,
    lib: Library | None = None,
) -> Callable[[Callable[..., Any]], None] | None:  # fmt: skip
    keys = {key_for(each) for each in ([types] if isinstance(types, str) else types)}

    def register(func: Callable[..., Any]) -> None:
        home = library_for(qualname, lib)
        for key in keys:
            home.impl(qualname, func, key)

    if func is None:
        return register
    register(func)
    return None


def _impl_in(lib: Library, name: str, dispatch_key: str = "") -> Callable[..., Any]:
    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        lib.impl(name, fn, dispatch_key)
        return fn

    return register


def register_kernel(
    op: Operator, device_types: str | Sequence[str], func: Callable[..., Any] | None = None, /, *,
    lib: Library | None = None,
) -> Any:  # fmt: skip
    """Give an operator an implementation on some kinds of device; see `CustomOpDef`."""
    found = resolve(op, "register_kernel")
    if isinstance(found, CustomOpDef):
        return found.register_kernel(device_types, func)
    return _impl(found, device_types or "default", func, lib=lib)


def register_fake(
    op: Operator, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None,
    allow_override: bool = True,
) -> Any:  # fmt: skip
    """Say what an operator's results look like, without computing them; see `CustomOpDef`."""
    found = resolve(op, "register_fake")

    def register(func: Callable[..., Any]) -> Callable[..., Any]:
        if isinstance(found, CustomOpDef):
            return found.register_fake(func)
        target = find(found)
        if target._schema is None:
            if ops.refused:  # it would have come from a compiled library
                return func
            raise RuntimeError(f"operator {found} does not exist")
        if not allow_override and target.fake is not None:
            raise RuntimeError(f"register_fake(...): the operator {found} already has a fake impl")
        target.fake = func
        return func

    return register if func is None else register(func)


def impl_abstract(qualname: Operator, func: Any = None, *, lib: Library | None = None) -> Any:
    """The old name of `register_fake`."""
    warnings.warn(
        "`torch.library.impl_abstract` was renamed to `torch.library.register_fake`. Please use "
        "that instead; we will remove `torch.library.impl_abstract` in a future version of "
        "PyTorch.",
        FutureWarning,
        stacklevel=2,
    )
    return register_fake(qualname, func, lib=lib)


def register_autograd(
    op: Operator, backward: Callable[..., Any], /, *,
    setup_context: Callable[..., Any] | None = None, lib: Library | None = None,
) -> None:  # fmt: skip
    """Give an operator a derivative; see `CustomOpDef.register_autograd`.

    >>> torch.library.define("docs::dbl", "(Tensor x) -> Tensor")
    >>> torch.library.impl("docs::dbl", "default", lambda x: x * 2)
    >>> torch.library.register_autograd("docs::dbl", lambda ctx, g: g * 2)
    >>> x = torch.ones(2, requires_grad=True)
    >>> torch.ops.docs.dbl(x).sum().backward()
    >>> x.grad
    tensor([2., 2.])
    """
    found = resolve(op, "register_autograd")
    if isinstance(found, CustomOpDef):
        found.register_autograd(backward, setup_context=setup_context)
        return
    target = lookup(found)
    schema = target.schema
    if schema.is_mutable:
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {found} with schema "
            f"{schema}. Please create a functional operator and register an autograd formula for "
            "that."
        )
    refuse_keyword_tensors(target, "register_autograd")
    formula = Formula(target)
    formula.backward, formula.setup_context = backward, setup_context
    target.derivative = formula


def refuse_keyword_tensors(op: OpOverload, function: str) -> None:
    if any(a.type.holds("Tensor") for a in op.schema.keyword_only):
        raise NotImplementedError(
            f"{function} with kwarg-only Tensor args. In the original definition of the op, please "
            f"make your tensors not kwarg-only. Got: {op.schema}"
        )


def register_vmap(
    op: Operator, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None
) -> Any:
    """Say what an operator gives for a batch; see `CustomOpDef.register_vmap`."""
    found = resolve(op, "register_vmap")
    if isinstance(found, CustomOpDef):
        return found.register_vmap(func)
    target = lookup(found)
    refuse_keyword_tensors(target, "register_vmap")

    def register(func: Callable[..., Any]) -> None:
        target.batched = func

    return register if func is None else register(func)
