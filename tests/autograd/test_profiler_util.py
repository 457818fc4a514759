"""Events and their averages: times, numbers, memory."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.autograd.profiler import profile, record_function
from rushlight.autograd.profiler_util import EventList, FunctionEvent, FunctionEventAvg

pytestmark = pytest.mark.usefixtures("profiler_off")


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
