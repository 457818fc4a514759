"""Situations with modules as functions: small programs for any library with PyTorch's names."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from tests.func.cases_transforms import TransformCases

cases = TransformCases()


def fixed(t: Any, module: Any) -> Any:
    """A module whose parameters do not depend on chance."""
    with t.no_grad():
        for k, p in enumerate(module.parameters()):
            n = p.numel()
            p.copy_((t.arange(float(n)) * 0.37 + k).sin().reshape(p.shape))
    return module


def linear(t: Any) -> Any:
    return fixed(t, t.nn.Linear(2, 1))


def net(t: Any) -> Any:
    return fixed(t, t.nn.Sequential(t.nn.Linear(2, 3), t.nn.Tanh(), t.nn.Linear(3, 2)))


def X(t: Any) -> Any:
    return t.arange(6.0).reshape(3, 2) / 3


def weights(t: Any) -> Any:
    return {"weight": t.ones(1, 2), "bias": t.zeros(1)}


def tied(t: Any) -> Any:
    class Tied(t.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.a = t.nn.Linear(2, 2)
            self.b = t.nn.Linear(2, 2)
            self.b.weight = self.a.weight

        def forward(self, x: Any) -> Any:
            return self.b(self.a(x))

    return fixed(t, Tied())


def counter(t: Any) -> Any:
    class Counter(t.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.w = t.nn.Parameter(t.ones(2))
            self.register_buffer("seen", t.zeros(2))
            self.register_buffer("fixed", t.ones(2))

        def forward(self, x: Any, scale: float = 1.0, fail: bool = False) -> Any:
            self.seen += x.detach().sum(0)
            if fail:
                raise KeyError("inside")
            return x * self.w * self.fixed * scale + self.seen

    return Counter()


def state(t: Any, module: Any) -> Any:
    return {k: v.clone() for k, v in module.state_dict().items()}


@cases
def one_dict(t: Any) -> Any:
    return t.func.functional_call(linear(t), weights(t), (X(t),))


@cases
def arguments(t: Any) -> Any:
    m, w, f = linear(t), weights(t), t.func.functional_call
    return [
        lambda: f(m, w, X(t)),
        lambda: f(m, w, args=(X(t),)),
        lambda: f(m, w, (), {"input": X(t)}),
        lambda: f(m, w, None, {"input": X(t)}),
        lambda: f(m, w),
        lambda: f(m, w, [X(t)]),
        lambda: f(m, w, (X(t), 1)),
    ]


@cases
def several_dicts(t: Any) -> Any:
    m, w, f = linear(t), weights(t), t.func.functional_call
    parts = [{"weight": w["weight"]}, {"bias": w["bias"]}]
    return [
        lambda: f(m, parts, X(t)),
        lambda: f(m, tuple(parts), X(t)),
        lambda: f(m, [w, {"weight": w["weight"]}], X(t)),
        lambda: f(m, [], X(t)),
        lambda: f(m, OrderedDict(w), X(t)),
        lambda: f(m, 5, X(t)),
        lambda: f(m, [w, 5], X(t)),
        lambda: f(m, "ab", X(t)),
        lambda: f(m, iter([w]), X(t)),
    ]


@cases
def names(t: Any) -> Any:
    m, w, f = linear(t), weights(t), t.func.functional_call
    return [
        lambda: f(m, {"weight": w["weight"]}, X(t)),
        lambda: f(m, {}, X(t)),
        lambda: f(m, {"weight": w["weight"]}, X(t), strict=True),
        lambda: f(m, w, X(t), strict=True),
        lambda: f(m, {**w, "other": w["bias"]}, X(t), strict=True),
        lambda: f(m, {"other": w["bias"]}, X(t), strict=True),
        lambda: f(net(t), {"0.weight": t.zeros(3, 2)}, X(t)),
        lambda: f(net(t), {"0.weight": t.zeros(3, 2)}, X(t), strict=True),
    ]


@cases
def not_a_module(t: Any) -> Any:
    return t.func.functional_call(5, {}, (X(t),))


@cases
def the_module_is_itself_again(t: Any) -> Any:
    m = linear(t)
    before = state(t, m)
    t.func.functional_call(m, weights(t), X(t))
    return before, state(t, m), type(m.weight).__name__, m.weight.requires_grad


@cases
def an_error_leaves_the_module_as_it_was(t: Any) -> Any:
    m = counter(t)
    before = state(t, m)
    values = {"w": t.zeros(2), "seen": t.ones(2)}

    def call() -> Any:
        return t.func.functional_call(m, values, X(t), {"fail": True})

    return before, call, state(t, m), values, type(m.w).__name__


@cases
def buffers_written_by_forward(t: Any) -> Any:
    m = counter(t)
    mine = {"seen": t.full((2,), 10.0)}
    first = t.func.functional_call(m, mine, X(t))
    second = t.func.functional_call(m, {"w": t.zeros(2)}, X(t))
    return first, second, mine, state(t, m)


@cases
def keyword_arguments_of_forward(t: Any) -> Any:
    return t.func.functional_call(counter(t), {"w": t.zeros(2)}, X(t), {"scale": 2.0})


@cases
def tied_weights(t: Any) -> Any:
    m, f = tied(t), t.func.functional_call
    a, b = t.eye(2), t.eye(2) * 2
    return [
        lambda: f(m, {"a.weight": a}, X(t)),
        lambda: f(m, {"b.weight": a}, X(t)),
        lambda: f(m, {"a.weight": a, "b.weight": a}, X(t)),
        lambda: f(m, {"a.weight": a, "b.weight": b}, X(t)),
        lambda: f(m, {"a.weight": a}, X(t), tie_weights=False),
        lambda: f(m, {"b.weight": a}, X(t), tie_weights=False),
        lambda: f(m, {"a.weight": a, "b.weight": b}, X(t), tie_weights=False),
        lambda: f(m, {"a.weight": a, "a.bias": a[0], "b.bias": a[0]}, X(t), strict=True),
        lambda: f(m, {"a.weight": a, "a.bias": a[0], "b.bias": a[0]}, X(t), strict=True,
                  tie_weights=False),
        lambda: m(X(t)),
    ]  # fmt: skip


@cases
def gradients_of_the_parameters(t: Any) -> Any:
    m = net(t)
    params = {k: p.detach() for k, p in m.named_parameters()}

    def loss(params: Any, x: Any) -> Any:
        return t.func.functional_call(m, params, (x,)).pow(2).sum()

    return (
        t.func.grad(loss)(params, X(t)),
        t.func.vmap(t.func.grad(loss), (None, 0))(params, X(t)),
        t.func.jacrev(lambda p: t.func.functional_call(m, p, (X(t)[0],)))(params),
        t.func.hessian(loss)({"2.bias": params["2.bias"]}, X(t)),
    )


@cases
def parameters_that_require_grad(t: Any) -> Any:
    m = net(t)
    params = dict(m.named_parameters())
    y = t.func.functional_call(m, params, (X(t),))
    y.sum().backward()
    rest = t.func.functional_call(m, {"0.bias": t.zeros(3)}, (X(t),))
    return y, {k: p.grad for k, p in params.items()}, rest.requires_grad


@cases
def functional_call_inside_grad_with_a_buffer(t: Any) -> Any:
    m = counter(t)

    def loss(w: Any) -> Any:
        return t.func.functional_call(m, {"w": w, "seen": t.zeros(2)}, X(t)).sum()

    return t.func.grad(loss)(t.ones(2)), state(t, m)


@cases
def a_captured_buffer_may_not_be_written(t: Any) -> Any:
    m = counter(t)
    return t.func.grad(lambda w: t.func.functional_call(m, {"w": w}, X(t)).sum())(t.ones(2))


@cases
def stacked_state(t: Any) -> Any:
    models = [linear(t) for _ in range(3)]
    params, buffers = t.func.stack_module_state(models)
    return params, buffers, [p.is_leaf for p in params.values()]


@cases
def stacked_buffers(t: Any) -> Any:
    models = [counter(t) for _ in range(2)]
    models[1](X(t))
    params, buffers = t.func.stack_module_state(models)
    return params, buffers


@cases
def stacking_refused(t: Any) -> Any:
    def frozen() -> Any:
        m = linear(t)
        m.weight.requires_grad_(False)
        return m

    f = t.func.stack_module_state
    return [
        lambda: f([]),
        lambda: f([linear(t), linear(t).eval()]),
        lambda: f([linear(t), net(t)]),
        lambda: f([linear(t), t.nn.Linear(3, 1)]),
        lambda: f([linear(t), frozen()]),
        lambda: f([frozen(), frozen()])[0],
        lambda: f(5),
        lambda: f((linear(t), linear(t)))[0],
    ]


@cases
def an_ensemble(t: Any) -> Any:
    models = [net(t) for _ in range(3)]
    with t.no_grad():
        for k, m in enumerate(models):
            for p in m.parameters():
                p.mul_(1 + k)
    params, buffers = t.func.stack_module_state(models)
    base = net(t)

    def call(params: Any, buffers: Any, x: Any) -> Any:
        return t.func.functional_call(base, (params, buffers), (x,))

    together = t.func.vmap(call, (0, 0, None))(params, buffers, X(t))
    each = t.func.vmap(call)(params, buffers, X(t)[:, None])
    together.sum().backward()
    return together, each, {k: p.grad for k, p in params.items()}


@cases
def modules_under_vmap(t: Any) -> Any:
    m = net(t)
    return t.func.vmap(m)(X(t)), t.func.vmap(t.nn.LayerNorm(2))(X(t))


results = cases.results
