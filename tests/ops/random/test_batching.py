"""Random functions inside `vmap` give PyTorch's numbers for the same seed, and its complaints.

What PyTorch does is stored (tests/reference/make_vmap_random.py), and asked live where it is
installed.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import rushlight as torch
from rushlight.core.grad_mode import state
from rushlight.core.transforms.stack import innermost, stack
from rushlight.random import fork_rng
from tests.harness import LIVE, stored
from tests.ops.random import cases_batching as written

STORED = stored("ops/random/batching")


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """A test leaves no transform open, no mode entered, and the default generator as it was."""
    before = state.active
    with fork_rng():
        yield
    assert state.active == before
    assert stack.batches == 0
    assert innermost() is None


def agree(theirs: Any, ours: Any) -> bool:
    """Whether results are the same but for the last digits of numbers, which sums may differ in."""
    if isinstance(theirs, list):
        return isinstance(ours, list) and len(theirs) == len(ours) and all(map(agree, theirs, ours))
    if isinstance(theirs, float) and isinstance(ours, float):
        if math.isnan(theirs) or math.isnan(ours):
            return math.isnan(theirs) and math.isnan(ours)
        return math.isclose(theirs, ours, rel_tol=1e-5, abs_tol=2e-5)
    return type(theirs) is type(ours) and bool(theirs == ours)


def oracles(stored: Any, live: Any) -> list[Any]:
    """What PyTorch gave, and what it gives now where it is installed."""
    if not LIVE:
        return [stored]
    return [stored, json.loads(json.dumps(live(importlib.import_module("torch"))))]


def check(stored: Any, run: Any) -> None:
    ours = json.loads(json.dumps(run(torch)))
    for theirs in oracles(stored, run):
        assert agree(theirs, ours), f"\ntheirs {theirs}\nours   {ours}"


@pytest.mark.parametrize("name", sorted(written.CALLS))
def test_calls_as_pytorch(name: str) -> None:
    check(STORED["calls"][name], lambda lib: written.seen_call(lib, name))


@pytest.mark.parametrize("name", sorted(written.cases))
def test_cases_as_pytorch(name: str) -> None:
    check(STORED["cases"][name], lambda lib: written.cases.run(lib, name))


@pytest.mark.parametrize("first", range(0, len(written.SEEDS), 50))
def test_programs_as_pytorch(first: int) -> None:
    for seed in written.SEEDS[first : first + 50]:
        ours = json.loads(
            json.dumps(written.seen(torch, lambda lib, seed=seed: written.program(lib, seed)))
        )
        theirs = STORED["programs"][seed]
        assert agree(theirs, ours), f"seed {seed}\ntheirs {theirs}\nours   {ours}"


# --- what PyTorch cannot be asked, or crashes on --------------------------------------------------
def test_other_threads_draw_as_ever() -> None:
    """A `vmap` in progress is nobody else's."""
    drawn: list[Any] = []

    def elsewhere() -> None:
        drawn.append(torch.rand(2, generator=torch.Generator().manual_seed(0)))

    def member(x: Any) -> Any:
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        return x

    torch.vmap(member)(torch.ones(3, 2))
    expected = torch.rand(2, generator=torch.Generator().manual_seed(0))
    assert torch.equal(drawn[0], expected)


def test_a_tensor_that_escaped_is_not_drawn_into() -> None:
    kept: list[Any] = []
    torch.vmap(lambda x: kept.append(x * 1) or x)(torch.ones(3, 2))  # type: ignore[func-returns-value]
    for draw in (torch.bernoulli, torch.rand_like, lambda x: x.normal_()):
        with pytest.raises(RuntimeError, match="may have escaped"):
            torch.vmap(lambda x: draw(kept[0]), randomness="same")(torch.ones(3, 2))  # noqa: B023


@pytest.mark.parametrize("flag", ["same", "different"])
def test_bernoulli_with_a_number_in_a_nest(flag: str) -> None:
    def outer(y: Any) -> Any:
        inner = torch.vmap(lambda x: y.clone().bernoulli_(0.5), randomness="same")
        return inner(torch.ones(2, 1))

    torch.manual_seed(0)
    drawn = torch.vmap(outer, randomness=flag)(torch.ones(3, 8))
    torch.manual_seed(0)
    if flag == "same":
        expected = torch.empty(8).bernoulli_(0.5).expand(3, 2, 8)
    else:
        expected = torch.empty(3, 8).bernoulli_(0.5)[:, None].expand(3, 2, 8)
    assert torch.equal(drawn, expected)


def test_advice_follows_the_error() -> None:
    with pytest.raises(RuntimeError, match="Use randomness='different'"):
        torch.vmap(torch.bernoulli, randomness="same")(torch.ones(3, 2))
    with pytest.raises(RuntimeError, match=r"draw a new one, as `torch\.rand_like` does"):
        torch.vmap(lambda x: torch.ones(2).normal_(), randomness="different")(torch.ones(3, 2))


def test_the_models_dropout_per_sample() -> None:
    """Per-sample gradients of a model with dropout: each with the mask of its own forward."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))
    params = {k: p.detach() for k, p in model.named_parameters()}
    x = torch.ones(5, 4)

    def loss(params: Any, x: Any) -> Any:
        return torch.func.functional_call(model, params, (x,)).sum()

    per_sample = torch.func.vmap(torch.func.grad(loss), (None, 0), randomness="different")
    torch.manual_seed(0)
    grads = per_sample(params, x)
    torch.manual_seed(0)
    masks = torch.nn.functional.dropout(torch.ones(5, 8))
    hidden = torch.nn.functional.linear(x, params["0.weight"], params["0.bias"])
    torch.testing.assert_close(grads["2.weight"], (hidden * masks)[:, None])
