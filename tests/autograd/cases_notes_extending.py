"""Extending: your own functions, twice differentiable or batched, and longer programs.

The situations of PyTorch's notes and tutorials, in small.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.harness import Log, LoggedCases

cases = LoggedCases()


# --- Extending: functions -------------------------------------------------------------------------
@cases
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


@cases
def wrong_backward(torch: Any, log: Log) -> None:
    class Wrong(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 3

    x = torch.ones(2, dtype=torch.double, requires_grad=True)
    log.attempt("gradcheck", lambda: torch.autograd.gradcheck(Wrong.apply, x))
    log(torch.autograd.gradcheck(Wrong.apply, x, raise_exception=False))

    class Counts(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x * y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    log.attempt("count", lambda: Counts.apply(x, x).sum().backward())

    class Shapes(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g[:1].expand(3)

    log.attempt("shape", lambda: Shapes.apply(x).sum().backward())


@cases
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
            _, ind, ind_inv, dim = inputs
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


@cases
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
            _, dx = output
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

    log.attempt("no rule", lambda: func.vmap(NoRule.apply)(x))


@cases
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
    log.attempt("twice", lambda: g.sum().backward() if g.requires_grad else "no graph")


@cases
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


@cases
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


@cases
def lennard_jones(torch: Any, log: Log) -> None:
    func = torch.func

    def energy(r: Any) -> Any:
        return 0.5 * ((1.0 / r) ** 12 - (1.0 / r) ** 6)

    def total(x: Any) -> Any:
        return energy(x.norm())

    x = torch.tensor([[1.0, 0.5, 0.2], [0.8, 0.9, 1.0]])
    log(func.vmap(func.grad(total))(x), func.vmap(func.hessian(total))(x))
    log(func.vmap(func.jacfwd(func.jacrev(total)))(x))


@cases
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


@cases
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
    log.attempt("strict", lambda: call(f, a, (1.0,), strict=True))
    log.attempt("unknown", lambda: call(f, {"bar": torch.ones(())}, (1.0,)))
    log.attempt(
        "twice", lambda: call(f, ({"foo": torch.ones(())}, {"foo": torch.ones(())}), (1.0,))
    )
    log.attempt("tied", lambda: call(f, {"foo": torch.ones(()), "_tied": torch.zeros(())}, (1.0,)))
    log(f.foo, f(torch.ones(())))
    x = torch.tensor(2.0, requires_grad=True)
    call(f, {"foo": x}, torch.ones(())).backward()
    log(x.grad)


results = cases.results
