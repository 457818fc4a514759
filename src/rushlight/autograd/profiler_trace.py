"""A profile as a file that chrome://tracing and ui.perfetto.dev open."""

from __future__ import annotations

import gzip
import json
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from rushlight.autograd.profiler_util import FunctionEvent, shown_place


def write_trace(
    path: str, events: Sequence[FunctionEvent], metadata: dict[str, Any], recorder: Any = None
) -> None:
    """Write events in the trace event format; compressed if `path` ends in ".gz"."""
    trace = {
        "schemaVersion": 1, "displayTimeUnit": "ms", "host_name": socket.gethostname(),
        "baseTimeNanoseconds": 0 if recorder is None else recorder.wall, **metadata,
        "traceEvents": list(_rows(events, recorder)), "traceName": path,
    }  # fmt: skip
    text = json.dumps(trace)
    if path.endswith(".gz"):
        with gzip.open(path, "wt", encoding="utf-8") as file:
            file.write(text)
    else:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def _rows(events: Sequence[FunctionEvent], recorder: Any) -> Iterator[dict[str, Any]]:
    pid = os.getpid()
    about = {"process_name": {"name": os.path.basename(sys.executable) or "python"},
             "process_labels": {"labels": "CPU"}}  # fmt: skip
    for name, args in about.items():
        yield {"ph": "M", "name": name, "ts": 0, "pid": pid, "tid": 0, "args": args}
    for thread in dict.fromkeys(event.thread for event in events):
        args = {"name": f"thread {thread}"}
        yield {"ph": "M", "name": "thread_name", "ts": 0, "pid": pid, "tid": thread, "args": args}
    ends = {e.sequence_nr for e in events if _is_node(e)}
    for event in events:
        yield _slice(event, pid)
        number = event.sequence_nr
        flow = {"id": number, "pid": pid, "tid": event.thread, "cat": "fwdbwd", "name": "fwdbwd"}
        flow["ts"] = event.time_range.start
        if _is_node(event):
            yield {"ph": "f", **flow, "bp": "e"}
        elif event.scope == 0 and number in ends:
            yield {"ph": "s", **flow}
    if recorder is not None:
        length = (recorder.end - recorder.start) / 1000
        yield {
            "ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans",
            "tid": "PyTorch Profiler", "ts": 0, "dur": length, "args": {"Op count": len(events)},
        }  # fmt: skip


def _is_node(event: FunctionEvent) -> bool:
    """Whether this is the rule of a backward node that has a number."""
    outside = event.name.startswith("autograd::engine::evaluate_function")
    return event.scope == 1 and event.sequence_nr >= 0 and not outside


def _slice(event: FunctionEvent, pid: int) -> dict[str, Any]:
    args: dict[str, Any] = {"External id": event.id}
    if event.where is not None:
        args["Source"] = shown_place(event.where)
        args["Code"] = event.where.source
    if event.sequence_nr >= 0:
        args["Sequence number"] = event.sequence_nr
    if event.fwd_thread is not None:
        args["Fwd thread id"] = event.fwd_thread
    if event.input_shapes:
        args["Input Dims"] = event.input_shapes
        args["Input type"] = event.input_dtypes
    if event.concrete_inputs:
        args["Concrete Inputs"] = event.concrete_inputs
    if len(event.stack) > 1:
        args["Call stack"] = ";".join(reversed(event.stack))
    if event.cpu_memory_usage or event.device_memory_usage:
        args["Bytes"] = event.cpu_memory_usage + event.device_memory_usage
    if event.flops:
        args["FLOPs"] = event.flops
    if event.kernels:
        args["Device time (us)"] = event.device_time_total
    return {
        "ph": "X", "cat": "user_annotation" if event.is_user_annotation else "cpu_op",
        "name": event.trace_name, "pid": pid, "tid": event.thread, "ts": event.time_range.start,
        "dur": event.cpu_time_total, "args": args,
    }  # fmt: skip
