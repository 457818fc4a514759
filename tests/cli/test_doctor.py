"""`rushlight doctor`: what is said of programs, and the exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rushlight import cli
from tests.harness import ROOT

GOOD = "import torch\nfrom torch import nn\nprint(nn.Linear(2, 1)(torch.ones(2)))\n"
BAD = """\
import torch
try:
    from torch.ao import quantization
except ImportError:
    quantization = None
x = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8)
print(x.int_repr(), [1].index(1))
"""


def test_all_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "good.py"
    script.write_text(GOOD)
    assert cli.main(["doctor", str(script)]) == 0
    assert capsys.readouterr().out == "1 file, 3 uses of 3 names of torch: all there\n"


def test_something_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "bad.py"
    script.write_text(BAD + "raise SystemExit('it was run')\n")
    assert cli.main(["doctor", str(script)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == str(script)
    assert [line for line in lines if line.startswith("  line")] == [
        "  line 3: torch.ao.quantization (guarded)",
        "  line 6: torch.quantize_per_tensor",
        "  line 7: torch.Tensor.int_repr",
    ]
    assert "      print(x.int_repr(), [1].index(1))" in lines
    assert lines[-1].endswith(": 2 lacking")


def test_guarded_uses_do_not_count(tmp_path: Path) -> None:
    script = tmp_path / "guarded.py"
    script.write_text("".join(BAD.splitlines(keepends=True)[:5]))
    assert cli.main(["doctor", str(script)]) == 0


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "bad.py"
    script.write_text(BAD)
    assert cli.main(["doctor", "--json", str(script)]) == 1
    said = json.loads(capsys.readouterr().out)
    assert (said["files"], said["unreadable"]) == (1, [])
    assert said["uses"] >= said["names"] > 3
    finding = said["lacking"][1]
    assert finding.pop("why") and finding.pop("nearest") == "x.to(torch.bfloat16)"
    assert finding == {
        "file": str(script),
        "line": 6,
        "column": 5,
        "name": "torch.quantize_per_tensor",
        "guarded": False,
        "source": BAD.splitlines()[5],
    }


def test_what_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "wrong.py").write_text("y = = 2\n")
    (tmp_path / "wrong.ipynb").write_text("{}")
    for path in (tmp_path / "wrong.py", tmp_path / "wrong.ipynb", tmp_path / "missing.py"):
        assert cli.main(["doctor", str(path)]) == 2
        said = capsys.readouterr()
        assert f"cannot read {path}" in said.err
        assert said.out.endswith(", 1 not read\n")
    for arguments in ([], ["--bogus", "x.py"]):
        assert cli.main(["doctor", *arguments]) == 2
        assert "usage: rushlight doctor" in capsys.readouterr().err


def test_folders_and_notebooks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["torch.nested"]},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "import torch\n", "!ls"]},
        {"cell_type": "code", "source": ["%%bash\n", "echo torch.nested ("]},
        {"cell_type": "code", "source": ["%%grad\n", "torch.nested"]},
    ]
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "n.ipynb").write_text(json.dumps({"cells": cells}))
    (tmp_path / "deep" / "good.py").write_text(GOOD)
    for hidden in (".git", "env", "__pycache__"):
        (tmp_path / hidden).mkdir()
        (tmp_path / hidden / "bad.py").write_text(BAD)
    (tmp_path / "env" / "pyvenv.cfg").touch()
    assert cli.main(["doctor", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert out.startswith(str(tmp_path / "deep" / "n.ipynb"))
    assert out.count("  line ") == out.count(": torch.nested\n") == 1
    assert "\n2 files, " in out


def test_our_examples_are_all_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", str(ROOT / "examples"), str(ROOT / "tests" / "programs")]) == 0
    assert capsys.readouterr().out.endswith("all there\n")
