"""The examples run, and those that train print under rushlight what they print under PyTorch."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.harness import ROOT
from tests.running import python, run

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
TRAINING = [path for path in EXAMPLES if '"--steps"' in path.read_text("utf-8")]
FEW = ("--steps", "3")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example(example: Path, tmp_path: Path) -> None:
    status, out, errors = run(str(example), *(FEW if example in TRAINING else ()), cwd=tmp_path)
    assert (status, errors) == (0, "")
    assert out


def test_the_examples_that_train() -> None:
    assert [path.stem for path in TRAINING] == [
        "char_rnn",
        "distributed_training",
        "tiny_gpt",
        "train_images",
    ]


@pytest.mark.parametrize("example", TRAINING, ids=lambda path: path.stem)
def test_training_as_in_pytorch(example: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (_, ours, _), (status, theirs, errors) = (
        start(str(example), *FEW, cwd=tmp_path) for start in (run, python)
    )
    assert (status, errors) == (0, "")
    losses = re.findall(r"step .*", ours)
    assert losses
    assert losses == re.findall(r"step .*", theirs)


def test_a_checkpoint_and_a_loss_curve_are_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for matplotlib, which need not be installed, says what would have been drawn."""
    (tmp_path / "matplotlib").mkdir()
    (tmp_path / "matplotlib" / "__init__.py").touch()
    (tmp_path / "matplotlib" / "figure.py").write_text(STAND_IN, "utf-8")
    paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    example = ROOT / "examples" / "train_images.py"
    status, out, errors = run(str(example), *FEW, "--out", "here", cwd=tmp_path)
    assert (status, errors) == (0, "")
    assert out.endswith("saved loss.png\n")
    assert (tmp_path / "here" / "lenet.pt").stat().st_size > 100_000
    assert (tmp_path / "here" / "loss.png").read_text("utf-8") == "3 losses"


STAND_IN = """
class Axes:
    def plot(self, steps, losses):
        self.said = f"{len(losses)} losses"
        assert len(steps) == len(losses)
    def set(self, **words): pass
    def grid(self, **words): pass
class Figure:
    def __init__(self, **words): pass
    def subplots(self):
        self.axes = Axes()
        return self.axes
    def savefig(self, path, dpi):
        with open(path, "w") as file:
            file.write(self.axes.said)
"""
