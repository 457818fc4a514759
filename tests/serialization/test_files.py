"""Files of PyTorch's are loaded here, and ours there; and those of rushlight 0.1 still are."""

from __future__ import annotations

import base64
import importlib
import io
import pickle
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
from rushlight.serialization import names
from tests import harness
from tests.running import run
from tests.serialization import cases_files as cases

STORED = harness.stored("serialization/files")


@pytest.mark.parametrize(("name", "title"), cases.ALL)
def test_files_that_pytorch_wrote(name: str, title: str) -> None:
    stored = STORED[f"{name} {title}"]
    data = base64.b64decode(stored["file"])
    assert harness.as_stored(cases.read(torch, name, data)) == stored["look"]
    found = cases.read(torch, name, data, weights_only=False)
    assert harness.as_stored(found) == stored["look"]


@pytest.mark.parametrize("name", cases.OBJECTS)
def test_files_that_are_mapped(name: str, tmp_path: Path) -> None:
    stored = STORED[f"{name} zip"]
    path = tmp_path / "w.pt"
    path.write_bytes(base64.b64decode(stored["file"]))
    loaded = torch.load(path, mmap=True, weights_only=name not in cases.UNSAFE)
    assert harness.as_stored(cases.look(torch, loaded)) == stored["look"]


@pytest.mark.parametrize("protocol", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("name", cases.OBJECTS)
def test_our_own(name: str, protocol: int) -> None:
    data = cases.written(torch, name, pickle_protocol=protocol)
    unsafe = protocol < 2  # how those pickle bytes and classes, the safe reader does not know
    found = cases.read(torch, name, data, **({"weights_only": False} if unsafe else {}))
    assert found == cases.look(torch, cases.OBJECTS[name](torch))
    if protocol < 4:
        assert b"rushlight" not in data
    if harness.LIVE:
        assert cases.read(harness.pytorch(), name, data, weights_only=False) == found


if harness.LIVE:

    @pytest.mark.parametrize(("name", "title"), cases.ALL)
    def test_pytorch_loads_what_we_wrote(name: str, title: str, tmp_path: Path) -> None:
        lib = harness.pytorch()
        data = cases.written(torch, name, **cases.FORMATS[title])
        expected = cases.look(torch, cases.OBJECTS[name](torch))
        assert cases.read(lib, name, data) == expected
        assert cases.read(lib, name, data, weights_only=False) == expected
        if title == "zip":
            path = tmp_path / "w.pt"
            path.write_bytes(data)
            loaded = lib.load(path, mmap=True, weights_only=name not in cases.UNSAFE)
            assert cases.look(lib, loaded) == expected

    @pytest.mark.parametrize(("name", "title"), cases.ALL)
    def test_stored_files_are_pytorchs(name: str, title: str) -> None:
        lib = harness.pytorch()
        data = cases.written(lib, name, **cases.FORMATS[title])
        assert cases.read(torch, name, data) == cases.read(lib, name, data)


# --- rushlight 0.1 --------------------------------------------------------------------------------
OLD = harness.REFERENCE / "serialization" / "rushlight_0_1.pt"
OLD_MODULE = harness.REFERENCE / "serialization" / "rushlight_0_1_module.pt"


@pytest.mark.parametrize("options", [{}, {"weights_only": False}, {"mmap": True}])
def test_files_of_rushlight_0_1(options: dict[str, Any]) -> None:
    found = torch.load(OLD, **options)
    x = found["x"]
    assert x.tolist() == list(range(12)) and found["t"].stride() == (1, 4)
    x[2] = 100
    assert found["part"][0].item() == 100 and found["t"][2, 0].item() == 100
    assert type(found["p"]) is torch.nn.Parameter and found["p"].note == "mine"
    assert found["b"].dtype is torch.bfloat16 and found["z"].tolist() == [1 + 2j]
    assert found["size"] == torch.Size([2, 3]) and found["dtype"] is torch.float16
    assert found["device"] == torch.device("cpu") and found["g"].requires_grad
    assert found["set"] == {1, 2} and found["bytes"] == b"\0a"
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    net.load_state_dict(found["net"])
    torch.optim.Adam(net.parameters()).load_state_dict(found["opt"])


def test_a_module_of_rushlight_0_1() -> None:
    net = torch.load(OLD_MODULE, weights_only=False)
    assert net(torch.ones(4, 2)).shape == (4, 3)


# --- sharing --------------------------------------------------------------------------------------
def test_two_dtypes_over_one_memory() -> None:
    x = torch.arange(3.0)
    file = io.BytesIO()
    torch.save({"x": x, "bits": x.view(torch.int32), "small": x.view(torch.uint16)}, file)
    file.seek(0)
    back = torch.load(file)
    back["bits"][1] = 0
    assert back["x"].tolist() == [0, 0, 2] and back["small"].dtype is torch.uint16
    if harness.LIVE:  # PyTorch refuses to save such, but loads them
        file.seek(0)
        there = harness.pytorch().load(file)
        there["bits"][1] = 0
        assert there["x"].tolist() == [0, 0, 2] and there["small"].shape == (6,)
    with pytest.raises(RuntimeError, match="Cannot save multiple tensors or storages that view"):
        torch.save([x, x.untyped_storage()], io.BytesIO())


# --- under the name of torch ----------------------------------------------------------------------
UNDER_ALIAS = """
import io
import pickle
import pickle
import torch
from torch._utils import _rebuild_tensor_v2
from torch.serialization import add_safe_globals, load, safe_globals

file = io.BytesIO()
torch.save({"net": torch.nn.Linear(1, 1).state_dict(), "x": torch.arange(2)}, file)
file.seek(0)
print(load(file)["x"], b"rushlight" in file.getvalue(), torch.save.__module__.split(".")[0])
"""
SAFETENSORS = """
import torch
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model

names = "float32 float64 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64 float8_e5m2"
made = {n: torch.tensor([0.0, 1.0, 2.0]).to(getattr(torch, n)) for n in names.split()}
made |= {"rows": torch.arange(6.0).view(2, 3), "none": torch.empty(0, 3), "one": torch.tensor(3.0)}
save_file(made, "w.safetensors", metadata={"a": "b"})
for found in (load_file("w.safetensors"), load(save(made))):
    for name, t in made.items():
        assert found[name].dtype is t.dtype and found[name].shape == t.shape, name
        assert found[name].tolist() == t.tolist(), name
with safe_open("w.safetensors", framework="pt") as file:
    assert file.get_slice("rows")[:, 1:].tolist() == [[1, 2], [4, 5]]
net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 2))
save_model(net, "net.safetensors")
print(load_model(net, "net.safetensors"))
"""


def test_a_program_that_imports_torch(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(UNDER_ALIAS)
    code, out, err = run("program.py", cwd=tmp_path)
    assert (code, out) == (0, "tensor([0, 1]) False rushlight\n"), err


def test_safetensors(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    (tmp_path / "program.py").write_text(SAFETENSORS)
    code, out, err = run("program.py", cwd=tmp_path)
    assert (code, out) == (0, "(set(), [])\n"), err


def test_pickles_name_functions_by_where_users_find_them() -> None:
    for fn in (torch.nn.functional.gelu, torch.nn.functional.relu, torch.sin, torch.matmul):
        assert pickle.loads(pickle.dumps(fn)) is fn


def test_every_module_is_spelt_as_pytorch_spells_it() -> None:
    classes = [c for c in vars(torch.nn).values() if isinstance(c, type)]
    homes = {names.theirs(c.__module__, c.__qualname__) for c in classes}
    assert ("torch.nn.modules.linear", "Linear") in homes and len(homes) > 40
    if harness.LIVE:
        for module, name in homes:
            assert hasattr(importlib.import_module(module), name), (module, name)
