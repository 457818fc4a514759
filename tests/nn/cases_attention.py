"""Attention and the Transformer: what modules print, draw first, and compute; losses over time."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable
from typing import Any

from tests.harness import PlainCases


class QuietCases(PlainCases):
    """Cases that either library warns of, in which that is not the point."""

    def run(self, lib: Any, name: str) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return super().run(lib, name)


exact = PlainCases()  # to the last bit and letter
close = QuietCases()  # to rounding
curves = QuietCases()  # to one part in ten thousand


def numbers(x: Any) -> Any:
    """Tensors as short lists of numbers."""
    if x is None or isinstance(x, (str, int)):
        return x
    if isinstance(x, (list, tuple)):
        return [numbers(y) for y in x]
    flat = x.detach().double().reshape(-1).tolist()
    return [list(x.shape), [float(f"{v:.8g}") for v in flat]]


def outcome(call: Callable[[], Any]) -> Any:
    """What a call gives, or the first line of its error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return numbers(call())
    except Exception as error:
        text = (str(error).splitlines() or [""])[0].replace("rushlight.", "torch.")
        return f"{type(error).__name__}: {text}"


def weighed(t: Any, y: Any) -> Any:
    """A number that depends on every element of a result differently."""
    return (y * t.linspace(-1, 2, y.numel(), dtype=y.dtype).reshape(y.shape)).sum()


# --- what is printed, and first values ------------------------------------------------------------
MODULES = """
MultiheadAttention(4, 2) | MultiheadAttention(4, 2, bias=False)
MultiheadAttention(4, 2, kdim=3, vdim=5, add_bias_kv=True)
TransformerEncoderLayer(4, 2, 8) | TransformerDecoderLayer(4, 2, 8, bias=False)
TransformerEncoder(TransformerEncoderLayer(4, 2, 8), 2, LayerNorm(4))
TransformerDecoder(TransformerDecoderLayer(4, 2, 8), 2) | Transformer(4, 2, 1, 2, 8)
Transformer(4, 2, 1, 1, 8, bias=False, activation="gelu", norm_first=True)
"""


def modules() -> list[str]:
    texts = MODULES.replace("\n", "|").split("|")
    return [text.strip() for text in texts if text.strip()]


def built(torch: Any, text: str) -> Any:
    names = {name: getattr(torch.nn, name) for name in dir(torch.nn) if name[0].isupper()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(text, names)


def printed(torch: Any) -> Any:
    return {text: repr(built(torch, text)) for text in modules()}


def first_values(torch: Any) -> Any:
    """The names, shapes and bits of all parameters, after a seed."""
    found = {}
    for text in modules():
        torch.manual_seed(3)
        state = built(torch, text).state_dict()
        found[text] = {
            name: [list(p.shape), zlib.crc32(p.contiguous().numpy().tobytes())]
            for name, p in state.items()
        }
    return found


def told(torch: Any) -> Any:
    """Warnings about nested tensors, and about masks of two types."""
    nn = torch.nn
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for kind in ({}, {"batch_first": True, "norm_first": True}, {"batch_first": True}):
            nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, **kind), 1)
        nn.TransformerEncoder(nn.TransformerEncoderLayer(3, 1, 8, batch_first=True), 1)
        nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, bias=False), 1)
        x = torch.ones(3, 2, 4)
        hidden = torch.zeros(2, 3, dtype=torch.bool)
        nn.MultiheadAttention(4, 2)(x, x, x, hidden, attn_mask=torch.zeros(3, 3))
    return [str(w.message) for w in seen]


exact["printed"] = printed
exact["first values"] = first_values
exact["warnings"] = told


# --- scaled_dot_product_attention -----------------------------------------------------------------
def _attention(torch: Any, call: Callable[..., Any], *shapes: Any) -> Any:
    torch.manual_seed(1)
    shapes = shapes or ((2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 4))
    xs = [torch.randn(*shape, dtype=torch.float64).requires_grad_() for shape in shapes]
    y = call(*xs)
    node = type(y.grad_fn).__name__
    return [node, numbers(y), numbers(torch.autograd.grad(weighed(torch, y), xs))]


def attention(torch: Any) -> Any:
    f = torch.nn.functional.scaled_dot_product_attention
    seen = torch.ones(3, 5, dtype=torch.bool).tril()
    seen[1] = False  # one sees nothing
    added = torch.linspace(-1, 1, 15, dtype=torch.float64).reshape(3, 5)
    turned = ((2, 3, 2, 4), (2, 5, 2, 4), (2, 5, 2, 4))
    lone = ((3, 4), (5, 4), (5, 4))
    grouped = ((2, 4, 3, 2), (2, 2, 5, 2), (2, 2, 5, 2))
    return {
        "plain": _attention(torch, f),
        "causal": _attention(torch, lambda *xs: f(*xs, is_causal=True)),
        "scaled": _attention(torch, lambda *xs: f(*xs, scale=0.1)),
        "seen": _attention(torch, lambda *xs: f(*xs, attn_mask=seen)),
        "added": _attention(torch, lambda *xs: f(*xs, attn_mask=added)),
        "four": _attention(torch, lambda *xs: f(*xs, attn_mask=added.expand(2, 1, 3, 5))),
        "turned": _attention(
            torch, lambda *xs: f(*[x.transpose(1, 2) for x in xs], is_causal=True), *turned
        ),
        "lone": _attention(torch, lambda *xs: f(*xs, is_causal=True), *lone),
        "values": _attention(torch, f, (2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 3)),
        "grouped": _attention(torch, lambda *xs: f(*xs, enable_gqa=True), *grouped),
        "dropout": _attention(torch, lambda *xs: f(*xs, dropout_p=0.4)),
        "dropout, causal": _attention(torch, lambda *xs: f(*xs, None, 0.4, True)),
        "dropout, seen": _attention(torch, lambda *xs: f(*xs, seen, 0.4)),
    }


def attention_in_low_precision(torch: Any) -> Any:
    torch.manual_seed(1)
    x = torch.randn(1, 2, 3, 4).bfloat16()
    y = torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)
    return [str(y.dtype), [round(v, 1) for v in y.float().reshape(-1).tolist()]]


def laid_out(torch: Any) -> Any:
    """Strides of results and gradients."""
    f = torch.nn.functional.scaled_dot_product_attention
    x = torch.randn(2, 3, 4, 5).transpose(1, 2).requires_grad_()
    row = torch.randn(2, 4, 3, 5)
    ys = [f(x, x, x), f(row, x, x), f(x, row, row), f(x, x, x, dropout_p=0.5)]
    g = torch.autograd.grad(ys[0].sum(), x)[0]
    return [list(y.stride()) for y in (*ys, g)]


def attention_mistakes(torch: Any) -> Any:
    f = torch.nn.functional.scaled_dot_product_attention
    x = torch.zeros(2, 4, 3, 5)
    calls = [
        lambda: f(x, x, x, attn_mask=torch.ones(3, 3).long()),
        lambda: f(x, x, x, attn_mask=torch.ones(3, 3).double()),
        lambda: f(x, x, x.double()),
        lambda: f(x[0, 0, 0], x, x),
        lambda: f(x, x, x, dropout_p=2.0),
        lambda: f(x, x[:, :3], x[:, :3]),
        lambda: f(x, x, x, 0.5),
        lambda: f(x, x[:, :, :0], x[:, :, :0]),
        lambda: f(x[:, :, :0], x, x),
        lambda: f(x[:0], x[:0], x[:0]),
    ]
    return [outcome(call) for call in calls]


def kernels(torch: Any) -> Any:
    from importlib import import_module

    where = import_module(torch.__name__ + ".nn.attention")
    bias = import_module(torch.__name__ + ".nn.attention.bias")
    f = torch.nn.functional.scaled_dot_product_attention
    x = torch.linspace(-1, 1, 24).reshape(1, 2, 3, 4).requires_grad_()
    kinds = where.SDPBackend
    found: list[Any] = [[name, kind.value] for name, kind in kinds.__members__.items()]
    for chosen in (kinds.MATH, kinds.FLASH_ATTENTION, [kinds.FLASH_ATTENTION, kinds.MATH]):
        with where.sdpa_kernel(chosen):
            found.append(type(f(x, x, x).grad_fn).__name__)
    found.append(type(f(x, x, x).grad_fn).__name__)
    for make in (bias.causal_upper_left, bias.causal_lower_right):
        mask = make(2, 3)
        found.append(mask._materialize().tolist())
        found.append(numbers(f(x[:, :, :2], x, x, attn_mask=mask)))
        found.append(outcome(lambda mask=mask: f(x[:, :, :2], x, x, mask, is_causal=True)))
    found.append(outcome(lambda: where.sdpa_kernel(3).__enter__()))
    return found


close["attention"] = attention
close["attention in low precision"] = attention_in_low_precision
exact["strides of attention"] = laid_out
close["errors of attention"] = attention_mistakes
close["kernels"] = kernels


# --- MultiheadAttention ---------------------------------------------------------------------------
def _mha(torch: Any, kind: dict[str, Any], call: dict[str, Any], *shapes: Any) -> Any:
    torch.manual_seed(2)
    m = torch.nn.MultiheadAttention(4, 2, dtype=torch.float64, **kind)
    shapes = shapes or ((3, 2, 4),)
    xs = [torch.randn(*shape, dtype=torch.float64).requires_grad_() for shape in shapes]
    q, k, v = (xs[0], xs[-1] if len(xs) < 3 else xs[1], xs[-1])
    y, weights = m(q, k, v, **call)
    wanted = [*xs, *m.parameters()]
    gs = torch.autograd.grad(weighed(torch, y), wanted, allow_unused=True)
    return [numbers(y), numbers(weights), [None if g is None else float(g.sum()) for g in gs]]


def multi_head(torch: Any) -> Any:
    later = torch.ones(3, 3, dtype=torch.bool).triu(1)
    minus = torch.zeros(3, 3, dtype=torch.float64).masked_fill(later, float("-inf"))
    padding = torch.tensor([[False, False, True], [False, True, True]])
    each = torch.linspace(-1, 1, 36, dtype=torch.float64).reshape(4, 3, 3)
    quiet = {"need_weights": False}
    cases: dict[str, Any] = {
        "plain": ({}, {}),
        "quiet": ({}, quiet),
        "batch first": ({"batch_first": True}, {}),
        "dropout": ({"dropout": 0.3}, {}),
        "dropout, quiet": ({"dropout": 0.3}, quiet),
        "more keys": ({"add_bias_kv": True, "add_zero_attn": True}, {}),
        "more keys, masked": (
            {"add_bias_kv": True, "add_zero_attn": True},
            {"attn_mask": later, "key_padding_mask": padding, **quiet},
        ),
        "no bias": ({"bias": False}, {}),
        "mask": ({}, {"attn_mask": later}),
        "numbers as mask": ({}, {"attn_mask": minus, "is_causal": True}),
        "causal": ({}, {"attn_mask": minus, "is_causal": True, **quiet}),
        "mask a head": ({}, {"attn_mask": each}),
        "mask a head, quiet": ({}, {"attn_mask": each, **quiet}),
        "padding": ({}, {"key_padding_mask": padding}),
        "padding, quiet": ({}, {"key_padding_mask": padding, **quiet}),
        "all weights": ({}, {"average_attn_weights": False}),
        "alone": ({}, {}, (3, 4)),
        "two inputs": ({}, {}, (3, 2, 4), (5, 2, 4)),
        "three inputs": ({"kdim": 3, "vdim": 5}, {}, (3, 2, 4), (5, 2, 3), (5, 2, 5)),
        "three of one width": ({}, quiet, (3, 2, 4), (5, 2, 4), (5, 2, 4)),
    }
    return {name: _mha(torch, *case) for name, case in cases.items()}


def multi_head_mistakes(torch: Any) -> Any:
    m = torch.nn.MultiheadAttention(4, 2)
    x = torch.zeros(3, 2, 4)
    make = torch.nn.MultiheadAttention
    calls = [
        lambda: make(5, 2),
        lambda: make(0, 2),
        lambda: m(x[0, 0], x, x),
        lambda: m(x, x[:, 0], x),
        lambda: m(x, x, x[:2]),
        lambda: m(x[..., :3], x, x),
        lambda: m(x, x, x, attn_mask=torch.zeros(2, 2)),
        lambda: m(x, x, x, attn_mask=torch.zeros(2, 3, 3)),
        lambda: m(x, x, x, attn_mask=torch.zeros(3)),
        lambda: m(x, x, x, attn_mask=torch.zeros(3, 3).long()),
        lambda: m(x, x, x, key_padding_mask=torch.zeros(3, 2)),
        lambda: m(x, x, x, key_padding_mask=torch.zeros(2, 3).long()),
        lambda: m(x, x, x, is_causal=True),
        lambda: m(x[:, 0], x[:, 0], x[:, 0], attn_mask=torch.zeros(1, 3, 3)),
        lambda: m(x[:, 0], x[:, 0], x[:, 0], key_padding_mask=torch.zeros(2, 3)),
    ]
    return [outcome(call) for call in calls]


close["multi-head attention"] = multi_head
close["errors of multi-head attention"] = multi_head_mistakes


# --- the Transformer ------------------------------------------------------------------------------
def _state(torch: Any, m: Any, y: Any, *xs: Any) -> Any:
    gs = torch.autograd.grad(weighed(torch, y), [*xs, *m.parameters()])
    return [numbers(y), [float(g.sum()) for g in gs]]


def transformers(torch: Any) -> Any:
    nn, double = torch.nn, torch.float64
    padding = torch.tensor([[False] * 3, [False, False, True]])
    found = {}
    kinds: dict[str, Any] = {
        "plain": {},
        "first": {"norm_first": True, "activation": "gelu", "batch_first": True},
        "no bias": {"bias": False, "dropout": 0.0},
    }
    for name, kind in kinds.items():
        torch.manual_seed(4)
        layer = nn.TransformerEncoderLayer(4, 2, 6, dtype=double, **kind)
        m = nn.TransformerEncoder(layer, 2, nn.LayerNorm(4, dtype=double), False)
        x = torch.randn(2, 3, 4, dtype=double).requires_grad_()
        more = {"src_key_padding_mask": padding} if "batch_first" in kind else {}
        found[f"encoder, {name}"] = _state(torch, m, m(x, **more), x)
        torch.manual_seed(5)
        net = nn.Transformer(4, 2, 1, 1, 6, dtype=double, **kind)
        y = torch.randn(2, 3, 4, dtype=double).requires_grad_()
        size = 3 if "batch_first" in kind else 2
        mask = net.generate_square_subsequent_mask(size, dtype=double)
        found[f"both, {name}"] = _state(torch, net, net(x, y, tgt_mask=mask), x, y)
    return found


def evaluated(torch: Any) -> Any:
    """Without gradients, hidden positions come out as PyTorch's nested tensors leave them."""
    nn = torch.nn
    hidden = torch.tensor([[False] * 3, [False, False, True], [False, True, True]])
    found = []
    with torch.no_grad():
        for nested, norm in ((True, True), (True, False), (False, True)):
            torch.manual_seed(6)
            layer = nn.TransformerEncoderLayer(4, 2, 6, batch_first=True)
            m = nn.TransformerEncoder(layer, 2, nn.LayerNorm(4) if norm else None, nested).eval()
            x = torch.randn(3, 3, 4)
            found += [numbers(m(x)), numbers(m(x, src_key_padding_mask=hidden))]
    return found


def transformer_mistakes(torch: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net = torch.nn.Transformer(4, 2, 1, 1, 8)
    x = torch.zeros(3, 2, 4)
    calls = [
        lambda: net(x, x[..., :3]),
        lambda: net(x, x[:, :1]),
        lambda: torch.nn.TransformerEncoderLayer(4, 2, activation="tanh"),
        lambda: net.generate_square_subsequent_mask(3),
    ]
    return [outcome(call) for call in calls]


close["transformers"] = transformers
close["encoders in evaluation"] = evaluated
close["errors of transformers"] = transformer_mistakes


# --- training -------------------------------------------------------------------------------------
def loss_curve(torch: Any) -> Any:
    """The losses of a transformer of two layers with dropout, over 50 steps."""
    nn, F = torch.nn, torch.nn.functional
    torch.manual_seed(7)
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
    net = nn.TransformerEncoder(layer, 2)
    embed, head = nn.Embedding(11, 16), nn.Linear(16, 11)
    params = [*embed.parameters(), *net.parameters(), *head.parameters()]
    optimizer = torch.optim.Adam(params, lr=3e-3)
    mask = nn.Transformer.generate_square_subsequent_mask(8)
    text = torch.randint(0, 11, (4, 9))
    losses = []
    for _ in range(50):
        optimizer.zero_grad()
        y = head(net(embed(text[:, :-1]), mask=mask, is_causal=True))
        loss = F.cross_entropy(y.reshape(-1, 11), text[:, 1:].reshape(-1))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


curves["a transformer with dropout"] = loss_curve


def results(lib: Any) -> Any:
    return exact.results(lib) | close.results(lib) | curves.results(lib)
