"""Expressions of samplers: their order under a seed, what they draw, what they refuse."""
# ruff: noqa: E501  # an expression is a line, however long

from tests.harness import Cases
from tests.utils.data.expressions import enter

cases = Cases()
results = cases.results

enter(
    cases,
    """
    list(SequentialSampler(range(3))), len(SequentialSampler("abcd"))
    SequentialSampler(3).data_source
    list(RandomSampler(range(9)))
    [list(RandomSampler(range(5))) for _ in range(3)], torch.rand(1)
    list(RandomSampler(range(5), generator=g(7)))
    (lambda g: (list(RandomSampler(range(5), generator=g)), torch.rand(1, generator=g)))(g(7))
    (lambda g: (list(RandomSampler(range(5), num_samples=12, generator=g)), torch.rand(1, generator=g)))(g(7))
    (lambda g: (list(RandomSampler(range(5), num_samples=10, generator=g)), torch.rand(1, generator=g)))(g(7))
    (lambda g: (list(RandomSampler(range(5), num_samples=2, generator=g)), torch.rand(1, generator=g)))(g(7))
    (lambda g: (list(RandomSampler(range(5), True, 70, g)), torch.rand(1, generator=g)))(g(7))
    (lambda g: (list(RandomSampler(range(5), True, 64, g)), torch.rand(1, generator=g)))(g(7))
    list(RandomSampler(range(1000), True, 5))
    len(RandomSampler(range(5), num_samples=12)), RandomSampler(range(5)).num_samples
    RandomSampler([])
    RandomSampler([1], replacement=3)
    RandomSampler([1], num_samples=0)
    RandomSampler([1], num_samples=2.5)
    RandomSampler([1], num_samples=True).num_samples
    list(SubsetRandomSampler([7, 3, 5])), list(SubsetRandomSampler([7, 3, 5], g(1)))
    len(SubsetRandomSampler([7, 3, 5]))
    list(SubsetRandomSampler(torch.tensor([7, 3, 5])))
    list(WeightedRandomSampler([.1, .2, .7], 9)), torch.rand(1)
    list(WeightedRandomSampler([.1, .2, .7], 3, False, g(3)))
    list(WeightedRandomSampler(torch.tensor([0., 1, 0, 1]), 6, generator=g(3)))
    WeightedRandomSampler([1, 2], 3).weights, len(WeightedRandomSampler([1, 2], 3))
    WeightedRandomSampler([1., 2], 0)
    WeightedRandomSampler([1., 2], True)
    WeightedRandomSampler([1., 2], 1, replacement=1)
    WeightedRandomSampler([[1., 2]], 1)
    list(WeightedRandomSampler([.1, 2], 3, False))
    BatchSampler([1], 0, False)
    BatchSampler([1], True, False)
    BatchSampler([1], 2.5, False)
    BatchSampler([1], 2, 3)
    list(BatchSampler(range(10), 3, False)), list(BatchSampler(range(10), 3, True))
    list(BatchSampler(range(9), 3, False)), list(BatchSampler(range(9), 3, True))
    list(BatchSampler(iter(range(7)), 3, False))
    list(BatchSampler(RandomSampler(range(7)), 3, True))
    len(BatchSampler(range(10), 3, False)), len(BatchSampler(range(10), 3, True))
    len(BatchSampler(iter(range(7)), 3, False))
    list(BatchSampler([], 3, False))
    list(Sampler())
    len(Sampler())
    Sampler([1, 2])
    DistributedSampler(rows)
    DistributedSampler(rows, 2, 2)
    DistributedSampler(rows, 3, -1)
    [list(DistributedSampler(range(10), 3, r)) for r in range(3)]
    [list(DistributedSampler(range(10), 3, r, shuffle=False)) for r in range(3)]
    [list(DistributedSampler(range(10), 3, r, drop_last=True, seed=3)) for r in range(3)]
    [list(DistributedSampler(range(9), 3, r, drop_last=True)) for r in range(3)]
    [list(DistributedSampler(range(2), 5, r)) for r in range(5)]
    [list(DistributedSampler(range(2), 5, r, drop_last=True)) for r in range(5)]
    (lambda s: (s.set_epoch(3), list(s), len(s), s.total_size))(DistributedSampler(range(9), 2, 1))
    """,
)
