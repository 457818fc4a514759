"""What profilers show of small programs, and when they record."""

from __future__ import annotations

import itertools
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.harness import Cases, as_stored, attempt

OUTSIDE = "autograd::engine::evaluate_function: "


class ProfilerCases(Cases):
    """Cases of which the warnings count too."""

    def run(self, lib: Any, name: str) -> Any:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            result = attempt(lambda: self[name](lib))
        # PyTorch says once in a program that a cycle clears the last one's events
        said = [w for w in said if "clears events" not in str(w)]
        told = {f"{w.category.__name__}: {w.message}" for w in said}
        return as_stored({"result": result, "warnings": sorted(told)})


cases = ProfilerCases()


# --- which events, and how often ------------------------------------------------------------------
def in_backward(event: Any) -> bool:
    while event is not None:
        if event.scope == 1 or event.name.startswith(OUTSIDE):
            return True
        event = event.cpu_parent
    return False


COMPOSED = ("aten::linear", "aten::matmul")


def inside_an_op(event: Any) -> bool:
    while event.cpu_parent is not None:
        event = event.cpu_parent
        if event.name.startswith("aten::") and event.name not in COMPOSED:
            return True
    return False


def counts(events: Any) -> dict[str, dict[str, int]]:
    """How often each op occurs in the forward pass, without what PyTorch makes it of, and each
    node in the backward pass."""
    forward, backward = Counter[str](), Counter[str]()
    for event in events:
        if not in_backward(event):
            if event.name not in COMPOSED and not inside_an_op(event):
                forward[event.name] += 1
        elif not event.name.startswith("aten::") and event.name != "detach":
            backward[event.name] += 1
    return {"forward": dict(sorted(forward.items())), "backward": dict(sorted(backward.items()))}


def profiled(program: Callable[[Any], None]) -> Callable[[Any], Any]:
    def run(torch: Any) -> Any:
        torch.manual_seed(0)
        with torch.autograd.profiler.profile() as prof:
            program(torch)
        return counts(prof.function_events)

    cases[f"counts: {program.__name__}"] = run
    return run


@profiled
def model(torch: Any) -> None:
    nn = torch.nn
    net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2), nn.ReLU())
    x = torch.ones(5, 3)
    for _ in range(3):
        with torch.autograd.profiler.record_function("step"):
            loss = ((net(x) - 1) ** 2).mean()
            loss.backward()


@profiled
def arithmetic(torch: Any) -> None:
    x = torch.ones(4, requires_grad=True)
    y = ((x * x + x.exp()) / 2 - x.sin().neg()).abs().sqrt()
    (y.sum() + y.max() + y.mean(0) + y.log().cumsum(0).prod()).backward()


@profiled
def matrices(torch: Any) -> None:
    a = torch.ones(3, 4, requires_grad=True)
    b = torch.ones(4, 2, requires_grad=True)
    batch = torch.ones(2, 3, 4, requires_grad=True)
    (a @ b).sum().backward()
    torch.bmm(batch, batch.transpose(1, 2)).sum().backward()
    torch.addmm(torch.ones(3, 2), a, b).sum().backward()


@profiled
def views(torch: Any) -> None:
    x = torch.ones(4, 6, requires_grad=True)
    y = x.t().view(-1, 2) if x.t().is_contiguous() else x.view(-1, 2).unsqueeze(0).permute(2, 1, 0)
    (y.squeeze(-1)[1] * x.select(0, 1).sum()).sum().backward()


@profiled
def in_place(torch: Any) -> None:
    x = torch.ones(4, requires_grad=True)
    y = x * 2
    y.mul_(3)
    y.add_(x)
    y += 1
    y.exp_()
    y.sum().backward()


@profiled
def without_grad(torch: Any) -> None:
    x = torch.ones(4, requires_grad=True)
    with torch.no_grad():
        y = x * 2 + 1
    with torch.inference_mode():
        y = y.exp()


@profiled
def several_gradients_of_one_leaf(torch: Any) -> None:
    x = torch.ones(4, requires_grad=True)
    (x * 2 + x * 3 + x.exp()).sum().backward()


@profiled
def grad_of_leaf_and_inside(torch: Any) -> None:
    x = torch.ones(4, requires_grad=True)
    w = torch.ones(4, requires_grad=True)
    y = (x * w).exp()
    torch.autograd.grad(y.sum(), (x, y))


@profiled
def second_order(torch: Any) -> None:
    x = torch.ones(4, requires_grad=True)
    (g,) = torch.autograd.grad(x.sin().sum(), x, create_graph=True)
    g.sum().backward()


@profiled
def custom_function(torch: Any) -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    Double.apply(torch.ones(4, requires_grad=True)).sum().backward()


@profiled
def backward_twice(torch: Any) -> None:
    x = torch.ones(4, requires_grad=True)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()


# --- what an event has ----------------------------------------------------------------------------
@cases
def shapes_flops_memory(torch: Any) -> Any:
    a = torch.ones(3, 4, requires_grad=True)
    b = torch.ones(4, 2)
    with torch.autograd.profiler.profile(
        record_shapes=True, with_flops=True, profile_memory=True
    ) as prof:
        y = a @ b
        y = y * y
        torch.addmm(y, a, b)
        y + y
        torch.bmm(a.unsqueeze(0), b.unsqueeze(0))
    wanted = ("aten::mm", "aten::mul", "aten::addmm", "aten::add", "aten::bmm")
    return [
        [e.name, e.input_shapes[: 3 if e.name == "aten::addmm" else 2], e.flops, e.cpu_memory_usage]
        for e in prof.function_events
        if e.name in wanted
    ]


@cases
def nesting(torch: Any) -> Any:
    record, x = torch.autograd.profiler.record_function, torch.ones(2, requires_grad=True)

    @record("decorated")
    def double(x: Any) -> Any:
        return x * 2

    with torch.autograd.profiler.profile() as prof:
        with record("outer"):
            with record("inner", "args"):
                y = double(x)
            y = y.exp()
        with record("backward"):
            y.sum().backward()
    wanted = ("outer", "inner", "decorated", "backward", "aten::mul", "aten::exp", "ExpBackward0")
    return [
        [e.name, None if e.cpu_parent is None else e.cpu_parent.name, e.is_user_annotation, e.scope]
        for e in prof.function_events
        if e.name in wanted and not (e.name == "aten::mul" and in_backward(e))
    ]


@cases
def grouped_by_shape(torch: Any) -> Any:
    with torch.profiler.profile(record_shapes=True) as prof:
        for n in (2, 3, 2):
            torch.ones(n).exp()
    rows = prof.key_averages(group_by_input_shape=True)
    return sorted([r.key, r.count, r.input_shapes] for r in rows if r.key == "aten::exp")


@cases
def averages(torch: Any) -> Any:
    x = torch.ones(3)
    with torch.autograd.profiler.profile() as prof:
        for _ in range(4):
            x.exp()
    (row,) = (row for row in prof.key_averages() if row.key == "aten::exp")
    total = prof.total_average()
    return [
        row.count, row.input_shapes, row.stack, row.node_id, row.is_async, row.use_device,
        abs(row.cpu_time * 4 - row.cpu_time_total) < 1e-6,
        row.self_cpu_time_total <= row.cpu_time_total,
        total.key, abs(total.self_cpu_time_total - prof.self_cpu_time_total) < 1e-6,
        repr(row).split(" self_cpu_time=")[0],
    ]  # fmt: skip


def columns(torch: Any, **options: bool) -> Any:
    x = torch.ones(3, 3, requires_grad=True)
    with torch.profiler.profile(**options) as prof:
        (x * x).sum().backward()
    text = prof.key_averages(group_by_input_shape=True).table(header="title", row_limit=2)
    lines = text.splitlines()
    rules = [i for i, line in enumerate(lines) if line.startswith("----")]
    titles = [part for part in lines[rules[0] + 1].split("  ") if part.strip()]
    width = [len(part) for part in lines[rules[0]].split()]
    return [
        [part.strip() for part in titles], rules, lines[1], set(lines[0]) == {"="},
        lines[rules[2] + 1].split(":")[0], width[1:8],
    ]  # fmt: skip


for shapes, memory, flops in itertools.product((False, True), repeat=3):
    cases[f"table: shapes={shapes} memory={memory} flops={flops}"] = (
        lambda torch, shapes=shapes, memory=memory, flops=flops: columns(
            torch, record_shapes=shapes, profile_memory=memory, with_flops=flops
        )
    )  # fmt: skip


@cases
def formats(torch: Any) -> Any:
    util = torch.autograd.profiler_util
    event = util.FunctionEvent(1, "name", 1, 0.0, 1.0)
    found = []
    for us in (0.0, 0.1234, 999.9994, 1000.0, 123456.0, 1e6, 5e7):
        event.time_range.end = us
        found.append([event.cpu_time_str, event.cpu_time_total_str, event.self_cpu_time_total_str])
    interval = util.Interval(2.0, 5.5)
    return found, interval.elapsed_us(), event.key, event.count, event.thread, event.sequence_nr


# --- when -----------------------------------------------------------------------------------------
def actions(torch: Any, **options: int) -> list[str]:
    plan = torch.profiler.schedule(**options)
    return [plan(step).name for step in range(20)]


for wait, warmup, active, repeat, first, hasty in (
    (1, 1, 2, 0, 0, 0), (1, 1, 2, 1, 0, 0), (0, 1, 1, 2, 3, 0), (2, 0, 3, 0, 1, 0),
    (5, 1, 2, 2, 2, 1), (0, 0, 1, 0, 0, 0), (3, 2, 1, 3, 0, 1), (-1, 0, 1, 0, 0, 0),
    (0, 0, 0, 0, 0, 0), (0, -1, 1, 0, 0, 0), (0, 1, 1, -1, 0, 0), (0, 1, 1, 0, -1, 0),
):  # fmt: skip
    made = {
        "wait": wait, "warmup": warmup, "active": active, "repeat": repeat, "skip_first": first,
        "skip_first_wait": hasty,
    }  # fmt: skip
    cases[f"schedule: {wait} {warmup} {active} {repeat} {first} {hasty}"] = (
        lambda torch, made=made: actions(torch, **made)
    )


def loop(torch: Any, steps: int, plan: Any, **options: Any) -> Any:
    """A loop of profiled steps: what each trace had when it was ready, and what is left."""
    x, ready = torch.ones(3), []

    def seen(prof: Any) -> list[Any]:
        rows = {row.key: row.count for row in prof.key_averages()}
        return [prof.step_num, rows.get("aten::exp", 0), rows.get("ProfilerStep*", 0)]

    names = []
    with torch.profiler.profile(
        schedule=plan,
        on_trace_ready=lambda prof: (
            ready.append(seen(prof)),
            names.append(sorted(e.trace_name for e in prof.events() if "Step" in e.trace_name)),
        ),
        **options,
    ) as prof:
        for _ in range(steps):
            x.exp()
            prof.step()
        x.exp()
    return [ready, names, seen(prof), prof.current_action.name]


for steps, cycle in itertools.product((0, 1, 2, 3, 4, 5, 9), ((1, 1, 2), (0, 1, 1), (0, 0, 2))):
    for keep in (False, True):
        cases[f"loop: {steps} {cycle} keep={keep}"] = (
            lambda torch, steps=steps, cycle=cycle, keep=keep: loop(
                torch,
                steps,
                torch.profiler.schedule(wait=cycle[0], warmup=cycle[1], active=cycle[2]),
                acc_events=keep,
            )
        )


@cases
def loop_without_schedule(torch: Any) -> Any:
    return loop(torch, 3, None)


def odd_plan(torch: Any, names: str) -> Any:
    list_of = [getattr(torch.profiler.ProfilerAction, name) for name in names.split()]
    return loop(torch, len(list_of) - 1, lambda step: list_of[step])


for plan in (
    "NONE NONE NONE", "WARMUP NONE RECORD", "RECORD NONE NONE",  # not RECORD WARMUP: it crashes
    "RECORD_AND_SAVE RECORD_AND_SAVE NONE", "RECORD RECORD_AND_SAVE RECORD", "WARMUP WARMUP",
    "NONE RECORD_AND_SAVE WARMUP RECORD", "NONE DEVICE_STOPPED",
):  # fmt: skip
    cases[f"odd schedule: {plan}"] = lambda torch, plan=plan: odd_plan(torch, plan)


@cases
def start_and_stop(torch: Any) -> Any:
    prof, x = torch.profiler.profile(), torch.ones(2)
    x.exp()
    prof.start()
    x.exp()
    prof.stop()
    x.exp()
    return [row.count for row in prof.key_averages() if row.key == "aten::exp"]


# --- refusals -------------------------------------------------------------------------------------
@cases
def entered_twice(torch: Any) -> Any:
    prof = torch.autograd.profiler.profile()
    with prof:
        pass
    with prof:
        pass


@cases
def disabled(torch: Any) -> Any:
    with torch.autograd.profiler.profile(enabled=False) as prof:
        torch.ones(2).exp()
    return prof


@cases
def unfinished(torch: Any) -> Any:
    prof = torch.autograd.profiler.profile()
    return [repr(prof), str(prof), prof.table(), len(prof.key_averages())]


@cases
def empty(torch: Any) -> Any:
    with torch.autograd.profiler.profile() as prof:
        pass
    return [prof.table(), prof.key_averages().table(), prof.self_cpu_time_total, len(str(prof))]


@cases
def too_early(torch: Any) -> Any:
    found = []
    for what in ("key_averages", "events", "stop_trace", "start_trace", "get_trace_id"):
        try:
            found.append(getattr(torch.profiler.profile(), what)())
        except AssertionError as error:
            found.append(str(error))
    return found


@cases
def export_too_early(torch: Any) -> Any:
    torch.profiler.profile().export_chrome_trace("never.json")


@cases
def stacks_without_stack(torch: Any) -> Any:
    with torch.profiler.profile() as prof:
        torch.ones(2).exp()
    prof.export_stacks("never.txt")


@cases
def sort_by_nothing(torch: Any) -> Any:
    with torch.autograd.profiler.profile() as prof:
        torch.ones(2).exp()
    prof.table(sort_by="bogus")


@cases
def no_activities(torch: Any) -> Any:
    torch.profiler.profile(activities=[])


@cases
def activity_twice(torch: Any) -> Any:
    cpu = torch.profiler.ProfilerActivity.CPU
    torch.profiler.profile(activities=[cpu, cpu])


@cases
def cpu_only_without_gpu(torch: Any) -> Any:
    torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]).start()


@cases
def cuda_that_is_not_there(torch: Any) -> Any:
    kinds = torch.profiler.ProfilerActivity
    with torch.profiler.profile(activities=[kinds.CPU, kinds.CUDA]) as prof:
        torch.ones(2).exp()
    with torch.autograd.profiler.profile(use_cuda=True):
        torch.ones(2).exp()
    with torch.profiler.profile(use_cuda=False):
        torch.ones(2).exp()
    return [row.count for row in prof.key_averages() if row.key == "aten::exp"]


@cases
def device_only(torch: Any) -> Any:
    torch.autograd.profiler.profile(use_cpu=False)


@cases
def unknown_device(torch: Any) -> Any:
    torch.autograd.profiler.profile(use_device="abacus")


@cases
def negative_timeout(torch: Any) -> Any:
    torch.autograd.profiler.profile(post_processing_timeout_s=-1)


@cases
def name_that_is_no_text(torch: Any) -> Any:
    with (
        torch.autograd.profiler.profile(),
        torch.autograd.profiler.record_function(3),
    ):
        pass


@cases
def error_in_the_block(torch: Any) -> Any:
    x = torch.ones(2)
    try:
        with torch.autograd.profiler.profile() as prof:
            x.exp()
            with torch.autograd.profiler.record_function("range"):
                raise KeyError("mine")
    except KeyError:
        x.exp()
    return {row.key: row.count for row in prof.key_averages() if row.key in ("aten::exp", "range")}


@cases
def enums(torch: Any) -> Any:
    p = torch.profiler
    return [
        [[str(a), repr(a), int(a), a.name, a.value] for a in (p.ProfilerActivity.CPU,
                                                              p.ProfilerActivity.CUDA)],
        [[str(a), a.value] for a in p.ProfilerAction],
        [repr(p.DeviceType.CPU), str(p.DeviceType.CUDA), int(p.DeviceType.CUDA)],
        sorted(map(str, p.supported_activities())),
    ]  # fmt: skip


def results(torch: Any) -> Any:
    names = [name for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::")]
    ops = {name.removeprefix("aten::").split(".")[0] for name in names}
    return {"cases": cases.results(torch), "aten": sorted(ops)}
