"""Tables of a profile: columns, sorting."""

from __future__ import annotations

import re

import pytest

import rushlight as torch
from rushlight.autograd.profiler import profile, record_function

pytestmark = pytest.mark.usefixtures("profiler_off")


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
