"""The profilers show what PyTorch's do (stored, and live where it is installed), and the lines of
the user's program besides; while none is on there is nothing of them."""

from __future__ import annotations

import asyncio
import copy
import gc
import gzip
import json
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
from rushlight.autograd.profiler_record import title_of
from rushlight.autograd.profiler_util import EventList, FunctionEvent, FunctionEventAvg
from rushlight.core.engine.engine import watch
from rushlight.core.grad_mode import state
from rushlight.core.graph import Op
from rushlight.core.record import slots
from tests.autograd import cases_profiler as written
from tests.harness import LIVE, stored

HERE = Path(__file__).name


STORED = stored("autograd/profiler")


def is_off() -> bool:
    return (
        slots.profile is None
        and watch.profile is None
        and state.active == 0
        and profiler_record.current() is None
    )


@pytest.fixture(autouse=True)
def off_again(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # said once a process: which test comes first must not matter
    monkeypatch.setattr("rushlight.profiler.profiler._Told.cleared", True)
    assert is_off()
    yield
    assert is_off()


def line_here(back: int = 0) -> str:
    """The place of the line that calls this, or of one `back` lines before it."""
    import sys

    return f"{HERE}:{sys._getframe(1).f_lineno - back}"


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
    titles = {title_of(op) for op in all_ops()}
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


# --- times, trees, tables -------------------------------------------------------------------------
def test_times_nest_and_add_up() -> None:
    x = torch.ones(50, 50, requires_grad=True)
    with profile() as prof, record_function("all"):
        for _ in range(3):
            (x @ x).tanh().sum().backward()
    events = prof.function_events
    for event in events:
        parent = event.cpu_parent
        assert event.cpu_time_total >= 0
        if parent is not None:
            assert event in parent.cpu_children
            assert parent.time_range.start <= event.time_range.start
            assert event.time_range.end <= parent.time_range.end
        assert event.self_cpu_time_total >= 0
    (whole,) = (event for event in events if event.name == "all")
    assert prof.self_cpu_time_total == pytest.approx(whole.cpu_time_total)
    assert events.self_cpu_time_total == prof.self_cpu_time_total
    starts = [event.time_range.start for event in events]
    assert starts == sorted(starts) and starts[0] >= 0
    assert [event.id for event in events] == list(range(1, len(events) + 1))


def test_forward_and_backward_have_one_number() -> None:
    x = torch.ones(3, requires_grad=True)
    with profile() as prof:
        for _ in range(2):
            (x.exp() * x.sin()).sum().backward()
    number: dict[str, list[int]] = {}
    for event in prof.function_events:
        number.setdefault(event.name, []).append(event.sequence_nr)
    assert number["aten::exp"] == number["ExpBackward0"]
    assert number["aten::mul"] == number["MulBackward0"]
    assert len(set(number["aten::exp"])) == 2 and -1 not in number["aten::exp"]
    assert number["torch::autograd::AccumulateGrad"] == [-1, -1]


def test_table() -> None:
    x = torch.ones(3)
    with profile(record_shapes=True) as prof:
        for _ in range(5):
            x.exp()
        with record_function("a name that is much too long for the column of names in a table"):
            x.sin()
    averages = prof.key_averages()
    lines = averages.table(sort_by="count", header="title").splitlines()
    assert lines[0] == "=" * len(lines[0]) and lines[1] == "title"
    assert lines[2] == lines[4] == lines[-2] and set(lines[2]) == {"-", " "}
    assert all(len(line) == len(lines[2]) for line in lines[2:-1])
    assert re.fullmatch(r"Self CPU time total: \d+\.\d{3}[um]?s", lines[-1])
    first = lines[5].split()
    assert first[0] == "aten::exp" and first[6] == "5" and first[1].endswith("%")
    assert "a name that is much too long for the column of names..." in prof.table()
    assert len(averages.table(row_limit=1).splitlines()) == 6
    assert len(averages.table(row_limit=-1).splitlines()) == 8
    assert "sin" not in prof.table(top_level_events_only=True)
    assert "This report only display top-level ops statistics" in prof.table(
        top_level_events_only=True
    )
    assert "s  " in averages.table(time_unit="s") and "us" not in averages.table(time_unit="s")
    narrow = averages.table(max_name_column_width=12, max_src_column_width=16)
    assert "a name th..." in narrow
    assert "[[3]]" in prof.key_averages(group_by_input_shape=True).table()
    assert "Input Shapes" not in averages.table()


def test_sorting_by_every_column() -> None:
    x = torch.ones(3, requires_grad=True)
    with profile(profile_memory=True) as prof:
        (x.exp() + x).sum().backward()
    averages = prof.key_averages()
    for column in (
        "cpu_time", "cpu_time_total", "self_cpu_time_total", "cuda_time_total", "count",
        "self_cuda_time_total", "cpu_memory_usage", "self_cpu_memory_usage", "cuda_memory_usage",
    ):  # fmt: skip
        assert averages.table(sort_by=column).count("\n") == len(averages) + 5
    by_time = averages.table(sort_by="self_cpu_time_total").splitlines()[3:-2]
    shares = [float(line.split("%")[0].split()[-1]) for line in by_time]
    assert shares == sorted(shares, reverse=True)


def test_averages_of_averages() -> None:
    x = torch.ones(3)
    with profile() as prof:
        x.exp()
        x.exp()
    (row,) = prof.key_averages()
    both = FunctionEventAvg()
    both += row
    both += row
    assert (both.key, both.count) == ("aten::exp", 4)
    assert both.cpu_time == pytest.approx(row.cpu_time)
    with pytest.raises(AssertionError, match="Expected keys to match"):
        both.add(FunctionEvent(1, "aten::sin", 1, 0.0, 1.0))
    with pytest.raises(AssertionError, match="Expected other to be"):
        both.add(3)
    with pytest.warns(FutureWarning, match="`cuda_time` is deprecated"):
        assert both.cuda_time == 0
    assert EventList().table() == ""


def test_memory_is_that_of_new_results() -> None:
    x = torch.ones(10, 10, dtype=torch.float64, requires_grad=True)
    with profile(profile_memory=True) as prof:
        with record_function("range"):
            y = x.exp()
            y = y.t()
            y = y.view(10, 10) if y.is_contiguous() else y.reshape(100)
            y.mul_(2)
        y.sum().backward()
    used = {event.name: event.cpu_memory_usage for event in prof.function_events}
    assert used["aten::exp"] == 800
    assert used["aten::t"] == 0
    assert used["aten::mul_"] == 0
    assert used["aten::sum"] == 8
    assert used["range"] == sum(
        event.self_cpu_memory_usage
        for event in prof.function_events
        if event.cpu_parent is not None and event.cpu_parent.name == "range"
    )
    assert used["ExpBackward0"] == 800
    text = prof.key_averages().table(sort_by="cpu_memory_usage")
    assert "800 B" in text and "Self CPU Mem" in text
    with profile() as prof:
        x.exp()
    assert "Mem" not in prof.table()


# --- traces ---------------------------------------------------------------------------------------
def read_trace(path: Path) -> Any:
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_trace(tmp_path: Path, name: str) -> None:
    x = torch.ones(4, 4, requires_grad=True)
    with torch.profiler.profile(record_shapes=True, with_stack=True) as prof:
        prof.add_metadata("note", 'a "quoted" one')
        prof.add_metadata_json("numbers", "[1, 2]")
        with record_function("range", "arguments"):
            y = (x @ x).tanh()
            made = line_here(1)
        y.sum().backward()
    path = tmp_path / name
    prof.export_chrome_trace(str(path))
    trace = read_trace(path)
    assert trace["note"] == 'a "quoted" one' and trace["numbers"] == [1, 2]
    assert trace["record_shapes"] == 1 and trace["with_stack"] == 1
    assert trace["trace_id"] == prof.get_trace_id()
    rows = trace["traceEvents"]
    assert all({"ph", "name", "pid", "tid", "ts"} <= row.keys() for row in rows)
    slices = [row for row in rows if row["ph"] == "X" and row["cat"] != "Trace"]
    assert [row["name"] for row in slices] == [event.name for event in prof.events()]
    by_name = {row["name"]: row for row in slices}
    assert by_name["range"]["cat"] == "user_annotation"
    assert by_name["range"]["args"]["Concrete Inputs"] == ["arguments"]
    assert by_name["aten::mm"]["cat"] == "cpu_op"
    assert by_name["aten::mm"]["args"]["Input Dims"] == [[4, 4], [4, 4]]
    assert by_name["aten::mm"]["args"]["Input type"] == ["float", "float"]
    assert by_name["MmBackward0"]["args"]["Source"] == made
    assert by_name["MmBackward0"]["args"]["Code"] == "y = (x @ x).tanh()"
    check_nesting(slices)
    arrows = {(row["ph"], row["id"]) for row in rows if row["ph"] in "sf"}
    assert arrows and {("f", key) for kind, key in arrows if kind == "s"} == {
        arrow for arrow in arrows if arrow[0] == "f"
    }
    (start,) = (
        row for row in rows if row["ph"] == "s" and row["ts"] == by_name["aten::tanh"]["ts"]
    )
    (end,) = (row for row in rows if row["ph"] == "f" and row["id"] == start["id"])
    assert end["ts"] == by_name["TanhBackward0"]["ts"] and end["bp"] == "e"
    (span,) = (row for row in rows if row.get("cat") == "Trace")
    assert max(row["ts"] + row["dur"] for row in slices) <= span["ts"] + span["dur"] + 1e-3


def check_nesting(slices: list[Any]) -> None:
    """On one thread a viewer wants each slice wholly inside, or wholly outside, any other."""
    stack: list[float] = []
    for row in sorted(slices, key=lambda row: (row["ts"], -row["dur"])):
        while stack and row["ts"] >= stack[-1]:
            stack.pop()
        end = row["ts"] + row["dur"]
        assert not stack or end <= stack[-1] + 1e-6
        stack.append(end)


def test_trace_of_a_list_of_events(tmp_path: Path) -> None:
    with profile() as prof:
        torch.ones(3).exp()
    prof.function_events.export_chrome_trace(str(tmp_path / "events.json"))
    rows = read_trace(tmp_path / "events.json")["traceEvents"]
    assert [row["name"] for row in rows if row["ph"] == "X"] == ["aten::exp"]
    with pytest.raises(AssertionError, match="Expected profiling results"):
        profile().export_chrome_trace(str(tmp_path / "never.json"))


def test_tensorboard(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    handler = torch.profiler.tensorboard_trace_handler(str(folder), "me", use_gzip=True)
    with torch.profiler.profile(
        schedule=torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=2),
        on_trace_ready=handler,
    ) as prof:
        for _ in range(4):
            torch.ones(3).exp()
            prof.step()
    files = sorted(folder.iterdir())
    assert len(files) == 2
    assert all(re.fullmatch(r"me\.\d+\.pt\.trace\.json\.gz", file.name) for file in files)
    names = [row["name"] for row in read_trace(files[1])["traceEvents"] if row["ph"] == "X"]
    assert names[:2] == ["ProfilerStep#3", "aten::exp"]
    blocked = tmp_path / "file"
    blocked.write_text("")
    with (
        pytest.raises(RuntimeError, match="Can't create directory: "),
        torch.profiler.profile(on_trace_ready=torch.profiler.tensorboard_trace_handler(
            str(blocked))),
    ):  # fmt: skip
        pass


def test_traces_of_a_cycle_are_its_own(tmp_path: Path) -> None:
    names = []

    def ready(prof: Any) -> None:
        path = tmp_path / f"{prof.step_num}.json"
        prof.export_chrome_trace(str(path))
        rows = read_trace(path)["traceEvents"]
        names.append([row["name"] for row in rows if "Step" in row["name"]])

    with torch.profiler.profile(
        schedule=torch.profiler.schedule(wait=0, warmup=1, active=1),
        on_trace_ready=ready,
        acc_events=True,
        custom_trace_id_callback=lambda: f"mine {len(names)}",
    ) as prof:
        prof.preset_metadata_json("rank", "7")
        for _ in range(4):
            prof.step()
    assert names == [["ProfilerStep#1"], ["ProfilerStep#3"]]
    assert len(prof.events()) == 2
    assert read_trace(tmp_path / "4.json")["rank"] == 7
    assert read_trace(tmp_path / "4.json")["trace_id"] == "mine 1"
    assert prof.get_trace_id() == "mine 2"


# --- on and off -----------------------------------------------------------------------------------
def test_only_while_on() -> None:
    x = torch.ones(3)
    prof = profile()
    assert is_off()
    with prof:
        assert slots.profile is not None and watch.profile is not None and state.active > 0
    x.exp()
    assert is_off() and len(prof.function_events) == 0


@pytest.mark.parametrize("kind", [KeyboardInterrupt, RuntimeError, GeneratorExit])
def test_errors_leave_nothing_on(kind: type[BaseException]) -> None:
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(kind), profile() as prof, record_function("range"):
        (x * 2).exp()
        raise kind("mine")
    assert is_off()
    assert [event.name for event in prof.function_events] == ["range", "aten::mul", "aten::exp"]
    with pytest.raises(kind), torch.profiler.profile() as prof:
        raise kind("mine")
    assert is_off()


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
        assert slots.profile is not None, "the other thread's end is not this one's"
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
    assert is_off()
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


def test_pausing() -> None:
    x, cpu = torch.ones(3, requires_grad=True), torch.profiler.ProfilerActivity.CPU
    with torch.profiler.profile() as prof:
        x.exp()
        prof.toggle_collection_dynamic(False, [cpu])
        x.sin().sum().backward()
        with record_function("range"):
            pass
        prof.toggle_collection_dynamic(True, [cpu])
        x.cos()
    assert [event.name for event in prof.events()] == ["aten::exp", "aten::cos"]
    prof.toggle_collection_dynamic(False, [cpu])


def test_a_time_limit_gives_what_there_is(caplog: pytest.LogCaptureFixture) -> None:
    x = torch.ones(3)
    with profile(post_processing_timeout_s=0.0) as prof:
        x.exp()
    assert len(prof.function_events) == 0
    assert "timed out" in caplog.text


def test_an_odd_schedule_leaves_nothing_on() -> None:
    names = ["RECORD", "WARMUP", "NONE"]
    actions = [torch.profiler.ProfilerAction[name] for name in names]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.profiler.profile(schedule=lambda step: actions[step]) as prof:
            prof.step()
            prof.step()
            assert is_off()


def test_a_callback_that_fails_leaves_nothing_on() -> None:
    def fail(prof: Any) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError), torch.profiler.profile(on_trace_ready=fail):
        torch.ones(3).exp()


def test_observers_are_told() -> None:
    said: list[str] = []
    observer = SimpleNamespace(
        start=lambda: said.append("start"),
        stop=lambda: said.append("stop"),
        cleanup=lambda: said.append("cleanup"),
    )
    with torch.profiler.profile(execution_trace_observer=observer):
        pass
    assert said == ["start", "stop", "cleanup"]


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
