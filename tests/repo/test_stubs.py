"""The generated stubs are current, and a strictly typed program of a user's type-checks."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness import ROOT

PROGRAM = """
import rushlight as torch
from rushlight import Tensor


def loss(w: Tensor, x: Tensor) -> Tensor:
    return ((w @ x - 1.0) ** 2).sum().sqrt()


w = torch.ones(3, requires_grad=True)
x = torch.arange(3.0, dtype=torch.float32)
y = loss(w, x)
y.backward()
size: int = w.numel()
shape: torch.Size = w.shape
z: Tensor = torch.exp(w).mean(dim=0) + w[0] * 2
print(y.item(), torch.tensor([1, 2]).float(), z.detach().numpy(), torch.pi)
with torch.no_grad():
    w -= 0.1 * w.grad
a = torch.randn(2, 3, generator=torch.Generator().manual_seed(0))
for row in a:
    print(row.shape[0])
b: Tensor = torch.cat([a, a.clone()], dim=0).view(-1).to(torch.float64)
print(b.T, torch.is_tensor(b), -b, abs(b), b > 0, b == b, isinstance(b, torch.DoubleTensor))
torch.testing.assert_close(b, b)
"""
WRONG = """
import rushlight as torch

torch.ones(3).no_such_method()
torch.no_such_function(3)
torch.exp("text")
"""


def test_stubs_are_current() -> None:
    spec = importlib.util.spec_from_file_location("make_stubs", ROOT / "tools" / "make_stubs.py")
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    for name, text in tool.stubs().items():
        found = (ROOT / "src" / "rushlight" / name).read_text("utf-8")
        assert found == text, f"{name} is not current: run `python tools/make_stubs.py`"


def check(program: str, folder: Path) -> str:
    path = folder / "program.py"
    path.write_text(program, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", str(path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=300,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("program", [PROGRAM])
def test_a_users_program_type_checks(program: str, tmp_path: Path) -> None:
    assert "Success" in check(program, tmp_path)


def test_mistakes_are_found(tmp_path: Path) -> None:
    found = check(WRONG, tmp_path)
    assert '"no_such_method"' in found
    assert '"no_such_function"' in found
    assert 'incompatible type "str"; expected "Tensor"' in found
