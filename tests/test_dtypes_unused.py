"""Dtypes that no tensor has can be listed, and say so when a tensor is asked for."""

from __future__ import annotations

import pickle

import pytest

import rushlight as torch


def test_they_are_dtypes() -> None:
    listed = {torch.qint8: 1, torch.quint8: 1, torch.qint32: 4, torch.int4: 1, torch.uint3: 1}
    assert all(isinstance(d, torch.dtype) and d.itemsize == n for d, n in listed.items())
    assert repr(torch.qint32) == "torch.qint32" and torch.qint8.is_signed
    assert not torch.quint8.is_signed and not torch.qint8.is_floating_point


@pytest.mark.parametrize("dtype", [torch.qint8, torch.uint4])
def test_there_are_no_tensors_of_them(dtype: torch.dtype) -> None:
    for make in (lambda: torch.zeros(2, dtype=dtype), lambda: torch.ones(2).to(dtype)):
        with pytest.raises(NotImplementedError, match=f"no tensors of {dtype}"):
            make()


def test_pickling() -> None:
    assert pickle.loads(pickle.dumps(torch.qint8)) is torch.qint8
