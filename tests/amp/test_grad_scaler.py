"""Scaling gradients does what PyTorch's does."""

from __future__ import annotations

import pytest

import rushlight as torch
from tests.amp.cases_grad_scaler import exact
from tests.harness import LIVE, compare, pytorch, stored

STORED = stored("amp/grad_scaler")


def test_every_case_is_stored() -> None:
    assert STORED.keys() == exact.keys()


@pytest.mark.parametrize("name", sorted(exact))
def test_equals_what_is_stored(name: str) -> None:
    compare(exact.run(torch, name), STORED[name], True, name)


if LIVE:

    @pytest.mark.parametrize("name", sorted(exact))
    def test_equals_pytorch(name: str) -> None:
        compare(exact.run(torch, name), exact.run(pytorch(), name), True, name)


def test_without_a_gpu_the_default_is_off() -> None:
    if torch.cuda.is_available():
        assert torch.amp.GradScaler().is_enabled()
        return
    with pytest.warns(UserWarning, match="CUDA is not available"):
        assert not torch.amp.GradScaler().is_enabled()
    with pytest.warns(FutureWarning, match="torch.cpu.amp.GradScaler"):
        assert torch.cpu.amp.GradScaler(init_scale=2.0).get_scale() == 2.0
