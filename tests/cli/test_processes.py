"""`rushlight launch`: the command line; what it starts is in tests/distributed/test_starting.py."""

from __future__ import annotations

import sys

import pytest

from rushlight.cli import main, processes


def test_the_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "find_mpiexec", lambda: "/usr/bin/mpiexec")
    assert main(["launch", "-n", "4", "--dry-run", "train.py", "-n", "3"]) == 0
    run = f"{sys.executable} -m rushlight run"
    assert capsys.readouterr().out == f"/usr/bin/mpiexec -n 4 {run} train.py -n 3\n"
    line = ["launch", "--nproc=2", "--hosts=a,b", "--mpiexec", "/x/mpiexec", "--dry-run"]
    assert main([*line, "-m", "pack.train"]) == 0
    assert capsys.readouterr().out == f"/x/mpiexec -n 2 --host a,b {run} -m pack.train\n"


@pytest.mark.parametrize(
    ("line", "trouble"),
    [
        (["train.py"], "launch wants -n and a number of processes"),
        (["-n", "0", "train.py"], "launch wants -n and a number of processes"),
        (["-n", "2"], "launch wants a script, or -m module"),
        (["-n"], "-n wants a value"),
        (["-n", "2", "--fast", "train.py"], "unknown option of launch: --fast"),
    ],
)
def test_wrong_command_lines(
    line: list[str], trouble: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["launch", *line]) == 2
    assert capsys.readouterr().err.startswith(f"rushlight: {trouble}\nusage: rushlight launch")


def test_without_mpiexec(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "find_mpiexec", lambda: None)
    assert main(["launch", "-n", "2", "train.py"]) == 1
    assert "pip install mpi4py mpich" in capsys.readouterr().err


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["launch", "--help"]) == 0
    assert capsys.readouterr().out == processes.USAGE
