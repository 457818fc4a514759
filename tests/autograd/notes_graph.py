"""The situations of PyTorch's notes on autograd, in small: mechanics, hooks, checkpoints, profiles.

See `scripted`. Each script is one section of a note or tutorial.
"""

from __future__ import annotations

import asyncio
import copy
import gc
import importlib
import os
import pickle
import tempfile
import threading
import weakref
from functools import partial
from typing import Any

from scripted import Bank, Log, attempt, leaf

script = Bank()


# --- Autograd mechanics -------------------------------------------------------------------------
@script
def saved_tensors(torch: Any, log: Log) -> None:
    x = leaf(torch, 1.0, -2.0, 3.0)
    y = x.pow(2)
    log(x.equal(y.grad_fn._saved_self), x is y.grad_fn._saved_self, y.grad_fn._saved_exponent)
    y = x.exp()
    log(y.equal(y.grad_fn._saved_result), y is y.grad_fn._saved_result)
    log([n for n in dir(y.grad_fn) if n.startswith(("_saved_", "_raw_saved_"))])


@script
def subgradients(torch: Any, log: Log) -> None:
    x = leaf(torch, -1.0, 0.0, 1.0)
    for f in (
        lambda t: t.relu(), lambda t: t.abs(), lambda t: t.sqrt(), lambda t: t.sign(),
        lambda t: t.max(), lambda t: torch.clamp(t, min=0.0), lambda t: t.norm(),
        lambda t: torch.maximum(t, torch.zeros(3)), lambda t: t.floor(), lambda t: t.log(),
        lambda t: t.amax(), lambda t: torch.where(t > 0, t, torch.zeros(3)), lambda t: t.pow(0.5),
        lambda t: t.median(), lambda t: t.pow(0), lambda t: t ** t, lambda t: torch.dist(t, t),
        lambda t: t.prod(), lambda t: t.std(), lambda t: t.acos(), lambda t: t.argmax().float(),
    ):  # fmt: skip
        y = f(x)
        attempt(log, str(y.requires_grad), lambda y=y: repr(torch.autograd.grad(y.sum(), x)))


@script
def division_by_zero_and_masks(torch: Any, log: Log) -> None:
    x = leaf(torch, 1.0, 1.0)
    div = torch.tensor([0.0, 1.0])
    y = x / div
    mask = div != 0
    y[mask].sum().backward()
    log(repr(x.grad))
    x.grad = None
    y = x / div
    torch.where(mask, y, torch.zeros(2)).sum().backward()
    log(repr(x.grad))


@script
def locally_disabling(torch: Any, log: Log) -> None:
    x = leaf(torch, 1.0)
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


@script
def inference(torch: Any, log: Log) -> None:
    x = torch.ones(1, 2, 3, requires_grad=True)
    with torch.inference_mode():
        y = x * x
        log(torch.is_inference_mode_enabled(), torch.is_inference(y), y.is_inference())
        attempt(log, "version", lambda: y._version)
        z = torch.ones(2)
    log(y.requires_grad, torch.is_inference(x), torch.is_inference_mode_enabled())
    attempt(log, "version", lambda: y._version)
    attempt(log, "saved", lambda: x * y)
    attempt(log, "add", lambda: repr(x + y))
    attempt(log, "write", lambda: y.add_(1))
    attempt(log, "ask", lambda: z.requires_grad_())
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


@script
def evaluation_mode_is_another_thing(torch: Any, log: Log) -> None:
    m = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(2))
    m.eval()
    log(m.training, m[1].training, m(torch.ones(3, 2)).requires_grad)
    m.train()
    log(m.training)


@script
def writes_in_place(torch: Any, log: Log) -> None:
    x = leaf(torch, 1.0, 2.0)
    attempt(log, "leaf", lambda: x.add_(1))
    with torch.no_grad():
        x.add_(1)
    log(x, x._version)
    y = x * 2
    z = y.exp()
    z.mul_(2)
    attempt(log, "needed", lambda: z.sum().backward())
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
    a, b = (x * 2).unbind()
    attempt(log, "unbind", lambda: a.add_(1))
    e = x.detach().expand(3, 2)
    attempt(log, "expanded", lambda: e.add_(1))


@script
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


@script
def complex_numbers(torch: Any, log: Log) -> None:
    z = torch.tensor([1 + 2j, -0.5 + 1j], requires_grad=True)
    (z * z.conj()).real.sum().backward()
    log(repr(z.grad))
    z.grad = None
    (z**2).sum().abs().backward()
    log(repr(z.grad))
    attempt(log, "complex", lambda: (z**2).sum().backward())
    z.grad = None
    (z**2).backward(torch.ones_like(z))
    log(repr(z.grad))
    z.grad = None
    (z.real**2 + 3 * z.imag).sum().backward()
    log(repr(z.grad))
    with torch.no_grad():
        z -= 0.1 * z.grad
    log(repr(z))
    r = leaf(torch, 1.0, 2.0)
    (r * (1 + 1j)).abs().sum().backward()
    log(repr(r.grad))
    w = torch.view_as_real(z)
    log(repr(torch.autograd.grad((w * w).sum(), z)))


# --- hooks ----------------------------------------------------------------------------------------
@script
def when_hooks_fire(torch: Any, log: Log) -> None:
    a = leaf(torch, 1.0, 2.0)
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


@script
def hooks_and_writes(torch: Any, log: Log) -> None:
    t = leaf(torch, 1.0).sin()
    t.register_hook(lambda g: log("before the write", g))
    t.retain_grad()
    t.mul_(2)
    t.register_hook(lambda g: log("after the write", g))
    t.backward(torch.ones(1))
    log(t.grad)


@script
def hooks_that_change_gradients(torch: Any, log: Log) -> None:
    v = leaf(torch, 0.0, 0.0, 0.0)
    h = v.register_hook(lambda grad: grad * 2)
    v.backward(torch.tensor([1.0, 2.0, 3.0]))
    log(v.grad)
    h.remove()
    v.backward(torch.tensor([1.0, 2.0, 3.0]))
    log(v.grad)
    w = leaf(torch, 0.0, 0.0, 0.0)
    # the update returns the tensor it wrote, which is no other
    h = w.register_post_accumulate_grad_hook(lambda p: p.add_(p.grad, alpha=-0.5))
    w.backward(torch.tensor([1.0, 2.0, 3.0]))
    log(w)
    h.remove()
    w.register_post_accumulate_grad_hook(lambda p: p * 2)
    w.register_post_accumulate_grad_hook(lambda p: log("second"))
    attempt(log, "other", lambda: w.backward(torch.ones(3)))
    with w.register_hook(lambda g: log("inside")) as handle:
        log(type(handle).__name__)


@script
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


@script
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


@script
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
        attempt(log, "call", lambda: m(torch.ones(1)))
        log(m(torch.ones(1), fail=False))
    with module.register_module_forward_pre_hook(lambda m, args: (args[0] * 2, False)):
        log(m(torch.ones(1)))
    with module.register_module_parameter_registration_hook(
        lambda m, name, p: torch.nn.Parameter(torch.zeros_like(p))
    ):
        m.weight = torch.nn.Parameter(torch.ones(2))
    log(m.weight, len(list(m.parameters())))


@script
def hooks_of_optimisers(torch: Any, log: Log) -> None:
    p = leaf(torch, 1.0)
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
@script
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
    raw = x.exp().grad_fn._raw_saved_result
    attempt(log, "no hook", lambda: raw.register_hooks(1, 2))
    attempt(log, "written", lambda: raw.register_hooks(lambda t: t.mul_(2), lambda t: t))


@script
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
        small = leaf(torch, 2.0)
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
    x = leaf(torch, 0.0, 1.0)
    m(x).sum().backward()
    log(x.grad)


@script
def refused_packing(torch: Any, log: Log) -> None:
    x = leaf(torch, 1.0)
    with torch.autograd.graph.disable_saved_tensors_hooks("no hooks here"):

        def enter() -> None:
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                x.exp()

        attempt(log, "disabled", enter)
        attempt(log, "cpu", lambda: torch.autograd.graph.save_on_cpu().__enter__())

    def bad(t: Any) -> Any:
        t += 1
        return t

    def use(pack: Any, unpack: Any) -> Any:
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            return x.exp()

    attempt(log, "pack writes", lambda: use(bad, lambda t: t))
    attempt(log, "unpack gives no tensor", lambda: use(lambda t: t, lambda t: 1).backward())


@script
def mutation_allowed(torch: Any, log: Log) -> None:
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        a = torch.ones(2, 3, requires_grad=True)
        b = a.clone()
        out = (b**2).sum()
        b.sin_()
        out.sum().backward()
        log(a.grad)


@script
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


# --- An optimiser step inside the backward pass --------------------------------------------------
@script
def optimiser_in_backward(torch: Any, log: Log) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    torch.manual_seed(0)
    other = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    optimisers = {p: torch.optim.Adam([p], foreach=False) for p in model.parameters()}
    usual = torch.optim.Adam(other.parameters())

    def step(parameter: Any) -> None:
        optimisers[parameter].step()
        optimisers[parameter].zero_grad()

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(step)
    x = torch.arange(6.0).reshape(2, 3)
    for _ in range(3):
        model(x).sum().backward()
        usual.zero_grad()
        other(x).sum().backward()
        usual.step()
    log([p.grad for p in model.parameters()])
    pairs = zip(model.parameters(), other.parameters(), strict=True)
    log([torch.allclose(p, q) for p, q in pairs])
    log([round(p.sum().item(), 4) for p in model.parameters()])


@script
def gradients_by_hand(torch: Any, log: Log) -> None:
    model = torch.nn.Linear(2, 1)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    before = [p.detach().clone() for p in model.parameters()]
    optimiser.step()
    log([q - p for p, q in zip(model.parameters(), before, strict=True)])
    optimiser.zero_grad(set_to_none=False)
    log([p.grad for p in model.parameters()])
    optimiser.zero_grad()
    log([p.grad for p in model.parameters()])
    log(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0))
    model(torch.ones(1, 2)).sum().backward()
    log(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0))
    log([p.grad for p in model.parameters()])
    torch.nn.utils.clip_grad_value_(model.parameters(), 0.25)
    log([p.grad for p in model.parameters()])


# --- The dtype and the layout of gradients --------------------------------------------------------
@script
def dtypes_of_gradients(torch: Any, log: Log) -> None:
    x = leaf(torch, 1.0, 2.0)
    log(str(x.grad_dtype))
    x.grad_dtype = torch.float16
    (x * 2).sum().backward()
    (x * 2).sum().backward()
    log(repr(x.grad), str(x.grad_dtype))
    attempt(log, "other", lambda: setattr(x, "grad_dtype", torch.float64))
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
    attempt(log, "no dtype", lambda: setattr(x, "grad_dtype", "float"))
    attempt(log, "asked of an interior tensor", lambda: (x * 2).grad_dtype)
    attempt(log, "set", lambda: setattr(x * 2, "grad_dtype", None))


@script
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


# --- Checkpoints ----------------------------------------------------------------------------------
@script
def checkpoints(torch: Any, log: Log) -> None:
    from_utils = torch.utils.checkpoint
    torch.manual_seed(1)
    layers = [torch.nn.Linear(3, 3) for _ in range(4)]
    model = torch.nn.Sequential(*[m for a in layers for m in (a, torch.nn.ReLU())])
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    calls = []
    for m in model:
        m.register_forward_hook(lambda m, a, y: calls.append(type(m).__name__))
    model(x).sum().backward()
    want = [x.grad.clone(), *[p.grad.clone() for p in model.parameters()]]
    for reentrant in (True, False):
        for segments in (1, 2, 4):
            x.grad = None
            model.zero_grad()
            calls.clear()
            y = from_utils.checkpoint_sequential(model, segments, x, use_reentrant=reentrant)
            y.sum().backward()
            got = [x.grad, *[p.grad for p in model.parameters()]]
            same = all(torch.allclose(p, q) for p, q in zip(got, want, strict=True))
            log(reentrant, segments, same, len(calls))
    dropout = torch.nn.Dropout(0.5)
    z = torch.ones(20, requires_grad=True)
    for reentrant in (True, False):
        z.grad = None
        y = from_utils.checkpoint(dropout, z, use_reentrant=reentrant)
        y.sum().backward()
        log(bool((y == z.grad).all()))
    log(from_utils.checkpoint(lambda a, b=1: a * b, z, b=3, use_reentrant=False)[0])
    attempt(
        log, "kwargs", lambda: from_utils.checkpoint(lambda a, b: a, z, b=3, use_reentrant=True)
    )
    y = from_utils.checkpoint(torch.sin, z, use_reentrant=True).sum()
    attempt(log, "grad", lambda: torch.autograd.grad(y, z))


@script
def selective_checkpoints(torch: Any, log: Log) -> None:
    utils = torch.utils.checkpoint
    seen: list[str] = []

    def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(str(op))
        products = (torch.ops.aten.mm.default,)
        policies = utils.CheckpointPolicy
        return policies.MUST_SAVE if op in products else policies.PREFER_RECOMPUTE

    x, w = torch.eye(2, requires_grad=True), torch.arange(4.0).reshape(2, 2).requires_grad_()
    for chosen in ([torch.ops.aten.mm.default], policy):
        contexts = partial(utils.create_selective_checkpoint_contexts, chosen)
        y = utils.checkpoint(
            lambda a, b: torch.sigmoid(a @ b), x, w, use_reentrant=False, context_fn=contexts
        )
        y.sum().backward()
        log(y, x.grad, w.grad)
    log([name for name in seen if "mm" in name or "sigmoid" in name])


# --- Anomalies ------------------------------------------------------------------------------------
@script
def anomalies(torch: Any, log: Log) -> None:
    class MyFunc(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, inp: Any) -> Any:
            return inp.clone()

        @staticmethod
        def backward(ctx: Any, gO: Any) -> Any:
            raise RuntimeError("Some error in backward")

    def run(a: Any) -> None:
        MyFunc.apply(a).sum().backward()

    attempt(log, "plain", lambda: run(torch.rand(3, requires_grad=True)))
    with torch.autograd.detect_anomaly():
        attempt(log, "mode", lambda: run(torch.rand(3, requires_grad=True)))
        x = leaf(torch, -1.0)
        attempt(log, "nan", lambda: x.sqrt().backward())
        log(torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled())
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        log(torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled())
        x.sqrt().backward()
    log(repr(x.grad), torch.is_anomaly_enabled())


# --- Graphs ---------------------------------------------------------------------------------------
@script
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


@script
def nodes_are_not_copied(torch: Any, log: Log) -> None:
    x = leaf(torch, 1.0)
    for node in ((x * 2).grad_fn, torch.autograd.graph.get_gradient_edge(x).node):
        attempt(log, "pickle", lambda node=node: pickle.dumps(node))
        attempt(log, "copy", lambda node=node: copy.copy(node))
        attempt(log, "deepcopy", lambda node=node: copy.deepcopy(node))


@script
def freed_graphs(torch: Any, log: Log) -> None:
    x = leaf(torch, 2.0)
    y = x * x
    y.backward()
    attempt(log, "again", lambda: y.backward())
    attempt(log, "saved", lambda: y.grad_fn._saved_self)
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


@script
def higher_order(torch: Any, log: Log) -> None:
    x = leaf(torch, 1.0, 2.0)
    y = (x**3).sum()
    for _ in range(3):
        (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        log(y, y.requires_grad, y.grad_fn is not None)
    norm = torch.autograd.grad((x**2).sum(), x, create_graph=True)[0].norm()
    norm.backward()
    log(x.grad)


@script
def coroutines(torch: Any, log: Log) -> None:
    x = leaf(torch, 1.0)

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


# --- Profiles -------------------------------------------------------------------------------------
@script
def profiles(torch: Any, log: Log) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())
    x = torch.ones(2, 4)
    p = torch.profiler
    with p.profile(activities=[p.ProfilerActivity.CPU], record_shapes=True) as prof:
        with p.record_function("model_inference"):
            model(x)
    rows = {row.key: row.count for row in prof.key_averages()}
    log(rows["model_inference"], rows["aten::addmm"], rows["aten::relu"])
    table = prof.key_averages().table(sort_by="cpu_time_total", row_limit=10)
    log([name in table for name in ("Name", "Self CPU", "# of Calls", "model_inference")])
    shaped = prof.key_averages(group_by_input_shape=True)
    log([row.input_shapes[:3] for row in shaped if row.key == "aten::addmm"])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        prof.export_chrome_trace(path)
        log(os.path.getsize(path) > 100)
    ready = []
    schedule = p.schedule(skip_first=1, wait=1, warmup=1, active=2, repeat=2)
    log([schedule(i).name for i in range(12)])

    def done(prof: Any) -> None:
        ready.append(prof.step_num)

    with p.profile(
        activities=[p.ProfilerActivity.CPU],
        schedule=p.schedule(wait=1, warmup=1, active=2),
        on_trace_ready=done,
    ) as prof:
        for _ in range(8):
            model(x)
            prof.step()
    log(ready)
    with torch.autograd.profiler.profile(record_shapes=True) as old:
        y = x.clone().requires_grad_()
        for _ in range(3):
            z = y**2
            z.backward(torch.ones_like(z))
    rows = {row.key: row.count for row in old.key_averages()}
    log(rows["aten::pow"] >= 3, any("PowBackward0" in key for key in rows))
