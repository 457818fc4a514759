"""`DistributedDataParallel` on two processes: as one process, and as PyTorch.

The programs next to this file run on both libraries, and are started once for all tests.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
from rushlight import distributed as dist
from rushlight import nn
from rushlight.nn.parallel import DistributedDataParallel as DDP
from tests.distributed.two_libraries import assert_close, needs_torch, run_ranks
from tests.helpers import raises

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def trained() -> list[Any]:
    return run_ranks("rushlight", HERE / "program_training.py", 2)


@pytest.fixture(scope="module")
def behaviour() -> list[Any]:
    return run_ranks("rushlight", HERE / "program_behaviour.py", 2)


@pytest.fixture
def alone() -> Iterator[None]:
    """A group of this process only."""
    dist.init_process_group("gloo", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_two_processes_train_as_one(trained: list[Any]) -> None:
    for name, result in trained[0].items():
        bound = 1e-5 if "float32" in name else 1e-12
        assert_close(result["parameters"], result["alone"], bound, name)
        assert len(result["losses"]) == 50 and result["losses"][-1] < result["losses"][0]


def test_processes_agree_to_the_last_bit(trained: list[Any]) -> None:
    for name in trained[0]:
        for what in ("parameters", "gradients"):
            assert trained[0][name][what] == trained[1][name][what], name
        assert trained[0][name]["losses"] != trained[1][name]["losses"], "each has its own batch"


def test_options_do_not_change_the_results(trained: list[Any]) -> None:
    plain = trained[0]["mlp, plain"]["parameters"]
    for name, result in trained[0].items():
        if name.startswith("mlp") and "float32" not in name:
            assert_close(result["parameters"], plain, 1e-12, name)


@needs_torch
def test_training_is_pytorch_s(trained: list[Any]) -> None:
    theirs = run_ranks("torch", HERE / "program_training.py", 2)
    for mine, other in zip(trained, theirs):
        for name in mine:
            assert_close(mine[name], other[name], 1e-4 if "float32" in name else 1e-9, name)


def test_unused_parameters(behaviour: list[Any]) -> None:
    """What some process used is averaged, with zeros of the others; what nobody used is None."""
    assert behaviour[0]["unused"] == behaviour[1]["unused"]
    for grads in behaviour[0]["unused"]:
        a, b, c = grads[:2], grads[2:4], grads[4:]
        assert all(any(g) for g in a + b) and c == [None, None]
    once, twice = behaviour[0]["unused"][:2]
    assert_close([[2 * v for v in g] for g in once[:4]], twice[:4], 1e-6)
    text = behaviour[0]["unused_in_all"][-1]
    assert text.startswith("Expected to have finished reduction in the prior iteration before")


def test_gradients_add_up_without_sync(behaviour: list[Any]) -> None:
    ranks = [result["accumulate"] for result in behaviour]
    for at, (mine, other) in enumerate(zip(*ranks)):
        assert (mine == other) == (at % 2 == 1), "equal after each pass that averages, not before"


def test_buffers_are_those_of_process_0(behaviour: list[Any]) -> None:
    first, second = behaviour[0]["buffers"], behaviour[1]["buffers"]
    assert first[0] != second[0], "a forward pass changes them, after they were sent"
    assert first[4] == second[4] == [[False]], "after a pass without gradients nothing is sent"
    assert first[5] != second[5], "nobody sent them"


def test_uneven_inputs_end_with_equal_modules(behaviour: list[Any]) -> None:
    first, second = behaviour[0]["uneven"], behaviour[1]["uneven"]
    assert first[:8] == second[:8]
    assert all(state == first[0] for state in first[2:7:2]), "options change nothing"
    assert first[0] != first[1], "divided by 2 to the end, or by those that are left"
    assert first[9] == [["Rank 0 exhausted all inputs."]]
    assert second[9] == [
        ["Detected at least one rank that exhausted inputs. Throwing across all ranks."]
    ]


def test_hooks_average_what_they_are_given(behaviour: list[Any]) -> None:
    found = behaviour[0]["hooks"]
    for views in (False, True):
        plain = found[f"allreduce {views}"]
        assert plain == behaviour[1]["hooks"][f"allreduce {views}"]
        for name in ("fp16", "fp16 wrapper"):
            assert found[f"{name} {views}"] != plain, "16 bits round"
            assert_close(found[f"{name} {views}"], plain, 1e-2)
    sent = [seen[:2] for seen in found["seen"][:3]]
    assert sent == [[0, True], [0, False], [1, True]], "one bucket in the first pass, then two"


@needs_torch
def test_behaviour_is_pytorch_s(behaviour: list[Any]) -> None:
    theirs = run_ranks("torch", HERE / "program_behaviour.py", 2)
    for mine, other in zip(behaviour, theirs):
        assert_close(mine, other, 5e-6)


def test_copies_average_too(behaviour: list[Any]) -> None:
    keys, *grads, text = behaviour[0]["copies"]
    assert keys == ["module.weight", "module.bias"]
    assert all(g == grads[0] for g in grads) and grads == behaviour[1]["copies"][1:-1]
    assert text[0].startswith("DDP Pickling/Unpickling are only supported when using DDP with the")


@pytest.mark.usefixtures("alone")
def test_what_cannot_be_wrapped() -> None:
    raises(RuntimeError, "DistributedDataParallel is not needed when a module", DDP, nn.ReLU())
    raises(
        ValueError, "device_ids can only be None or contain a single element.", DDP,
        nn.Linear(1, 1), device_ids=[0, 1],
    )  # fmt: skip
    raises(
        ValueError, "DistributedDataParallel device_ids and output_device arguments only work",
        DDP, nn.Linear(1, 1), device_ids=[0],
    )  # fmt: skip
    raises(
        ValueError, "delay_all_reduce_named_params and param_to_hook_all_reduce need to be set",
        DDP, nn.Linear(1, 1), param_to_hook_all_reduce=torch.ones(1),
    )  # fmt: skip
    raises(RuntimeError, "Modules with uninitialized parameters can't", DDP, nn.LazyLinear(2))


def test_without_a_group_it_says_so() -> None:
    raises(ValueError, "Default process group has not been initialized", DDP, nn.Linear(1, 1))


@pytest.mark.usefixtures("alone")
def test_one_process_is_the_module_itself() -> None:
    inner = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    twin = copy.deepcopy(inner)
    net = DDP(inner)
    x = torch.randn(5, 3)
    for _ in range(3):
        net(x).square().mean().backward()
        twin(x).square().mean().backward()
    for p, q in zip(net.parameters(), twin.parameters()):
        assert torch.equal(p.grad, q.grad)
    assert net.module is inner and repr(net).startswith("DistributedDataParallel(\n  (module): Seq")
    again = pickle.loads(pickle.dumps(net))
    assert torch.equal(again(x), net(x))


@pytest.mark.usefixtures("alone")
def test_delayed_gradients_are_one_tensor() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    late = [(n, p) for n, p in net.named_parameters() if n.startswith("1")]
    ddp = DDP(net, delay_all_reduce_named_params=late, param_to_hook_all_reduce=net[0].weight)
    twin = copy.deepcopy(net)
    x = torch.randn(4, 2)
    for _ in range(2):
        ddp(x).square().sum().backward()
        twin(x).square().sum().backward()
    for p, q in zip(net.parameters(), twin.parameters()):
        torch.testing.assert_close(p.grad, q.grad)
    assert net[1].weight.grad.data_ptr() == ddp._delay_grad_buffer.data_ptr()
