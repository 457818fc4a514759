"""Data for training: datasets, samplers, and `DataLoader`, which makes batches of them.

>>> from rushlight.utils.data import DataLoader, TensorDataset
>>> data = TensorDataset(torch.arange(5.), torch.tensor([0, 1, 0, 1, 0]))
>>> for x, label in DataLoader(data, batch_size=2):
...     print(x, label)
tensor([0., 1.]) tensor([0, 1])
tensor([2., 3.]) tensor([0, 1])
tensor([4.]) tensor([0])
"""

import typing as _typing

from rushlight.missing import face as _face
from rushlight.utils.data import _utils as _utils
from rushlight.utils.data import dataloader as dataloader
from rushlight.utils.data import dataset as dataset
from rushlight.utils.data import distributed as distributed
from rushlight.utils.data import sampler as sampler
from rushlight.utils.data._utils.collate import default_collate, default_convert
from rushlight.utils.data._utils.fetch import _DatasetKind as _DatasetKind
from rushlight.utils.data._utils.worker import get_worker_info
from rushlight.utils.data.dataloader import DataLoader
from rushlight.utils.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from rushlight.utils.data.distributed import DistributedSampler
from rushlight.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

__all__ = [
    "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler",
    "IterableDataset", "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset",
    "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler", "_DatasetKind",
    "default_collate", "default_convert", "get_worker_info", "random_split",
]  # fmt: skip

_MODULES = {"_utils", "dataloader", "dataset", "distributed", "sampler"}

if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.utils.data", globals(), unlisted=_MODULES)
