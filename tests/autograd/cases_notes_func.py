"""Functions of functions: per-sample gradients, ensembles, Jacobians, forward mode, limits.

The situations of PyTorch's notes and tutorials, in small.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

from tests.harness import Log, LoggedCases

cases = LoggedCases()


# --- Whirlwind tour -------------------------------------------------------------------------------
@cases
def whirlwind_tour(torch: Any, log: Log) -> None:
    from_func = torch.func
    grad, vmap, vjp, jvp = from_func.grad, from_func.vmap, from_func.vjp, from_func.jvp
    x = torch.tensor(1.0)
    log(torch.allclose(grad(torch.sin)(x), x.cos()))
    log(torch.allclose(grad(grad(torch.sin))(x), -x.sin()))
    weights = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)

    def model(feature_vec: Any) -> Any:
        return feature_vec.dot(weights).relu()

    examples = torch.arange(15.0).reshape(5, 3)
    log(vmap(model)(examples))

    def compute_loss(weights: Any, example: Any, target: Any) -> Any:
        y = example.dot(weights).relu()
        return ((y - target) ** 2).mean()

    targets = torch.arange(5.0)
    log(vmap(grad(compute_loss), in_dims=(None, 0, 0))(weights, examples, targets))
    log(from_func.grad_and_value(compute_loss)(weights, examples[0], targets[0]))
    inputs = torch.arange(3.0)
    outputs, vjp_fn = vjp(torch.sin, inputs)
    log(outputs, *vjp_fn(torch.ones(3)))
    log(jvp(lambda a, b: a * b, (inputs, inputs + 1), (torch.ones(3), torch.ones(3))))
    log(from_func.jacrev(torch.sin)(inputs))
    log(from_func.jacfwd(torch.sin)(inputs))
    log(vmap(from_func.jacrev(torch.sin))(torch.arange(6.0).reshape(2, 3)))
    log(from_func.hessian(lambda t: t.sin().sum())(inputs))
    log(from_func.jacrev(from_func.jacrev(lambda t: t.sin().sum()))(inputs))
    out, lin = from_func.linearize(torch.sin, inputs)
    log(out, lin(torch.ones(3)))


@cases
def auxiliary_values(torch: Any, log: Log) -> None:
    from_func = torch.func
    x = torch.arange(3.0)

    def f(t: Any) -> Any:
        return t.sin().sum(), {"y": t * 2}

    log(from_func.grad(f, has_aux=True)(x))
    log(from_func.grad_and_value(f, has_aux=True)(x))
    y, back, aux = from_func.vjp(f, x, has_aux=True)
    log(y, back(torch.tensor(2.0)), aux)
    log(from_func.jvp(f, (x,), (torch.ones(3),), has_aux=True))
    log(from_func.jacrev(f, has_aux=True)(x))
    log(from_func.jacfwd(f, has_aux=True)(x))
    log(from_func.grad(lambda a, b: (a * b).sum(), argnums=(0, 1))(x, x + 1))
    log(from_func.jacrev(lambda a, b: a * b, argnums=(0, 1))(x, x + 1))
    log(from_func.jacrev(lambda d: {"s": d["a"].sin(), "c": d["b"] * d["a"]})({"a": x, "b": x}))
    log(from_func.jacrev(torch.sin, chunk_size=2)(x))


# --- Per-sample gradients -------------------------------------------------------------------------
def network(torch: Any) -> Any:
    """A class of small networks."""

    class Net(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.fc1 = torch.nn.Linear(4, 8)
            self.fc2 = torch.nn.Linear(8, 3)

        def forward(self, x: Any) -> Any:
            x = torch.nn.functional.relu(self.fc1(x.flatten(1)))
            return torch.nn.functional.log_softmax(self.fc2(x), dim=1)

    return Net


@cases
def per_sample_gradients(torch: Any, log: Log) -> None:
    func = torch.func
    torch.manual_seed(3)
    model = network(torch)()
    data, targets = torch.randn(6, 1, 2, 2), torch.randint(3, (6,))

    def loss_fn(predictions: Any, targets: Any) -> Any:
        return torch.nn.functional.nll_loss(predictions, targets)

    def compute_grad(sample: Any, target: Any) -> Any:
        loss = loss_fn(model(sample.unsqueeze(0)), target.unsqueeze(0))
        return torch.autograd.grad(loss, list(model.parameters()))

    slow = [compute_grad(data[i], targets[i]) for i in range(6)]
    slow_stacked = [torch.stack(shards) for shards in zip(*slow, strict=True)]
    params = {k: v.detach() for k, v in model.named_parameters()}
    buffers = {k: v.detach() for k, v in model.named_buffers()}

    def compute_loss(params: Any, buffers: Any, sample: Any, target: Any) -> Any:
        batch = sample.unsqueeze(0)
        return loss_fn(
            func.functional_call(model, (params, buffers), (batch,)), target.unsqueeze(0)
        )

    ft = func.vmap(func.grad(compute_loss), in_dims=(None, None, 0, 0))
    fast = ft(params, buffers, data, targets)
    log(list(fast), [list(g.shape) for g in fast.values()])
    for a, b in zip(slow_stacked, fast.values(), strict=True):
        log(torch.allclose(a, b, atol=1e-5), round(b.abs().sum().item(), 3))
    fast = func.vmap(func.grad(compute_loss), (None, None, 0, 0), chunk_size=4)(
        params, buffers, data, targets
    )
    log([torch.allclose(a, b, atol=1e-5) for a, b in zip(slow_stacked, fast.values(), strict=True)])


# --- Ensembles ------------------------------------------------------------------------------------
@cases
def ensembles(torch: Any, log: Log) -> None:
    func = torch.func
    torch.manual_seed(5)
    Net = network(torch)
    models = [Net() for _ in range(4)]
    data = torch.randn(4, 2, 4)
    one_each = [m(data[i]) for i, m in enumerate(models)]
    params, buffers = func.stack_module_state(models)
    log({k: [list(v.shape), v.requires_grad, v.is_leaf] for k, v in params.items()}, buffers)
    base = copy.deepcopy(models[0])

    def fmodel(params: Any, buffers: Any, x: Any) -> Any:
        return func.functional_call(base, (params, buffers), (x,))

    got = func.vmap(fmodel)(params, buffers, data)
    log(torch.allclose(got, torch.stack(one_each), atol=1e-5), got.requires_grad)
    same = func.vmap(fmodel, in_dims=(0, 0, None))(params, buffers, data[0])
    log(torch.allclose(same, torch.stack([m(data[0]) for m in models]), atol=1e-5))
    got.sum().backward()
    log({k: [list(v.grad.shape), round(v.grad.sum().item(), 2)] for k, v in params.items()})
    log.attempt("training differs", lambda: func.stack_module_state([models[0], models[1].eval()]))
    log.attempt("classes", lambda: func.stack_module_state([base, torch.nn.Linear(1, 1)]))
    log.attempt("no model", lambda: func.stack_module_state([]))


# --- Jacobians, Hessians, hvp, vhp ----------------------------------------------------------------
@cases
def jacobians(torch: Any, log: Log) -> None:
    func = torch.func
    torch.manual_seed(7)
    weight, bias, x = torch.randn(3, 4), torch.randn(3), torch.randn(4)

    def predict(weight: Any, bias: Any, x: Any) -> Any:
        return torch.nn.functional.linear(x, weight, bias).tanh()

    xp = x.clone().requires_grad_()
    rows = [torch.autograd.grad(predict(weight, bias, xp), xp, vec)[0] for vec in torch.eye(3)]
    want = torch.stack(rows)
    _, vjp_fn = func.vjp(partial(predict, weight, bias), x)
    (by_vmap,) = func.vmap(vjp_fn)(torch.eye(3))
    log(torch.allclose(want, by_vmap), want)
    for transform in (func.jacrev, func.jacfwd):
        log(torch.allclose(transform(predict, argnums=2)(weight, bias, x), want))
        both = transform(predict, argnums=(0, 1))(weight, bias, x)
        log([list(j.shape) for j in both], [round(j.sum().item(), 3) for j in both])
    hessian = func.hessian(predict, argnums=2)(weight, bias, x)
    log(list(hessian.shape), hessian)
    for outer in (func.jacrev, func.jacfwd):
        for inner in (func.jacrev, func.jacfwd):
            got = outer(inner(predict, argnums=2), argnums=2)(weight, bias, x)
            log(torch.allclose(got, hessian, atol=1e-6))
    batch = torch.randn(5, 4)
    log(list(func.vmap(func.jacrev(predict, argnums=2), in_dims=(None, None, 0))(
        weight, bias, batch).shape))  # fmt: skip
    log(list(func.vmap(func.hessian(predict, argnums=2), in_dims=(None, None, 0))(
        weight, bias, batch).shape))  # fmt: skip

    def hvp(f: Any, primals: Any, tangents: Any) -> Any:
        return func.jvp(func.grad(f), primals, tangents)[1]

    def hvp_revrev(f: Any, primals: Any, tangents: Any) -> Any:
        _, vjp_fn = func.vjp(func.grad(f), *primals)
        return vjp_fn(*tangents)

    def f(t: Any) -> Any:
        return t.sin().sum()

    v = torch.ones(4)
    log(hvp(f, (x,), (v,)), hvp_revrev(f, (x,), (v,)), -x.sin() * v)
    functional = torch.autograd.functional
    log(functional.jacobian(partial(predict, weight, bias), x))
    log(functional.hessian(f, x), functional.hvp(f, x, v), functional.vhp(f, x, v))


# --- Forward mode ---------------------------------------------------------------------------------
@cases
def forward_mode(torch: Any, log: Log) -> None:
    fwAD = torch.autograd.forward_ad
    primal, tangent = torch.arange(4.0), torch.ones(4)

    def fn(x: Any, y: Any) -> Any:
        return x**2 + y**2

    with fwAD.dual_level():
        dual_input = fwAD.make_dual(primal, tangent)
        log(fwAD.unpack_dual(dual_input).tangent is tangent)
        plain_tensor = torch.ones(4)
        dual_output = fn(dual_input, plain_tensor)
        jvp = fwAD.unpack_dual(dual_output).tangent
        log(jvp, repr(dual_output), repr(fwAD.unpack_dual(plain_tensor)))
    log.attempt("outside", lambda: fwAD.make_dual(primal, tangent))
    log.attempt("unpack outside", lambda: fwAD.unpack_dual(dual_output).tangent)
    torch.manual_seed(1)
    model = torch.nn.Linear(2, 2)
    input = torch.ones(3, 2)
    params = dict(model.named_parameters())
    tangents = {name: torch.ones_like(p) for name, p in params.items()}
    with fwAD.dual_level():
        for name, p in params.items():
            delattr(model, name)
            setattr(model, name, fwAD.make_dual(p, tangents[name]))
        out = model(input)
        log(fwAD.unpack_dual(out).tangent)
    log(torch.func.jvp(lambda x: x.exp(), (primal,), (tangent,)))
    model = torch.nn.Linear(2, 2)
    params = dict(model.named_parameters())
    log(torch.func.jvp(lambda p: torch.func.functional_call(model, p, input), (params,),
        ({k: torch.ones_like(v) for k, v in params.items()},))[1])  # fmt: skip


@cases
def forward_mode_of_functions(torch: Any, log: Log) -> None:
    fwAD = torch.autograd.forward_ad

    class Fn(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, foo: Any) -> Any:
            result = torch.exp(foo)
            ctx.result = result
            return result

        @staticmethod
        def jvp(ctx: Any, gI: Any) -> Any:
            gO = gI * ctx.result
            del ctx.result
            return gO

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    x = torch.tensor([0.5, 1.0], dtype=torch.float64, requires_grad=True)
    with fwAD.dual_level():
        d = fwAD.make_dual(x, torch.ones_like(x))
        log(fwAD.unpack_dual(Fn.apply(d)).tangent)
    log(torch.autograd.gradcheck(
        Fn.apply, (x,), check_forward_ad=True, check_backward_ad=False,
        check_undefined_grad=False, check_batched_grad=False,
    ))  # fmt: skip


# --- Limits ---------------------------------------------------------------------------------------
@cases
def limits_of_transforms(torch: Any, log: Log) -> None:
    func = torch.func
    x = torch.arange(3.0)
    kept: list[Any] = []

    def leaks(t: Any) -> Any:
        kept.append(t)
        return t.sin().sum()

    func.grad(leaks)(x)
    log.attempt("leaked", lambda: repr(kept[0].detach().sum().item()))
    log.attempt("branch", lambda: func.vmap(lambda t: t * 2 if t.sum() > 0 else t)(x))
    log.attempt("item", lambda: func.vmap(lambda t: t.item())(x))
    log.attempt("nonzero", lambda: func.vmap(lambda t: t.nonzero())(torch.ones(2, 3)))
    log.attempt("masked", lambda: func.vmap(lambda t: t[t > 0])(torch.ones(2, 3)))
    log.attempt("out=", lambda: func.vmap(lambda t: torch.abs(t, out=torch.zeros(())))(x))

    def in_place(t: Any, y: Any) -> Any:
        t.add_(y)
        return t

    log(func.vmap(in_place, in_dims=(0, None))(torch.ones(3, 2), torch.ones(2)))
    log.attempt("random", lambda: func.vmap(lambda t: t + torch.randn(()))(x))
    torch.manual_seed(0)
    same = func.vmap(lambda t: torch.rand(2) + 0 * t, randomness="same")(x)
    log(bool((same == same[0]).all()))
    other = func.vmap(lambda t: torch.rand(2) + 0 * t, randomness="different")(x)
    log(bool((other == other[0]).all()))
    log.attempt("which", lambda: func.vmap(lambda t: t, randomness="maybe")(x))

    log.attempt("grad inside", lambda: func.grad(lambda t: t.sin().backward())(torch.tensor(1.0)))

    def with_no_grad(t: Any) -> Any:
        with torch.no_grad():
            c = t**2
        return t - c

    log(func.grad(with_no_grad)(torch.tensor(3.0)))
    with torch.no_grad():
        log(func.grad(with_no_grad)(torch.tensor(3.0)))
    log.attempt("not scalar", lambda: func.grad(torch.sin)(x))
    log.attempt("not tensor", lambda: func.grad(lambda t: 1.0)(x))
    log.attempt("in_dims", lambda: func.vmap(torch.add, in_dims=0)(x, 1.0))
    log.attempt("sizes", lambda: func.vmap(torch.add)(x, torch.ones(2)))
    log.attempt("all None", lambda: func.vmap(torch.add, in_dims=(None, None))(x, x))
    log.attempt("too large", lambda: func.vmap(torch.sin, in_dims=3)(x))
    log.attempt("no tensor", lambda: func.vmap(lambda t: 3)(x))
    log.attempt("out_dims", lambda: func.vmap(lambda t: (t, t), out_dims=(0, 0, 0))(x))
    log.attempt("data-dependent", lambda: func.vmap(lambda t: t.tolist())(x))
    log.attempt("ask", lambda: func.grad(lambda t: t.requires_grad_().sum())(x))
    log.attempt("detach_", lambda: func.grad(lambda t: (t * t.clone().detach_()).sum())(x))
    log.attempt("strings", lambda: func.grad(lambda s: s)("a"))


@cases
def batches_of_everything(torch: Any, log: Log) -> None:
    vmap = torch.vmap
    x, y = torch.arange(6.0).reshape(2, 3), torch.arange(6.0, 12.0).reshape(2, 3)
    log(vmap(torch.dot)(x, y), vmap(torch.dot, in_dims=1)(x, y), vmap(vmap(torch.mul))(x, y))
    log(vmap(torch.mul, (0, 1))(x, y.t()), vmap(lambda t: t * 2, out_dims=1)(x))
    log(vmap(lambda d: d["x"] * d["y"])({"x": x, "y": y}))
    log(
        vmap(lambda d: torch.dot(d["x"], d["y"]), in_dims=({"x": 0, "y": None},))(
            {"x": x, "y": y[0]}
        )
    )
    log(vmap(lambda t: {"a": t.sum(), "b": (t, t * 2)})(x))
    log(vmap(lambda t: (t.sum(), t), out_dims=(0, 1))(x))
    log(vmap(torch.sum, in_dims=-1)(x), vmap(lambda t: t, out_dims=-1)(x))
    log(
        vmap(lambda a, b: a + b, in_dims=(0, None))(x, 3), vmap(lambda t: t.pow(2), chunk_size=1)(x)
    )
    log(vmap(lambda t: torch.zeros(2) + t.sum())(x))
    w = torch.ones(3, requires_grad=True)
    vmap(lambda t: t.dot(w))(x).sum().backward()
    log(w.grad)
    log(vmap(lambda t: repr(type(t).__name__) and t.shape[0] * t)(x))
    log(list(vmap(lambda t: t.unsqueeze(0).expand(4, 3))(x).shape))
    log(vmap(torch.func.grad(lambda t: (t**3).sum()))(x))
    log(torch.func.grad(lambda t: vmap(torch.dot)(t, t).sum())(x))


results = cases.results
