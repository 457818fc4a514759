"""Poisson, binomial, gamma and Dirichlet numbers: PyTorch's own for one seed, to the last bit."""

from __future__ import annotations

from typing import Any

from tests.ops.expressions import Expressions


def names(torch: Any) -> dict[str, Any]:
    x = torch.arange(1, 41, dtype=torch.float64)
    return {
        "seed": torch.manual_seed, "gen": lambda s: torch.Generator().manual_seed(s), "x": x,
        "a": (x / 20).requires_grad_(), "f": (x / 15).to(torch.float32), "p": x / 41,
        "p32": (x / 41).to(torch.float32),
    }  # fmt: skip


TEXT = """
(seed(0), torch.poisson(x).tolist(), torch.rand(2).tolist())[1:]
(seed(1), torch.poisson(x / 8).tolist(), torch.rand(2).tolist())[1:]
(seed(2), torch.poisson(x.to(torch.float32) * 7).tolist(), torch.rand(2).tolist())[1:]
(seed(3), torch.poisson(x.reshape(4, 10).t()).tolist(), torch.rand(2).tolist())[1:]
(seed(3), torch.poisson(x.to(torch.bfloat16)).tolist(), torch.rand(2).tolist())[1:]
torch.poisson(x, generator=gen(5)).tolist()
torch.poisson(torch.zeros(3)).tolist()
torch.poisson(torch.tensor([-1.0]))
torch.poisson(torch.tensor([1]))
(seed(0), torch.poisson(a))[1]
(seed(0), torch.binomial(x, p).tolist(), torch.rand(2).tolist())[1:]
(seed(1), torch.binomial(x * 50, p).tolist(), torch.rand(2).tolist())[1:]
(seed(2), torch.binomial((x * 9).to(torch.float32), p32).tolist(), torch.rand(2).tolist())[1:]
torch.binomial(x, torch.zeros_like(x)).tolist()
torch.binomial(x, torch.ones_like(x)).tolist()
torch.binomial(x, p, generator=gen(5)).tolist()
torch.binomial(x, p32)
torch.binomial(torch.tensor([1]), torch.tensor([1]))
torch.binomial(torch.ones(2), torch.ones(3))
(seed(0), torch._standard_gamma(x).tolist(), torch.rand(2).tolist())[1:]
(seed(1), torch._standard_gamma(x / 40).tolist(), torch.rand(2).tolist())[1:]
(seed(2), torch._standard_gamma(f).tolist(), torch.rand(2).tolist())[1:]
(seed(2), torch.randn(1).tolist(), torch._standard_gamma(f).tolist(), torch.randn(1).tolist())[1:]
torch._standard_gamma(x, generator=gen(5)).tolist()
torch._standard_gamma(torch.tensor([1]))
(seed(0), torch._sample_dirichlet(x.reshape(8, 5)).tolist(), torch.rand(2).tolist())[1:]
(seed(1), torch._sample_dirichlet(f.reshape(8, 5) / 10).tolist(), torch.rand(2).tolist())[1:]
torch._sample_dirichlet(torch.tensor([1]))
"""
cases = Expressions(names, TEXT)
results = cases.results
