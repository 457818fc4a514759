"""Covariances, integrals, slopes, histograms, segments, windows, masked functions."""

from __future__ import annotations

from typing import Any

from tests.ops.expressions import Expressions


def names(torch: Any) -> dict[str, Any]:
    x = torch.arange(12, dtype=torch.float64).reshape(3, 4).mul(1.7).sin()
    return {
        "x": x.clone().requires_grad_(), "z": torch.complex(x, x.flip(0)).requires_grad_(),
        "d": x, "f": torch.arange(12.0).reshape(3, 4), "i": torch.arange(12).reshape(3, 4),
        "w": torch.signal.windows, "M": torch.masked, "v": torch.tensor([0.0, 1.0, 3.0, 6.0]),
        "k": torch.tensor([[True, False, True, True], [False] * 4, [True, True, False, True]]),
        "r": torch.tensor([True, False, True, True]), "fw": torch.tensor([1, 2, 0, 3]),
        "aw": torch.tensor([0.5, 1.0, 0.25, 2.0], dtype=torch.float64),
    }  # fmt: skip


REDUCTIONS = "sum prod amax amin argmax argmin mean median var std logsumexp".split()
SAME = "cumsum cumprod softmax log_softmax softmin".split()
WINDOWS = "bartlett blackman cosine exponential gaussian general_hamming hamming hann kaiser"
WINDOWS += " nuttall"
_lines = []
for _n in REDUCTIONS:
    _lines += [
        f"M.{_n}(x, 1, mask=k)", f"M.{_n}(x, 0, keepdim=True, mask=r)", f"M.{_n}(x, 1)",
        f"M.{_n}(i, 1, mask=r)", f"M.{_n}(d, 1, dtype=torch.float32, mask=k)", f"M.{_n}(x, 3)",
        f"M.{_n}(x, 1, mask=torch.ones(3) > 0)",
    ]  # fmt: skip
    if _n != "median":
        _lines += [f"M.{_n}(x, mask=k)"]
    if _n not in ("median", "argmax", "argmin"):
        _lines += [f"M.{_n}(x, (0, 1), mask=k)", f"M.{_n}(x, (0, 0))"]
_lines += ["M.var(x, 1, correction=1.3)", "M.std(z, 0, correction=1.3, mask=k)"]
_lines += ["M.prod(x[0, 0], -1)"]
for _n in SAME:
    _lines += [f"M.{_n}(x, 1, mask=r)", f"M.{_n}(f, 0)", f"M.{_n}(f, 1, mask=k)"]
for _n in WINDOWS.split():
    _lines += [
        f"w.{_n}({m}, sym={s}, dtype=torch.float64)" for m in (0, 1, 2, 5, 8) for s in (True, False)
    ]
    _lines += [f"w.{_n}(4)", f"w.{_n}(-1)", f"w.{_n}(4, dtype=torch.int64)"]
for _n in "bartlett blackman hamming hann kaiser".split():
    _lines += [
        f"torch.{_n}_window({m}, {p}, dtype=torch.float64)"
        for m in (0, 1, 2, 5, 8)
        for p in (True, False)
    ]
    _lines += [f"torch.{_n}_window(4)", f"torch.{_n}_window(-1)"]
for _n in "sum mean prod max min".split():
    _lines += [
        f"torch.segment_reduce(x, '{_n}', lengths=torch.tensor([1, 2]))",
        f"torch.segment_reduce(x, '{_n}', lengths=torch.tensor([[1, 3], [2, 2], [4, 0]]), axis=1)",
        f"torch.segment_reduce(d[0], '{_n}', lengths=torch.tensor([1, 0, 3]))",
        f"torch.segment_reduce(d[0], '{_n}', offsets=torch.tensor([0, 1, 4]), initial=0.5)",
    ]
TEXT = (
    "\n".join(_lines)
    + """
torch.cov(x)
torch.cov(z)
x.cov(correction=0)
torch.cov(x[0])
torch.cov(x, fweights=fw)
torch.cov(x, aweights=aw)
torch.cov(x, fweights=fw, aweights=aw, correction=0)
torch.cov(i)
torch.cov(torch.tensor(1.0))
torch.cov(x, correction=5)
torch.cov(torch.ones(2, 3, 4))
torch.cov(k)
torch.cov(x, fweights=aw)
torch.cov(x, aweights=fw)
torch.cov(x, fweights=fw[:2])
torch.cov(x, fweights=-fw)
torch.corrcoef(x)
torch.corrcoef(z)
torch.corrcoef(x[0])
torch.corrcoef(torch.ones(2, 3, 4))
torch.trapezoid(x)
torch.trapezoid(x, dx=2, dim=0)
torch.trapezoid(x, v)
torch.trapezoid(x, x.detach())
torch.trapezoid(z, dx=0.5)
torch.trapezoid(i)
torch.trapezoid(torch.zeros(0, 3), dim=0)
torch.trapezoid(x, v[:2])
torch.trapezoid(x, v, dx=3)
torch.trapezoid(k)
torch.trapz(x, v)
torch.cumulative_trapezoid(x)
torch.cumulative_trapezoid(x, v)
torch.cumulative_trapezoid(x, dx=3.0, dim=0)
torch.gradient(x)
torch.gradient(x, dim=1)
torch.gradient(x, spacing=2.0)
torch.gradient(x, spacing=[1.0, 2.0])
torch.gradient(x, spacing=(v,), dim=1)
torch.gradient(x, spacing=(v,), dim=1, edge_order=2)
torch.gradient(x, edge_order=2)
torch.gradient(z, dim=0)
torch.gradient(i)
torch.gradient(torch.tensor(1.0))
torch.gradient(x, spacing=(1.0,))
torch.gradient(x, spacing=(1.0, 2.0), dim=1)
torch.gradient(x, edge_order=3)
torch.gradient(x[:1])
torch.gradient(x, dim=(0, 0))
torch.histogram(f, 3)
torch.histogram(d, 4, range=(-0.5, 0.5))
torch.histogram(f, torch.tensor([0.0, 5.0, 11.0]))
torch.histogram(torch.ones(3), 2)
torch.histogram(f, 3, weight=f)
torch.histogram(f, 3, density=True)
torch.histogram(i, 3)
torch.histogram(f, 0)
torch.histogram(f, 3, range=(2.0, 1.0))
torch.histogram(f, 3, weight=f[0])
torch.histogram(f, torch.ones(2, 2))
f.histogram(2)
torch.histogramdd(f[:, :2], [2, 3])
torch.histogramdd(f[:, :2], 2)
torch.histogramdd(d[:, :2], (torch.tensor([-1.0, 0, 1]).double(), torch.tensor([0.0, 1]).double()))
torch.histogramdd(f[:, :2], [2, 2], range=[0.0, 4, 0, 9], density=True)
torch.histogramdd(f[:, :2], [2, 2], weight=f[:, 3])
torch.histogramdd(f[:, :2], [2, 2, 2])
torch.histogramdd(f[0], [2])
torch.unravel_index(torch.tensor([1, 5]), (2, 3))
torch.unravel_index(torch.tensor(4), torch.Size([2, 3]))
torch.unravel_index(torch.tensor([1]), 6)
torch.unravel_index(torch.tensor(-1), (2, 3))
torch.unravel_index(torch.tensor([1.0]), (2, 3))
torch.unravel_index(torch.tensor(4), (2, -3))
torch.nonzero_static(f > 9, size=4)
torch.nonzero_static(f > 9, size=1)
torch.nonzero_static(f > 9, size=4, fill_value=7)
torch.nonzero_static(torch.tensor(1.0), size=2)
torch.nonzero_static(f, size=-1)
torch.segment_reduce(d[0], "sum", lengths=torch.tensor([1, 2]))
torch.segment_reduce(d[0], "sum", lengths=torch.tensor([1, 2]), unsafe=True)
torch.segment_reduce(x, "sum")
torch.segment_reduce(x, "abc", lengths=torch.tensor([3]))
torch.segment_reduce(d, "sum", lengths=torch.tensor([1, 2]), axis=1)
torch.segment_reduce(i, "sum", lengths=torch.tensor([1, 2]))
M.norm(x, 2.0, 1, mask=k)
M.norm(x, float("inf"), 1, mask=k)
M.norm(d, float("-inf"), 1, mask=k)
M.norm(x, 1.0, mask=r)
M.normalize(x, 2.0, 1, mask=r)
M.normalize(f, 1.0, 1, mask=k)
M.var(x, 1, False, mask=k)
M.std(x, 1, correction=0, mask=k)
M.logaddexp(x, f.double(), input_mask=k, other_mask=~k)
M.mean(i, 1, mask=k)
M.median(i, 1, mask=k)
M.sum(x, mask=k.long())
w.general_cosine(5, a=[0.5, 0.25, 0.25], dtype=torch.float64)
w.general_cosine(5, a=[])
w.general_cosine(5, a=3)
w.exponential(4, center=1.0, sym=False, tau=2.0, dtype=torch.float64)
w.exponential(4, center=1.0)
w.exponential(4, tau=0.0)
w.gaussian(4, std=0.5, dtype=torch.float64)
w.kaiser(4, beta=3.0, dtype=torch.float64)
torch.kaiser_window(4, False, 3.0, dtype=torch.float64)
torch.hamming_window(4, True, 0.5, 0.5, dtype=torch.float64)
torch.hann_window(4, requires_grad=True)
"""
)
cases = Expressions(names, TEXT)
results = cases.results
