"""`DataParallel` without GPUs, and the pieces that it is made of, on the CPU."""

from __future__ import annotations

from typing import NamedTuple

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import parallel


def test_without_gpus_it_is_the_module() -> None:
    inner = nn.Linear(2, 3)
    net = nn.DataParallel(inner)
    x = torch.ones(4, 2)
    torch.testing.assert_close(net(x), inner(x))
    assert net.module is inner and net.device_ids == []
    assert list(net.state_dict()) == ["module.weight", "module.bias"]
    assert repr(net).startswith("DataParallel(\n  (module): Linear")
    net(x).sum().backward()
    assert inner.weight.grad is not None
    torch.testing.assert_close(parallel.data_parallel(inner, x), inner(x))


def test_scatter_and_gather_are_inverse() -> None:
    class Pair(NamedTuple):
        a: torch.Tensor
        b: torch.Tensor

    x = torch.arange(5)
    given = {"x": x, "pair": Pair(x, x + 1), "list": [x, "text"], "number": 3}
    parts = parallel.scatter(given, ["cpu", "cpu"])
    assert [p["x"].tolist() for p in parts] == [[0, 1, 2], [3, 4]]
    assert [p["list"][1] for p in parts] == ["text", "text"] and parts[0]["number"] == 3
    back = parallel.gather([{"x": p["x"], "pair": p["pair"]} for p in parts], "cpu")
    assert back["x"].tolist() == [0, 1, 2, 3, 4] and type(back["pair"]) is Pair
    assert parallel.gather([torch.tensor(1), torch.tensor(2)], "cpu").tolist() == [1, 2]


def test_gradients_of_replicas_come_together() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Linear(2, 1))
    replicas = parallel.replicate(net, ["cpu", "cpu"])
    assert [name for name, _ in replicas[0].named_parameters()] == []
    inputs = torch.randn(4, 2).chunk(2)
    results = parallel.parallel_apply(replicas, list(inputs))
    sum(r.sum() for r in results).backward()
    assert all(p.grad is not None for p in net.parameters())
    free = parallel.replicate(net, ["cpu"], detach=True)[0]
    assert not free(inputs[0]).requires_grad


def test_modes_and_errors_reach_the_threads() -> None:
    with torch.no_grad():
        results = parallel.parallel_apply([nn.Linear(1, 1)] * 2, [torch.ones(1)] * 2)
    assert not any(r.requires_grad for r in results)

    class Fails(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise ValueError("boom")

    with pytest.raises(ValueError, match="boom"):
        parallel.parallel_apply([nn.Identity(), Fails()], [torch.ones(1)] * 2)
