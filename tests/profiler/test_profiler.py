"""`torch.profiler`: cycles, schedules, callbacks, traces for TensorBoard."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import rushlight as torch
from rushlight.autograd.profiler import profile, record_function
from tests.autograd.profiler_helpers import read_trace
from tests.autograd.profiler_state import no_profiler

pytestmark = pytest.mark.usefixtures("profiler_off")


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
            assert no_profiler()


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
