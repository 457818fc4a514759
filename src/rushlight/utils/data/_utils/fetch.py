"""Fetching: from the indices of a batch to the batch, for both kinds of dataset."""

from __future__ import annotations

from typing import Any

from rushlight.core.graph import requires_grad
from rushlight.ops.registry import functions
from rushlight.tensor import Tensor
from rushlight.utils.data._utils import collate
from rushlight.utils.data.dataset import Subset, TensorDataset

__all__ = ["_BaseDatasetFetcher", "_IterableDatasetFetcher", "_MapDatasetFetcher"]
__dir__ = __all__.copy


class _BaseDatasetFetcher:
    """What both kinds know: the dataset, and what makes a batch of its samples."""

    def __init__(
        self, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool
    ) -> None:
        self.dataset = dataset
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.drop_last = drop_last

    def fetch(self, possibly_batched_index: Any) -> Any:
        """The batch, or without batching the sample, of some indices or an index."""
        raise NotImplementedError


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    """The next samples of an iterable dataset, as many as there are indices."""

    def __init__(
        self, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool
    ) -> None:
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.dataset_iter = iter(dataset)
        self.ended = False

    def fetch(self, possibly_batched_index: Any) -> Any:
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        data = []
        for _ in possibly_batched_index:
            try:
                data.append(next(self.dataset_iter))
            except StopIteration:
                self.ended = True
                break
        if not data or (self.drop_last and len(data) < len(possibly_batched_index)):
            raise StopIteration
        return self.collate_fn(data)


class _MapDatasetFetcher(_BaseDatasetFetcher):
    """The samples at some indices of a dataset."""

    def fetch(self, possibly_batched_index: Any) -> Any:
        if not self.auto_collation:
            return self.collate_fn(self.dataset[possibly_batched_index])
        if self.collate_fn is collate.default_collate:
            batch = read_rows(self.dataset, possibly_batched_index)
            if batch is not None:
                return batch
        if callable(getattr(self.dataset, "__getitems__", None)):
            data = self.dataset.__getitems__(possibly_batched_index)
        else:
            data = [self.dataset[index] for index in possibly_batched_index]
        return self.collate_fn(data)


# Note [Rows at once]
# A batch of a TensorDataset is a list of rows of its tensors, stacked: one indexed read of each
# tensor gives the same, a hundred times as fast as a read for each row. That holds for the classes
# themselves, for plain tensors, and for the collating functions we know; whatever is not so goes
# the long way, and so do mistakes, whose errors come from there.
def read_rows(dataset: Any, indices: Any) -> list[Any] | None:
    """A batch of a TensorDataset, or of a Subset of one; None if that is not what it is."""
    while type(dataset) is Subset and dataset.__class__.__getitems__ is _GETITEMS:
        try:
            places = dataset.indices
            indices = [places[i] for i in indices]
        except (IndexError, TypeError):
            return None
        dataset = dataset.dataset
    if type(dataset) is not TensorDataset or not isinstance(indices, list) or not indices:
        return None
    if TensorDataset.__getitem__ is not _GETITEM or "__getitem__" in vars(dataset):
        return None
    if collate.default_collate_fn_map.get(Tensor) is not collate.collate_tensor_fn:
        return None
    count = len(dataset)
    for i in indices:
        if type(i) is not int or not -count <= i < count:
            return None
    for tensor in dataset.tensors:
        if type(tensor) is not Tensor or requires_grad(tensor):
            return None
    where = functions["tensor"](indices)
    return [tensor[where] for tensor in dataset.tensors]


_GETITEM = TensorDataset.__getitem__
_GETITEMS = Subset.__getitems__


class _DatasetKind:
    """Whether samples have indices or come one after the other."""

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(
        kind: int, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool
    ) -> Any:
        made = _MapDatasetFetcher if kind == _DatasetKind.Map else _IterableDatasetFetcher
        return made(dataset, auto_collation, collate_fn, drop_last)
