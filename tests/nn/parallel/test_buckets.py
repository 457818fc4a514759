"""Which gradients travel together."""

from __future__ import annotations

import rushlight as torch
from rushlight.nn.parallel.buckets import Bucket, GradBucket, assign_buckets


def test_a_bucket_is_closed_when_it_is_full() -> None:
    tensors = [torch.zeros(n) for n in (1, 2, 10, 1, 1)]  # 4, 8, 40, 4, 4 bytes
    assert assign_buckets(tensors, range(5), [12]) == [[0, 1], [2], [3, 4]]
    assert assign_buckets(tensors, range(5), [1, 20]) == [[0], [1, 2], [3, 4]]
    assert assign_buckets(tensors, [4, 3, 2, 1, 0], [10**9]) == [[4, 3, 2, 1, 0]]
    assert assign_buckets([], [], [1]) == []


def test_dtypes_do_not_share_a_bucket() -> None:
    tensors = [torch.zeros(1), torch.zeros(1, dtype=torch.float64)] * 2
    assert assign_buckets(tensors, range(4), [100]) == [[0, 2], [1, 3]]


def test_gradients_are_views_of_the_buffer() -> None:
    parameters = [torch.zeros(2, 2), torch.zeros(3)]
    bucket = Bucket([5, 6], parameters)
    bucket.views[1].fill_(2)
    assert bucket.buffer.tolist() == [0, 0, 0, 0, 2, 2, 2]
    given = GradBucket(bucket, 1, True)
    assert given.index() == 1 and given.is_last()
    assert [list(g.shape) for g in given.gradients()] == [[2, 2], [3]]
    assert all(p is q for p, q in zip(given.parameters(), parameters))
    given.set_buffer(torch.ones(7))
    assert given.gradients()[0].tolist() == [[1, 1], [1, 1]] and given.buffer().sum() == 7
