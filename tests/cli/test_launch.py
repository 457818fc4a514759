"""`rushlight run`: a program runs as under Python itself."""

from __future__ import annotations

import signal
import zipfile
from pathlib import Path

import pytest

import rushlight
from rushlight import cli
from tests.running import python, run

PROGRAMS = {
    "arguments": "import sys; print(sys.argv, sys.path[0], __name__, __file__)",
    "namespace": "import sys; print(sorted(vars(sys.modules['__main__'])), __spec__, __package__)",
    "status": "import sys; sys.exit(3)",
    "message": "import sys; sys.exit('gone wrong')",
    "error": "def f(x):\n    return 1 / x\n\n\nf(0)\n",
    "chained": "try:\n    {}['a']\nexcept KeyError as e:\n    raise ValueError('b') from e\n",
    "syntax": "x = 1\ny = = 2\n",
    "interrupted": "raise KeyboardInterrupt",
    "hook": "import sys\nsys.excepthook = lambda *a: print('mine', a[0].__name__)\n1 / 0\n",
    "at the end": "import atexit\nz = 3\natexit.register(lambda: print(z, __name__))\n",
    "pickle": "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A)\n",
    "encoding": "# coding: latin-1\nprint('\xe9')\n",
    "input": "print(input() * 2)",
    "warning": "import warnings\nwarnings.warn('careful')\n",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_script_runs_as_in_python(name: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(PROGRAMS[name], "latin-1")
    paths = ["script.py", "./script.py", str(script)]
    for path in paths if name == "arguments" else paths[:1]:
        expected = python(path, "-a", "b c", stdin="ab\n", cwd=tmp_path)
        assert run(path, "-a", "b c", stdin="ab\n", cwd=tmp_path) == expected
    if name == "interrupted":
        assert expected[0] == -signal.SIGINT


def test_code_modules_folders_and_standard_input_run_as_in_python(tmp_path: Path) -> None:
    says = "import sys; print(sys.argv, sys.path[0], __name__)"
    (tmp_path / "module.py").write_text(says)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "__main__.py").write_text(says + "; import beside")
    (tmp_path / "folder" / "beside.py").write_text("print('beside')")
    with zipfile.ZipFile(tmp_path / "archive", "w") as archive:
        archive.writestr("__main__.py", says + "; print(__file__)")
    for arguments in (["-c", says], ["-m", "module"], ["folder"], ["archive"], ["-"]):
        arguments = [*arguments, "x"]
        expected = python(*arguments, stdin=says, cwd=tmp_path)
        assert expected[0] == 0
        assert run(*arguments, stdin=says, cwd=tmp_path) == expected


def test_an_error_in_a_module_shows_only_the_users_frames(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text("def f():\n    1 / 0\n\nf()\n")
    status, _, errors = run("-m", "module", cwd=tmp_path)
    assert status == 1
    assert [line.split(",")[1] for line in errors.splitlines() if "File" in line] == [
        " line 4",
        " line 2",
    ]


def test_what_cannot_run(tmp_path: Path) -> None:
    missing = tmp_path / "missing.py"
    assert run(str(missing)) == (
        2,
        "",
        f"rushlight: can't open file {str(missing)!r}: [Errno 2] No such file or directory\n",
    )
    status, _, errors = run("-m", "no_such_module")
    assert status == 1
    assert errors.splitlines()[-1] == "ImportError: No module named no_such_module"
    for arguments in ([], ["-m"], ["-c"], ["-x"]):
        status, out, errors = run(*arguments)
        assert (status, out) == (2, "")
        assert "usage: rushlight run" in errors


def test_an_error_points_at_the_users_line(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import torch\nx = torch.ones(2, requires_grad=True)\n(x * 2).backward()\n")
    status, _, errors = run(str(script))
    assert status == 1
    assert errors.splitlines()[:2] == [
        "Traceback (most recent call last):",
        f'  File "{script}", line 3, in <module>',
    ]
    assert "RuntimeError: grad can be implicitly created only for scalar outputs" in errors


def test_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"rushlight {rushlight.__version__}\n"
    assert cli.main(["--help"]) == 0
    assert capsys.readouterr().out.startswith("usage: rushlight run")
    assert cli.main(["bogus"]) == 2
    assert "unknown command: bogus" in capsys.readouterr().err
    assert cli.main([]) == 2


@pytest.mark.parametrize("command", ["run", "doctor", "info", "kernels"])
def test_help_teaches(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    for word in ("-h", "--help"):
        assert cli.main([command, word]) == 0
        out = capsys.readouterr().out
        assert out.startswith(f"usage: rushlight {command}")
        assert f"\n  rushlight {command} " in out  # an example
        assert "\nexit status: " in out
        assert max(map(len, out.splitlines())) <= 100


def test_seed(tmp_path: Path) -> None:
    code = "import torch, random, numpy; print(torch.rand(1), random.random(), numpy.random.rand())"
    first, second, other = (run("--seed", n, "-c", code, cwd=tmp_path) for n in ("7", "7", "8"))
    assert first[0] == 0
    assert first == second != other


def test_starting_imports_little(tmp_path: Path) -> None:
    code = "import sys; print([m for m in ('conv', 'nn') if f'rushlight.ops.{m}' in sys.modules])"
    assert run("-c", code, cwd=tmp_path) == (0, "[]\n", "")
    code = "import sys; print('rushlight.cli.watch' in sys.modules, 'argparse' in sys.modules)"
    assert run("-c", code, cwd=tmp_path) == (0, "False False\n", "")
