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


LIBRARIES = """
import warnings
import torch
from torch.nn.modules.batchnorm import _BatchNorm, _NormBase
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.modules.instancenorm import _InstanceNorm
from torch.nn.modules.loss import _Loss, _WeightedLoss
assert issubclass(torch.nn.SyncBatchNorm, _BatchNorm) and issubclass(_InstanceNorm, _NormBase)
assert isinstance(torch.nn.Dropout2d(), _DropoutNd)
assert isinstance(torch.nn.NLLLoss(), _WeightedLoss) and issubclass(torch.nn.CTCLoss, _Loss)
kinds = [x for x in vars(torch.optim).values() if isinstance(x, type) and x.__module__]
assert torch.optim.RMSprop in kinds and torch.optim.Rprop in kinds  # though imported late
assert torch.torch is torch and "numpy" in torch.__config__.show()
from torch.distributions.multivariate_normal import Distribution, broadcast_all
from torch._C import _TensorMeta, _disabled_torch_function_impl
assert type(torch.Tensor) is _TensorMeta and Distribution is torch.distributions.Distribution
assert torch._C._nn._parse_to("cpu", torch.int64) == (torch.device("cpu"), torch.int64, False, None)
assert torch._C._nn._parse_to(dtype=torch.half, non_blocking=True)[1:3] == (torch.half, True)
inside = []
torch.vmap(lambda x: inside.append(torch._C._are_functorch_transforms_active()) or x)(torch.ones(2))
assert inside == [True] and not torch._C._are_functorch_transforms_active()
x = torch.ones(4)
assert torch._C._is_alias_of(x, x[1:]) and not torch._C._is_alias_of(x, x + 1)
torch._C._jit_set_profiling_executor(False)
keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU) | torch._C.DispatchKeySet()
with torch._C._ExcludeDispatchKeyGuard(keys):
    assert keys.has(torch._C.DispatchKey.CPU)
assert torch.cuda.get_rng_state_all() == [] or torch.cuda.is_available()
assert not isinstance(x, (torch.cuda.Stream, torch.cuda.Event, torch.Stream, torch._C.Value))
assert torch.get_device_module("cpu") is torch.cpu
assert isinstance(x.untyped_storage(), torch.StorageBase)
from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
with TransformGetItemToIndex():
    print(torch.vmap(lambda i: torch.arange(3)[i] * 2)(torch.tensor([2, 0])))
try:
    torch.ops.load_library("lib.so")
except OSError:
    torch.library.register_fake("lib::op", lambda x: x)  # of an operator that could not be loaded
for entry in warnings.filters:
    assert entry[1] is None or isinstance(entry[1].pattern, str)
"""


def test_what_libraries_import() -> None:
    assert run("-c", LIBRARIES) == (0, "tensor([4, 0])\n", "")
