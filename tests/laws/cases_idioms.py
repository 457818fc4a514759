"""What public programs do that is written in no tutorial: old orders of arguments, NumPy's names
for them, classes that take part by `__torch_function__` alone, names that begin with an underscore.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

from tests.harness import PlainCases, attempt

exact = PlainCases()  # to the last bit and letter
close = PlainCases()  # to rounding


def told(x: Any) -> Any:
    """A result as JSON can hold it."""
    if isinstance(x, (tuple, list)):
        return [told(y) for y in x]
    if hasattr(x, "tolist"):
        return [list(x.shape), x.tolist()]
    return x if x is None or isinstance(x, (bool, int, float, str)) else repr(x)


def table(name: str, names: Callable[[Any], dict[str, Any]], texts: str) -> None:
    """A case that evaluates expressions, one a line."""
    lines = [line.strip() for line in texts.strip().splitlines()]

    def run(torch: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = {}
            for line in lines:
                spaces = {"torch": torch, **names(torch)}
                found[line] = attempt(lambda line=line, s=spaces: told(eval(line, s)))
            return found

    exact.enter(name, run)


def matrices(torch: Any) -> dict[str, Any]:
    m = torch.arange(6.0).reshape(2, 3)
    return {
        "m": m, "i": torch.tensor([[0, 1, 0]]), "x": torch.tensor([1.0, 2.0]),
        "y": torch.tensor([3.0, 4.0]), "z": torch.tensor([5.0, 6.0]), "s": m[:, :2],
        "b": torch.arange(8.0).reshape(2, 2, 2), "F": torch.nn.functional,
    }  # fmt: skip


# --- the order of arguments of old ----------------------------------------------------------------
table(
    "arguments in their old order", matrices, """
    x.add_(2, y)
    x.sub_(2, y)
    x.add(2, y)
    x.sub(2, y)
    torch.add(x, 2, y)
    torch.sub(x, 2, y)
    x.addcmul_(2, y, z)
    x.addcdiv_(2, y, z)
    x.addcmul(2, y, z)
    x.addcdiv(2, y, z)
    torch.addcmul(x, 2, y, z)
    torch.addcdiv(x, 2, y, z)
    torch.addmm(2, s, s, s)
    torch.addmm(2, s, 3, s, s)
    s.addmm(2, s, s)
    s.addmm(2, 3, s, s)
    s.clone().addmm_(2, s, s)
    s.clone().addmm_(2, 3, s, s)
    torch.addmm(2, s, s, s, out=torch.empty(0))
    torch.addmv(2, x, s, y)
    torch.addmv(2, x, 3, s, y)
    x.clone().addmv_(2, 3, s, y)
    torch.addr(2, s, x, y)
    torch.addr(2, s, 3, x, y)
    s.clone().addr_(2, 3, x, y)
    torch.addbmm(2, s, b, b)
    torch.addbmm(2, s, 3, b, b)
    s.clone().addbmm_(2, 3, b, b)
    torch.baddbmm(2, b, b, b)
    torch.baddbmm(2, b, 3, b, b)
    b.clone().baddbmm_(2, 3, b, b)
    """,
)  # fmt: skip

# --- NumPy's names --------------------------------------------------------------------------------
table(
    "axis for dim", matrices, """
    torch.stack([m, m], axis=1)
    torch.softmax(m * 0, axis=0)
    (m * 0).softmax(axis=0)
    torch.log_softmax(m[:, :1], axis=1)
    torch.squeeze(m[None], axis=0)
    m[None].squeeze(axis=0)
    m[None].clone().squeeze_(axis=0)
    torch.unsqueeze(m, axis=1)
    m.unsqueeze(axis=1)
    m.clone().unsqueeze_(axis=0)
    torch.chunk(m, 3, axis=1)
    m.chunk(2, axis=0)
    torch.gather(m, axis=0, index=i)
    m.gather(axis=0, index=i)
    torch.index_select(m, axis=1, index=torch.tensor([0, 2]))
    m.index_select(axis=1, index=torch.tensor([0, 2]))
    torch.unbind(m, axis=1)
    m.unbind(axis=1)
    torch.cat([m, m], axis=1)
    torch.tensor_split(m, 3, axis=1)
    m.tensor_split((1, 2), axis=1)
    torch.split(m, 1, axis=1)
    m.split(split_size=1, dim=1)
    torch.split(m, 2, wrong=1)
    torch.tensor_split(m, sections=2, dim=1)
    torch.tensor_split(m, indices=(1,), dim=1)
    torch.cumsum(m, axis=0)
    torch.argmax(m, axis=0)
    torch.sort(m, axis=0)[0]
    torch.topk(m, 1, axis=0)[0]
    m.size(axis=0)
    torch.scatter(m, axis=0, index=i, src=m)
    torch.take_along_dim(m, i, axis=0)
    torch.narrow(m, axis=0, start=0, length=1)
    torch.select(m, axis=0, index=0)
    torch.index_add(m, axis=0, index=torch.tensor([0]), source=m[:1])
    torch.diff(m, axis=0)
    torch.roll(m, 1, axis=0)
    torch.flip(m, axis=[0])
    torch.count_nonzero(m, axis=0)
    torch.kthvalue(m, 1, axis=0)[0]
    torch.sum(m, axis=0, keepdims=True)
    m.mean(axis=1, keepdims=True)
    m.max(axis=0)[0]
    m.amax(axis=0)
    torch.fft.fft(m, axis=0).shape
    torch.linalg.vector_norm(m[:, :1], axis=0)
    torch.linalg.norm(m[:, :1], axis=0)
    F.softmax(m, axis=1)
    torch.add(m, x2=m)
    """,
)  # fmt: skip


@exact
def keepdims_alone_is_refused(torch: Any) -> Any:
    m = torch.ones(2, 3)
    calls = [
        lambda: m.sum(keepdims=True),
        lambda: m.mean(keepdims=True),
        lambda: m.sum(keepdim=True),
    ]
    return [attempt(call).split(":")[0] for call in calls]


# --- dtypes that Python names ---------------------------------------------------------------------
def _pairs(torch: Any) -> dict[str, Any]:
    kinds = [float, int, bool, complex, torch.float32, torch.int32]
    return {"kinds": kinds, "both": [(a, b) for a in kinds for b in kinds]}


table(
    "Python's types for dtypes", _pairs, """
    torch.finfo(float)
    torch.finfo(int)
    torch.finfo(complex)
    torch.iinfo(int)
    torch.iinfo(float)
    torch.iinfo(bool)
    torch.finfo(float).eps
    torch.iinfo(int).max
    [torch.can_cast(a, b) for a, b in both]
    [torch.promote_types(a, b) for a, b in both]
    [torch.ones(2, dtype=k).dtype for k in kinds]
    [torch.ones(2).to(k).dtype for k in kinds]
    """,
)  # fmt: skip


# --- objects with a `__torch_function__` ----------------------------------------------------------
@exact
def classes_that_are_no_tensors(torch: Any) -> Any:
    class Diagonal:
        def __init__(self, n: int, value: float) -> None:
            self.n, self.value = n, value

        def tensor(self) -> Any:
            return self.value * torch.eye(self.n)

        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            def plain(x: Any) -> Any:
                return x.tensor() if isinstance(x, cls) else x

            args = [[plain(y) for y in x] if isinstance(x, list) else plain(x) for x in args]
            return "taken", [t is cls for t in types], told(func(*args, **(kwargs or {})))

    d, x = Diagonal(2, 3.0), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    calls = """
    torch.mm(d, x) | torch.mm(x, d) | torch.matmul(x, d) | torch.mv(d, x[0]) | torch.sum(d)
    torch.sum(d, 1) | torch.mean(d, 0) | torch.squeeze(d) | torch.unsqueeze(d, 0)
    torch.flatten(d) | torch.relu(d) | torch.nn.functional.relu(d) | torch.transpose(d, 0, 1)
    torch.nn.functional.linear(x, d) | torch.where(x > 2, d, x) | torch.t(d) | torch.detach(d)
    torch.permute(d, (1, 0)) | torch.bmm(x[None], x[None]) | torch.dot(x[0], x[1]) | x + d | d + x
    x * d | x - d | x / d | x @ d | x == d | x.add(d) | x.mm(d) | torch.cat([x, d])
    torch.exp(d * 0 + x) | torch.linalg.det(d) | x.matmul(d) | x.eq_(d)
    """
    found = {}
    for text in calls.replace("\n", "|").split("|"):
        if text.strip():
            names = {"torch": torch, "d": d, "x": x.clone()}
            found[text.strip()] = attempt(lambda t=text, n=names: told(eval(t.strip(), n)))
    return found


@exact
def an_operand_that_does_not_answer(torch: Any) -> Any:
    class Silent:
        @classmethod
        def __torch_function__(cls, *args: Any, **kwargs: Any) -> Any:
            return NotImplemented

    class Speaks(Silent):
        def __radd__(self, other: Any) -> str:
            return "mine"

    x = torch.ones(2)
    calls = [lambda: x + Speaks(), lambda: x + Silent(), lambda: torch.exp(Silent())]
    return [attempt(call) for call in calls]


# --- parameters of the user's ---------------------------------------------------------------------
@exact
def parameter_classes_with_a_new_of_their_own(torch: Any) -> Any:
    class Tagged(torch.nn.Parameter):
        def __new__(cls, data: Any = None, requires_grad: bool = True, tag: int = 7) -> Any:
            self = super().__new__(cls, data, requires_grad)
            self.tag = tag
            return self

    class Made(torch.nn.Parameter):
        def __new__(cls, data: Any, requires_grad: bool = True, **more: Any) -> Any:
            return torch.Tensor._make_subclass(cls, data, requires_grad)

        def __init__(self, data: Any, requires_grad: bool = True, **more: Any) -> None:
            self.more = more

    class Tensor(torch.Tensor):
        def __new__(cls, x: Any, *args: Any) -> Any:
            return super().__new__(cls, x)

    layer = torch.nn.Linear(2, 2)
    layer.weight = Made(torch.ones(2, 2), name="w")
    layer.bias = Tagged(torch.zeros(2), tag=3)
    layer(torch.ones(1, 2)).sum().backward()
    twin = copy.deepcopy(layer)
    again = copy.deepcopy(layer).double()
    shown = []
    for one in (layer, twin, again):
        shown += [type(one.weight).__name__, type(one.bias).__name__, repr(one.weight.dtype)]
    return [
        *shown, layer.weight.more, layer.bias.tag, layer.weight.grad.tolist(),
        type(layer.weight.grad).__name__, type(layer.weight + 1).__name__,
        type(layer.bias.detach()).__name__, [name for name, _ in layer.named_parameters()],
        layer.weight.is_leaf, layer.bias.requires_grad, isinstance(layer.bias, torch.nn.Parameter),
        type(Tensor([1.0, 2.0]) * 2).__name__, twin.bias.tag, twin.weight.more,
    ]  # fmt: skip


# --- optimisers -----------------------------------------------------------------------------------
@exact
def an_optimiser_around_another(torch: Any) -> Any:
    class Around(torch.optim.Optimizer):
        def __init__(self, base: Any) -> None:  # and no super().__init__
            self.base = base

        @property
        def param_groups(self) -> Any:
            return self.base.param_groups

        @property
        def state(self) -> Any:
            return self.base.state

        def step(self, closure: Any = None) -> Any:
            return self.base.step(closure)

        def zero_grad(self, set_to_none: bool = True) -> None:
            self.base.zero_grad(set_to_none)

    p = torch.nn.Parameter(torch.ones(2))
    o = Around(torch.optim.SGD([p], lr=0.25, momentum=0.5))
    for _ in range(3):
        o.zero_grad()
        (p * p).sum().backward()
        o.step()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rate = torch.optim.lr_scheduler.StepLR(o, 1, 0.5)
        rate.step()
    return [p.tolist(), repr(o), rate.get_last_lr(), isinstance(o, torch.optim.Optimizer)]


@exact
def what_load_state_dict_shares(torch: Any) -> Any:
    def trained(kind: str, **how: Any) -> Any:
        p = torch.nn.Parameter(torch.ones(2))
        o = getattr(torch.optim, kind)([p], **how)
        (p * p).sum().backward()
        o.step()
        return o, p

    found: dict[str, Any] = {}
    for kind, how in (("Adam", {}), ("SGD", {"lr": 0.5, "momentum": 0.5}), ("Adagrad", {})):
        a, p = trained(kind, **how)
        b, q = trained(kind, **how)
        given = a.state_dict()
        b.load_state_dict(given)
        found[kind] = {name: x is given["state"][0][name] for name, x in b.state[q].items()}
        found[kind + " groups"] = b.param_groups[0] is given["param_groups"][0]
        q.grad = torch.ones(2)
        b.step()
        found[kind + " after"] = told([*a.state[p].values()])
        r = torch.nn.Parameter(torch.ones(2, dtype=torch.float64))
        c = getattr(torch.optim, kind)([r], **how)
        c.load_state_dict(given)
        found[kind + " double"] = {name: repr(x.dtype) for name, x in c.state[r].items()}
    return found


# --- least squares --------------------------------------------------------------------------------
@close
def least_squares_without_full_rank(torch: Any) -> Any:
    low = torch.tensor([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]], dtype=torch.float64)
    full = torch.eye(3, 2, dtype=torch.float64)
    b = torch.tensor([[1.0], [1.0], [2.0]], dtype=torch.float64)
    found = {}
    for driver in (None, "gelsy", "gelsd", "gelss"):
        for name, (x, y) in {
            "low": (low, b), "full": (full, b), "wide": (full.T, b[:2]),
            "both": (torch.stack([low, full]), torch.stack([b, b])),
        }.items():  # fmt: skip
            if driver in (None, "gelsy") and name == "wide":
                continue  # PyTorch's answers differ from run to run
            got = torch.linalg.lstsq(x, y, driver=driver)
            found[f"{driver} {name}"] = told([got.solution, got.residuals, got.rank])
    return found


# --- how tensors lie, and sparse ones -------------------------------------------------------------
@exact
def the_order_of_dimensions(torch: Any) -> Any:
    rows, last = torch.contiguous_format, torch.channels_last
    ones = torch.ones
    shapes = [(2, 1, 4, 4), (2, 3, 4, 4), (2, 3, 1, 1), (1, 3, 2, 2)]
    tensors = [ones(*shape) for shape in shapes]
    tensors += [x.to(memory_format=last) for x in tensors]
    tensors += [ones(2, 1, 4, 5).transpose(2, 3), ones(2, 1, 4), ones(2, 2).expand(3, 2, 2)]
    tensors += [ones(1, 1), ones(2, 3, 4).transpose(1, 2), ones(()), ones(0, 3), ones(1)]
    tensors += [ones(2, 3, 4, 5, 6).to(memory_format=torch.channels_last_3d), ones(2, 1, 4, 5, 6)]
    checks: list[Any] = [False, True, [], [rows], [last], [rows, last], "rows", [1], (rows,)]
    checks += [[torch.channels_last_3d]]
    return [
        [attempt(lambda c=c, x=x: list(x.dim_order(ambiguity_check=c))) for c in checks]
        for x in tensors
    ]


def _sparse(torch: Any) -> dict[str, Any]:
    many = torch.stack([torch.eye(4), 2 * torch.eye(4)])
    return {
        "x": torch.eye(4), "vmap": torch.vmap, "one": torch.eye(4).to_sparse(),
        "many": many.to_sparse(), "rows": many.to_sparse(1),
        "v": torch.arange(8.0).reshape(2, 4),
    }  # fmt: skip


table(
    "sparse tensors", _sparse, """
    x.to_sparse_bsr(2)
    x.to_sparse_bsc(2)
    x.to_sparse_bsr((2, 2)).to_sparse_bsr(2)
    x.to_sparse_bsr((2,))
    x.to_sparse_bsr(3)
    vmap(lambda a: torch.mv(one, a))(v)
    vmap(lambda a: one @ a)(v)
    vmap(lambda a: a.to_dense())(many)
    vmap(lambda a: a.to_dense().sum())(rows)
    vmap(lambda a: (a * 2).to_dense())(many)
    vmap(lambda a: one.to_dense() @ a)(v)
    vmap(lambda a: torch.sparse.mm(one, a))(v.reshape(2, 4, 1))
    torch.func.jacrev(lambda a: one @ a)(v[0])
    """,
)  # fmt: skip


# --- what nodes show ------------------------------------------------------------------------------
NODES = """
    torch.addmm(g(2), g(2, 3), g(3, 2)) | torch.addmm(g(2), g(3, 2).t(), g(3, 2), alpha=2, beta=3)
    torch.addmm(torch.ones(2), g(2, 3), torch.ones(3, 2)) | torch.mm(g(2, 3), g(3, 2))
    torch.addmm(g(2), torch.ones(2, 3), torch.ones(3, 2)) | torch.bmm(g(4, 2, 3), g(4, 3, 2))
    torch.addmv(g(2), g(2, 3), g(3)) | torch.addbmm(g(2, 2), g(4, 2, 3), g(4, 3, 2))
    torch.baddbmm(g(4, 2, 2), g(4, 2, 3), g(4, 3, 2)) | torch.addr(g(2, 2), g(2), g(2))
    torch.mv(g(2, 3), g(3)) | torch.dot(g(2), g(2)) | torch.addcmul(g(2), g(2), g(2), value=3)
    torch.cat([g(2), g(3)]) | torch.stack([g(2), g(2)]) | g(2, 3).sum(0) | g(2, 3).mean(1)
    g(2, 3).expand(4, 2, 3) | g(2, 3)[0] | g(2, 3).reshape(3, 2) | g(2, 3).permute(1, 0)
    torch.nn.functional.linear(g(2, 3), g(4, 3), g(4)) | g(2, 3) @ g(3, 2) | g(2, 3).repeat(2, 1)
    torch.nn.functional.conv2d(g(1, 1, 3, 3), g(1, 1, 2, 2), padding=1)
    torch.nn.functional.conv1d(g(1, 1, 3), g(2, 1, 2), g(2))
"""


@exact
def nodes_show_sizes(torch: Any) -> Any:
    def g(*shape: int) -> Any:
        return torch.ones(*shape, requires_grad=True)

    found = {}
    for text in NODES.replace("\n", "|").split("|"):
        if text.strip():
            node = eval(text.strip(), {"torch": torch, "g": g}).grad_fn
            shown = {n: getattr(node, n) for n in sorted(dir(node)) if n.startswith("_saved_")}
            plain = {n: "tensor" if isinstance(x, torch.Tensor) else x for n, x in shown.items()}
            found[text.strip()] = [type(node).__name__, {n: told(x) for n, x in plain.items()}]
    return found


# --- names with an underscore ---------------------------------------------------------------------
@exact
def helpers_of_modules(torch: Any) -> Any:
    from importlib import import_module

    nn = torch.nn
    indent = import_module(f"{torch.__name__}.nn.modules.module")._addindent
    layers = nn.ModuleList([nn.Linear(1, 1), nn.ReLU()])
    numbers = nn.ParameterList([torch.ones(1)])
    return [
        indent("a\nb\nc", 2), indent("a", 4), indent("", 4),
        *(layers._get_abs_string_index(i) for i in (0, 1, -1, -2)),
        attempt(lambda: layers._get_abs_string_index(2)),
        attempt(lambda: layers._get_abs_string_index(-3)),
        numbers._get_abs_string_index(-1),
    ]  # fmt: skip


def results(torch: Any) -> dict[str, Any]:
    return {**exact.results(torch), **close.results(torch)}
