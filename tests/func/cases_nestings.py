"""Functions of one vector, and nestings of transforms to put around them.

`run(lib, function, nesting)` gives the derivatives as plain Python values. A function may give a
tree of tensors; transforms that want one number get the sum of its parts (`total`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.func.cases_transforms import attempt, significant

__all__ = ["BATCHED", "FUNCTIONS", "NESTINGS", "WRONG", "is_wrong", "results", "run"]

Fn = Callable[[Any], Any]
ROWS = [[0.5, -1.2, 0.7], [1.1, 0.3, -0.4]]


def run(lib: Any, function: str, nesting: str) -> Any:
    """What a nesting makes of a function, at the rows above or at the first of them."""

    def call() -> Any:
        x = lib.tensor(ROWS, dtype=lib.float64)
        f = FUNCTIONS[function](lib)
        return NESTINGS[nesting](lib, f)(x if nesting in BATCHED else x[0])

    return attempt(lib, call)


# --- functions ------------------------------------------------------------------------------------
def weights(lib: Any, asks: bool = False) -> Any:
    return lib.tensor([[0.3, -0.2, 0.5], [0.1, 0.4, -0.6]], dtype=lib.float64, requires_grad=asks)


def buffer(lib: Any) -> Fn:
    def f(x: Any) -> Any:
        b = x.new_zeros(3)
        b[0] = x.sum()
        b[1:] = x[:2] * 2
        return (b * b).sum()

    return f


def shared_buffer(lib: Any) -> Fn:
    def f(x: Any) -> Any:
        b = lib.zeros(3, dtype=lib.float64) + x.mean()
        b[1] = x[0] * x[2]
        return (b * b.exp()).sum()

    return f


def clone(lib: Any) -> Fn:
    def f(x: Any) -> Any:
        y = x.clone()
        y.mul_(x)
        y[1:].sin_()
        return y.sum()

    return f


def rows_of_a_buffer(lib: Any) -> Fn:
    def f(x: Any) -> Any:
        b = x.new_zeros(2, 3)
        b[0].copy_(x)
        b[1].add_(x * x)
        b[:, 1].mul_(x[0])
        return (b.t() @ b).sum()

    return f


def read_after_write(lib: Any) -> Fn:
    def f(x: Any) -> Any:
        y = x * 1
        head, tail = y[:2], y[1:]
        y.mul_(x.exp())
        head.add_(1)
        return (head * tail).sum() + y.prod()

    return f


def filled(lib: Any) -> Fn:
    def f(x: Any) -> Any:
        y = x.sin()
        y[0] = 2.0
        y[2].fill_(x[1])
        y = y.masked_fill(x > 0.6, 0.5)
        return (y * x).sum()

    return f


def accumulated(lib: Any) -> Fn:
    def f(x: Any) -> Any:
        y = lib.zeros_like(x)
        for i in range(3):
            y += x[i] * x.roll(i)
        y -= x
        return (y * y).sum()

    return f


def closure(lib: Any) -> Fn:
    w = weights(lib, True)
    return lambda x: (w @ x).tanh().sum() * x[0]


def closure_in_a_buffer(lib: Any) -> Fn:
    w = weights(lib, True)

    def f(x: Any) -> Any:
        b = x.new_zeros(2)
        b[0] = w[0, 1] * x[0]
        b[1] = (w[1] * x).sum()
        return b.prod() + b.sin().sum()

    return f


def quiet_part(lib: Any) -> Fn:
    def f(x: Any) -> Any:
        with lib.no_grad():
            c = x * x
        return (x * c + x.detach() ** 2 * x).sum()

    return f


def branches(lib: Any) -> Fn:
    def f(x: Any) -> Any:
        return lib.where(x.sum() > 0, (x * x).sum(), x.exp().sum())

    return f


def inner_grad(lib: Any) -> Fn:
    return lambda x: (lib.func.grad(lambda y: (y**3 * x).sum())(x * 2)).sum()


def inner_vmap(lib: Any) -> Fn:
    return lambda x: lib.func.vmap(lambda a, b: a.sin() * b, (0, None))(x, x[1]).sum()


FUNCTIONS: dict[str, Callable[[Any], Fn]] = {
    "cube": lambda lib: lambda x: (x**3).sum(),
    "matmul": lambda lib: lambda x: (weights(lib) @ x).tanh().sum(),
    "index": lambda lib: lambda x: (x[[0, 2, 2]] * x.flip(0)).sum(),
    "softmax": lambda lib: lambda x: (x.softmax(-1) * x).sum(),
    "where": lambda lib: lambda x: lib.where(x > 0, x * x, x.exp()).sum(),
    "cumsum": lambda lib: lambda x: (x.cumsum(0) ** 2).sum(),
    "cumprod": lambda lib: lambda x: x.cumprod(0).sum(),
    "outer": lambda lib: lambda x: (x[:, None] * x.sin()[None, :]).pow(2).sum(),
    "max": lambda lib: lambda x: x.max() * x.sum(),
    "norm": lambda lib: lambda x: x.norm() + x.abs().sum(),
    "logsumexp": lambda lib: lambda x: x.logsumexp(0) ** 2,
    "sort": lambda lib: lambda x: (x.sort()[0] * lib.arange(3.0, dtype=x.dtype) * x).sum(),
    "cross_entropy": lambda lib: lambda x: lib.nn.functional.cross_entropy(
        x[None], lib.tensor([1])),
    "variance": lambda lib: lambda x: x.var() * x.mean(),
    "linear": lambda lib: lambda x: lib.nn.functional.linear(x, weights(lib)).sin().sum(),
    "einsum": lambda lib: lambda x: lib.einsum(
        "ij,j,i->", weights(lib), x, weights(lib)[:, 0] * x[0]),
    "views": lambda lib: lambda x: (x.view(3, 1) @ x.view(1, 3)).trace() * x[1],
    "diagonals": lambda lib: lambda x: (lib.diag(x) @ lib.outer(x, x)).diagonal().sum(),
    "solve": lambda lib: lambda x: lib.linalg.solve(
        lib.eye(3, dtype=x.dtype) * 3 + lib.outer(x, x), x).sum(),
    "norms": lambda lib: lambda x: lib.nn.functional.layer_norm(x, (3,)).pow(3).sum(),
    "stack and cat": lambda lib: lambda x: lib.cat(
        [lib.stack([x, x * 2]).flatten(), x[:1]]).cos().sum(),
    "unbind": lambda lib: lambda x: (lambda a, b, c: a * b + c.exp() * a)(*x.unbind()),
    "gather": lambda lib: lambda x: (x.gather(0, lib.tensor([2, 0, 0, 1])) ** 2).sum() * x[0],
    "scatter": lambda lib: lambda x: lib.zeros(2, dtype=x.dtype).scatter_add(
        0, lib.tensor([0, 1, 0]), x * x).sin().sum(),
    "complex": lambda lib: lambda x: (lib.complex(x, x * x) ** 2).abs().sum(),
    "float32": lambda lib: lambda x: (x.float() * 2).double().pow(2).sum(),
    "constant": lambda lib: lambda x: lib.ones((), dtype=lib.float64) * 3,
    "itself": lambda lib: lambda x: x,
    "several": lambda lib: lambda x: (x * 2, x.sum(), [x[0] * x[1]]),
    "dict": lambda lib: lambda x: {"a": x.sin(), "b": {"c": x.prod() * x}},
    "expanded": lambda lib: lambda x: (
        x[0].expand(2, 3) * x).sum() + x[:, None].expand(3, 2).sin().sum(),
    "buffer": buffer, "shared buffer": shared_buffer, "clone": clone,
    "rows of a buffer": rows_of_a_buffer, "read after write": read_after_write, "filled": filled,
    "accumulated": accumulated, "closure": closure, "closure in a buffer": closure_in_a_buffer,
    "quiet part": quiet_part, "branches": branches, "inner grad": inner_grad,
    "inner vmap": inner_vmap,
}  # fmt: skip


# --- nestings -------------------------------------------------------------------------------------
def total(lib: Any, found: Any) -> Any:
    """The sum of everything in a tree of tensors."""
    if isinstance(found, dict):
        found = list(found.values())
    if isinstance(found, (tuple, list)):
        parts = [total(lib, part) for part in found]
        return sum(parts[1:], parts[0])
    return found.sum()


def scalar(lib: Any, f: Fn) -> Fn:
    return lambda x: total(lib, f(x))


def g(lib: Any, f: Fn) -> Fn:
    """The gradient of the sum."""
    return lib.func.grad(scalar(lib, f))  # type: ignore[no-any-return]


def v(lib: Any, f: Fn) -> Fn:
    return lib.func.vmap(f)  # type: ignore[no-any-return]


def along(lib: Any, f: Fn, direction: Callable[[Any], Any] | None = None) -> Fn:
    """The derivative along ones, or along `direction(x)`."""
    return lambda x: lib.func.jvp(
        f, (x,), (lib.ones_like(x) if direction is None else direction(x),)
    )[1]


def back(lib: Any, f: Fn) -> Fn:
    """The product of the output itself with the Jacobian."""

    def call(x: Any) -> Any:
        y, pull = lib.func.vjp(f, x)
        return pull(y)[0]

    return call


def twice(lib: Any, f: Fn) -> Fn:
    return lambda x: v(lib, f)(lib.stack([x, x + 1]))


def backward_through(lib: Any, f: Fn) -> Fn:
    def call(x: Any) -> Any:
        c = lib.ones(3, dtype=lib.float64, requires_grad=True)
        y = v(lib, g(lib, lambda r: f(r * c)))(x)
        if not y.requires_grad:
            return y
        y.sum().backward()
        return c.grad

    return call


def backward_through_vmap(lib: Any, f: Fn) -> Fn:
    def call(x: Any) -> Any:
        c = lib.ones(3, dtype=lib.float64, requires_grad=True)
        total(lib, v(lib, lambda r: f(r * c))(x)).backward()
        return c.grad

    return call


NESTINGS: dict[str, Callable[[Any, Fn], Fn]] = {
    "grad": g,
    "vjp": back,
    "jvp": lambda lib, f: along(lib, f, lambda x: x.cos()),
    "linearize": lambda lib, f: lambda x: lib.func.linearize(f, x)[1](x),
    "jacrev": lambda lib, f: lib.func.jacrev(f),
    "jacrev in chunks": lambda lib, f: lib.func.jacrev(f, chunk_size=2),
    "jacfwd": lambda lib, f: lib.func.jacfwd(f),
    "hessian": lambda lib, f: lib.func.hessian(scalar(lib, f)),
    "hessian of all": lambda lib, f: lib.func.hessian(f),
    "grad and value": lambda lib, f: lib.func.grad_and_value(scalar(lib, f)),
    "vmap": v,
    "vmap in chunks": lambda lib, f: lib.func.vmap(f, chunk_size=1),
    "vmap grad": lambda lib, f: v(lib, g(lib, f)),
    "grad vmap": lambda lib, f: g(lib, v(lib, f)),
    "grad grad": lambda lib, f: g(lib, lambda x: g(lib, f)(x) ** 2),
    "vmap grad grad": lambda lib, f: v(lib, g(lib, lambda x: g(lib, f)(x) ** 2)),
    "grad vmap grad": lambda lib, f: g(lib, lambda x: v(lib, g(lib, f))(x) ** 2),
    "grad grad vmap": lambda lib, f: g(lib, lambda x: g(lib, v(lib, f))(x) ** 2),
    "vmap vmap": lambda lib, f: twice(lib, v(lib, f)),
    "vmap vmap grad": lambda lib, f: twice(lib, v(lib, g(lib, f))),
    "vmap grad vmap": lambda lib, f: twice(lib, g(lib, v(lib, f))),
    "vmap jvp": lambda lib, f: v(lib, along(lib, f)),
    "jvp vmap": lambda lib, f: along(lib, v(lib, f), lambda x: x.cos()),
    "jvp jvp": lambda lib, f: along(lib, along(lib, f, lambda x: x * 2), lambda x: x.cos()),
    "jvp grad": lambda lib, f: along(lib, g(lib, f), lambda x: x.cos()),
    "grad jvp": lambda lib, f: g(lib, along(lib, f, lambda x: x.sin())),
    "jvp vjp": lambda lib, f: along(lib, back(lib, f)),
    "grad vjp": lambda lib, f: g(lib, back(lib, f)),
    "vmap jvp grad": lambda lib, f: v(lib, along(lib, g(lib, f), lambda x: x.cos())),
    "jvp vmap grad": lambda lib, f: along(lib, v(lib, g(lib, f)), lambda x: x.cos()),
    "grad vmap jvp": lambda lib, f: g(lib, v(lib, along(lib, f, lambda x: x.sin()))),
    "vmap grad jvp": lambda lib, f: v(lib, g(lib, along(lib, f, lambda x: x.sin()))),
    "jvp grad vmap": lambda lib, f: along(lib, g(lib, v(lib, f)), lambda x: x.cos()),
    "jacrev grad": lambda lib, f: lib.func.jacrev(g(lib, f)),
    "jacfwd grad": lambda lib, f: lib.func.jacfwd(g(lib, f)),
    "jacfwd jacfwd": lambda lib, f: lib.func.jacfwd(lib.func.jacfwd(f)),
    "jacrev jacrev": lambda lib, f: lib.func.jacrev(lib.func.jacrev(f)),
    "jacrev jacfwd": lambda lib, f: lib.func.jacrev(lib.func.jacfwd(f)),
    "vmap hessian": lambda lib, f: v(lib, lib.func.hessian(scalar(lib, f))),
    "vmap jacrev": lambda lib, f: v(lib, lib.func.jacrev(f)),
    "vmap jacfwd": lambda lib, f: v(lib, lib.func.jacfwd(f)),
    "grad jacrev": lambda lib, f: g(lib, lib.func.jacrev(lambda x: f(x.sin()))),
    "grad hessian": lambda lib, f: g(lib, lib.func.hessian(scalar(lib, f))),
    "vmap vjp": lambda lib, f: v(lib, back(lib, f)),
    "backward vmap grad": backward_through,
    "backward vmap": backward_through_vmap,
    "grad vmap captured": lambda lib, f: lambda x: g(
        lib, lambda c: v(lib, lambda r: f(r * c))(x))(x[0]),
    "vmap grad captured": lambda lib, f: lambda x: v(
        lib, lambda r: g(lib, lambda c: f(r * c))(x[0]))(x),
    "vmap jvp captured": lambda lib, f: lambda x: v(
        lib, lambda r: along(lib, lambda c: f(r * c))(x[0]))(x),
    "vmap shared": lambda lib, f: lambda x: lib.func.vmap(
        lib.func.grad(lambda c, r: total(lib, f(c)) * r.sum() + total(lib, f(c * r))),
        (None, 0))(x[0], x),
}  # fmt: skip

BATCHED = frozenset(n for n in NESTINGS if "vmap" in n)  # they get both rows, others the first

# Where PyTorch 2.13 is wrong, or fails: nested forward derivatives of solve and layer_norm lose
# terms; in a batch, the Jacobian of solve is wrong from the second member on; `linearize` loses
# writes to buffers, and goes through no_grad.
FORWARD = (
    "jvp jvp", "grad jvp", "grad vmap jvp", "vmap grad jvp", "jacfwd jacfwd", "jacrev jacfwd",
)  # fmt: skip
WRONG: dict[str, tuple[str, ...]] = {
    "solve": (*FORWARD, "grad hessian", "vmap hessian", "vmap jacfwd"),
    "norms": FORWARD,
    "norm": ("grad hessian",),
    "complex": ("vmap grad jvp", "jacrev jacfwd"),
    "read after write": ("linearize", "jacfwd jacfwd"),
    "buffer": ("linearize",),
    "shared buffer": ("linearize",),
    "rows of a buffer": ("linearize",),
    "filled": ("linearize",),
    "closure in a buffer": ("linearize",),
    "quiet part": ("linearize",),
}


def is_wrong(function: str, nesting: str) -> bool:
    """Whether PyTorch's answer is not to be compared with."""
    return nesting in WRONG.get(function, ())


def results(lib: Any) -> Any:
    """By function and nesting; where PyTorch itself goes wrong there is nothing."""
    return significant(
        {f"{f} | {n}": run(lib, f, n) for f in FUNCTIONS for n in NESTINGS if not is_wrong(f, n)}
    )
