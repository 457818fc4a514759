"""Scripts about hooks on nodes and leaves, on several gradients, and passes inside passes."""

from __future__ import annotations

from typing import Any

from tests.harness import Log, LoggedCases, tensor_hook, vector

cases = LoggedCases()


@cases
def post_accumulate_order(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0, 2.0)
    y = x * 2
    acc = y.grad_fn.next_functions[0][0]
    acc.register_hook(lambda gi, go: log("post", gi, go, x.grad))
    acc.register_prehook(lambda go: log("pre", go, x.grad))
    x.register_post_accumulate_grad_hook(lambda p: log("post acc", p is x, p.grad))
    x.register_post_accumulate_grad_hook(lambda p: log("post acc 2", p.grad))
    x.register_hook(tensor_hook(log, "tensor", lambda g: g * 5))
    y.sum().backward(retain_graph=True)
    y.sum().backward()


@cases
def post_accumulate_results(torch: Any, log: Log) -> None:
    for value in (None, 0, torch.ones(1)):
        x = vector(torch, 1.0)
        x.register_post_accumulate_grad_hook(lambda p, value=value: value)
        log.attempt("go", lambda x=x: (x * 2).backward())
        log("grad", x.grad)


@cases
def post_accumulate_frees(torch: Any, log: Log) -> None:
    a, b = vector(torch, 1.0), vector(torch, 2.0)

    def free(p: Any) -> None:
        log("step", p.grad, a.grad, b.grad)
        with torch.no_grad():
            p -= p.grad
        p.grad = None

    a.register_post_accumulate_grad_hook(free)
    b.register_post_accumulate_grad_hook(free)
    y = a * b
    (y * 3 + b).backward()
    log("end", a, b, a.grad, b.grad)


@cases
def post_accumulate_and_grad(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0)
    x.register_post_accumulate_grad_hook(lambda p: log("post acc"))
    y = x * 2
    log(torch.autograd.grad(y, x, retain_graph=True))
    y.backward(inputs=[x], retain_graph=True)
    y.backward(create_graph=True)


@cases
def post_accumulate_removal(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0)
    handles: list[Any] = []

    def first(p: Any) -> None:
        log("first")
        handles[1].remove()

    handles.append(x.register_post_accumulate_grad_hook(first))
    handles.append(x.register_post_accumulate_grad_hook(lambda p: log("second")))
    handles.append(x.register_post_accumulate_grad_hook(lambda p: log("third")))
    (x * 2).backward()
    log("again")
    (x * 2).backward()


@cases
def post_accumulate_raises(torch: Any, log: Log) -> None:
    a, b = vector(torch, 1.0), vector(torch, 2.0)

    def fail(p: Any) -> None:
        raise KeyError("here")

    a.register_post_accumulate_grad_hook(fail)
    log.attempt("go", lambda: (a * b).backward())
    log(a.grad, b.grad)


# --- hooks on nodes -------------------------------------------------------------------------------
@cases
def node_hooks_in_order(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0, 2.0)
    y = x * x
    fn = y.grad_fn
    fn.register_hook(lambda gi, go: log("post 1", gi, go))
    fn.register_prehook(lambda go: log("pre 1", go))
    y.register_hook(tensor_hook(log, "tensor 1", lambda g: g * 2))
    fn.register_hook(lambda gi, go: (log("post 2", gi, go), (gi[0] * 10, gi[1]))[1])
    fn.register_prehook(lambda go: (log("pre 2", go), (go[0] + 1,))[1])
    y.register_hook(tensor_hook(log, "tensor 2"))
    fn.register_prehook(lambda go: log("pre 3", go))
    fn.register_hook(lambda gi, go: log("post 3", gi, go))
    y.retain_grad()
    (y * 1).sum().backward()
    log("grad", x.grad, y.grad)


@cases
def node_hooks_see_reduced_gradients(torch: Any, log: Log) -> None:
    x = torch.ones(2, 3, requires_grad=True)
    b = torch.ones(3, requires_grad=True)
    s = torch.ones(1, 1, requires_grad=True)
    h = torch.ones(3, dtype=torch.float64, requires_grad=True)
    for y in (x * b, x + b, x - s, x / s, x @ b, x * h, b.expand(2, 3)):
        y.grad_fn.register_hook(
            lambda gi, go: log([None if g is None else [list(g.shape), str(g.dtype)] for g in gi])
        )
        y.sum().backward()


@cases
def node_hook_results(torch: Any, log: Log) -> None:
    one = torch.ones(2)
    post: dict[str, Any] = {
        "none": None, "same": lambda gi: gi, "one": one, "int": 3, "list": lambda gi: list(gi),
        "short": (one,), "long": (one, one, one), "nones": (None, None), "shape": (one.sum(), None),
        "dtype": (one.double(), None), "extra": (one, one), "string": ("a", None), "empty": (),
    }  # fmt: skip
    for name, result in post.items():
        x = vector(torch, 1.0, 2.0)
        y = x * 2

        def hook(gi: Any, go: Any, result: Any = result) -> Any:
            return result(gi) if callable(result) else result

        y.grad_fn.register_hook(hook)
        log.attempt(name, lambda y=y: y.sum().backward())
        log("grad", x.grad)


@cases
def node_prehook_results(torch: Any, log: Log) -> None:
    one = torch.ones(2)
    pre: dict[str, Any] = {
        "none": None, "one": one, "tuple": (one * 3,), "int": 3, "list": [one], "short": (),
        "long": (one, one), "nones": (None,), "shape": (one.sum(),), "dtype": (one.double(),),
        "string": ("a",),
    }  # fmt: skip
    for name, result in pre.items():
        x = vector(torch, 1.0, 2.0)
        y = x * 2
        y.grad_fn.register_prehook(lambda go, result=result: result)
        log.attempt(name, lambda y=y: y.sum().backward())
        log("grad", x.grad)


@cases
def hooks_of_nodes_with_several_outputs(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0, 2.0, 3.0)
    a, _, c = x.unbind()
    fn = a.grad_fn
    fn.register_prehook(lambda go: log("pre", go))
    fn.register_hook(lambda gi, go: log("post", gi, go))
    (a * 2 + c).backward(retain_graph=True)
    fn.register_prehook(lambda go: (go[0] * 10, go[1], None))
    (a * 2 + c).backward(retain_graph=True)
    log("grad", x.grad)
    values, _ = (x * 1).max(0)
    values.grad_fn.register_prehook(lambda go: log("max pre", go))
    values.backward()


@cases
def hooks_of_function_nodes(torch: Any, log: Log) -> None:
    class Two(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, k: Any, y: Any) -> Any:
            return x * k, y * 1

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            log("backward", g, h)
            return g * 2, None, h

    x, y = vector(torch, 1.0), vector(torch, 2.0)
    for _ in range(2):
        a, b = Two.apply(x, 3.0, y)
        fn = a.grad_fn
        fn.register_prehook(lambda go: log("pre", go))
        fn.register_hook(lambda gi, go: log("post", gi, go))
        a.register_hook(tensor_hook(log, "a", lambda g: g * 7))
        b.register_hook(tensor_hook(log, "b"))
        (a + b).backward(retain_graph=True)
        a.backward(retain_graph=True)
        fn.register_hook(lambda gi, go: (gi[0] * 100, gi[1]))
        (a + b).backward()
        log("grad", x.grad, y.grad)


@cases
def accumulate_grad_hooks(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0)
    y = x * 2
    acc = y.grad_fn.next_functions[0][0]
    h = acc.register_prehook(lambda go: (log("pre", go), (go[0] * 10,))[1])
    k = acc.register_hook(lambda gi, go: log("post", gi, go))
    y.backward(retain_graph=True)
    log("grad", x.grad)
    h.remove()
    y.backward(retain_graph=True)
    k.remove()
    y.backward(retain_graph=True)
    log("grad", x.grad)
    acc.register_hook(lambda gi, go: torch.ones(1))
    log.attempt("result", lambda: y.backward(retain_graph=True))


@cases
def accumulate_grad_hooks_on_a_graph(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0)
    y = x * 2
    torch.autograd.graph.get_gradient_edge(x).node.register_hook(lambda gi, go: log("post", go))
    torch.autograd.graph.get_gradient_edge(x).node.register_prehook(lambda go: log("pre", go))
    y.backward()


@cases
def accumulate_grad_called_by_hand(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0, 2.0)
    acc = torch.autograd.graph.get_gradient_edge(x).node
    log(acc(torch.ones(2)), x.grad)
    x.register_post_accumulate_grad_hook(lambda p: log("post acc"))
    x.register_hook(tensor_hook(log, "hook"))
    acc.register_prehook(lambda go: log("pre", go))
    log(acc(torch.ones(2)), x.grad)


@cases
def nodes_called_by_hand(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0, 2.0)
    y = x * x
    fn = y.grad_fn
    fn.register_hook(lambda gi, go: log("post", gi, go))
    fn.register_prehook(lambda go: log("pre", go))
    y.register_hook(tensor_hook(log, "tensor"))
    got = fn(torch.ones(2))
    log("got", got, [g.requires_grad for g in got])
    z = x * 3
    got = z.grad_fn(torch.ones(2))
    log("got", got)
    s = x.exp()
    log("got", s.grad_fn(torch.ones(2)))
    log.attempt("too many", lambda: s.grad_fn(torch.ones(2), torch.ones(2)))
    log.attempt("none", lambda: s.grad_fn(None))
    log.attempt("nothing", lambda: s.grad_fn())
    log.attempt("number", lambda: s.grad_fn(1.0))


@cases
def post_hooks_that_raise(torch: Any, log: Log) -> None:
    x, w = vector(torch, 1.0), vector(torch, 2.0)
    y = x * 2
    z = y * w

    def fail(*args: Any) -> None:
        raise LookupError("there")

    h = y.grad_fn.register_hook(fail)
    log.attempt("post", lambda: z.backward(retain_graph=True))
    log(x.grad, w.grad)
    h.remove()
    h = y.grad_fn.register_prehook(fail)
    log.attempt("pre", lambda: z.backward(retain_graph=True))
    log(x.grad, w.grad)
    h.remove()
    z.backward()
    log(x.grad, w.grad)


@cases
def node_hooks_removed_in_the_pass(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0)
    y = x * 2
    fn = y.grad_fn
    handles: list[Any] = []

    def first(*args: Any) -> None:
        log("first", len(args))
        for h in handles:
            h.remove()

    fn.register_prehook(first)
    handles.append(fn.register_prehook(lambda go: log("second pre")))
    fn.register_hook(first)
    handles.append(fn.register_hook(lambda gi, go: log("second post")))
    y.backward(retain_graph=True)
    handles.append(fn.register_hook(lambda gi, go: log("third post")))
    fn.register_prehook(lambda go: log("third pre"))
    y.backward()


@cases
def hook_dicts(torch: Any, log: Log) -> None:
    from collections import OrderedDict

    x = vector(torch, 1.0)
    y = x * 2
    hooks = OrderedDict()  # type: ignore[var-annotated]
    hooks[0] = lambda gi, go: log("zero")
    y.grad_fn._register_hook_dict(hooks)
    y.grad_fn.register_hook(lambda gi, go: log("registered"))
    hooks[1] = lambda gi, go: log("one")
    y.backward()


# --- hooks on several gradients -------------------------------------------------------------------
@cases
def multi_hooks(torch: Any, log: Log) -> None:
    a, b = vector(torch, 1.0), vector(torch, 2.0)
    c, d = a * b, a + b
    register = torch.autograd.graph.register_multi_grad_hook
    register((a, b, c, d), lambda gs: log("all", gs, a.grad, b.grad))
    register((c, d), lambda gs: log("inner", gs, a.grad, b.grad))
    register((a, b, c, d), lambda g: log("any", g, a.grad, b.grad), mode="any")
    (c * d).backward(retain_graph=True)
    log("c")
    c.sum().backward(retain_graph=True)
    log("d")
    d.sum().backward(retain_graph=True)
    log("inputs")
    (c * d).backward(inputs=[b], retain_graph=True)
    log("interior")
    (c * d).backward(inputs=[c], retain_graph=True)


@cases
def multi_hooks_beside_others(torch: Any, log: Log) -> None:
    a, b = vector(torch, 1.0), vector(torch, 2.0)
    c = a * b
    c.register_hook(tensor_hook(log, "c first", lambda g: g * 2))
    torch.autograd.graph.register_multi_grad_hook((a, c), lambda gs: log("all", gs))
    c.register_hook(tensor_hook(log, "c last", lambda g: g * 3))
    a.register_hook(tensor_hook(log, "a last", lambda g: g * 5))
    c.sum().backward()
    log(a.grad, b.grad)


@cases
def multi_hooks_in_nested_passes(torch: Any, log: Log) -> None:
    a, b = vector(torch, 1.0), vector(torch, 2.0)
    c = a * 2
    d = b * 3

    def inner(gs: Any) -> None:
        log("inner", gs)

    torch.autograd.graph.register_multi_grad_hook((c, d), inner)
    e = c * d
    c.register_hook(lambda g: (log("c"), d.sum().backward(retain_graph=True))[0])
    e.sum().backward(retain_graph=True)
    log(a.grad, b.grad)


@cases
def multi_hook_results_are_ignored(torch: Any, log: Log) -> None:
    a = vector(torch, 1.0)
    b = a * 2
    log.attempt("any", lambda: None)
    torch.autograd.graph.register_multi_grad_hook((a, b), lambda gs: torch.ones(1) * 99)
    log.attempt("all", b.backward)
    log(a.grad)
    c = a * 2
    torch.autograd.graph.register_multi_grad_hook((c,), lambda g: torch.ones(1) * 99, mode="any")
    log.attempt("any", c.backward)
    log(a.grad)


# --- passes inside passes -------------------------------------------------------------------------
@cases
def a_hook_runs_backward(torch: Any, log: Log) -> None:
    a, b = vector(torch, 1.0), vector(torch, 2.0)
    c, d = a * 3, b * 5
    e = c * d

    def hook(g: Any) -> None:
        log("start", g, a.grad, b.grad)
        d.backward(retain_graph=True)
        log("end", a.grad, b.grad)

    c.register_hook(hook)
    a.register_hook(tensor_hook(log, "a"))
    b.register_hook(tensor_hook(log, "b"))
    e.backward(retain_graph=True)
    log(a.grad, b.grad)


@cases
def a_function_runs_backward_on_shared_leaves(torch: Any, log: Log) -> None:
    w = vector(torch, 2.0)

    class Inner(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            log("before", w.grad)
            with torch.enable_grad():
                (w * 10).backward()
            log("after", w.grad)
            return g

    x = vector(torch, 1.0)
    z = Inner.apply(x * w) * w
    z.backward()
    log(x.grad, w.grad)


@cases
def deep_passes(torch: Any, log: Log) -> None:
    class Deep(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, n: int) -> Any:
            ctx.n = n
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            if ctx.n > 0:
                with torch.enable_grad():
                    y = x.detach().requires_grad_()
                    Deep.apply(y, ctx.n - 1).sum().backward()
                return g * y.grad + 1, None
            return g * 2, None

    for n in (1, 5, 30, 100):
        x = vector(torch, 1.0)
        Deep.apply(x, n).sum().backward()
        log(n, x.grad)


@cases
def deep_hooks(torch: Any, log: Log) -> None:
    def level(n: int) -> Any:
        with torch.enable_grad():
            x = vector(torch, 1.0)
            y = x * 2
        y.register_hook(lambda g: None if n == 0 else g * level(n - 1) - 1)
        y.backward()
        return x.grad

    def at_leaf(n: int) -> Any:
        with torch.enable_grad():
            x = vector(torch, 1.0)
            y = x * 2
        x.register_hook(lambda g: None if n == 0 else g + at_leaf(n - 1))
        y.backward()
        return x.grad

    for n in (1, 5, 30, 100):
        log(n, level(n), at_leaf(n))


@cases
def an_error_deep_inside(torch: Any, log: Log) -> None:
    def level(n: int) -> None:
        with torch.enable_grad():
            y = vector(torch, 1.0) * 2
        y.register_hook(lambda g: [][1] if n == 0 else level(n - 1))
        y.backward()

    for n in (0, 1, 40):
        log.attempt(str(n), lambda n=n: level(n))
    log(torch.is_grad_enabled())


@cases
def an_inner_pass_that_raises(torch: Any, log: Log) -> None:
    a = vector(torch, 1.0)
    y = a * 2

    def hook(g: Any) -> None:
        with torch.enable_grad():
            z = a * 3
        z.register_hook(lambda g: [][1])
        z.backward()

    h = y.register_hook(hook)
    log.attempt("outer", lambda: y.backward(retain_graph=True))
    log(a.grad, torch.is_grad_enabled())
    h.remove()
    y.backward()
    log(a.grad)


results = cases.results
