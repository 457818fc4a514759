"""Autograd mechanics: what is saved, modes, writes in place, threads, complex numbers, graphs.

The situations of PyTorch's notes and tutorials, in small.
"""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
import weakref
from typing import Any

from tests.harness import Log, LoggedCases, vector

cases = LoggedCases()


# --- Autograd mechanics ---------------------------------------------------------------------------
@cases
def saved_tensors(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0, -2.0, 3.0)
    y = x.pow(2)
    log(x.equal(y.grad_fn._saved_self), x is y.grad_fn._saved_self, y.grad_fn._saved_exponent)
    y = x.exp()
    log(y.equal(y.grad_fn._saved_result), y is y.grad_fn._saved_result)
    log([n for n in dir(y.grad_fn) if n.startswith(("_saved_", "_raw_saved_"))])


@cases
def subgradients(torch: Any, log: Log) -> None:
    x = vector(torch, -1.0, 0.0, 1.0)
    for f in (
        lambda t: t.relu(), lambda t: t.abs(), lambda t: t.sqrt(), lambda t: t.sign(),
        lambda t: t.max(), lambda t: torch.clamp(t, min=0.0), lambda t: t.norm(),
        lambda t: torch.maximum(t, torch.zeros(3)), lambda t: t.floor(), lambda t: t.log(),
        lambda t: t.amax(), lambda t: torch.where(t > 0, t, torch.zeros(3)), lambda t: t.pow(0.5),
        lambda t: t.median(), lambda t: t.pow(0), lambda t: t ** t, lambda t: torch.dist(t, t),
        lambda t: t.prod(), lambda t: t.std(), lambda t: t.acos(), lambda t: t.argmax().float(),
    ):  # fmt: skip
        y = f(x)
        log.attempt(str(y.requires_grad), lambda y=y: repr(torch.autograd.grad(y.sum(), x)))


@cases
def division_by_zero_and_masks(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0, 1.0)
    div = torch.tensor([0.0, 1.0])
    y = x / div
    mask = div != 0
    y[mask].sum().backward()
    log(repr(x.grad))
    x.grad = None
    y = x / div
    torch.where(mask, y, torch.zeros(2)).sum().backward()
    log(repr(x.grad))


@cases
def locally_disabling(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0)
    with torch.no_grad():
        y = x * 2
        z = torch.ones(2, requires_grad=True)  # leaves may still ask
        log(y.requires_grad, z.requires_grad, torch.is_grad_enabled())
        with torch.enable_grad():
            log((x * 2).requires_grad)
        w = torch.nn.Parameter(torch.ones(1))
        log(w.requires_grad)
    log((y * x).requires_grad, y.is_leaf)

    @torch.no_grad()
    def doubler(t: Any) -> Any:
        """Doubles."""
        return t * 2

    @torch.no_grad
    def tripler(t: Any) -> Any:
        return t * 3

    log(doubler(x).requires_grad, tripler(x).requires_grad, doubler.__name__, doubler.__doc__)

    @torch.set_grad_enabled(False)
    def off(t: Any) -> Any:
        return t * 2

    log(off(x).requires_grad, (x * 2).requires_grad, torch.is_grad_enabled())
    torch.set_grad_enabled(False)
    log((x * 2).requires_grad)
    torch.set_grad_enabled(True)
    log((x * 2).requires_grad)
    frozen = torch.nn.Linear(2, 2).requires_grad_(False)
    log([p.requires_grad for p in frozen.parameters()], frozen(torch.ones(1, 2)).requires_grad)


@cases
def inference(torch: Any, log: Log) -> None:
    x = torch.ones(1, 2, 3, requires_grad=True)
    with torch.inference_mode():
        y = x * x
        log(torch.is_inference_mode_enabled(), torch.is_inference(y), y.is_inference())
        log.attempt("version", lambda: y._version)
        z = torch.ones(2)
    log(y.requires_grad, torch.is_inference(x), torch.is_inference_mode_enabled())
    log.attempt("version", lambda: y._version)
    log.attempt("saved", lambda: x * y)
    log.attempt("add", lambda: repr(x + y))
    log.attempt("write", lambda: y.add_(1))
    log.attempt("ask", lambda: z.requires_grad_())
    with torch.no_grad():
        log(x.numpy().tolist())
    log(repr(z.clone().requires_grad_()), z.clone().is_inference())
    with torch.inference_mode():
        log(repr(z.add_(1)))
    with torch.inference_mode(mode=False):
        log((x * 2).requires_grad)

    @torch.inference_mode()
    def func(t: Any) -> Any:
        return t * t

    log(func(x).requires_grad, func(x).is_inference())

    @torch.inference_mode
    def other(t: Any) -> Any:
        return t * t

    log(other(x).is_inference())


@cases
def evaluation_mode_is_another_thing(torch: Any, log: Log) -> None:
    m = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(2))
    m.eval()
    log(m.training, m[1].training, m(torch.ones(3, 2)).requires_grad)
    m.train()
    log(m.training)


@cases
def writes_in_place(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0, 2.0)
    log.attempt("leaf", lambda: x.add_(1))
    with torch.no_grad():
        x.add_(1)
    log(x, x._version)
    y = x * 2
    z = y.exp()
    z.mul_(2)
    log.attempt("needed", lambda: z.sum().backward())
    y = x * 2
    z = y + 1
    y.mul_(3)  # nobody needs it
    (z.sum() + y.sum()).backward()
    log(x.grad, y._version, type(y.grad_fn).__name__)
    y = x * 2
    v = y[0]
    v.mul_(10)
    log(type(y.grad_fn).__name__, type(v.grad_fn).__name__, y, v._base is y)
    x.grad = None
    y.sum().backward()
    log(x.grad)
    a, _ = (x * 2).unbind()
    log.attempt("unbind", lambda: a.add_(1))
    e = x.detach().expand(3, 2)
    log.attempt("expanded", lambda: e.add_(1))


@cases
def several_threads(torch: Any, log: Log) -> None:
    x = torch.ones(5, 5, requires_grad=True)

    def train() -> None:
        y = (x + 3) * (x + 4) * 0.5
        y.sum().backward()

    threads = [threading.Thread(target=train) for _ in range(10)]
    for p in threads:
        p.start()
    for p in threads:
        p.join()
    log(x.grad)
    with torch.no_grad():
        seen = []
        t = threading.Thread(target=lambda: seen.append(torch.is_grad_enabled()))
        t.start()
        t.join()
    log(seen)
    with torch.autograd.set_multithreading_enabled(False):
        (x * 2).sum().backward()
        log(torch.autograd.is_multithreading_enabled())
    log(torch.autograd.is_multithreading_enabled(), x.grad)


@cases
def complex_numbers(torch: Any, log: Log) -> None:
    z = torch.tensor([1 + 2j, -0.5 + 1j], requires_grad=True)
    (z * z.conj()).real.sum().backward()
    log(repr(z.grad))
    z.grad = None
    (z**2).sum().abs().backward()
    log(repr(z.grad))
    log.attempt("complex", lambda: (z**2).sum().backward())
    z.grad = None
    (z**2).backward(torch.ones_like(z))
    log(repr(z.grad))
    z.grad = None
    (z.real**2 + 3 * z.imag).sum().backward()
    log(repr(z.grad))
    with torch.no_grad():
        z -= 0.1 * z.grad
    log(repr(z))
    r = vector(torch, 1.0, 2.0)
    (r * (1 + 1j)).abs().sum().backward()
    log(repr(r.grad))
    w = torch.view_as_real(z)
    log(repr(torch.autograd.grad((w * w).sum(), z)))


# --- The dtype and the layout of gradients --------------------------------------------------------
@cases
def dtypes_of_gradients(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0, 2.0)
    log(str(x.grad_dtype))
    x.grad_dtype = torch.float16
    (x * 2).sum().backward()
    (x * 2).sum().backward()
    log(repr(x.grad), str(x.grad_dtype))
    log.attempt("other", lambda: setattr(x, "grad_dtype", torch.float64))
    x.grad = None
    x.grad_dtype = torch.float64
    x.register_hook(lambda g: log("hook", repr(g)))
    x.register_post_accumulate_grad_hook(lambda t: log("post", repr(t.grad)))
    log(repr(torch.autograd.grad(x.exp().sum(), x)))
    x.sum().backward()
    x.grad = None
    x.grad_dtype = None
    x.sum().backward()
    log(x.grad_dtype, repr(x.grad))
    log.attempt("no dtype", lambda: setattr(x, "grad_dtype", "float"))
    log.attempt("asked of an interior tensor", lambda: (x * 2).grad_dtype)
    log.attempt("set", lambda: setattr(x * 2, "grad_dtype", None))


@cases
def layouts_of_gradients(torch: Any, log: Log) -> None:
    def run() -> None:
        p = torch.ones(2, 3).t().requires_grad_()
        (p * torch.ones(3, 2)).sum().backward()
        log(p.stride(), p.grad.stride(), p.grad)

    run()
    policy = torch.autograd.enforce_grad_layout_policy
    with policy(False):
        run()
        with policy(True):
            run()
        worker = threading.Thread(target=run)  # it has a setting of its own
        worker.start()
        worker.join()
    run()
    policy(False)(run)()
    run()
    policy(enable=False)
    run()
    policy()
    run()


# --- Graphs ---------------------------------------------------------------------------------------
@cases
def graphs_of_a_model(torch: Any, log: Log) -> None:
    m = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    y = torch.nn.functional.mse_loss(m(torch.ones(4, 2)), torch.zeros(4, 1))
    seen = []
    stack = [(0, y.grad_fn)]
    while stack:
        depth, node = stack.pop()
        seen.append((depth, node.name()))
        stack.extend((depth + 1, n) for n, _ in node.next_functions if n is not None)
    log(seen)
    edge = torch.autograd.graph.get_gradient_edge(y)
    log(edge.node is y.grad_fn, edge.output_nr)
    first = torch.autograd.graph.get_gradient_edge(m[0].weight)
    log(first.node.name(), first.node.variable is m[0].weight)
    log(torch.autograd.grad(edge, first)[0].shape == m[0].weight.shape)


@cases
def nodes_are_not_copied(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0)
    for node in ((x * 2).grad_fn, torch.autograd.graph.get_gradient_edge(x).node):
        log.attempt("pickle", lambda node=node: pickle.dumps(node))
        log.attempt("copy", lambda node=node: copy.copy(node))
        log.attempt("deepcopy", lambda node=node: copy.deepcopy(node))


@cases
def freed_graphs(torch: Any, log: Log) -> None:
    x = vector(torch, 2.0)
    y = x * x
    y.backward()
    log.attempt("again", lambda: y.backward())
    log.attempt("saved", lambda: y.grad_fn._saved_self)
    z = x + 1
    z.backward()
    z.backward()
    log(x.grad)
    w = (x * 3).exp()
    ref = weakref.ref(w)
    w.backward(retain_graph=True)
    w.backward()
    log(x.grad, ref() is w)
    del w
    log(ref() is None)


@cases
def higher_order(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0, 2.0)
    y = (x**3).sum()
    for _ in range(3):
        (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        log(y, y.requires_grad, y.grad_fn is not None)
    norm = torch.autograd.grad((x**2).sum(), x, create_graph=True)[0].norm()
    norm.backward()
    log(x.grad)


@cases
def coroutines(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0)

    @torch.no_grad()
    def numbers() -> Any:
        for _ in range(2):
            got = yield (x * 2).requires_grad
            log("got", got, torch.is_grad_enabled())

    g = numbers()
    log(next(g), torch.is_grad_enabled())
    log(g.send(5), torch.is_grad_enabled())
    g.close()

    async def main() -> bool:
        with torch.no_grad():
            await asyncio.sleep(0)
            return bool((x * 2).requires_grad)

    log(asyncio.run(main()), torch.is_grad_enabled())


results = cases.results
