"""What `SummaryWriter` hands to the tensorboard package, here a stand-in; and its absence."""

from __future__ import annotations

import sys
import zlib
from types import ModuleType
from typing import Any, ClassVar

import pytest

import rushlight as torch
from rushlight.utils.tensorboard import SummaryWriter


class Record:
    """Any message of TensorBoard's: keeps its fields."""

    def __init__(self, *args: Any, **fields: Any) -> None:
        vars(self).update(fields, args=args)


class Files:
    """Stands in for EventFileWriter: events by folder."""

    events: ClassVar[dict[str, list[Any]]] = {}

    def __init__(self, folder: str, *options: Any) -> None:
        self.folder = folder
        self.events[folder] = []

    def add_event(self, event: Any) -> None:
        self.events[self.folder].append(event)

    def flush(self) -> None:
        pass

    close = flush


@pytest.fixture
def tensorboard(monkeypatch: pytest.MonkeyPatch) -> None:
    def stand_in(name: str, **content: Any) -> None:
        module = ModuleType(f"tensorboard.{name}")
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, module.__name__, module)

    class Summary(Record):
        Value, Image = Record, Record

    class Metadata(Record):
        PluginData = Record

    class Shape(Record):
        Dim = Record

    for name in ("", "compat", "compat.proto", "summary", "summary.writer"):
        path = f"tensorboard.{name}".rstrip(".")
        monkeypatch.setitem(sys.modules, path, ModuleType(path))
    stand_in("compat.proto.event_pb2", Event=Record)
    stand_in(
        "compat.proto.summary_pb2", Summary=Summary, HistogramProto=Record, SummaryMetadata=Metadata
    )
    stand_in("compat.proto.tensor_pb2", TensorProto=Record)
    stand_in("compat.proto.tensor_shape_pb2", TensorShapeProto=Shape)
    stand_in("summary.writer.event_file_writer", EventFileWriter=Files)
    monkeypatch.setattr(Files, "events", {})


def values(folder: str) -> list[Any]:
    return [event.summary.value[0] for event in Files.events[folder]]


def test_scalars(tensorboard: None) -> None:
    with SummaryWriter("run") as writer:
        writer.add_scalar("loss", torch.tensor(1.5), 3, walltime=7.0)
        writer.add_scalars("both", {"a": 1, "b": 2.0}, 4)
    (loss,) = values("run")
    assert (loss.tag, loss.simple_value) == ("loss", 1.5)
    assert (Files.events["run"][0].step, Files.events["run"][0].wall_time) == (3, 7.0)
    assert values("run/both_a")[0].simple_value == 1 and values("run/both_b")[0].tag == "both"


def test_histograms(tensorboard: None) -> None:
    writer = SummaryWriter("run")
    writer.add_histogram("w", torch.tensor([0.0, 1.0, 1.0, 4.0]), bins=4)
    made = values("run")[0].histo
    assert made.bucket == [1, 2, 0, 1] and made.bucket_limit == [1.0, 2.0, 3.0, 4.0]
    assert (made.min, made.max, made.num, made.sum, made.sum_squares) == (0, 4, 4, 6, 18)
    with pytest.raises(ValueError, match="The input has no element."):
        writer.add_histogram("w", torch.ones(0))


def test_pictures(tensorboard: None) -> None:
    writer = SummaryWriter("run")
    writer.add_image("i", torch.tensor([[[0.0, 1.0]], [[0.5, 0.0]], [[0.0, 2.0]]]))
    writer.add_images("many", torch.zeros(3, 1, 2, 5))
    first, many = [value.image for value in values("run")]
    assert (first.height, first.width, first.colorspace) == (1, 2, 3)
    assert (many.height, many.width, many.colorspace) == (2, 15, 1)
    png = first.encoded_image_string
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    size = int.from_bytes(png[33:37], "big")
    assert zlib.decompress(png[41 : 41 + size]) == bytes([0, 0, 127, 0, 255, 0, 255])


def test_texts(tensorboard: None) -> None:
    writer = SummaryWriter("run")
    writer.add_text("note", "hello")
    writer.add_graph(torch.nn.Linear(1, 2))
    writer.add_hparams({"lr": 0.1}, {"accuracy": 0.5})
    note, graph, settings, accuracy = values("run")
    assert note.tag == "note/text_summary" and note.tensor.string_val == [b"hello"]
    assert b"Linear(in_features=1, out_features=2" in graph.tensor.string_val[0]
    assert b"| lr | 0.1 |" in settings.tensor.string_val[0] and accuracy.simple_value == 0.5


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(ImportError, match="pip install tensorboard"):
        SummaryWriter("run")
