"""`save` and `load`: what comes back, what is refused, and that no half of a file is ever left."""

from __future__ import annotations

import errno
import gc
import io
import mmap
import os
import pickle
import stat
import sys
import threading
import weakref
import zipfile
from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.arrays.host import root_of
from rushlight.serialization import locations, replace


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
    from rushlight.serialization import old

    # GLOBAL of a safe function, then BUILD with attributes to set on it
    attack = b"\x80\x02crushlight.serialize\n_size\n(N}X\x05\x00\x00\x00__x__K\x01stb."
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("rushlight/data.pkl", attack)
        archive.writestr("rushlight/byteorder", "little")
    made.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="\nWeightsUnpickler.*Can only build"):
        torch.load(made)
    assert not hasattr(old._size, "__x__")


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


# --- files that are damaged, or mean harm ---------------------------------------------------------
TENSOR = (
    b"crushlight.serialize\n_tensor\n((X\x07\x00\x00\x00storageX\x01\x00\x00\x000X\x03\x00\x00\x00cpu"
    b"tQX\x0d\x00\x00\x00torch.float32%s%s%sI00\nX\x06\x00\x00\x00Tensor}tR"
)
ONE = TENSOR % (b"(K\x02t", b"(K\x01t", b"K\x00")
STORAGE = (
    b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x10tQ"
)
PYTORCH = b"ctorch._utils\n_rebuild_tensor_v2\n(" + STORAGE + b"%s%s%sI00\nNtR"
TWO = PYTORCH % (b"K\x00", b"(K\x02t", b"(K\x01t")


def archive(pkl: bytes, how: int = zipfile.ZIP_STORED, memory: bytes = bytes(64)) -> io.BytesIO:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", how) as written:
        written.writestr("rushlight/data.pkl", b"\x80\x02" + pkl + b".")
        written.writestr("rushlight/byteorder", sys.byteorder)
        written.writestr("rushlight/data/0", memory)
    made.seek(0)
    return made


def test_a_pickle_written_by_hand() -> None:
    assert torch.load(archive(ONE)).tolist() == [0.0, 0.0]
    assert torch.load(archive(TWO)).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("shape", "stride", "offset"),
    [
        (b"(J\xff\xff\xff\xfft", b"(K\x01t", b"K\x00"),  # a negative size
        (b"(K\x02t", b"(J\xff\xff\xff\xfft", b"K\x00"),  # a negative stride
        (b"(K\x02t", b"(K\x01t", b"J\xfc\xff\xff\xff"),  # a negative offset
        (b"(K\x02t", b"(K\x01t", b"K\x02"),  # an offset between two elements
        (b"(K\x11t", b"(K\x01t", b"K\x00"),  # longer than the memory
        (b"(K\x02t", b"(K\x10t", b"K\x00"),  # a stride that leads out of it
        (b"(K\x02t", b"(t", b"K\x00"),  # fewer strides than sizes
        (b"(G@\x00\x00\x00\x00\x00\x00\x00t", b"(K\x01t", b"K\x00"),  # 2.0
        (b"(\x8a\x0a" + bytes(9) + b"\x01t", b"(K\x00t", b"K\x00"),  # 2 ** 72
        (b"(K\x00\x8a\x0a" + bytes(9) + b"\x01t", b"(K\x00K\x00t", b"K\x00"),
        (b"K\x02", b"(K\x01t", b"K\x00"),  # no tuple
    ],
)
def test_tensors_that_do_not_fit_their_memory(shape: bytes, stride: bytes, offset: bytes) -> None:
    with pytest.raises(RuntimeError, match="setStorage|PytorchStreamReader failed"):
        torch.load(archive(TENSOR % (shape, stride, offset)))
    if offset != b"K\x02":  # there, it counts elements
        with pytest.raises(RuntimeError, match="setStorage|PytorchStreamReader failed"):
            torch.load(archive(PYTORCH % (offset, shape, stride)))


@pytest.mark.parametrize(
    "pkl",
    [
        ONE + b"}X\x05\x00\x00\x00arrayK\x01sb",  # BUILD of a tensor
        ONE + b"X\x01\x00\x00\x00kK\x01s",  # SETITEM
        ONE + b"K\x01a",  # APPEND
        b"cbuiltins\nbytearray\n(\x8a\x06\x00\x00\x00\x00\x00\x01tR",  # a terabyte of zeros
        b"cbuiltins\nset\n(" + ONE + b"tR",
        b"c_codecs\nencode\n(X\x01\x00\x00\x00aX\x04\x00\x00\x00idnatR",
        b"Nr\xff\xff\xff\x7f0" + b"h\x05",  # the memo, at a place that was not filled
        b"\x8e" + bytes(6) + b"\x01\x00abc",  # bytes that are not there
        b"})" + b"2\x86" * 60 + b"K\x01s",  # a key whose hash takes a year
        b"})" + b"\x85" * 100_000 + b"K\x01s",  # a key too deep to be hashed
        b"L" + b"9" * 5000 + b"L\n",
        b"R", b"t", b"(", b"a", b"K", b"g7\n", b"(iposix\nsystem\n", b"\x82\x01", b"Pid\n",
        b"K\x01Q", b"]]s", b"}(K\x01u", b"K\x01]K\x02s", b"crushlight.serialize\n_tensor\n)R",
        b"crushlight.serialize\n_dtype\n(X\x02\x00\x00\x00notR",
        b"crushlight.serialize\nLoaded\n)R", b"crushlight.serialize\nio.BytesIO\n)R",
        TWO + b"}X\x05\x00\x00\x00arrayK\x01sb",
        STORAGE + b"}X\x06\x00\x00\x00_arrayK\x01sb",  # BUILD of a storage
        b"ctorch\nFloatStorage\n(\x8a\x06\x00\x00\x00\x00\x00\x01tR",  # a call of a class
        b"ctorch\nTensor\n(\x8a\x06\x00\x00\x00\x00\x00\x01tR", b"ctorch\nFloatStorage\n)\x81",
        b"ctorch\nload\n(X\x01\x00\x00\x00xtR", b"ctorch\nfloat32\n)R",
        b"crushlight.serialization.rebuild\n_made\n)R", b"ctorch._utils\n_made\n)R",
        b"ctorch._utils\n_rebuild_parameter\n(K\x01K\x01NtR",
        b"ctorch._utils\n_rebuild_tensor_v2\n(NK\x00(t(tI00\nNtR",
        b"ctorch._utils\n_rebuild_tensor_v3\n(" + STORAGE + b"K\x00(t(tI00\nNK\x05tR",
        b"ctorch._utils\n_rebuild_tensor_v2\n(" + STORAGE + b"K\x00(t(tI00\nNK\x05tR",
        b"ctorch._tensor\n_rebuild_from_type_v2\n(cbuiltins\nset\nctorch\nTensor\n(](tNtR",
        b"ctorch._tensor\n_rebuild_from_type_v2\n(" + TWO + b"ctorch\nTensor\n)NtR",
        b"ctorch._utils\n_rebuild_sparse_tensor\n(K\x01)tR",
        b"ctorch.serialization\n_get_layout\n(X\x05\x00\x00\x00dtypetR",
        b"ctorch\nSize\n(X\x01\x00\x00\x00atR",
        STORAGE.replace(b"FloatStorage", b"Tensor"), STORAGE.replace(b"K\x10t", b"Nt"),
    ],
)  # fmt: skip
def test_pickles_that_mean_harm(pkl: bytes) -> None:
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        torch.load(archive(pkl))


def test_attributes_cannot_reach_inside_a_tensor() -> None:
    state = b"}(X\x06\x00\x00\x00_arrayK\x01X\x04\x00\x00\x00noteK\x02X\x04\x00\x00\x00gradK\x03u"
    args = TWO.partition(b"\n_rebuild_tensor_v2\n")[2].removesuffix(b"R")
    made = torch.load(
        archive(
            b"ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_tensor_v2\n"
            b"ctorch\nTensor\n" + args + state + b"tR"
        )
    )
    assert made.tolist() == [0, 0] and made.note == 2 and made.grad is None


def test_a_storage_of_another_length_than_the_pickle_says() -> None:
    with pytest.raises(RuntimeError, match="it has 64 bytes for 17 elements"):
        torch.load(archive(STORAGE.replace(b"K\x10t", b"K\x11t")))


def test_a_file_may_hold_no_more_than_it_is_long() -> None:
    with pytest.raises(RuntimeError, match="it is compressed or encrypted"):
        torch.load(archive(ONE, zipfile.ZIP_DEFLATED, bytes(10_000_000)))
    whole = archive(ONE).getvalue()
    at = whole.rfind(b"PK\x01\x02")  # the entry of the memory: say that it is 2 GB long
    lie = whole[: at + 20] + b"\xff\xff\xff\x7f" * 2 + whole[at + 28 :]
    with pytest.raises(RuntimeError, match="its entries are longer than the file"):
        torch.load(io.BytesIO(lie))


def test_damaged_files_say_which_and_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "w.pt"
    torch.save({"w": torch.arange(100.0)}, path)
    good = path.read_bytes()
    start = "PytorchStreamReader failed reading "
    end = good.rfind(b"PK\x05\x06")
    for damaged, text in [
        (good[:300], "zip archive: failed finding central directory"),
        (good[:-10], "zip archive: failed finding central directory"),
        (good[: end + 12] + b"\xff\xff\xff\x7f" + good[end + 16 :], "zip archive: failed"),
        (good[:200] + good[300:], ""),
        (good.replace(torch.arange(100.0).numpy().tobytes()[40:44], b"ouch"), "file data/0: file"),
        (good.replace(b"FloatStorage", b"ShortStorage"), "file data.pkl: file read failed"),
    ]:
        path.write_bytes(damaged)
        with pytest.raises(RuntimeError, match=start + text) as caught:
            torch.load(path)
        said = str(caught.value)
        assert f"{path}, {len(damaged)} bytes: " in said and "Copy or download it again" in said
    path.write_bytes(b"")
    with pytest.raises(EOFError, match="w.pt is empty"):
        torch.load(path)


def test_memory_goes_with_what_was_loaded(tmp_path: Path) -> None:
    gc.collect()
    gc.disable()
    try:
        for options in ({}, {"weights_only": False}, {"pickle_module": pickle}):
            torch.save({"w": torch.ones(3)}, tmp_path / "w.pt", **_module(options))
            found = torch.load(tmp_path / "w.pt", **options)
            memory = weakref.ref(found["w"]._array.base)
            assert memory() is not None
            del found
            assert memory() is None
    finally:
        gc.enable()


def _module(options: dict[str, Any]) -> dict[str, Any]:
    return {"pickle_module": pickle} if "pickle_module" in options else {}


class Python:
    """A pickle module of Python's slower half."""

    Pickler, Unpickler = pickle._Pickler, pickle._Unpickler  # type: ignore[attr-defined]


def test_other_pickle_modules() -> None:
    file = io.BytesIO()
    torch.save({"w": torch.arange(3)}, file, Python)
    file.seek(0)
    assert torch.load(file, pickle_module=Python)["w"].tolist() == [0, 1, 2]


class Writing(io.BytesIO):
    """A file during whose writing the tensor is written, too."""

    def __init__(self, t: Any) -> None:
        super().__init__()
        self.t = t

    def write(self, data: Any) -> int:
        self.t.add_(1)
        return super().write(data)


def test_a_tensor_that_is_written_while_it_is_saved() -> None:
    t = torch.zeros(1000)
    file = Writing(t)
    torch.save(t, file)
    file.seek(0)
    assert torch.load(file).shape == (1000,)


# --- the old file or the new one ------------------------------------------------------------------
def refuse(errno_: int) -> Any:
    def refused(*args: Any, **options: Any) -> Any:
        raise OSError(errno_, os.strerror(errno_))

    return refused


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "w.pt"
    torch.save(torch.ones(2), path)
    monkeypatch.setattr(replace, "_new_file", refuse(errno.EACCES))
    torch.save(torch.zeros(3), path)  # the file itself can be
    assert torch.load(path).tolist() == [0, 0, 0]
    with pytest.raises(PermissionError):
        torch.save(1, tmp_path / "other.pt")
    monkeypatch.setattr(replace, "_new_file", refuse(errno.ENOSPC))
    with pytest.raises(OSError, match="No space"):
        torch.save(torch.ones(1), path)
    assert torch.load(path).tolist() == [0, 0, 0]


def test_a_file_that_cannot_be_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "w.pt"
    torch.save(torch.ones(2), path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", refuse(errno.EBUSY))  # as a file that is mounted
        torch.save(torch.zeros(3), path)
        with pytest.raises(OSError, match="busy"):
            torch.save(1, tmp_path / "new.pt")
    assert torch.load(path).tolist() == [0, 0, 0] and os.listdir(tmp_path) == ["w.pt"]


@pytest.mark.parametrize("named", [False, True])
def test_what_a_killed_save_left_is_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    if named:  # as on file systems whose files must have a name
        new = replace._named_file
        monkeypatch.setattr(replace, "_new_file", lambda folder, part: new(part))
    path = tmp_path / ("w" * 240 + ".pt")
    parts: list[str] = []
    put = replace._put_in_place

    def watched(file: Any, part: str, named: bool, to: str) -> None:
        parts.append(part)
        put(file, part, named, to)

    monkeypatch.setattr(replace, "_put_in_place", watched)
    torch.save(torch.ones(2), path)
    Path(parts[0]).write_bytes(b"half" * 1000)
    torch.save(torch.zeros(2), path)
    assert torch.load(path).tolist() == [0, 0] and os.listdir(tmp_path) == [path.name]
    with pytest.raises(ZeroDivisionError), replace.replacing(str(path)) as file:
        with replace.replacing(str(path)) as other:  # two at once
            torch.save(torch.ones(1), other)
        file.write(b"half")
        raise ZeroDivisionError
    assert torch.load(path).tolist() == [1] and os.listdir(tmp_path) == [path.name]


def test_many_saves_to_one_file_take_turns(tmp_path: Path) -> None:
    path = tmp_path / "w.pt"
    failed: list[BaseException] = []

    def save(number: int) -> None:
        try:
            for _ in range(40):
                torch.save({"w": torch.full((3,), float(number))}, path)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=save, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and torch.load(path)["w"].unique().numel() == 1
    assert [p.name for p in tmp_path.iterdir()] == ["w.pt"]


# --- options --------------------------------------------------------------------------------------
def test_files_are_laid_out_as_pytorchs(tmp_path: Path) -> None:
    torch.save({"w": torch.ones(3)}, tmp_path / "some.model.pt")
    data = (tmp_path / "some.model.pt").read_bytes()
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        entries = file.infolist()
        assert [e.filename.removeprefix("some.model/") for e in entries] == [
            "data.pkl", ".format_version", ".storage_alignment", "byteorder", "data/0", "version",
            ".data/serialization_id",
        ]  # fmt: skip
        for e in entries:
            header = data[e.header_offset : e.header_offset + 30]
            name, room = int.from_bytes(header[26:28], "little"), header[28:30]
            start = e.header_offset + 30 + name + int.from_bytes(room, "little")
            assert start % 64 == 0 and e.compress_type == zipfile.ZIP_STORED and not e.extra
            assert data[start : start + e.file_size] == file.read(e)
        assert file.read("some.model/version") == b"3\n"


def test_files_without_checksums() -> None:
    file = io.BytesIO()
    torch.serialization.set_crc32_options(False)
    try:
        torch.save(torch.ones(3), file)
    finally:
        torch.serialization.set_crc32_options(True)
    assert {e.CRC for e in zipfile.ZipFile(file).infolist()} == {0}
    file.seek(0)
    assert torch.load(file).tolist() == [1, 1, 1]


def rewritten(data: bytes, **changed: bytes | None) -> io.BytesIO:
    """An archive with entries changed, or left out."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            entry = changed.get(name.partition("/")[2].replace("/", "_"), old.read(name))
            if entry is not None:
                new.writestr(name, entry)
    made.seek(0)
    return made


def test_the_other_order_of_bytes() -> None:
    values = [torch.tensor([1, 2]), torch.tensor([1 + 2j]), torch.tensor([True, False])]
    file = io.BytesIO()
    torch.save(values, file)
    swapped = {
        "data_0": values[0].numpy().byteswap().tobytes(),
        "data_1": values[1].numpy().byteswap().tobytes(),
    }
    other = "big" if sys.byteorder == "little" else "little"
    back = torch.load(rewritten(file.getvalue(), byteorder=other.encode(), **swapped))
    assert [t.tolist() for t in back] == [t.tolist() for t in values]
    endian = torch.serialization.LoadEndianness
    silent = rewritten(file.getvalue(), byteorder=None, **swapped)
    torch.serialization.set_default_load_endianness(endian[other.upper()])
    try:
        assert torch.load(silent)[0].tolist() == [1, 2]
    finally:
        torch.serialization.set_default_load_endianness(None)
    with pytest.raises(RuntimeError, match="unknown endianness type: 'middle'"):
        torch.load(rewritten(file.getvalue(), byteorder=b"middle"))
    with pytest.raises(TypeError, match="Invalid argument type in function set_default_load"):
        torch.serialization.set_default_load_endianness(3)  # type: ignore[arg-type]


def test_mapped_files(tmp_path: Path) -> None:
    path = tmp_path / "w.pt"
    x = torch.arange(1000.0)
    torch.save({"x": x, "y": x[3:], "none": torch.empty(0)}, path)
    before = path.read_bytes()
    back = torch.load(path, mmap=True)
    assert isinstance(root_of(back["x"]._array).base.obj, mmap.mmap)
    back["x"][3] = -1
    assert back["y"][0].item() == -1 and path.read_bytes() == before
    with torch.serialization.set_default_mmap_options(mmap.MAP_SHARED):
        torch.load(path, mmap=True)["x"][3] = -2
    assert torch.load(path, mmap=True)["x"][3].item() == -2  # it was written into the file
    with pytest.raises(RuntimeError, match="bad CRC-32"):
        torch.load(path)
    with pytest.raises(ValueError, match="f must be a file path in order to use the mmap"):
        torch.load(io.BytesIO(before), mmap=True)
    torch.save(x, path, _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="mmap can only be used with files saved with"):
        torch.load(path, mmap=True)
    with pytest.raises(ValueError, match="expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got 9"):
        torch.serialization.set_default_mmap_options(9)


def test_numbers_can_be_left_out(tmp_path: Path) -> None:
    with torch.serialization.skip_data():
        torch.save([torch.ones(2), torch.arange(3)[1:]], tmp_path / "w.pt")
    back = torch.load(tmp_path / "w.pt")
    assert [t.tolist() for t in back] == [[0, 0], [0, 0]] and back[1].storage_offset() == 1


def test_locations() -> None:
    def restore(storage: Any, location: str) -> Any:
        return storage.clone().fill_(0) if location == "attic" else None

    with pytest.raises(RuntimeError, match="don't know how to restore data location of torch.stor"):
        through(torch.ones(2), map_location="attic")
    torch.serialization.register_package(3, lambda storage: None, restore)
    try:
        assert through(torch.ones(2), map_location={"cpu": "attic"}).tolist() == [0, 0]
    finally:
        locations._packages.pop(0)
    assert through(torch.ones(2), map_location=lambda storage, place: None).tolist() == [1, 1]
    assert through(torch.ones(2), map_location=b"cpu").tolist() == [1, 1]
    shared = torch.ones(2)
    back = through([shared, shared[1:]], map_location=lambda storage, place: storage.clone())
    back[0][1] = 5
    assert back[1].item() == 5
    with pytest.raises(TypeError, match="'wrap_storage' must be UntypedStorage, but got"):
        through(torch.ones(2), map_location=lambda storage, place: 3)
    with pytest.raises(ZeroDivisionError):
        through(torch.ones(2), map_location=lambda storage, place: 1 // 0)
    assert torch.serialization.location_tag(torch.ones(2).untyped_storage()) == "cpu"


def test_names_that_would_be_refused() -> None:
    file = io.BytesIO()
    torch.save({"net": nn.Linear(1, 1), "mine": Mine(3), "x": torch.ones(1)}, file)
    for protocol in (2, 4):
        file = io.BytesIO()
        torch.save([nn.Linear(1, 1), Mine(3), torch.ones(1)], file, pickle_protocol=protocol)
        file.seek(0)
        found = torch.serialization.get_unsafe_globals_in_checkpoint(file)
        assert found == ["torch.nn.modules.linear.Linear", f"{Mine.__module__}.Mine"]
    with torch.serialization.safe_globals([Mine, (nn.Linear, "torch.nn.modules.linear.Linear")]):
        assert torch.serialization.get_unsafe_globals_in_checkpoint(file) == []
        assert torch.serialization.get_safe_globals()[0] is Mine


def test_text_that_looks_like_a_name() -> None:
    text = "crushlight.serialization.rebuild\n_rebuild_tensor_v2\n"
    assert through([text, torch.ones(1), text])[0] == text


def test_texts_that_python_2_wrote() -> None:
    pkl = b"\x80\x02}(U\x01\xe9K\x01T\x02\x00\x00\x00abK\x02u."
    made = rewritten(archive(b"N").getvalue(), **{"data.pkl": pkl})
    for options, expected in (
        ({"encoding": "latin1"}, {"\xe9": 1, "ab": 2}),
        ({"encoding": "bytes"}, {b"\xe9": 1, b"ab": 2}),
    ):
        for safe in (True, False):
            made.seek(0)
            assert torch.load(made, weights_only=safe, **options) == expected
