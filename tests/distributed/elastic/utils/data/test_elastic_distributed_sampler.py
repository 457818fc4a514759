"""`ElasticDistributedSampler` and `CyclingIterator`; orders are PyTorch's."""

from __future__ import annotations

from rushlight.distributed.elastic.utils.data import CyclingIterator, ElasticDistributedSampler
from tests.helpers import raises


def test_it_goes_on_where_it_was() -> None:
    parts = [list(ElasticDistributedSampler(range(9), 2, rank, 4)) for rank in (0, 1)]
    assert parts == [[8, 5, 6], [4, 7, 8]]
    assert len(ElasticDistributedSampler(range(9), 2, 0, 4)) == 3
    later = ElasticDistributedSampler(range(9), 2, 0)
    later.set_epoch(1)
    assert list(later) == [4, 6, 7, 8, 1]
    text = "Start index 9 should be less than dataset size 9"
    raises(ValueError, text, ElasticDistributedSampler, range(9), 2, 0, 9)


def test_epochs_in_one_iterator() -> None:
    epochs = CyclingIterator(4, lambda epoch: iter(range(epoch)), start_epoch=1)
    assert iter(epochs) is epochs and list(epochs) == [0, 0, 1, 0, 1, 2]
    assert list(CyclingIterator(1, lambda epoch: iter(()))) == []
