"""The data: storage, tensor base, view, op, node. What happens to them is in other files.

    tensor --_node--> Node --_next_edges--> Node ... --_next_edges--> leaf tensor
      |                | op, saved arrays
      | array, storage

Note [Names]
    Users put attributes of their own on tensors and on custom functions' nodes. What these have
    themselves begins with an underscore, or is a name of PyTorch's.

Note [Edges to leaves]
    An edge that ends at a leaf is the leaf tensor itself. The `AccumulateGrad` node that users
    see is made when someone looks (`next_functions`), and takes the leaf's place in the edge.
    So a training step makes none, and the graph keeps its leaves alive, as in PyTorch.

Note [No cycles]
    A node keeps raw arrays and edges, never the tensors it made: its own output is kept as an
    array. All memory goes the moment the last reference goes, with the collector off.

Note [Kept versions]
    A node keeps the storages behind its saved arrays, and `_version_sum`, the sum of their versions
    when they were saved. Versions only grow, so one comparison of sums finds any later write.

Note [Who shares memory]
    When memory grows, all tensors over it must look at the new one. A storage knows them by weak
    references. A new tensor costs nothing: it is not noted. A view notes itself, and leads to the
    tensor it was made from; an alias that leads nowhere (`detach`) has that one noted as `owner`.
    Most memory has one view at a time, so the first reference is in `sharers` as it is; from
    the second on, and wherever several storages are over one memory, `sharers` is a `Sharers`.
    Nothing is called between reading such a slot and writing it, so no other thread comes between.
"""

from __future__ import annotations

import os
import sys
import weakref
from itertools import count
from threading import Lock
from types import CodeType, FrameType
from typing import Any, ClassVar, Final, Self

import numpy as np

from rushlight.arrays.kernels import is_expression, kernel_of, offset_in
from rushlight.core.call_site import Where
from rushlight.core.grad_mode import COMPILED, _lock, state
from rushlight.core.observer import observer
from rushlight.native import i64, mypyc_attr


# Not `acyclic=True`: mypyc 2.4 then frees it through the trashcan of Python 3.11 without the header
# that the trashcan writes to, which corrupts memory when a deep graph goes.
@mypyc_attr(free_list_len=1)
class Storage:
    """The memory behind one or more tensors: how often it was written, and where last."""

    def __init__(self) -> None:
        self.version: i64 = 0
        self.inference: bool = False
        self.level: i64 = state.level  # see Note [Captured tensors] in `core.transforms.stack`
        self.when: i64 = 0  # the number of the last write, in one count with the nodes'
        self.code: CodeType | None = None
        self.offset: int = 0
        self.owner: Any = None  # these two: see Note [Who shares memory]
        self.sharers: Any = None

    def written(self) -> None:
        """Count an in-place write, and remember the user's line that did it."""
        if observer.applied is not None:
            observer.applied.append(None)  # what is done in place is not done again: `core.recall`
        self.version += 1
        self.when = next_number()
        offset = known_offset()
        if offset >= 0:
            self.code = known.code
            self.offset = offset
            return
        frame = caller()
        if frame is not None:
            self.code = frame.f_code
            self.offset = frame.f_lasti


# A class of its own: what the user refers to weakly can be told from what is noted here.
Sharer: Final[Any] = type("Sharer", (weakref.ref,), {"__slots__": ()})
_tidying: Final = Lock()


def _after_fork() -> None:
    if _tidying.locked():  # by a thread that does not exist here
        _tidying.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Sharers:
    """Weak references to what looks at one memory, by the id of what they refer to."""

    def __init__(self) -> None:
        self.refs: dict[int, Any] = {}
        self.room: int = 4  # look for the dead when there are more
        self.merged_into: Sharers | None = None  # the one that took these in

    def end(self) -> Sharers:
        """Where references are kept now."""
        found = self
        while found.merged_into is not None:
            found = found.merged_into
        return found

    def add(self, sharer: Any, key: int) -> None:
        refs = self.refs
        refs[key] = sharer
        if len(refs) > self.room:
            self.tidy()

    def tidy(self) -> None:
        """Forget the dead. Left to later if that is going on already, here or in a thread."""
        if not _tidying.acquire(False):
            return
        try:
            refs = self.refs
            for key in list(refs):
                sharer = refs.pop(key)
                if sharer() is not None:  # perhaps another of the same id, noted a moment ago
                    refs.setdefault(key, sharer)
            self.room = 2 * len(refs) + 4
        finally:
            _tidying.release()


class Hooks:
    """What is attached to a node besides its work: hooks by kind, and the user's metadata."""

    def __init__(self) -> None:
        self.tensor_pre: dict[int, Any] | None = None  # output index -> hooks of that tensor
        self.retain: dict[int, Any] | None = None  # output index -> tensor that keeps its grad
        self.pre: Any = None
        self.post: Any = None
        self.metadata: dict[Any, Any] | None = None
        self.written: Any = None  # of the node of a write through a view: `views.Written`


class Extra:
    """What few tensors have: hooks, a kept gradient, a name, a visible AccumulateGrad."""

    def __init__(self) -> None:
        self.hooks: Any = None
        self.post_accumulate: Any = None
        self.retains: bool = False
        self.accumulate: Any = None  # weak reference to the AccumulateGrad that was shown
        self.name: str | None = None
        self.no_view_grad: str = ""
        self.grad_dtype: Any = None  # of a leaf's gradient where it is not the leaf's own
        self.any_grad: bool = False  # a leaf's `.grad` may have any dtype
        self.waits: Any = None  # for which memory to grow again; see `storage.enlarged`
        self.swapped: i64 = 0  # edges of nodes before this number led to what it no longer is


@mypyc_attr(allow_interpreted_subclasses=True)
class TensorBase:
    """An array with its place in the graph. `rushlight.Tensor` adds everything users call."""

    _array: Any
    _storage: Storage
    _node: Node | None = None
    _output_nr: i64 = 0  # which output of `_node` this is
    _requires_grad: bool = False  # a leaf that wants gradients
    _accumulated_grad: Any = None  # the accumulated gradient (`.grad`)
    _view: View | None = None
    _extra: Extra | None = None
    # the derivative of forward mode, and its level: see `core.transforms.forward_ad`
    _tangent: Any = None
    _shape: Any = None  # the shape of `_shape_of`: NumPy makes a new tuple each time it is asked
    # the array `_shape` is true of; whoever replaces `_array` makes it outdated
    _shape_of: Any = None
    # the array, if it was seen to lie in memory row by row; outdated likewise
    _contiguous_array: Any = None
    _float_kind: i64 = 0  # of `_contiguous_array`: 1 for float32, 2 for float64, 0 where not known

    def __new__(cls) -> Self:
        # stated so that compiled code can call it directly: half the cost of a call through type
        return super().__new__(cls)


UNSOUGHT: Final = object()  # in the place of a kernel that was not looked for yet


@mypyc_attr(allow_interpreted_subclasses=True)
class Op:
    """One operation: its parameters are attributes, its rules are methods.

    Class attributes
        name      the op's name in the table
        inputs    names of its tensor arguments, as PyTorch's formulas call them
        outputs   names of its results
        params    names of its parameters, which its constructor takes in this order
        saves     which of those a rule reads; they are kept for the backward pass
        reads     {input position: names its gradient reads}, where that is not all of `saves`
        node      name of its node (`MulBackward0`)
        lies      how its results lie in memory; see Note [How results lie] in `arrays.layouts`

    What PyTorch shows of it
        aten          its overload, where that is not `name.default`; None: it has no such op.
                      Several, by its operands or its `dims`: see `ops.compat.overloads`
        profile_name  its name in profiles, where that is not the overload's
        saved_names   what its node shows besides saved tensors; see `core.saved.saved_names`
        shown_edges   the inputs that its node has edges for, where those are not all

    Rules, written once as plain maths over arrays, tensors or recorded arrays
        forward(*xs) -> y
        vjp(node, g, *saved) -> one gradient an input, or None
        jvp(ts, xs, y) -> tangent of y
        align(xs, flags, size) -> the op and its inputs one level of `vmap` down
    """

    name: ClassVar[str] = ""
    inputs: ClassVar[tuple[str, ...]] = ("self",)
    outputs: ClassVar[tuple[str, ...]] = ("result",)
    saves: ClassVar[tuple[str, ...]] = ()
    reads: ClassVar[dict[int, tuple[str, ...]]] = {}
    node: ClassVar[str] = ""
    doc: ClassVar[str] = ""
    params: ClassVar[tuple[str, ...]] = ()
    differentiable: ClassVar[bool] = True
    variadic: ClassVar[bool] = False  # any number of tensors, all standing in `inputs[0]`
    lies: ClassVar[str] = ""
    aten: ClassVar[str | None] = ""
    profile_name: ClassVar[str] = ""
    saved_names: ClassVar[str | None] = None  # None: its parameters as they are
    shown_edges: ClassVar[tuple[int, ...] | None] = None
    leads: ClassVar[tuple[int, ...]] = ()  # inputs in the order in which they decide that
    # has compiled `forward_binary` and `vjp_binary`: see `arithmetic.Arithmetic`
    direct: ClassVar[bool] = False
    # Its rule on tensors applies the same ops whatever their values are: `core.recall_rules`.
    asked_once: ClassVar[bool] = False
    whole: ClassVar[bool] = False  # element-wise, and of int64s just what NumPy gives for them
    of_bools: ClassVar[bool] = False  # and of bools

    def __init__(self, *values: Any) -> None:
        """With values for `params`, in their order; a class attribute is a parameter's default."""
        self.plan: OpSpec = spec_for(type(self))
        self.forward_kernel: Any = UNSOUGHT
        self.vjp_kernel: Any = UNSOUGHT
        self.kernel_may_warn: bool = False  # it asks NumPy: the linear algebra under it, say
        self.for_one_layout: bool = False  # applied to arrays of one layout only: `core.recall`
        self.kept_rules: dict[Any, Any] | None = None  # `core.recall_rules`
        if len(values) > len(self.params):
            raise TypeError(f"{type(self).__name__} has no parameter for {values[-1]!r}")
        for name, value in zip(self.params, values):  # the rest have defaults
            setattr(self, name, value)

    def seek_kernels(self) -> None:
        """Find the compiled function of `forward`, or None; once, before the op is first run."""
        self.forward_kernel = kernel_of(self, "forward")
        self.kernel_may_warn = self.forward_kernel is not None and not is_expression(
            self.forward_kernel
        )

    def seek_vjp_kernel(self) -> None:
        """Find that of `vjp`, likewise before its first gradient."""
        self.vjp_kernel = kernel_of(self, "vjp")

    def vjp_kernel_for(self, shape: tuple[int, ...]) -> Any:
        """The compiled function of the rule for an input of this shape; None if there is none."""
        return None

    def forward_binary(self, a: Any, b: Any) -> Any:
        """`forward` of two operands, called without a look-up where it is compiled."""
        rule: Any = self
        return rule.forward(a, b)

    def vjp_binary(self, node: Node, g: Any, a: Any, b: Any) -> Any:
        """`vjp` with two saved operands (None where they were not kept), likewise."""
        rule: Any = self
        return rule.vjp(node, g, a, b)

    def forward(self, *xs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}.forward")

    def vjp(self, node: Node, g: Any, *saved: Any) -> Any:
        raise NotImplementedError(f"derivative for {self.name} is not implemented")

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        raise NotImplementedError(f"forward derivative for {self.name} is not implemented")

    def vmap_rule(self, xs: tuple[Any, ...], flags: tuple[bool, ...], size: int) -> Any:
        """How the op goes down a level of `vmap`: `xs` are its inputs there, `flags` say which of
        them have a batch of `size` as first axis. Either (op, inputs), which give the result with
        the batch as first axis; or None: see Note [Going down] in `core.transforms.vmap`."""
        return None

    def explain(self, error: Exception, xs: tuple[Any, ...]) -> Exception:
        """The exception to raise when `forward` failed with `error` on the raw inputs `xs`."""
        return error

    def parameters(self) -> tuple[Any, ...]:
        """The values of `params`: two ops of one class with equal parameters are equal."""
        return tuple(getattr(self, p) for p in self.params)

    def __eq__(self, other: object) -> bool:
        return (
            type(self) is type(other)
            and isinstance(other, Op)
            and self.parameters() == other.parameters()
        )

    def __hash__(self) -> int:
        return hash((type(self), repr(self.parameters())))

    def __repr__(self) -> str:
        inside = ", ".join(f"{p}={getattr(self, p)!r}" for p in self.params)
        return f"{type(self).__name__}({inside})"


class OpSpec:
    """What recording needs to know about an op class, worked out once.

    `sources[j]` says where saved value j comes from: an input's position, or -1-k for output k.
    `readers[j]` has bit i set if the gradient of input i reads it (all bits: every gradient).
    """

    def __init__(self, cls: Any) -> None:
        self.op_class: Any = cls
        self.node_class: Any = None  # made with the first node: see `node_class_of`
        sources: list[int] = []
        readers: list[int] = []
        inputs: tuple[str, ...] = cls.inputs
        outputs: tuple[str, ...] = cls.outputs
        for name in cls.saves:
            if name in inputs:
                sources.append(inputs.index(name))
            else:
                sources.append(-1 - outputs.index(name))
            mask = 0
            for position, names in cls.reads.items():
                if name in names:
                    mask |= 1 << position
            readers.append(mask if cls.reads else -1)
        self.sources: tuple[int, ...] = tuple(sources)
        self.readers: tuple[int, ...] = tuple(readers)
        self.saves: bool = bool(sources)
        self.apart: bool = bool(cls.reads)  # each gradient reads its own saved values
        self.one_input: bool = len(inputs) == 1
        # in which order hooks see the saved values: inputs by name, then outputs
        labels: tuple[str, ...] = cls.saves
        ranks: list[tuple[bool, Any, int]] = []
        for j in range(len(sources)):
            out = sources[j] < 0
            ranks.append((out, "" if out else labels[j], -sources[j] if out else j))
        self.order: tuple[int, ...] = tuple([ranks.index(rank) for rank in sorted(ranks)])
        # two inputs, both of them saved and in order: recorded without a loop
        self.pair: bool = self.sources == (0, 1) and len(inputs) == 2
        self.first: i64 = readers[0] if self.pair else 0
        self.second: i64 = readers[1] if self.pair else 0
        self.names: tuple[str, ...] = cls.saves
        self.variadic: bool = cls.variadic
        self.outputs: i64 = len(outputs)
        self.differentiable: bool = cls.differentiable
        self.direct: bool = cls.direct
        self.whole: bool = cls.whole
        self.of_bools: bool = cls.of_bools
        self.asked_once: bool = cls.asked_once
        self.settles: bool = cls.lies != ""
        self.in_rows: bool = cls.lies == "rows"
        self.as_input: bool = cls.lies == "input"
        self.spread: bool = cls.lies == "operands"
        self.by_channels: bool = cls.lies == "channels" and (not cls.leads or 0 in cls.leads)
        self.few_axes: bool = cls.lies in ("channels", "stacked")  # of less than four axes: in rows


class PendingOp:
    """View ops that are made when someone asks for them: for most views nobody does."""

    def __init__(self, steps: list[tuple[Any, tuple[Any, ...]]]) -> None:
        self.steps = steps  # classes and their parameters

    def make(self) -> tuple[Op, ...]:
        made: list[Op] = []
        for kind, params in self.steps:
            made.append(kind(*params))
        return tuple(made)


class View:
    """How a tensor looks into another: the root it shares memory with, and the way there.

    The way is that of the view it was made from, if it was made from one, and then `last`: so a
    view of a view costs the same however long the chain is. It begins at `origin`, the array that
    the base had; if the base has another now (`t_` does that), or it is None (`resize_` of the
    view), strides tell the way. `how` says what forbids to rebase the
    view's history: "", "no_grad", "inference", "multi-output" or "custom".
    """

    def __init__(
        self, base: TensorBase, last: Any, how: str, version: i64, before: View | None = None
    ) -> None:
        self.base = base
        self._last: Any = last  # a tuple of ops, or a `PendingOp`
        self.how = how
        self.version = version
        self.before = before
        self.origin: Any = base._array if before is None else before.origin

    @property
    def last(self) -> tuple[Op, ...]:
        """The view ops that lead here from the view that this one was made from."""
        found = self._last
        if isinstance(found, PendingOp):
            found = found.make()
            self._last = found
        ops: tuple[Op, ...] = found
        return ops

    @property
    def ops(self) -> tuple[Op, ...]:
        """The view ops that lead from the root to the tensor."""
        view = self.before
        if view is None:
            return self.last
        parts: list[tuple[Op, ...]] = [self.last]
        while view is not None:
            parts.append(view.last)
            view = view.before
        ops: list[Op] = []
        for at in range(len(parts) - 1, -1, -1):
            ops.extend(parts[at])
        return tuple(ops)


@mypyc_attr(allow_interpreted_subclasses=True)
class Node:
    """One application of an op, recorded; for its edges see Note [Edges to leaves]."""

    _op: Any = None
    _compiled_op: Op | None = None  # the op again, if its `vjp_binary` is compiled
    _next_edges: tuple[Any, ...] = ()
    _output_nrs: tuple[int, ...] | None = None  # which output of each next node; None: all 0
    _needs_grad_mask: i64 = 0  # bit i: input i wants a gradient (the first 62 inputs)
    _kept_values: tuple[Any, ...] = ()
    # the storages behind the saved arrays: two fields, then a tuple
    _first_storage: Storage | None = None
    _second_storage: Storage | None = None
    _other_storages: tuple[Storage, ...] = ()
    _version_sum: i64 = 0
    _input_shapes: tuple[Any, ...] | None = None  # of the inputs, where a rule or `fit` needs them
    _input_dtypes: tuple[Any, ...] | None = None
    _output_metas: list[Any] | None = None  # (shape, dtype) of each output, for ops with several
    _fits_as_is: bool = False  # real numbers of one dtype and shape throughout: nothing to fit
    _seq_nr: i64 = 0
    _code: CodeType | None = None
    _code_offset: int = 0
    _hooks: Hooks | None = None
    _freed_at: Where | None = None
    _has_packed: bool = False  # some saved value is a `Packed`; see `core.saved.packed`
    # tangents of the saved values; see `core.transforms.forward_ad`
    _kept_tangents: tuple[Any, ...] | None = None

    def __new__(cls) -> Self:
        return super().__new__(cls)

    def _watched(self) -> list[Storage]:
        """The storages behind the saved arrays, in order."""
        found: list[Storage] = []
        if self._first_storage is not None:
            found.append(self._first_storage)
        if self._second_storage is not None:
            found.append(self._second_storage)
        found.extend(self._other_storages)
        return found

    def _count_versions(self) -> i64:
        """The sum of the versions of what is kept."""
        total: i64 = 0
        if self._first_storage is not None:
            total = self._first_storage.version
            if self._second_storage is not None:
                total += self._second_storage.version
                if self._other_storages:
                    for storage in self._other_storages:
                        total += storage.version
        return total

    def _needs_grad(self, i: i64) -> bool:
        """Whether the gradient of input `i` is wanted: a rule need not compute the others."""
        return self._next_edges[i] is not None


class Factory:
    """The public tensor class, filled in by `rushlight.tensor`."""

    def __init__(self) -> None:
        self.cls: Any = TensorBase


factory: Final = Factory()
_frame: Final = sys._getframe
_offset_in: Final[Any] = offset_in if COMPILED else None  # interpreted code has frames of its own
_numbers: Final = count(1)
_generic: Final = np.generic
_asarray: Final = np.asarray
DIFFERENTIABLE: Final = "fcVW"  # kinds of dtype that carry gradients (V, W: ml_dtypes')
_plans: Final[dict[Any, OpSpec]] = {}


def spec_for(cls: Any) -> OpSpec:
    """The spec of an op class, made when it is first asked for."""
    spec = _plans.get(cls)
    if spec is None:
        spec = OpSpec(cls)
        _plans[cls] = spec
    return spec


def node_class_of(spec: OpSpec) -> Any:
    """The class of an op's nodes. Made with the first of them: most programs record few kinds."""
    if spec.node_class is None:
        cls = spec.op_class
        title = cls.node or "".join(w.capitalize() for w in cls.name.split("_")) + "Backward0"
        members: dict[str, Any] = dict(node_base.members)
        members["_op_class"] = cls
        if COMPILED:  # interpreted classes have it already, and a dict
            members["__slots__"] = ("__weakref__",)
        for position, saved in enumerate(spec.names):
            members["_saved_" + saved] = _saved_property(position)
            members["_raw_saved_" + saved] = _raw_property(position)
        for param in cls.params:
            members.setdefault("_saved_" + param, _param_property(param))
        spec.node_class = type(title, (node_base.cls,), members)
    return spec.node_class


class NodeBase:
    """What node classes are made of, filled in by `core.node`.

    `__call__` must be among the members, not a method of the compiled class: mypyc would give the
    subclass another memory layout than its base.
    """

    def __init__(self) -> None:
        self.cls: Any = Node
        self.members: dict[str, Any] = {"__module__": "builtins"}  # PyTorch shows no module


node_base: Final = NodeBase()


# What makes a node of compiled code quick is in the way of interpreted code. (For tensors `native`
# has another `__new__` then.)
if not COMPILED:
    delattr(Node, "__new__")


def _saved_property(position: int) -> property:
    def read(self: Any) -> Any:
        return self._value_saved(position)

    return property(read)


def _raw_property(position: int) -> property:
    def read(self: Any) -> Any:
        return self._raw(position)

    return property(read)


def _param_property(name: str) -> property:
    def read(self: Any) -> Any:
        return getattr(self._op, name)

    return property(read)


def wrap(array: Any) -> TensorBase:
    """A new tensor around a raw array that nothing else refers to."""
    t: TensorBase = TensorBase.__new__(factory.cls)
    t._array = array
    t._storage = Storage()
    return t


def wrap_as(array: Any, storage: Storage) -> TensorBase:
    """A tensor around a raw array whose memory already has a storage."""
    t: TensorBase = TensorBase.__new__(factory.cls)
    t._array = array
    t._storage = storage
    sharer = Sharer(t)
    known = storage.sharers
    if known is None:
        storage.sharers = sharer
    elif type(known) is Sharers and known.merged_into is None:
        known.add(sharer, id(t))
    else:
        _note_more(storage, known, sharer, t)
    return t


def wrap_alias(array: Any, x: TensorBase) -> TensorBase:
    """`wrap_as` over the memory of `x`, for a tensor that will be no view: it leads to nothing."""
    storage = x._storage
    if storage.owner is None or storage.owner() is None:
        storage.owner = Sharer(x)
    return wrap_as(array, storage)


def note(storage: Storage, t: Any) -> None:
    """Let a storage know of something over its memory. See Note [Who shares memory]."""
    sharer = Sharer(t)
    known = storage.sharers
    if known is None:
        storage.sharers = sharer
    else:
        _note_more(storage, known, sharer, t)


def wrap_apart(array: Any, x: TensorBase) -> TensorBase:
    """A tensor over the memory of `x` that counts its writes by itself."""
    t = wrap(array)
    known = sharers_of(x._storage)
    seen = known.refs.get(id(x))
    if seen is None or seen() is not x:
        known.add(Sharer(x), id(x))
    known.add(Sharer(t), id(t))
    t._storage.sharers = known
    return t


def _note_more(storage: Storage, known: Any, sharer: Any, t: Any) -> None:
    if not isinstance(known, Sharers):
        gone = known() is None
        if gone and storage.sharers is known:
            storage.sharers = sharer
            return
    sharers_of(storage).add(sharer, id(t))


def sharers_of(storage: Storage) -> Sharers:
    """What a storage knows of its sharers, as a `Sharers` that can take more."""
    found = storage.sharers
    if isinstance(found, Sharers):
        return found if found.merged_into is None else found.end()
    made = Sharers()
    while True:
        known = storage.sharers
        if isinstance(known, Sharers):
            return known.end()
        made.refs = {}
        if known is not None:
            t = known()
            if t is not None:
                made.refs[id(t)] = known
        if storage.sharers is known:
            storage.sharers = made
            return made


def shape_of(t: TensorBase, array: Any) -> Any:
    """The shape of `t`, whose array this is, kept for the next time."""
    if t._shape_of is not array:
        t._shape = array.shape
        t._shape_of = array
    return t._shape


def title_of(node: Node) -> str:
    """The op's name as PyTorch's errors give it: 'Add' for AddBackward0, 'Squeeze1' for
    SqueezeBackward1."""
    name = type(node).__name__
    cut = name.rfind("Backward")
    if cut <= 0:
        return name
    number = name[cut + 8 :]
    return name[:cut] + ("" if number == "0" else number)


def requires_grad(t: TensorBase) -> bool:
    """Whether a gradient is wanted for `t`; a view asks if its base does."""
    if t._node is not None or t._requires_grad:
        return True
    view = t._view
    return view is not None and (view.base._node is not None or view.base._requires_grad)


# --- when and where: what a node notes of its making, and a storage of a write -------------------
def next_number() -> i64:
    """A number larger than all before it, from any thread: nodes are ordered by it.

    Compiled code holds the interpreter's lock from one line to the next; interpreted code does
    not, and takes its numbers from an iterator, which is atomic.
    """
    if COMPILED:
        state.number += 1
        return state.number
    return next(_numbers)


class Known:
    """The code that was found to be the user's last time: loops ask for it again and again."""

    def __init__(self) -> None:
        self.code: CodeType | None = None


known: Final = Known()


def caller(own: int = 1) -> FrameType | None:
    """The innermost frame that is not rushlight's own; so many are, the core being interpreted."""
    frame: FrameType | None = _frame() if COMPILED else _frame(own)
    while frame is not None:
        code = frame.f_code
        if code is known.code:
            return frame
        name = frame.f_globals.get("__name__")
        if not isinstance(name, str) or not name.startswith("rushlight."):
            known.code = code
            return frame
        frame = frame.f_back
    return None


def known_offset() -> int:
    """The instruction that runs of `known.code`; -1 if the user's innermost frame runs another.
    Loops come from the same code again and again."""
    code = known.code
    if _offset_in is None or code is None:
        return -1
    offset = _offset_in(code)
    return -1 if offset is None else offset


def here() -> Where:
    """The user's line that is running now."""
    frame = caller()
    return Where(None, 0) if frame is None else Where(frame.f_code, frame.f_lasti)


def new_node(op: Any, next_edges: tuple[Any, ...], nrs: tuple[int, ...] | None, mask: i64) -> Node:
    """The node of one application of `op`, whose number is larger than those of its edges. `nrs`
    are the outputs that the edges lead to, None if all are the first; `mask` says which inputs ask
    for a gradient. Who calls it knows the edges; `record.make_node` finds them."""
    plan: OpSpec = op.plan
    kind: Any = plan.node_class
    node: Node = Node.__new__(kind if kind is not None else node_class_of(plan))
    node._op = op
    node._next_edges = next_edges
    node._output_nrs = nrs
    node._needs_grad_mask = mask
    place(node)
    return node


def place(node: Node) -> None:
    """Give a node its number, and the user's line that runs now."""
    node._seq_nr = next_number()
    offset = -1 if _offset_in is None else known_offset()
    if offset >= 0:
        node._code = known.code
        node._code_offset = offset
        return
    frame = caller(3)
    if frame is not None:
        node._code = frame.f_code
        node._code_offset = frame.f_lasti


def normal(y: Any) -> Any:
    """A raw result as an array: NumPy turns 0-d results into scalars."""
    if isinstance(y, _generic):
        return _asarray(y)
    return y


# --- hooks and kept gradients: made on first use, and once, whoever asks at one time --------------
def hooks_of(node: Node) -> Hooks:
    """The node's hooks."""
    found = node._hooks
    if found is None:
        with _lock:
            found = node._hooks
            if found is None:
                found = Hooks()
                node._hooks = found
    return found


def extra_of(t: TensorBase) -> Extra:
    """The tensor's extras."""
    found = t._extra
    if found is None:
        with _lock:
            found = t._extra
            if found is None:
                found = Extra()
                t._extra = found
    return found


def retain_on(t: TensorBase, node: Node) -> None:
    """Let `node` store the gradient of its output `t` in `t.grad` when it runs."""
    hooks = hooks_of(node)
    if hooks.retain is None:
        hooks.retain = {}
    hooks.retain[int(t._output_nr)] = weakref.ref(t)


def forget_retained(t: TensorBase) -> None:
    """Let the node `t` has now no longer store its gradient: `t` is about to get another."""
    node = t._node
    if node is not None and node._hooks is not None and node._hooks.retain is not None:
        node._hooks.retain.pop(int(t._output_nr), None)
