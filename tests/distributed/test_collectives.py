"""Collectives, messages, objects and groups of several processes: as PyTorch's gloo."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rushlight
from tests.distributed import cases_collectives, running
from tests.harness import LIVE, pytorch, stored

STORED = stored("distributed/collectives")


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    running.mpiexec()
    return cases_collectives.results(rushlight)


# Summed in float32 and rounded once; gloo rounds after each of the three.
_ROUNDED_ONCE = {("3", "all_reduce torch.bfloat16"): [3.0, 4.0, 5.0, 6.0, 7.0]}


@pytest.mark.parametrize("n", ["2", "3"])
def test_every_collective_gives_what_pytorchs_gives(found: dict[str, Any], n: str) -> None:
    for rank, (have, want) in enumerate(zip(found[n], STORED[n], strict=True)):
        assert have["numbers"].keys() == want["numbers"].keys()
        for name, value in want["numbers"].items():
            expected = _ROUNDED_ONCE.get((n, name), value)
            assert have["numbers"][name] == expected, f"rank {rank}: {name}"


@pytest.mark.parametrize("n", ["2", "3"])
def test_wrong_calls_raise_what_pytorchs_raise(found: dict[str, Any], n: str) -> None:
    for have, want in zip(found[n], STORED[n], strict=True):
        assert have["errors"] == want["errors"]


@pytest.mark.skipif(not LIVE, reason="PyTorch is not installed")
def test_what_is_stored_is_what_pytorch_gives() -> None:
    assert cases_collectives.results(pytorch()) == STORED


def test_tensors_that_are_not_in_one_piece(tmp_path: Path) -> None:
    """PyTorch refuses them; here they are copied. Autograd learns of every write."""
    program = """
        import rushlight as torch
        import rushlight.distributed as dist
        from tests.distributed.running import report

        dist.init_process_group("mpi")
        rank = dist.get_rank()
        turned = torch.arange(6.0).reshape(2, 3).t()
        dist.all_reduce(turned)
        strided = torch.zeros(6)[::2]
        dist.broadcast(strided + 0 if rank else strided.add_(3), src=0)
        got = torch.zeros(6)
        dist.broadcast(got[::2] if rank else strided, src=0)
        z = torch.tensor([1 + 2j]).conj()
        dist.all_reduce(z)
        truth = torch.tensor([rank == 0, False])
        dist.all_reduce(truth)
        mean = torch.tensor([1.0 + rank, 4.0])
        dist.all_reduce(mean, op=dist.ReduceOp.AVG)
        whole = torch.tensor([3 * rank, 5])
        dist.all_reduce(whole, op=dist.ReduceOp.AVG)
        w = torch.ones(2, requires_grad=True)
        y = (w * w).sum()
        before = w._version
        dist.all_reduce(w.detach())
        try:
            y.backward()
            trouble = ""
        except RuntimeError as error:
            trouble = str(error).split(":")[0]
        report(rank, [turned.tolist(), got.tolist(), [z.real.item(), z.imag.item()],
                      truth.tolist(), mean.tolist(), whole.tolist(), w._version - before, trouble])
    """
    want = [
        [[0.0, 6.0], [2.0, 8.0], [4.0, 10.0]], [2.0, -4.0], [True, False], [1.5, 4.0], [1, 5], 1,
        "one of the variables needed for gradient computation has been modified by an inplace "
        "operation",
    ]  # fmt: skip
    for rank, value in enumerate(running.launch(program, 2, tmp_path)):
        got = value.pop(1)
        assert value == want
        assert rank == 0 or got == [3.0, 0.0, 3.0, 0.0, 3.0, 0.0]
