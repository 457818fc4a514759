"""The short form of every attack of `attack/`: the same seed, a bounded number of attempts."""

from __future__ import annotations

from types import ModuleType

import pytest

from attack.harness import modules, pytorch, run


@pytest.mark.parametrize("module", modules(), ids=lambda m: m.__name__.removeprefix("attack."))
def test_the_short_attack_finds_nothing(module: ModuleType) -> None:
    report = run(module, 0, pytorch(), attempts=module.SHORT)
    assert report.attempts > 0
    assert not report.broken, "\n".join(report.broken[:10])
