"""`backward` and `grad`: what users call to run the engine, with PyTorch's checks and texts."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from rushlight.arrays import vocabulary as v
from rushlight.core import engine
from rushlight.core.engine import Target
from rushlight.core.graph import Node, TensorBase, wrap
from rushlight.core.node import AccumulateGradBase
from rushlight.core.record import normal
from rushlight.core.views import edge_of_view
from rushlight.core.where import Where
from rushlight.errors import sentence
from rushlight.ops.table import functions
from rushlight.tensor import Tensor

__all__ = ["backward", "grad"]

Tensors = Sequence[Any]


def as_tuple(x: Any) -> tuple[Any, ...]:
    """One tensor (or edge) as a tuple of one."""
    if isinstance(x, TensorBase) or x is None:
        return (x,)
    if hasattr(x, "node") and hasattr(x, "output_nr"):  # a GradientEdge
        return (x,)
    return tuple(x)


def root_of(t: Any, i: int) -> tuple[Any, int]:
    """Where the backward pass from output number `i` starts: a node or leaf, and which output."""
    if not isinstance(t, TensorBase):
        return t.node, t.output_nr
    edge: Any = edge_of_view(t) if t.as_view is not None else (t.node or (t if t.leaf else None))
    if edge is None:
        raise RuntimeError(
            sentence(
                f"element {i} of tensors does not require grad and does not have a grad_fn",
                "",
                "Nothing it was computed from has `requires_grad=True`: set that on the tensors "
                "you want gradients of before computing with them, outside `torch.no_grad()`.",
            )
        )
    return edge, int(t.index)


def first_gradients(outputs: tuple[Any, ...], grads: tuple[Any, ...], batched: bool) -> list[Any]:
    """The gradient to start from at each output: what the user gave, or 1 for a scalar."""
    if len(grads) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(grads)} gradients")
    made: list[Any] = []
    for i, (out, g) in enumerate(zip(outputs, grads, strict=True)):
        if g is None:
            if isinstance(out, TensorBase) and out.requires_grad:  # type: ignore[attr-defined]
                made.append(one_for(out))
            else:
                made.append(None)
        elif isinstance(g, TensorBase):
            made.append(checked(out, g, i, batched) if isinstance(out, TensorBase) else g)
        else:
            raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
    return made


def one_for(out: TensorBase) -> TensorBase:
    """The implicit gradient of a scalar."""
    x = out.array
    if x.size != 1:
        where = "" if out.node is None else f"made at {Where(out.node.code, out.node.offset)}"
        raise RuntimeError(
            sentence(
                "grad can be implicitly created only for scalar outputs",
                f"this output has the shape {list(x.shape)}" + (f", {where}" if where else ""),
                "Reduce it first (`y.sum().backward()`), or say how much each element counts: "
                "`y.backward(torch.ones_like(y))`.",
            )
        )
    if x.dtype.kind == "c":
        raise RuntimeError(
            f"grad can be implicitly created only for real scalar outputs but got {out.dtype}"  # type: ignore[attr-defined]
        )
    return wrap(v.full(x, x.shape, 1, x.dtype))


def checked(out: Any, g: Any, i: int, batched: bool) -> Any:
    """A gradient the user gave, if it fits its output."""
    shape = g.shape[1:] if batched else g.shape
    if tuple(shape) != tuple(out.shape):
        if batched:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output "
                "as the batch dimension. The sizes of the remaining dimensions are expected to "
                f"match the shape of corresponding output, but a mismatch was detected: "
                f"grad_output[{i}] has a shape of {g.shape} and output[{i}] has a shape of "
                f"{out.shape}. If you only want some tensors in `grad_output` to be considered "
                "batched, consider using vmap."
            )
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and output[{i}] has a "
            f"shape of {out.shape}."
        )
    if out.dtype.is_complex != g.dtype.is_complex:
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. "
            f"Mismatch in dtype: grad_output[{i}] has a dtype of {g.dtype} and output[{i}] has a "
            f"dtype of {out.dtype}."
        )
    if type(g.array) is not type(out.array) and g.device != out.device:
        raise RuntimeError(
            f"invalid gradient at index {i} - expected device {out.device} but got {g.device}"
        )
    if g.array.dtype != out.array.dtype:
        return v.cast(g, out.array.dtype)
    return g


def run(
    outputs: tuple[Any, ...], grads: list[Any], keep: bool, create: bool,
    targets: list[Target] | None, store: bool,
) -> None:  # fmt: skip
    """Start the engine: raw arrays, or tensors when the gradients are to be recorded."""
    roots: list[Any] = []
    nrs: list[int] = []
    for i, out in enumerate(outputs):
        edge, nr = root_of(out, i)
        roots.append(edge)
        nrs.append(nr)
    tensors = create or engine.with_tangents()
    start = [g if tensors or g is None else g.array for g in grads]
    engine.backward(roots, nrs, start, keep, create, targets, store)


def target_of(t: Any) -> Target:
    """An input whose gradient is wanted."""
    if not isinstance(t, TensorBase):
        node = t.node
        return Target(node.variable if isinstance(node, AccumulateGradBase) else node, t.output_nr)
    edge: Any = edge_of_view(t) if t.as_view is not None else (t.node or t)
    if edge is None:
        edge = t
    return Target(edge, int(t.index) if isinstance(edge, Node) else 0)


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Add the gradients of `tensors` to `.grad` of the leaves they were computed from.

    >>> import rushlight as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> torch.autograd.backward([(x * 3).sum(), (x * 4).sum()])
    >>> x.grad
    tensor([7., 7.])
    """
    if grad_variables is not None:
        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, 2
        )
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to "
                "`backward()`. Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    if inputs is not None and not isinstance(inputs, TensorBase) and len(inputs) == 0:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    outputs = as_tuple(tensors)
    grads = (None,) * len(outputs) if grad_tensors is None else as_tuple(grad_tensors)
    start = first_gradients(outputs, grads, False)
    keep = create_graph if retain_graph is None else retain_graph
    targets: list[Target] | None = None
    wanted: tuple[Any, ...] = ()
    if inputs is not None:
        wanted = as_tuple(inputs)
        for t in wanted:
            if isinstance(t, TensorBase) and not t.requires_grad:  # type: ignore[attr-defined]
                raise RuntimeError("One of the differentiated Tensors does not require grad")
            if isinstance(t, Tensor):
                t.retain_grad()  # an interior tensor keeps what it is asked for, as in PyTorch
        targets = [target_of(t) for t in wanted]
    run(outputs, start, keep, create_graph, targets, True)


def as_tensor(g: Any) -> Any:
    return g if g is None or isinstance(g, TensorBase) else wrap(normal(g))


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of `outputs` with respect to `inputs`; no `.grad` is touched.

    >>> import rushlight as torch
    >>> x = torch.tensor(3., requires_grad=True)
    >>> (g,) = torch.autograd.grad(x ** 2, x, create_graph=True)
    >>> torch.autograd.grad(g, x)
    (tensor(2.),)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
            "allow_unused=False."
        )
    if allow_unused is None:
        allow_unused = materialize_grads
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To "
            "accumulate gradient for other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    outs, ins = as_tuple(outputs), as_tuple(inputs)
    if not ins:
        raise ValueError("grad requires non-empty inputs.")
    grads = (None,) * len(outs) if grad_outputs is None else as_tuple(grad_outputs)
    start = first_gradients(outs, grads, is_grads_batched)
    keep = create_graph if retain_graph is None else retain_graph
    for t in ins:
        if isinstance(t, TensorBase) and not t.requires_grad:  # type: ignore[attr-defined]
            raise RuntimeError("One of the differentiated Tensors does not require grad")
    if is_grads_batched:
        return batched(outs, ins, start, keep, create_graph, allow_unused, materialize_grads)
    return once(outs, ins, start, keep, create_graph, allow_unused, materialize_grads)


def once(
    outs: tuple[Any, ...], ins: tuple[Any, ...], start: list[Any], keep: bool, create: bool,
    allow_unused: bool, materialize: bool,
) -> tuple[Any, ...]:  # fmt: skip
    targets = [target_of(t) for t in ins]
    run(outs, start, keep, create, targets, False)
    results: list[Any] = []
    given = [g.array for g in start if g is not None]
    for t, target in zip(ins, targets, strict=True):
        g = target.grad
        if g is None:
            if not allow_unused:
                raise RuntimeError(
                    "One of the differentiated Tensors appears to not have been used in the graph. "
                    "Set allow_unused=True if this is the desired behavior."
                )
            results.append(functions["zeros_like"](t) if materialize else None)
            continue
        if not create and any(g is x for x in given):
            g = v.copy(g)  # the caller's own array must not be two tensors at once
        results.append(as_tensor(g))
    return tuple(results)


def batched(
    outs: tuple[Any, ...], ins: tuple[Any, ...], start: list[Any], keep: bool, create: bool,
    allow_unused: bool, materialize: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """One backward pass for each row of the given gradients."""
    if all(g is None or not g.shape for g in start):
        raise ValueError("is_grads_batched=True wants grad_outputs with a batch dimension in front")
    size = next(g.shape[0] for g in start if g is not None and g.shape)
    rows: list[tuple[Any, ...]] = []
    for i in range(size):
        last = i == size - 1
        row = [None if g is None else g[i] for g in start]
        rows.append(once(outs, ins, row, keep or not last, create, allow_unused, materialize))
    return tuple(
        None if rows[0][k] is None else functions["stack"]([row[k] for row in rows])
        for k in range(len(ins))
    )


def _backward(
    self: Any,
    gradient: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add this tensor's gradient to `.grad` of the leaves it was computed from.

    >>> import rushlight as torch
    >>> x = torch.tensor([1., 2.], requires_grad=True)
    >>> (x * x).backward(torch.tensor([1., 10.]))
    >>> x.grad
    tensor([ 2., 40.])
    """
    if inputs is None and create_graph is False:
        # the usual calls, without the detours
        if gradient is None and engine.backward_scalar(self, bool(retain_graph)):
            return
        grads = first_gradients((self,), (gradient,), False)
        edge, nr = root_of(self, 0)
        g = grads[0]
        keep = bool(retain_graph)
        if g is not None and not engine.with_tangents():
            g = g.array
        engine.backward([edge], [nr], [g], keep, False, None, True)
        return
    backward(self, gradient, retain_graph, create_graph, inputs=inputs)


_backward.__name__ = "backward"
setattr(Tensor, "backward", _backward)  # noqa: B010
