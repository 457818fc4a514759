"""The public functions on the device: the same program on the CPU and on the GPU, compared.

Each line below is one program. Its results must be on the device and equal the CPU's, and so must
the gradients that flow back from them.
"""

from __future__ import annotations

import copy
import io
import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight as torch
import rushlight.nn.functional as F

GPU = torch.device("cuda", 0)

EXPRESSIONS = """
torch.zeros(2, 3, device=d)
torch.ones(2, dtype=torch.int64, device=d)
torch.full((2,), 3.5, device=d)
torch.full((2,), True, device=d)
torch.tensor([[1., 2.], [3., 4.]], device=d)
torch.tensor(3, device=d)
torch.arange(5, device=d)
torch.arange(0, 1, 0.25, device=d)
torch.linspace(0, 1, 5, device=d)
torch.logspace(0, 2, 3, device=d)
torch.eye(3, device=d)
torch.zeros_like(x)
torch.ones_like(i)
torch.full_like(x, 2)
torch.empty_like(x).fill_(3)
x.new_zeros(3)
x.new_full((2,), 7)
x.new_tensor([1, 2])
torch.as_tensor(x)
torch.tril_indices(3, 3, device=d)
torch.rand(5, device=d)
torch.randn(5, device=d)
torch.randn(17, dtype=torch.float64, device=d)
torch.randint(0, 10, (5,), device=d)
torch.randperm(6, device=d)
torch.rand_like(x)
torch.randn_like(x)
torch.normal(x.detach(), 1.0)
torch.bernoulli(p / 4)
torch.multinomial(p[0], 2)
torch.empty(3, device=d).uniform_(1, 2)
torch.empty(3, device=d).normal_()
torch.empty(3, device=d).exponential_()
torch.empty(4, dtype=torch.int64, device=d).random_(5)
x + y, x - y, x * y, x / y
x + 1, 2 - x, x * 2.5, 1 / x
x ** 2, 2 ** x, p ** y
-x, abs(x), x.sign()
x.detach() // y.detach(), x % y
torch.fmod(x, y), torch.remainder(x, 2)
x.exp(), x.expm1(), p.log(), p.log1p(), p.log2(), p.log10()
x.sin(), x.cos(), x.tan(), x.tanh(), x.sinh(), x.cosh()
u.asin(), u.acos(), x.atan(), torch.atan2(x, y), x.asinh(), u.atanh()
p.sqrt(), p.rsqrt(), x.square(), x.reciprocal()
x.floor(), x.ceil(), x.round(), x.trunc(), x.frac()
x.sigmoid(), x.relu(), F.softplus(x), F.gelu(x), F.silu(x), F.elu(x), F.leaky_relu(x)
torch.erf(x), torch.erfc(x), torch.erfinv(u), torch.lgamma(p), torch.digamma(p)
torch.special.i0(x), torch.special.ndtr(x), torch.special.xlogy(x, p)
torch.polygamma(1, p), torch.polygamma(2, p)
x.clamp(-0.5, 0.5), x.clamp(min=0), torch.clip(x, max=y)
torch.maximum(x, y), torch.minimum(x, y), torch.fmax(x, y)
torch.where(m, x, y), torch.where(m, x, 0.)
torch.lerp(x, y, 0.3), torch.addcmul(x, x, y, value=2), torch.addcdiv(x, x, p)
torch.hypot(x, y), torch.logaddexp(x, y)
x > y, x >= 0, x == x, x != y, x.lt(0)
m & ~m, m | m, m ^ m, i & 1, i << 1
torch.isnan(x), torch.isfinite(x), torch.isinf(x / 0)
torch.logical_and(m, i), torch.logical_not(i)
torch.equal(x, x), torch.allclose(x, x + 1e-12)
x.sum(), x.sum(0), x.sum(1, keepdim=True), i.sum(), m.sum()
x.mean(), x.mean(-1), x.std(), x.var(1), x.std(0, unbiased=False)
x.prod(), x.prod(0), x.norm(), x.norm(dim=1), x.norm(1)
x.max(), x.min(), x.amax(1), x.amin(0), x.aminmax()
x.max(1), x.min(0)
x.argmax(), x.argmax(1), x.argmin(0, keepdim=True)
x.median(), x.median(1), x.mode(1), x.kthvalue(2, 1)
x.quantile(0.4), x.quantile(torch.tensor([0.1, 0.9], dtype=torch.float64, device=d), 1)
m.any(), m.all(0), (i > 0).any(1)
x.logsumexp(1), F.softmax(x, 1), F.log_softmax(x, 0), F.softmin(x, 1)
x.cumsum(1), x.cumprod(0), x.cummax(1), x.cummin(0), torch.logcumsumexp(x, 1)
x.diff(), torch.count_nonzero(i)
x.sort(1), x.sort(0, descending=True), x.argsort(1), x.topk(2, 1), x.msort()
torch.unique(i), torch.unique(i, return_inverse=True, return_counts=True)
torch.bincount(i.flatten()), torch.histc(x.detach(), 4)
torch.searchsorted(torch.tensor([-1., 0., 1.], dtype=torch.float64, device=d), x.detach())
torch.bucketize(x.detach(), torch.tensor([-1., 0., 1.], dtype=torch.float64, device=d))
x.nonzero(), torch.nonzero(i > 1), torch.argwhere(m)
x.T, x.t(), x.transpose(0, 1), x.permute(1, 0), x.mT
x.view(3, 2), x.reshape(-1), x.flatten(), x.unflatten(1, (3, 1)), x.ravel()
x.unsqueeze(0), x.unsqueeze(-1), x.unsqueeze(1).squeeze(1), x[None]
x.expand(4, 2, 3), x[:, :1].expand(2, 3), x.broadcast_to((2, 2, 3)), x.repeat(2, 2), x.tile(2)
torch.cat([x, y]), torch.cat([x, y], 1), torch.stack([x, y])
torch.hstack([x, y]), torch.vstack([x, y])
x.chunk(2, 1), x.split(2, 1), x.unbind(0), torch.tensor_split(x, 2, 1)
x.flip(0), x.flip((0, 1)), x.roll(1, 1), x.roll((1, 2), (0, 1)), x.rot90(), x.fliplr()
sq.tril(), sq.triu(1), sq.diagonal(), sq.diag(), v.diag(), torch.diag_embed(x), sq.trace()
x.movedim(0, 1), x.narrow(1, 0, 2), x.select(1, 2), torch.atleast_3d(x)
x.as_strided((2, 2), (3, 1), 1), x.unfold(1, 2, 1), x.contiguous(), x.t().contiguous()
F.pad(x, (1, 2)), F.pad(x, (1, 1, 0, 1), value=2.), F.pad(x[None], (1, 1), mode="reflect")
torch.meshgrid(v, v, indexing="ij"), torch.cartesian_prod(v, v), torch.combinations(v)
torch.repeat_interleave(v, 2), torch.block_diag(sq, x)
x[0], x[:, 1], x[0, 1], x[..., -1], x[:, ::2], x[1:, 1:]
x[[1, 0]], x[:, [0, 0, 2]], x[i[:, 0] % 2], x[i % 2, i % 3]
x[m], x[x > 0], x[[0, 1], [1, 2]], x[torch.tensor([0, 1], device=d), 1], x[None, ..., 0]
x[torch.tensor(1, device=d)], x[torch.tensor([0, 1])], x[np.array([1, 0])]
x.gather(1, i % 3), x.take(i % 6), torch.take_along_dim(x, i % 3, 1), x.index_select(1, i[0] % 3)
x.masked_select(m), x.masked_fill(m, 9.), torch.masked_fill(x, m, 0)
x.scatter(1, torch.tensor([[2, 0], [1, 0]], device=d), y[:, :2]), x.scatter(1, i % 3, 5.)
x.scatter_add(1, i % 3, y), x.index_add(1, i[0] % 3, y), x.index_fill(1, v2, 4.)
x.index_copy(1, v2, y[:, :2]), x.index_put((i[:, 0] % 2,), v, accumulate=True)
x.scatter_reduce(1, i % 3, y, "sum"), x.scatter_reduce(1, i % 3, y, "amax")
x.detach().scatter_reduce(1, i % 3, y.detach(), "prod", include_self=False)
x @ y.T, x @ v, v @ sq, sq @ sq, torch.mm(sq, sq), torch.mv(sq, v), torch.dot(v, v)
torch.bmm(b, b), torch.matmul(b, x[0]), torch.addmm(sq, sq, sq), torch.addmv(v, sq, v)
torch.outer(v, v), torch.einsum("ij,kj->ik", x, y), torch.tensordot(x, y, 2), torch.kron(sq, sq)
torch.baddbmm(b, b, b), v.vdot(v), torch.chain_matmul(sq, sq, sq)
(i @ i.T), (i.int() @ i.int().T)
F.linear(x, sq, v), F.embedding(i % 3, sq), F.one_hot(i % 3), F.normalize(x)
F.mse_loss(x, y), F.l1_loss(x, y), F.smooth_l1_loss(x, y), F.huber_loss(x, y)
F.cross_entropy(x, v2), F.nll_loss(F.log_softmax(x, 1), v2), F.cross_entropy(x, F.softmax(y, 1))
F.binary_cross_entropy(torch.sigmoid(x), p / 4), F.binary_cross_entropy_with_logits(x, p / 4)
F.kl_div(F.log_softmax(x, 1), F.softmax(y, 1), reduction="batchmean"), F.poisson_nll_loss(x, p)
F.cosine_similarity(x, y), F.pairwise_distance(x, y), F.hinge_embedding_loss(x, y.sign())
F.layer_norm(x, (3,), v, v), F.batch_norm(x, None, None, v, v, training=True)
F.dropout(x, 0.5), F.dropout(x, 0.5, training=False)
c * c, c.conj(), c.real, c.imag, c.abs(), c.angle(), torch.view_as_real(c)
c.conj() + c, c * c.conj(), 2 - c.conj(), c.mH @ c, c @ c.mH, c.conj().exp(), c.conj().sum(0)
c.conj().imag * x, x * c.conj().imag, x + torch._neg_view(x), c.conj().imag.max(), c.conj()[0]
torch.cat([c, c.conj()]), torch.where(m, c, c.conj()), c.conj()[[1, 0]], c.conj().clone(), c.H
(c * 1).conj().mul_(2j), (c * 1).conj().imag.mul_(x), (c * 1).conj().copy_(c), (c * 1).mH.fill_(1j)
c.conj().cpu().to(d), c.conj().to(torch.complex64), c.conj().resolve_conj(), c.conj().conj()
c.conj() == c
torch.linalg.inv(c[:, :2].mH), torch.fft.fft(c.conj()), torch.einsum("ij,kj->ik", c, c.conj())
torch.complex(x, y), torch.polar(p, x), torch.view_as_complex(torch.stack([x, y], -1)), c @ c.T
x.float(), x.half(), x.to(torch.bfloat16), x.int(), i.double(), x.bool(), x.type(torch.float32)
x.half() + 1, (x.half() * y.half()).sum(), x.bfloat16().exp(), x.bfloat16() @ y.bfloat16().T
x.bfloat16().sum(1), torch.where(m, x.bfloat16(), y.bfloat16()), x.bfloat16().max()
(x * 1).to("cpu").to(d), (x * 1).cpu().to(x)
x.to(d, torch.float32), x.to(dtype=torch.float32, device=d)
x.clone(), x.detach(), x.data, x.requires_grad_()
x + torch.tensor(2.), torch.tensor(2.) * x, x * np.float64(2.), torch.where(m, x, torch.tensor(1.))
torch.heaviside(x.detach(), y.detach()), torch.gcd(i, i + 2), torch.frexp(x.detach())
torch.ldexp(x, i)
torch.signbit(x), torch.nan_to_num(x / 0), torch.copysign(x, y)
torch.nextafter(x.detach(), y.detach())
torch.cross(x, y, dim=1), torch.float_power(p, 2), torch.ravel(x), torch.numel(x)
torch.nansum(x), torch.nanmean(x), torch.var_mean(x, 1), torch.std_mean(x), x.nanmedian()
torch.tril(sq), torch.isclose(x, y), torch.is_same_size(x, y), torch.sinc(x), torch.logit(p / 4)
""".strip().splitlines()


def world(d: Any) -> dict[str, Any]:
    """The names a program may use, with the same numbers on every device."""
    torch.manual_seed(5)
    raw = np.random.default_rng(3)

    def real(*shape: int) -> Any:
        return torch.tensor(raw.uniform(-2, 2, shape), device=d)

    named = {"x": real(2, 3), "y": real(2, 3), "sq": real(3, 3), "v": real(3), "b": real(2, 3, 3)}
    named["u"] = real(2, 3) / 2.5
    named["p"] = torch.tensor(raw.uniform(0.2, 3, (2, 3)), device=d)
    named["c"] = torch.tensor(raw.normal(size=(2, 3)) + 1j * raw.normal(size=(2, 3)), device=d)
    for t in named.values():
        t.requires_grad_()
    named["i"] = torch.tensor(raw.integers(0, 5, (2, 3)), device=d)
    named["m"] = torch.tensor([[True, False, True], [False, False, True]], device=d)
    named["v2"] = torch.tensor([2, 0], device=d)
    return {**named, "torch": torch, "F": F, "np": np, "d": d}


def results(y: Any) -> list[Any]:
    if isinstance(y, (tuple, list)):
        return [r for item in y for r in results(item)]
    return [y]


def numbers(t: Any) -> Any:
    t = t.detach().cpu().resolve_conj().resolve_neg()
    return np.asarray((t.float() if t.dtype is torch.bfloat16 else t).numpy())


def run(program: Callable[[dict[str, Any]], Any], d: Any) -> tuple[list[Any], dict[str, Any]]:
    """What a program gives on a device, and the gradients it sends back."""
    names = world(d)
    found = results(program(names))
    roots = [t for t in found if isinstance(t, torch.Tensor) and t.requires_grad and not t.is_leaf]
    if roots:
        seeds = [torch.ones_like(t) for t in roots]
        torch.autograd.backward(roots, seeds)
    grads = {
        k: t.grad for k, t in names.items()
        if isinstance(t, torch.Tensor) and t.is_leaf and t.grad is not None
    }  # fmt: skip
    return found, grads


def compare(program: Callable[[dict[str, Any]], Any], device_alone: bool = True) -> None:
    expected, wanted = run(program, "cpu")
    found, grads = run(program, "cuda")
    assert len(found) == len(expected)
    assert grads.keys() == wanted.keys()
    pairs = [*zip(found, expected, strict=True), *((grads[k], wanted[k]) for k in wanted)]
    for a, b in pairs:
        if not isinstance(b, torch.Tensor):
            assert a == b
            continue
        if device_alone:
            assert a.device == GPU
        assert a.dtype == b.dtype and a.shape == b.shape
        close = 1e-9 if b.dtype in (torch.float64, torch.complex128) else 1e-4
        if b.dtype in (torch.float16, torch.bfloat16):
            close = 1e-2
        np.testing.assert_allclose(numbers(a), numbers(b), rtol=close, atol=close)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("line", EXPRESSIONS)
def test_expression(line: str) -> None:
    compare(lambda names: eval(line, names))  # the lines stand above


# --- writing in place -----------------------------------------------------------------------------
WRITES = """
w[0] = 1.
w[:, 1] = y[:, 0]
w[m] = 0
w[i % 2, i % 3] = 3.
w[[0, 1], [1, 2]] = torch.tensor([5., 6.], dtype=torch.float64, device=d)
w[0] = torch.tensor(2.)
w[m] = y[m]
w[...] = y
w[:, torch.tensor([0, 2], device=d)] = y[:, :2]
w += y; w *= 2; w -= 1; w /= 3
w.add_(y, alpha=2).mul_(y).sub_(1).div_(2)
w.zero_(); w.add_(y)
w.fill_(3); w.mul_(y)
w.copy_(y * 2)
w.clamp_(-1, 1)
w.exp_()
w.sigmoid_()
w[0].mul_(2)
w.t().add_(y.t())
w.view(-1)[::2].zero_()
w.diagonal().fill_(7)
w[:, 1:].copy_(y[:, :2])
w.masked_fill_(m, 4.)
w.scatter_(1, i % 3, 2.)
w.scatter_add_(1, i % 3, y)
w.index_add_(1, v2, y[:, :2])
w.index_fill_(0, v2[1:], 3.)
w.index_put_((v2 // 2,), y, accumulate=True)
w.unsqueeze_(0).squeeze_(0).t_()
w.relu_()
w.normal_()
w.uniform_(); w.mul_(y)
w.tril_()
w.unbind(0); w.mul_(y)
w.swapaxes_(0, 1)
torch.add(y.detach(), 1, out=w.detach())
""".strip().splitlines()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("line", WRITES)
def test_write(line: str) -> None:
    def program(names: dict[str, Any]) -> Any:
        names["w"] = names["x"] * 1
        exec(line, names)  # the lines stand above
        return names["w"]

    compare(program)


# --- without CuPy ---------------------------------------------------------------------------------
def test_without_cupy_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)  # to import it is then an ImportError
    for ask in (
        lambda: torch.ones(2, device="cuda"), lambda: torch.ones(2).cuda(),
        lambda: torch.ones(2).to("cuda:0"), lambda: torch.tensor([1.0], device="cuda"),
    ):  # fmt: skip
        with pytest.raises(AssertionError, match="^Torch not compiled with CUDA enabled") as error:
            ask()
        assert "pip install 'rushlight[cuda12]'" in str(error.value)


# --- a tensor on the device -----------------------------------------------------------------------
def test_what_it_says_of_itself() -> None:
    x = torch.tensor([1.0, 2.0], device="cuda")
    assert x.is_cuda and not x.is_cpu and x.device == GPU and x.get_device() == 0
    assert x.type() == "torch.cuda.FloatTensor"
    assert repr(x) == "tensor([1., 2.], device='cuda:0')"
    assert repr(x.double().requires_grad_()) == (
        "tensor([1., 2.], device='cuda:0', dtype=torch.float64, requires_grad=True)"
    )
    assert "grad_fn=<MulBackward0>" in repr(x.clone().requires_grad_() * 2)
    assert repr(torch.arange(10_000, device="cuda").reshape(100, 100)).count("...") > 3
    assert f"{x[0].item():.2f}" == "1.00" and x.tolist() == [1.0, 2.0]
    assert float(x[1]) == 2.0 and int(x[0]) == 1 and bool(x[0] > 0)
    assert x.stride() == (1,) and x[1:].storage_offset() == 1
    wide = torch.arange(12.0, device="cuda")
    assert wide[2:].as_strided((2, 2), (3, 1)).storage_offset() == 2
    assert wide[2:].as_strided((2, 2), (3, 1), 4)[1].storage_offset() == 7
    assert wide.unfold(0, 3, 2)[1].storage_offset() == 2
    assert x.data_ptr() == x.view(2, 1).data_ptr() and x.numel() == 2
    assert [float(t) for t in x] == [1.0, 2.0] and len(x) == 2


def test_numpy_is_refused() -> None:
    x = torch.ones(2, device="cuda")
    for convert in (lambda: x.numpy(), lambda: np.asarray(x)):
        with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
            convert()
    assert x.numpy(force=True).tolist() == [1.0, 1.0]


def test_to_and_back() -> None:
    x = torch.randn(3, 4)
    there = x.cuda()
    assert there.cuda() is there and there.to("cuda") is there and there.to(0) is there
    assert torch.equal(there.cpu(), x) and x.cpu() is x
    assert there.t().cpu().stride() == (1, 4)
    assert there.to("cpu", torch.float64).dtype is torch.float64
    w = torch.ones(2, requires_grad=True)
    (w.cuda() * 3).sum().backward()
    assert w.grad.device.type == "cpu" and w.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize(
    "pair",
    ["x + y", "torch.cat([x, y])", "x @ y", "torch.where(x > 0, x, y)", "F.mse_loss(x, y)",
     "torch.maximum(x, y)", "x.add_(y)", "torch.sin(x, out=y)", "torch.sin(y, out=x)",
     "torch.sum(x, 0, out=y[0])", "torch.min(x, 0, out=(y[0], y[1].long()))"],
)  # fmt: skip
def test_two_devices_are_refused(pair: str) -> None:
    names = {"x": torch.ones(2, device="cuda"), "y": torch.ones(2), "torch": torch, "F": F}
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        eval(pair, names)


def test_gradient_of_another_device_is_refused() -> None:
    x = torch.ones(2, device="cuda", requires_grad=True)
    with pytest.raises(RuntimeError, match="device type 'cpu'"):
        x.grad = torch.ones(2)


def test_copies_and_pickles() -> None:
    x = torch.arange(6.0, device="cuda").reshape(2, 3)
    for again in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.copy(x)):
        assert again.device == GPU and torch.equal(again, x)
    part = pickle.loads(pickle.dumps(x[:, 1:]))
    assert torch.equal(part, x[:, 1:]) and part.device == GPU
    both = copy.deepcopy([x, x[1]])
    assert torch.equal(both[1], x[1])
    for odd in (x.t(), x.as_strided((2, 2), (1, 1), 1), x.reshape(3, 2).t().contiguous().t()[1:],
                x.unfold(1, 2, 1)):  # fmt: skip
        assert torch.equal(pickle.loads(pickle.dumps(odd)), odd)
        assert torch.equal(copy.deepcopy(odd), odd)
    leaf = copy.deepcopy(torch.ones(2, device="cuda", requires_grad=True))
    assert leaf.requires_grad and leaf.is_leaf and leaf.device == GPU


def test_saving() -> None:
    for new in (True, False):
        file = io.BytesIO()
        x = torch.arange(6.0, device="cuda").view(2, 3)
        saved = {"x": x, "row": x[1], "t": x.t(), "one": torch.tensor(2, device="cuda")}
        torch.save(saved, file, _use_new_zipfile_serialization=new)
        for options in ({}, {"map_location": "cpu"}, {"map_location": {"cuda:0": "cpu"}}):
            file.seek(0)
            back = torch.load(file, **options)
            assert back["x"].device.type == ("cpu" if options else "cuda")
            assert all(torch.equal(back[name].cpu(), t.cpu()) for name, t in saved.items())
            back["x"][1, 2] = 9  # they share memory, there as here
            assert back["row"].tolist() == [3, 4, 9] and back["t"][2, 1].item() == 9


# --- autograd -------------------------------------------------------------------------------------
def test_gradients_add_up() -> None:
    x = torch.ones(3, device="cuda", requires_grad=True)
    for _ in range(3):
        (x * x).sum().backward()
    assert x.grad.tolist() == [6.0, 6.0, 6.0] and x.grad.device == GPU
    shared = x.grad
    (x * 1).sum().backward()
    assert shared is x.grad and shared.tolist() == [7.0, 7.0, 7.0]


def test_second_derivatives() -> None:
    x = torch.tensor([1.0, 2.0], device="cuda", dtype=torch.float64, requires_grad=True)
    (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    assert h.tolist() == [6.0, 12.0] and h.device == GPU


def test_hooks_and_modes() -> None:
    x = torch.ones(2, device="cuda", requires_grad=True)
    seen = []
    x.register_hook(lambda g: seen.append(g.device) or g * 2)
    y = x * 3
    y.retain_grad()
    y.sum().backward()
    assert seen == [GPU] and x.grad.tolist() == [6.0, 6.0] and y.grad.tolist() == [1.0, 1.0]
    with torch.no_grad():
        assert not (x * 2).requires_grad
    with torch.inference_mode():
        assert (x * 2).is_inference()


def test_custom_function() -> None:
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * 3 * x * x

    x = torch.tensor([2.0], device="cuda", requires_grad=True)
    Cube.apply(x).backward()
    assert x.grad.tolist() == [12.0]


def test_overwritten_values_are_noticed() -> None:
    x = torch.ones(2, device="cuda", requires_grad=True)
    y = x.exp()
    y.add_(1)
    with pytest.raises(
        RuntimeError, match="modified by an inplace operation: .torch.cuda.FloatTensor"
    ):
        y.sum().backward()


def test_out_of_range_indices_are_refused() -> None:
    x = torch.ones(2, 3, device="cuda")
    far = torch.tensor([7], device="cuda")
    for read in (lambda: x[far], lambda: x.index_select(0, far), lambda: F.embedding(far, x),
                 lambda: x.gather(1, far[None])):  # fmt: skip
        with pytest.raises((IndexError, RuntimeError), match="out of (range|bounds)"):
            read()


# --- the default device, and torch.cuda -----------------------------------------------------------
def test_default_device() -> None:
    with torch.device("cuda"):
        assert torch.ones(2).device == GPU and torch.tensor([1]).device == GPU
        assert torch.randn(2).device == GPU and torch.arange(3).device == GPU
    torch.set_default_device("cuda")
    try:
        assert torch.zeros(2).is_cuda and torch.get_default_device() == GPU
    finally:
        torch.set_default_device(None)
    assert torch.zeros(2).is_cpu


def test_random_numbers_are_the_same_everywhere() -> None:
    for draw in (torch.rand, torch.randn):
        torch.manual_seed(1)
        here = draw(20)
        torch.cuda.manual_seed_all(1)
        assert torch.equal(draw(20, device="cuda").cpu(), here)


def test_namespace() -> None:
    cuda = torch.cuda
    assert cuda.is_available() and cuda.device_count() >= 1 and cuda.current_device() == 0
    assert cuda.get_device_name() and cuda.get_device_name("cuda:0") == cuda.get_device_name(0)
    assert cuda.get_device_capability()[0] >= 3
    assert cuda.get_device_properties(0).total_memory > 0
    cuda.set_device(0)
    with cuda.device(0), cuda.device(None), cuda.device_of(torch.ones(1, device="cuda")):
        assert cuda.current_device() == 0
    cuda.synchronize()
    assert cuda.memory_allocated() <= cuda.memory_reserved() <= cuda.mem_get_info()[1]
    cuda.empty_cache()
    with pytest.raises(ValueError, match="Expected a cuda device"):
        cuda.set_device("cpu")
    assert torch.device(0) == GPU


def test_dlpack() -> None:
    x = torch.arange(3.0, device="cuda")
    if not hasattr(x._array, "__dlpack__"):
        return  # the stand-in exports no memory
    y = torch.from_dlpack(x)
    y[0] = 9
    assert x[0].item() == 9 and x.__dlpack_device__() == (2, 0)


def test_storage() -> None:
    x = torch.arange(6.0, device="cuda").reshape(2, 3)
    assert x.untyped_storage().nbytes() == 24
    assert x.resize_(2, 2).tolist() == [[0.0, 1.0], [2.0, 3.0]]
    y = torch.zeros(3, device="cuda")
    assert y.set_(x, 1, (2,), (1,)).tolist() == [1.0, 2.0]


def test_memory_that_grows_is_seen_by_all_that_share_it() -> None:
    x = torch.arange(4.0, device="cuda")
    view, alias = x[1:], x.detach()
    x.resize_(8).fill_(3.0)
    assert view.tolist() == [3.0] * 3 and alias.tolist() == [3.0] * 4
    view.fill_(5.0)
    x.resize_(100)
    assert x[:5].tolist() == [3.0, 5.0, 5.0, 5.0, 3.0]
    view.fill_(6.0)
    assert x[:3].tolist() == [3.0, 6.0, 6.0]


def test_sums_keep_their_digits() -> None:
    x = torch.full((1_000_000, 2), 0.1, device="cuda")
    assert x.sum(0).tolist() == pytest.approx([100_000.0] * 2, rel=2e-7)
    assert x.mean().item() == pytest.approx(0.1, rel=2e-7)


def test_elements_by_python() -> None:
    with pytest.raises(TypeError, match="apply_ is only implemented on CPU tensors"):
        torch.arange(3, device="cuda").apply_(lambda n: n * 10)
