"""Training: an optimiser inside the backward pass, checkpoints, anomalies, profiles.

The situations of PyTorch's notes and tutorials, in small.
"""

from __future__ import annotations

import os
import tempfile
from functools import partial
from typing import Any

from tests.harness import Log, LoggedCases, vector

cases = LoggedCases()


# --- An optimiser step inside the backward pass ---------------------------------------------------
@cases
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


@cases
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


# --- Checkpoints ----------------------------------------------------------------------------------
@cases
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
    log.attempt("kwargs", lambda: from_utils.checkpoint(lambda a, b: a, z, b=3, use_reentrant=True))
    y = from_utils.checkpoint(torch.sin, z, use_reentrant=True).sum()
    log.attempt("grad", lambda: torch.autograd.grad(y, z))


@cases
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
@cases
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

    log.attempt("plain", lambda: run(torch.rand(3, requires_grad=True)))
    with torch.autograd.detect_anomaly():
        log.attempt("mode", lambda: run(torch.rand(3, requires_grad=True)))
        x = vector(torch, -1.0)
        log.attempt("nan", lambda: x.sqrt().backward())
        log(torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled())
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        log(torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled())
        x.sqrt().backward()
    log(repr(x.grad), torch.is_anomaly_enabled())


# --- Profiles -------------------------------------------------------------------------------------
@cases
def profiles(torch: Any, log: Log) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())
    x = torch.ones(2, 4)
    p = torch.profiler
    with (
        p.profile(activities=[p.ProfilerActivity.CPU], record_shapes=True) as prof,
        p.record_function("model_inference"),
    ):
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


results = cases.results
