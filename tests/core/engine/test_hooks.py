"""Hooks of every kind do what PyTorch's do, in its order: stored, and live where it is installed.

The cases stand in the files `cases_hooks_*.py`.
"""

from __future__ import annotations

import gc
import threading
from typing import Any

import pytest

import rushlight as torch
from rushlight.core.engine.engine import GraphTask
from rushlight.core.engine.hooks import leaf_hooks
from tests.core.engine import (
    cases_hooks_modules,
    cases_hooks_nodes,
    cases_hooks_saved,
    cases_hooks_tensors,
)
from tests.core.engine.cases_hooks_random import nested_passes, random_graphs
from tests.core.engine.helpers import ones
from tests.harness import LIVE, stored

BANKS = {
    "tensors": cases_hooks_tensors.cases,
    "nodes": cases_hooks_nodes.cases,
    "saved": cases_hooks_saved.cases,
    "modules": cases_hooks_modules.cases,
}


STORED = {name: stored(f"core/engine/hooks_{name}") for name in BANKS}
RANDOM = stored("core/engine/hooks_random")


def test_every_script_is_stored() -> None:
    for name, bank in BANKS.items():
        assert STORED[name].keys() == bank.keys()


@pytest.mark.parametrize("name", BANKS)
def test_as_pytorch(name: str) -> None:
    wrong = BANKS[name].differing(torch, STORED[name])
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("start", range(0, 250, 50))
def test_random_graphs(start: int) -> None:
    gc.collect()  # hooks of earlier graphs on leaves, which would change how a pass runs
    wrong = random_graphs(range(start, start + 50)).differing(torch, RANDOM["random"])
    assert not wrong, "\n".join(wrong[:3])


def test_random_passes_inside_passes() -> None:
    wrong = nested_passes(range(60)).differing(torch, RANDOM["nested"])
    assert not wrong, "\n".join(wrong[:3])


if LIVE:

    @pytest.mark.parametrize("name", BANKS)
    def test_stored_is_what_pytorch_does(name: str) -> None:
        import torch as pytorch

        wrong = BANKS[name].differing(pytorch, STORED[name])
        assert not wrong, "\n".join(wrong)

    def test_more_random_graphs() -> None:
        import torch as pytorch

        cases = random_graphs(range(10_000, 10_100))
        wrong = cases.differing(torch, cases.results(pytorch))
        assert not wrong, "\n".join(wrong[:3])


# --- how a pass runs where nobody looks -----------------------------------------------------------
def test_hooks_on_leaves_are_counted_as_long_as_they_are_there() -> None:
    gc.collect()
    before = leaf_hooks.count
    x = torch.ones(2, requires_grad=True)
    first = x.register_hook(lambda g: None)
    x.register_post_accumulate_grad_hook(lambda p: None)
    node = torch.autograd.graph.get_gradient_edge(x).node
    third = node.register_hook(lambda gi, go: None)
    assert leaf_hooks.count == before + 3
    first.remove()
    first.remove()
    third.remove()
    assert leaf_hooks.count == before + 1
    del x, node, first, third
    gc.collect()  # a leaf keeps its node while that has hooks
    assert leaf_hooks.count == before
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda g: None)
    del x  # but hooks of its own make no cycle
    assert leaf_hooks.count == before


if not torch.__config__.compiled():  # methods of compiled classes cannot be replaced

    def test_leaves_are_counted_once_a_pass_and_only_where_someone_looks(
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        counted = []
        count = GraphTask.count_leaf_uses

        def counting(self: Any, node: Any) -> None:
            if self.uses is None:
                counted.append(node.name())
            count(self, node)

        monkeypatch.setattr(GraphTask, "count_leaf_uses", counting)
        monkeypatch.setattr(leaf_hooks, "count", 0)
        x = torch.ones(2, requires_grad=True)
        for hooked in (False, True):
            y = x * 2
            z = y.exp() * y
            if hooked:
                y.register_hook(lambda g: None)
                z.register_hook(lambda g: None)
            z.sum().backward()
            assert counted == (["MulBackward0"] if hooked else [])


def test_a_pass_that_failed_leaves_nothing_to_the_next_one() -> None:
    a, w = (torch.ones(2, requires_grad=True) for _ in range(2))
    w.register_hook(lambda g: None)
    found = []

    def fail(g: Any) -> None:
        raise ValueError

    def twice(g: Any) -> None:
        with torch.enable_grad():
            for bad in (True, False):
                other = (a * 2 * w).sum()  # older: ready, and not run when `last` fails
                last = w.cos() * 1
                if bad:
                    last.register_hook(fail)
                try:
                    (other + last.sum()).backward()
                except ValueError:
                    found.append("failed")
        found.append(a.grad.tolist())

    y = w * 3
    y.register_hook(twice)
    y.sum().backward()
    assert found == ["failed", [2.0, 2.0]]


# --- threads --------------------------------------------------------------------------------------
def in_threads(work: Any, n: int = 8) -> None:
    errors: list[BaseException] = []

    def caught(i: int) -> None:
        try:
            work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=caught, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors


@pytest.mark.parametrize("where", ["leaf", "inner", "node", "function", "saved"])
def test_passes_of_many_threads_over_one_graph(where: str) -> None:
    rounds = 20
    w = torch.ones(3, requires_grad=True)
    calls: list[int] = []

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            calls.append(1)
            assert ctx.saved_tensors[0].tolist() == [1, 1, 1]
            return g * 2

    def unpack(t: Any) -> Any:
        calls.append(1)
        return t

    if where == "saved":
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach(), unpack):
            shared = w * torch.tensor([2.0, 2.0, 2.0])
    else:
        shared = Double.apply(w) if where == "function" else w * 2
    if where == "leaf":
        w.register_hook(lambda g: (calls.append(1), g * 1)[1])
    elif where == "inner":
        shared.register_hook(lambda g: (calls.append(1), g * 1)[1])
    elif where == "node":
        shared.grad_fn.register_hook(lambda gi, go: calls.append(1))

    def work(i: int) -> None:
        for _ in range(rounds):
            (shared * 3).sum().backward(retain_graph=True)

    in_threads(work)
    assert len(calls) == 8 * rounds
    assert w.grad is not None and w.grad.tolist() == [8 * rounds * 6] * 3


def test_hooks_registered_and_removed_while_others_run() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x * 2

    def work(i: int) -> None:
        for _ in range(20):
            handles = [t.register_hook(lambda g: None) for t in (x, y)]
            y.sum().backward(retain_graph=True)
            for handle in handles:
                handle.remove()

    in_threads(work)
    assert x.grad is not None and x.grad.tolist() == [8 * 20 * 2] * 3


def test_node_pre_hooks_come_after_capturing() -> None:
    x = ones(2)
    y = x * 2
    y.grad_fn.register_prehook(lambda gs: (gs[0] * 10,))
    z = (y * 3).sum()
    assert torch.autograd.grad(z, [y], retain_graph=True)[0].tolist() == [3, 3]
    gy, gx = torch.autograd.grad(z, [y, x])
    assert gy.tolist() == [3, 3] and gx.tolist() == [60, 60]
