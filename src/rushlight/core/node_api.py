"""Nodes as users meet them: `t.grad_fn`, its edges, hooks and metadata.

What a node does in a backward pass is in `core.engine.engine`, what it keeps in
`core.saved.saved_values`; the nodes of leaves are in `core.engine.accumulate_grad`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from rushlight import dtypes
from rushlight.arrays.device import CPU
from rushlight.arrays.host import device_of
from rushlight.core.call_site import Where, WhereMade
from rushlight.core.engine.hooks import RemovableHandle, add_to_hooks
from rushlight.core.grad_mode import _lock
from rushlight.core.graph import DIFFERENTIABLE, Node, TensorBase, extra_of, hooks_of, node_base
from rushlight.core.saved.packed import Packed
from rushlight.native import mypyc_attr

# PyTorch wrote these nodes by hand, and their names show it
_OUTSIDE_THE_TABLE: Final = ("AccumulateGrad", "CopyBackwards", "CopySlices", "Identity")
_F32: Final = np.dtype(np.float32)
_renumbered: Final[weakref.WeakKeyDictionary[Any, int]] = weakref.WeakKeyDictionary()


@mypyc_attr(allow_interpreted_subclasses=True)
class GraphNode(Node):
    """A recorded op: `t.grad_fn`. Follow `next_functions` to walk the graph."""

    def name(self) -> str:
        """The node's name, such as 'MulBackward0'."""
        title = type(self).__name__
        return f"torch::autograd::{title}" if title in _OUTSIDE_THE_TABLE else title

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The edges: for each input, the node its gradient goes to and which of its outputs."""
        from rushlight.core.engine.accumulate_grad import accumulate_of  # itself a GraphNode

        self._next_edges = tuple(
            [accumulate_of(t) if isinstance(t, TensorBase) else t for t in self._next_edges]
        )
        nrs = self._output_nrs
        return tuple(
            [(self._next_edges[i], 0 if nrs is None else nrs[i]) for i in self._shown_edges()]
        )

    def _shown_edges(self) -> list[int]:
        """Which edges users and hooks see: `Op.shown_edges`, unless others lead somewhere."""
        n = len(self._next_edges)
        every = list(range(n))
        shown: Any = None if self._op is None else self._op.shown_edges
        if shown is None:
            return every
        for i in every:
            if i not in shown and self._next_edges[i] is not None:
                return every
        return [i for i in shown if i < n]

    def _differentiable_outputs(self) -> list[int]:
        """Of several outputs those that have gradients: PyTorch's nodes know no others."""
        outs = self._output_metas
        assert outs is not None
        if self._op is None:
            return list(range(len(outs)))
        return [i for i in range(len(outs)) if outs[i][1].kind in DIFFERENTIABLE]

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dict of your own, which lives as long as the node."""
        hooks = hooks_of(self)
        with _lock:
            if hooks.metadata is None:
                hooks.metadata = {}
        return hooks.metadata

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_inputs, grad_outputs)` after this node ran in a backward pass."""
        hooks = hooks_of(self)
        with _lock:
            if hooks.post is None:
                hooks.post = {}
        return add_to_hooks(hooks.post, fn)

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_outputs)` before this node runs in a backward pass."""
        hooks = hooks_of(self)
        with _lock:
            if hooks.pre is None:
                hooks.pre = {}
        return add_to_hooks(hooks.pre, fn)

    def _register_hook_dict(self, t: Any) -> None:
        """Call the hooks of a tensor, an output of this node, with its gradient."""
        if not isinstance(t, TensorBase):
            raise TypeError("_register_hook_dict expected a variable")
        extra = extra_of(t)
        if extra.hooks is None:
            extra.hooks = {}
        hooks = hooks_of(self)
        if hooks.tensor_pre is None:
            hooks.tensor_pre = {}
        hooks.tensor_pre[int(t._output_nr)] = extra.hooks

    def _sequence_nr(self) -> int:
        return _renumbered.get(self, int(self._seq_nr))

    def _set_sequence_nr(self, nr: int) -> None:
        """Show another number. The engine keeps its own: see Note [Newest first is enough]."""
        _renumbered[self] = nr

    # --- what it keeps: filled in by `core.saved.saved_values` and by custom functions -----------
    def _value_saved(self, position: int) -> Any:
        """Saved value number `position` as a tensor, with the history it had."""
        raise IndexError(f"{type(self).__name__} keeps no value {position}")

    def _raw(self, position: int) -> SavedTensor:
        """Saved value number `position` as the place where it is kept."""
        return SavedTensor(self, position)

    def _kept_value(self, position: int) -> Any:
        """What is kept there: None, a number, a detached tensor, or a `Packed`."""
        raise IndexError(f"{type(self).__name__} keeps no value {position}")

    def _keep_packed(self, position: int, hook: Any, unpack_hook: Any) -> None:
        """Let hooks pack a value that was saved without any, and no longer watch its memory."""
        raise IndexError(f"{type(self).__name__} keeps no value {position}")

    # --- what it is given -----------------------------------------------------------------------
    @property
    def requires_grad(self) -> bool:
        """True: a node is made only where a gradient is asked for."""
        return True

    @property
    def _input_metadata(self) -> list[InputMetadata]:
        """Shape, dtype and device of each gradient this node receives."""
        outs = self._output_metas
        if outs is None:
            return [metadata_of(self._only_output())]
        return [metadata_of(outs[i]) for i in self._differentiable_outputs()]

    def _only_output(self) -> Any:
        """The one output: (shape, dtype) or (shape, dtype, an array on its device)."""
        raise AttributeError(f"the shape of the output of {self.name()} is not known any more")

    # --- its work: the engine calls these of nodes that are not of the op table ------------------
    def _run(self, g: Any, tensors: bool) -> Any:
        """The rule, for nodes that are not of the op table."""
        raise NotImplementedError

    def _calls_user(self) -> bool:
        """Whether that may call the user's code."""
        return True

    def _release(self, where: Where) -> None:
        """Let go of saved values, for nodes that are not of the op table."""


class InputMetadata:
    """Shape, dtype and device of one gradient that a node receives (`_input_metadata`)."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, device: Any) -> None:
        self.shape: list[int] = list(shape)
        self.dtype: Any = dtypes.of(dtype)
        self.device: Any = device
        self.is_nested_tensor: bool = False
        self.is_cpp_nested_tensor: bool = False


def metadata_of(out: Any) -> InputMetadata:
    """What (shape, dtype) or (shape, dtype, like) says, as users see it."""
    if out is None:  # an output of a custom function that is no tensor
        return InputMetadata((), _F32, CPU)
    return InputMetadata(out[0], out[1], CPU if len(out) < 3 else device_of(out[2]))


class SavedTensor:
    """One saved value of a node: `grad_fn._raw_saved_self`."""

    def __init__(self, node: GraphNode, position: int) -> None:
        self.node = node
        self.position = position

    @property
    def data(self) -> Any:
        """What is kept: what the pack hook returned, or a detached tensor."""
        value = self.node._kept_value(self.position)
        return value.value if isinstance(value, Packed) else value

    @property
    def unpack_hook(self) -> Any:
        """The hook that unpacks it, if there is one."""
        value = self.node._kept_value(self.position)
        return value.unpack if isinstance(value, Packed) else None

    def unpack(self) -> Any:
        """The tensor again, with the history it had."""
        return self.node._value_saved(self.position)

    def register_hooks(self, pack_hook: Any, unpack_hook: Any) -> None:
        """Pack this value now, and call `unpack_hook` on the result whenever it is needed."""
        if not callable(pack_hook) or not callable(unpack_hook):
            raise TypeError(
                "register_hooks(): incompatible function arguments. The following argument types "
                "are supported:\n    1. (self: torch._C._autograd.SavedTensor, arg0: "
                "collections.abc.Callable, arg1: collections.abc.Callable) -> None\n\nInvoked "
                f"with: {self!r}, {pack_hook!r}, {unpack_hook!r}"
            )
        if self.node._freed_at is not None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed. Saved "
                "intermediate values of the graph are freed when you call .backward() or "
                "autograd.grad(). Specify retain_graph=True if you need to backward through the "
                "graph a second time or if you need to access saved variables after calling "
                "backward."
            )
        value = self.node._kept_value(self.position)
        if value is None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor with value None is forbidden"
            )
        if isinstance(value, Packed):
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: "
                "only one pair of hooks is allowed at a time."
            )
        if isinstance(value, (int, float, complex)):
            raise RuntimeError(
                "Calling register_hooks on a saved number is forbidden: no tensor is kept for it"
            )
        self.node._keep_packed(self.position, pack_hook, unpack_hook)


# --- classes of nodes ---------------------------------------------------------------------------
# Functions inside functions: compiled ones at the top level do not become methods.
def _caller() -> Any:
    def call(self: Any, *grads: Any) -> Any:
        return call_by_hand(self, grads)

    return call


def call_by_hand(node: GraphNode, grads: tuple[Any, ...]) -> Any:
    """Run a node's rule on gradients of its outputs, without its hooks: `t.grad_fn(g)`."""
    from rushlight.core.engine.engine import backward_of  # which knows nodes

    shown = [0] if node._output_metas is None else node._differentiable_outputs()
    if len(grads) != len(shown):
        raise TypeError(f"expected {len(shown)} arguments, got {len(grads)} instead")
    for i in range(len(grads)):
        if grads[i] is not None and not isinstance(grads[i], TensorBase):
            raise TypeError(f"argument {i} is not a Variable")
    g: Any = grads[0]
    if node._output_metas is not None:
        g = [None] * len(node._output_metas)
        for at, i in enumerate(shown):
            g[i] = grads[at]
    found = backward_of(node, g, True)
    outs = tuple([found[i] for i in node._shown_edges()])
    return outs[0] if len(outs) == 1 else outs


def _refuser() -> Any:
    def refuse(self: Any, protocol: Any) -> Any:
        raise TypeError(f"cannot pickle '{type(self).__name__}' object")

    return refuse


node_base.members["__call__"] = _caller()
node_base.members["where"] = WhereMade()
node_base.members["__reduce_ex__"] = _refuser()  # nor copied: a node is part of one graph


def visible(base: Any, title: str) -> Any:
    """An interpreted class over a compiled one: weak references and PyTorch's name."""
    return type(title, (base,), dict(node_base.members))
