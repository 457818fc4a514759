"""Scripts about hooks on saved tensors."""

from __future__ import annotations

from typing import Any

from tests.harness import Log, LoggedCases, tensor_hook, vector

cases = LoggedCases()


@cases
def saved_hooks_order(torch: Any, log: Log) -> None:
    x, w = vector(torch, 1.0), vector(torch, 2.0)

    def pack(t: Any) -> Any:
        log("pack", t, torch.is_grad_enabled())
        return t.detach().clone()

    def unpack(t: Any) -> Any:
        log("unpack", t, torch.is_grad_enabled())
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = x * w
        z = y.exp() * y
    y.register_hook(tensor_hook(log, "y"))
    z.grad_fn.register_prehook(lambda go: log("z pre"))
    z.grad_fn.register_hook(lambda gi, go: log("z post"))
    z.backward(retain_graph=True)
    z.backward(create_graph=True)


@cases
def saved_hooks_nest(torch: Any, log: Log) -> None:
    def pair(name: str) -> Any:
        return torch.autograd.graph.saved_tensors_hooks(
            lambda t: (log("pack", name, t), t.detach())[1],
            lambda t: (log("unpack", name, t), t)[1],
        )

    x = vector(torch, 3.0)
    with pair("outer"):
        a = x.square()
        with pair("inner"):
            b = a.square()
        c = b.square()
    c.backward()


@cases
def saved_hooks_that_use_saving_ops(torch: Any, log: Log) -> None:
    w = vector(torch, 2.0)
    depth = [0]

    def pack(t: Any) -> Any:
        depth[0] += 1
        log("pack", t, depth[0])
        if depth[0] < 3:
            with torch.enable_grad():
                (w * t).sum()
        return t.detach()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y = w.square()
    y.backward()
    log(w.grad)


@cases
def saved_hook_errors(torch: Any, log: Log) -> None:
    def failing(*args: Any) -> Any:
        raise KeyError("pack")

    x = vector(torch, 1.0, 2.0)
    hooks = torch.autograd.graph.saved_tensors_hooks

    def pack_fails() -> None:
        with hooks(failing, lambda t: t):
            x.square()

    log.attempt("pack", pack_fails)
    log(torch.is_grad_enabled())
    with hooks(lambda t: t.detach(), failing):
        y = x.square()
    log.attempt("unpack", lambda: y.sum().backward())
    for name, bad in (
        ("number", lambda t: 1),
        ("none", lambda t: None),
        ("shape", lambda t: torch.ones(3)),
        ("tuple", lambda t: (t,)),
    ):
        with hooks(lambda t: t.detach(), bad):
            y = x.square()
        log.attempt(name, lambda y=y: y.sum().backward())

    def writing(t: Any) -> Any:
        with torch.no_grad():
            t.mul_(2)
        return t

    def pack_writes() -> None:
        with hooks(writing, lambda t: t):
            x.square()

    log.attempt("writes", pack_writes)
    log.attempt("not callable", lambda: hooks(1, 2).__enter__())


@cases
def saved_hooks_disabled(torch: Any, log: Log) -> None:
    graph = torch.autograd.graph
    x = vector(torch, 2.0)

    def inside() -> None:
        with graph.disable_saved_tensors_hooks("off"), graph.save_on_cpu():
            pass

    log.attempt("inside", inside)

    def outside() -> None:
        with graph.save_on_cpu(), graph.disable_saved_tensors_hooks("off"):
            x.square()

    log.attempt("outside", outside)
    with graph.disable_saved_tensors_hooks("off"):
        with graph.disable_saved_tensors_hooks("inner"):
            log.attempt("nested", lambda: graph.save_on_cpu().__enter__())
        log.attempt("left", lambda: graph.save_on_cpu().__enter__())
        y = x.square()
    y.backward()
    log(x.grad)
    with graph.save_on_cpu():
        z = x.square()
    z.backward()
    log(x.grad)


@cases
def raw_saved_hooks(torch: Any, log: Log) -> None:
    x = vector(torch, 2.0)
    y = x.square()
    saved = y.grad_fn._raw_saved_self
    saved.register_hooks(
        lambda t: (log("pack", t), t.detach())[1], lambda t: (log("unpack", t), t * 10)[1]
    )
    log(y.grad_fn._saved_self)
    y.backward()
    log(x.grad)
    log.attempt("freed", lambda: saved.register_hooks(lambda t: t, lambda t: t))
    z = x.square()
    z.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)
    log.attempt("twice", lambda: z.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t))
    log.attempt("no callables", lambda: x.exp().grad_fn._raw_saved_result.register_hooks(1, 2))


@cases
def saved_in_functions(torch: Any, log: Log) -> None:
    class Square(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x * x
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            log("backward")
            x, y = ctx.saved_tensors
            log("unpacked", x, y, x.requires_grad, y.requires_grad)
            ctx.saved_tensors
            return 2 * x * g

    x = vector(torch, 3.0)
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: (log("pack", t), t.detach())[1], lambda t: (log("unpack", t), t)[1]
    ):
        y = Square.apply(x)
    y.backward()


results = cases.results
