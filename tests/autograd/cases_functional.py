"""Write functional.json.gz: what PyTorch's autograd.functional, gradcheck and anomaly mode do.

    python tests/reference/make_functional.py

`CASES` are functions of the library: tests run them on rushlight and compare with what is stored,
and with PyTorch itself where it is installed. An error is stored as its type and first line.
"""

from __future__ import annotations

import gzip
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CASES: dict[str, Callable[[Any], Any]] = {}


def outcome(case: Callable[[Any], Any], torch: Any) -> Any:
    """What a case gives, or how it fails, and what it warns of, as JSON can hold it."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UserWarning)
        try:
            result = plain(case(torch))
        except Exception as error:  # whatever it is, both libraries must raise it
            text = str(error).splitlines()[0].split(" Please look at")[0]
            result = f"{type(error).__name__}: {text}"
    texts = [str(w.message).strip().splitlines()[0] for w in said if w.category is UserWarning]
    texts = [t.split(" (Triggered internally")[0] for t in texts if "performance drop" not in t]
    return {"result": result, "warnings": texts}


def plain(x: Any) -> Any:
    if isinstance(x, (tuple, list)):
        return [type(x).__name__, *[plain(y) for y in x]]
    if hasattr(x, "grad_fn"):
        flat = x.detach().reshape(-1)
        if flat.is_complex():
            numbers = [part for z in flat.tolist() for part in (z.real, z.imag)]
        else:
            numbers = flat.tolist()
        return {
            "shape": list(x.shape), "dtype": str(x.dtype), "asks": x.requires_grad,
            "numbers": numbers,
        }  # fmt: skip
    return x


# --- functional -----------------------------------------------------------------------------------
def inputs(torch: Any) -> tuple[Any, Any, Any]:
    x = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64)
    y = torch.tensor([[1.0, 0.25, -0.5], [2.0, -1.5, 0.75]], dtype=torch.float64)
    return x, y, torch.tensor(0.7, dtype=torch.float64)


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

    CASES[name] = case


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


def case(fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    CASES[fn.__name__.replace("_", " ")] = fn
    return fn


@case
def inputs_of_the_wrong_type(torch: Any) -> Any:
    return torch.autograd.functional.jacobian(torch.sin, [inputs(torch)[0]])


@case
def a_number_among_inputs(torch: Any) -> Any:
    return torch.autograd.functional.vjp(torch.sin, (inputs(torch)[0], 2.0))


@case
def a_captured_input_is_not_an_argument(torch: Any) -> Any:
    x = inputs(torch)[0]
    return torch.autograd.functional.jacobian(lambda y: x * y, x)


@case
def inside_no_grad(torch: Any) -> Any:
    x = inputs(torch)[0]
    with torch.no_grad():
        return torch.autograd.functional.hessian(lambda x: (x**4).sum(), x)


@case
def complex_output(torch: Any) -> Any:
    x = inputs(torch)[0]
    return torch.autograd.functional.jacobian(lambda x: torch.complex(x, x), x)


@case
def complex_input(torch: Any) -> Any:
    z = torch.complex(*[inputs(torch)[0]] * 2)
    return torch.autograd.functional.jacobian(lambda z: z.abs() ** 2, z)


@case
def third_derivative_through_the_hessian(torch: Any) -> Any:
    x = inputs(torch)[0].requires_grad_()
    h = torch.autograd.functional.hessian(lambda x: (x**4).sum(), x, create_graph=True)
    return torch.autograd.grad(h.sum(), x)


# --- gradcheck ------------------------------------------------------------------------------------
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


CASES.update(checks())


@case
def nothing_to_check(torch: Any) -> Any:
    return torch.autograd.gradcheck(torch.sin, inputs(torch)[0], check_backward_ad=False)


@case
def nothing_to_check_twice(torch: Any) -> Any:
    return torch.autograd.gradgradcheck(torch.sin, inputs(torch)[0], check_rev_over_rev=False)


@case
def undefined_without_reverse(torch: Any) -> Any:
    return torch.autograd.gradgradcheck(
        torch.sin, inputs(torch)[0], check_rev_over_rev=False, check_fwd_over_rev=True
    )


@case
def batched_without_backward(torch: Any) -> Any:
    return torch.autograd.gradcheck(
        torch.sin, inputs(torch)[0], check_backward_ad=False, check_forward_ad=True,
        check_batched_grad=True,
    )  # fmt: skip


@case
def batched_forward_without_forward(torch: Any) -> Any:
    return torch.autograd.gradcheck(torch.sin, inputs(torch)[0], check_batched_forward_grad=True)


@case
def shape_depends_on_values(torch: Any) -> Any:
    x = torch.tensor([0.0, 1.0], dtype=torch.float64, requires_grad=True)
    return torch.autograd.gradcheck(lambda x: x[x > 0], x)


# --- anomaly mode ---------------------------------------------------------------------------------
@case
def anomaly_nan(torch: Any) -> Any:
    with torch.autograd.detect_anomaly():
        torch.tensor([-1.0, 2.0], requires_grad=True).sqrt().sum().backward()


@case
def anomaly_nan_unchecked(torch: Any) -> Any:
    x = torch.tensor([-1.0, 4.0], requires_grad=True)
    with torch.autograd.detect_anomaly(check_nan=False):
        x.sqrt().sum().backward()
    return x.grad[1]


@case
def anomaly_nan_given(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        (x * 2).backward(torch.tensor([float("nan"), 1.0]))


@case
def anomaly_second_output(torch: Any) -> Any:
    x = torch.tensor([1.0], requires_grad=True)
    y = torch.tensor([0.0], requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        (x * 0 / y).sum().backward()


@case
def anomaly_where_nothing_asks(torch: Any) -> Any:
    x = torch.tensor([0.0], requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        (x * float("inf")).sum().backward()
    return x.grad


@case
def anomaly_nested(torch: Any) -> Any:
    x = torch.tensor([0.0], requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        (g,) = torch.autograd.grad((x**1.5).sum(), x, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), x, create_graph=True)
        (h * 0).sum().backward()


@case
def anomaly_hook_raises(torch: Any) -> Any:
    with torch.autograd.set_detect_anomaly(True):
        y = torch.ones(2, requires_grad=True) * 2
        y.register_hook(lambda g: 1 / 0)
        y.sum().backward()


@case
def anomaly_function(torch: Any) -> Any:
    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            return a + b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, g * float("nan")

    x = torch.ones(2, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        Broken.apply(x, x).sum().backward()


@case
def anomaly_error(torch: Any) -> Any:
    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            return a.clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            raise RuntimeError("Some error in backward")

    x = torch.ones(2, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        Broken.apply(x).sum().backward()


@case
def anomaly_settings(torch: Any) -> Any:
    mode = torch.autograd.anomaly_mode
    enabled = getattr(mode, "is_anomaly_enabled", None) or torch.is_anomaly_enabled
    nan = getattr(mode, "is_anomaly_check_nan_enabled", None) or torch.is_anomaly_check_nan_enabled
    seen = [enabled(), nan()]
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        seen += [enabled(), nan()]
        with torch.autograd.detect_anomaly():
            seen += [enabled(), nan()]
        seen += [enabled(), nan()]
    seen += [enabled(), nan()]
    torch.autograd.set_detect_anomaly(True)
    seen += [enabled(), nan()]
    torch.autograd.set_detect_anomaly(False)
    return [*seen, enabled(), nan()]


def main() -> None:
    import torch

    stored = {name: outcome(one, torch) for name, one in CASES.items()}
    text = json.dumps(stored, separators=(",", ":"))
    with gzip.GzipFile(HERE / "functional.json.gz", "wb", mtime=0) as file:
        file.write(text.encode())


if __name__ == "__main__":
    main()
