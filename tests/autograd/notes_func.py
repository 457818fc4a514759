"""The situations of PyTorch's notes on functions of functions, in small.

See `scripted`. Each script is one section of a note or tutorial.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import numpy as np
from scripted import Bank, Log, attempt, leaf

script = Bank()


# --- Whirlwind tour --------------------------------------------------------------------------------
@script
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


@script
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


# --- Per-sample gradients --------------------------------------------------------------------------
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


@script
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
@script
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
    attempt(log, "training differs", lambda: func.stack_module_state([models[0], models[1].eval()]))
    attempt(log, "classes", lambda: func.stack_module_state([base, torch.nn.Linear(1, 1)]))
    attempt(log, "no model", lambda: func.stack_module_state([]))


# --- Jacobians, Hessians, hvp, vhp ------------------------------------------------------------------
@script
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

    f = lambda t: t.sin().sum()  # noqa: E731
    v = torch.ones(4)
    log(hvp(f, (x,), (v,)), hvp_revrev(f, (x,), (v,)), -x.sin() * v)
    functional = torch.autograd.functional
    log(functional.jacobian(partial(predict, weight, bias), x))
    log(functional.hessian(f, x), functional.hvp(f, x, v), functional.vhp(f, x, v))


# --- Forward mode ---------------------------------------------------------------------------------
@script
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
    attempt(log, "outside", lambda: fwAD.make_dual(primal, tangent))
    attempt(log, "unpack outside", lambda: fwAD.unpack_dual(dual_output).tangent)
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


@script
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
@script
def limits_of_transforms(torch: Any, log: Log) -> None:
    func = torch.func
    x = torch.arange(3.0)
    kept: list[Any] = []

    def leaks(t: Any) -> Any:
        kept.append(t)
        return t.sin().sum()

    func.grad(leaks)(x)
    attempt(log, "leaked", lambda: repr(kept[0].detach().sum().item()))
    attempt(log, "branch", lambda: func.vmap(lambda t: t * 2 if t.sum() > 0 else t)(x))
    attempt(log, "item", lambda: func.vmap(lambda t: t.item())(x))
    attempt(log, "nonzero", lambda: func.vmap(lambda t: t.nonzero())(torch.ones(2, 3)))
    attempt(log, "masked", lambda: func.vmap(lambda t: t[t > 0])(torch.ones(2, 3)))
    attempt(log, "out=", lambda: func.vmap(lambda t: torch.abs(t, out=torch.zeros(())))(x))

    def in_place(t: Any, y: Any) -> Any:
        t.add_(y)
        return t

    log(func.vmap(in_place, in_dims=(0, None))(torch.ones(3, 2), torch.ones(2)))
    attempt(log, "random", lambda: func.vmap(lambda t: t + torch.randn(()))(x))
    torch.manual_seed(0)
    same = func.vmap(lambda t: torch.rand(2) + 0 * t, randomness="same")(x)
    log(bool((same == same[0]).all()))
    other = func.vmap(lambda t: torch.rand(2) + 0 * t, randomness="different")(x)
    log(bool((other == other[0]).all()))
    attempt(log, "which", lambda: func.vmap(lambda t: t, randomness="maybe")(x))

    attempt(log, "grad inside", lambda: func.grad(lambda t: t.sin().backward())(torch.tensor(1.0)))

    def with_no_grad(t: Any) -> Any:
        with torch.no_grad():
            c = t**2
        return t - c

    log(func.grad(with_no_grad)(torch.tensor(3.0)))
    with torch.no_grad():
        log(func.grad(with_no_grad)(torch.tensor(3.0)))
    attempt(log, "not scalar", lambda: func.grad(torch.sin)(x))
    attempt(log, "not tensor", lambda: func.grad(lambda t: 1.0)(x))
    attempt(log, "in_dims", lambda: func.vmap(torch.add, in_dims=0)(x, 1.0))
    attempt(log, "sizes", lambda: func.vmap(torch.add)(x, torch.ones(2)))
    attempt(log, "all None", lambda: func.vmap(torch.add, in_dims=(None, None))(x, x))
    attempt(log, "too large", lambda: func.vmap(torch.sin, in_dims=3)(x))
    attempt(log, "no tensor", lambda: func.vmap(lambda t: 3)(x))
    attempt(log, "out_dims", lambda: func.vmap(lambda t: (t, t), out_dims=(0, 0, 0))(x))
    attempt(log, "data-dependent", lambda: func.vmap(lambda t: t.tolist())(x))
    attempt(log, "ask", lambda: func.grad(lambda t: t.requires_grad_().sum())(x))
    attempt(log, "detach_", lambda: func.grad(lambda t: (t * t.clone().detach_()).sum())(x))
    attempt(log, "strings", lambda: func.grad(lambda s: s)("a"))


@script
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


# --- Extending: functions ------------------------------------------------------------------------
@script
def linear_function(torch: Any, log: Log) -> None:
    class LinearFunction(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(input: Any, weight: Any, bias: Any) -> Any:
            output = input.mm(weight.t())
            if bias is not None:
                output += bias.unsqueeze(0).expand_as(output)
            return output

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            input, weight, bias = inputs
            ctx.save_for_backward(input, weight, bias)

        @staticmethod
        def backward(ctx: Any, grad_output: Any) -> Any:
            input, weight, bias = ctx.saved_tensors
            grad_input = grad_weight = grad_bias = None
            if ctx.needs_input_grad[0]:
                grad_input = grad_output.mm(weight)
            if ctx.needs_input_grad[1]:
                grad_weight = grad_output.t().mm(input)
            if bias is not None and ctx.needs_input_grad[2]:
                grad_bias = grad_output.sum(0)
            return grad_input, grad_weight, grad_bias

    class Linear(torch.nn.Module):  # type: ignore[misc]
        def __init__(self, n: int, m: int) -> None:
            super().__init__()
            self.n, self.m = n, m
            self.weight = torch.nn.Parameter(torch.ones(m, n))
            self.bias = torch.nn.Parameter(torch.zeros(m))
            self.register_parameter("other", None)

        def forward(self, x: Any) -> Any:
            return LinearFunction.apply(x, self.weight, self.bias)

        def extra_repr(self) -> str:
            return f"{self.n}->{self.m}"

    layer = Linear(3, 2)
    log(repr(layer))
    x = torch.arange(6.0).reshape(2, 3)
    y = layer(x)
    log(repr(y))
    y.sum().backward()
    log(layer.weight.grad, layer.bias.grad)
    torch.manual_seed(0)
    input = (
        torch.randn(4, 3, dtype=torch.double, requires_grad=True),
        torch.randn(2, 3, dtype=torch.double, requires_grad=True),
        None,
    )
    log(torch.autograd.gradcheck(LinearFunction.apply, input, eps=1e-6, atol=1e-4))
    log(torch.autograd.gradgradcheck(LinearFunction.apply, input))


@script
def wrong_backward(torch: Any, log: Log) -> None:
    class Wrong(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 3

    x = torch.ones(2, dtype=torch.double, requires_grad=True)
    attempt(log, "gradcheck", lambda: torch.autograd.gradcheck(Wrong.apply, x))
    log(torch.autograd.gradcheck(Wrong.apply, x, raise_exception=False))

    class Counts(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x * y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    attempt(log, "count", lambda: Counts.apply(x, x).sum().backward())

    class Shapes(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g[:1].expand(3)

    attempt(log, "shape", lambda: Shapes.apply(x).sum().backward())


@script
def functions_by_numpy(torch: Any, log: Log) -> None:
    def to_numpy(t: Any) -> Any:
        return t.detach().cpu().numpy()

    class NumpySort(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(x: Any, dim: int) -> Any:
            x = to_numpy(x)
            ind = np.argsort(x, axis=dim)
            ind_inv = np.argsort(ind, axis=dim)
            result = np.take_along_axis(x, ind, axis=dim)
            return torch.tensor(result), torch.tensor(ind), torch.tensor(ind_inv)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            _, dim = inputs
            _, ind, ind_inv = output
            ctx.mark_non_differentiable(ind, ind_inv)
            ctx.save_for_backward(ind, ind_inv)
            ctx.dim = dim

        @staticmethod
        def backward(ctx: Any, grad_output: Any, _0: Any, _1: Any) -> Any:
            ind, ind_inv = ctx.saved_tensors
            return NumpyTake.apply(grad_output, ind_inv, ind, ctx.dim), None

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any, dim: int) -> Any:
            x_bdim, _ = in_dims
            x = x.movedim(x_bdim, 0)
            dim = dim if dim >= 0 else dim + x.dim() - 1
            return NumpySort.apply(x, dim + 1), (0, 0, 0)

    class NumpyTake(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(x: Any, ind: Any, ind_inv: Any, dim: int) -> Any:
            return torch.tensor(np.take_along_axis(to_numpy(x), to_numpy(ind), dim))

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            x, ind, ind_inv, dim = inputs
            ctx.save_for_backward(ind, ind_inv)
            ctx.dim = dim

        @staticmethod
        def backward(ctx: Any, grad_output: Any) -> Any:
            ind, ind_inv = ctx.saved_tensors
            return NumpyTake.apply(grad_output, ind_inv, ind, ctx.dim), None, None, None

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any, ind: Any, ind_inv: Any, dim: int) -> Any:
            x_bdim, ind_bdim, ind_inv_bdim, _ = in_dims
            logical = x.dim() if x_bdim is None else x.dim() - 1
            dim = dim if dim >= 0 else dim + logical

            def front(t: Any, at: Any) -> Any:
                return t.expand(info.batch_size, *t.shape) if at is None else t.movedim(at, 0)

            x, ind = front(x, x_bdim), front(ind, ind_bdim)
            return NumpyTake.apply(x, ind, front(ind_inv, ind_inv_bdim), dim + 1), 0

    def sort(x: Any, dim: int = -1) -> Any:
        return NumpySort.apply(x, dim)[0]

    x = torch.tensor([[3.0, 1.0, 2.0], [0.0, -1.0, 5.0]])
    log(sort(x), torch.func.grad(lambda t: (sort(t) ** 2).sum())(x))
    weights = torch.arange(3.0)
    log(torch.vmap(sort)(x), torch.vmap(torch.func.grad(lambda t: (sort(t) * weights).sum()))(x))


@script
def generated_batching(torch: Any, log: Log) -> None:
    class MyCube(torch.autograd.Function):  # type: ignore[misc]
        generate_vmap_rule = True

        @staticmethod
        def forward(x: Any) -> Any:
            result = x**3
            dx = 3 * x**2
            return result, dx

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            (x,) = inputs
            result, dx = output
            ctx.save_for_backward(x, dx)
            ctx.save_for_forward(x, dx)

        @staticmethod
        def backward(ctx: Any, grad_output: Any, grad_dx: Any) -> Any:
            x, dx = ctx.saved_tensors
            return grad_output * dx + grad_dx * 6 * x

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            x, dx = ctx.saved_tensors
            return t * dx, t * 6 * x

    def my_cube(x: Any) -> Any:
        return MyCube.apply(x)[0]

    x = torch.arange(3.0)
    func = torch.func
    log(func.vmap(my_cube)(x), func.grad(func.grad(my_cube))(torch.tensor(2.0)))
    log(func.vmap(func.grad(my_cube))(x), func.jvp(my_cube, (x,), (torch.ones(3),)))
    log(func.jacrev(my_cube)(x), func.jacfwd(my_cube)(x), func.hessian(my_cube)(torch.tensor(2.0)))
    log(func.vmap(func.vmap(func.grad(func.grad(my_cube))))(x.reshape(1, 3)))

    class NoRule(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(x: Any) -> Any:
            return x * 2

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    attempt(log, "no rule", lambda: func.vmap(NoRule.apply)(x))


@script
def double_backward(torch: Any, log: Log) -> None:
    class Sinh(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            expx = torch.exp(x)
            expnegx = torch.exp(-x)
            ctx.save_for_backward(expx, expnegx)
            return (expx - expnegx) / 2, expx, expnegx

        @staticmethod
        def backward(ctx: Any, grad_out: Any, g_pos: Any, g_neg: Any) -> Any:
            expx, expnegx = ctx.saved_tensors
            grad_input = grad_out * (expx + expnegx) / 2
            grad_input += g_pos * expx
            grad_input -= g_neg * expnegx
            return grad_input

    def sinh(x: Any) -> Any:
        return Sinh.apply(x)[0]

    x = torch.tensor([0.5, 1.0], dtype=torch.double, requires_grad=True)
    log(torch.autograd.gradcheck(sinh, x), torch.autograd.gradgradcheck(sinh, x))

    class Once(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * 2 * x

    (g,) = torch.autograd.grad(Once.apply(x).sum(), x, create_graph=True)
    attempt(log, "twice", lambda: g.sum().backward() if g.requires_grad else "no graph")


@script
def neural_tangent_kernel(torch: Any, log: Log) -> None:
    func = torch.func
    torch.manual_seed(2)
    net = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))
    params = {k: v.detach() for k, v in net.named_parameters()}
    x1, x2 = torch.randn(4, 3), torch.randn(3, 3)

    def fnet_single(params: Any, x: Any) -> Any:
        return func.functional_call(net, params, (x.unsqueeze(0),)).squeeze(0)

    def by_jacobians(fn: Any, x1: Any, x2: Any) -> Any:
        jac1 = func.vmap(func.jacrev(fn), (None, 0))(params, x1)
        jac2 = func.vmap(func.jacrev(fn), (None, 0))(params, x2)
        parts = [
            torch.einsum("Naf,Mbf->NMab", a.flatten(2), b.flatten(2))
            for a, b in zip(jac1.values(), jac2.values(), strict=True)
        ]
        return torch.stack(parts).sum(0)

    def by_products(fn: Any, x1: Any, x2: Any) -> Any:
        def get_ntk(x1: Any, x2: Any) -> Any:
            def func_x1(params: Any) -> Any:
                return fn(params, x1)

            def func_x2(params: Any) -> Any:
                return fn(params, x2)

            output, vjp_fn = func.vjp(func_x1, params)

            def get_ntk_slice(vec: Any) -> Any:
                vjps = vjp_fn(vec)
                return func.jvp(func_x2, (params,), vjps)[1]

            return func.vmap(get_ntk_slice)(torch.eye(output.numel()))

        return func.vmap(func.vmap(get_ntk, (None, 0)), (0, None))(x1, x2)

    a, b = by_jacobians(fnet_single, x1, x2), by_products(fnet_single, x1, x2)
    log(list(a.shape), torch.allclose(a, b, atol=1e-5), round(a.sum().item(), 3))


@script
def maml(torch: Any, log: Log) -> None:
    func = torch.func

    def net(params: Any, x: Any) -> Any:
        return torch.nn.functional.linear(x, params[0], params[1]).tanh() @ params[2]

    torch.manual_seed(4)
    params = [torch.randn(4, 1), torch.randn(4), torch.randn(4, 1)]
    xs, ys = torch.randn(3, 5, 1), torch.randn(3, 5, 1)

    def loss_of_task(params: Any, x: Any, y: Any) -> Any:
        def inner(params: Any) -> Any:
            return ((net(params, x) - y) ** 2).mean()

        grads = func.grad(inner)(params)
        new = [p - 0.1 * g for p, g in zip(params, grads, strict=True)]
        return inner(new)

    def loss(params: Any) -> Any:
        return func.vmap(loss_of_task, (None, 0, 0))(params, xs, ys).mean()

    grads, value = func.grad_and_value(loss)(params)
    log(value, [g.flatten() for g in grads])


@script
def lennard_jones(torch: Any, log: Log) -> None:
    func = torch.func

    def energy(r: Any) -> Any:
        return 0.5 * ((1.0 / r) ** 12 - (1.0 / r) ** 6)

    def total(x: Any) -> Any:
        return energy(x.norm())

    x = torch.tensor([[1.0, 0.5, 0.2], [0.8, 0.9, 1.0]])
    log(func.vmap(func.grad(total))(x), func.vmap(func.hessian(total))(x))
    log(func.vmap(func.jacfwd(func.jacrev(total)))(x))


@script
def ensembles_by_vmap_of_training(torch: Any, log: Log) -> None:
    func = torch.func
    torch.manual_seed(9)
    points, labels = torch.randn(20, 2), torch.randint(2, (20,))
    net = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    start = {k: torch.randn(3, *v.shape) * 0.5 for k, v in net.named_parameters()}

    def train_step(params: Any) -> Any:
        def loss(params: Any) -> Any:
            out = func.functional_call(net, params, (points,))
            return torch.nn.functional.cross_entropy(out, labels)

        grads, value = func.grad_and_value(loss)(params)
        return value, {k: p - 0.2 * grads[k] for k, p in params.items()}

    params = start
    for _ in range(3):
        value, params = func.vmap(train_step)(params)
        log(value)


@script
def functional_calls(torch: Any, log: Log) -> None:
    class Foo(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.foo = torch.nn.Parameter(torch.zeros(()))
            self._tied = self.foo
            self.register_buffer("shift", torch.ones(()))

        def forward(self, x: Any, scale: float = 1.0) -> Any:
            return scale * (x + self.foo + self._tied) + self.shift

    f = Foo()
    call = torch.func.functional_call
    a = {"foo": torch.ones(())}
    log(call(f, a, (torch.ones(()),)), call(f, a, torch.ones(()), tie_weights=False))
    log(call(f, {"_tied": torch.ones(())}, torch.ones(())), call(f, a, (1.0,), {"scale": 2.0}))
    log(call(f, ({"foo": torch.ones(())}, {"shift": torch.zeros(())}), (1.0,)))
    attempt(log, "strict", lambda: call(f, a, (1.0,), strict=True))
    attempt(log, "unknown", lambda: call(f, {"bar": torch.ones(())}, (1.0,)))
    attempt(
        log, "twice", lambda: call(f, ({"foo": torch.ones(())}, {"foo": torch.ones(())}), (1.0,))
    )
    attempt(log, "tied", lambda: call(f, {"foo": torch.ones(()), "_tied": torch.zeros(())}, (1.0,)))
    log(f.foo, f(torch.ones(())))
    x = torch.tensor(2.0, requires_grad=True)
    call(f, {"foo": x}, torch.ones(())).backward()
    log(x.grad)
