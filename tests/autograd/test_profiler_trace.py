"""Traces of a profile, as files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
from rushlight.autograd.profiler import profile, record_function
from tests.autograd.profiler_helpers import line_here, read_trace

pytestmark = pytest.mark.usefixtures("profiler_off")


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
