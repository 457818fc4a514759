"""Scripts about backward hooks on modules, and about handles."""

from __future__ import annotations

from typing import Any

from tests.harness import Log, LoggedCases, vector

cases = LoggedCases()


def scaled(torch: Any, factor: float = 2.0) -> Any:
    class Scaled(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return x * factor

    return Scaled()


def two(torch: Any) -> Any:
    class Two(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any, n: int, y: Any) -> Any:
            return x * n, "text", y + x

    return Two()


@cases
def full_hooks(torch: Any, log: Log) -> None:
    m = scaled(torch)
    m.register_full_backward_hook(lambda m, gi, go: log("first", gi, go))
    m.register_full_backward_pre_hook(lambda m, go: log("pre", go))
    m.register_full_backward_hook(lambda m, gi, go: (gi[0] * 10,))
    m.register_full_backward_hook(lambda m, gi, go: log("last", gi, go))
    m.register_full_backward_pre_hook(lambda m, go: (go[0] * 3,))
    m.register_full_backward_pre_hook(lambda m, go: log("pre 2", go))
    x = vector(torch, 1.0)
    y = m(x * 1)
    y.register_hook(lambda g: log("tensor", g))
    y.backward()
    log(x.grad)


@cases
def order_of_hooks(torch: Any, log: Log) -> None:
    m, k = scaled(torch), scaled(torch, 5.0)
    for name, module in (("m", m), ("k", k)):
        module.register_full_backward_pre_hook(lambda _, go, name=name: log(name, "pre", go))
        module.register_full_backward_hook(lambda _, gi, go, name=name: log(name, gi, go))
    module = torch.nn.Sequential(m, k)
    module.register_full_backward_hook(lambda _, gi, go: log("all", gi, go))
    x = vector(torch, 1.0)
    x.register_hook(lambda g: log("x", g))
    module(x).backward()
    log(x.grad)


@cases
def several_values(torch: Any, log: Log) -> None:
    m = two(torch)
    m.register_full_backward_pre_hook(lambda m, go: log("pre", go))
    m.register_full_backward_hook(lambda m, gi, go: log("post", gi, go))
    x, y = vector(torch, 1.0), vector(torch, 2.0)
    a, text, b = m(x, 3, y)
    log(text, a.grad_fn.name(), b.grad_fn is a.grad_fn)
    (a + b).backward()
    a, _, b = m(x, 3, y)
    a.backward()
    log(x.grad, y.grad)


@cases
def inputs_that_do_not_ask(torch: Any, log: Log) -> None:
    layer = torch.nn.Linear(1, 1)
    with torch.no_grad():
        layer.weight.fill_(2.0)
        layer.bias.fill_(1.0)
    layer.register_full_backward_hook(lambda m, gi, go: log("post", gi, go))
    layer.register_full_backward_pre_hook(lambda m, go: log("pre", go))
    layer(torch.ones(1)).backward()
    log(layer.weight.grad, layer.bias.grad)
    with torch.no_grad():
        log(layer(torch.ones(1)))


@cases
def wrong_results(torch: Any, log: Log) -> None:
    one = torch.ones(1)
    results: dict[str, Any] = {
        "none": None, "number": 3, "tensor": one, "two": (one, one), "empty": (),
        "shape": (torch.ones(2),), "dtype": (one.double(),), "nothing": (None,),
    }  # fmt: skip
    for name, result in results.items():
        for kind in ("post", "pre"):
            m = scaled(torch)
            if kind == "post":
                m.register_full_backward_hook(lambda m, gi, go, result=result: result)
            else:
                m.register_full_backward_pre_hook(lambda m, go, result=result: result)
            x = vector(torch, 1.0)
            y = m(x)
            log.attempt(f"{kind} {name}", lambda y=y: y.backward())
            log(x.grad)


@cases
def written_results(torch: Any, log: Log) -> None:
    m = scaled(torch)
    m.register_full_backward_hook(lambda m, gi, go: log("post", gi, go))
    x = vector(torch, 1.0)
    y = m(x)
    log.attempt("in place", lambda: y.add_(1))
    z = m(x * 1)
    log.attempt("out of place", lambda: (z + 1).backward())
    log.attempt("input", lambda: torch.nn.ReLU(inplace=True)(m(x)))


@cases
def removed_hooks(torch: Any, log: Log) -> None:
    m = scaled(torch)
    first = m.register_full_backward_hook(lambda m, gi, go: log("first"))
    second = m.register_full_backward_hook(lambda m, gi, go: log("second"), prepend=True)
    x = vector(torch, 1.0)
    y = m(x)
    first.remove()
    y.backward()
    log("again")
    m(x).backward()
    second.remove()
    log(len(m._backward_hooks))
    m(x).backward()


@cases
def called_twice(torch: Any, log: Log) -> None:
    m = scaled(torch)
    m.register_full_backward_hook(lambda m, gi, go: log("post", gi, go))
    x = vector(torch, 1.0)
    m(m(x)).backward()
    log(x.grad)
    y = m(x)
    y.backward(retain_graph=True)
    y.backward()
    log(torch.autograd.grad(m(x), x))
    log(torch.autograd.grad(m(x), x, create_graph=True)[0].requires_grad)


@cases
def old_hooks(torch: Any, log: Log) -> None:
    m = scaled(torch)
    m.register_backward_hook(lambda m, gi, go: log("old", gi, go))
    log.attempt("mixed", lambda: m.register_full_backward_hook(print))
    x = vector(torch, 1.0)
    m(x).backward()
    log(x.grad)
    k = scaled(torch)
    k.register_full_backward_hook(lambda *args: None)
    log.attempt("mixed", lambda: k.register_backward_hook(print))


@cases
def handles_by_hand(torch: Any, log: Log) -> None:
    from importlib import import_module

    hooks = import_module(f"{torch.__name__}.utils.hooks")
    table: dict[int, Any] = __import__("collections").OrderedDict()
    other: dict[int, Any] = __import__("collections").OrderedDict()
    handle = hooks.RemovableHandle(table, extra_dict=other)
    table[handle.id] = other[handle.id] = 1
    nxt = hooks.RemovableHandle(table)
    log(nxt.id - handle.id)
    with handle as same:
        log(same is handle)
    log(len(table), len(other))
    marked = hooks.unserializable_hook(lambda g: g)
    log(marked.__torch_unserializable__)
    x = vector(torch, 1.0)
    x.register_hook(marked)
    hooks.warn_if_has_hooks(x)


results = cases.results
