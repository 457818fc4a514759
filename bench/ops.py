"""`python -m bench.ops [small] [medium] [large] [--threads N]`: everyday ops one by one against
PyTorch's eager mode.

Each op is called on tensors of 8x16, 100x1000 or 2000x2000 numbers, alone and with its gradient,
with as many threads on both sides, taking turns. Ratios below 1 mean that rushlight is faster; the
geometric means stand at the end of each table. What was measured is kept in bench/results/ops.json,
and drawn beside it (`bench.plot`). The exit status is 1 if a mean is above its bar, or if an op
takes more than 1.5 times PyTorch's time and docs/figures.md does not name it with the reason.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

THREADS = int(sys.argv[sys.argv.index("--threads") + 1]) if "--threads" in sys.argv else 1
if __name__ == "__main__":
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(THREADS)

import rushlight  # noqa: E402  # after the number of threads is set
from bench.timing import alternate  # noqa: E402

RESULTS = Path(__file__).parent / "results" / "ops.json"
# The most that the geometric mean of the ratios may be: forward, forward + backward.
BARS = {"small": (0.5, 0.35), "medium": (0.9, 0.8), "large": (1.0, 0.9)}
SLOW = 1.5  # a ratio above it wants a reason
REASONS = Path(__file__).resolve().parents[1] / "docs" / "figures.md"
SPARE = {"small": (1,), "medium": (1,), "large": (1, 700_001, 2_300_003)}  # elements set aside
ROUNDS = {"small": 7, "medium": 5, "large": 3}  # each time
SHAPES = {"small": (8, 16), "medium": (100, 1000), "large": (2000, 2000)}

# What is run, by name, in terms of torch (t), nn.functional (F), and two tensors x and y.
EXPRESSIONS = """
x + y | x - y | x * y | x / y | x + 1 | x * 2.0 | -x | x.abs() | x.exp() | (x.abs() + 1).log()
x.expm1() | x.abs().sqrt() | x.abs().rsqrt() | x.square() | x ** 2 | x ** 3 | x.reciprocal()
x.sin() | x.cos() | x.tanh() | x.sigmoid() | x.erf() | x.floor() | x.round() | x.sign()
x.clamp(-1, 1) | x.clamp_min(0) | t.maximum(x, y) | t.minimum(x, y) | t.where(x > 0, x, y)
x.masked_fill(y > 0, 0.) | t.lerp(x, y, 0.3) | t.addcmul(x, x, y) | t.atan2(x, y) | x.log1p()
x > y | x == y | x.isnan() | t.logical_and(x > 0, y > 0) | F.relu(x) | F.leaky_relu(x) | F.gelu(x)
F.silu(x) | F.elu(x) | F.softplus(x) | F.mish(x) | F.hardtanh(x) | F.hardswish(x)
F.logsigmoid(x) | F.relu6(x) | F.softsign(x) | F.tanhshrink(x) | x.sum() | x.sum(0) | x.sum(1)
x.mean() | x.mean(1) | x.amax() | x.amax(1) | x.max(1)[0] | x.argmax(1) | x.var() | x.var(1)
x.std() | x.norm() | x.prod(1) | x.cumsum(1) | x.logsumexp(1) | x.any() | x.count_nonzero()
F.softmax(x, 1) | F.log_softmax(x, 1) | F.softmax(x, 0) | F.layer_norm(x, x.shape[1:])
F.normalize(x) | F.mse_loss(x, y) | F.l1_loss(x, y) | F.smooth_l1_loss(x, y) | F.huber_loss(x, y)
F.cosine_similarity(x, y) | F.binary_cross_entropy_with_logits(x, y.sigmoid())
F.kl_div(x, y.softmax(1)) | F.cross_entropy(x, t.arange(x.shape[0]) % x.shape[1]) | x @ y.t()
t.mm(x.t(), y) | x[:, 0] @ y[:, 0] | F.linear(x, y) | t.outer(x[0], y[0])
t.addmm(x[:, :8], x, y.t()[:, :8]) | t.cat([x, y]) | t.cat([x, y], 1) | t.stack([x, y])
F.pad(x, (1, 1)) | x.repeat(2, 1) | x.flip(1) | x.roll(1, 1) | x.tril() | x.t().contiguous()
x.clone() | x.reshape(-1) | x.view(-1) | x.t() | x.transpose(0, 1) | x.permute(1, 0)
x.unsqueeze(0) | x.squeeze() | x.expand(2, *x.shape) | x[2] | x[1:5] | x[:, 3] | x.flatten()
x.chunk(2)[0] | x.split(2)[0] | x.narrow(0, 1, 3) | x.select(1, 2) | x.diagonal() | x[..., None]
x.index_select(0, t.arange(4)) | x[t.arange(4)] | x.gather(1, t.zeros(4, 4, dtype=t.int64))
x.topk(3)[0] | x.sort(1)[0] | x.masked_select(x > 0) | t.zeros_like(x) | t.ones(8, 16)
t.arange(16.) | x.detach() | x.to(t.float64) | x.detach().add_(1) | x.detach().clone().mul_(y)
F.dropout(x, 0.5) | t.randn(8, 16) | t.rand(8, 16) | t.bernoulli(y.sigmoid()) | t.randn_like(x)
x.detach().uniform_() | x.detach().normal_() | x.detach().exponential_() | t.randperm(1000)
F.batch_norm(x, None, None, training=True) | F.batch_norm(x, y[0], y[1].abs(), y[2], y[3])
F.group_norm(x, 4) | F.group_norm(x, 4, y[0], y[1]) | F.rms_norm(x, x.shape[1:], y[0])
F.binary_cross_entropy(x.sigmoid(), y.sigmoid()) | t.tensor([1., 2., 3.]) | t.full((8, 16), 1.)
t.empty(8, 16)
"""
FORWARD_ONLY = (
    "detach", "t.zeros_like", "t.ones", "t.arange(16", "t.rand", "t.bernoulli", "t.tensor",
    "t.full", "t.empty", "argmax", "isnan", "any()",
    "count_nonzero", "logical_and", "x == y", "x > y |",
)  # fmt: skip


def expressions() -> list[str]:
    return [part.strip() for line in EXPRESSIONS.strip().split("\n") for part in line.split("|")]


def make(lib: Any, text: str, shape: tuple[int, int], both: bool) -> Callable[[], object]:
    """One call of an expression; with `both`, its gradient too."""
    lib.manual_seed(0)
    x, y = lib.randn(*shape), lib.randn(*shape)
    if both:
        x.requires_grad_()
    names = {"t": lib, "F": lib.nn.functional, "x": x, "y": y}
    run: Callable[[], Any] = eval(f"lambda: {text}", names)
    if not both:
        return run
    g = lib.ones_like(run())
    grad = lib.autograd.grad
    return lambda: grad(run(), x, g)


def differentiable(torch: Any, text: str) -> bool:
    """Whether there is a gradient to ask for."""
    if any(part in f"{text} |" for part in FORWARD_ONLY):
        return False
    x, y = torch.randn(8, 16, requires_grad=True), torch.randn(8, 16)
    made = eval(text, {"t": torch, "F": torch.nn.functional, "x": x, "y": y})
    return bool(made.requires_grad)


def compare(torch: Any, size: str, both: bool) -> list[tuple[float, str, float, float]]:
    """For each expression the ratio, its text, and the seconds of both."""
    rows = []
    for text in expressions():
        if both and not differentiable(torch, text):
            continue
        found = {"rushlight": math.inf, "torch": math.inf}
        rest = 0.01 if THREADS > 1 else 0.0
        for spare in SPARE[size]:
            # tensors anew, elsewhere: which pages large ones lie in makes a difference of 2
            aside = [lib.empty(spare) for lib in (rushlight, torch)]
            runs = {lib.__name__: make(lib, text, SHAPES[size], both) for lib in (rushlight, torch)}
            now = alternate(runs, rounds=ROUNDS[size], least=0.002, rest=rest)
            found = {name: min(found[name], now[name]) for name in found}
            del runs, aside
        ours, theirs = found["rushlight"], found["torch"]
        rows.append((ours / theirs, text, ours, theirs))
    return sorted(rows, reverse=True)


def unexplained(rows: list[tuple[float, str, float, float]], page: str) -> list[str]:
    """The ops that are slow without a reason: those that the page does not name."""
    return [text for ratio, text, _, _ in rows if ratio > SLOW and f"`{text}`" not in page]


def main(sizes: list[str]) -> int:
    import torch

    warnings.simplefilter("ignore")  # of kl_div, each time it is called
    torch.set_num_threads(THREADS)
    rushlight.set_num_threads(THREADS)
    kept = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    reasons = REASONS.read_text("utf-8")
    missed = 0
    for size in sizes or list(SHAPES):
        for both in (False, True):
            rows = compare(torch, size, both)
            way = "forward + backward" if both else "forward"
            shape = "x".join(map(str, SHAPES[size]))
            title = f"{size} {shape}, {way}, threads: {THREADS}"
            print(f"\n{title}: ratio to PyTorch, ours and theirs in microseconds")
            for ratio, text, ours, theirs in rows:
                print(f"{ratio:7.2f}  {ours * 1e6:10.2f} {theirs * 1e6:10.2f}  {text}")
            mean = math.exp(sum(math.log(r[0]) for r in rows) / len(rows))
            bar = BARS[size][both]
            over = mean > bar
            missed += over
            print(
                f"geometric mean of {len(rows)}: {mean:.3f} (bar {bar}){'  over' if over else ''}"
            )
            for text in unexplained(rows, reasons):
                missed += 1
                print(f"over {SLOW}, and {REASONS.name} does not say why: {text}")
            kept[title] = {"mean": mean, "ratios": {text: ratio for ratio, text, _, _ in rows}}
            RESULTS.parent.mkdir(exist_ok=True)
            RESULTS.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
    if importlib.util.find_spec("matplotlib"):
        from bench import plot

        plot.main()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main([a for a in sys.argv[1:] if a in SHAPES]))
