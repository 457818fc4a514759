"""The profilers show what PyTorch's do (stored, and live where it is installed), and the lines of
the user's program besides; while none is on there is nothing of them."""

from __future__ import annotations

import asyncio
import copy
import gc
import re
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import rushlight as torch
from rushlight.autograd import profiler_record
from rushlight.autograd.profiler import profile, record_function
from rushlight.autograd.profiler_record import profiled_name
from rushlight.core.engine.observers import begins
from rushlight.core.grad_mode import state
from rushlight.core.graph import Op
from rushlight.core.observer import observer
from tests.autograd import cases_profiler as written
from tests.autograd.profiler_helpers import line_here
from tests.autograd.profiler_state import no_profiler
from tests.harness import LIVE, stored

pytestmark = pytest.mark.usefixtures("profiler_off")
STORED = stored("autograd/profiler")


def places(prof: Any) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for event in prof.function_events:
        found.setdefault(event.name, set()).update(event.places)
    return found


# --- as PyTorch -----------------------------------------------------------------------------------
# What PyTorch shows and does not come through the op table here: making tensors, and housekeeping.
UNSEEN = {
    "aten::ones", "aten::empty", "aten::fill_", "aten::ones_like", "aten::uniform_",
    "aten::detach", "aten::result_type", "aten::to", "detach", "Double",
}  # fmt: skip


def differs(name: str, got: Any, want: Any) -> str:
    if name.startswith("counts") and isinstance(got["result"], dict):
        mine, theirs = got["result"], want["result"]
        missing = theirs["forward"].keys() - mine["forward"].keys()
        seen = {key: n for key, n in theirs["forward"].items() if key not in missing}
        right = mine["forward"] == seen and mine["backward"] == theirs["backward"]
        return "" if right and missing <= UNSEEN else f"{got} is not {want}"
    if name.startswith("table"):
        titles = got["result"][0]
        if titles.pop() != "Source Location":
            return f"the last column is not that of the lines: {got}"
        got["result"][-1] = want["result"][-1] = None  # widths: shapes have no numbers here
    return "" if got == want else f"{got} is not {want}"


@pytest.mark.parametrize("name", written.cases)
def test_as_pytorch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("autograd.profiler", "profiler.profiler"):  # it was stored where there is no GPU
        monkeypatch.setattr(f"rushlight.{module}.cuda_count", lambda: 0)
    got = written.cases.run(torch, name)
    assert not differs(name, got, copy.deepcopy(STORED["cases"][name]))


def test_every_case_is_stored() -> None:
    assert STORED["cases"].keys() == written.cases.keys()


if LIVE:

    @pytest.mark.parametrize("name", written.cases)
    def test_what_is_stored_is_what_pytorch_does(name: str) -> None:
        import torch as theirs

        assert written.cases.run(theirs, name) == STORED["cases"][name]


def all_ops(cls: type[Op] = Op) -> Iterator[type[Op]]:
    for sub in cls.__subclasses__():
        if sub.name and sub.__module__.startswith("rushlight."):
            yield sub
        yield from all_ops(sub)


def test_ops_have_the_names_of_pytorchs() -> None:
    known = set(STORED["aten"])
    titles = {profiled_name(op) for op in all_ops()}
    assert len(titles) > 300
    ours = {title for title in titles if title.startswith("rushlight::")}
    strange = {t for t in titles - ours if t.removeprefix("aten::").rstrip("_") not in known}
    assert not strange, "name them in `_RENAMED` or `_OWN` of autograd/profiler_record.py"
    assert not {t for t in ours if t.removeprefix("rushlight::") in known}


# --- lines ----------------------------------------------------------------------------------------
def test_every_row_has_the_line_it_is_due_to() -> None:
    x = torch.ones(3, requires_grad=True)
    with profile() as prof:
        y = x * x
        product = line_here(1)
        z = y.exp()
        power = line_here(1)
        z.sum().backward()
        call = line_here(1)
    found = places(prof)
    assert found["aten::mul"] == found["MulBackward0"] == {product}
    assert found["aten::exp"] == found["ExpBackward0"] == {power}
    assert found["autograd::engine::evaluate_function: ExpBackward0"] == {power}
    assert found["aten::sum"] == found["SumBackward0"] == {call}
    assert found["torch::autograd::AccumulateGrad"] == {call}
    assert all(event.where is not None for event in prof.function_events)
    text = prof.key_averages().table()
    (row,) = (line for line in text.splitlines() if line.split()[0] == "MulBackward0")
    assert row.rstrip().endswith(product)
    event = next(event for event in prof.function_events if event.name == "aten::mul")
    assert event.where.source == "y = x * x"
    assert event.stack == [
        f"{__file__}({product.split(':')[1]}): test_every_row_has_the_line_it_is_due_to"
    ]


def test_layers_and_losses_are_the_callers_line() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    x = torch.ones(2, 3)
    with profile() as prof:
        y = model(x)
        forward = line_here(1)
        torch.nn.functional.mse_loss(y, torch.zeros(2, 1)).backward()
        backward = line_here(1)
    found = places(prof)
    assert found["aten::addmm"] == found["aten::tanh"] == found["AddmmBackward0"] == {forward}
    assert found["MseLossBackward0"] == {backward}


def test_ops_inside_a_recorded_backward_belong_to_the_nodes_line() -> None:
    x = torch.ones(3, requires_grad=True)
    with profile() as prof:
        y = x.sin()
        made = line_here(1)
        torch.autograd.grad(y.sum(), x, create_graph=True)
    assert places(prof)["aten::cos"] == {made}
    (cos,) = (event for event in prof.function_events if event.name == "aten::cos")
    assert cos.cpu_parent is not None and cos.cpu_parent.name == "SinBackward0"


def test_hooks_and_functions_have_lines_of_their_own() -> None:
    def hook(g: Any) -> Any:
        return g.neg()

    hooked = line_here(2)

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * 3 * x.abs()

    ruled = line_here(2)
    x = torch.ones(3, requires_grad=True)
    with profile() as prof:
        y = Cube.apply(x)
        applied = line_here(1)
        y.register_hook(hook)
        y.sum().backward()
    found = places(prof)
    assert found["aten::neg"] == {hooked}
    assert found["aten::abs"] == {ruled}
    assert found["CubeBackward"] == {applied}
    parents = {e.name: e.cpu_parent.name for e in prof.function_events if e.cpu_parent is not None}
    assert parents["aten::abs"] == "CubeBackward"
    assert parents["aten::neg"] == "autograd::engine::evaluate_function: CubeBackward"


@pytest.mark.parametrize("to_none", [False, True])
def test_zero_grad_is_an_event(to_none: bool) -> None:
    x = torch.ones(3, requires_grad=True)
    x.grad = torch.ones(3)
    with profile() as prof:
        torch.optim.SGD([x], lr=0.1).zero_grad(set_to_none=to_none)
    names = [(event.name, event.is_user_annotation) for event in prof.function_events]
    inside = [] if to_none else [("aten::zero_", False)]
    assert names == [("Optimizer.zero_grad#SGD.zero_grad", True), *inside]


def test_the_warning_of_cleared_events_points_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rushlight.profiler.profiler._Told.cleared", False)
    cycles = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=2)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with torch.profiler.profile(schedule=cycles) as prof:
            for _ in range(5):
                prof.step()
    found = [w.filename for w in said if "clears events" in str(w.message)]
    assert found == [__file__]


def test_a_graph_from_before_the_profile_is_explained_too() -> None:
    x = torch.ones(3, requires_grad=True)
    y = (x * x).sum()
    made = line_here(1)
    with profile() as prof:
        y.backward()
    assert places(prof)["MulBackward0"] == {made}
    assert [e.sequence_nr for e in prof.function_events if e.name == "MulBackward0"] != [-1]


def test_rows_of_several_lines() -> None:
    x = torch.ones(3)
    with profile() as prof:
        for _ in range(3):
            x.exp()
            x.exp()
    (row,) = prof.key_averages()
    assert row.count == 6 and len(row.places) == 2
    assert sum(row.places.values()) == pytest.approx(row.self_cpu_time_total)
    dearest = max(row.places, key=row.places.__getitem__)
    assert f"{dearest} (+1)" in prof.key_averages().table()
    rows = prof.key_averages(group_by_stack_n=1)
    assert [row.count for row in rows] == [3, 3]
    assert all(len(row.stack) == 1 and len(row.places) == 1 for row in rows)


def test_whole_stacks(tmp_path: Path) -> None:
    def inner(x: Any) -> Any:
        return x.exp()

    def outer(x: Any) -> Any:
        return inner(x) + inner(x)

    x = torch.ones(1000)
    with profile(with_stack=True) as prof:
        outer(x)
    (first, second, _) = prof.function_events
    assert [entry.split(": ")[-1].split(".")[-1] for entry in first.stack[:3]] == [
        "inner", "outer", "test_whole_stacks",
    ]  # fmt: skip
    assert first.stack == second.stack or first.stack[1] != second.stack[1]
    rows = prof.key_averages(group_by_stack_n=2)
    text = rows.table()
    assert text.count("inner") == text.count(": test_whole_stacks.<locals>.inner")
    assert "Source Location" in text and "outer" in text
    file = tmp_path / "stacks.txt"
    prof.export_stacks(str(file), "self_cpu_time_total")
    for line in file.read_text("utf-8").splitlines():
        stack, cost = line.split(" ")
        assert int(cost) > 0
        assert stack.split(";")[-1].endswith(("inner", "outer"))
    with pytest.raises(ValueError, match="metric should be one of: "):
        prof.export_stacks(str(file), "bogus")


# --- on and off -----------------------------------------------------------------------------------
def test_only_while_on() -> None:
    x = torch.ones(3)
    prof = profile()
    assert no_profiler()
    with prof:
        assert observer.profile is not None and begins and state.active > 0
    x.exp()
    assert no_profiler() and len(prof.function_events) == 0


@pytest.mark.parametrize("kind", [KeyboardInterrupt, RuntimeError, GeneratorExit])
def test_errors_leave_nothing_on(kind: type[BaseException]) -> None:
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(kind), profile() as prof, record_function("range"):
        (x * 2).exp()
        raise kind("mine")
    assert no_profiler()
    assert [event.name for event in prof.function_events] == ["range", "aten::mul", "aten::exp"]
    with pytest.raises(kind), torch.profiler.profile() as prof:
        raise kind("mine")
    assert no_profiler()


def test_errors_of_ops_and_rules_are_the_same() -> None:
    x = torch.ones(3, requires_grad=True)

    def fail(g: Any) -> None:
        raise ValueError("in a hook")

    def attempts() -> list[str]:
        y = x * 2
        y.register_hook(fail)
        freed = (x * x).sum()
        freed.backward()
        found = []
        for attempt in (
            lambda: x + torch.ones(4), lambda: x.view(2), lambda: x.sum(3),
            lambda: x @ x.view(1, 3), lambda: x.permute(1, 0), lambda: y.sum().backward(),
            lambda: freed.backward(),
            lambda: torch.autograd.grad((x * 1).sum(), torch.ones(2, requires_grad=True)),
        ):  # fmt: skip
            with pytest.raises((RuntimeError, IndexError, ValueError)) as caught:
                attempt()
            text = re.sub(r"py:\d+", "py", str(caught.value))
            found.append(f"{type(caught.value).__name__}: {text}")
        return found

    plain = attempts()
    with profile() as prof:
        assert attempts() == plain
        with record_function("after"):
            x.exp()
    after = next(event for event in prof.function_events if event.name == "after")
    assert after.cpu_parent is None, "an error left an event open"
    for event in prof.function_events:
        assert event.cpu_time_total >= 0


def test_one_profiler_a_thread() -> None:
    x = torch.ones(3)
    with profile() as prof:
        started = line_here(1)
        x.exp()
        with pytest.raises(RuntimeError) as caught, profile():
            pass
        with pytest.raises(RuntimeError), torch.profiler.profile():
            pass
        x.sin()
    text = str(caught.value)
    assert text.startswith("Profiler is already enabled on this thread")
    assert started in text
    assert [event.name for event in prof.function_events] == ["aten::exp", "aten::sin"]
    with torch.profiler.profile() as again:
        x.exp()
    assert len(again.events()) == 1


def test_other_threads_are_not_recorded() -> None:
    x = torch.ones(3, requires_grad=True)
    go, done = threading.Event(), threading.Event()
    theirs: list[Any] = []

    def other() -> None:
        go.wait(10)
        x.cos().sum().backward()
        with profile() as prof:  # each thread may have one
            x.tan()
        theirs.append([event.name for event in prof.function_events])
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    with profile() as prof:
        x.exp()
        go.set()
        assert done.wait(10)
        assert observer.profile is not None, "the other thread's end is not this one's"
        x.sin()
    thread.join()
    assert [event.name for event in prof.function_events] == ["aten::exp", "aten::sin"]
    assert theirs == [["aten::tan"]]


def test_stopped_from_another_thread() -> None:
    prof = torch.profiler.profile()
    prof.start()
    torch.ones(3).exp()
    thread = threading.Thread(target=prof.stop)
    thread.start()
    thread.join()
    assert no_profiler()
    assert len(prof.events()) == 1


def test_the_users_modes_are_untouched() -> None:
    x = torch.ones(3, requires_grad=True)
    with profile():
        assert torch.is_grad_enabled() and (x * 2).requires_grad
        with torch.no_grad():
            assert not (x * 2).requires_grad
        torch.set_grad_enabled(False)
    assert not torch.is_grad_enabled(), "what was set inside stays"
    torch.set_grad_enabled(True)
    prof = torch.profiler.profile()
    with torch.no_grad():
        prof.start()
        assert not (x * 2).requires_grad
    assert torch.is_grad_enabled() and (x * 2).requires_grad
    with torch.inference_mode():
        prof.stop()
        assert (x * 2).is_inference()
    torch.set_grad_enabled(True)
    assert state.active == 0


def test_results_are_the_same() -> None:
    def run() -> list[Any]:
        torch.manual_seed(3)
        x = torch.randn(4, 5, requires_grad=True)
        w = torch.randn(5, requires_grad=True)
        y = torch.softmax(x @ torch.diag(w), 1)
        z = y.clone()
        z[1:3].mul_(2)
        (z.log().sum() + y[0].exp().prod()).backward()
        return [x.grad.tolist(), w.grad.tolist(), z.grad_fn.name()]

    plain = run()
    with profile(record_shapes=True, profile_memory=True, with_flops=True, with_stack=True):
        assert run() == plain


def test_interleaved_ranges() -> None:
    a, b = record_function("a"), record_function("b")
    with profile() as prof:
        a.__enter__()
        b.__enter__()
        torch.ones(3).exp()
        a.__exit__(None, None, None)
        b.__exit__(None, None, None)
        never = record_function("open")
        never.__enter__()
    never.__exit__(None, None, None)
    with pytest.raises(AssertionError, match="Expected record to be set"):
        never.__exit__(None, None, None)
    events = {event.name: event for event in prof.function_events}
    assert events["b"].cpu_parent is None
    assert events["aten::exp"].cpu_parent is events["b"]
    assert events["open"].cpu_parent is None and events["open"].cpu_time_total >= 0
    assert all(event.self_cpu_time_total >= 0 for event in events.values())


def test_ranges_without_a_profiler_do_nothing() -> None:
    calls = []

    @record_function("named")
    def fn(n: int, *, by: int) -> int:
        """What it does."""
        calls.append(n)
        return n if n == 0 else fn(n - 1, by=by)

    assert fn(2, by=1) == 0 and calls == [2, 1, 0]
    assert fn.__name__ == "fn" and fn.__doc__ == "What it does."
    with record_function("outside"), profile() as prof:
        fn(1, by=1)
    assert [event.name for event in prof.function_events] == ["named", "named"]


def test_tasks_of_one_thread() -> None:
    async def work(name: str) -> None:
        with record_function(name):
            await asyncio.sleep(0)
            torch.ones(3).exp()
            await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(work("one"), work("two"))

    with profile() as prof:
        asyncio.run(main())
    rows = {row.key: row.count for row in prof.key_averages()}
    assert rows == {"one": 1, "two": 1, "aten::exp": 2}


def test_backward_inside_backward() -> None:
    x = torch.ones(3, requires_grad=True)

    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            with torch.enable_grad():
                z = torch.ones(3, requires_grad=True)
                z.sin().sum().backward()
            return g * z.grad

    with profile() as prof:
        Inner.apply(x).sum().backward()
    above: dict[str, list[str]] = {}
    for event in prof.function_events:
        names = above.setdefault(event.name, [])
        parent = event.cpu_parent
        names.append("" if parent is None or parent.cpu_parent is None else "deeper")
    assert above["SumBackward0"] == ["", "deeper"]
    assert above["SinBackward0"] == ["deeper"]


def test_what_is_not_there_is_refused() -> None:
    options: Any = {"experimental_config": object()}
    with pytest.raises(ValueError, match="Kineto"):
        profile(**options)
    with pytest.raises(ValueError, match="Kineto"):
        torch.profiler.profile(**options)
    assert torch.profiler.kineto_available() is False
    mixed: Any = [torch.profiler.ProfilerActivity.CPU, 3]
    with pytest.raises(TypeError, match="Expected ProfilerActivity"):
        torch.profiler.profile(activities=mixed)


def test_nothing_is_kept_alive() -> None:
    import weakref

    with profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        x = torch.ones(3, requires_grad=True)
        y = x.exp()
        y.sum().backward()
    gone = weakref.ref(y._array)
    gc.disable()
    try:
        del x, y
        assert gone() is None
    finally:
        gc.enable()
    assert len(prof.function_events) == 8


# --- the GPU's times ------------------------------------------------------------------------------
class FakeEvent:
    """A CUDA event whose clock moves by 2 ms with each recording."""

    now = 0.0

    def record(self) -> None:
        FakeEvent.now += 2.0
        self.at = FakeEvent.now

    def synchronize(self) -> None:
        pass


def test_gpu_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """With events that tell a made-up time, on CPU arrays taken for a GPU's."""
    fake = SimpleNamespace(
        cuda=SimpleNamespace(Event=FakeEvent, get_elapsed_time=lambda a, b: b.at - a.at)
    )
    gpu = SimpleNamespace(type="cuda", index=0)
    for name, value in (
        ("cupy", lambda: fake), ("device_of", lambda x: gpu), ("is_array", lambda x: False),
    ):  # fmt: skip
        monkeypatch.setattr(profiler_record, name, value)
    monkeypatch.setattr("rushlight.autograd.profiler.cuda_count", lambda: 1)
    x = torch.ones(3, requires_grad=True)
    with profile(use_device="cuda", profile_memory=True) as prof, record_function("range"):
        x.exp().sum().backward()
    device = {event.name: event.device_time_total for event in prof.function_events}
    assert device["aten::exp"] == device["ExpBackward0"] == pytest.approx(2000.0)
    outside = "autograd::engine::evaluate_function: "
    assert device[outside + "ExpBackward0"] == pytest.approx(2000.0)
    own = {event.name: event.self_device_time_total for event in prof.function_events}
    assert own["range"] == own[outside + "ExpBackward0"] == 0
    assert device["range"] == pytest.approx(sum(own.values()))
    text = prof.key_averages().table(sort_by="self_cuda_time_total")
    for title in ("Self CUDA ", "Self CUDA %", "CUDA total", "CUDA time avg", "CUDA Mem"):
        assert title in text
    assert text.splitlines()[-1] == "Self CUDA time total: 10.000ms"
    assert all(event.use_device == "cuda" for event in prof.function_events)
