"""Calls of public functions on the members of a batch, written down so that PyTorch and rushlight
can both make them.

A call is a text: statements with " ; " between them, the last one an expression. Its names are the
members of `BATCH` (a tensor each), the tensors of `SHARED`, which all members see, the library as
`torch`, `F`, and NumPy. `outcome` says what a call gives inside `vmap`, `member_by_member` what it
gives without.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = [
    "CALLS", "OURS", "WRITES", "agree", "batch_of", "called", "member_by_member", "outcome",
    "plain", "results", "tensors_of",
]  # fmt: skip

SIZE = 3


def _values(*shape: int, speed: float) -> np.ndarray[Any, Any]:
    n = int(np.prod(shape))
    return np.round(2 * np.sin(np.arange(1, n + 1) * speed), 3).reshape(shape)


BATCH: dict[str, np.ndarray[Any, Any]] = {
    "x": _values(SIZE, 3, 4, speed=1.3).astype(np.float32),
    "y": _values(SIZE, 3, 4, speed=0.7).astype(np.float32),
    "n": np.array([[0, 2, 1], [1, 1, 0], [2, 0, 2]]),
    "b": _values(SIZE, 3, 4, speed=2.1) > 0,
    "s": _values(SIZE, speed=1.9).astype(np.float32),
    "d": _values(SIZE, speed=2.7),
    "i": np.array([1, 0, 2]),
    "m": np.array([True, False, True]),
    "z": _values(SIZE, 3, speed=1.1) + 1j * _values(SIZE, 3, speed=0.4),
    "k": np.array([[3, -1, 4, 1], [-5, 2, 0, 5], [3, 5, -2, 9]]) - np.arange(SIZE)[:, None, None],
}
SHARED: dict[str, np.ndarray[Any, Any]] = {
    "c": _values(3, 4, speed=0.9).astype(np.float32),
    "ci": np.array([2, 0, 2]),
    "cm": _values(3, 4, speed=3.1) > 0,
    "cs": np.asarray(2.5, np.float32),
    "cv": _values(4, speed=1.7).astype(np.float32),
    "cz": np.zeros((3, 4), np.float32),
}

# What is asked of a tensor, or made of it. Each must be as a loop over the members has it.
CALLS = """
x.shape
x.stride()
x.is_contiguous()
x.numel()
x.dim()
x.ndim
x.size()
x.size(-1)
x.dtype
x.device
x.requires_grad
x.is_leaf
x._version
x.element_size()
x.itemsize
x.nbytes
len(x)
len(s)
[t.shape for t in x]
tuple(t for t in x)
1.0 in x
x.layout
x.is_cuda
x.is_floating_point()
x.is_complex()
z.is_complex()
x.is_conj()
z.conj().is_conj()
x.grad
x.grad_fn
x.T.shape
x.mT.stride()
x.T.is_contiguous()
x.storage_offset()
x[1].storage_offset()
x.storage()
x.data
x.numpy()
x.tolist()
s.item()
x.item()
float(s)
int(i)
bool(m)
complex(s)
x[m]
x[i]
c[i]
c[n]
c[n, n]
c[:, n]
c[n, 1:]
c[..., n]
c[n, None, n]
x[n]
x[ci]
x[ci, ci]
x[:, n]
x[n, n]
x[..., None]
x[None]
x[1]
x[-1, ::2]
x[1:, 1]
x[b]
x[cm]
c[b]
x[x > 0]
x[n > 0]
x[True]
x[False]
x[[0, 2]]
x[[0, 2], [1, 3]]
x[torch.tensor(1)]
x.new_tensor([1., 2.])
x.new_tensor(s)
torch.tensor(s)
torch.tensor([s, s])
torch.as_tensor(x)
torch.as_tensor([s, s])
torch.stack([s, s])
torch.full((2,), s)
torch.full_like(x, s)
x.new_full((2,), s)
torch.arange(i)
torch.zeros(i)
torch.arange(3) + i
torch.equal(x, x)
torch.equal(x, s)
torch.allclose(x, x)
torch.nonzero(x)
x.nonzero()
x.nonzero(as_tuple=True)
torch.where(b)
torch.argwhere(x)
torch.unique(x)
x.unique(return_counts=True)
torch.unique_consecutive(x)
torch.unique(x, dim=0)
torch.masked_select(x, b)
torch.masked_select(x, cm)
torch.masked_select(c, b)
torch.bincount(n)
torch.bincount(n, minlength=3)
torch.histc(x)
torch.histc(x, 4, -1, 1)
torch.histogram(x, 4, range=(-1.0, 1.0))
torch.histogram(x, 3)
x.histogram(cv.sort()[0])
torch.histogramdd(x, 2)
torch.nonzero_static(x, size=2)
torch.nonzero_static(b, size=20, fill_value=7)
torch.nn.functional.embedding_bag(n, c, n.sort()[0] - n.min(), mode="sum")
torch.nn.functional.embedding_bag(ci, x, n.sort()[0] - n.min(), mode="mean")
torch.nn.functional.embedding_bag(ci, c, n.sort()[0] - n.min(), mode="max", padding_idx=0)
torch.nn.functional.embedding_bag(ci, c, n.sort()[0] * 0, None, 2, False, "sum", False, x[:, 0])
copy.deepcopy(x)
repr(x)
str(s)
f"{s}"
f"{s:.2f}"
f"{x}"
x.__dlpack__()
x.detach()
x.clone()
x.cpu()
x.to(torch.float64)
x.to(d)
x.type_as(d)
x.type()
x.double()
x.contiguous()
x.T.contiguous().stride()
x.requires_grad_()
x.requires_grad_(False)
x.retain_grad()
x.backward()
x.register_hook(lambda g: g)
x.is_shared()
x.share_memory_()
x.is_pinned()
x.apply_(lambda v: v)
x.map_(c, lambda a, b: a)
x.view(12)
x.T.view(12)
x.T.reshape(12)
x.as_strided((2, 2), (1, 2))
x.as_strided((2, 2), (1, 2), 1)
x.as_strided((2, 2), (4, 1), 4)
x[1].as_strided((2,), (1,))
x[1].as_strided((2,), (1,), 0)
x.T.as_strided((2, 2), (1, 2))
x.unfold(0, 2, 1)
x.data.add_(1)
torch.add(x, x, out=x)
torch.add(x, x, out=cz)
torch.add(c, c, out=cz)
torch.exp(x, out=torch.empty(3, 4))
torch.sum(x, 0, out=x.new_empty(4))
torch.is_tensor(x)
isinstance(x, torch.Tensor)
torch.is_nonzero(m)
torch.is_same_size(x, c)
torch.result_type(d, c)
torch.result_type(x, d)
torch.can_cast(x.dtype, d.dtype)
d + cv
d * x
x + d
cs + d
d + 1
i + 1.5
x + i
k / 2
k // 2
k % 2
b + b
b + 1
m & m
~b
-k
abs(k)
x == y
x == 1
x > s
x @ y.T
x @ cv
c @ x.T
c.T @ x
cv @ x.T
x @ x
torch.dot(x[0], cv)
x ** 2
x ** k
2 ** x
x.sum()
s.sum()
s.sum(0)
s.sum(-1)
s.softmax(0)
s.softmax(-1)
s.cumsum(0)
s.max(0)
s.sort()
s.sort(-1)
s.argmax()
s.argmax(0)
s.squeeze()
s.squeeze(0)
s.unsqueeze(0)
s.unsqueeze(-1)
s.expand(3)
s.reshape(1)
s.flatten()
s.repeat(2)
s.tile(2)
s.topk(1)
s.median()
s.var()
s.norm()
s.norm(dim=0)
s.all()
s.any(0)
s.prod()
s.flip(0)
s.roll(1)
s.index_select(0, torch.tensor([0]))
s.gather(0, torch.tensor(0))
s.diff()
s.diag_embed()
s.diag()
s.unbind()
s.T
s.t()
s.mT
s.transpose(0, 0)
s.permute(())
s.view(1, 1)
s.unfold(0, 1, 1)
s.logsumexp(0)
s.log_softmax(0)
s.cumprod(0)
s.logcumsumexp(0)
s.mode()
s.kthvalue(1)
s.quantile(0.5)
s.renorm(2, 0, 1.)
abs(x)
x & x
k & k
k & 3
3 & k
x // 2
7 // (k.abs() + 1)
k << 1
1 << (k.abs())
k >> 1
k | 1
k ^ k
x % 2
5 % (k.abs() + 1)
divmod(x, 2)
+x
x == x
x != 1
x >= s
x < 1
x <= y
~k
pow(x, 2)
x.__rpow__(2)
x.__rsub__(1)
1 - x
2 / (x + 10)
x.__rtruediv__(2)
x.absolute()
x.adjoint()
x.arccos()
x.arctan2(y)
x.clip(-1, 1)
x.clip(s, None)
x.clip(max=s)
x.divide(y)
x.fix()
x[0].ger(x[1])
x.greater(y)
(x @ x.T + torch.eye(3)).inverse()
x.less_equal(y)
x.moveaxis(0, 1)
x.multiply(y)
x.negative()
x.not_equal(y)
x.subtract(y)
x.swapaxes(0, 1)
x.swapdims(0, 1)
x.to_dense()
x.type(torch.float64)
x.unsafe_split_with_sizes([1, 2])
x.unsafe_split(2)
x.is_signed()
x.is_neg()
x.is_set_to(x)
x.nelement()
x.ndimension()
x.masked_fill(b, 1.)
x.masked_fill(b, s)
x.masked_fill(cm, s)
c.masked_fill(b, 1.)
x.masked_scatter(b, y)
x.where(b, y)
torch.where(b, x, 0.)
torch.where(b, 1.0, 0.0)
torch.where(cm, x, c)
torch.where(b, c, 0.)
torch.where(m, x, y)
torch.where(m, d, s)
torch.where(b, 1, 0)
torch.concat([x, y])
torch.cat([x, c])
torch.cat([c, x], 1)
torch.cat([c, c])
torch.stack([x, c])
torch.stack([s, cs])
torch.stack([s, d])
torch.vstack([x, c])
torch.hstack([x, c])
torch.dstack([x, c])
torch.column_stack([x, c])
torch.row_stack([x, c])
torch.block_diag(x, c)
torch.cartesian_prod(x[0], cv)
torch.meshgrid(x[0], cv, indexing="ij")
torch.tensordot(x, c, 2)
torch.einsum("ij,kj->ik", x, c)
torch.einsum("ij,kj->ik", c, x)
torch.einsum("ij,ij->", x, y)
torch.outer(x[0], cv)
torch.kron(x, c)
torch.linalg.multi_dot([x, c.T, y])
torch.chain_matmul(x, c.T, y)
torch.addmm(c[:, :3], x, y.T)
torch.addmm(x[:, :3], c, y.T)
torch.addmv(x[:, 0], c, cv)
torch.baddbmm(c[None, :, :3], x[None], y.T[None])
torch.bmm(x[None], c.T[None])
torch.mv(x, cv)
torch.mv(c, x[0])
torch.dot(x[0], y[0])
torch.vdot(z, z)
torch.inner(x, c)
torch.matmul(c, x[0])
torch.matmul(x[0], c.T)
torch.matmul(x[None], c.T)
torch.matmul(c[None], x.T)
torch.matmul(torch.ones(2, 3, 4), x.T)
torch.matmul(x, torch.ones(2, 4, 5))
torch.matmul(cv, x.T)
torch.matmul(x[0], y[0])
F.linear(x, c)
F.linear(c, x)
F.linear(x, c, n.float())
F.linear(x, c, ci.float())
F.linear(x[0], c, ci.float())
F.linear(x[None], c, ci.float())
F.bilinear(x, c, torch.ones(2, 4, 4))
F.softmax(x, 0)
F.softmax(x, -1)
F.softmax(k.double(), 1)
F.log_softmax(x, 1)
F.softmax(x, 1, dtype=torch.float64)
F.gelu(x)
F.relu(x)
F.prelu(x, s)
F.prelu(x, torch.ones(4))
F.glu(x)
F.normalize(x)
F.normalize(x, dim=0)
F.cosine_similarity(x, y)
F.cosine_similarity(x, c, dim=0)
F.pairwise_distance(x, y)
F.cross_entropy(x, n)
F.cross_entropy(x, ci)
F.cross_entropy(c, n)
F.cross_entropy(x, n, label_smoothing=0.1)
F.cross_entropy(x, n, weight=torch.ones(4))
F.cross_entropy(x, n, reduction="none")
F.cross_entropy(x, n, reduction="sum")
F.cross_entropy(x, n, ignore_index=1)
F.cross_entropy(x[0], i)
F.cross_entropy(x, F.softmax(y, 1))
F.nll_loss(F.log_softmax(x, 1), n)
F.mse_loss(x, y)
F.mse_loss(x, c)
F.mse_loss(c, x, reduction="none")
F.l1_loss(x, y)
F.smooth_l1_loss(x, y)
F.huber_loss(x, y)
F.kl_div(x, y.exp())
F.binary_cross_entropy(torch.sigmoid(x), torch.sigmoid(y))
F.binary_cross_entropy_with_logits(x, torch.sigmoid(c))
F.binary_cross_entropy_with_logits(x, b.float(), pos_weight=torch.ones(4))
F.hinge_embedding_loss(x, torch.sign(y))
F.margin_ranking_loss(x, y, torch.sign(c))
F.triplet_margin_loss(x, y, c)
F.cosine_embedding_loss(x, y, torch.tensor([1., -1., 1.]))
F.poisson_nll_loss(x, y.abs())
F.soft_margin_loss(x, torch.sign(y))
F.gaussian_nll_loss(x, y, torch.ones(3, 4))
F.layer_norm(x, (4,))
F.layer_norm(x, (3, 4))
F.layer_norm(x, (4,), cv, cv)
F.layer_norm(x, (4,), y[0], y[1])
F.layer_norm(c, (4,), y[0], y[1])
F.batch_norm(x, None, None, training=True)
F.batch_norm(x, torch.zeros(4), torch.ones(4))
F.batch_norm(x, torch.zeros(4), torch.ones(4), training=True)
F.batch_norm(x, x.new_zeros(4), x.new_ones(4), training=True)
F.batch_norm(x, None, None, cv, cv, training=True)
F.batch_norm(x, None, None, y[0], y[1], training=True)
F.embedding(n, c)
F.embedding(n, x)
F.embedding(ci, x)
F.embedding(n, c, padding_idx=0)
F.one_hot(n, 4)
F.one_hot(n)
F.pad(x, (1, 2))
F.pad(x, (1, 2), value=3.)
F.pad(x, (1, 1), mode="reflect")
F.pad(x, (1, 1), mode="replicate")
F.pad(x, (1, 1), mode="circular")
F.dropout(x, 0.5, False)
F.tanhshrink(x)
F.hardswish(x)
F.mish(x)
F.silu(x)
F.softplus(x)
F.logsigmoid(x)
torch.gather(x, 1, n[:, None])
torch.gather(c, 1, n[:, None])
torch.gather(x, 1, ci[:, None])
torch.take(x, n)
torch.take(c, n)
torch.take_along_dim(x, n[:, None], 1)
torch.index_select(x, 0, n)
torch.index_select(c, 0, n)
torch.index_select(x, 1, ci)
torch.index_add(x, 0, n, y)
torch.index_add(c, 0, n, y)
torch.index_copy(x, 0, n, c)
torch.index_fill(x, 0, n, 5.)
torch.index_fill(c, 0, n, s)
torch.index_put(x, (n, n), s)
torch.index_put(c, (n,), x)
torch.scatter(c, 1, n[:, None], x)
torch.scatter_add(x, 1, n[:, None], c)
torch.scatter_reduce(x, 1, n[:, None], y, "amax")
torch.searchsorted(x[0].sort()[0], y)
torch.searchsorted(cv.sort()[0], y)
torch.searchsorted(x[0].sort()[0], c)
torch.bucketize(x, cv.sort()[0])
torch.isin(n, ci)
torch.isin(ci, n)
torch.isin(n, n)
torch.topk(x, 2)
torch.sort(x, 0)
torch.argsort(x, 1, descending=True)
torch.msort(x)
torch.kthvalue(x, 2)
torch.median(x)
torch.median(x, 1)
torch.mode(k)
torch.quantile(x, 0.3)
torch.quantile(x, torch.tensor([.1, .5]))
torch.nanmedian(x)
torch.cummax(x, 0)
torch.logcumsumexp(x, 1)
torch.cumsum(k, 0)
torch.cumprod(x, 1)
torch.diff(x)
torch.diff(x, prepend=c[:, :1])
torch.var_mean(x)
torch.std(x, 0, correction=0)
torch.norm(x)
torch.norm(x, p=1, dim=1)
torch.norm(x, p="nuc")
torch.linalg.norm(x)
torch.linalg.vector_norm(x, 3)
torch.linalg.matrix_norm(x)
torch.linalg.cond(x[:, :3] + 3 * torch.eye(3))
torch.dist(x, c)
torch.cdist(x, c)
torch.all(b)
torch.any(b, 1)
torch.amax(x, (0, 1))
torch.aminmax(x)
torch.argmax(x)
torch.argmin(x, 1, keepdim=True)
torch.logsumexp(x, 0)
torch.count_nonzero(b)
torch.nansum(x)
torch.sum(k)
torch.sum(b)
torch.prod(k, 1)
torch.mean(x, (0, 1), keepdim=True)
torch.flip(x, (0,))
torch.fliplr(x)
torch.roll(x, 1)
torch.roll(x, 1, 0)
torch.rot90(x)
torch.tril(x)
torch.triu(x, 1)
torch.diag(x)
torch.diag(x[0])
torch.diag_embed(x)
torch.diagonal(x)
torch.diagflat(x)
torch.trace(x)
torch.vander(x[0])
torch.broadcast_to(x[0], (3, 4))
torch.broadcast_tensors(x, cv)
torch.broadcast_tensors(s, c)
torch.atleast_2d(s)
torch.atleast_1d(s, cs)
torch.squeeze(x[None])
torch.unflatten(x, 1, (2, 2))
torch.flatten(x)
torch.ravel(x)
torch.movedim(x, 0, 1)
torch.permute(x, (1, 0))
torch.chunk(x, 2)
torch.split(x, 2)
torch.tensor_split(x, 2)
torch.hsplit(x, 2)
torch.unbind(x)
torch.narrow(x, 0, 1, 2)
torch.select(x, 0, 1)
torch.repeat_interleave(x, 2, 0)
torch.repeat_interleave(x, torch.tensor([1, 2, 1]), 0)
torch.repeat_interleave(c, n + 1, 0)
torch.tile(x, (2,))
x.repeat(2, 1)
x.expand(2, 3, 4)
x.expand_as(torch.ones(2, 3, 4))
x.view_as(y)
x.reshape_as(y)
x.unfold(1, 2, 1)
x.view(torch.int32)
torch.view_as_real(z)
torch.view_as_complex(x.reshape(3, 2, 2))
torch.complex(x, y)
torch.complex(x, c)
torch.polar(x.abs(), c)
z.real
z.imag
z.abs()
z.angle()
z.conj()
torch.real(z)
torch.conj_physical(z)
torch.resolve_conj(z.conj())
torch.sgn(z)
torch.stft(torch.cat([x[0], x[1], x[2]]), 4, return_complex=True)
torch.bucketize(s, cv.sort()[0])
torch.clamp(x, s, d.float())
torch.clamp(k, 0, 2)
torch.clamp(k, 0.5)
torch.lerp(x, y, s)
torch.lerp(x, c, 0.3)
torch.addcmul(x, y, c)
torch.addcdiv(c, x, y, value=2)
torch.heaviside(x, s)
torch.hypot(x, y)
torch.fmod(k, 3)
torch.remainder(k, 3)
torch.gcd(k, k)
torch.ldexp(x, n[:, None])
torch.frexp(x)
torch.nextafter(x, y)
torch.copysign(x, c)
torch.logaddexp(x, s)
torch.xlogy(x.abs(), y.abs())
torch.float_power(k.abs(), 2)
torch.pow(k, 2)
torch.pow(x, k.abs())
torch.pow(2., k)
torch.special.xlog1py(x, y.abs())
torch.special.expit(x)
torch.special.multigammaln(x.abs() + 3, 2)
torch.special.gammainc(x.abs(), y.abs())
torch.polygamma(1, x.abs() + 1)
torch.igamma(x.abs(), y.abs())
torch.nan_to_num(x / 0)
torch.isfinite(x / 0)
torch.isclose(x, c)
torch.isclose(x, x)
torch.true_divide(k, 2)
torch.floor_divide(k, 2)
torch.div(k, 2, rounding_mode="floor")
torch.sub(x, y, alpha=2)
torch.rsub(x, 1)
torch.add(k, x)
torch.add(x, 1, alpha=2)
torch.mul(b, x)
torch.logical_and(b, x)
torch.bitwise_not(b)
torch.maximum(x, c)
torch.minimum(k, n[:, None])
torch.fmax(x, y)
torch.max(x)
torch.max(x, 0)
torch.max(x, y)
torch.cross(x[:, :3], y[:, :3], dim=1)
torch.linalg.cross(x[:, :3], y[:, :3])
torch.cholesky_solve(x, torch.eye(3))
torch.linalg.solve(torch.eye(3) + x @ x.T, x)
torch.linalg.solve(torch.eye(3) * 2, x)
torch.linalg.solve(x @ x.T + torch.eye(3), ci.float())
torch.linalg.inv(x @ x.T + torch.eye(3))
torch.linalg.det(x[:, :3] + 3 * torch.eye(3))
torch.linalg.slogdet(x[:, :3] + 3 * torch.eye(3))
torch.linalg.qr(x)[1].abs()
torch.linalg.svdvals(x)
torch.linalg.eigvalsh(x @ x.T)
torch.linalg.matrix_power(x[:, :3], 3)
torch.linalg.matrix_rank(x)
torch.linalg.pinv(x[:, :3] + 3 * torch.eye(3))
torch.linalg.lstsq(x[:, :3] + 3 * torch.eye(3), y[:, :3]).solution
torch.linalg.cholesky(x @ x.T + torch.eye(3))
torch.linalg.solve_triangular(torch.tril(x[:, :3]) + 3 * torch.eye(3), x, upper=False)
torch.logdet(x @ x.T + torch.eye(3))
torch.combinations(x[0])
torch.tril_indices(3, 3).float() @ torch.ones(6) + s
torch.zeros_like(x)
torch.ones_like(c) * x
torch.full_like(x, 2.)
torch.full_like(x, 2, dtype=torch.int64)
x.new_zeros(2)
x.new_full((2,), 3)
x.new_ones(2, dtype=torch.int32)
x.new_tensor([1, 2]).dtype
torch.asarray(x)
torch.scalar_tensor(s)
torch.result_type(s, 1)
torch.promote_types(x.dtype, d.dtype)
torch.is_floating_point(x)
torch.numel(x)
torch.is_complex(z)
x.sum().shape
bool(x.shape == (3, 4))
x.mean().requires_grad
x.to(torch.int64)
x.to("cpu")
x.to(x)
x.to(torch.float64, copy=True)
x.clone(memory_format=torch.contiguous_format)
x.contiguous().is_contiguous()
x.T.clone().stride()
x.as_strided((3,), (5,))
torch.renorm(x, 2, 0, 1.)
torch.cosine_similarity(x, y)
s + d
d + s
s * cv
d * cv
i * cv
i + cs
b.sum(0) + 1
k.float().mean(0)
i == 1
s < d
torch.add(s, d)
torch.cat([s[None], d[None]])
torch.where(m, s, d)
torch.maximum(s, d)
torch.stack([i, n[0]])
s.expand(2) + cv[:2]
i.expand(2)
cv[i]
cv[n]
[t.sum() for t in x]
sum(x)
max(t.shape[0] for t in x)
torch.func.grad(lambda t: (t * c).sum())(x)
torch.func.jacrev(lambda t: t * t)(x[0])
torch.func.jacfwd(lambda t: t * t)(x[0])
torch.func.hessian(lambda t: (t ** 3).sum())(x[0])
torch.func.vjp(lambda t: t.sin(), x)[1](y)
torch.func.jvp(lambda t: t.sin(), (x,), (y,))
torch.vmap(lambda a: a.sum())(x)
torch.vmap(lambda a, b: a @ b, in_dims=(0, None))(x, cv)
torch.vmap(lambda a, b: a @ b, in_dims=(0, None))(c, x[0])
torch.vmap(lambda a: a + x[0])(c)
torch.vmap(lambda a: a * s)(c)
torch.vmap(lambda a: x @ a)(c)
torch.vmap(lambda a: x[0].sum() + 0 * a.sum())(c)
torch.matmul(cv, torch.stack([x.T, x.T]))
torch.matmul(cv, x.T[None])
F.cross_entropy(x, n, label_smoothing=0.1, ignore_index=1)
F.cross_entropy(c, n, label_smoothing=0.1, weight=cv.abs())
torch.nn.ReLU()(x)
torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh())(x)
torch.nn.BatchNorm1d(4)(x)
torch.nn.BatchNorm1d(4, track_running_stats=False)(x)
torch.nn.BatchNorm1d(4).eval()(x)
torch.nn.LayerNorm(4)(x)
torch.nn.Softmax(-1)(x)
torch.nn.CrossEntropyLoss()(x, n)
torch.nn.MSELoss()(x, c)
torch.nn.Flatten(0)(x)
torch.nn.Dropout(0.5).eval()(x)
torch.nn.PReLU()(x)
torch.nn.Identity()(x)
torch.nn.NLLLoss()(F.log_softmax(x, 1), n)
torch.nn.BCELoss()(torch.sigmoid(x), torch.sigmoid(y))
torch.nn.Unflatten(1, (2, 2))(x)
torch.nn.utils.parameters_to_vector([x, y])
torch.nn.Parameter(x)
torch.nn.utils.clip_grad_norm_([x], 1.0)
repr(c)
repr(torch.zeros(2))
repr(x.sum(1))
repr(n)
repr(b[0])
repr(z)
repr(d)
repr(x[:0])
x.__repr__()
"{}".format(s)
"%s" % s
np.asarray(x)
np.array(s)
x.data_ptr()
x.untyped_storage()
copy.copy(x)
""".strip().splitlines()

# Writes, to what members own and to what they share.
WRITES = """
x.data = c ; x
c.data = x ; x
if m: pass ; x
x[0] = 5 ; x
x[b] = 5 ; x
x[b] = s ; x
x[b] = 1.5 ; x
x[cm] = 5 ; x
x[cm] = s ; x
x[n] = 0 ; x
x[ci] = 0 ; x
x[ci] = c[ci] ; x
x[n] = y[n] ; x
x[:, 1] = s ; x
x[:, 1] = n.float() ; x
x[1:, ::2] = 3 ; x
x[i] = 4 ; x
x[None] = c ; x
x[...] = c ; x
x[0] = c[0] ; x
x[0, 0] = d ; x
cz[0] = x[0] ; cz
cz[n] = 1 ; cz
cz[b] = 1 ; cz
cz.add_(x) ; cz
cz.copy_(x) ; cz
cz.fill_(s) ; cz
cz += s ; cz
cz.index_put_((n,), c[0]) ; cz
cz.scatter_(1, n[:, None], 1.) ; cz
cz.index_add_(0, ci, x) ; cz
cz.masked_fill_(b, 0) ; cz
cz[0].add_(x[0]) ; cz
y = torch.zeros(3, 4) ; y[0] = x[0] ; y
y = x.new_zeros(3, 4) ; y[0] = x[0] ; y
y = torch.zeros_like(x) ; y[0] = x[0] ; y
y = x.new_full((3,), 2.) ; y[1] = s ; y
y = x.new_ones(2) ; y += s ; y
y = torch.empty_like(x) ; y.copy_(c) ; y
x.detach_() ; x
x.clip_(0, 1) ; x
x.copy_(c) ; x
x.copy_(y) ; x
x.copy_(s) ; x
x.divide_(2) ; x
x.squeeze_() ; x
x.unsqueeze_(0) ; x
x.t_() ; x
x.transpose_(0, 1) ; x
x.swapaxes_(0, 1) ; x
x.zero_() ; x
x.fill_(3) ; x
x.fill_(s) ; x
x.masked_fill_(b, s) ; x
F.relu(x, inplace=True) ; x
F.leaky_relu_(x, 0.1) ; x
F.elu_(x) ; x
F.threshold_(x, 0., 1.) ; x
F.hardtanh_(x) ; x
F.selu_(x) ; x
F.celu_(x) ; x
F.relu_(x) ; x
x.index_put_((n,), c) ; x
x.index_add_(0, n, c) ; x
x.scatter_(1, n[:, None], 9.) ; x
x.scatter_(1, n[:, None], y) ; x
x.put_(n, y[0, :3]) ; x
cv[i] = s ; cv
y = x.clone() ; y[0] += 1 ; y
y = x.clone() ; y[:, 0] *= s ; y
y = x.clone() ; y[n, 0] = 7. ; y
y = x.clone() ; y[ci, n] = c[0, 0] ; y
y = x.clone() ; y[..., -1] = c[:, 0] ; y
y = x.clone() ; y[0], y[1] = y[1].clone(), y[0].clone() ; y
y = x.clone() ; y += c ; y -= s ; y *= 2 ; y /= d.float() ; y **= 2 ; y
y = k.clone() ; y //= 2 ; y %= 3 ; y <<= 1 ; y |= 1 ; y
y = x.clone() ; y.t()[0] = 5. ; y
y = x.clone() ; y.view(-1)[::2].mul_(0) ; y
y = x.clone() ; y.diagonal().fill_(9.) ; y
y = x.clone() ; y.select(0, 1).copy_(cv) ; y
a, b_ = x.unbind()[:2] ; a * b_
a, b_, c_ = x ; a + b_ + c_
torch.set_printoptions(precision=2) ; r = repr(s) ; torch.set_printoptions(profile="default") ; r
""".strip().splitlines()

# Where rushlight differs from PyTorch, each with the reason.
_NO_RULE = "PyTorch has no rule for it; it works here"
_NAME = "PyTorch's text names the function, or shapes with the batch in them"
OURS: dict[str, str] = {
    "x.new_tensor(s)": "PyTorch fails on its own view",
    "torch.tensor(s)": "PyTorch fails on its own view",
    "x.detach_() ; x": "PyTorch fails on its own view",
    "x.is_pinned()": _NO_RULE,
    "x.is_set_to(x)": "no memory to compare, as for `storage()`",
    "x.moveaxis(0, 1)": _NO_RULE,
    "x.unsafe_split_with_sizes([1, 2])": _NO_RULE,
    "torch.column_stack([x, c])": _NO_RULE,
    "torch.chain_matmul(x, c.T, y)": _NO_RULE,
    "F.cross_entropy(c, n, label_smoothing=0.1, weight=cv.abs())": _NO_RULE,
    "x[b] = 5 ; x": "one number where a mask is true: no shape depends on values",
    "x[b] = s ; x": "one number where a mask is true: no shape depends on values",
    "x[b] = 1.5 ; x": "one number where a mask is true: no shape depends on values",
    "s.flip(0)": "PyTorch flips the batch",
    "s.roll(1)": "PyTorch rolls the batch",
    "torch.index_fill(c, 0, n, s)": "PyTorch mixes the members' values",
    "s.unbind()": _NAME,
    "x @ x": _NAME,
    "torch.sum(x, 0, out=x.new_empty(4))": _NAME,
    "cz[n] = 1 ; cz": _NAME,
    "cz[b] = 1 ; cz": _NAME,
    "cv[i] = s ; cv": _NAME,
    "cz.add_(x) ; cz": _NAME,
    "cz[0].add_(x[0]) ; cz": _NAME,
    "cz.fill_(s) ; cz": _NAME,
    "cz.index_put_((n,), c[0]) ; cz": _NAME,
    "cz.scatter_(1, n[:, None], 1.) ; cz": _NAME,
    "cz.index_add_(0, ci, x) ; cz": _NAME,
}


# --- running them ---------------------------------------------------------------------------------
def called(lib: Any, text: str) -> Callable[..., Any]:
    """The call as a function of the members of `BATCH`."""
    *before, last = text.split(" ; ")
    body = "".join(f"    {line}\n" for line in before)
    names = {"torch": lib, "F": lib.nn.functional, "np": np, "copy": copy}
    names |= {k: lib.tensor(v) for k, v in SHARED.items()}
    exec(f"def call({', '.join(BATCH)}):\n{body}    return {last}\n", names)
    return names["call"]  # type: ignore[return-value]  # made by exec


def tensors_of(lib: Any, found: Any) -> list[Any] | None:
    """The tensors that a call gave, or None if it gave something else."""
    if isinstance(found, lib.Tensor):
        return [found]
    if isinstance(found, (list, tuple)) and found and all(isinstance(t, lib.Tensor) for t in found):
        return list(found)
    return None


def batch_of(lib: Any, size: int = SIZE) -> list[Any]:
    return [lib.from_numpy(v[:size].copy()) for v in BATCH.values()]


def plain(lib: Any, t: Any) -> list[Any]:
    """A tensor as plain data."""
    t = t.detach().resolve_conj()
    values = lib.view_as_real(t) if t.is_complex() else t
    return [str(t.dtype).removeprefix("torch."), list(t.shape), values.reshape(-1).tolist()]


def outcome(lib: Any, text: str, batch: list[Any] | None = None, **options: Any) -> list[Any]:
    """What the call does inside `vmap`: tensors, another value as text, or an error."""
    call = called(lib, text)
    other: list[str] = []

    def run(*members: Any) -> Any:
        found = call(*members)
        parts = tensors_of(lib, found)
        if parts is None:
            other.append(found if isinstance(found, str) else repr(found))
            return members[0]
        return tuple(parts)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            results = lib.vmap(run, **options)(*(batch_of(lib) if batch is None else batch))
        except Exception as error:
            return ["error", type(error).__name__, str(error)]
    if other:
        return ["value", other[0]]
    return ["tensors", [plain(lib, t) for t in results]]


def member_by_member(lib: Any, text: str) -> list[Any]:
    """The same without `vmap`, for calls that give tensors."""
    batch = batch_of(lib)
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(SIZE):
            found = called(lib, text)(*[t[i].clone() for t in batch])
            rows.append(tensors_of(lib, found) or [])
    return ["tensors", [plain(lib, lib.stack(parts)) for parts in zip(*rows, strict=True)]]


def agree(have: list[Any], want: list[Any]) -> bool:
    """Whether two outcomes agree; errors do if their types and first words do."""
    if have[0] != want[0]:
        return False
    if have[0] == "error":
        return bool(have[1] == want[1] and have[2][:50] == want[2][:50])
    if have[0] == "value":
        return bool(have[1] == want[1])
    return len(have[1]) == len(want[1]) and all(
        a[:2] == b[:2] and np.allclose(a[2], b[2], rtol=1e-5, atol=1e-5, equal_nan=True)
        for a, b in zip(have[1], want[1], strict=True)
    )


# --- results --------------------------------------------------------------------------------------
def results(lib: Any) -> Any:
    return {text: shortened(outcome(lib, text)) for text in (*CALLS, *WRITES)}


def shortened(found: list[Any]) -> list[Any]:
    short: list[Any] = [*found[:2], found[2][:200]] if found[0] == "error" else single(found)
    return short


def single(x: Any) -> Any:
    """Floats with the digits that float32 has, so that the file stays small."""
    if isinstance(x, float):
        return float(f"{x:.7g}")
    return [single(y) for y in x] if isinstance(x, list) else x
