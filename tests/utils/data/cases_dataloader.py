"""Expressions of `DataLoader`: batches, orders, seeds, and what it refuses."""
# ruff: noqa: E501  # an expression is a line, however long

from tests.harness import Cases
from tests.utils.data.expressions import enter

cases = Cases()
results = cases.results

enter(
    cases,
    """
    DataLoader(rows, num_workers=-1)
    DataLoader(rows, timeout=-1)
    DataLoader(rows, prefetch_factor=2)
    DataLoader(rows, num_workers=1, prefetch_factor=-2)
    DataLoader(rows, num_workers=1).prefetch_factor
    DataLoader(rows, persistent_workers=True)
    DataLoader(Count(), shuffle=True)
    DataLoader(Count(), sampler=[1])
    DataLoader(Count(), batch_sampler=[[1]])
    DataLoader(rows, sampler=[1], shuffle=True)
    DataLoader(rows, batch_sampler=[[1]], batch_size=2)
    DataLoader(rows, batch_sampler=[[1]], shuffle=True)
    DataLoader(rows, batch_sampler=[[1]], drop_last=True)
    DataLoader(rows, batch_size=None, drop_last=True)
    DataLoader(rows, batch_size=0)
    DataLoader(rows, batch_size=True)
    DataLoader(rows, batch_size=2.5)
    DataLoader(rows, shuffle=3).sampler.__class__.__name__
    DataLoader(rows, batch_size=None, shuffle=True).sampler.__class__.__name__
    DataLoader(Count(), shuffle=False).sampler.__class__.__name__
    DataLoader(rows, multiprocessing_context="fork")
    DataLoader(rows, num_workers=1, multiprocessing_context="forkk")
    DataLoader(rows, num_workers=1, multiprocessing_context=3)
    DataLoader([], shuffle=True)
    setattr(DataLoader(rows), "batch_size", 3)
    setattr(DataLoader(rows), "sampler", 3)
    setattr(DataLoader(rows), "anything", 3)
    list(DataLoader(rows, pin_memory=True, batch_size=5))
    list(DataLoader(rows, pin_memory=True, pin_memory_device="cuda", batch_size=10))
    list(DataLoader(rows, batch_size=4)), list(DataLoader(rows, batch_size=4, drop_last=True))
    list(DataLoader(rows, batch_size=4, shuffle=True))
    [list(DataLoader(rows, batch_size=9, shuffle=True)) for _ in range(3)], torch.rand(1)
    (lambda l: [list(l), list(l), torch.rand(1)])(DataLoader(range(6), 6, True))
    (lambda l: [list(l), list(l), l.generator.get_state().sum()])(DataLoader(range(6), 6, True, generator=g(7)))
    list(DataLoader(rows, batch_size=3)), torch.rand(1)
    list(DataLoader(Squares(), batch_size=2)), list(DataLoader(Squares(), batch_size=None))
    list(DataLoader(Squares(), sampler=[3, 1, 1], batch_size=2))
    list(DataLoader(rows, sampler=WeightedRandomSampler([1.0] * 10, 6), batch_size=3)), torch.rand(1)
    list(DataLoader(rows, sampler=RandomSampler(rows, True, 7), batch_size=3))
    list(DataLoader(rows, batch_sampler=BatchSampler(SequentialSampler(rows), 7, False)))
    list(DataLoader(rows, batch_sampler=[[0, 0], [9], [-1, 1]]))
    list(DataLoader(rows, sampler=[20]))
    list(DataLoader(rows, sampler=[torch.tensor(2), 1], batch_size=2))
    list(DataLoader(random_split(rows, [6, 4], g(1))[0], batch_size=4, shuffle=True))
    list(DataLoader(ConcatDataset([rows, rows]), batch_size=13))
    list(DataLoader(StackDataset(a=[1, 2, 3], b=["x", "y", "z"]), batch_size=2))
    list(DataLoader(rows, batch_size=3, collate_fn=len))
    list(DataLoader(Count(), batch_size=2)), list(DataLoader(Count(), batch_size=2, drop_last=True))
    list(DataLoader(Count(), batch_size=None)), list(DataLoader(Sized()))
    (lambda l: (len(l), list(l)))(DataLoader(Sized(), batch_size=1))
    list(DataLoader([1.5, 2.5], batch_size=None))
    list(DataLoader(np.ones((2, 2)), batch_size=None))
    len(DataLoader(Count()))
    len(DataLoader(Sized(), batch_size=2, drop_last=True)), len(DataLoader(Sized(), batch_size=None))
    len(DataLoader(rows, 3)), len(DataLoader(rows, 3, drop_last=True)), len(DataLoader(rows, None))
    len(DataLoader([], batch_size=2)), list(DataLoader([]))
    list(DataLoader(3))
    list(DataLoader(rows, timeout=3))
    (lambda d: (d.batch_size, d.drop_last, len(d)))(DataLoader(rows, batch_sampler=[[0]]))
    sorted(k for k in vars(DataLoader(rows)) if not k.startswith("_"))
    iter(DataLoader(rows)).__getstate__()
    len(iter(DataLoader(rows, 3))), iter(DataLoader(rows))._base_seed
    data.dataloader._DatasetKind.create_fetcher(0, rows, True, default_collate, False).fetch([1, 2])
    list(DataLoader(TensorDataset(torch.ones(3, requires_grad=True)), batch_size=2))
    [x.tolist() for x in DataLoader(Squares(), 2, True, num_workers=2)], torch.rand(1)
    [x.tolist() for x in DataLoader(Count(), 2, num_workers=2)], torch.rand(1)
    [x.tolist() for x in DataLoader(Count(), 2, num_workers=2, drop_last=True)]
    sorted(x.tolist() for x in DataLoader(Squares(), 2, num_workers=2, in_order=False))
    sorted(x.tolist() for x in DataLoader(Count(), 2, num_workers=2, in_order=False))
    (lambda l: (len(l), [x.tolist() for x in l]))(DataLoader(Sized(), 2, num_workers=2))
    (lambda l: [[x.tolist() for x in l] for _ in range(3)])(DataLoader(Squares(), 2, True, num_workers=2, persistent_workers=True))
    (lambda l: [[x.tolist() for x in l] for _ in range(2)])(DataLoader(Count(), 2, num_workers=2, persistent_workers=True))
    [x for x in DataLoader(Squares(), 3, num_workers=1, collate_fn=lambda b: (b, torch.rand(1).item(), np.random.rand(), __import__("random").random()))]
    [x for x in DataLoader(Squares(), 2, num_workers=2, worker_init_fn=lambda i: torch.manual_seed(i), collate_fn=lambda b: torch.rand(1).item())]
    [x[1:] for x in DataLoader(Squares(), None, num_workers=2, collate_fn=lambda b: (lambda i: (b, i.id, i.num_workers, i.seed, i.worker_method, len(i.dataset)))(get_worker_info()))]
    data._utils.worker._generate_state(2**40 + 5, 3)
    get_worker_info()
    """,
)
