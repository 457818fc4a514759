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


PARALLEL = ["distributed_training", "resume_elsewhere", "tensor_parallel"]


@pytest.mark.parametrize("name", PARALLEL)
def test_two_processes_print_what_one_prints(name: str, tmp_path: Path) -> None:
    """But for the sizes, and for the losses of each rank."""
    example = str(ROOT / "examples" / f"{name}.py")
    printed = []
    for start in (("run",), ("launch", "-n", "2")):
        folder = tmp_path / start[0]
        folder.mkdir()
        status, out, errors = python("-m", "rushlight", *start, example, cwd=folder)
        assert (status, errors) == (0, "")
        printed.append(out)
    one, two = (re.sub(r" \(rank .*\)|\d+ process.*|\d+ hidden.*", "", out) for out in printed)
    assert one == two
    assert "1 process(es)" in printed[0] and "2 process(es)" in printed[1]


def test_a_checkpoint_of_two_processes_is_resumed_by_one(tmp_path: Path) -> None:
    example = str(ROOT / "examples" / "resume_elsewhere.py")
    launch = ("-m", "rushlight", "launch", "-n", "2")
    losses = ""
    for start in (launch, ("-m", "rushlight", "run"), launch):
        status, out, errors = python(*start, example, "here", "--more", "3", cwd=tmp_path)
        assert (status, errors) == (0, "")
        losses += "".join(re.findall(r"step .*\n", out))
    status, out, errors = run(example, "there", "--more", "9", cwd=tmp_path)
    assert (status, errors) == (0, "")
    assert "".join(re.findall(r"step .*\n", out)) == losses


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
