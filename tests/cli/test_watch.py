"""`rushlight run` with something to look at: the graph, the steps, the memory and the time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
from rushlight.cli.options import Options
from rushlight.cli.watch import Watch
from tests.running import run

TRAIN = """\
import torch

torch.manual_seed(0)
w = torch.tensor([1.0, 2.0], requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.1)
for step in range({steps}):
    loss = (w * w).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

print(w.tolist())
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(TRAIN.format(steps=3))
    return path


def test_the_program_prints_the_same(script: Path, tmp_path: Path) -> None:
    _, plain, _ = run("train.py", cwd=tmp_path)
    status, out, told = run("--explain", "--memory", "--profile", "train.py", cwd=tmp_path)
    assert (status, out) == (0, plain), told
    assert "\n== backward pass 3 of 3: train.py:9     loss.backward()\n" in told
    parts = told.split("\n== ")[1:]
    assert [part.split("\n")[0].split(" ")[0] for part in parts] == [
        "backward", "explain", "memory", "profile",
    ]  # fmt: skip
    assert "loss = (w * w).sum()" in parts[1] and "MulBackward0" in parts[1]
    assert "AccumulateGrad" in parts[1]  # with the name of the program's variable
    assert "w.grad" in parts[1]
    assert "train.py:7" in parts[2]
    assert "aten::mul" in parts[3] and "train.py:7" in parts[3]


@pytest.mark.parametrize("ending", ["html", "svg", "dot"])
def test_graph(script: Path, tmp_path: Path, ending: str) -> None:
    pytest.importorskip("igraph")
    status, _, told = run("--graph", f"g.{ending}", "train.py", cwd=tmp_path)
    assert status == 0, told
    assert f"\n== graph\nsee {tmp_path / 'g'}.{ending}\n" in told
    assert "mul" in (tmp_path / f"g.{ending}").read_text("utf-8")


def test_one_pass_is_looked_at(script: Path, tmp_path: Path) -> None:
    _, _, told = run("--explain", "--pass", "1", "train.py", cwd=tmp_path)
    assert "== backward pass 1 of 3:" in told
    assert "loss = 5," in told
    status, _, told = run("--explain", "--pass", "4", "train.py", cwd=tmp_path)
    assert status == 1
    assert "there was no backward pass 4, only 3" in told


def test_many_passes_are_looked_at_ever_more_rarely(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN.format(steps=70))
    _, _, told = run("--explain", "train.py", cwd=tmp_path)
    assert "== backward pass 64 of 70:" in told


STARTS: list[Callable[[Any], Any]] = [
    lambda x: torch.autograd.backward((x * 2).sum()),
    lambda x: torch.autograd.backward([x.sum(), x.exp().sum()]),
    lambda x: torch.autograd.backward(tensors=x * 2, grad_tensors=torch.ones(2)),
    lambda x: torch.autograd.grad((x * 2).sum(), x),
    lambda x: torch.autograd.grad(x * 2, x, torch.ones(2)),
    lambda x: torch.autograd.grad(outputs=x * 2, inputs=x, grad_outputs=torch.ones(2)),
    lambda x: (x * 2).backward(torch.ones(2)),
    lambda x: (x * 2).backward(gradient=torch.ones(2)),
]


@pytest.mark.parametrize("start", STARTS)
def test_other_ways_to_start_a_pass(
    start: Callable[[Any], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    before = torch.Tensor.backward, torch.autograd.backward, torch.autograd.grad
    watch = Watch(Options(explain=True))
    watch.start()
    start(torch.ones(2, requires_grad=True))
    assert watch.report()
    told = capsys.readouterr().err
    assert "== backward pass 1 of 1: test_watch.py:" in told and "x.grad" in told
    assert before == (torch.Tensor.backward, torch.autograd.backward, torch.autograd.grad)


def test_no_pass_at_all(tmp_path: Path) -> None:
    status, out, told = run("--explain", "-c", "print(1)", cwd=tmp_path)
    assert (status, out) == (1, "1\n")
    assert "called neither backward() nor autograd.grad()" in told


def test_a_program_that_fails_is_told_about_too(tmp_path: Path) -> None:
    code = "import torch, sys\nx = torch.ones(2, requires_grad=True)\nx.sum().backward()\n"
    status, _, told = run("--explain", "-c", code + "sys.exit(3)", cwd=tmp_path)
    assert status == 3 and "== explain" in told
    status, _, told = run("--explain", "-c", code + "(x * 2).backward()", cwd=tmp_path)
    assert status == 1
    assert "RuntimeError: grad can be implicitly created only for scalar outputs" in told
    assert "watch.py" not in told and "launch.py" not in told


def test_looking_changes_no_gradient(tmp_path: Path) -> None:
    code = """
import torch
x = torch.ones(2, requires_grad=True)
loss = (x * x).sum()
loss.backward()
print(x.grad)
try:
    loss.backward()
except RuntimeError as error:
    print(str(error)[:57])
"""
    plain = run("-c", code, cwd=tmp_path)
    status, out, told = run("--explain", "--memory", "-c", code, cwd=tmp_path)
    assert out == plain[1]
    # the second pass cannot be explained, as it cannot run
    assert status == 1 and "rushlight: explain: RuntimeError: Trying to backward" in told


def test_a_trace(script: Path, tmp_path: Path) -> None:
    status, _, told = run("--profile=trace.json", "train.py", cwd=tmp_path)
    assert (status, told.strip()) == (0, f"== profile\nsee {tmp_path / 'trace.json'}")
    assert json.loads((tmp_path / "trace.json").read_text("utf-8"))["traceEvents"]


def test_a_flame_graph(script: Path, tmp_path: Path) -> None:
    status, _, told = run("--profile=p.html", "train.py", cwd=tmp_path)
    assert status == 0, told
    assert "train.py" in (tmp_path / "p.html").read_text("utf-8")
