"""Reflectors: `geqrf`, `householder_product`, `ormqr`."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from tests.ops.linalg.helpers import KINDS, drawn, same


@pytest.mark.parametrize("dtype", KINDS)
def test_geqrf_ormqr_and_householder_product(dtype: Any) -> None:
    a = drawn(4, 2, dtype=dtype)
    reflectors, tau = torch.geqrf(a)
    q, r = torch.linalg.qr(a)
    same(torch.orgqr(reflectors, tau), q)
    same(reflectors[:2].triu(), r)
    whole = torch.linalg.qr(a, mode="complete").Q
    x = drawn(4, 3, dtype=dtype, seed=1)
    same(torch.ormqr(reflectors, tau, x), whole @ x)
    same(torch.ormqr(reflectors, tau, x, transpose=True), whole.mH @ x)
    same(torch.ormqr(reflectors, tau, x.mT, left=False), x.mT @ whole)
    a.requires_grad_()
    with pytest.raises(NotImplementedError, match="the derivative for 'geqrf' is not implemented"):
        torch.geqrf(a)[0].abs().sum().backward()
