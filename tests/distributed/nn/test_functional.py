"""Collectives with derivatives: against the same function of all inputs in one process, and
PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
from tests.distributed.two_libraries import assert_close, needs_torch, run_ranks

PROGRAM = Path(__file__).parent / "program_functional.py"


@pytest.fixture(scope="module")
def results() -> list[Any]:
    return run_ranks("rushlight", PROGRAM, 2)


def zeros(t: Any) -> Any:
    return torch.zeros_like(t)


# What each of two processes gets, as a function of the inputs of both.
EXPECTED: dict[str, tuple[Callable[[Any, Any], Any], tuple[int, ...]]] = {
    "broadcast": (lambda a, b: [(b,), (b,)], (3,)),
    "gather": (lambda a, b: [(zeros(a), zeros(b)), (a, b)], (3,)),
    "scatter": (lambda a, b: [(b[0],), (b[1],)], (2, 2)),
    # Elsewhere than in `dst` the result of reduce is not defined; see below.
    "reduce_scatter": (lambda a, b: [(a[0] + b[0],), (a[1] + b[1],)], (2, 2)),
    "all_gather": (lambda a, b: [(a, b), (a, b)], (3,)),
    "all_to_all": (lambda a, b: [(a[0], b[0]), (a[1], b[1])], (2, 2)),
    "all_to_all_single": (
        lambda a, b: [(torch.cat([a[:2], b[:2]]),), (torch.cat([a[2:], b[2:]]),)], (4, 2)
    ),
    "uneven all_to_all_single": (
        lambda a, b: [(torch.cat([a[:1], b[:2]]),), (torch.cat([a[1:], b[2:]]),)], (3, 2)
    ),
    "all_reduce": (lambda a, b: [(a + b,), (a + b,)], (3,)),
    "all_reduce of a transpose": (lambda a, b: [((a + b).t(),)] * 2, (2, 3)),
    "functional all_reduce": (lambda a, b: [(a + b,)] * 2, (3,)),
    "functional all_gather": (lambda a, b: [(torch.cat([a, b], 1),)] * 2, (2, 2)),
    "functional reduce_scatter": (
        lambda a, b: [((a + b)[:, :2],), ((a + b)[:, 2:],)], (2, 4)
    ),
    "functional all_to_all": (
        lambda a, b: [(torch.cat([a[:1], b[:1]]),), (torch.cat([a[1:], b[1:]]),)], (2, 2)
    ),
    "functional permute": (lambda a, b: [(b,), (a,)], (3,)),
    "_all_gather_base": (lambda a, b: [(torch.cat([a, b]),)] * 2, (2, 2)),
}  # fmt: skip


def given(rank: int, shape: tuple[int, ...]) -> Any:
    count = torch.Size(shape).numel()
    numbers = torch.arange(float(count), dtype=torch.float64).view(shape)
    return (numbers + 0.5 + 10 * rank).requires_grad_()


def weigh(outputs: Any, rank: int) -> Any:
    total: Any = 0.0
    for at, y in enumerate(outputs):
        weights = torch.arange(1.0, y.numel() + 1, dtype=torch.float64).view(y.shape)
        total = total + ((1.0 + rank) * (at + 1) * weights * y * y).sum()
    return total


@pytest.mark.parametrize("name", EXPECTED)
def test_derivatives_are_those_of_one_process(results: list[Any], name: str) -> None:
    collective, shape = EXPECTED[name]
    inputs = [given(rank, shape) for rank in (0, 1)]
    outputs = collective(*inputs)
    loss = weigh(outputs[0], 0) + weigh(outputs[1], 1)
    grads = torch.autograd.grad(loss, inputs, create_graph=True, materialize_grads=True)
    squares = sum((g * g).sum() for g in grads)
    second = torch.autograd.grad(squares, inputs, materialize_grads=True)
    for rank in (0, 1):
        mine = results[rank][name]
        assert_close(mine["outputs"], [t.detach().flatten().tolist() for t in outputs[rank]], 1e-12)
        assert_close(mine["first"], grads[rank].detach().flatten().tolist(), 1e-12)
        if "second" in mine:
            assert_close(mine["second"], second[rank].flatten().tolist(), 1e-12)


def test_reduce(results: list[Any]) -> None:
    """Only the loss of process 0 has a meaning: its gradient goes to all."""
    assert results[0]["reduce"]["outputs"] == [[11.0, 13.0, 15.0]]
    assert results[0]["reduce"]["first"] == [22.0, 52.0, 90.0] == results[1]["reduce"]["first"]


@needs_torch
def test_derivatives_are_pytorch_s(results: list[Any]) -> None:
    theirs = run_ranks("torch", PROGRAM, 2)
    for mine, other in zip(results, theirs):
        for name in other:
            if name == "reduce":  # what a process that is not `dst` holds is not defined
                assert_close(mine[name]["first"], other[name]["first"], 1e-12)
            else:
                assert_close(mine[name], other[name], 1e-12, name)
