"""`FloatStorage` and its like: making them, and telling which is which."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight.storage_types import storage_types

pytestmark = pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")


@pytest.mark.parametrize("name", storage_types)
def test_every_class(name: str) -> None:
    cls: Any = getattr(torch, name)
    made = cls([0, 1])
    assert isinstance(made, cls) and isinstance(made, torch.TypedStorage)
    assert made.dtype is cls.dtype and made.tolist() == [0, 1] and cls(3).size() == 3
    assert made.type() == f"torch.{name}" and repr(cls) == f"<class 'torch.{name}'>"
    assert [n for n in storage_types if isinstance(made, getattr(torch, n))] == [name]
    assert torch.empty(0, dtype=cls.dtype).storage_type() is cls
    assert issubclass(cls, torch.TypedStorage) and cls().size() == 0
    assert made.pickle_storage_type() == name


def test_memory_is_shared_by_what_wraps_it() -> None:
    x = torch.arange(2.0)
    made = torch.IntStorage(wrap_storage=x.untyped_storage())
    made[1] = 0
    assert x.tolist() == [0, 0] and torch.Storage is torch.FloatStorage
    other = torch.TypedStorage(wrap_storage=x.untyped_storage(), dtype=torch.float32)
    other.fill_(3)
    assert x.tolist() == [3, 3]


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: torch.FloatStorage(1, 2), RuntimeError, "Too many positional arguments"),
        (lambda: torch.FloatStorage(torch.ones(2)), TypeError, "Argument type not recognized"),
        (lambda: torch.FloatStorage(2, device="cpu"), RuntimeError, "'device' cannot be specified"),
        (lambda: torch.FloatStorage(wrap_storage=3), TypeError, "must be UntypedStorage, but got"),
        (lambda: torch.UntypedStorage(1.5), RuntimeError, "Expected a sequence type, but got f"),
        (lambda: torch.ByteStorage(-1), RuntimeError, "called with negative number: -1"),
        (lambda: torch.TypedStorage(1, 2, dtype=3), RuntimeError, "Too many positional arguments"),
        (lambda: torch.TypedStorage(1, dtype=3), RuntimeError, "expected torch.dtype, but got"),
        (lambda: torch.TypedStorage(1, wrap_storage=3), RuntimeError, "No positional arguments sh"),
        (lambda: torch.TypedStorage(wrap_storage=3), RuntimeError, "'dtype' must be specified"),
        (lambda: torch.FloatStorage(2)[0:1], RuntimeError, "slices are only supported in Untyped"),
        (
            lambda: torch.FloatStorage(2)[5],
            IndexError,
            "index 5 out of range for storage of size 2",
        ),
        (
            lambda: torch.FloatStorage(2)["a"],
            RuntimeError,
            "can't index a <class 'torch.storage.Ty",
        ),
        (lambda: torch.UntypedStorage([1.5]), RuntimeError, "of type float instead of int"),
        (lambda: torch.UntypedStorage.from_buffer(b"a"), RuntimeError, "'dtype' cannot be None"),
        (
            lambda: torch.IntStorage.from_buffer(b"abcd"),
            RuntimeError,
            "required argument 'byte_ord",
        ),
        (
            lambda: torch.IntStorage.from_buffer(b"abc", "big"),
            ValueError,
            "buffer size .3. must be",
        ),
        (
            lambda: torch.IntStorage.from_buffer(b"abcd", "big", 4),
            ValueError,
            "has only 4 elements",
        ),
    ],
)
def test_what_is_refused(make: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make()


def test_sizes_may_be_numpys() -> None:
    sizes = [
        make(np.int64(2)).size()
        for make in (torch.ByteStorage, torch.TypedStorage, torch.UntypedStorage)
    ]
    assert sizes == [2, 2, 2] and torch.TypedStorage(2).dtype == torch.float32
