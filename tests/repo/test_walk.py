"""tools/walk.py prints the functions an expression goes through."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.harness import ROOT

TOOL = ROOT / "tools" / "walk.py"


def walk(*arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, str(TOOL), *arguments],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return done.stdout.splitlines()


def test_a_product_is_walked_through() -> None:
    lines = walk("x * y")
    assert lines[0].startswith("| Operators.__mul__") and "core/operators.py:" in lines[0]
    assert any("Mul.forward" in line for line in lines)
    calls, files, switches = [int(part.split()[0]) for part in lines[-1].split(", ")]
    assert calls == len(lines) - 1 and 3 < files <= switches + 1 < calls


def test_totals_and_setup() -> None:
    lines = walk("--totals", "--setup", "m = nn.Linear(2, 1)", "m(x).sum().backward()")
    assert len(lines) == 1 and lines[0].endswith("switches of file")


# expression: the most switches of file. Counted now, with nothing to spare: whoever sends an op
# through another file says here why. Functions that were called before go through `core/recall.py`
# and `core/steps.py` in place of the file that checks their arguments; sums look for a kernel.
MOST = {
    "x * y": 3, "x * 2": 4, "x @ y": 5, "x.exp()": 3, "x.sum()": 8, "torch.softmax(x, -1)": 9,
    "(x * y).sum().backward()": 24,
}  # fmt: skip


@pytest.mark.parametrize("expression", MOST)
def test_an_op_goes_through_few_files(expression: str) -> None:
    (line,) = walk("--totals", expression)
    switches = int(line.split(", ")[-1].split()[0])
    assert 1 < switches <= MOST[expression]


def test_a_backward_pass_is_read_in_one_file() -> None:
    """Nearly all of `.backward()` stands in the engine's one file; rules and leaves apart."""
    lines = walk("(x * y).sum().backward()")[:-1]
    start = next(i for i, line in enumerate(lines) if "autograd/api.py" in line)
    backward = lines[start:]
    assert sum(line.startswith("|") for line in backward) <= 15
    files = {line.split()[-1].rpartition(":")[0] for line in backward}
    assert {f for f in files if f.startswith("core/engine/")} == {
        "core/engine/engine.py", "core/engine/accumulate_grad.py",
    }  # fmt: skip
