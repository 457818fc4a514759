"""`backward` and `grad`: what users call to run the engine, with PyTorch's checks and texts."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, cast

from rushlight.arrays import vocabulary as v
from rushlight.arrays.host import settled
from rushlight.core.call_site import Where
from rushlight.core.engine import engine, ordered  # noqa: F401  # which `engine` starts by name
from rushlight.core.engine.accumulate_grad import AccumulateGradBase
from rushlight.core.engine.engine import Capture
from rushlight.core.engine.grad import grad_of_plain
from rushlight.core.grad_mode import state
from rushlight.core.graph import Node, TensorBase, normal, requires_grad, wrap
from rushlight.core.transforms.stack import refuse_inside
from rushlight.core.views.history import edge_of_view
from rushlight.errors import hide_insides, sentence
from rushlight.ops.registry import functions
from rushlight.tensor import Tensor

Tensors = Sequence[Any]


def is_edge(x: Any) -> bool:
    """Whether `x` is a `graph.GradientEdge`."""
    return hasattr(x, "node") and hasattr(x, "output_nr") and isinstance(x, tuple)


def as_tuple(x: Any) -> tuple[Any, ...]:
    """One tensor (or edge) as a tuple of one."""
    if isinstance(x, TensorBase) or x is None or is_edge(x):
        return (x,)
    return tuple(x)


def inputs_of(x: Any, name: str) -> tuple[Any, ...]:
    """The inputs that `grad` or `backward` was given: a tensor, a sequence, or a dict of them."""
    if type(x) is dict:
        x = tuple(x.values())
    elif isinstance(x, Mapping):
        raise TypeError(
            f"`inputs` argument to `{name}()` must be a dict, not {type(x).__name__}. Other "
            "Mapping types are not supported."
        )
    found = as_tuple(x)
    if not found:
        raise RuntimeError(f"`inputs` argument to `{name}()` cannot be empty.")
    return found


def root_edge(t: Any, i: int) -> tuple[Any, int]:
    """Where the backward pass from output number `i` starts: a node or leaf, and which output."""
    if not isinstance(t, TensorBase):
        return t.node, t.output_nr
    edge: Any = (
        edge_of_view(t) if t._view is not None else (t._node or (t if t._requires_grad else None))
    )
    if edge is None:
        raise RuntimeError(
            sentence(
                f"element {i} of tensors does not require grad and does not have a grad_fn",
                "",
                "Nothing it was computed from has `requires_grad=True`: set that on the tensors "
                "you want gradients of before computing with them, outside `torch.no_grad()`.",
            )
        )
    return edge, int(t._output_nr)


def first_gradients(outputs: tuple[Any, ...], grads: tuple[Any, ...], batched: bool) -> list[Any]:
    """The gradient to start from at each output: what the user gave, or 1 for a scalar."""
    made: list[Any] = []
    for i, (out, g) in enumerate(zip(outputs, grads, strict=False)):
        if not isinstance(out, TensorBase):
            if not is_edge(out):
                raise AssertionError("Expected output to be a torch.Tensor")
            out = like_edge(out)
        if g is None:
            made.append(one_for(out) if out.requires_grad else None)  # type: ignore[attr-defined]
        elif isinstance(g, TensorBase):
            made.append(check_gradient(out, g, i, batched))
        else:
            raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
    if len(made) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(made)} gradients")
    return made


def like_edge(edge: Any) -> TensorBase:
    """A tensor of the shape, dtype and device that gradients along an edge have."""
    node: Any = edge.node
    meta = node._input_metadata[edge.output_nr]
    found: Any = functions["empty"](meta.shape, dtype=meta.dtype, device=meta.device)
    found._node, found._output_nr = node, edge.output_nr
    return cast(TensorBase, found)


def one_for(out: TensorBase) -> TensorBase:
    """The implicit gradient of a scalar."""
    x = out._array
    if x.size != 1:
        where = (
            "" if out._node is None else f"made at {Where(out._node._code, out._node._code_offset)}"
        )
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


def check_gradient(out: Any, g: Any, i: int, batched: bool) -> Any:
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
    if type(g._array) is not type(out._array) and g.device != out.device:
        raise RuntimeError(
            f"invalid gradient at index {i} - expected device {out.device} but got {g.device}"
        )
    if g._array.dtype != out._array.dtype:
        return v.cast(g, out._array.dtype)
    return g


def run_engine(
    roots: list[tuple[Any, int]], grads: list[Any], keep: bool, create: bool,
    targets: list[Capture] | None, store: bool,
) -> None:  # fmt: skip
    """Start the engine: raw arrays, or tensors when the gradients are to be recorded."""
    tensors = create or engine.with_tangents()
    start = [g if tensors or g is None else settled(g._array) for g in grads]
    ends, nrs = [end for end, _ in roots], [nr for _, nr in roots]
    engine.backward(ends, nrs, start, keep, create, targets, store)


def target_of(t: Any) -> Capture:
    """An input whose gradient is wanted."""
    if not isinstance(t, TensorBase):
        if not is_edge(t):
            raise RuntimeError(
                f"all inputs have to be Tensors or GradientEdges, but got {type(t).__name__}"
            )
        node = t.node
        return Capture(node.variable if isinstance(node, AccumulateGradBase) else node, t.output_nr)
    if not requires_grad(t):
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    edge: Any = edge_of_view(t) if t._view is not None else (t._node or t)
    if edge is None:
        edge = t
    return Capture(edge, int(t._output_nr) if isinstance(edge, Node) else 0)


def backward(
    tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None,
    create_graph: bool = False, grad_variables: Any = None, inputs: Any = None,
) -> None:  # fmt: skip
    """Add the gradients of `tensors` to `.grad` of the leaves they were computed from.

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
    try:
        if state.level != 0:
            refuse_inside("backward")
        wanted = None if inputs is None else inputs_of(inputs, "backward")
        outputs = as_tuple(tensors)
        grads = (None,) * len(outputs) if grad_tensors is None else as_tuple(grad_tensors)
        start = first_gradients(outputs, grads, False)
        keep = create_graph if retain_graph is None else retain_graph
        roots = [root_edge(out, i) for i, out in enumerate(outputs)]
        targets: list[Capture] | None = None
        if wanted is not None:
            for t in wanted:
                if isinstance(t, Tensor):
                    t.retain_grad()  # an interior tensor keeps what it is asked for, as in PyTorch
            targets = [target_of(t) for t in wanted]
        run_engine(roots, start, keep, create_graph, targets, True)
    except Exception as error:
        hide_insides(error)
        raise


def gradient_tensor(g: Any) -> Any:
    """A gradient of the engine, which may be a raw array, as a tensor; None stays None."""
    return g if g is None or isinstance(g, TensorBase) else wrap(normal(g))


def grad(
    outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None,
    create_graph: bool = False, only_inputs: bool = True, allow_unused: bool | None = None,
    is_grads_batched: bool = False, materialize_grads: bool = False,
) -> tuple[Tensor, ...]:  # fmt: skip
    """The gradients of `outputs` with respect to `inputs`; no `.grad` is touched.

    A tuple, one gradient an input; for a dict of inputs a dict with its keys.

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
    try:
        if not (create_graph or is_grads_batched):
            quick = grad_of_plain(outputs, inputs, grad_outputs, bool(retain_graph))
            if quick is not None:
                for i, g in enumerate(quick):
                    if g is None:
                        return _with_unused(quick, inputs, i, allow_unused, materialize_grads)
                return cast("tuple[Tensor, ...]", quick)
        outs, ins = as_tuple(outputs), inputs_of(inputs, "grad")
        grads = (None,) * len(outs) if grad_outputs is None else as_tuple(grad_outputs)
        start = first_gradients(outs, grads, is_grads_batched)
        keep = create_graph if retain_graph is None else retain_graph
        way = run_batched if is_grads_batched else once
        found = way(outs, ins, start, keep, create_graph, allow_unused, materialize_grads)
    except Exception as error:
        hide_insides(error)
        raise
    if type(inputs) is dict:  # rare enough that everyone else may count on a tuple
        return cast(Any, dict(zip(inputs, found, strict=True)))  # type: ignore[no-any-return]
    return found


def _with_unused(
    found: tuple[Any, ...], inputs: Any, first: int, allow_unused: bool, materialize: bool
) -> tuple[Any, ...]:
    """Gradients, with what stands for those that there are none of, the first of them `first`."""
    ins = as_tuple(inputs)
    rest = [
        without(ins[i], i, allow_unused, materialize, False) if g is None else g
        for i, g in enumerate(found[first:], first)
    ]
    return (*found[:first], *rest)


def once(
    outs: tuple[Any, ...], ins: tuple[Any, ...], start: list[Any], keep: bool, create: bool,
    allow_unused: bool, materialize: bool,
) -> tuple[Any, ...]:  # fmt: skip
    roots = [root_edge(out, i) for i, out in enumerate(outs)]
    targets = [target_of(t) for t in ins]
    run_engine(roots, start, keep, create, targets, False)
    results: list[Any] = []
    # an array must not be two tensors, which would not know of writes to one another
    seen = {id(g._array): g for g in start if g is not None}
    for i, target in enumerate(targets):
        g = target.grad
        if g is None:
            results.append(without(ins[i], i, allow_unused, materialize, create))
            continue
        results.append(g if create else seen.setdefault(id(g), gradient_tensor(g)))
    return tuple(results)


def without(t: Any, i: int, allow_unused: bool, materialize: bool, create: bool) -> Any:
    """What stands for the gradient of an input that the outputs do not depend on."""
    if not allow_unused:
        raise RuntimeError(
            sentence(
                f"The differentiated Tensor at index {i} appears to not have been used in the "
                "graph. Set allow_unused=True if this is the desired behavior.",
                f"it was made at {Where(t._node._code, t._node._code_offset)}"
                if isinstance(t, TensorBase) and t._node is not None
                else "",
            )
        )
    if not materialize:
        return None
    if not isinstance(t, TensorBase):
        raise RuntimeError(
            "materialize_grads cannot be used when the given input is a GradientEdge"
        )
    return functions["zeros_like"](t, requires_grad=create)


def run_batched(
    outs: tuple[Any, ...], ins: tuple[Any, ...], start: list[Any], keep: bool, create: bool,
    allow_unused: bool, materialize: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """One backward pass for a batch of gradients: what travels back hides the batch."""
    from rushlight.arrays.batched import Batched
    from rushlight.core.transforms.stack import Transform
    from rushlight.core.transforms.vmap import BatchLevel, unbatch

    if all(g is None or not g.shape for g in start):
        raise ValueError("is_grads_batched=True wants grad_outputs with a batch dimension in front")
    for g in start:
        if g is not None and not g.shape:  # the 1 of a scalar output, or given so
            raise ValueError("is_grads_batched=True wants a batch dimension in every grad_output")
    size = next(g.shape[0] for g in start if g is not None)
    batch = BatchLevel(size, "error", create)
    with Transform("vmap", batch):
        rows = [g if g is None else wrap(Batched(g if create else g._array, batch)) for g in start]
        found = once(outs, ins, rows, keep, create, allow_unused, materialize)
    seen = {id(row): g for row, g in zip(rows, start, strict=True)}
    return tuple(None if g is None else seen.setdefault(id(g), unbatch(g, batch)) for g in found)


def _backward(
    self: Any, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
    inputs: Any = None,
) -> None:  # fmt: skip
    """Add this tensor's gradient to `.grad` of the leaves it was computed from.

    >>> x = torch.tensor([1., 2.], requires_grad=True)
    >>> (x * x).backward(torch.tensor([1., 10.]))
    >>> x.grad
    tensor([ 2., 40.])
    """
    try:
        given = gradient is None or isinstance(gradient, TensorBase)
        if inputs is None and create_graph is False and given:
            # the usual calls, without the detours
            if gradient is None and engine.backward_scalar(self, bool(retain_graph)):
                return
            if state.level != 0:
                refuse_inside("backward")
            grads = first_gradients((self,), (gradient,), False)
            edge, nr = root_edge(self, 0)
            g = grads[0]
            keep = bool(retain_graph)
            if g is not None and not engine.with_tangents():
                g = settled(g._array)
            engine.backward([edge], [nr], [g], keep, False, None, True)
            return
        backward(self, gradient, retain_graph, create_graph, inputs=inputs)
    except Exception as error:
        hide_insides(error)
        raise


_backward.__name__ = "backward"
setattr(Tensor, "backward", _backward)  # noqa: B010
