"""Operators: what `torch.ops.mylib.myop` is, and which of its kernels a call runs.

Note [Which kernel]
    1. "Autograd", if it was registered, and there is a tensor: it does all the rest itself. A call
       of its own operator from inside it goes on with 2.
    2. The formula of `register_autograd`, around the kernel of the device.
    3. "CompositeImplicitAutograd", if the device has no kernel: its parts are recorded as they run.
    4. The kernel of the device, or "CompositeExplicitAutograd", as they are: see `unregistered`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import partial
from typing import Any

from rushlight import ops
from rushlight.autograd.batched_function import batch_of
from rushlight.core.grad_mode import grad_enabled, inference_enabled
from rushlight.core.graph import DIFFERENTIABLE, TensorBase, next_number, node_base
from rushlight.core.node_api import GraphNode
from rushlight.core.observer import observer
from rushlight.core.transforms.forward_ad import disable_forward_ad
from rushlight.core.transforms.stack import stack
from rushlight.core.transforms.tangents import tangent_of
from rushlight.core.views.history import edge_of_view, set_history
from rushlight.library.schema import FunctionSchema
from rushlight.library.values import bind, convert_result, tensors_among, trim_defaults
from rushlight.ops.compat import overloads

KEYS = (
    "CPU", "CUDA", "Meta", "CompositeExplicitAutograd", "CompositeImplicitAutograd", "Autograd",
)  # fmt: skip
EVERYWHERE = "CompositeExplicitAutograd"
RECORDED = "CompositeImplicitAutograd"

# The operators whose "Autograd" kernel is running here.


class Inside:
    """The operators whose Autograd kernels are running: an interrupt may leave it in the context,
    but with the operators that were there before."""

    def __init__(self, ops: tuple[Any, ...]) -> None:
        self.ops = ops


_inside: ContextVar[Inside | None] = ContextVar("rushlight_autograd_kernels", default=None)


class OpOverload(overloads.OpOverload):
    """One operator: a schema and its kernels. Call it as a function.

    >>> @torch.library.custom_op("doc::twice", mutates_args=())
    ... def twice(x: torch.Tensor) -> torch.Tensor:
    ...     return x * 2
    >>> torch.ops.doc.twice.default
    <OpOverload(op='doc.twice', overload='default')>
    >>> torch.ops.doc.twice.default(torch.ones(2))
    tensor([2., 2.])
    """

    def __init__(self, packet: OpOverloadPacket, overload: str) -> None:
        super().__init__(packet, overload or "default")
        namespace, name = packet._namespace, packet._opname
        self.namespace = namespace
        self._opname = name
        self._name = f"{namespace}::{name}" + (f".{overload}" if overload else "")
        self._schema: Any = None  # until it is defined
        self.kernels: dict[str, Callable[..., Any]] = {}
        self.fake: Callable[..., Any] | None = None
        self.derivative: Any = None  # what `register_autograd` made: derivative(op, args, kwargs)
        self.batched: Callable[..., Any] | None = None  # what `register_vmap` was given
        self.check: Any = None  # of a `custom_op`: check(args, kwargs, result), after each kernel
        self.select: int | None = None  # the argument that says the device, where no tensor does

    def name(self) -> str:
        """The name in full: 'mylib::myop', with the overload if it is not the default."""
        return self._name

    def __str__(self) -> str:
        return f"{self.namespace}.{self._opname}.{self._overloadname}"

    def __repr__(self) -> str:
        op = f"{self.namespace}.{self._opname}"
        return f"<OpOverload(op='{op}', overload='{self._overloadname}')>"

    @property
    def schema(self) -> FunctionSchema:
        """The signature."""
        found: FunctionSchema = self._schema
        return found

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run the operator; see Note [Which kernel]."""
        found, named = bind(self.schema, args, kwargs)
        return self.run(found, named)

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`__call__` with all arguments, each converted; a profiler shows it as one event."""
        if observer.timed is None:
            return self.chosen(args, kwargs)
        from rushlight.autograd.profiler_record import around_operator

        name = f"{self.namespace}::{self._opname}"
        return around_operator(name, (*args, *kwargs.values()), partial(self.chosen, args, kwargs))

    def chosen(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the kernel gives that Note [Which kernel] says."""
        tensors = tensors_among(args)
        if stack.batches != 0:
            batch = batch_of(tuple(tensors))
            alone = self.batched is None and self.key_of(tensors, args) == RECORDED
            if batch is not None and not alone:
                return self.run_batched(args, kwargs, batch)
        user = self.kernels.get("Autograd")
        around = _inside.get()
        inside = () if around is None else around.ops
        if user is not None and tensors and self not in inside and not inference_enabled():
            here = Inside(inside)
            token = _inside.set(here)
            try:
                here.ops = (*inside, self)
                few, named = trim_defaults(self.schema, args, kwargs)
                return convert_result(self.schema, user(*few, **named))
            finally:
                here.ops = inside  # an assignment: no interrupt can come before it
                _inside.reset(token)
        if self.derivative is not None:
            return self.derivative(self, args, kwargs)
        if user is not None:
            return refuse_tangents(self, args, kwargs, self.unrecorded(args, kwargs))
        key = self.key_of(tensors, args)
        if key == RECORDED:
            return self.computed(args, kwargs, key)
        result = refuse_tangents(self, args, kwargs, self.computed(args, kwargs, key))
        return unregistered(self, result, tensors)

    def run_batched(self, args: tuple[Any, ...], kwargs: dict[str, Any], batch: Any) -> Any:
        """`run` inside `vmap`: computed one level down, recorded there and here."""
        from rushlight.library.batching import run_batch

        compute = partial(run_batch, self, args, kwargs, batch)
        if self.derivative is not None:
            return self.derivative(self, args, kwargs, compute)
        return refuse_tangents(self, args, kwargs, compute())

    def unrecorded(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the kernel of the device, leaving no history."""
        with disable_forward_ad(False):
            return self.computed(args, kwargs, self.key_of(tensors_among(args), args))

    def computed(self, args: tuple[Any, ...], kwargs: dict[str, Any], key: str) -> Any:
        """Run a kernel. The writes of a custom op are counted, whatever it writes with."""
        schema = self.schema
        if self.check is not None and schema.is_mutable:
            for t in tensors_among(written_of(schema, args, kwargs)):
                t._storage.written()
        few, named = trim_defaults(schema, args, kwargs)
        result = convert_result(schema, self.kernels[key](*few, **named))
        if self.check is not None:
            self.check(args, kwargs, result)
        return result

    def key_of(self, tensors: list[Any], args: tuple[Any, ...]) -> str:
        """The key of the kernel to run: that of the device, or one for all devices."""
        where = tensors[0].device.type if tensors else None
        if where is None and self.select is not None:
            where = args[self.select].type
            if where.upper() not in self.kernels:
                raise RuntimeError(
                    f"{self._opname} does not have a kernel registered for {where}. Please use "
                    "register_kernel to do so."
                )
        key = (where or "cpu").upper()
        for each in (key, EVERYWHERE, RECORDED):
            if each in self.kernels:
                return each
        raise NotImplementedError(
            f"Could not run '{self._name}' with arguments from the '{key}' backend. This could be "
            "because the operator doesn't exist for this backend, or was omitted during the "
            f"selective/custom build process (if using custom build). '{self._name}' is only "
            f"available for these backends: [{', '.join(self.kernels)}]."
        )


def written_of(schema: FunctionSchema, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The arguments that the schema says are written."""
    found = [x for a, x in zip(schema.positional, args, strict=True) if a.is_write]
    return found + [kwargs[a.name] for a in schema.keyword_only if a.is_write]


def refuse_tangents(
    op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, first: str = ""
) -> Any:
    """`result`, unless forward mode would take it for a constant that it is not: an argument has a
    tangent, and what the kernel made of it has none. `first` are the error's first words."""
    if stack.tangents == 0 or not any(tangent_of(t) is not None for t in tensors_among(args)):
        return result
    made = tensors_among(result if isinstance(result, tuple) else (result,))
    if any(tangent_of(t) is not None for t in made):
        return result  # the kernel is made of tensors
    if op.derivative is not None:  # nothing inside is seen: a tangent there is that from before
        made += tensors_among(written_of(op.schema, args, kwargs))
    if any(t._array.dtype.kind in DIFFERENTIABLE for t in made):
        raise NotImplementedError(
            f"{first}{op.name()} has no forward-mode derivative: operators know "
            "`register_autograd` only. "
            "Use jacrev, or wrap the operator in an autograd.Function with a jvp."
        )
    return result


class OpOverloadPacket(overloads.OpOverloadPacket):
    """All operators of one name: `torch.ops.mylib.myop`. A call runs the one that fits."""

    def __init__(self, namespace: str, name: str) -> None:
        super().__init__(name)
        self._namespace = namespace
        self._opname = name
        self._qualified_op_name = f"{namespace}::{name}"
        self._overloads: dict[str, OpOverload] = {}

    def overloads(self) -> list[str]:
        """The names of the overloads."""
        return [op._overloadname for op in self.defined()]

    def defined(self) -> list[OpOverload]:
        """The overloads that have a schema."""
        return [op for op in self._overloads.values() if op._schema is not None]

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (namespace_of(self._namespace), self._opname)

    def __getattr__(self, name: str) -> Any:
        found = self.__dict__.get("_overloads", {}).get("" if name == "default" else name)
        if found is None or found._schema is None:
            if name.startswith("_"):
                raise AttributeError(f"'OpOverloadPacket' object has no attribute '{name}'")
            raise AttributeError(
                f"The underlying op of '{self._namespace}.{self._opname}' has no overload name "
                f"'{name}'"
            )
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.overloads())

    def __str__(self) -> str:
        return f"{self._namespace}.{self._opname}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        candidates = self.defined()
        if len(candidates) == 1:
            return candidates[0](*args, **kwargs)
        said: list[str] = []
        for op in candidates:
            try:
                found, named = bind(op.schema, args, kwargs)
            except RuntimeError as error:
                said.append(str(error))
            else:
                return op.run(found, named)
        raise RuntimeError(
            "Overloaded torch operator invoked from Python failed to match any schema:\n"
            + "\n\n".join(said)
        )


class Namespace(overloads.Named):
    """The operators of one library: `torch.ops.mylib`."""

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name
        self.__dict__["_packets"] = {}

    def __getattr__(self, name: str) -> Any:
        inside = self.__dict__  # asked of the dict: one that is still empty would ask here again
        found = inside.get("_packets", {}).get(name)
        if found is None or not found.defined():
            title = inside.get("_name", "")
            raise AttributeError(f"'_OpNamespace' '{title}' object has no attribute '{name}'")
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return namespace_of, (self._name,)

    def __dir__(self) -> list[str]:
        return sorted(self._packets)

    def __repr__(self) -> str:
        return f"<module 'torch.ops.{self._name}' from 'torch.ops'>"


# --- finding them ---------------------------------------------------------------------------------
def namespace_of(name: str) -> Namespace:
    """The namespace of that name, made if need be: it then is in `torch.ops`."""
    found: Namespace | None = ops.namespaces.get(name)
    if found is None:
        found = ops.namespaces[name] = Namespace(name)
    return found


def split_name(qualname: str) -> tuple[str, str, str]:
    """Namespace, name and overload of 'mylib::myop.overload'."""
    parts = qualname.split("::")
    if len(parts) != 2:
        raise ValueError(
            'Expected `qualname` to be of the form "namespace::name", but got '
            f"{qualname}. The qualname passed to the torch.library APIs must consist of a "
            "namespace and a name, e.g. aten::sin"
        )
    name, _, overload = parts[1].partition(".")
    return parts[0], name, "" if overload == "default" else overload


def find(qualname: str) -> OpOverload:
    """The operator of that name, defined or not yet."""
    namespace, name, overload = split_name(qualname)
    packets = namespace_of(namespace)._packets
    packet = packets.setdefault(name, OpOverloadPacket(namespace, name))
    if overload not in packet._overloads:
        packet._overloads[overload] = OpOverload(packet, overload)
    found: OpOverload = packet._overloads[overload]
    return found


def lookup(qualname: str) -> OpOverload:
    """The operator of that name, which must have been defined."""
    namespace, name, overload = split_name(qualname)
    packet = getattr(namespace_of(namespace), name)
    found: OpOverload = getattr(packet, overload or "default")
    return found


def forget(op: OpOverload) -> None:
    """Take a definition back."""
    packets = namespace_of(op.namespace)._packets
    packet = packets.get(op._opname)
    overload = "" if op._overloadname == "default" else op._overloadname
    if packet is not None and packet._overloads.get(overload) is op:
        del packet._overloads[overload]
        if not packet._overloads:
            del packets[op._opname]


# --- kernels without a formula --------------------------------------------------------------------
class _WarnNotImplemented(GraphNode):
    """The history of an operator's result whose derivative nobody gave: none, with a warning."""

    op_name = ""

    def name(self) -> str:
        return "torch::autograd::WarnNotImplemented"

    def _run(self, g: Any, tensors: bool) -> Any:
        warn_unregistered(self.op_name)
        return [None] * len(self._next_edges)


_Visible: Any = type("WarnNotImplemented", (_WarnNotImplemented,), dict(node_base.members))


def warn_unregistered(name: str) -> None:
    warnings.warn(
        f"{name}: an autograd kernel was not registered to the Autograd key(s) but we are trying "
        "to backprop through it. This may lead to silently incorrect behavior. This behavior is "
        "deprecated and will be removed in a future version of PyTorch. If your operator is "
        "differentiable, please ensure you have registered an autograd kernel to the correct "
        "Autograd key (e.g. DispatchKey::Autograd, DispatchKey::CompositeImplicitAutograd). If "
        "your operator is not differentiable, or to squash this warning and use the previous "
        "behavior, please register torch::CppFunction::makeFallthrough() to "
        "DispatchKey::Autograd.",
        UserWarning,
        stacklevel=2,
    )


def unregistered(op: OpOverload, result: Any, tensors: list[Any]) -> Any:
    """The result of a kernel without a formula: what recorded itself warns when it is followed
    back; what did not has no gradient, and warns too."""
    if not grad_enabled() or not any(t.requires_grad for t in tensors):
        return result
    name = op.name()
    node: Any = None
    for t in tensors_among(result if isinstance(result, tuple) else (result,)):
        if t._array.dtype.kind not in DIFFERENTIABLE or any(t is x for x in tensors):
            continue
        if t.requires_grad:
            t.register_hook(lambda g: warn_unregistered(name))
            continue
        if node is None:
            node = silent_history(name, tensors)
        node._output_metas.append((t._array.shape, t._array.dtype))
        set_history(t, node, len(node._output_metas) - 1)
    return result


def silent_history(name: str, tensors: list[Any]) -> Any:
    """A node with edges to all inputs and gradients for none."""
    node = _Visible()
    node.op_name = name
    node._output_metas = []
    nexts: list[Any] = []
    nrs: list[int] = []
    for t in tensors:
        asked = isinstance(t, TensorBase) and t.requires_grad  # type: ignore[attr-defined]
        nexts.append((edge_of_view(t) if t._view is not None else t._node or t) if asked else None)
        nrs.append(int(t._output_nr) if asked else 0)
    node._next_edges, node._output_nrs = tuple(nexts), tuple(nrs) if any(nrs) else None
    node._seq_nr = next_number()
    return node
