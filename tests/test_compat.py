"""`import torch` gives rushlight, where that was asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.running import python, run


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
            split = {n: n.rpartition(".") for n in names}
            return {n: getattr(sys.modules[home], last) for n, (home, _, last) in split.items()}
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
