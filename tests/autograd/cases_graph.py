"""Scripts about nodes, edges, `grad`, `inputs=` and `.grad`, run on PyTorch and on rushlight."""

from __future__ import annotations

import warnings
from typing import Any

from tests.harness import Log, LoggedCases, vector

cases = LoggedCases()


def describe(node: Any) -> Any:
    """A node as nested lists: its name and its edges, to the leaves."""
    if node is None:
        return None
    return [node.name(), [[describe(n), nr] for n, nr in node.next_functions]]


# --- nodes ----------------------------------------------------------------------------------------
@cases
def nodes(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0, 2.0)
    y = (x * 2).sin() + x
    log(describe(y.grad_fn))
    acc = y.grad_fn.next_functions[1][0]
    log(acc.next_functions, acc.variable is x, acc._sequence_nr() == 2**64 - 1, acc.name())
    log(type(y.grad_fn).__name__, type(acc).__name__, y.grad_fn.requires_grad, acc.requires_grad)
    log(y.grad_fn is y.grad_fn, y.grad_fn.next_functions[1][0] is acc)
    fn = y.grad_fn.next_functions[0][0]
    log(fn._sequence_nr() < y.grad_fn._sequence_nr())
    log(y.grad_fn._sequence_nr() - fn._sequence_nr())
    fn._set_sequence_nr(10**6)
    log(fn._sequence_nr())
    log(hash(fn) == hash(fn), fn == fn, fn == acc, bool(fn))
    fn.metadata["a"] = 1
    log(fn.metadata, acc.metadata, isinstance(fn, torch.autograd.graph.Node))


@cases
def node_attributes_are_fixed(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0)
    fn = (x * 2).grad_fn
    for name in ("next_functions", "metadata", "requires_grad", "_saved_other"):
        log.attempt(name, lambda name=name: type(_error(lambda: setattr(fn, name, 1))).__name__)
    log.attempt("missing", lambda: fn.missing)


def _error(call: Any) -> Any:
    try:
        call()
    except Exception as error:
        return error
    return None


@cases
def metadata_of_inputs(torch: Any, log: Log) -> None:
    x = torch.ones(2, 3, requires_grad=True)
    b = torch.ones(3, requires_grad=True)
    d = torch.ones(3, 3, dtype=torch.float64, requires_grad=True)
    c = torch.ones(2, 3, dtype=torch.complex64, requires_grad=True)
    made = {
        "mul": x * 2, "pair": x * b, "sum": x.sum(), "dim": x.sum(1), "keep": x.sum(1, True),
        "matmul": x @ b, "view": x.view(3, 2), "select": x[0], "index": x[torch.tensor([1])],
        "t": x.t(), "expand": b.expand(4, 3), "exp": x.exp(), "chain": (x * 2 + 1).sin() * 3,
        "to": x.to(torch.float64), "mixed": x * d[0], "cat": torch.cat([x, x]), "leaf": x,
        "stack": torch.stack([x, x]), "where": torch.where(x > 0, x, b), "abs": c.abs(),
        "mean": x.mean(), "softmax": x.softmax(1), "reshape": x.reshape(-1), "clone": x.clone(),
        "norm": x.norm(), "max": x.max(), "gather": x.gather(1, torch.zeros(2, 1).long()),
        "cumsum": x.cumsum(0), "mm": d @ d, "diag": b.diag(), "prod": x.prod(), "var": x.var(),
        "pow": x ** 2, "neg": -x, "clamp": x.clamp(0, 1), "relu": x.relu(), "outer": b.outer(b),
        "linear": torch.nn.functional.linear(x, d.float()), "squeeze": x[:1].squeeze(),
        "repeat": b.repeat(2), "flip": x.flip(0), "masked": x.masked_fill(x > 0, 1.0),
        "scatter": x.scatter(1, torch.zeros(2, 1).long(), 5.0), "logsumexp": x.logsumexp(1),
    }  # fmt: skip
    for name, y in made.items():
        node = torch.autograd.graph.get_gradient_edge(y).node
        log.attempt(name, lambda node=node: [
            [list(m.shape), str(m.dtype), str(m.device), m.is_nested_tensor]
            for m in node._input_metadata
        ])  # fmt: skip


@cases
def metadata_of_several_outputs(torch: Any, log: Log) -> None:
    x = torch.ones(4, 3, requires_grad=True)
    for y in (x.split(2)[0], x.unbind(1)[0], x.max(1)[0], x.sort(0)[0], x.chunk(4)[1]):
        log([[list(m.shape), str(m.dtype)] for m in y.grad_fn._input_metadata], y.output_nr)
    z = x * 1
    z[0] = 5
    log([[list(m.shape), str(m.dtype)] for m in z.grad_fn._input_metadata], z.grad_fn.name())


@cases
def edges(torch: Any, log: Log) -> None:
    graph = torch.autograd.graph
    x = vector(torch, 1.0, 2.0)
    y = x * 3
    a, b = (y * 2).unbind()
    z = (y * y).sum() + a + b
    points = {"x": x, "y": y, "a": a, "b": b}
    for name, t in points.items():
        edge = graph.get_gradient_edge(t)
        log(name, edge.node.name(), edge.output_nr, edge.ownership_token, len(edge))
        for out in (z, graph.get_gradient_edge(z)):
            log.attempt(name, lambda out=out, edge=edge: torch.autograd.grad(
                out, edge, torch.tensor(1.0), retain_graph=True
            ))  # fmt: skip
            log.attempt(name, lambda out=out, t=t: torch.autograd.grad(
                out, [t], [torch.tensor(1.0)], retain_graph=True
            ))  # fmt: skip
    e = graph.get_gradient_edge(y)
    torch.autograd.backward(e, torch.ones(2), retain_graph=True)
    log(x.grad)
    torch.autograd.backward([e, z], [torch.ones(2), None], retain_graph=True)
    log(x.grad)
    log.attempt("plain", lambda: graph.get_gradient_edge(torch.ones(1)))
    log.attempt("no grad", lambda: torch.autograd.backward(e, retain_graph=True))
    log.attempt("grad", lambda: torch.autograd.grad(e, x, retain_graph=True))
    log.attempt("wrong shape", lambda: torch.autograd.grad(e, x, torch.ones(3), retain_graph=True))
    log.attempt("mixed", lambda: torch.autograd.grad(
        [e, z], [e, x, graph.get_gradient_edge(x)], [torch.ones(2), None], retain_graph=True
    ))  # fmt: skip


@cases
def edges_as_inputs(torch: Any, log: Log) -> None:
    graph = torch.autograd.graph
    x, w = vector(torch, 1.0), vector(torch, 2.0)
    y = x * w
    z = y * w
    ex, ey = graph.get_gradient_edge(x), graph.get_gradient_edge(y)
    log.attempt("leaf", lambda: z.backward(inputs=[ex], retain_graph=True))
    log(x.grad, w.grad)
    log.attempt("inner", lambda: z.backward(inputs=[ey], retain_graph=True))
    log(x.grad, w.grad, y.grad)
    log.attempt("one", lambda: z.backward(inputs=ex, retain_graph=True))
    log(x.grad)
    log.attempt("backward", lambda: torch.autograd.backward(z, inputs=ey, retain_graph=True))
    log.attempt("empty", lambda: z.backward(inputs=[], retain_graph=True))
    log.attempt("empty tuple", lambda: torch.autograd.backward(z, inputs=(), retain_graph=True))
    log.attempt("number", lambda: torch.autograd.grad(z, [3], retain_graph=True))
    log.attempt("number out", lambda: torch.autograd.grad([3], x, retain_graph=True))
    log.attempt("plain", lambda: z.backward(inputs=[torch.ones(1)], retain_graph=True))


@cases
def inputs_inside(torch: Any, log: Log) -> None:
    x, w = vector(torch, 1.0), vector(torch, 2.0)
    y = x * w
    u = y * 3
    z = (u * w + y).sum()

    def clear() -> None:
        for t in (x, w, y, u):
            t.grad = None

    for name, inputs in {
        "y": [y], "u": [u], "w": [w], "yw": [y, w], "uy": [u, y], "xy": [x, y], "twice": [y, y],
        "all": [x, w, y, u],
    }.items():  # fmt: skip
        z.backward(inputs=inputs, retain_graph=True)
        log(name, x.grad, w.grad, y.grad, u.grad, y.retains_grad, u.retains_grad)
        clear()
        log(name, torch.autograd.grad(z, inputs, retain_graph=True))
        log(x.grad, w.grad, y.grad, u.grad)
        clear()
    z.backward()
    log("end", x.grad, w.grad, y.grad, u.grad)


@cases
def unused_inputs(torch: Any, log: Log) -> None:
    x, w = vector(torch, 1.0), vector(torch, 2.0)
    y = x * 2
    other = w * 2
    log.attempt("grad", lambda: torch.autograd.grad(y, w, retain_graph=True))
    log.attempt("edge", lambda: torch.autograd.grad(
        y, torch.autograd.graph.get_gradient_edge(w), retain_graph=True
    ))  # fmt: skip
    log.attempt(
        "allow", lambda: torch.autograd.grad(y, [w, x], allow_unused=True, retain_graph=True)
    )
    log.attempt("zeros", lambda: torch.autograd.grad(
        y, [other, x], materialize_grads=True, retain_graph=True
    ))  # fmt: skip
    log.attempt("edge zeros", lambda: torch.autograd.grad(
        y, [torch.autograd.graph.get_gradient_edge(w)], materialize_grads=True, retain_graph=True
    ))  # fmt: skip
    y.backward(inputs=[w, other], retain_graph=True)
    log(x.grad, w.grad, other.grad)
    log.attempt("plain", lambda: torch.autograd.grad(y, torch.ones(1), retain_graph=True))
    log.attempt("none", lambda: torch.autograd.grad(y, [], retain_graph=True))
    log.attempt("root", lambda: torch.autograd.grad(torch.ones(1), x))
    log.attempt("grads", lambda: torch.autograd.grad([y, y], x, [torch.ones(1)]))
    log.attempt("type", lambda: torch.autograd.grad(y, x, [3.0]))
    log.attempt("both", lambda: torch.autograd.grad(
        y, x, allow_unused=False, materialize_grads=True
    ))  # fmt: skip


@cases
def given_gradients(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0, 2.0)
    y = x * 2
    log.attempt("implicit", lambda: y.backward(retain_graph=True))
    log.attempt("shape", lambda: y.backward(torch.ones(3), retain_graph=True))
    log.attempt("scalar", lambda: y.backward(torch.tensor(1.0), retain_graph=True))
    log.attempt("complex", lambda: y.backward(torch.ones(2) + 0j, retain_graph=True))
    log.attempt("double", lambda: y.backward(torch.ones(2).double(), retain_graph=True))
    log.attempt("int", lambda: y.backward(torch.ones(2).long(), retain_graph=True))
    log(x.grad, str(x.grad.dtype))
    log.attempt("number", lambda: y.backward(2.0, retain_graph=True))
    log.attempt("list", lambda: y.backward([1.0, 2.0], retain_graph=True))
    log.attempt("lengths", lambda: torch.autograd.backward([y], [None, None]))
    log.attempt("no roots", lambda: torch.autograd.backward([]))
    log.attempt("plain root", lambda: torch.ones(2).backward(torch.ones(2)))
    log.attempt("two", lambda: torch.autograd.backward([y, y], [torch.ones(2)]))
    log.attempt("old name", lambda: torch.autograd.backward(
        y, grad_tensors=torch.ones(2), grad_variables=torch.ones(2)
    ))  # fmt: skip
    c = torch.ones(1, dtype=torch.complex64, requires_grad=True)
    log.attempt("complex implicit", lambda: (c * 2).sum().backward())
    log.attempt("int out", lambda: torch.autograd.grad(torch.ones(1).long(), x))


@cases
def dicts_of_inputs(torch: Any, log: Log) -> None:
    from types import MappingProxyType

    x, w = vector(torch, 1.0), vector(torch, 2.0)
    y = x * w
    log(torch.autograd.grad(y, {"w": w, "x": x}, retain_graph=True))
    y.backward(inputs={"w": w}, retain_graph=True)
    log(x.grad, w.grad)
    for inputs in (MappingProxyType({"x": x}), {}, ()):
        log.attempt("grad", lambda inputs=inputs: torch.autograd.grad(y, inputs))
        log.attempt("backward", lambda inputs=inputs: y.backward(inputs=inputs))


@cases
def grads_of_grads(torch: Any, log: Log) -> None:
    x = vector(torch, 2.0)
    y = x**3
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    (h,) = torch.autograd.grad(g, x, create_graph=True)
    log(g, h, g.requires_grad, g.is_leaf, h.requires_grad)
    (k,) = torch.autograd.grad(h, x)
    log(k, k.requires_grad, k.is_leaf)
    z = (x * 2).sum()
    (g,) = torch.autograd.grad(z, x, create_graph=True)
    log(g, g.requires_grad)
    log.attempt("no more", lambda: torch.autograd.grad(g, x))
    with torch.no_grad():
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        log(g.requires_grad)


# --- where gradients end --------------------------------------------------------------------------
@cases
def in_place_or_not(torch: Any, log: Log) -> None:
    def kept(first: dict[str, bool], second: dict[str, bool]) -> None:
        x = vector(torch, 1.0, 2.0)
        y = (x * x).sum()
        y.backward(**first)
        g, version = x.grad, x.grad._version
        y.backward(**second)
        log(x.grad is g, g, x.grad, x.grad.requires_grad, g.requires_grad, g._version - version)
        log(x.grad.is_leaf, None if x.grad.grad_fn is None else x.grad.grad_fn.name())
        log(None if g.grad_fn is None else g.grad_fn.name())

    keep, create = {"retain_graph": True}, {"create_graph": True}
    for first in (keep, create):
        for second in ({}, keep, create):
            kept(first, second)


@cases
def strides_of_gradients(torch: Any, log: Log) -> None:
    leaves = {
        "plain": torch.ones(2, 3), "t": torch.ones(3, 2).t(), "slice": torch.ones(2, 6)[:, ::2],
        "expanded": torch.ones(3).expand(2, 3), "permuted": torch.ones(2, 3, 4).permute(2, 0, 1),
    }  # fmt: skip
    for name, values in leaves.items():
        for create in (False, True):
            for scale in (2.0, torch.full(values.shape, 2.0), torch.tensor(2.0)):
                x = values.detach().requires_grad_()
                (x * scale).sum().backward(create_graph=create)
                log(name, create, list(x.grad.stride()), x.grad.is_contiguous())
            x = values.detach().requires_grad_()
            y = x.t() if x.ndim == 2 else x
            (y * torch.ones(y.shape)).sum().backward(create_graph=create)
            log(name, list(x.grad.stride()))


@cases
def kept_gradients(torch: Any, log: Log) -> None:
    x = torch.ones(3, 2, requires_grad=True)
    y = x.t() * 1
    y.retain_grad()
    log(y.retains_grad, x.retains_grad, y.is_leaf)
    (y * y).sum().backward(retain_graph=True)
    g = y.grad
    log(list(g.stride()), g.requires_grad)
    (y * y).sum().backward(retain_graph=True)
    log(y.grad is g, g[0, 0], y.grad[0, 0])
    (y * y).sum().backward(create_graph=True)
    log(y.grad.requires_grad, y.grad.grad_fn.name(), y.grad[0, 0])
    y.grad = None
    (y * y).sum().backward(create_graph=True)
    log(y.grad.requires_grad, y.grad.grad_fn.name())
    x.retain_grad()
    log(x.retains_grad)
    y.retain_grad()
    z = y.detach()
    log(z.retains_grad, z.grad)
    y.detach_()
    log(y.retains_grad, y.is_leaf)


@cases
def gradients_are_nobodys_else(torch: Any, log: Log) -> None:
    a, b = vector(torch, 1.0), vector(torch, 2.0)
    g = torch.ones(1)
    (a + b).backward(g)
    log(a.grad is b.grad, a.grad is g, a.grad.data_ptr() == b.grad.data_ptr())
    a.grad.mul_(5)
    log(b.grad, g)
    x = vector(torch, 3.0)
    x.backward(g)
    log(x.grad is g, x.grad.data_ptr() == g.data_ptr())


@cases
def assigning_grad(torch: Any, log: Log) -> None:
    x = torch.ones(2, 3, requires_grad=True)
    values: dict[str, Any] = {
        "number": 3, "string": "s", "list": [1.0], "shape": torch.ones(3), "scalar": torch.ones(()),
        "broadcast": torch.ones(1, 3), "double": torch.ones(2, 3).double(),
        "int": torch.ones(2, 3).long(), "itself": x, "half": torch.ones(2, 3).half(),
        "bool": torch.ones(2, 3).bool(), "complex": torch.ones(2, 3) + 0j,
        "bfloat": torch.ones(2, 3).bfloat16(), "good": torch.full((2, 3), 2.0),
        "strided": torch.ones(3, 2).t(), "asking": torch.ones(2, 3, requires_grad=True),
        "computed": torch.ones(2, 3, requires_grad=True) * 2, "none": None,
        "expanded": torch.ones(3).expand(2, 3),
    }  # fmt: skip
    for name, value in values.items():
        log.attempt(name, lambda value=value: setattr(x, "grad", value))
        log(x.grad is value)
    x.grad = torch.zeros(2, 3)
    (x * 2).sum().backward()
    log(x.grad)
    del x.grad
    log(x.grad)
    p = torch.ones(2)
    p.grad = torch.ones(2)
    log(p.grad, p.requires_grad)
    y = x * 2
    log.attempt("interior", lambda: setattr(y, "grad", torch.ones(2, 3)))
    log(y.grad)
    x.grad = torch.zeros(3).expand(2, 3)
    log.attempt("expanded", lambda: (x * 2).sum().backward())
    d = torch.ones(2, dtype=torch.float64, requires_grad=True)
    log.attempt("float", lambda: setattr(d, "grad", torch.ones(2)))


@cases
def held_gradients_written(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0, 2.0)
    held = torch.zeros(2)
    x.grad = held
    (x * 2).sum().backward()
    log(x.grad is held, held, held._version)
    x.grad = held.t() if False else torch.zeros(4)[::2]
    (x * 2).sum().backward()
    log(x.grad, list(x.grad.stride()))
    asking = torch.zeros(2, requires_grad=True)
    x.grad = asking
    log.attempt("asking", lambda: (x * 2).sum().backward())
    log(x.grad is asking, asking)


@cases
def flags(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0)
    y = x * 2
    d, plain = y.detach(), torch.ones(1)
    for t in (x, y, d, plain):
        log(t.is_leaf, t.requires_grad, t.grad_fn is None, t.retains_grad, t.output_nr)
    for name, value in (("is_leaf", True), ("retains_grad", True), ("grad_fn", None),
                        ("output_nr", 1), ("_version", 3)):  # fmt: skip
        error = _error(lambda name=name, value=value: setattr(y, name, value))
        log(name, type(error).__name__)
    log.attempt("off", lambda: setattr(y, "requires_grad", False))
    log.attempt("on", lambda: setattr(y, "requires_grad", True))
    log.attempt("same", lambda: y.requires_grad_())
    log.attempt("not a bool", lambda: setattr(x, "requires_grad", 1))
    log.attempt("integers", lambda: torch.ones(1).long().requires_grad_())
    log.attempt("integers 2", lambda: setattr(torch.ones(1).long(), "requires_grad", True))
    log.attempt("detach_", lambda: y[0].detach_())
    log.attempt("deepcopy", lambda: __import__("copy").deepcopy(y))
    x.requires_grad_(False)
    log(x.requires_grad, y.requires_grad)
    z = x * 2
    log(z.requires_grad, z.is_leaf)
    y.detach_()
    log(y.is_leaf, y.requires_grad, y.grad_fn is None)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        (vector(torch, 1.0) * 2).grad
    log([str(w.message)[:80] for w in said], [w.category.__name__ for w in said])


@cases
def freed_graphs(torch: Any, log: Log) -> None:
    x = vector(torch, 2.0)
    y = x * x
    y.backward()
    log.attempt("again", lambda: y.backward())
    log.attempt("saved", lambda: y.grad_fn._saved_self)
    log.attempt("raw", lambda: y.grad_fn._raw_saved_self is None)
    z = x + x
    z.backward()
    log.attempt("nothing saved", lambda: z.backward())
    w = x.exp().sum()
    torch.autograd.grad(w, x)
    log.attempt("after grad", lambda: torch.autograd.grad(w, x))
    u = (x * 2).square()
    v = u * 3
    torch.autograd.grad(v, u)
    log.attempt("behind the input", lambda: torch.autograd.grad(u, x))
    v = (x * 2).square() * 3
    torch.autograd.grad(v, x, retain_graph=True)
    log.attempt("kept", lambda: torch.autograd.grad(v, x))
    log(x.grad)


@cases
def tasks(torch: Any, log: Log) -> None:
    graph = torch.autograd.graph
    current = getattr(graph, "_current_graph_task_id", None) or torch._C._current_graph_task_id
    will = getattr(graph, "_will_engine_execute_node", None) or torch._C._will_engine_execute_node
    x, w = vector(torch, 1.0), vector(torch, 2.0)
    y = x * w
    u = w * 3
    z = (y * u).sum()
    ends = [graph.get_gradient_edge(t).node for t in (x, w, y, u)]
    seen: list[int] = []

    def hook(g: Any) -> None:
        seen.append(current())
        for end in ends:
            log.attempt("will", lambda end=end: will(end))

    y.register_hook(hook)
    z.backward(retain_graph=True)
    z.backward(inputs=[x], retain_graph=True)
    z.backward(inputs=[y], retain_graph=True)
    torch.autograd.grad(z, y, retain_graph=True)
    log.attempt("grad", lambda: torch.autograd.grad(z, w, retain_graph=True))
    torch.autograd.grad(z, u, retain_graph=True)
    log(current(), len(set(seen)), sorted(seen) == seen)
    log.attempt("outside", lambda: will(ends[0]))


results = cases.results
