"""A batch that is read at once is the batch that is collated sample by sample."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight.utils.data import DataLoader, Subset, TensorDataset, default_collate
from rushlight.utils.data._utils import collate, fetch

DTYPES = [torch.float32, torch.bfloat16, torch.bool, torch.int64, torch.complex64]


def long_way(dataset: Any, indices: list[int]) -> Any:
    return default_collate([dataset[i] for i in indices])


def seen(batch: Any) -> Any:
    return [(t.tolist(), t.dtype, t.shape, t.stride(), t._version, t.is_leaf) for t in batch]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(7,), (7, 3), (7, 2, 3)])
def test_rows_at_once(dtype: Any, shape: tuple[int, ...]) -> None:
    x = (torch.rand(shape) * 10).to(dtype)
    data = TensorDataset(x, torch.arange(7))
    for indices in ([0], [3, 1, 1], [-1, 6, 0]):
        got = fetch.read_rows(data, indices)
        assert got is not None and seen(got) == seen(long_way(data, indices))


def test_rows_of_other_layouts() -> None:
    for x in (torch.rand(3, 7).t(), torch.rand(14, 3)[::2], torch.rand(1, 3).expand(7, 3)):
        data = TensorDataset(x)
        got = fetch.read_rows(data, [4, 2])
        assert got is not None and seen(got) == seen(long_way(data, [4, 2]))


def test_a_batch_is_a_copy() -> None:
    x = torch.zeros(4)
    (batch,) = next(iter(DataLoader(TensorDataset(x), batch_size=4)))
    batch.fill_(1)
    assert x.tolist() == [0, 0, 0, 0]


def test_subsets_of_subsets() -> None:
    data = Subset(Subset(TensorDataset(torch.arange(10)), [9, 8, 7, 6]), [3, 1])
    got = fetch.read_rows(data, [0, 1, -1])
    assert got is not None and got[0].tolist() == [6, 8, 8]


class Doubled(TensorDataset):
    def __getitem__(self, index: Any) -> Any:
        return tuple(2 * t for t in super().__getitem__(index))


class Chosen(Subset[Any]):
    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [(torch.tensor(-1),) for _ in indices]


class Marked(torch.Tensor):
    pass


def test_what_users_change_is_heeded(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = TensorDataset(torch.arange(3))

    def batch(data: Any, **options: Any) -> Any:
        return next(iter(DataLoader(data, batch_size=2, **options)))

    assert batch(Doubled(torch.arange(3)))[0].tolist() == [0, 2]
    assert batch(Chosen(plain, [0, 1, 2]))[0].tolist() == [-1, -1]
    assert batch(plain, collate_fn=len) == 2
    history = batch(TensorDataset(torch.ones(3, requires_grad=True)))[0]
    assert history.grad_fn is not None and fetch.read_rows(plain, [torch.tensor(1)]) is None
    assert fetch.read_rows(TensorDataset(torch.ones(2).as_subclass(Marked)), [0]) is None
    fns = collate.default_collate_fn_map
    monkeypatch.setitem(fns, torch.Tensor, lambda batch, *, collate_fn_map=None: "mine")
    assert batch(plain) == ["mine"]


def test_mistakes_are_told_by_the_dataset() -> None:
    data = TensorDataset(torch.arange(3))
    with pytest.raises(IndexError, match="index 3 is out of bounds for dimension 0 with size 3"):
        list(DataLoader(data, sampler=[3]))
    with pytest.raises(IndexError, match="list index out of range"):
        list(DataLoader(Subset(data, [0]), sampler=[1]))
