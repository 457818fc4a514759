"""Every parameter that is a number, given every kind of number, against PyTorch.

`CALLS` names them: what is called, with `n` where the number stands, `x` and `y` tensors of 2 x 3
of the dtype in question. A test holds it against the op table: a function whose number is not tried
here fails there.
"""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import rushlight

TITLE = "numbers of every kind"
SHORT = 900
WEIGHT = 0.6

CALLS = """
F.leaky_relu(x, n) | F.leaky_relu_(x + 0, n) | F.elu(x, n) | F.elu_(x + 0, n) | F.celu(x, n)
torch.celu(x, n) | torch.celu_(x + 0, n) | F.softplus(x, n) | F.softplus(x, 1, n)
F.hardtanh(x, n, 3) | F.hardtanh(x, -1, n) | F.hardtanh_(x + 0, -1, n) | F.hardtanh_(x + 0, n, 3)
torch.threshold(x, n, 7) | F.threshold(x, 1, n) | F.threshold_(x + 0, n, n) | F.hardshrink(x, n)
torch.threshold_(x + 0, n, n)
F.softshrink(x, n) | F.rrelu(x, n, 3) | F.rrelu(x, 0, n) | torch.rrelu(x, n, n)
torch.rrelu_(x + 0, n, n)
torch.add(x, y, alpha=n) | x.sub(y, alpha=n) | torch.rsub(x, y, alpha=n)
x.clone().add_(y, alpha=n)
x.clone().sub_(y, alpha=n)
torch.addmm(x, s, y, alpha=n) | torch.addmm(x, s, y, beta=n)
x.clone().addmm_(s, y, alpha=n, beta=n)
torch.addmv(x[:, 0], s, y[:, 0], alpha=n, beta=n)
x[:, 0].clone().addmv_(s, y[:, 0], alpha=n, beta=n)
torch.addr(s, x[:, 0], y[:, 0], alpha=n, beta=n)
s.clone().addr_(x[:, 0], y[:, 0], alpha=n, beta=n)
torch.addbmm(x, s[None], y[None], alpha=n, beta=n)
torch.baddbmm(x[None], s[None], y[None], alpha=n, beta=n)
x.clone().addbmm_(s[None], y[None], alpha=n, beta=n)
x[None].clone().baddbmm_(s[None], y[None], alpha=n, beta=n)
torch.addcmul(x, y, y, value=n) | torch.addcdiv(x, y, y, value=n)
x.clone().addcmul_(y, y, value=n) | x.clone().addcdiv_(y, y, value=n)
torch.index_add(x, 0, i, y, alpha=n) | x.clone().index_add_(0, i, y, alpha=n)
torch.norm(x, n) | x.norm(n, 1) | torch.linalg.norm(x, n) | torch.linalg.vector_norm(x, n)
torch.linalg.matrix_norm(x, n) | torch.linalg.cond(s, n) | torch.dist(x, y, n)
torch.cdist(x, y, n) | torch.renorm(x, n, 0, 1) | torch.renorm(x, 2, 0, n)
x.clone().renorm_(n, 0, n)
torch.nn.functional.normalize(x, n) | torch.nn.functional.normalize(x, 2, eps=n)
torch.pairwise_distance(x, y, n) | torch.pairwise_distance(x, y, 2, n)
torch.cosine_similarity(x, y, eps=n) | F.cosine_embedding_loss(x, y, one, n)
F.huber_loss(x, y, delta=n) | F.smooth_l1_loss(x, y, beta=n) | F.hinge_embedding_loss(x, y, n)
F.margin_ranking_loss(x, y, x, n) | F.poisson_nll_loss(x, y, eps=n, log_input=False)
F.gaussian_nll_loss(x, y, y * y, eps=n) | F.triplet_margin_loss(x, y, x, n)
F.triplet_margin_loss(x, y, x, 1, n) | F.triplet_margin_loss(x, y, x, eps=n)
F.cross_entropy(x, i, label_smoothing=n)
F.layer_norm(x, (3,), eps=n) | torch.layer_norm(x, (3,), None, None, n)
torch.native_layer_norm(x, (3,), None, None, n)[0]
F.batch_norm(x, x[0].detach(), y[0].detach() ** 2, eps=n)
F.batch_norm(x, None, None, training=True, momentum=n)
torch.batch_norm(x, None, None, x[0].detach(), y[0].detach() ** 2, False, n, 1e-5, False)
torch.std(x, correction=n) | torch.var(x, 1, correction=n) | torch.std_mean(x, correction=n)[0]
torch.var_mean(x, correction=n)[0] | x.var(correction=n)
torch.isclose(x, y, n) | torch.isclose(x, y, 0, n) | torch.allclose(x, y, n, n)
torch.logit(x, n) | torch.logit_(x + 0, n) | torch.nan_to_num(x / 0, n)
torch.nan_to_num(x / 0, 0, n)
torch.nan_to_num(x / 0, 0, 0, n) | torch.nan_to_num_(x / 0, n)
F.pad(x, (1, 1), value=n) | torch.constant_pad_nd(x, (1, 1), n)
torch.full((2,), n) | torch.full((2,), n, dtype=x.dtype) | torch.full_like(x, n)
x.new_full((2,), n)
torch.scalar_tensor(n) | torch.scalar_tensor(n, dtype=x.dtype)
torch.arange(n) | torch.arange(0, n) | torch.arange(0, 5, n) | torch.arange(end=n)
torch.linspace(0, n, 3) | torch.linspace(n, 3, 3) | torch.logspace(0, 1, 3, n)
torch.logspace(n, 1, 3) | torch.logspace(0, n, 3)
torch.histc(x, 4, 0, n) | torch.histc(x, 4, -1, n)
x.scatter(0, k, n) | x.clone().scatter_(1, k, n) | torch.scatter(x, 0, k, value=n)
x.clone().masked_fill_(x.detach() > 0, n) | torch.masked_fill(x, m, n)
x.index_fill(0, i, n) | x.clone().index_fill_(1, i, n) | x.clone().fill_(n) | torch.fill(x, n)
torch.clamp(x, n) | torch.clamp(x, max=n) | torch.clamp(x, n, 2) | x.clone().clamp_(n, n)
torch.clamp_min(x, n) | torch.clamp_max(x, n) | x.clone().clamp_min_(n) | x.clone().clamp_max_(n)
x.clip(-1, n)
torch.lerp(x, y, n) | x.clone().lerp_(y, n) | torch.quantile(x, n) | torch.nanquantile(x, n, 1)
torch.float_power(x, n) | torch.pow(x, n) | torch.pow(n, x) | x ** n | n ** x | x.clone().pow_(n)
x.double().clone().float_power_(n)
x + n | n + x | x - n | n - x | x * n | n * x | x / n | n / x | x // n | n // x | x % n | n % x
x == n | x != n | x < n | x <= n | x > n | x >= n | n < x | torch.eq(x, n) | torch.lt(x, n)
torch.add(x, n) | torch.mul(x, n) | torch.sub(x, n) | torch.div(x, n) | torch.true_divide(x, n)
torch.div(x, n, rounding_mode="floor") | torch.div(x, n, rounding_mode="trunc")
torch.fmod(x, n) | torch.remainder(x, n) | torch.remainder(n, x) | torch.floor_divide(x, n)
torch.xlogy(x, n) | torch.xlogy(n, x) | torch.special.xlog1py(n, y) | torch.special.zeta(y, n)
torch.copysign(x, n) | torch.where(m, x, n) | torch.where(m, n, x) | x.where(m, n)
torch.where(m, n, 3) | torch.isin(x, n) | torch.bitwise_and(x, n) | x & n | x ^ n
x << n | x >> n | torch.searchsorted(y[0].detach().sort()[0], n)
torch.bucketize(n, y[0].detach().sort()[0])
x.clone().add_(n) | x.clone().mul_(n) | x.clone().div_(n) | x.clone().remainder_(n)
x.clone().eq_(n)
written(x, 0, n) | written(x, (0, 1), n) | written(x, m, n) | written(x, i, n)
torch.linalg.pinv(s, n) | torch.linalg.pinv(s, rtol=n) | torch.linalg.pinv(s, atol=n)
torch.linalg.matrix_rank(s, n) | torch.linalg.matrix_rank(s, rtol=n)
torch.linalg.matrix_rank(s, atol=n)
shape(torch.linalg.lstsq(s, s, n)[0]) | torch.pinverse(s, n)
torch.dropout(x, n, False) | F.dropout(x, n, False) | torch.dropout_(x + 0, n, False)
F.alpha_dropout(x, n) | torch.alpha_dropout(x, n, False) | torch.alpha_dropout_(x + 0, n, False)
F.dropout1d(x, n, False) | F.feature_alpha_dropout(x, n) | torch.feature_dropout(x, n, False)
F.dropout2d(x[None], n, False) | F.dropout3d(x[None, None], n, False)
torch.feature_dropout_(x + 0, n, False) | torch.feature_alpha_dropout(x, n, False)
torch.feature_alpha_dropout_(x + 0, n, False)
shape(F.gumbel_softmax(x, n)) | shape(torch.normal(n, 1., (2,))) | shape(torch.normal(0., n, (2,)))
shape(x.clone().normal_(n)) | shape(x.clone().normal_(0, n)) | shape(x.clone().uniform_(n, 4))
shape(x.clone().uniform_(-1, n)) | shape(x.clone().exponential_(n)) | shape(x.clone().cauchy_(0, n))
shape(x.clone().geometric_(n)) | shape(x.clone().log_normal_(0, n)) | shape(x.clone().bernoulli_(n))
shape(torch.bernoulli(x, n)) | shape(x.clone().random_(n)) | shape(x.clone().cauchy_(n))
shape(torch.normal(mean=n, std=1., size=(2,)))
F.embedding(i, x.detach(), max_norm=n) | F.embedding(i, x.detach(), max_norm=1, norm_type=n)
nn.LeakyReLU(n)(x) | nn.ELU(n)(x) | nn.CELU(n)(x) | nn.Softplus(n)(x) | nn.Hardtanh(-1, n)(x)
nn.Threshold(n, n)(x) | nn.Hardshrink(n)(x) | nn.Softshrink(n)(x) | nn.LayerNorm(3, n, False)(x)
nn.HuberLoss(delta=n)(x, y) | nn.SmoothL1Loss(beta=n)(x, y) | nn.MarginRankingLoss(n)(x, y, x)
nn.CosineSimilarity(1, n)(x, y) | nn.PairwiseDistance(n)(x, y) | nn.TripletMarginLoss(n)(x, y, x)
nn.CrossEntropyLoss(label_smoothing=n)(x, i)
nn.BatchNorm1d(3, n, affine=False).eval().to(x.dtype)(x)
nn.BatchNorm1d(3, momentum=n, affine=False).to(x.dtype)(x) | nn.PReLU(1, n)(x)
nn.Dropout(n).eval()(x)
trained(optim.SGD, x, lr=n) | trained(optim.SGD, x, lr=0.1, momentum=n)
trained(optim.SGD, x, lr=0.1, weight_decay=n)
trained(optim.SGD, x, lr=0.1, momentum=0.5, dampening=n)
trained(optim.Adam, x, lr=n) | trained(optim.Adam, x, lr=0.1, eps=n)
trained(optim.Adam, x, lr=0.1, weight_decay=n) | trained(optim.AdamW, x, lr=n, weight_decay=n)
trained(optim.RMSprop, x, lr=n) | trained(optim.RMSprop, x, alpha=n, eps=n)
trained(optim.Adagrad, x, lr=n) | trained(optim.Adagrad, x, lr_decay=n, eps=n)
nn.init.constant_(x.detach().clone(), n) | shape(nn.init.normal_(x.detach().clone(), n, n))
shape(nn.init.uniform_(x.detach().clone(), -1, n))
shape(nn.init.xavier_uniform_(x.detach().clone(), n))
nn.utils.clip_grad_norm_([slope(x)], n) | clipped(x, n)
torch.native_batch_norm(x, None, None, None, None, True, 0.1, n)[0]
torch.native_batch_norm(x, None, None, None, None, True, n, 1e-5)[0]
torch._unsafe_masked_index(x, m[:, :2], [i[:, None], i], n)
torch.segment_reduce(x, "sum", lengths=ones, initial=n)
torch._segment_reduce(x, "max", lengths=ones, initial=n)
torch.native_dropout(x, n, False)[0] | shape(torch.lobpcg(x.mT @ x, 1, tol=n)[0])
torch.norm_except_dim(x, n, 0) | torch.pdist(x, n)
torch.embedding_renorm_(x.detach().clone(), i, n, 2)
torch.embedding_renorm_(x.detach().clone(), i, 1, n)
torch.group_norm(x, 3, eps=n) | F.group_norm(x.detach(), 1, eps=n)
torch.native_group_norm(x.detach(), None, None, 2, 3, 1, 1, n)[0]
torch.instance_norm(x[None].detach(), None, None, None, None, True, 0.1, n, False)
torch.instance_norm(x[None].detach(), None, None, None, None, True, n, 1e-5, False)
torch.rms_norm(x, (3,), None, n) | F.rms_norm(x, (3,), eps=n)
torch.hamming_window(4, True, n) | torch.hamming_window(4, True, 0.5, n)
torch.kaiser_window(4, True, n) | x.clone().fill_diagonal_(n)
F.scaled_dot_product_attention(x, y, y, scale=n)
shape(F.scaled_dot_product_attention(x, y, y, dropout_p=n))
shape(F.multi_head_attention_forward(x, x, x, 3, 1, w, None, None, None, False, n, w[:3], None)[0])
F.embedding_bag(i[None], x.detach().clone(), max_norm=n)
F.embedding_bag(i[None], x.detach().clone(), max_norm=1, norm_type=n)
F.linear_cross_entropy(x, y, i, label_smoothing=n) | F.multi_margin_loss(x, i, margin=n)
F.triplet_margin_with_distance_loss(x, y, x, margin=n)
F.local_response_norm(x[None], 2, n) | F.local_response_norm(x[None], 2, 1, n)
F.local_response_norm(x[None], 2, 1, 0.5, n)
torch.fft.fftfreq(4, n) | torch.fft.rfftfreq(4, n)
torch.signal.windows.exponential(4, tau=n) | torch.signal.windows.gaussian(4, std=n)
torch.signal.windows.exponential(4, center=n, sym=False)
torch.signal.windows.general_hamming(4, alpha=n) | torch.signal.windows.kaiser(4, beta=n)
torch.sparse.sampled_addmm(s.to_sparse_csr(), s, s, beta=n).to_dense()
torch.sparse.sampled_addmm(s.to_sparse_csr(), s, s, alpha=n).to_dense()
torch._foreach_add([x], [y], alpha=n)[0] | torch._foreach_sub([x], [y], alpha=n)[0]
(t := [x.clone()], torch._foreach_add_(t, [y], alpha=n))[0][0]
(t := [x.clone()], torch._foreach_sub_(t, [y], alpha=n))[0][0]
torch._foreach_addcmul([x], [y], [y], value=n)[0]
torch._foreach_addcdiv([x], [y], [y], value=n)[0]
(t := [x.clone()], torch._foreach_addcmul_(t, [y], [y], value=n))[0][0]
(t := [x.clone()], torch._foreach_addcdiv_(t, [y], [y], value=n))[0][0]
torch._foreach_norm([x], n)[0] | torch._foreach_powsum([x], n)[0]
torch.trapezoid(x, dx=n) | torch.trapz(x, dx=n) | torch.cumulative_trapezoid(x, dx=n)
torch._pad_packed_sequence(x, ones, False, n, 3)[0]
"""

NUMBERS = (2, 0.5, 1, 0.1, 3, 0)
# How to make of a plain number one of another kind. Each takes the library too, for its tensors.
KINDS: dict[str, Callable[[Any, Any], Any]] = {
    "int": lambda torch, n: int(n),
    "float": lambda torch, n: float(n),
    "bool": lambda torch, n: bool(n),
    "complex": lambda torch, n: complex(n, 1),
    **{
        f"np.{name}": lambda torch, n, name=name: getattr(np, name)(n)
        for name in ("float64", "float32", "float16", "int64", "int32", "uint8", "int8")
    },
    **{
        f"torch.{name}": lambda torch, n, name=name: torch.tensor(n, dtype=getattr(torch, name))
        for name in ("float32", "float64", "float16", "bfloat16", "int64", "uint8", "bool", "int32")
    },
    "asks": lambda torch, n: torch.tensor(float(n), requires_grad=True),
    "1-d": lambda torch, n: torch.tensor([float(n)]),
    "array": lambda torch, n: np.asarray(float(n)),
    "str": lambda torch, n: str(n),
    "None": lambda torch, n: None,
    "list": lambda torch, n: [n],
}
PLAIN = ("int", "float")
DTYPES = (
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "int64",
    "complex64",
    "uint8",
    "int32",
    "bool",
)


def calls() -> list[str]:
    """The calls, one each."""
    return [part.strip() for line in CALLS.strip().splitlines() for part in line.split(" | ")]


def attempts(seed: int, torch: Any) -> Iterator[str | None]:
    rng = random.Random(seed)
    names = calls()
    codes = {name: compile(name, "call", "eval") for name in names}
    while True:
        for name in rng.sample(names, len(names)):
            kind = rng.choice(sorted(KINDS))
            dtype = rng.choice(("float32", *DTYPES))
            n = rng.choice(NUMBERS)
            if left_out(name, kind, dtype):
                continue
            data = [round(rng.uniform(-2, 2), 2) for _ in range(21)]
            if torch is None:
                yield _sound(_outcome(rushlight, codes[name], kind, dtype, n, data), name, kind)
                continue
            ours = _outcome(rushlight, codes[name], kind, dtype, n, data)
            theirs = _outcome(torch, codes[name], kind, dtype, n, data)
            held = alike(ours, theirs, dtype, kind)
            if not held and steep(name):
                held = no_farther(ours, theirs, codes[name], kind, dtype, n, data)
            if held:
                yield None
            else:
                yield f"{name} with n = {kind}({n}), x {dtype}: {ours}, PyTorch {theirs}"


def left_out(name: str, kind: str, dtype: str) -> bool:
    """What is not compared: PyTorch trips over itself, or leaves it to Python what it takes."""
    if "(" not in name and kind == "array":
        return True  # NumPy's operators answer
    if "trained" in name and (kind not in ("int", "float", *_EXACT) or dtype not in _FULL):
        return True  # arithmetic with a tensor of that dtype, each step of it rounded
    if name.startswith(("F.gaussian", "F.smooth", "torch.nn.functional.norm", "nn.SmoothL1")):
        return dtype not in _FULL or kind in ("asks", "1-d", "None", "array", "complex")
    if "bool" in kind and ("pow" in name or "**" in name or "rrelu" in name or "lerp" in name):
        return True
    if "uint8" in kind and "ardtanh" in name:
        return True  # -1 is compared with an unsigned tensor
    if "torch.bernoulli" in name and kind == "None":
        return True  # rushlight has one form, in which `p` may be left out
    if ("_foreach_" in name or "trap" in name) and kind == "None":
        return True  # the same: `alpha`, `value` or `dx` may be left out
    if name.startswith(_IN_PYTHON):
        return kind not in ("int", "float", "str", "list") or dtype not in _FULL
    if dtype == "complex64" and ("native_dropout" in name or "lobpcg" in name):
        return True  # PyTorch has no derivative, and no complex matrices, there
    if "dropout(" in name or "gumbel" in name:
        return kind == "array"
    if "renorm" in name or "batch_norm" in name or "instance_norm" in name or "BatchNorm" in name:
        return dtype not in _FULL
    if dtype == "complex64" and ("nan_to_num" in name or "(n, x)" in name or "n **" in name):
        return True
    if "histc" in name and dtype in ("float16", "bfloat16"):
        return True  # PyTorch rounds each step of finding a bin: next to an edge that decides
    if "pinv" in name and kind in ("complex", "None"):
        return True
    if dtype == "complex64" and ("var" in name or "std" in name or "poisson" in name):
        return True  # where nothing is left to divide by, PyTorch's infinities are partly NaN
    if "lerp" in name and (kind == "asks" or "int" in kind):
        return True
    if "dist" in name and dtype == "bfloat16":
        return True
    return ("lerp" in name or "hinge" in name) and not dtype.startswith(("float", "bfloat"))


_EXACT = ("np.float64", "np.float32", "np.int64", "torch.float64", "torch.float32")
# They reckon with what they are given, tensor or number.
_IN_PYTHON = (
    "F.local_resp", "F.triplet_margin_with", "shape(F.multi_head", "torch.signal",
    "shape(torch.lobpcg",
)  # fmt: skip
_FULL = ("float32", "float64")


def _sound(ours: Any, name: str, kind: str) -> str | None:
    """Without PyTorch: that an error is a clear one, and a tensor can be printed."""
    if ours[0] == "error" and ours[1] not in _CLEAR:
        return f"{name} with {kind}: {ours}"
    return None


_CLEAR = ("TypeError", "ValueError", "RuntimeError", "IndexError", "NotImplementedError")


def _outcome(lib: Any, code: Any, kind: str, dtype: str, n: Any, data: list[float]) -> list[Any]:
    """What a call gives: its values, dtype and gradient, or its error."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        lib.manual_seed(0)
        try:
            number = KINDS[kind](lib, n)
            there = _names(lib, dtype, data)
            found = eval(code, {"torch": lib, **there, "n": number})
            if not hasattr(found, "dtype"):
                return ["value", repr(found)]
            values = _numbers(lib, found)
            asked = []
            if found.requires_grad and there["x"].requires_grad:
                (found.real if found.is_complex() else found).sum().backward()
                g = there["x"].grad
                asked = [None] if g is None else [str(g.dtype), _numbers(lib, g)]
            repr(found)
        except Exception as error:
            return ["error", type(error).__name__, str(error)]
        return ["tensor", str(found.dtype), list(found.shape), values, asked]


def _numbers(lib: Any, t: Any) -> list[Any]:
    t = t.detach()
    t = t.to(lib.complex128) if t.is_complex() else t.to(lib.float64)
    return list(t.reshape(-1).tolist())


def _names(lib: Any, dtype: str, data: list[float]) -> dict[str, Any]:
    """The names that stand in calls."""
    kind = getattr(lib, dtype)
    grads = dtype.startswith(("float", "bfloat", "complex"))

    def of(a: int, b: int, *shape: int) -> Any:
        t = lib.tensor(data[a:b], dtype=lib.float64)
        return (t.abs() * 2 if dtype == "uint8" else t).reshape(shape).to(kind)

    x = of(0, 6, 2, 3)
    if grads:
        x.requires_grad_()

    def written(t: Any, index: Any, n: Any) -> Any:
        t = t.clone()
        t[index] = n
        return t

    def shape(t: Any) -> Any:
        return tuple(t.shape), str(t.dtype)

    def slope(t: Any) -> Any:
        t = t.detach().clone().requires_grad_()
        (t * t).sum().backward()
        return t

    def clipped(t: Any, n: Any) -> Any:
        t = slope(t)
        lib.nn.utils.clip_grad_value_([t], n)
        return t.grad

    def trained(optimizer: Any, t: Any, **named: Any) -> Any:
        t = t.detach().clone().requires_grad_()
        steps = optimizer([t], **named)
        for _ in range(2):
            steps.zero_grad()
            (t * t).sum().backward()
            steps.step()
        return t.detach()

    return {
        "F": lib.nn.functional, "nn": lib.nn, "optim": lib.optim, "x": x,
        "y": of(6, 12, 2, 3), "s": of(12, 16, 2, 2), "i": lib.tensor([0, 1]),
        "k": lib.tensor([[0, 1, 0]]), "m": lib.tensor([[True, False, True], [False, True, True]]),
        "ones": lib.tensor([1, 1]), "w": of(0, 21, 7, 3)[[0, 1, 2, 3, 4, 5, 6, 0, 1]],
        "one": lib.tensor([1.0, 1.0], dtype=kind) if grads else lib.tensor([1, 1]),
        "written": written, "shape": shape, "slope": slope, "clipped": clipped, "trained": trained,
    }  # fmt: skip


# Rounding that may differ: low precision is rounded after each of an op's steps, or once.
_TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "complex64": 2e-5}


def alike(a: Any, b: Any, dtype: str, kind: str) -> bool:
    """Whether two outcomes agree. Of two errors about a call that is wrong in two ways, number and
    dtype, either will do; and rushlight may take what PyTorch lacks."""
    if a[0] == "error" and b[0] == "error":
        if kind == "array" and b[1] == "ValueError":
            return a[1] in ("TypeError", "ValueError")  # neither a number nor within its range
        if dtype in ("float32", "float64") and kind in ("str", "list", "None", "array"):
            return a[1] == b[1]
        return a[1] in _CLEAR or a[1] == b[1]
    if b[0] == "error" and any(text in b[2] for text in _PYTORCHS):
        return True
    if a[0] != b[0] or a[1:3] != b[1:3]:
        return False
    return a[0] != "tensor" or _near(a[3:], b[3:], max(_loose(dtype), _loose(kind[6:])))


def steep(name: str) -> bool:
    """Whether a call magnifies rounding without bound, for some numbers: rows that hardly vary and
    no `eps`, roots of powers that leave the range of float16, matrices of nearly no rank."""
    return any(part in name for part in ("orm(", "Norm", "pinv", "triplet", "PairwiseDistance"))


def no_farther(
    ours: Any, theirs: Any, code: Any, kind: str, dtype: str, n: Any, data: list[float]
) -> bool:
    """Whether our numbers are about as near as PyTorch's, or nearer, to those in float64."""
    if dtype not in _TOLERANCE or ours[0] != "tensor" or ours[:3] != theirs[:3]:
        return False
    rounded = rushlight.tensor(data, dtype=getattr(rushlight, dtype)).to(rushlight.float64)
    exact = _outcome(rushlight, code, kind, "float64", n, rounded.tolist())
    if exact[0] != "tensor" or len(exact[4]) != len(ours[4]) or len(theirs[4]) != len(ours[4]):
        return False
    pairs = [(ours[3], theirs[3], exact[3])]
    if len(ours[4]) == 2 and ours[4][0] == theirs[4][0] and len(theirs[4]) == 2:
        pairs.append((ours[4][1], theirs[4][1], exact[4][1]))
    for mine, other, true in pairs:
        a, b, e = np.array(mine), np.array(other), np.array(true)
        if a.shape != e.shape or b.shape != e.shape or not np.isfinite(a).all():
            return False
        off = np.abs(b - e).max(initial=0)  # NaN where PyTorch's are: then ours need be near
        room = 2 * off if np.isfinite(off) else 0.0
        if np.abs(a - e).max(initial=0) > room + _loose(dtype) * max(np.abs(e).max(initial=0), 1):
            return False
    return True


_PYTORCHS = (
    "not implemented", "INTERNAL ASSERT", "Autograd not support dtype", "Expected isFloatingType",
    "not differentiable with respect to", "can't assign a numpy.float",
)  # fmt: skip


def _loose(dtype: str) -> float:
    return _TOLERANCE.get(dtype, 2e-6)


def _near(a: Any, b: Any, tolerance: float) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_near(p, q, tolerance) for p, q in zip(a, b, strict=True))
    if isinstance(a, complex) or isinstance(b, complex):
        a, b = complex(a), complex(b)
        return _near(a.real, b.real, tolerance) and _near(a.imag, b.imag, tolerance)
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        return a == b or math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)
    return bool(a == b)
