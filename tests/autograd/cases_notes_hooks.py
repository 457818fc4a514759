"""Hooks: on tensors, nodes, modules and optimisers, and on what is saved for backward.

The situations of PyTorch's notes and tutorials, in small.
"""

from __future__ import annotations

import gc
import importlib
import os
import tempfile
from typing import Any

from tests.harness import Log, LoggedCases, vector

cases = LoggedCases()


# --- Hooks ----------------------------------------------------------------------------------------
@cases
def when_hooks_fire(torch: Any, log: Log) -> None:
    a = vector(torch, 1.0, 2.0)
    b = a * 2
    c = b.exp()
    for name, t in (("a", a), ("b", b), ("c", c)):
        t.register_hook(lambda g, name=name: log("hook", name, g))
    b.retain_grad()
    b.grad_fn.register_prehook(lambda go: log("pre", go))
    b.grad_fn.register_hook(lambda gi, go: log("post", gi, go))
    a.register_post_accumulate_grad_hook(lambda t: log("accumulated", t.grad))
    c.sum().backward(retain_graph=True)
    log(b.grad, a.grad, c.retains_grad, b.retains_grad, a.retains_grad)
    log("grad")
    log(torch.autograd.grad(c.sum(), b, retain_graph=True))
    log("inputs")
    c.sum().backward(inputs=[a])


@cases
def hooks_and_writes(torch: Any, log: Log) -> None:
    t = vector(torch, 1.0).sin()
    t.register_hook(lambda g: log("before the write", g))
    t.retain_grad()
    t.mul_(2)
    t.register_hook(lambda g: log("after the write", g))
    t.backward(torch.ones(1))
    log(t.grad)


@cases
def hooks_that_change_gradients(torch: Any, log: Log) -> None:
    v = vector(torch, 0.0, 0.0, 0.0)
    h = v.register_hook(lambda grad: grad * 2)
    v.backward(torch.tensor([1.0, 2.0, 3.0]))
    log(v.grad)
    h.remove()
    v.backward(torch.tensor([1.0, 2.0, 3.0]))
    log(v.grad)
    w = vector(torch, 0.0, 0.0, 0.0)
    # the update returns the tensor it wrote, which is no other
    h = w.register_post_accumulate_grad_hook(lambda p: p.add_(p.grad, alpha=-0.5))
    w.backward(torch.tensor([1.0, 2.0, 3.0]))
    log(w)
    h.remove()
    w.register_post_accumulate_grad_hook(lambda p: p * 2)
    w.register_post_accumulate_grad_hook(lambda p: log("second"))
    log.attempt("other", lambda: w.backward(torch.ones(3)))
    with w.register_hook(lambda g: log("inside")) as handle:
        log(type(handle).__name__)


@cases
def hooks_of_modules(torch: Any, log: Log) -> None:
    m = torch.nn.Linear(2, 1)
    with torch.no_grad():
        m.weight.copy_(torch.tensor([[1.0, 2.0]]))
        m.bias.zero_()
    m.register_forward_pre_hook(lambda mod, args: log("pre", *args))
    m.register_forward_hook(lambda mod, args, out: log("forward", *args, out))
    m.register_full_backward_pre_hook(lambda mod, go: log("backward pre", go))
    m.register_full_backward_hook(lambda mod, gi, go: log("backward", gi, go))
    x = torch.ones(1, 2, requires_grad=True)
    m(x).backward()
    log(x.grad)
    m(torch.ones(1, 2)).backward()


@cases
def hooks_of_all_modules(torch: Any, log: Log) -> None:
    module = torch.nn.modules.module
    handles = [
        module.register_module_forward_pre_hook(lambda m, a: log("pre", type(m).__name__)),
        module.register_module_forward_hook(lambda m, a, y: log("forward", type(m).__name__, y)),
        module.register_module_full_backward_hook(
            lambda m, gi, go: log("backward", type(m).__name__, gi, go)
        ),
        module.register_module_full_backward_pre_hook(
            lambda m, go: log("backward pre", type(m).__name__, go)
        ),
        module.register_module_buffer_registration_hook(lambda m, n, b: log("buffer", n, b)),
        module.register_module_module_registration_hook(
            lambda m, n, s: log("module", n, type(s).__name__)
        ),
        module.register_module_parameter_registration_hook(
            lambda m, n, p: log("parameter", n, list(p.shape))
        ),
    ]
    try:
        m = torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Sigmoid())
        m.register_buffer("scale", torch.ones(1))
        torch.nn.Linear(3, 2)
        m[0].register_forward_hook(lambda mod, a, y: log("own"))
        m(torch.zeros(2, requires_grad=True)).sum().backward()
        m.other = torch.nn.ReLU()
        m.other = None
        del m.other
    finally:
        for h in handles:
            h.remove()
    m(torch.zeros(2, requires_grad=True)).sum().backward()


@cases
def hooks_of_all_modules_when_calls_fail(torch: Any, log: Log) -> None:
    module = torch.nn.modules.module

    class Fails(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any, fail: bool = True) -> Any:
            if fail:
                raise ValueError("in forward")
            return x

    def note(name: str) -> Any:
        return lambda m, args, *rest: log(name, *rest)

    m = Fails()
    with (
        module.register_module_forward_hook(note("always"), always_call=True),
        module.register_module_forward_hook(note("kwargs"), with_kwargs=True),
    ):
        m.register_forward_hook(note("own always"), always_call=True)
        log.attempt("call", lambda: m(torch.ones(1)))
        log(m(torch.ones(1), fail=False))
    with module.register_module_forward_pre_hook(lambda m, args: (args[0] * 2, False)):
        log(m(torch.ones(1)))
    with module.register_module_parameter_registration_hook(
        lambda m, name, p: torch.nn.Parameter(torch.zeros_like(p))
    ):
        m.weight = torch.nn.Parameter(torch.ones(2))
    log(m.weight, len(list(m.parameters())))


@cases
def hooks_of_optimisers(torch: Any, log: Log) -> None:
    p = vector(torch, 1.0)
    p.grad = torch.ones(1)
    optimiser = torch.optim.SGD([p], lr=0.5)
    module = importlib.import_module(torch.__name__ + ".optim.optimizer")

    def note(name: str) -> Any:
        return lambda o, args, kwargs: log(name, o is optimiser, len(args), list(kwargs), p)

    optimiser.register_step_pre_hook(note("before"))
    optimiser.register_step_post_hook(note("after"))
    with (
        module.register_optimizer_step_pre_hook(note("before all")),
        module.register_optimizer_step_post_hook(note("after all")),
    ):
        optimiser.step()
        optimiser.step(closure=lambda: 3)
    optimiser.register_step_pre_hook(lambda o, a, k: ((o,), {"closure": lambda: log("closure")}))
    optimiser.step()
    optimiser.register_step_pre_hook(lambda o, a, k: 3)
    try:
        optimiser.step()
    except RuntimeError as error:
        log(str(error).split(" must ")[1])


# --- Hooks for saved tensors ----------------------------------------------------------------------
@cases
def packing(torch: Any, log: Log) -> None:
    def pack(x: Any) -> Any:
        log("pack", x)
        return x * 1

    def unpack(x: Any) -> Any:
        log("unpack", x)
        return x

    a = torch.ones(2, requires_grad=True)
    b = torch.ones(2) * 2
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = a * b
    y.sum().backward()
    log(a.grad)
    x = torch.ones(2, requires_grad=True)
    y = x.pow(2)
    y.grad_fn._raw_saved_self.register_hooks(lambda t: t * 4, lambda t: t / 2)
    y.sum().backward()
    log(x.grad)
    z = x.exp()  # kept: PyTorch's saved tensors point into a node that they do not keep
    raw = z.grad_fn._raw_saved_result
    log.attempt("no hook", lambda: raw.register_hooks(1, 2))
    log.attempt("written", lambda: raw.register_hooks(lambda t: t.mul_(2), lambda t: t))


@cases
def on_disk(torch: Any, log: Log) -> None:
    removed = []

    class SelfDeletingTempFile:
        def __init__(self) -> None:
            self.name = os.path.join(folder, f"{len(os.listdir(folder))}.pt")

        def __del__(self) -> None:
            removed.append(self.name)
            os.remove(self.name)

    def pack(x: Any) -> Any:
        if x.numel() < 4:
            return x
        temp = SelfDeletingTempFile()
        torch.save(x, temp.name)
        return temp

    def unpack(packed: Any) -> Any:
        return packed if isinstance(packed, torch.Tensor) else torch.load(packed.name)

    with tempfile.TemporaryDirectory() as folder:
        x = torch.arange(5.0, requires_grad=True)
        small = vector(torch, 2.0)
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            y = (x.exp() * x).sum() * small.sin()
        log(len(os.listdir(folder)))
        y.backward()
        del y
        gc.collect()
        log(len(os.listdir(folder)), x.grad, small.grad)

    class SaveToDisk(torch.nn.Module):
        def __init__(self, module: Any) -> None:
            super().__init__()
            self.module = module

        def forward(self, *args: Any) -> Any:
            with torch.autograd.graph.save_on_cpu(pin_memory=False):
                return self.module(*args)

    m = SaveToDisk(torch.nn.Tanh())
    x = vector(torch, 0.0, 1.0)
    m(x).sum().backward()
    log(x.grad)


@cases
def refused_packing(torch: Any, log: Log) -> None:
    x = vector(torch, 1.0)
    with torch.autograd.graph.disable_saved_tensors_hooks("no hooks here"):

        def enter() -> None:
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                x.exp()

        log.attempt("disabled", enter)
        log.attempt("cpu", lambda: torch.autograd.graph.save_on_cpu().__enter__())

    def bad(t: Any) -> Any:
        t += 1
        return t

    def use(pack: Any, unpack: Any) -> Any:
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            return x.exp()

    log.attempt("pack writes", lambda: use(bad, lambda t: t))
    log.attempt("unpack gives no tensor", lambda: use(lambda t: t, lambda t: 1).backward())


@cases
def mutation_allowed(torch: Any, log: Log) -> None:
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        a = torch.ones(2, 3, requires_grad=True)
        b = a.clone()
        out = (b**2).sum()
        b.sin_()
        out.sum().backward()
        log(a.grad)


@cases
def several_gradients_at_once(torch: Any, log: Log) -> None:
    a, b, c, d = (torch.rand(2, 3, requires_grad=True) for _ in range(4))
    e = a * b
    f = c.sum() + e.sum()
    seen: list[Any] = []
    register = torch.autograd.graph.register_multi_grad_hook
    handle = register((a, b, c, d), lambda grads: seen.append([g is not None for g in grads]))
    f.backward(retain_graph=True)
    log(seen)
    f.backward(inputs=(a,), retain_graph=True)
    log(seen)
    handle.remove()
    f.backward(retain_graph=True)
    log(len(seen))
    register((a, b, c), lambda g: seen.append(list(g.shape)), mode="any")
    f.backward()
    log(seen)


results = cases.results
