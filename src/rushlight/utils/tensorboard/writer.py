"""`SummaryWriter`: scalars, histograms, images and texts of a run, for TensorBoard to show.

The files are written by the `tensorboard` package, which is imported when a writer is made.
"""

from __future__ import annotations

import importlib
import os
import socket
import struct
import time
import zlib
from typing import Any

from rushlight.dtypes import float64, uint8
from rushlight.ops.registry import functions

__all__ = ["FileWriter", "SummaryWriter"]
__dir__ = __all__.copy


def _part(name: str) -> Any:
    """A module of the `tensorboard` package."""
    try:
        return importlib.import_module(f"tensorboard.{name}")
    except ImportError as error:
        raise ImportError(
            "SummaryWriter writes with the tensorboard package, which is not installed. Install "
            "it: `pip install tensorboard`."
        ) from error


def _seen(x: Any) -> Any:
    """Numbers, lists and arrays as a tensor on the CPU."""
    return functions["as_tensor"](x).detach().cpu()


class FileWriter:
    """FileWriter(log_dir, max_queue=10, flush_secs=120, filename_suffix=''): the events of a run,
    in a file."""

    def __init__(
        self, log_dir: Any, max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = ""
    ) -> None:
        self._event = _part("compat.proto.event_pb2")
        writer = _part("summary.writer.event_file_writer")
        self.event_writer = writer.EventFileWriter(
            os.fspath(log_dir), max_queue, flush_secs, filename_suffix
        )

    def get_logdir(self) -> str:
        """The folder that the file is in."""
        return str(self.event_writer.get_logdir())

    def add_summary(
        self, summary: Any, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Write a summary of TensorBoard's."""
        when = time.time() if walltime is None else walltime
        event = self._event.Event(wall_time=when, summary=summary)
        if global_step is not None:
            event.step = int(global_step)
        self.event_writer.add_event(event)

    def flush(self) -> None:
        """Write what waits."""
        self.event_writer.flush()

    def close(self) -> None:
        """Write what waits, and close the file."""
        self.event_writer.close()


class SummaryWriter:
    """SummaryWriter(log_dir=None, comment='', purge_step=None, max_queue=10, flush_secs=120,
    filename_suffix='')

    Writes to a folder, by default `runs/` and the date, what `tensorboard --logdir runs` shows.
    Needs the `tensorboard` package.

        with SummaryWriter() as writer:
            writer.add_scalar("loss", loss, step)
    """

    def __init__(
        self, log_dir: Any = None, comment: str = "", purge_step: int | None = None,
        max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = "",
    ) -> None:  # fmt: skip
        if not log_dir:
            date = time.strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{date}_{socket.gethostname()}{comment}")
        self._options = (max_queue, flush_secs, filename_suffix)
        self.log_dir = os.fspath(log_dir)
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] = {}
        self._summary = _part("compat.proto.summary_pb2")
        self._get_file_writer()

    def _get_file_writer(self, folder: str | None = None) -> FileWriter:
        place = self.log_dir if folder is None else folder
        if place not in self.all_writers:
            self.all_writers[place] = FileWriter(place, *self._options)
        writer = self.all_writers[place]
        if folder is None:
            self.file_writer = writer
        return writer

    def get_logdir(self) -> str:
        """The folder that is written to."""
        return str(self.log_dir)

    def _add(self, value: dict[str, Any], step: Any, walltime: Any, folder: Any = None) -> None:
        made = self._summary.Summary(value=[self._summary.Summary.Value(**value)])
        self._get_file_writer(folder).add_summary(made, step, walltime)

    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: int | None = None,
        walltime: float | None = None, new_style: bool = False, double_precision: bool = False,
    ) -> None:  # fmt: skip
        """One number of a curve."""
        number = float(_seen(scalar_value))
        self._add({"tag": tag, "simple_value": number}, global_step, walltime)

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: dict[str, Any], global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """One number of each of several curves, which are shown together."""
        for tag, value in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, f"{main_tag.replace('/', '_')}_{tag}")
            number = float(_seen(value))
            self._add({"tag": main_tag, "simple_value": number}, global_step, walltime, folder)

    def add_histogram(
        self, tag: str, values: Any, global_step: int | None = None, bins: Any = "tensorflow",
        walltime: float | None = None, max_bins: int | None = None,
    ) -> None:  # fmt: skip
        """How values are distributed."""
        flat = _seen(values).reshape(-1).to(float64)
        if not flat.numel():
            raise ValueError("The input has no element.")
        count = bins if isinstance(bins, int) else max_bins or 64
        low, high = float(flat.min()), float(flat.max())
        width = (high - low) / count or 1.0
        place = ((flat - low) / width).long().clamp(0, count - 1)
        made = self._summary.HistogramProto(
            min=low, max=high, num=flat.numel(), sum=float(flat.sum()),
            sum_squares=float((flat * flat).sum()),
            bucket_limit=[low + width * (i + 1) for i in range(count)],
            bucket=functions["bincount"](place, minlength=count).tolist(),
        )  # fmt: skip
        self._add({"tag": tag, "histo": made}, global_step, walltime)

    def add_image(
        self, tag: str, img_tensor: Any, global_step: int | None = None,
        walltime: float | None = None, dataformats: str = "CHW",
    ) -> None:  # fmt: skip
        """A picture: uint8, or floats between 0 and 1."""
        picture = _seen(img_tensor)
        order = [dataformats.upper().index(axis) for axis in "HWC" if axis in dataformats.upper()]
        picture = picture.permute(order)
        if picture.ndim == 2:
            picture = picture.unsqueeze(-1)
        if picture.dtype is not uint8:
            picture = (picture * 255).clamp(0, 255).to(uint8)
        height, width, channels = picture.shape
        made = self._summary.Summary.Image(
            height=height, width=width, colorspace=channels, encoded_image_string=_png(picture)
        )
        self._add({"tag": tag, "image": made}, global_step, walltime)

    def add_images(
        self, tag: str, img_tensor: Any, global_step: int | None = None,
        walltime: float | None = None, dataformats: str = "NCHW",
    ) -> None:  # fmt: skip
        """Pictures, side by side."""
        batch = _seen(img_tensor)
        batch = batch.movedim(dataformats.upper().index("N"), 0)
        inner = dataformats.upper().replace("N", "")
        row = functions["cat"](list(batch), inner.index("W"))
        self.add_image(tag, row, global_step, walltime, inner)

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """A text, in Markdown."""
        tensors = _part("compat.proto.tensor_pb2")
        shapes = _part("compat.proto.tensor_shape_pb2")
        size = shapes.TensorShapeProto(dim=[shapes.TensorShapeProto.Dim(size=1)])
        tensor = tensors.TensorProto(
            dtype="DT_STRING", string_val=[text_string.encode()], tensor_shape=size
        )
        plugin = self._summary.SummaryMetadata.PluginData(plugin_name="text")
        meta = self._summary.SummaryMetadata(plugin_data=plugin)
        value = {"tag": f"{tag}/text_summary", "metadata": meta, "tensor": tensor}
        self._add(value, global_step, walltime)

    def add_figure(
        self, tag: str, figure: Any, global_step: int | None = None, close: bool = True,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """A figure of matplotlib's."""
        figure.canvas.draw()
        picture = _seen(figure.canvas.buffer_rgba())[..., :3]
        self.add_image(tag, picture, global_step, walltime, "HWC")
        if close:
            importlib.import_module("matplotlib.pyplot").close(figure)

    def add_hparams(
        self, hparam_dict: dict[str, Any], metric_dict: dict[str, Any], *args: Any, **kwargs: Any
    ) -> None:
        """Settings of the run, as a text, and what came of them, as curves."""
        rows = "\n".join(f"| {name} | {value} |" for name, value in hparam_dict.items())
        self.add_text("hparams", f"| setting | value |\n| --- | --- |\n{rows}")
        for name, value in metric_dict.items():
            self.add_scalar(name, value)

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False,
        use_strict_trace: bool = True,
    ) -> None:  # fmt: skip
        """The structure of a module, as the text it prints: there is no graph of its operators."""
        self.add_text("graph", f"```\n{model}\n```")

    def flush(self) -> None:
        """Write what waits."""
        for writer in self.all_writers.values():
            writer.flush()

    def close(self) -> None:
        """Write what waits, and close the files."""
        for writer in self.all_writers.values():
            writer.close()
        self.all_writers = {}
        self.file_writer = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _png(picture: Any) -> bytes:
    """A picture of shape [height, width, channels] in the format PNG."""
    height, width, channels = picture.shape
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    rows = picture.reshape(height, -1)
    lines = functions["cat"]([functions["zeros"](height, 1, dtype=uint8), rows], 1)
    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    packed = zlib.compress(bytes(lines.contiguous().numpy()))
    chunks = [(b"IHDR", header), (b"IDAT", packed), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )
