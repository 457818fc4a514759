"""`save` and `load`: what comes back, what is refused, and that no half of a file is ever left."""

from __future__ import annotations

import io
import os
import pickle
import stat
import zipfile
from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
from rushlight import nn


def through(obj: Any, **options: Any) -> Any:
    file = io.BytesIO()
    torch.save(obj, file)
    file.seek(0)
    return torch.load(file, **options)


class Mine:
    def __init__(self, x: int) -> None:
        self.x = x


class Evil:
    def __reduce__(self) -> Any:
        return os.mkdir, ("never",)


class Unwilling:
    def __reduce__(self) -> Any:
        raise ValueError("not me")


@pytest.mark.parametrize(
    "dtype",
    "float32 float64 float16 bfloat16 int64 int32 uint8 uint16 bool complex64 complex128".split(),
)
def test_every_dtype(dtype: str) -> None:
    t = torch.tensor([0, 1, 2]).to(getattr(torch, dtype))
    back = through(t)
    assert back.dtype is t.dtype and torch.equal(back, t)
    back[0] = 1  # the memory is the tensor's own


def test_shapes_strides_and_shared_memory() -> None:
    base = torch.arange(12.0)
    tensors = [
        base, base[2:], base.view(3, 4).t(), torch.tensor(5.0), torch.empty(0, 3),
        torch.ones(1, 3).expand(2, 3), base.flip(0), torch.arange(9.0)[::2],
    ]  # fmt: skip
    back = through(tensors)
    for a, b in zip(tensors, back, strict=True):
        assert torch.equal(a, b) and a.stride() == b.stride()
    back[0][2] = 100
    assert back[1][0].item() == 100 and back[2][2, 0].item() == 100 and back[6][9].item() == 2


def test_flags_classes_and_attributes() -> None:
    p: Any = nn.Parameter(torch.ones(2))
    p.note = "mine"
    back = through([p, torch.ones(1, requires_grad=True), torch.ones(1)])
    assert type(back[0]) is nn.Parameter and back[0].note == "mine"
    assert [t.requires_grad for t in back] == [True, True, False]


def test_plain_things() -> None:
    things = {
        "dtype": torch.float16, "size": torch.Size([2, 3]), "device": torch.device("cpu"),
        "set": {1, 2}, "complex": 1j, "bytes": b"\x00abc", "none": None, "tuple": (1, [2.5, True]),
        "counter": Counter("aab"), "ordered": OrderedDict(b=1, a=2), 3: "text",
        "array": bytearray(b"x"),
    }  # fmt: skip
    assert through(things) == things


def test_a_training_run_is_taken_up_again(tmp_path: Path) -> None:
    def made() -> tuple[Any, Any]:
        net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
        return net, torch.optim.Adam(net.parameters(), lr=0.1)

    def step(net: Any, opt: Any) -> float:
        opt.zero_grad()
        loss = (net(torch.tensor([[1.0, 2.0], [3.0, 5.0]])) ** 2).sum()
        loss.backward()
        opt.step()
        return float(loss.item())

    net, opt = made()
    step(net, opt)
    torch.save({"net": net.state_dict(), "opt": opt.state_dict()}, tmp_path / "run.pt")
    expected = [step(net, opt) for _ in range(3)]
    net, opt = made()
    saved = torch.load(tmp_path / "run.pt")
    assert saved["net"]._metadata["1"] == {"version": 2}
    net.load_state_dict(saved["net"])
    opt.load_state_dict(saved["opt"])
    assert [step(net, opt) for _ in range(3)] == expected


def test_whole_objects_are_for_those_who_trust_them() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        through(net)
    back = through(net, weights_only=False)
    assert repr(back) == repr(net) and torch.equal(back[0].weight, net[0].weight)
    name = f"{Mine.__module__}.Mine"
    with pytest.raises(pickle.UnpicklingError, match=f"Unsupported global: GLOBAL {name} was not"):
        through(Mine(3))
    with torch.serialization.safe_globals([Mine]):
        assert through(Mine(3)).x == 3
    assert torch.serialization.get_safe_globals() == []


def test_nothing_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(pickle.UnpicklingError, match="mkdir"):
        through(Evil())
    assert not os.path.exists("never")


def test_a_file_cannot_change_the_functions_it_calls() -> None:
    from rushlight import serialize

    # GLOBAL of a safe function, then BUILD with attributes to set on it
    attack = b"\x80\x02crushlight.serialize\n_size\n(N}X\x05\x00\x00\x00__x__K\x01stb."
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("rushlight/data.pkl", attack)
        archive.writestr("rushlight/byteorder", "little")
    made.seek(0)
    with pytest.raises(
        pickle.UnpicklingError, match="\nWeightsUnpickler.*Can only build"
    ):
        torch.load(made)
    assert not hasattr(serialize._size, "__x__")


def test_map_location() -> None:
    t = torch.ones(2)
    seen: list[str] = []

    def here(storage: Any, location: str) -> Any:
        seen.append(location)
        return storage

    options: list[Any] = ["cpu", torch.device("cpu"), {"cpu": "cpu"}, here]
    for option in options:
        assert through(t, map_location=option).device.type == "cpu"
    assert seen == ["cpu"]
    if not torch.cuda.is_available():
        with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device"):
            through(t, map_location="cuda")


def test_a_failed_save_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "w.pt"
    torch.save(torch.ones(2), path)
    os.chmod(path, 0o640)
    with pytest.raises(ValueError, match="not me"):
        torch.save([torch.zeros(2), Unwilling()], path)
    assert torch.load(path).tolist() == [1, 1] and os.listdir(tmp_path) == ["w.pt"]
    torch.save(torch.zeros(2), str(path))
    assert torch.load(str(path)).tolist() == [0, 0]
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o640
    link = tmp_path / "link.pt"
    link.symlink_to(path)
    torch.save(torch.ones(1), link)
    assert link.is_symlink() and torch.load(path).tolist() == [1]


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(EOFError):
        torch.load(io.BytesIO())
    with pytest.raises(pickle.UnpicklingError, match="no file that"):
        torch.load(io.BytesIO(b"hello" * 100))
    file = io.BytesIO()
    torch.save(torch.ones(100), file)
    with pytest.raises(RuntimeError, match="failed finding central directory"):
        torch.load(io.BytesIO(file.getvalue()[:200]))
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "nothing.pt")
    with pytest.raises(RuntimeError, match="Parent directory .* does not exist"):
        torch.save(1, tmp_path / "no" / "x.pt")
    with pytest.raises(AttributeError, match="expected 'f' to be string, path, or a file-like"):
        torch.save(1, 3)
    with pytest.raises(
        AttributeError, match="You can only torch.load from a file that is seekable"
    ):
        torch.load(3)
    with pytest.raises(RuntimeError, match="explicit pickle_module"):
        torch.load(file, pickle_module=pickle, weights_only=True)
