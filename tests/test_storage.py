"""Storages: sizes, elements, shared memory."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_storage() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    row = x[1]
    whole = row.untyped_storage()
    assert whole.nbytes() == len(whole) == 24
    assert whole == x.untyped_storage() and torch.is_storage(whole)
    assert whole.data_ptr() == x.data_ptr() == row.data_ptr() - 12
    typed = row.storage()
    assert typed.tolist() == [0, 1, 2, 3, 4, 5] and typed.dtype is torch.float32
    typed[0] = 9
    assert x[0, 0].item() == 9


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_conversions_and_copies() -> None:
    x = torch.arange(3.0)
    assert x.storage().int().tolist() == [0, 1, 2] and x.storage().int().dtype is torch.int32
    assert x.storage().bool().tolist() == [False, True, True]
    assert x.storage().type(torch.LongStorage).dtype is torch.int64
    assert x.storage().type("torch.HalfStorage").dtype is torch.float16
    assert torch.UntypedStorage([1, 2]).double().tolist() == [1.0, 2.0]
    assert x.untyped_storage().to(device="cpu") == x.untyped_storage()
    assert x.untyped_storage().device == torch.device("cpu") and x.storage().get_device() == -1
    with pytest.raises(RuntimeError, match="Invalid storage type: torch.NoStorage"):
        x.storage().type("torch.NoStorage")
    storage = x.storage()
    storage.resize_(4)
    assert storage.size() == 4 and x.untyped_storage().nbytes() == 16


def test_bytes_are_swapped() -> None:
    made = torch.UntypedStorage([1, 2, 3, 4, 5])
    made.byteswap(torch.int16)
    assert made.tolist() == [2, 1, 4, 3, 5]
    made = torch.UntypedStorage(list(range(8)))
    made.byteswap(torch.complex64)  # two numbers
    assert made.tolist() == [3, 2, 1, 0, 7, 6, 5, 4]
    other = torch.IntStorage.from_buffer(b"\0\0\0\1\0\0\0\2", "big")
    assert other.tolist() == [1, 2]
    assert torch.ByteStorage.from_buffer(b"abc", count=1, offset=1).tolist() == [98]


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_files_as_memory(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    path.write_bytes(bytes(range(16)))
    private = torch.from_file(str(path), size=4, dtype=torch.uint8)
    private[0] = 100
    assert private.tolist() == [100, 1, 2, 3] and path.read_bytes() == bytes(range(16))
    with pytest.raises(
        RuntimeError, match="size <16> is smaller than the required mapping size <40>"
    ):
        torch.from_file(str(path), size=10)
    shared = torch.from_file(str(path), shared=True, size=20, dtype=torch.uint8)
    shared[:2] = 7
    assert path.read_bytes() == bytes([7, 7, *range(2, 16), 0, 0, 0, 0])
    storage = torch.UntypedStorage.from_file(str(path), True, 3)
    assert storage.tolist() == [7, 7, 2] and storage.filename == str(path)
    typed = torch.ShortStorage.from_file(str(path), False, 2)
    assert typed.size() == 2 and typed.filename is None
    assert torch.from_file(str(path)).shape == (0,)
    for wrong in (torch.tensor(1), 1, None):
        with pytest.raises(TypeError, match="must be str, not"):
            torch.from_file(wrong)


@pytest.mark.parametrize("kind", [torch.UntypedStorage, torch.FloatStorage])
def test_the_memory_counts_in_sizes(kind: Any) -> None:
    assert sys.getsizeof(kind(100)) - sys.getsizeof(kind(0)) == kind(100).nbytes() > 0
