"""Sparse tensors: expressions, and what they give or how they fail, as text."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from typing import Any

from tests.harness import Cases

# s: three elements; u: a place twice; k: coalesced; c, cc: by rows and columns; h: with a dense
# dimension; x: dense, with zeros; d: a dense factor
VALUES = """
s | u | k | c | cc | h | h.coalesce() | x.to_sparse() | x.to_sparse(1) | x.to_sparse_csr()
x.to_sparse_csc() | x.to_sparse_bsr((1, 3)) | x.to_sparse_bsc((2, 1)) | x.to_sparse_coo()
x.to_sparse(layout=torch.sparse_csr) | x.to_sparse(layout=torch.sparse_bsr, blocksize=(2, 3))
x.double().to_sparse() | x.int().to_sparse() | (x > 1).to_sparse()
x.to(torch.complex64).to_sparse()
s.to_sparse_csr() | s.to_sparse_csc() | c.to_sparse() | c.to_sparse_csc() | cc.to_sparse_csr()
c.to_sparse_bsr((1, 3)).to_dense() | u.to_sparse_csr() | tensor(3.).to_sparse()
tensor(3.).to_sparse().to_dense() | tensor(0.).to_sparse()
ones(2, 2, 3).to_sparse_csr() | ones(2, 2, 3).to_sparse_csr().to_dense()
ones(2, 2, 3).to_sparse_csr(1).values() | torch.zeros(2, 0).to_sparse()
coo([[0, 1], [1, 0]], [1, 2]) | coo((2, 3))
coo(size=(2, 3)) | coo(size=(2, 3), indices=i, values=[1, 2, 3])
coo([[0, 1], [1, 0]], [[1, 2], [3, 4]], (2, 2, 2), dtype=torch.float64)
coo(i, v, (2, 3), requires_grad=True)
coo(i, v, (2, 3), is_coalesced=True).is_coalesced()
csr([0, 1, 3], [1, 0, 2], [1., 2., 3.])
csr([0, 1, 3], [1, 0, 2], [1., 2., 3.], (2, 4)).to_dense()
torch.sparse_csc_tensor([0, 1, 3], [1, 0, 2], [1., 2., 3.])
torch.sparse_bsr_tensor([0, 1], [0], [[[1., 2.], [3., 4.]]])
torch.sparse_bsc_tensor([0, 1], [1], [[[1., 2.], [3., 4.]]]).to_dense()
torch.sparse_compressed_tensor([0, 1, 2], [1, 0], [1., 2.], layout=torch.sparse_csr)
torch.zeros(2, 3, layout=torch.sparse_coo) | torch.zeros(2, 3, layout=torch.sparse_csr)
torch.empty(2, 3, layout=torch.sparse_coo) | torch.zeros_like(s) | torch.empty_like(c).shape
torch.eye(3).to_sparse()._nnz() | coo(torch.arange(40).reshape(2, 20), torch.arange(20.))
(s.layout, s.is_sparse, s.is_sparse_csr, c.layout, c.is_sparse, c.is_sparse_csr, x.layout)
(s.shape, s.size(), s.dim(), s.numel(), s.stride(), len(s), s.dtype, s.device, s.element_size())
(s.sparse_dim(), s.dense_dim(), h.sparse_dim(), h.dense_dim(), c.sparse_dim(), c.dense_dim())
(x.sparse_dim(), x.dense_dim(), s._nnz(), c._nnz(), s._dimI(), h._dimV())
(s.is_coalesced(), k.is_coalesced())
(u._indices(), u._values(), k.indices(), k.values())
(c.crow_indices(), c.col_indices(), c.values())
(cc.ccol_indices(), cc.row_indices(), cc.values()) | u.coalesce() | h.coalesce().values()
u.to_dense()
(s.is_contiguous(), s.is_floating_point(), s.requires_grad, s.is_leaf, s.grad_fn)
isinstance(s, torch.Tensor) | torch.is_tensor(c) | s.is_same_size(u) | s.detach() is s
-s | s.abs() | u.abs() | u.sin() | u.tan() | u.asin() | u.atan() | u.sinh() | u.tanh() | u.asinh()
u.sqrt() | u.square()
u.expm1() | u.log1p() | u.sign() | u.sgn() | u.floor() | u.ceil() | u.round() | u.trunc()
u.isnan() | u.isinf() | u.relu() | u.erf()
u.pow(2) | (u ** 3).to_dense() | k.deg2rad() | u.rad2deg().to_dense() | u.neg() | u.positive()
u.conj() | u // 2 | u.clone() | u.detach() | k.neg().is_coalesced()
-c | c.sin() | c.abs() | c * 2 | c.relu() | c.clone() | c.detach() | c.double() | s.double()
s.half() | s.long() | s.to(torch.float64) | s.bool()
u * 2 | 2 * u | u / 2 | u * tensor(2.) | torch.mul(u, 2) | s * s | u * u | (s * u).to_dense()
s * x | x * s | u * ones(2, 3) | s * ones(3)
s + s | k + k | u + u | k + x.to_sparse() | s - s | k - x.to_sparse() | x + s | x - u | x + u
torch.add(x, s, alpha=2) | torch.add(k, k, alpha=2)
c + c | c + x | x + c | c * c | c * x | c + k.to_sparse_csr() | c.add(k.to_sparse_csr(), alpha=3)
h + h | h * 2 | h * h | h.sin() | ones(2, 3, 2) + h
s @ d | u @ d | c @ d | cc @ d | d.t() @ s.t() | ones(4, 2) @ c | s @ ones(3) | c @ ones(3)
torch.mm(s, d) | torch.mv(s, ones(3))
sp.mm(s, d) | sp.mm(c, d) | sp.mm(s, s.t()) | torch.mm(s, s.t()) | c @ c.t()
sp.mm(u, x.to_sparse().t())
torch.addmm(ones(2, 4), s, d) | torch.addmm(ones(2, 4), s, d, beta=2, alpha=3)
sp.addmm(ones(2, 4), s, d) | torch.addmm(ones(2, 4), c, d)
sp.addmm(ones(2, 4), s, d, beta=2, alpha=3) | torch.bmm(ones(2, 2, 2).to_sparse(), ones(2, 2, 1))
torch.smm(s, d).to_dense()
torch.sspaddmm(ones(2, 4).to_sparse(), s, d).to_dense() | torch.hspmm(s, d).to_dense()
torch.spmm(s, d) | torch.dsmm(s, d) | torch.hsmm(s, d).to_dense() | torch.spmm(x, d)
torch.saddmm(ones(2, 4).to_sparse(), s, d).to_dense()
s.double() @ d.double() | s.to(torch.complex64) @ d.to(torch.complex64) | s.long() @ d.long()
s.bfloat16() @ d.bfloat16()
sp.sampled_addmm(c, ones(2, 4), ones(4, 3))
s.sum() | u.sum() | u.sum(0) | u.sum(1) | c.sum() | sp.sum(u) | sp.sum(u, 0) | sp.sum(u, (0, 1))
sp.sum(u, [1]) | sp.sum(u, 0, dtype=torch.float64)
sp.sum(h, 2) | sp.sum(h, 0) | sp.sum(h, (0, 1)) | sp.sum(h, (1, 2)) | sp.sum(h)
sp.softmax(s, 1) | sp.softmax(u, 0) | sp.log_softmax(s, 1) | sp.softmax(h, 2)
sp.log_softmax(h, 0) | sp.softmax(s, 1, dtype=torch.float64)
sp.spdiags(torch.arange(6.).reshape(2, 3), tensor([0, 1]), (3, 3))
sp.spdiags(torch.arange(3.), tensor([-1]), (3, 3)).to_dense()
sp.spdiags(torch.arange(6.).reshape(2, 3), tensor([0, -2]), (4, 3), layout=torch.sparse_csr)
s.t() | u.t() | s.transpose(0, 1) | s.T | s.permute(1, 0) | h.transpose(0, 1) | h.permute(1, 0, 2)
c.t() | cc.t() | c.transpose(0, 1) | s.unsqueeze(0) | s.unsqueeze(-1) | h.unsqueeze(1)
h.unsqueeze(3)
s[0] | u[1] | u[1, 2] | s[:, 0] | s.select(1, 2) | s[-1] | h[0] | h[:, 2] | h[0, 2]
h.select(2, 1) | c[0].to_dense() | list(s)
s.index_select(0, tensor([1])) | u.index_select(1, tensor([2, 2]))
s.index_select(1, tensor([2, 0])).to_dense() | h.index_select(2, tensor([1]))
torch.cat([u, s]) | torch.cat([u, s], 1) | torch.stack([s, s]) | torch.cat([h, h], 2).to_dense()
s.narrow_copy(1, 0, 2)
x.sparse_mask(s) | x.sparse_mask(k) | k.sparse_mask(x.to_sparse()) | x.sparse_mask(c)
ones(2, 3, 2).sparse_mask(h.coalesce())
x.to_dense() is x | s.norm() | u.norm() | s.any() | torch.isnan(c)
s.clone().sparse_resize_((4, 5), 2, 0) | s.clone().sparse_resize_and_clear_((4, 5), 1, 1)
s.clone().resize_as_sparse_(torch.eye(4).to_sparse())
s.clone().zero_() | s.clone().mul_(2) | s.clone().div_(2) | s.clone().neg_() | k.clone().add_(k)
s.clone().copy_(u) | k.clone().sub_(x.to_sparse()) | s.clone().t_() | x.clone().add_(s)
x.clone().sub_(s, alpha=2) | c.clone().mul_(2) | k.clone().abs_() | k.clone().sin_()
copy.deepcopy(s) | pickle.loads(pickle.dumps(u)) | saved(s) | saved(c) | saved(h) | saved([u, cc])
sp.check_sparse_tensor_invariants.is_enabled() | torch.equal(x.to_sparse().to_dense(), x)
torch.sparse_coo
[str(n) for n in (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)]
"""
ERRORS = """
s.indices() | s.values() | c.indices() | c.coalesce() | c.is_coalesced() | x.coalesce()
x.values() | x.indices() | s.crow_indices() | c.row_indices() | cc.crow_indices()
s.exp() | s.cos() | s + 1 | s / s | s / x | s.max() | s.numpy() | s.tolist() | c.stride()
torch.ones_like(s)
coo([[0, 1]], [1.], (3,)) | coo([[0, 1]], [1., 2.], (3, 3)) | coo([0, 1], [1., 2.], (3, 3))
coo([[0, 5]], [1., 2.], (3,), check_invariants=True)
coo([[0, -1]], [1., 2.], (3,), check_invariants=True)
coo([[0, -1]], [1., 2.]) | coo([[0], [1]], [[1., 2.]], (3, 3, 3))
coo([[1, 0]], [1., 2.], (3,), check_invariants=True, is_coalesced=True)
csr([0, 1, 3], [1, 0], [1., 2., 3.], check_invariants=True)
csr([0, 1, 3], [1, 0, 2], [1., 2., 3.], (3, 3), check_invariants=True)
torch.sparse_compressed_tensor([0, 1], [0], [1.])
csr([1, 1, 3], [1, 0, 2], [1., 2., 3.], check_invariants=True)
csr([0, 1, 3], [1, 0, 9], [1., 2., 3.], (2, 3), check_invariants=True)
x.to_sparse(5) | x.to_sparse_bsr((2, 2)) | x.sparse_mask(x) | x._indices() | x._nnz() | x.smm(d)
h.transpose(1, 2) | s.sparse_resize_((1, 1), 2, 0) | s.sparse_resize_((4, 4), 1, 1)
sp.spdiags(ones(2, 3), tensor([0, 0]), (3, 3)) | sp.spdiags(ones(2, 3), tensor([0]), (3, 3))
sp.softmax(x, 0)
"""
# functions of a sparse leaf: the node, and the gradient of the sum
GRADIENTS = """
sp.mm(t, d) | t @ d | torch.mm(t, d) | t.to_dense() | (t * 2).to_dense() | (-t).to_dense()
(t + t).to_dense() | (t * t).to_dense() | t.clone().to_dense()
(t * ones(2, 3)).to_dense() | t.sum() | t.to_dense(masked_grad=False) | ones(2, 3) + t
t @ ones(3) | sp.addmm(ones(2, 4), t, d, beta=2, alpha=3) | ones(4, 2) @ t
"""
COO_GRADIENTS = """
sp.sum(t) | sp.sum(t, 0).to_dense() | sp.sum(t, 1).to_dense() | t.coalesce().values()
sp.softmax(t, 1).to_dense() * e | sp.log_softmax(t, 1).to_dense() * e
(2 * t / 4).to_dense() | t.t().to_dense() | t.transpose(0, 1).to_dense()
t.to_sparse_csr().to_dense()
"""
# functions of dense leaves: `v` the values, `w` a matrix
DENSE = """
coo(i, v, (2, 3)) | coo(i, v, (2, 3)).to_dense() * e | sp.mm(coo(i, v, (2, 3)), w)
coo(i, v, (2, 3)) @ w
coo(i, v, (2, 3)).coalesce().values() * v
w.to_sparse() | w.to_sparse().to_dense() * w | w.to_sparse_csr().values()
w.to_sparse(1).values() | w.sparse_mask(torch.eye(3, 4).to_sparse()).to_dense() | sp.mm(s, w)
c @ w
sp.sum(w.to_sparse()) | sp.sum(w.to_sparse(), 0).to_dense() | (coo(i, v, (2, 3)) * 2).to_dense()
sp.softmax(coo(i, v, (2, 3)), 1).to_dense() * e
F.embedding(tensor([[1, 2], [1, 0]]), w, sparse=True)
F.embedding(tensor([1, 2, 1]), w, padding_idx=2, sparse=True)
F.embedding(tensor([1, 2, 1]), w * 2, sparse=True)
F.embedding_bag(tensor([1, 2, 1, 0]), w, tensor([0, 2]), sparse=True)
F.embedding_bag(tensor([1, 2, 1, 0]), w, tensor([0, 1]), mode="sum", sparse=True)
torch.gather(w, 1, tensor([[0], [2], [3]]), sparse_grad=True)
torch.gather(w, 0, tensor([[0, 2, 2, 1]]), sparse_grad=True)
F.embedding(tensor([1]), w, sparse=True) + w.sum()
F.embedding(tensor([1, 2]), w, sparse=True) * F.embedding(tensor([2, 2]), w, sparse=True)
"""


def expressions(text: str) -> list[str]:
    return [part.strip() for part in text.replace("\n", "|").split("|") if part.strip()]


def names(torch: Any) -> dict[str, Any]:
    """What expressions may use."""
    i = torch.tensor([[0, 1, 1], [2, 0, 2]])
    v = torch.tensor([3.0, -4.0, 5.0])
    s = torch.sparse_coo_tensor(i, v, (2, 3))
    twice = torch.tensor([[1, 0, 1], [2, 0, 2]])
    x = torch.tensor([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]])

    def saved(y: Any) -> Any:
        file = io.BytesIO()
        torch.save(y, file)
        file.seek(0)
        return torch.load(file)

    return {
        "torch": torch, "F": torch.nn.functional, "sp": torch.sparse, "tensor": torch.tensor,
        "coo": torch.sparse_coo_tensor, "csr": torch.sparse_csr_tensor, "ones": torch.ones,
        "copy": copy, "pickle": pickle, "saved": saved,
        "i": i, "v": v, "s": s, "k": s.coalesce(), "x": x, "c": x.to_sparse_csr(),
        "u": torch.sparse_coo_tensor(twice, torch.tensor([0.25, 0.5, 0.375]), (2, 3)),
        "cc": x.to_sparse_csc(), "d": torch.arange(12.0).reshape(3, 4),
        "e": torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
        "h": torch.sparse_coo_tensor(i, torch.arange(1.0, 7.0).reshape(3, 2), (2, 3, 2)),
    }  # fmt: skip


def shown(y: Any) -> Any:
    return [shown(part) for part in y] if isinstance(y, (tuple, list)) else repr(y)


values, errors, gradients = Cases(), Cases(), Cases()


def enter_value(text: str) -> None:
    def case(torch: Any) -> Any:
        return shown(eval(text, names(torch)))

    values.enter(text, case)


def enter_error(text: str) -> None:
    def case(torch: Any) -> Any:
        try:
            return repr(eval(text, names(torch)))
        except Exception as error:
            # PyTorch's texts go on about its builds
            return f"{type(error).__name__}: {str(error).splitlines()[0]}".split(" backend. ")[0]

    errors.enter(text, case)


def _seen(g: Any) -> Any:
    """A gradient: its layout, and its numbers. The order of places is not the same everywhere."""
    if g is None:
        return None
    return [str(g.layout), g.detach().to_dense().tolist()]


def _node(y: Any) -> Any:
    return None if y.grad_fn is None else y.grad_fn.name()


def enter_gradient(title: str, text: str, layout: str) -> None:
    def case(torch: Any) -> Any:
        space = names(torch)
        leaf = {"coo": space["s"], "csr": space["c"]}[layout].clone().requires_grad_()
        y = eval(text, {**space, "t": leaf})
        y.sum().backward()
        return [_node(y), _seen(leaf.grad)]

    gradients.enter(title, case)


def enter_dense(text: str) -> None:
    def case(torch: Any) -> Any:
        space = names(torch)
        v, w = space["v"].clone().requires_grad_(), space["d"].clone().requires_grad_()
        y = eval(text, {**space, "v": v, "w": w})
        (y if y.layout is torch.strided else y.to_dense()).sum().backward()
        return [_node(y), _seen(v.grad), _seen(w.grad)]

    gradients.enter(text, case)


for _text in expressions(VALUES):
    enter_value(_text)
for _text in expressions(ERRORS):
    enter_error(_text)
for _text in expressions(GRADIENTS):
    enter_gradient(_text, _text, "coo")
    enter_gradient(f"csr: {_text}", _text, "csr")
for _text in expressions(COO_GRADIENTS):
    enter_gradient(_text, _text, "coo")
for _text in expressions(DENSE):
    enter_dense(_text)


# --- small programs -------------------------------------------------------------------------------
programs = Cases()


@programs
def gradients_add_up(torch: Any) -> Any:
    table = torch.ones(5, 2, requires_grad=True)
    embed = torch.nn.functional.embedding
    found = []
    for rows in ([[1, 3], [1, 0]], [[4, 1]]):
        embed(torch.tensor(rows), table, sparse=True).sum().backward()
        found.append(repr(table.grad))
    held = table.grad
    (table * 2).sum().backward()  # dense from here on, and another tensor
    found += [repr(table.grad), held is table.grad]
    embed(torch.tensor([4, 1]), table, sparse=True).sum().backward()
    found.append(repr(table.grad))
    table.grad = None
    (embed(torch.tensor([4, 1]), table, sparse=True).sum() * 2
     + embed(torch.tensor([0, 1]), table, sparse=True).sum()).backward()  # fmt: skip
    found.append(repr(table.grad))
    return found


def enter_training(name: str, options: dict[str, Any]) -> None:
    def case(torch: Any) -> Any:
        table = torch.nn.Embedding(6, 2, sparse=True)
        with torch.no_grad():
            table.weight.copy_(torch.arange(12.0).reshape(6, 2) / 10)
        step = getattr(torch.optim, name)(table.parameters(), **options)
        for rows in ([1, 1, 3], [5, 1], [0, 3]):
            step.zero_grad()
            (table(torch.tensor(rows)) ** 2).sum().backward()
            step.step()
        return [round(n, 4) for row in table.weight.tolist() for n in row]

    programs.enter(f"{name} {options}", case)


enter_training("SGD", {"lr": 0.1})
enter_training("Adagrad", {"lr": 0.1})
enter_training("SparseAdam", {"lr": 0.1})


@programs
def zero_grad_empties(torch: Any) -> Any:
    table = torch.nn.EmbeddingBag(4, 2, sparse=True, mode="sum")
    table(torch.tensor([[1, 2]])).sum().backward()
    seen = [repr(table.weight.grad)]
    table.zero_grad(set_to_none=False)
    return [*seen, repr(table.weight.grad)]


@programs
def dense_optimisers_refuse(torch: Any) -> Any:
    table = torch.nn.Embedding(4, 2, sparse=True)
    table(torch.tensor([1])).sum().backward()
    step = torch.optim.Adam(table.parameters())
    try:
        step.step()
    except RuntimeError as error:
        return str(error).splitlines()[0]
    return None


@programs
def hooks_see_it(torch: Any) -> Any:
    table, seen = torch.ones(3, 2, requires_grad=True), []
    table.register_hook(lambda g: seen.append(repr(g)))
    torch.nn.functional.embedding(torch.tensor([1]), table, sparse=True).sum().backward()
    return seen


@programs
def invariants_are_checked_inside(torch: Any) -> Any:
    check = torch.sparse.check_sparse_tensor_invariants
    found = []
    with check():
        found.append(check.is_enabled())
        try:
            torch.sparse_coo_tensor([[9]], [1.0], (3,))
        except RuntimeError as error:
            found.append(str(error))
        with check(False):
            found.append(torch.sparse_coo_tensor([[9]], [1.0], (3,))._nnz())

    @check()
    def inside() -> bool:
        return bool(check.is_enabled())

    return [*found, check.is_enabled(), inside()]


GROUPS = {"values": values, "errors": errors, "gradients": gradients, "programs": programs}


def results(torch: Any) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {title: group.results(torch) for title, group in GROUPS.items()}
