"""Expressions of datasets and `random_split`."""

from tests.harness import Cases
from tests.utils.data.expressions import enter

cases = Cases()
results = cases.results

enter(
    cases,
    """
    TensorDataset(torch.ones(2), torch.ones(3))
    len(TensorDataset(torch.ones(2, 3)))
    TensorDataset(torch.arange(3), torch.arange(6).reshape(3, 2))[1]
    TensorDataset(torch.arange(3), torch.arange(6).reshape(3, 2))[[0, 2]]
    TensorDataset(torch.arange(3))[3]
    TensorDataset(torch.arange(3))[-1]
    TensorDataset(3)
    StackDataset()
    StackDataset([1, 2], [3])
    StackDataset([1, 2], a=[3, 4])
    StackDataset(a=[1, 2], b=[3])
    (StackDataset([1, 2], [3, 4])[0], StackDataset(a=[1, 2], b=[3, 4])[1], len(StackDataset([1])))
    StackDataset([1, 2], [3, 4]).__getitems__([0, 1])
    StackDataset(a=[1, 2], b=[3, 4]).__getitems__([0, 1])
    StackDataset(Subset([5, 6], [1, 0]), [3, 4]).__getitems__([0, 1])
    ConcatDataset([])
    ConcatDataset([Count()])
    [ConcatDataset([[1, 2], [3]])[i] for i in (0, 1, 2, -1, -2, -3)]
    ConcatDataset([[1, 2], [3]])[-4]
    ConcatDataset([[1, 2], [3]])[3]
    ConcatDataset([[1, 2], [3]]).cumulative_sizes
    ConcatDataset([[1, 2], [3]]).cummulative_sizes
    ConcatDataset.cumsum([[1, 2], [], [3]])
    list(ChainDataset([Count(), Count()]))
    len(ChainDataset([Sized(), Sized()]))
    list(ChainDataset([[1]]))
    len(ChainDataset([[1]]))
    len(ChainDataset([Count()]))
    list(Count() + Sized())
    type(Count() + Count()).__name__
    Dataset()[0]
    len(Dataset())
    (rows + rows)[12]
    type(rows + rows).__name__
    list(Subset([5, 6, 7], [2, 0]))
    Subset([5, 6, 7], [2, 0])[[0, 1]]
    Subset(torch.arange(5), [3, 1, 0])[[0, 2]]
    Subset([5, 6, 7], [2, 0]).__getitems__([1])
    Subset(StackDataset([1, 2], [3, 4]), [1, 0]).__getitems__([0])
    len(Subset([5, 6, 7], [2, 0]))
    Subset([5, 6, 7], [2, 0])[2]
    random_split(range(10), [3, 3])
    random_split(range(10), [.5, .6])
    random_split(range(10), [1.5, -.5])
    random_split(range(10), [.5, -.1])
    [len(x) for x in random_split(range(10), [.33, .33, .34])]
    [len(x) for x in random_split(range(7), [.1] * 10)]
    [len(x) for x in random_split(range(3), [.01, .99])]
    [len(x) for x in random_split(range(7), [0., 1.])]
    [x.indices for x in random_split(range(10), [3, 7], generator=g(42))]
    [list(x) for x in random_split(range(10), [.3, .3, .4], generator=g(42))]
    [list(x) for x in random_split(range(10), [5, 5])]
    [list(x) for x in random_split(range(4), [4, 0], None)]
    Dataset[int].__name__
    IterableDataset.__mro__[1].__name__
    """,
)
