"""Scripts about hooks on tensors: what they get, may return, and see of the leaves by then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.harness import Log, LoggedCases, tensor_hook, vector

cases = LoggedCases()


@cases
def several_hooks_on_a_leaf(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0, 2.0)
    x.register_hook(tensor_hook(log, "a", lambda g: g * 2))
    x.register_hook(tensor_hook(log, "b"))
    x.register_hook(tensor_hook(log, "c", lambda g: g + 1))
    (x * 3 + x).sum().backward()
    log("grad", x.grad)


@cases
def several_hooks_on_a_non_leaf(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0, 2.0)
    y = x * 2
    y.register_hook(tensor_hook(log, "a", lambda g: g * 2))
    y.register_hook(tensor_hook(log, "b"))
    y.retain_grad()
    y.register_hook(tensor_hook(log, "c", lambda g: g + 1))
    (y * 3 + y).sum().backward()
    log("grad", x.grad, y.grad)


@cases
def leaves_of_one_node(torch: Any, log: Log) -> None:
    for n in range(1, 12):
        leaves = [vector(torch, float(i)) for i in range(n)]
        for i, x in enumerate(leaves):
            x.register_hook(tensor_hook(log, str(i)))
        torch.cat(leaves).sum().backward()


@cases
def leaves_of_one_node_beside_others(torch: Any, log: Log) -> None:
    for n in range(1, 9):
        for m in range(1, 4):
            leaves = [vector(torch, float(i)) for i in range(n)]
            inner = [vector(torch, float(-i)) * 2 for i in range(m)]
            for i, x in enumerate(leaves):
                x.register_hook(tensor_hook(log, str(i)))
            for i, x in enumerate(inner):
                x.register_hook(tensor_hook(log, f"inner {i}"))
            mixed = [t for pair in zip(leaves, inner, strict=False) for t in pair] + leaves[m:]
            torch.cat(mixed).sum().backward()


@cases
def a_leaf_completes_before_another(torch: Any, log: Log) -> None:
    a, b = vector(torch, 2.0), vector(torch, 3.0)

    def state(name: str) -> Any:
        return lambda *_: log(name, a.grad, b.grad)

    y = a * b
    z = y * b
    w = z * a
    for name, t in (("y", y), ("z", z), ("w", w)):
        t.register_hook(state(name))
    u = (vector(torch, 5.0) * w).sum()
    u.backward()
    log("end", a.grad, b.grad)


@cases
def interior_hooks_see_leaves_done(torch: Any, log: Log) -> None:
    a, b, c = vector(torch, 2.0), vector(torch, 3.0), vector(torch, 4.0)
    y = a.square()
    z = y * b
    w = z * c
    y.register_hook(lambda g: log("y", a.grad, b.grad, c.grad))
    z.register_hook(lambda g: log("z", a.grad, b.grad, c.grad))
    w.register_hook(lambda g: log("w", a.grad, b.grad, c.grad))
    w.backward()
    log("end", b.grad, c.grad)


@cases
def post_hooks_see_leaves_done(torch: Any, log: Log) -> None:
    a, b, c = vector(torch, 2.0), vector(torch, 3.0), vector(torch, 4.0)
    y = a * 5
    z = y * b
    w = z * c
    for name, t in (("y", y), ("z", z), ("w", w)):
        t.grad_fn.register_hook(lambda gi, go, name=name: log(name, gi, go, a.grad, b.grad, c.grad))
        t.grad_fn.register_prehook(lambda go, name=name: log(name, go, a.grad, b.grad, c.grad))
    w.backward()


@cases
def functions_see_leaves_done(torch: Any, log: Log) -> None:
    a, b, c = vector(torch, 2.0), vector(torch, 3.0), vector(torch, 4.0)

    class Probe(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            log("probe", g, a.grad, b.grad, c.grad)
            return g

    y = Probe.apply(a * 5)
    z = Probe.apply(y * b)
    w = z * c
    w.backward()


@cases
def unpack_hooks_see_leaves_done(torch: Any, log: Log) -> None:
    a, b, c = vector(torch, 2.0), vector(torch, 3.0), vector(torch, 4.0)

    def unpack(x: Any) -> Any:
        log("unpack", x, a.grad, b.grad, c.grad)
        return x

    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach(), unpack):
        y = a * 5
        z = y * b
        w = z.square() * c
    w.backward()


@cases
def removal_during_the_pass(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0)
    y = x * 2
    handles: dict[str, Any] = {}

    def remover(mine: str, other: str) -> Any:
        def hook(g: Any) -> None:
            log(mine, g)
            handles[other].remove()

        return hook

    for t, name in ((x, "x"), (y, "y")):
        handles[name + "1"] = t.register_hook(remover(name + "1", name + "2"))
        handles[name + "2"] = t.register_hook(tensor_hook(log, name + "2"))
        handles[name + "3"] = t.register_hook(remover(name + "3", name + "3"))
    y.sum().backward(retain_graph=True)
    log("again")
    y.sum().backward()


@cases
def removal_of_a_later_tensors_hook(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0)
    y = x * 2
    z = y * 3
    hx = x.register_hook(tensor_hook(log, "x"))
    hy = y.register_hook(tensor_hook(log, "y"))
    z.register_hook(lambda g: (log("z", g), hx.remove(), hy.remove())[0])
    z.sum().backward()


@cases
def registration_during_the_pass(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0)
    y = x * 2
    z = y * 3

    def add(g: Any) -> None:
        log("z", g)
        x.register_hook(tensor_hook(log, "x"))
        y.register_hook(tensor_hook(log, "y"))
        z.register_hook(tensor_hook(log, "z late"))

    z.register_hook(add)
    z.sum().backward(retain_graph=True)
    log("again")
    z.sum().backward()


@cases
def wrong_results(torch: Any, log: Log) -> None:
    results: dict[str, Callable[[Any], Any]] = {
        "int": lambda g: 3,
        "str": lambda g: "s",
        "tuple": lambda g: (g,),
        "shape": lambda g: g.sum(),
        "broadcast": lambda g: g.unsqueeze(0),
        "dtype": lambda g: g.double(),
        "integer": lambda g: g.long(),
        "strided": lambda g: torch.ones(4)[::2],
        "asks": lambda g: torch.ones(2, requires_grad=True),
    }
    for name, result in results.items():
        for where in ("leaf", "inner"):
            x = vector(torch, 1.0, 2.0)
            y = x * 2
            (x if where == "leaf" else y).register_hook(result)

            def go(x: Any = x, y: Any = y) -> Any:
                y.sum().backward()
                return x.grad

            log.attempt(f"{name} {where}", go)


@cases
def named_hooks_in_errors(torch: Any, log: Log) -> None:
    def my_hook(g: Any) -> Any:
        return g.double()

    class Callable_:
        def __call__(self, g: Any) -> Any:
            return g.sum()

    for hook in (my_hook, Callable_(), lambda g: g.long()):
        x = vector(torch, 1.0, 2.0)
        (x * 1).register_hook(hook)
        y = x * 2
        y.register_hook(hook)
        log.attempt("backward", lambda y=y: y.sum().backward())


@cases
def hooks_that_raise(torch: Any, log: Log) -> None:
    a, b = vector(torch, 1.0), vector(torch, 2.0)

    def fail(g: Any) -> None:
        raise KeyError("mine")

    y = a * b
    z = y * b
    h = y.register_hook(fail)
    w = z * vector(torch, 3.0)
    log.attempt("first", lambda: w.backward(retain_graph=True))
    log("after", a.grad, b.grad, torch.is_grad_enabled())
    h.remove()
    log.attempt("second", lambda: w.backward())
    log("after", a.grad, b.grad)


@cases
def leaf_hooks_that_raise(torch: Any, log: Log) -> None:
    a, b, c = vector(torch, 1.0), vector(torch, 2.0), vector(torch, 3.0)

    def fail(g: Any) -> None:
        raise ValueError("no")

    b.register_hook(fail)
    log.attempt("go", lambda: (a * b * c).backward())
    log("after", a.grad, b.grad, c.grad)


@cases
def what_hooks_are_given(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0, 2.0)
    y = x * x

    def hook(g: Any) -> None:
        log(
            type(g).__name__, g.requires_grad, g.is_leaf, g.grad_fn is None,
            list(g.shape), str(g.dtype), torch.is_grad_enabled(), torch.is_inference_mode_enabled(),
        )  # fmt: skip

    y.register_hook(hook)
    x.register_hook(hook)
    y.sum().backward(retain_graph=True)
    y.sum().backward(create_graph=True)
    with torch.no_grad():
        y.sum().backward


@cases
def gradients_written_in_place(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0, 2.0)
    y = x * 3
    y.register_hook(lambda g: g.mul_(10) and None if False else (g.mul_(10), None)[1])
    (y * 1).sum().backward()
    log("grad", x.grad)
    x = vector(torch, 1.0, 2.0)
    x.register_hook(lambda g: (g.mul_(10), None)[1])
    (x * 3).sum().backward()
    log("grad", x.grad)


@cases
def hooks_that_build_graphs(torch: Any, log: Log) -> None:
    x, w = vector(torch, 1.0, 2.0), vector(torch, 3.0, 4.0)
    y = x * 2

    def hook(g: Any) -> Any:
        h = g * w
        log("hook", h.requires_grad, torch.is_grad_enabled())
        return h

    y.register_hook(hook)
    y.sum().backward(retain_graph=True)
    log("grad", x.grad, x.grad.requires_grad, w.grad)
    x.grad = None
    y.sum().backward(create_graph=True)
    log("grad", x.grad, x.grad.requires_grad, w.grad)
    g = x.grad
    x.grad = None
    g.sum().backward()
    log("second", x.grad, w.grad)


@cases
def hooks_that_enable_grad(torch: Any, log: Log) -> None:
    x, w = vector(torch, 1.0, 2.0), vector(torch, 3.0, 4.0)
    y = x * 2

    def hook(g: Any) -> Any:
        with torch.enable_grad():
            h = g * w
        log("hook", h.requires_grad)
        return h

    y.register_hook(hook)
    y.sum().backward()
    log("grad", x.grad, x.grad.requires_grad, w.grad)


@cases
def hooks_under_create_graph(torch: Any, log: Log) -> None:
    x = vector(torch, 2.0)
    y = x * x
    y.register_hook(tensor_hook(log, "y", lambda g: g * 2))
    x.register_hook(tensor_hook(log, "x", lambda g: g * 3))
    (g,) = torch.autograd.grad(y * y, x, create_graph=True)
    log("first", g, g.requires_grad)
    (h,) = torch.autograd.grad(g, x, create_graph=True)
    log("second", h)


@cases
def hooks_and_grad(torch: Any, log: Log) -> None:
    x = vector(torch, 2.0)
    y = x * 3
    z = y * 5
    for name, t in (("x", x), ("y", y), ("z", z)):
        t.register_hook(tensor_hook(log, name, lambda g: g * 10))
        t.register_hook(tensor_hook(log, name + "'"))
    log("x", torch.autograd.grad(z, x, retain_graph=True))
    log("y", torch.autograd.grad(z, y, retain_graph=True))
    log("both", torch.autograd.grad(z, (y, x), retain_graph=True))
    log("all", torch.autograd.grad(z, (z, y, x), retain_graph=True))
    log("edges", torch.autograd.grad(
        z, [torch.autograd.graph.get_gradient_edge(t) for t in (z, y, x)], retain_graph=True
    ))  # fmt: skip
    log("held", x.grad)


@cases
def retained_and_captured(torch: Any, log: Log) -> None:
    x = vector(torch, 2.0)
    y = x * 3
    z = y * 5
    y.retain_grad()
    y.register_hook(tensor_hook(log, "y", lambda g: g * 10))
    log("y", torch.autograd.grad(z, y, retain_graph=True), y.grad)
    log("x", torch.autograd.grad(z, x, retain_graph=True), y.grad)
    log("both", torch.autograd.grad(z, (y, x), retain_graph=True), y.grad)
    z.backward(inputs=[y], retain_graph=True)
    log("inputs y", y.grad, x.grad)
    z.backward(inputs=[y, x], retain_graph=True)
    log("inputs both", y.grad, x.grad)


@cases
def node_hooks_and_captures(torch: Any, log: Log) -> None:
    x = vector(torch, 2.0)
    y = x * 3
    z = y * 5
    acc = y.grad_fn.next_functions[0][0]
    for name, node in (("y", y.grad_fn), ("z", z.grad_fn), ("acc", acc)):
        node.register_prehook(lambda go, name=name: (log(name, "pre", go), (go[0] * 10,))[1])
        node.register_hook(lambda gi, go, name=name: log(name, "post", gi, go))
    log("y", torch.autograd.grad(z, y, retain_graph=True))
    log("x", torch.autograd.grad(z, x, retain_graph=True), x.grad)
    log("both", torch.autograd.grad(z, (y, x), retain_graph=True), x.grad)
    z.backward(inputs=[x], retain_graph=True)
    log("inputs x", x.grad)
    z.backward(inputs=[y], retain_graph=True)
    log("inputs y", y.grad)
    z.backward()
    log("all", x.grad)


@cases
def hooks_that_return_new_tensors(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0)
    keep = torch.tensor([7.0])
    x.register_hook(lambda g: keep)
    (x * 2).backward()
    log(x.grad, x.grad is keep)
    (x * 2).backward()
    log(x.grad, keep)


@cases
def a_hook_sees_a_sum_once(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0, 2.0)
    y = x * 2
    y.register_hook(tensor_hook(log, "y"))
    (y.sum() + (y * y).sum() + y[0] + y.exp().mean() * 0).backward()


@cases
def hooks_on_views(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0, 2.0, 3.0)
    y = x * 1
    v = y[1:]
    v.register_hook(tensor_hook(log, "v", lambda g: g * 2))
    y.register_hook(tensor_hook(log, "y"))
    (v * v).sum().backward()
    log("grad", x.grad)


@cases
def hooks_and_in_place_writes(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0, 2.0, 3.0)
    y = x * 1
    y.register_hook(tensor_hook(log, "before", lambda g: g * 2))
    y.retain_grad()
    y.mul_(3)
    y.register_hook(tensor_hook(log, "after", lambda g: g * 5))
    (y * y).sum().backward()
    log("grad", x.grad, y.grad)


@cases
def hooks_on_one_of_several_outputs(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0, 2.0, 3.0, 4.0)
    a, b = (x * 1).split(2)
    a.register_hook(tensor_hook(log, "a", lambda g: g * 2))
    b.register_hook(tensor_hook(log, "b"))
    (a * 2).sum().backward(retain_graph=True)
    (a * 2 + b).sum().backward(retain_graph=True)
    b.sum().backward()
    log("grad", x.grad)


@cases
def outputs_in_another_order(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0, 2.0, 3.0, 4.0)
    a, b, c, d = (x * 1).unbind()
    for name, t in (("d", d), ("b", b), ("a", a), ("c", c), ("d'", d), ("a'", a)):
        t.register_hook(tensor_hook(log, name))
    (a + b + c + d).backward()


@cases
def the_root_has_hooks(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0)
    x.register_hook(tensor_hook(log, "x", lambda g: g * 2))
    x.backward(torch.tensor([3.0]))
    log("grad", x.grad)
    log("itself", torch.autograd.grad(x, x, torch.tensor([4.0])))
    y = x * 2
    y.register_hook(tensor_hook(log, "y", lambda g: g * 2))
    y.backward(torch.tensor([5.0]))
    log("grad", x.grad)
    torch.autograd.backward([y, x], [torch.tensor([1.0]), torch.tensor([1.0])])
    log("grad", x.grad)


@cases
def several_roots(torch: Any, log: Log) -> None:
    a, b, c = vector(torch, 1.0), vector(torch, 2.0), vector(torch, 3.0)
    y, z = a * b, b * c
    for name, t in (("a", a), ("b", b), ("c", c), ("y", y), ("z", z)):
        t.register_hook(tensor_hook(log, name))
    one = torch.ones(1)
    torch.autograd.backward([y, z], [one, one], retain_graph=True)
    log("again")
    torch.autograd.backward([z, y], [one, one], retain_graph=True)
    log("with leaves")
    torch.autograd.backward([c, y, a, z, b], [one] * 5, retain_graph=True)
    log("twice")
    torch.autograd.backward([y, y, a, a], [one] * 4, retain_graph=True)


@cases
def no_gradient_arrives(torch: Any, log: Log) -> None:
    class Nothing(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x + y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            log("nothing", g)
            return None, g

    x, w = vector(torch, 1.0), vector(torch, 2.0)
    y = x * 2
    v = y.exp()
    z = Nothing.apply(v, w)
    for name, t in (("x", x), ("y", y), ("v", v), ("w", w)):
        t.register_hook(tensor_hook(log, name))
    y.grad_fn.register_prehook(lambda go: log("y pre", go))
    y.grad_fn.register_hook(lambda gi, go: log("y post", gi, go))
    v.grad_fn.register_hook(lambda gi, go: log("v post", gi, go))
    x.register_post_accumulate_grad_hook(lambda p: log("x post acc", p.grad))
    acc = y.grad_fn.next_functions[0][0]
    acc.register_prehook(lambda go: log("acc pre", go))
    acc.register_hook(lambda gi, go: log("acc post", gi, go))
    z.backward()
    log("end", x.grad, w.grad)


@cases
def replacing_nothing(torch: Any, log: Log) -> None:
    class Nothing(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return None

    one = torch.ones(1)
    for which in ("tensor", "pre", "post", "several"):
        x = vector(torch, 1.0)
        y = x * 2
        z = Nothing.apply(y)
        if which == "tensor":
            y.register_hook(lambda g: one)
        elif which == "pre":
            y.grad_fn.register_prehook(lambda go: (one,))
        elif which == "post":
            y.grad_fn.register_hook(lambda gi, go: (one, None))
        else:
            z.grad_fn.register_hook(lambda gi, go: (one,))
        log.attempt(which, lambda z=z: z.backward())
        log("grad", x.grad)


@cases
def refused_registrations(torch: Any, log: Log) -> None:
    plain_tensor, x = torch.ones(2), vector(torch, 1.0)
    y = x * 2
    log.attempt("hook", lambda: plain_tensor.register_hook(print))
    log.attempt("post acc", lambda: plain_tensor.register_post_accumulate_grad_hook(print))
    log.attempt("post acc inner", lambda: y.register_post_accumulate_grad_hook(print))
    log.attempt("retain", lambda: plain_tensor.retain_grad())
    log.attempt("multi", lambda: torch.autograd.graph.register_multi_grad_hook([y], print, mode=1))
    log("hooks", x._backward_hooks, y._backward_hooks)
    x.register_hook(print)
    log("hooks", len(x._backward_hooks))


@cases
def handles(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0)
    h = x.register_hook(tensor_hook(log, "h"))
    log(type(h).__name__, isinstance(h.id, int))
    with x.register_hook(tensor_hook(log, "with")):
        (x * 2).backward()
    (x * 2).backward()
    h.remove()
    h.remove()
    (x * 2).backward()
    k = x.register_post_accumulate_grad_hook(lambda p: log("post", p.grad))
    (x * 2).backward()
    k.remove()
    (x * 2).backward()
    y = x * 2
    pre = y.grad_fn.register_prehook(lambda go: log("pre"))
    post = y.grad_fn.register_hook(lambda gi, go: log("post"))
    y.backward(retain_graph=True)
    pre.remove()
    y.backward(retain_graph=True)
    post.remove()
    y.backward(retain_graph=True)


# --- order, over the whole graph ------------------------------------------------------------------
@cases
def execution_order(torch: Any, log: Log) -> None:
    a, b, c = vector(torch, 1.0), vector(torch, 2.0), vector(torch, 3.0)
    p = a * b
    q = b * c
    r = p + a
    s = q * p
    t = r * s
    u = t + c
    for name, x in zip("abcpqrstu", (a, b, c, p, q, r, s, t, u), strict=True):
        x.register_hook(lambda g, name=name: log(name, g, a.grad, b.grad, c.grad))
    u.backward(retain_graph=True)
    for inputs in ([a], [b, q], [r], [p, c]):
        log("inputs", len(inputs))
        u.backward(inputs=inputs, retain_graph=True)


@cases
def the_first_users_line(torch: Any, log: Log) -> None:
    """Nothing to see: a pass without hooks, and then one with."""
    a, b = vector(torch, 1.0), vector(torch, 2.0)
    (a * b).backward()
    log(a.grad, b.grad)
    y = a * b
    y.register_hook(tensor_hook(log, "y"))
    y.backward()
    log(a.grad, b.grad)


results = cases.results
