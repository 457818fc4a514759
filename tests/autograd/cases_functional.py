"""Calls of `autograd.functional`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.autograd.warning_cases import WarningCases, inputs

cases = WarningCases()


FUNCTIONS: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "cube": lambda torch: lambda x, *rest: x**3,
    "linear": lambda torch: lambda x, *rest: 2 * x,
    "sum": lambda torch: lambda x, *rest: (x**3 + x.sin()).sum(),
    "linear sum": lambda torch: lambda x, *rest: (2 * x).sum(),
    "two outputs": lambda torch: lambda x, *rest: (x.exp(), x.sum() * x),
    "one of two has no history": lambda torch: lambda x, *rest: (x.exp(), torch.ones(2)),
    "constant": lambda torch: lambda x, *rest: torch.ones(2, dtype=torch.float64),
    "constant number": lambda torch: lambda x, *rest: torch.ones((), dtype=torch.float64),
    "itself": lambda torch: lambda x, *rest: x,
    "mixed": lambda torch: lambda x, y=None: x * x if y is None else (x * y).tanh(),
    "mixed sum": lambda torch: lambda x, y=None: (x * x if y is None else (x * y).tanh()).sum(),
    "one element": lambda torch: lambda x, *rest: (x**3).sum().reshape(1, 1),
    "list": lambda torch: lambda x, *rest: [x, x],
    "number": lambda torch: lambda x, *rest: (x, 2.0),
    "tuple of one": lambda torch: lambda x, *rest: ((x * x).sum(),),
    "in place": lambda torch: lambda x, *rest: x.clone().mul_(x).add_(1),
}


def given(torch: Any, which: str) -> Any:
    x, y, s = inputs(torch)
    if which == "asking x":
        return x.requires_grad_()
    return {"x": x, "(x,)": (x,), "(x, y)": (x, y), "s": s}[which]


def direction(torch: Any, which: str) -> Any:
    x, y, s = inputs(torch)
    v = {"none": None, "x": x, "(x, y)": (x, y), "s": s, "y": y, "(x, x)": (x, x), "(x,)": (x,)}
    return v[which]


def add(kind: str, function: str, args: str, v: str = "", **options: Any) -> None:
    said = "".join(f", {k}={o}" for k, o in options.items())
    name = f"{kind}({function}, {args}{', v=' + v if v else ''}{said})"

    def case(torch: Any) -> Any:
        call = getattr(torch.autograd.functional, kind)
        more = {"v": direction(torch, v)} if v else {}
        return call(FUNCTIONS[function](torch), given(torch, args), **more, **options)

    cases[name] = case


def products() -> None:
    for kind in ("vjp", "jvp", "vhp", "hvp"):
        names = ["sum", "linear sum", "constant number", "mixed sum", "one element", "cube", "list",
                 "number", "tuple of one"]  # fmt: skip
        if kind in ("vjp", "jvp"):
            names += ["linear", "two outputs", "constant", "itself", "mixed", "in place",
                      "one of two has no history"]  # fmt: skip
        for name in names:
            for args in ("x", "(x, y)", "s", "asking x"):
                for v in ("none", "x", "(x, y)", "(x, x)", "(x,)", "s"):
                    if not useful(kind, name, args, v):
                        continue
                    for create_graph in (False, True):
                        for strict in (False, True):
                            add(kind, name, args, v, create_graph=create_graph, strict=strict)


def useful(kind: str, name: str, args: str, v: str) -> bool:
    """Directions that fit, and one of each kind that does not."""
    if name == "sum":
        return True
    if kind == "vjp":
        return v in ("none", "(x, x)" if name in ("two outputs", "number") else "x")
    return v == {"x": "x", "asking x": "x", "s": "none", "(x, y)": "(x, y)"}[args]


def matrices() -> None:
    for args in ("x", "(x,)", "(x, y)", "s", "asking x"):
        for create_graph in (False, True):
            for more in (
                {}, {"strict": True}, {"vectorize": True}, {"vectorize": True, "strict": True},
            ):  # fmt: skip
                for name in FUNCTIONS:
                    add("jacobian", name, args, create_graph=create_graph, **more)
                for name in ("sum", "linear sum", "mixed sum", "one element", "tuple of one",
                             "cube", "constant number", "number", "list"):  # fmt: skip
                    add("hessian", name, args, create_graph=create_graph, **more)
    for name in ("cube", "sum", "constant", "linear"):
        add("jacobian", name, "x", vectorize=True, strategy="forward-mode")
    add("jacobian", "cube", "x", strategy="forward-mode")
    add("jacobian", "cube", "x", vectorize=True, strategy="forward-mode", strict=True)
    add("jacobian", "cube", "x", vectorize=True, strategy="forward-mode", create_graph=True)
    add("jacobian", "cube", "x", strategy="sideways")
    for name in ("sum", "linear sum"):
        add("hessian", name, "x", vectorize=True, outer_jacobian_strategy="forward-mode")
    add("hessian", "sum", "x", outer_jacobian_strategy="forward-mode")
    add("hessian", "sum", "x", outer_jacobian_strategy="sideways")


products()
matrices()


@cases
def inputs_of_the_wrong_type(torch: Any) -> Any:
    return torch.autograd.functional.jacobian(torch.sin, [inputs(torch)[0]])


@cases
def a_number_among_inputs(torch: Any) -> Any:
    return torch.autograd.functional.vjp(torch.sin, (inputs(torch)[0], 2.0))


@cases
def a_captured_input_is_not_an_argument(torch: Any) -> Any:
    x = inputs(torch)[0]
    return torch.autograd.functional.jacobian(lambda y: x * y, x)


@cases
def inside_no_grad(torch: Any) -> Any:
    x = inputs(torch)[0]
    with torch.no_grad():
        return torch.autograd.functional.hessian(lambda x: (x**4).sum(), x)


@cases
def complex_output(torch: Any) -> Any:
    x = inputs(torch)[0]
    return torch.autograd.functional.jacobian(lambda x: torch.complex(x, x), x)


@cases
def complex_input(torch: Any) -> Any:
    z = torch.complex(*[inputs(torch)[0]] * 2)
    return torch.autograd.functional.jacobian(lambda z: z.abs() ** 2, z)


@cases
def third_derivative_through_the_hessian(torch: Any) -> Any:
    x = inputs(torch)[0].requires_grad_()
    h = torch.autograd.functional.hessian(lambda x: (x**4).sum(), x, create_graph=True)
    return torch.autograd.grad(h.sum(), x)


results = cases.results
