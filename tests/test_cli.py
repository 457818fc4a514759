"""The `rushlight` command and compat: what says `import torch` runs as under Python itself."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import types
import zipfile
from pathlib import Path

import pytest

import rushlight
from rushlight import __config__, cli
from tests.harness import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def python(*arguments: str, stdin: str = "", cwd: Path | None = None) -> tuple[int, str, str]:
    """Exit status, output and errors of Python with these arguments."""
    done = subprocess.run(
        [sys.executable, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=cwd,
        timeout=120,
    )
    return done.returncode, done.stdout, done.stderr


def run(*arguments: str, stdin: str = "", cwd: Path | None = None) -> tuple[int, str, str]:
    return python("-m", "rushlight", "run", *arguments, stdin=stdin, cwd=cwd)


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


def test_torch_is_rushlight_in_a_program(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import torch, rushlight\n"
        "import torch.nn as nn, torch.nn.functional as F\n"
        "from torch import nn as nn2, optim\n"
        "from torch.autograd import Variable, Function\n"
        "from torch.autograd.function import Function as Function2\n"
        "assert torch is rushlight and nn is nn2 is torch.nn is rushlight.nn\n"
        "assert F is rushlight.nn.functional and optim is rushlight.optim\n"
        "assert Function is Function2 is torch.autograd.Function\n"
        "assert rushlight.nn.__spec__.name == rushlight.nn.__name__ == 'rushlight.nn'\n"
        "print(Variable(torch.ones(2)) + 1)\n"
    )
    assert run(str(tmp_path / "script.py")) == (0, "tensor([2., 2.])\n", "")


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


COMPAT = {
    "unknown modules are named": """
        from rushlight import compat
        compat.install()
        for name in ("torch.nonsense", "torch.nn.nonsense", "torch.nonsense.deeper"):
            try:
                importlib.import_module(name)
            except ModuleNotFoundError as error:
                assert "rushlight" in str(error) and str(error).startswith("No module named '")
                assert error.name in (name, "torch.nonsense")
            else:
                raise AssertionError(name)
        """,
    "the real torch is not pushed aside": """
        from types import ModuleType
        from rushlight import compat
        real = sys.modules["torch"] = ModuleType("torch")
        real.__file__ = "/somewhere/torch/__init__.py"
        try:
            compat.install()
        except RuntimeError as error:
            assert "torch is already imported, from /somewhere/torch/__init__.py" in str(error)
        else:
            raise AssertionError
        assert not compat.installed() and sys.modules["torch"] is real
        compat.uninstall()
        assert sys.modules["torch"] is real
        """,
    "it comes and goes": """
        import rushlight
        from rushlight import compat
        with compat.install():
            import torch.autograd
            with compat.install():
                import torch.nn
            assert compat.installed() and sys.modules["torch"] is rushlight
        assert not compat.installed()
        assert not [name for name in sys.modules if name.split(".")[0] == "torch"]
        assert rushlight.autograd.__spec__.name == "rushlight.autograd"
        importlib.reload(rushlight.autograd)
        """,
    "a function keeps its name beside a module of that name": """
        import pkgutil
        from types import ModuleType
        import rushlight
        from rushlight import compat
        names = [m.name for m in pkgutil.walk_packages(rushlight.__path__, "rushlight.")]
        names = [name for name in names if not name.endswith("__main__")]
        def attributes():
            pairs = [(sys.modules[n.rpartition(".")[0]], n.rpartition(".")[2]) for n in names]
            return {f"{p.__name__}.{n}": getattr(p, n) for p, n in pairs}
        for name in names:
            importlib.import_module(name)
        before = attributes()
        shared = [name for name, x in before.items() if not isinstance(x, ModuleType)]
        assert "rushlight.autograd.gradcheck" in shared, shared
        compat.install()
        from torch.autograd.gradcheck import gradgradcheck
        import torch.autograd.gradcheck as gradcheck
        assert gradcheck is rushlight.autograd.gradcheck is before["rushlight.autograd.gradcheck"]
        assert gradgradcheck is rushlight.autograd.gradgradcheck
        for name in names:
            importlib.import_module("torch" + name.removeprefix("rushlight"))
        after = attributes()
        assert [n for n in before if after[n] is not before[n]] == []
        """,
    "only torch is touched": """
        from rushlight import compat
        compat.install()
        try:
            import torchvision_of_another_name
        except ModuleNotFoundError as error:
            assert "rushlight" not in str(error)
        """,
}


@pytest.mark.parametrize("name", COMPAT)
def test_compat(name: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    body = "\n".join(line.removeprefix("        ") for line in COMPAT[name].splitlines())
    script.write_text("import importlib, sys\n" + body)
    assert python(str(script)) == (0, "", "")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example(example: Path) -> None:
    status, out, errors = run(str(example))
    assert (status, errors) == (0, "")
    assert out


def test_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"rushlight {rushlight.__version__}\n"
    assert cli.main(["--help"]) == 0
    assert capsys.readouterr().out.startswith("usage: rushlight run")
    assert cli.main(["bogus"]) == 2
    assert "unknown command: bogus" in capsys.readouterr().err
    assert cli.main([]) == 2
    assert cli.main(["info"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"rushlight {rushlight.__version__}\n")
    for name in ("python", "numpy", "scipy", "cupy", "compiled"):
        assert f"\n  {name} " in out


def test_config_tells_what_is_compiled(capsys: pytest.CaptureFixture[str]) -> None:
    modules = __config__.compiled()
    __config__.show()
    out = capsys.readouterr().out
    assert ("compiled   yes: core." in out) == bool(modules)
    assert ("compiled   no: " in out) == (not modules)
    for name in modules:
        assert not str(importlib.import_module(name).__file__).endswith(".py")


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ({"RUSHLIGHT_PURE": "1"}, "RUSHLIGHT_PURE=1"),
        ({"RUSHLIGHT_PURE": "", "CC": "/no/such/cc"}, "no working C compiler ("),
    ],
)
def test_a_build_without_compiling_says_why(
    setting: dict[str, str], reason: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_py", "--build-lib", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, **setting},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if "rushlight" in line]
    assert line.startswith(f"rushlight: the core stays interpreted, and is slower for it: {reason}")
    record = json.loads((tmp_path / "rushlight" / "_build.json").read_text())
    assert record["compiled"] == {}
    assert record["pure_because"].startswith(reason)
    assert not list(tmp_path.rglob("*.so"))


def test_a_compiler_can_be_insisted_on(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_py", "--build-lib", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "RUSHLIGHT_PURE": "0", "CC": "/no/such/cc"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1
    assert "asks for compiled modules, but no working C compiler" in done.stderr
    assert not list(tmp_path.iterdir())


def test_an_edited_source_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert __config__.stale() == []
    monkeypatch.setattr(__config__, "compiled", lambda: ["rushlight.cli"])
    monkeypatch.setattr(__config__, "_record", lambda: {"compiled": {"rushlight.cli": "0"}})
    assert __config__.stale() == ["rushlight.cli"]
    monkeypatch.setattr(__config__.os.path, "exists", lambda path: True)
    __config__.check_fresh()  # not written since it was compiled: nobody reads it
    monkeypatch.setattr(__config__.os.path, "getmtime", lambda path: path.endswith("cli.py"))
    module = types.SimpleNamespace(__file__="cli.so")
    monkeypatch.setitem(sys.modules, "rushlight.cli", module)
    with pytest.warns(RuntimeWarning, match=r"rushlight\.cli is older than its source"):
        __config__.check_fresh()
