"""Calls of `gradcheck` and `gradgradcheck`: of functions that pass, and of those that must not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.autograd.warning_cases import WarningCases, inputs

cases = WarningCases()


def wrong(torch: Any, name: str) -> Callable[..., Any]:
    """Functions whose backward has one fault."""

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 3

    class IgnoresGradient(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.sum()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return torch.ones(3, dtype=torch.float64)

    class Refuses(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            if g is None:
                raise RuntimeError("no gradient")
            return g * 2

    class FromNothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return torch.ones(3, dtype=torch.float64) if g is None else g * 2

    calls = [0]

    class Drifts(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            calls[0] += 1
            return g * (2 + calls[0] * 1e-9)

    return locals()[name].apply


# Random numbers decide, or PyTorch calls the function without arguments
UNFIT_FOR_TWO = ("single precision", "no history", "no history, constant")


def checks() -> dict[str, Callable[[Any], Any]]:
    def x(torch: Any) -> Any:
        return inputs(torch)[0].requires_grad_()

    def both(torch: Any) -> Any:
        return tuple(t.requires_grad_() for t in inputs(torch)[:2])

    def z(torch: Any) -> Any:
        a = inputs(torch)[0]
        return torch.complex(a, a.sin()).requires_grad_()

    functions: dict[str, tuple[Callable[[Any], Callable[..., Any]], Callable[[Any], Any]]] = {
        "sin": (lambda t: t.sin, x),
        "two inputs": (lambda t: lambda x, y: (x * y).tanh() @ x, both),
        "several outputs": (lambda t: lambda x, y: (x * y, x.sum(), y.exp()), both),
        "complex": (lambda t: lambda z: z * z.conj() * z, z),
        "complex to real": (lambda t: lambda z: z.abs(), z),
        "real to complex": (lambda t: lambda x: t.complex(x, x * x), x),
        "a view": (lambda t: lambda x: x[1:], x),
        "in place": (lambda t: lambda x: x.clone().mul_(x).add_(1), x),
        "in place on a view": (lambda t: lambda x: write_part(x.clone(), x), x),
        "integers beside": (lambda t: lambda x: (x * 2, x.argmax()), x),
        "no history": (lambda t: lambda x: x.detach() * 2, x),
        "no history, constant": (lambda t: lambda x: x.detach().sign(), x),
        "a number": (lambda t: lambda s: s**3, lambda t: inputs(t)[2].requires_grad_()),
        "nothing": (
            lambda t: lambda x: x * 2,
            lambda t: t.zeros(0, 2, dtype=t.float64, requires_grad=True),
        ),
        "a module": (lambda t: t.nn.Linear(3, 2).double(), x),
        "expanded": (
            lambda t: t.sin, lambda t: t.ones(1, dtype=t.float64).expand(3).requires_grad_()
        ),
        "asks for nothing": (lambda t: t.sin, lambda t: t.ones(2, dtype=t.float64)),
        "single precision": (lambda t: lambda x: x * 2, lambda t: t.ones(2, requires_grad=True)),
        "wrong complex": (lambda t: wrong(t, "Doubled"), z),
        **{
            name: (lambda t, name=name: wrong(t, name), x)
            for name in ("Doubled", "IgnoresGradient", "Refuses", "FromNothing", "Drifts")
        },
    }  # fmt: skip
    options: dict[str, dict[str, Any]] = {
        "": {}, "fast": {"fast_mode": True}, "quiet": {"raise_exception": False},
        "batched": {"check_batched_grad": True}, "dtypes": {"check_grad_dtypes": True},
        "tolerant": {"nondet_tol": 1e-3, "check_undefined_grad": False},
    }  # fmt: skip
    found: dict[str, Callable[[Any], Any]] = {}
    for kind in ("gradcheck", "gradgradcheck"):
        for name, (function, args) in functions.items():
            if kind == "gradgradcheck" and name in UNFIT_FOR_TWO:
                continue
            for said, given in options.items():
                found[f"{kind} {name} {said}".strip()] = (
                    lambda t, kind=kind, function=function, args=args, given=given: getattr(
                        t.autograd, kind
                    )(function(t), args(t), **given)
                )
    return found


def write_part(y: Any, x: Any) -> Any:
    y[0].mul_(x[1])
    return y


cases.update(checks())


@cases
def nothing_to_check(torch: Any) -> Any:
    return torch.autograd.gradcheck(torch.sin, inputs(torch)[0], check_backward_ad=False)


@cases
def nothing_to_check_twice(torch: Any) -> Any:
    return torch.autograd.gradgradcheck(torch.sin, inputs(torch)[0], check_rev_over_rev=False)


@cases
def undefined_without_reverse(torch: Any) -> Any:
    return torch.autograd.gradgradcheck(
        torch.sin, inputs(torch)[0], check_rev_over_rev=False, check_fwd_over_rev=True
    )


@cases
def batched_without_backward(torch: Any) -> Any:
    return torch.autograd.gradcheck(
        torch.sin, inputs(torch)[0], check_backward_ad=False, check_forward_ad=True,
        check_batched_grad=True,
    )  # fmt: skip


@cases
def batched_forward_without_forward(torch: Any) -> Any:
    return torch.autograd.gradcheck(torch.sin, inputs(torch)[0], check_batched_forward_grad=True)


@cases
def shape_depends_on_values(torch: Any) -> Any:
    x = torch.tensor([0.0, 1.0], dtype=torch.float64, requires_grad=True)
    return torch.autograd.gradcheck(lambda x: x[x > 0], x)


results = cases.results
