"""The formats before PyTorch 1.6: pickles one after the other, and tar archives."""

from __future__ import annotations

import io
import pickle
import struct
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
from rushlight.serialization import legacy
from tests import harness


def written(obj: Any) -> bytes:
    file = io.BytesIO()
    torch.save(obj, file, _use_new_zipfile_serialization=False)
    return file.getvalue()


def loaded(data: bytes, **options: Any) -> Any:
    return torch.load(io.BytesIO(data), **options)


def test_several_objects_in_one_file() -> None:
    file = io.BytesIO(written(torch.ones(2)) + written({"x": torch.arange(3)}))
    assert torch.load(file).tolist() == [1, 1]
    assert torch.load(file)["x"].tolist() == [0, 1, 2]


def test_shared_memory_and_locations() -> None:
    x = torch.arange(4.0)
    back = loaded(written([x, x[2:], x.view(2, 2).t()]), map_location=lambda storage, at: storage)
    back[0][2] = 9
    assert back[1][0].item() == 9 and back[2][0, 1].item() == 9
    moved = loaded(written(x), map_location=lambda storage, at: storage.clone())
    assert moved.tolist() == [0, 1, 2, 3]


def test_a_part_of_a_storage_was_one_of_its_own() -> None:
    head = b"".join(pickle.dumps(v, 2) for v in (legacy.MAGIC, legacy.VERSION, {}))
    view = b"(X\x01\x00\x00\x00vK\x01K\x02t"
    name = (
        b"(X\x07\x00\x00\x00storagectorch\nLongStorage\nX\x01\x00\x00\x00kX\x03\x00\x00\x00cpuK\x04"
    )
    body = (
        b"\x80\x02ctorch._utils\n_rebuild_tensor\n(" + name + view + b"tQK\x00K\x02\x85K\x01\x85tR."
    )
    data = head + body + pickle.dumps(["k"], 2) + struct.pack("=5q", 4, 10, 11, 12, 13)
    assert loaded(data).tolist() == [11, 12]
    if harness.LIVE:
        assert harness.pytorch().load(io.BytesIO(data)).tolist() == [11, 12]


def test_the_other_order_of_bytes() -> None:
    x = torch.arange(3)
    data = written(x)
    little = sys.byteorder == "little"
    said, other = (b"\x88", b"\x89") if little else (b"\x89", b"\x88")
    data = data.replace(b"little_endianq\x02" + said, b"little_endianq\x02" + other)
    numbers = struct.pack(">4q" if little else "<4q", 3, 0, 1, 2)
    assert loaded(data[: -len(numbers)] + numbers).tolist() == [0, 1, 2]


GOOD = written({"x": torch.arange(3.0), "y": torch.ones(2)})


@pytest.mark.parametrize("end", range(1, len(GOOD)))
def test_files_that_are_cut_off(end: int) -> None:
    with pytest.raises((RuntimeError, EOFError, pickle.UnpicklingError)):
        loaded(GOOD[:end])


def test_files_that_are_none() -> None:
    with pytest.raises(pickle.UnpicklingError, match="no file that"):
        loaded(b"hello" * 100)
    with pytest.raises(RuntimeError, match="Invalid magic number; corrupt file?"):
        loaded(pickle.dumps(12, 2))
    with pytest.raises(RuntimeError, match="Invalid protocol version: 12"):
        loaded(pickle.dumps(legacy.MAGIC, 2) + pickle.dumps(12, 2))
    with pytest.raises(RuntimeError, match="unexpected EOF, expected 3 more bytes. The file might"):
        loaded(GOOD[:-3])
    at = GOOD.rfind(struct.pack("=q", 2))
    with pytest.raises(RuntimeError, match="storage has wrong byte size"):
        loaded(GOOD[:at] + struct.pack("=q", 3) + GOOD[at + 8 :])
    with pytest.raises(RuntimeError, match="unexpected EOF"):  # a terabyte, in a file of few bytes
        loaded(GOOD.replace(b"cpuq\x06K\x03", b"cpuq\x06J\xff\xff\xff\x7f"))


# --- tar ------------------------------------------------------------------------------------------
def tar(**parts: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as made:
        for name, data in parts.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            made.addfile(info, io.BytesIO(data))
    return file.getvalue()


def global_(name: str) -> bytes:
    return b"ctorch\n" + name.encode() + b"\n"


STORAGES = (
    pickle.dumps(1, 2) + b"\x80\x02(K\x07X\x03\x00\x00\x00cpu" + global_("FloatStorage") + b"t."
    + struct.pack("<q4f", 4, 0, 1, 2, 3) + pickle.dumps([(9, 7, 1, 2)], 2)
)  # fmt: skip
TENSORS = (
    pickle.dumps(2, 2)
    + b"\x80\x02(K\x01K\x07" + global_("FloatTensor") + b"t."
    + struct.pack("<ii5q", 2, 0, 2, 2, 2, 1, 0)
    + b"\x80\x02(K\x02K\x09" + global_("FloatTensor") + b"t." + struct.pack("<ii3q", 1, 0, 2, 1, 0)
)  # fmt: skip
PICKLE = b"\x80\x02}(X\x01\x00\x00\x00aK\x01QX\x01\x00\x00\x00bK\x02Qu."


def test_tar_archives(tmp_path: Path) -> None:
    path = tmp_path / "old.tar"
    path.write_bytes(tar(storages=STORAGES, tensors=TENSORS, pickle=PICKLE))
    with pytest.raises(RuntimeError, match="weights_only=True.* legacy .tar format"):
        torch.load(path)
    back = torch.load(path, weights_only=False)
    assert back["a"].tolist() == [[0, 1], [2, 3]] and back["b"].tolist() == [1, 2]
    back["a"][0, 1] = 9
    assert back["b"][0].item() == 9
    if harness.LIVE:
        there = harness.pytorch().load(path, weights_only=False)
        assert there["a"].tolist() == [[0, 1], [2, 3]] and there["b"].tolist() == [1, 2]


def test_damaged_tar_archives() -> None:
    outside = TENSORS.replace(struct.pack("<q", 1), struct.pack("<q", 9))
    for parts in (
        {"storages": STORAGES}, {"storages": STORAGES[:40], "tensors": TENSORS, "pickle": PICKLE},
        {"storages": STORAGES, "tensors": TENSORS[:60], "pickle": PICKLE},
        {"storages": STORAGES, "tensors": outside, "pickle": PICKLE},
        {"storages": STORAGES, "tensors": TENSORS, "pickle": PICKLE.replace(b"K\x02Q", b"K\x05Q")},
    ):  # fmt: skip
        with pytest.raises((RuntimeError, EOFError, pickle.UnpicklingError)):
            loaded(tar(**parts), weights_only=False)
