"""Expressions of `default_collate`, `default_convert` and `collate`."""
# ruff: noqa: E501  # an expression is a line, however long

from tests.harness import Cases
from tests.utils.data.expressions import enter

cases = Cases()
results = cases.results

enter(
    cases,
    """
    default_collate([])
    default_collate([object()])
    default_collate([None])
    default_collate([1, None])
    default_collate([1j])
    default_collate([torch.ones(1), 3])
    default_collate([torch.ones(2), torch.ones(3)])
    default_collate([torch.ones(2), torch.zeros(2)])
    default_collate([torch.ones(2, requires_grad=True), torch.zeros(2)])
    default_collate([torch.tensor(1), torch.tensor(2)])
    default_collate([torch.ones(2, 3).t(), torch.zeros(3, 2)]).stride()
    default_collate((torch.ones(1), torch.zeros(1)))
    default_collate([[1, 2], [3]])
    default_collate([[1, 2], [3, 4]])
    default_collate([(1, 2.0), (3, 4.0)])
    default_collate([[1, "x"], [3, "y"]])
    default_collate(["a", "b"])
    default_collate([b"a"])
    default_collate([1, 2])
    default_collate([1.5, 2])
    default_collate([1, 2.5])
    default_collate([True, False])
    default_collate([{"a": 1, "b": 2.0}, {"a": 3, "b": 4}])
    default_collate([{"a": 1}, {"b": 3}])
    default_collate([{"a": [1, (2, "x")]}, {"a": [3, (4, "y")]}])
    default_collate([Pair(1, 2), Pair(3, 4)])
    default_collate([range(3), range(3)])
    default_collate([collections.OrderedDict(a=1)])
    default_collate([collections.defaultdict(int, a=1)])
    default_collate([collections.Counter(a=1)])
    default_collate([np.ones(2), np.zeros(2)])
    default_collate([np.float32(2), np.float32(3)])
    default_collate([np.bool_(True)])
    default_collate([np.int16(3), np.int16(4)])
    default_collate([np.array(3), np.array(4)])
    default_collate([np.array("abc")])
    default_collate([np.array(["abc"])])
    default_convert([1, np.ones(2), {"a": np.float64(3)}, "x", (1, 2)])
    default_convert(np.array(["a"])).dtype.kind
    default_convert(Pair(np.ones(1), 2))
    default_convert(torch.ones(1)), default_convert("x"), default_convert(None)
    data._utils.collate.collate([1, 2], collate_fn_map={int: lambda b, *, collate_fn_map=None: sum(b)})
    data._utils.collate.collate([(1, "a")], collate_fn_map={int: lambda b, *, collate_fn_map=None: b})
    """,
)
