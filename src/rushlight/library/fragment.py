"""`Library`: operators defined by a schema, with their kernels registered one by one."""

from __future__ import annotations

import contextlib
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rushlight.arrays.device import device
from rushlight.library.infer import Tag, tags_of
from rushlight.library.operator import EVERYWHERE, KEYS, RECORDED, OpOverload, find, forget
from rushlight.library.schema import FunctionSchema, parse_schema

_owners: dict[str, str] = {}  # which line opened each namespace by "DEF"
kept_alive: list[Library] = []  # libraries of registrations that belong to nobody

# PyTorch's other keys: known, so that a program that names one is told what is the matter.
_ELSEWHERE = (
    "AutogradCPU", "AutogradCUDA", "AutogradOther", "BackendSelect", "Functionalize",
    "FuncTorchBatched", "FuncTorchVmapMode", "ADInplaceOrView", "Python", "Tracer", "XLA", "XPU",
    "MPS", "HPU", "IPU", "MTIA", "MkldnnCPU", "SparseCPU", "SparseCUDA", "QuantizedCPU",
    "QuantizedCUDA", "NestedTensorCPU", "AutocastCPU", "AutocastCUDA", "PrivateUse1",
    "CompositeImplicitAutogradNestedTensor", "CompositeExplicitAutogradNonFunctional",
)  # fmt: skip


def check_key(key: str) -> str:
    """A dispatch key that kernels can be registered to."""
    if key in KEYS:
        return key
    if key in _ELSEWHERE:
        raise NotImplementedError(
            f"rushlight has no dispatch key {key}: kernels are registered to {', '.join(KEYS)}"
        )
    raise RuntimeError(f"could not parse dispatch key: {key}")


def key_for(device_type: str) -> str:
    """The key of a device type, or of all of them: 'default'. A key stands for itself."""
    if device_type in KEYS or device_type in _ELSEWHERE:
        return check_key(device_type)
    return EVERYWHERE if device_type == "default" else device(device_type).type.upper()


class Library:
    """Operators of a namespace, as long as this object lives.

    `kind` is "DEF" (the namespace is yours alone), "FRAGMENT" (it is shared) or "IMPL" (only
    kernels are registered); `dispatch_key` is the key of all its kernels, if given.

    >>> lib = torch.library.Library("docs", "DEF")
    >>> lib.define("thrice(Tensor x) -> Tensor")
    'thrice'
    >>> lib.impl("thrice", lambda x: x * 3, "CompositeImplicitAutograd")
    >>> torch.ops.docs.thrice(torch.ones(2, requires_grad=True))
    tensor([3., 3.], grad_fn=<MulBackward0>)
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns == "prim" and kind != "IMPL":
            raise ValueError(
                f"{ns} is a reserved namespace. Please try creating a library with another name."
            )
        frame = sys._getframe(1)
        self._where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        if kind == "DEF":
            claim(ns, self._where)
        self.ns = ns
        self.kind = kind
        self.dispatch_key = dispatch_key and check_key(dispatch_key)
        self._defined: list[OpOverload] = []
        self._implemented: list[tuple[OpOverload, str]] = []
        self._end = weakref.finalize(
            self, take_back, ns if kind == "DEF" else "", self._defined, self._implemented
        )

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(
        self, schema: str, alias_analysis: str = "", *, tags: Tag | Iterable[Tag] | None = ()
    ) -> str:
        """Define an operator: its schema begins with its name. Returns the name."""
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        self._check_alive()
        parsed = parse_schema(schema)
        if self.kind == "IMPL":
            raise RuntimeError(
                f'def("{parsed.name}"): Cannot define an operator inside of a TORCH_LIBRARY_IMPL '
                "block.  All def()s should be placed in the (unique) TORCH_LIBRARY block for their "
                f"namespace.  (Error occurred while processing TORCH_LIBRARY_IMPL block at "
                f"{self._where})"
            )
        tags_of(tags)
        name = parsed.name.split("::")[-1]
        whole = FunctionSchema(
            f"{self.ns}::{name}", parsed.overload_name, parsed.arguments, parsed.returns
        )
        op = find(f"{self.ns}::{name}.{parsed.overload_name or 'default'}")
        if op._schema is not None:
            raise RuntimeError(
                f"Tried to register an operator ({whole}) with the same name and overload name "
                "multiple times. Each overload's schema should only be registered with a single "
                f"call to def(). Duplicate registration: registered at {self._where}."
            )
        op._schema = whole
        self._defined.append(op)
        return name

    def impl(
        self, op_name: str | OpOverload, fn: Callable[..., Any], dispatch_key: str = "", *,
        with_keyset: bool = False, allow_override: bool = True,
    ) -> None:  # fmt: skip
        """Register a kernel for a dispatch key: "CPU", "CUDA", "CompositeExplicitAutograd" (all
        devices), "CompositeImplicitAutograd" (all devices, made of differentiable parts: the
        default), "Autograd" (the derivative) or "Meta" (what the result looks like)."""
        if not callable(fn):
            raise TypeError(
                f"Input function is required to be a callable but found type {type(fn)}"
            )
        if with_keyset:
            raise NotImplementedError("with_keyset: rushlight has no sets of dispatch keys")
        self._check_alive()
        op = self._operator(op_name)
        key = self._key(op, dispatch_key)
        if not allow_override and key in op.kernels:
            raise RuntimeError(
                "This is not allowed since there's already a kernel registered from python "
                f"overriding {op._opname}'s behavior for {key} dispatch key and {self.ns} "
                "namespace."
            )
        if key == "Meta":
            op.fake = fn
        op.kernels[key] = fn
        self._implemented.append((op, key))

    def _operator(self, op_name: str | OpOverload) -> OpOverload:
        if isinstance(op_name, OpOverload):
            return op_name
        if not isinstance(op_name, str):
            raise RuntimeError(
                "impl should be passed either a name or an OpOverload object as the first "
                f"argument, got {type(op_name)}"
            )
        return find(f"{self.ns}::{op_name.split('::')[-1]}")

    def _key(self, op: OpOverload, dispatch_key: str) -> str:
        if dispatch_key and self.dispatch_key and dispatch_key != self.dispatch_key:
            raise RuntimeError(
                f'impl("{op._opname}", ...): Explicitly provided dispatch key ({dispatch_key}) is '
                "inconsistent with the dispatch key of the enclosing TORCH_LIBRARY_IMPL block "
                f"({self.dispatch_key}).  Please declare a separate TORCH_LIBRARY_IMPL block for "
                "this dispatch key and move your impl() there.  (Error occurred while processing "
                f"TORCH_LIBRARY_IMPL block at {self._where})"
            )
        return check_key(dispatch_key or self.dispatch_key or RECORDED)

    def _check_alive(self) -> None:
        if not self._end.alive:
            raise AssertionError("Library object has been destroyed")

    def _destroy(self) -> None:
        """Take all its registrations back."""
        self._end()


def claim(ns: str, where: str) -> None:
    """Make a namespace the property of one library."""
    owner = _owners.get(ns)
    if owner is not None:
        raise RuntimeError(
            f"Only a single TORCH_LIBRARY can be used to register the namespace {ns}; please put "
            "all of your definitions in a single TORCH_LIBRARY block.  If you were trying to "
            "specify implementations, consider using TORCH_LIBRARY_IMPL (which can be duplicated). "
            " If you really intended to define operators for a single namespace in a distributed "
            "way, you can use TORCH_LIBRARY_FRAGMENT to explicitly indicate this.  Previous "
            f"registration of TORCH_LIBRARY was registered at {owner}; latest registration was "
            f"registered at {where}"
        )
    _owners[ns] = where


def take_back(
    owned: str, defined: list[OpOverload], implemented: list[tuple[OpOverload, str]]
) -> None:
    """What is left to do when a library goes."""
    for op, key in implemented:
        op.kernels.pop(key, None)
    for op in defined:
        forget(op)
    _owners.pop(owned, None)


@contextlib.contextmanager
def scoped_library(ns: str, kind: str, dispatch_key: str = "") -> Iterator[Library]:
    """A library for a block."""
    lib = Library(ns, kind, dispatch_key)
    try:
        yield lib
    finally:
        lib._destroy()
