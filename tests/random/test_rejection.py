"""Numbers alike that are drawn together are the numbers that are drawn one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rushlight import random as raw
from rushlight.random import rejection

DRAWS: dict[str, tuple[Any, ...]] = {
    "gamma 1": (rejection.standard_gamma, 1.0),
    "gamma 2.5": (rejection.standard_gamma, 2.5),
    "gamma 60": (rejection.standard_gamma, 60.0),
    "gamma 0.5": (rejection.standard_gamma, 0.5),
    "poisson 3": (rejection.poisson, 3.0),
    "poisson 10": (rejection.poisson, 10.0),
    "poisson 5000": (rejection.poisson, 5000.0),
    "binomial 20, 0.3": (rejection.binomial, 20.0, 0.3),
    "binomial 20, 0.75": (rejection.binomial, 20.0, 0.75),
    "binomial 100, 0.3": (rejection.binomial, 100.0, 0.3),
    "binomial 100, 0.6": (rejection.binomial, 100.0, 0.6),
    "binomial 3, 0.001": (rejection.binomial, 3.0, 0.001),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", DRAWS)
def test_together_as_singly(name: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, *numbers = DRAWS[name]
    for seed, n in enumerate((64, 65, 500, 3000)):
        given = [np.full(n, x, dtype) for x in numbers]
        found = []
        for least in (64, 1 << 30):
            monkeypatch.setattr(rejection, "ALIKE", least)
            gen = raw.Generator().manual_seed(seed)
            if seed % 2:
                raw.normal_(np.empty(1), gen=gen)  # which leaves a normal for the next to take
            found.append((draw(*given, gen).tolist(), gen.raw_state().tolist()))
        assert found[0] == found[1]


def test_few_as_many(monkeypatch: pytest.MonkeyPatch) -> None:
    for draw, *numbers in DRAWS.values():
        given = [np.full(7, x) for x in numbers]
        found = []
        for few in (0, 1 << 30):
            monkeypatch.setattr(rejection, "FEW", few)
            gen = raw.Generator().manual_seed(3)
            found.append((draw(*given, gen).tolist(), gen.raw_state().tolist()))
        assert found[0] == found[1]


def test_together_no_function_is_called_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    def singly(*_: Any) -> Any:
        raise AssertionError("drawn singly")

    monkeypatch.setattr(rejection._Box, "one", singly)
    monkeypatch.setattr(rejection, "_gammas_singly", singly)
    gen = raw.Generator()
    assert rejection.poisson(np.full(100, 50.0), gen).shape == (100,)
    assert rejection.binomial(np.full(100, 50.0), np.full(100, 0.5), gen).shape == (100,)
    assert rejection.standard_gamma(np.full(100, 50.0), gen).shape == (100,)


def test_counts_that_are_no_numbers() -> None:
    counts, probs = np.array([np.nan, 5.0, np.nan]), np.array([0.7, np.nan, 0.2])
    assert np.isnan(rejection.binomial(counts, probs)).all()
