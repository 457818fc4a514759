"""Recurrent layers give what PyTorch's give, stored and live; and their own ways of computing agree
with each other."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight import nn
from tests.harness import plain_tests
from tests.nn.modules.cases_rnn import LAYERS, close, exact

globals().update(plain_tests("nn/modules/rnn", exact, close))


@pytest.mark.parametrize(("name", "more"), LAYERS)
def test_vmap_equals_a_loop(name: str, more: dict[str, Any]) -> None:
    net = getattr(nn, name)(2, 3, **more)
    x = torch.randn(4, 5, 2, 2)
    batch = torch.func.vmap(lambda x: net(x)[0])(x)
    torch.testing.assert_close(batch, torch.stack([net(part)[0] for part in x]))


@pytest.mark.parametrize(("name", "more"), LAYERS)
def test_gradients_of_each_example(name: str, more: dict[str, Any]) -> None:
    net = getattr(nn, name)(2, 3, **more)
    params = {name: p.detach() for name, p in net.named_parameters()}

    def loss(params: Any, x: Any) -> Any:
        return torch.func.functional_call(net, params, (x,))[0].sin().sum()

    xs = torch.randn(3, 4, 1, 2)
    each = torch.func.vmap(torch.func.grad(loss), (None, 0))(params, xs)
    one = torch.func.grad(loss)(params, xs[1])
    for key, value in one.items():
        torch.testing.assert_close(each[key][1], value)


@pytest.mark.parametrize("name", ["LSTM", "GRU"])
def test_without_gradients_the_gates_are_not_kept(name: str) -> None:
    net = getattr(nn, name)(2, 3)
    with torch.no_grad():
        y = net(torch.ones(4, 1, 2))[0]
    assert y.grad_fn is None
    recorded = net(torch.ones(4, 1, 2))[0]
    torch.testing.assert_close(y, recorded.detach(), rtol=0, atol=0)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_low_precision_computes_in_float32(kind: Any) -> None:
    net = nn.LSTM(2, 3)
    x = torch.randn(4, 2, 2)
    wide = net(x)[0]
    y, (h, c) = net.to(kind)(x.to(kind))
    assert y.dtype == h.dtype == c.dtype == kind
    torch.testing.assert_close(y.float(), wide, rtol=0.05, atol=0.05)
    y.sum().backward()
    assert net.weight_hh_l0.grad.dtype == kind


def test_frozen_weights_get_no_gradient() -> None:
    net = nn.LSTM(2, 3)
    net.weight_ih_l0.requires_grad_(False)
    net(torch.ones(4, 1, 2))[0].sum().backward()
    assert net.weight_ih_l0.grad is None and net.weight_hh_l0.grad is not None
