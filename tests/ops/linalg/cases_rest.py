"""Exponentials of matrices, LDL factors, tensors as maps, products of vectors, low rank."""

from __future__ import annotations

from typing import Any

from tests.ops.expressions import Expressions


def names(torch: Any) -> dict[str, Any]:
    x = torch.arange(18, dtype=torch.float64).mul(1.3).sin().reshape(2, 3, 3)
    x = x + torch.diag(torch.tensor([2.0, -1.0, 0.5], dtype=torch.float64))
    z = torch.complex(x, x.flip(1))
    return {
        "L": torch.linalg, "x": x.clone().requires_grad_(), "z": z.clone().requires_grad_(),
        "s": x + x.mT, "h": z + z.mH, "v": x[0, 0].clone(), "f": x[0].to(torch.float32),
        "w": x[0].clone(), "t": (torch.eye(6, dtype=torch.float64) + 0.1).reshape(2, 3, 6),
    }  # fmt: skip


TEXT = """
L.matrix_exp(x)
L.matrix_exp(z)
torch.matrix_exp(x[0])
x.matrix_exp()
L.matrix_exp(f)
L.matrix_exp(x * 20)
L.matrix_exp(torch.zeros(2, 0, 0))
L.matrix_exp(w * float("nan"))
L.matrix_exp(torch.eye(2, dtype=torch.int64))
L.matrix_exp(v)
L.matrix_exp(x[:, :2])
torch.func.vmap(L.matrix_exp)(x.detach())
torch.func.jvp(L.matrix_exp, (w,), (s[0],))
L.ldl_factor(s)
L.ldl_factor(h.detach(), hermitian=True)
L.ldl_factor(h.detach())
L.ldl_factor_ex(s)
L.ldl_factor_ex(torch.zeros(2, 2))
L.ldl_factor(v)
L.ldl_factor(x[:, :2])
L.ldl_factor(f.half())
L.ldl_factor(torch.zeros(0, 0))
L.ldl_solve(*L.ldl_factor(s), x.detach())
L.ldl_solve(*L.ldl_factor(s[0]), x.detach())
L.ldl_solve(*L.ldl_factor(h.detach(), hermitian=True), z.detach(), hermitian=True)
L.ldl_solve(w, torch.ones(3), w)
L.ldl_solve(w, torch.ones(2, dtype=torch.int32), w)
L.tensorinv(t)
L.tensorinv(x[0], ind=1)
L.tensorinv(x[0], ind=0)
L.tensorinv(torch.ones(2, 3, 6), ind=1)
L.tensorsolve(t, w[:2])
L.tensorsolve(t.permute(2, 0, 1), t[0, 0], dims=(1, 2))
L.tensorsolve(x[0], v)
L.tensorsolve(w, torch.ones(2, dtype=torch.float64))
L.vander(x)
L.vander(z[0, 0], N=4)
L.vander(torch.tensor([1, 2, 3]))
L.vander(torch.tensor([1, 2]), N=1)
L.vander(torch.tensor([True]))
L.vecdot(x, v)
L.vecdot(z, z)
L.vecdot(x, x, dim=0)
L.vecdot(v, v)
L.vecdot(x, f)
L.vecdot(torch.arange(2), torch.arange(2))
L.vecdot(x, x, dim=5)
L.diagonal(x)
L.diagonal(x, offset=1, dim1=0, dim2=2)
L.matmul(x, x)
(torch.manual_seed(0), torch.svd_lowrank(w @ w.T, q=2)[1])[1]
(torch.manual_seed(0), torch.svd_lowrank(w, q=2, M=w[:1])[1])[1]
torch.pca_lowrank(w, q=7)
torch.pca_lowrank(w)[1]
torch.lobpcg(w @ w.T, k=1)[0]
torch.lobpcg(w @ w.T, k=2)
torch.lobpcg(w @ w.T, largest=False)[0]
torch.lobpcg(w @ w.T, B=w @ w.T + torch.eye(3, dtype=torch.float64))[0]
L.lstsq(torch.ones(3, 2), torch.ones(3, 1)).residuals
L.lstsq(torch.ones(3, 2), torch.ones(3, 1), driver="gelsd")[1:3]
L.lstsq(w[:, :2], w[:, 2:], rcond=0.9, driver="gelsd").rank
"""
cases = Expressions(names, TEXT)
results = cases.results
