"""Tensors with a mask: as PyTorch's; and what is ours to say about their gradients."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.masked import MaskedTensor, as_masked_tensor, masked_tensor
from tests.harness import plain_tests
from tests.masked.maskedtensor.cases_core import close, exact

globals().update(plain_tests("masked/maskedtensor/core", exact, close))


def test_no_gradient_comes_back_for_what_is_hidden() -> None:
    x = torch.tensor([0.0, 4.0, float("nan")], requires_grad=True)
    as_masked_tensor(x, torch.tensor([False, True, False])).sqrt().sum().backward()
    assert x.grad is not None and x.grad.tolist() == [0, 0.25, 0]


def test_the_data_is_copied() -> None:
    data, mask = torch.ones(2), torch.tensor([True, False])
    for x in (masked_tensor(data, mask), as_masked_tensor(data, mask), MaskedTensor(data, mask)):
        data.fill_(7)
        mask.fill_(True)
        assert x.get_data().tolist() == [1, 1] and x.get_mask().tolist() == [True, False]
        data.fill_(1)
        mask[1] = False


def test_what_pytorch_lacks_goes_by_the_same_rules() -> None:
    x = masked_tensor(torch.tensor([[3.0, 1.0], [4.0, 2.0]]), torch.tensor([[True, False]] * 2))
    assert x.norm().item() == 5.0
    assert x.permute(1, 0).get_mask().tolist() == [[True, True], [False, False]]
    assert [row.get_mask().tolist() for row in x] == [[True, False], [True, False]]
    assert x.T.get_data().tolist() == [[3, 4], [1, 2]]
    assert x.var(0, unbiased=False)[0].item() == 0.25


def test_hooks_and_training() -> None:
    w = masked_tensor(torch.ones(3), torch.tensor([True, False, True]), requires_grad=True)
    loss = (w * torch.tensor([1.0, float("inf"), 2.0])).sum()
    loss.backward()
    assert isinstance(w.grad, MaskedTensor)
    assert w.grad.to_tensor(0).tolist() == [1, 0, 2]


def test_refusals_name_the_function() -> None:
    x = masked_tensor(torch.ones(2), torch.tensor([True, False]))
    with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'torch\._ops\.aten\.relu"):
        torch.relu(x)
