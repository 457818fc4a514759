"""`viz.training`: logs of every form, their table and their curves."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
from rushlight import nn, viz
from rushlight.viz.training import first_bad, smooth

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    "log",
    [
        {"loss": [1.0, 0.5], "grad norm": [2.0, 1.0]},
        [{"loss": 1.0, "grad norm": 2.0}, {"loss": 0.5, "grad norm": 1.0}],
        {"loss": torch.tensor([1.0, 0.5]), "grad norm": (2, 1)},
    ],
)
def test_forms_of_a_log(log: Any) -> None:
    found = viz.training(log)
    assert found.series == {"loss": [1.0, 0.5], "grad norm": [2.0, 1.0]}
    assert viz.training(found).series == found.series and len(found) == 2
    assert repr(found) == "<training log: loss, grad norm; 2 steps>"


def test_a_list_of_losses() -> None:
    assert viz.training([torch.tensor(1.0), 0.5]).series == {"loss": [1.0, 0.5]}


def test_filling_it() -> None:
    net = nn.Linear(2, 1)
    log = viz.training()
    for step in range(3):
        loss = net(torch.ones(1, 2)).pow(2).sum()
        net.zero_grad()
        loss.backward()
        log.add(loss=loss, model=net, **({"accuracy": 0.5} if step == 2 else {}))
    norm = math.sqrt(sum(p.grad.norm().item() ** 2 for p in net.parameters()))
    assert log.series["grad norm"][-1] == pytest.approx(norm)
    assert log.series["loss"][-1] == pytest.approx(loss.item())
    assert [math.isnan(x) for x in log.series["accuracy"]] == [True, True, False]


def test_summary() -> None:
    lines = str(viz.training({"loss": [2.0, 1.0, NAN], "grad norm": [1.0, 3.0, 2.0]})).splitlines()
    assert lines[0].split() == ["first", "last", "least", "largest"]
    assert lines[1].split()[:5] == ["loss", "2", "1", "1", "2"]
    assert lines[1].endswith("not finite from step 3")
    assert lines[2].split() == ["grad", "norm", "1", "2", "1", "3"]


def test_pieces() -> None:
    assert smooth([1.0, 3.0, NAN, 5.0], 2) == [1.0, 2.0, 2.0, 4.0]
    assert first_bad([NAN, 1.0, INF]) == 3 and first_bad([1.0, 2.0]) is None
    assert first_bad([1.0, NAN]) == 2


@pytest.mark.parametrize("steps", [3, 200])
def test_curves(steps: int, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    losses = [1 / (i + 1) for i in range(steps)]
    log = viz.training({"loss": losses, "grad norm": losses})
    above, below = log.figure().axes
    assert below.get_yscale() == "log" and above.get_yscale() == "linear"
    assert len(above.lines) == (1 if steps < 50 else 2)
    log.series["loss"][-1] = INF
    words = [t.get_text() for t in log.figure().axes[0].get_legend().get_texts()]
    assert words == ["loss", f"loss: not finite from {steps}"]
    log.save(tmp_path / "training.png")
    assert (tmp_path / "training.png").read_bytes()[1:4] == b"PNG"
    assert log._repr_png_()[1:4] == b"PNG"
    assert len(viz.training(losses).figure().axes) == 1


def test_an_empty_log_has_no_curves() -> None:
    with pytest.raises(ValueError, match="the log is empty"):
        viz.training().figure()
