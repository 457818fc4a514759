"""Files that lie: cut off, bent, bombs, and pickles written by hand.

`load` must give what was saved or raise one of the errors it documents. It must run nothing that a
file names, set nothing inside a tensor, ask for no more memory than the file is long, and end.
"""

from __future__ import annotations

import io
import os
import pickle
import random
import struct
import sys
import warnings
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import rushlight
from attack._apart import apart

TITLE = "files that lie"
SHORT = 256

_ROOM = 6 << 30  # of address space, in a child that needs a small part of it
_FINE = (RuntimeError, pickle.UnpicklingError, EOFError)
_run: list[str] = []  # what a file has made this process do
_NAMES = (
    "os system", "posix system", "nt system", "subprocess Popen", "builtins eval", "builtins exec",
    "builtins getattr", "builtins __import__", "builtins open", "operator attrgetter",
    "functools partial", "attack.files spring", "rushlight.tensor_memory _unpickled",
    "rushlight.tensor Tensor", "numpy load", "numpy._core.multiarray _reconstruct",
    "rushlight.serialize load", "torch load", "torch.serialization load", "torch Tensor",
    "copyreg _reconstructor", "torch.nn.modules.linear Linear", "torch FloatStorage",
    "rushlight.serialization.rebuild _made", "torch._utils _made", "torch from_file",
    "torch.storage UntypedStorage.from_file", "builtins bytearray.__init__",
    "collections OrderedDict.__init__",
)  # fmt: skip


def attempts(seed: int, torch: Any) -> Iterator[str | None]:
    return apart("attack.files", seed, _ROOM)


def spring(*args: Any, **options: Any) -> None:
    """What a file must not get called."""
    _run.append("a function of its own")


def _heard(event: str, args: Any) -> None:
    if event in (
        "os.system",
        "subprocess.Popen",
        "os.mkdir",
        "os.remove",
        "os.exec",
        "shutil.move",
    ):
        _run.append(event)


# --- what is saved --------------------------------------------------------------------------------
def _object(rng: random.Random) -> Any:
    x = rushlight.arange(float(rng.randint(1, 40)))
    param: Any = rushlight.nn.Parameter(x.clone())
    param.note = "kept"
    return {
        "x": x, "part": x[: x.numel() // 2 + 1], "bits": x.view(rushlight.int32), "p": param,
        "z": rushlight.tensor([1 + 2j, 3j]).real, "half": rushlight.ones(3).to(rushlight.bfloat16),
        "plain": [1, -2.5, None, True, "text", b"\x00\xff", (1, (2, "k")), {3, 4}, 10**30],
        "size": rushlight.Size([2, 3]), "dtype": rushlight.float16, ("a", 1): {"deep": [[]]},
    }  # fmt: skip


def _saved(obj: Any, protocol: int = 2) -> bytes:
    file = io.BytesIO()
    rushlight.save(obj, file, pickle_protocol=protocol)
    return file.getvalue()


def _archive(pkl: bytes, memories: dict[str, bytes], how: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", how) as archive:
        archive.writestr("archive/data.pkl", pkl)
        archive.writestr("archive/byteorder", sys.byteorder)
        for name, data in memories.items():
            archive.writestr(f"archive/data/{name}", data)
    return file.getvalue()


def _shown(x: Any) -> Any:
    """An object as something that can be compared, with every element read."""
    if isinstance(x, rushlight.Tensor):
        if x.numel() > 1 << 22:  # one element, expanded: it is not read element by element
            return str(x.dtype), tuple(x.shape), x.stride(), x[(0,) * x.dim()].tolist()
        # [2**40, 0] is a shape like others, and as a list it is 2**40 empty ones
        values = repr(x.detach().tolist()) if x.numel() else ""
        return type(x).__name__, str(x.dtype), tuple(x.shape), x.stride(), values, x.requires_grad
    if isinstance(x, dict):
        return [(repr(k), _shown(v)) for k, v in x.items()]
    if isinstance(x, (list, tuple)):
        return [_shown(v) for v in x]
    return repr(x)


def _tensors(x: Any) -> Iterator[Any]:
    if isinstance(x, rushlight.Tensor):
        yield x
    elif isinstance(x, dict):
        for value in x.values():
            yield from _tensors(value)
    elif isinstance(x, (list, tuple)):
        for value in x:
            yield from _tensors(value)


def _tampered(x: Any) -> bool:
    """Whether something inside a tensor is not as loading makes it."""
    return any(
        type(t._storage).__name__ != "Storage"
        or type(t._array).__name__ != "ndarray"
        or t._node is not None
        or t.grad is not None
        or t._view is not None
        or t._extra is not None
        for t in _tensors(x)
    )


# --- ways to lie ----------------------------------------------------------------------------------
def _cut(rng: random.Random, good: bytes) -> bytes:
    return good[: rng.randrange(len(good))]


def _bent(rng: random.Random, good: bytes) -> bytes:
    data = bytearray(good)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def _spliced(rng: random.Random, good: bytes) -> bytes:
    a, b = sorted(rng.randrange(len(good) + 1) for _ in range(2))
    b = min(b, a + 400)
    middle = rng.choice((b"", good[a:b] * 2, rng.randbytes(b - a), bytes(b - a)))
    return good[:a] + middle + good[b:]


def _tail(rng: random.Random, good: bytes) -> bytes:
    """The end of the archive, which says where everything is, with numbers of its own."""
    data = bytearray(good)
    at = good.rfind(b"PK\x05\x06")
    where, size = rng.choice(((8, 2), (10, 2), (12, 4), (16, 4), (20, 2)))
    data[at + where : at + where + size] = rng.randbytes(size)
    return bytes(data)


def _headers(rng: random.Random, good: bytes) -> bytes:
    """A header of an entry, with numbers of its own."""
    data = bytearray(good)
    marks = (b"PK\x01\x02", b"PK\x03\x04")
    mark = rng.choice(marks)
    places = [i for i in range(len(good)) if good[i : i + 4] == mark]
    at = rng.choice(places) + rng.choice((4, 6, 8, 10, 14, 16, 18, 20, 22, 24, 26, 28, 30, 42))
    size = rng.choice((2, 4))
    data[at : at + size] = rng.choice((rng.randbytes(size), b"\xff" * size, bytes(size)))
    return bytes(data)


def _bomb(rng: random.Random, good: bytes) -> bytes:
    pkl = zipfile.ZipFile(io.BytesIO(good)).read("archive/data.pkl")
    memories = {str(n): bytes(3_000_000) for n in range(2)}
    return _archive(pkl, memories, zipfile.ZIP_DEFLATED)


def _doubled(rng: random.Random, good: bytes) -> bytes:
    """Many entries over the bytes of one."""
    data = bytearray(good)
    first = good.find(b"PK\x01\x02")
    end = good.rfind(b"PK\x05\x06")
    entries = good[first:end] * 50
    tail = bytearray(good[end:])
    count = struct.unpack_from("<H", tail, 10)[0] * 50
    struct.pack_into("<HHII", tail, 8, count, count, len(entries), first)
    return bytes(data[:first]) + entries + bytes(tail)


def _pickle_of(good: bytes) -> tuple[bytes, dict[str, bytes]]:
    archive = zipfile.ZipFile(io.BytesIO(good))
    inside = {n: archive.read(n) for n in archive.namelist()}
    pkl = inside.pop("archive/data.pkl")
    return pkl, {n.rpartition("/")[2]: d for n, d in inside.items() if "/data/" in n}


def _bent_pickle(rng: random.Random, good: bytes) -> bytes:
    """A sound archive around a pickle that is none."""
    pkl, memories = _pickle_of(good)
    data = bytearray(pkl)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data))
        what = rng.randrange(3)
        if what == 0:
            data[at] = rng.randrange(256)
        elif what == 1:
            del data[at : at + rng.randint(1, 6)]
        else:
            data[at:at] = data[rng.randrange(len(data)) :][: rng.randint(1, 40)]
    return _archive(bytes(data), memories)


def _noise(rng: random.Random, good: bytes) -> bytes:
    """Opcodes as they come."""
    _, memories = _pickle_of(good)
    codes = [
        bytes([c])
        for c in b"().0N2]}KMJGI\x88\x89\x85\x86\x87tRaesudqhbcQ\x93\x94\x81\x8f\x90\x91o"
    ]
    parts = [b"\x80\x04"]
    for _ in range(rng.randint(1, 60)):
        parts.append(rng.choice(codes))
        if rng.random() < 0.3:
            parts.append(rng.randbytes(rng.randint(1, 4)))
        if rng.random() < 0.1:
            parts.append(b"ctorch._utils\n_rebuild_tensor_v2\n")
    return _archive(b"".join(parts) + b".", memories)


def _text(x: str) -> bytes:
    raw = x.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def _value(x: Any) -> bytes:
    """A value as opcodes; bytes are opcodes already."""
    if isinstance(x, bytes):
        return x
    if isinstance(x, tuple):
        return b"(" + b"".join(_value(v) for v in x) + b"t"
    if isinstance(x, dict):
        return b"}(" + b"".join(_value(k) + _value(v) for k, v in x.items()) + b"u"
    return pickle.dumps(x, 2)[2:-1]


def _call(name: str, *args: Any) -> bytes:
    module, _, what = name.rpartition(".")
    return b"c" + module.encode() + b"\n" + what.encode() + b"\n" + _value(tuple(args)) + b"R"


_MEMORY = b"(" + _text("storage") + _text("0") + _text("cpu") + b"tQ"
_STORAGE = (
    b"(" + _text("storage") + b"ctorch\nFloatStorage\n" + _text("0") + _text("cpu") + b"K\x10tQ"
)


def _hostile_tensor(rng: random.Random, good: bytes) -> bytes:
    """A tensor of sizes, strides and offsets that do not fit, or of other things than numbers."""
    odd: tuple[Any, ...] = (
        -1, 0, 1, 2, 4, 10**6, 2**31, 2**40, 2**62, 2**63, 2**64, -(2**63), 10**40, 1.5, "2", None,
    )  # fmt: skip
    rank = rng.randint(0, 3)
    arguments: list[Any] = [
        _MEMORY, "torch.float32", tuple(rng.choice((1, 2, 3)) for _ in range(rank)),
        tuple(rng.choice((0, 1, 2, 3)) for _ in range(rank)), 0, False, "Tensor", {},
    ]  # fmt: skip
    for _ in range(rng.randint(1, 2)):
        k = rng.randrange(8)
        if k in (2, 3) and rng.random() < 0.8:
            arguments[k] = tuple(rng.choice(odd) for _ in range(rng.choice((rank, rank, rank + 1))))
        elif k == 7:
            inside = "_array _storage _node _requires_grad __class__ sum data grad".split()
            arguments[k] = {rng.choice(inside): rng.choice(odd)}
        else:
            arguments[k] = rng.choice((*odd, (), {}, b"]", "torch.bool", "Parameter", "os.system"))
    call = _call("rushlight.serialize._tensor", *arguments)
    if rng.random() < 0.7:
        memory, dtype, shape, strides, offset, asks, _, own = arguments
        memory = _STORAGE if memory is _MEMORY else memory
        dtype = b"ctorch\nfloat32\n" if dtype == "torch.float32" else dtype
        place = (memory, offset, shape, strides, asks, {})
        state = (b"ctorch._utils\n_rebuild_tensor_v2\n", b"ctorch\nTensor\n", place, own)
        call = rng.choice((
            lambda: _call("torch._utils._rebuild_tensor_v2", *place),
            lambda: _call("torch._utils._rebuild_tensor_v2", *place, own),
            lambda: _call("torch._utils._rebuild_tensor_v3", *place, dtype),
            lambda: _call("torch._utils._rebuild_tensor", *place[:4]),
            lambda: _call("torch._tensor._rebuild_from_type_v2", *state),
            lambda: _call("torch._utils._rebuild_parameter", memory, asks, {}),
        ))()  # fmt: skip
    return _archive(b"\x80\x02" + call + b".", {"0": bytes(64)})


def _older(rng: random.Random, good: bytes) -> bytes:
    """The format before 1.6, which has no checksums, damaged."""
    file = io.BytesIO()
    rushlight.save(_object(rng), file, _use_new_zipfile_serialization=False)
    return rng.choice((_cut, _bent, _spliced))(rng, file.getvalue())


def _hostile_calls(rng: random.Random, good: bytes) -> bytes:
    """Calls of what must not be called, and states of what must not be set."""
    tensor = _call(
        "rushlight.serialize._tensor", _MEMORY, "torch.float32", (2,), (1,), 0, False, "Tensor", {}
    )
    module, name = rng.choice(_NAMES).split(" ")
    command = rng.choice(("touch never", "import os"))
    whole = f"{module}.{name}"
    stack = _text(module) + _text(name) + b"\x93"
    forms: list[Callable[[], bytes]] = [
        lambda: _call(whole, command),
        lambda: stack + _value((command,)) + b"R",
        lambda: stack + b")\x81" + _value({"x": 1}) + b"b",
        lambda: b"(" + _text(command) + b"i" + module.encode() + b"\n" + name.encode() + b"\n",
        lambda: b"(" + stack + _text(command) + b"o",
        lambda: tensor + _value({"array": 1}) + b"b",
        lambda: tensor + _value({"memory": 1, "node": 2}) + b"b",
        lambda: tensor + _text("k") + b"K\x01s",
        lambda: tensor + b"K\x01a",
        lambda: _call("builtins.bytearray", 1 << 40),
        lambda: _call("builtins.set", tensor),
        lambda: _call("collections.Counter", tensor),
        lambda: _call("rushlight.serialize._size", tensor),
        lambda: _call("_codecs.encode", "x" * 100, rng.choice(("idna", "punycode", "rot13"))),
        lambda: b"r\xff\xff\xff\x7f" + tensor,
        lambda: b"N" + b"r\xff\xff\xff\xff0" + tensor,
        lambda: b"\x8e" + struct.pack("<Q", 1 << 50),
        lambda: b"\x8d" + struct.pack("<Q", 1 << 62) + b"abc",
        lambda: b"\x96" + struct.pack("<Q", (1 << 64) - 1),
        lambda: b"\x8b" + struct.pack("<i", -1),
        lambda: b"}" + b")" + b"2\x86" * 60 + b"K\x01s",  # a key whose hash takes a year
        lambda: b"}" + b")" + b"\x85" * 300_000 + b"K\x01s",  # a key too deep to be hashed
        lambda: _call("builtins.frozenset", b"(" + b")" + b"2\x86" * 60 + b"t"),
        lambda: b"]" * 200_000,
        lambda: b"L" + b"9" * 100_000 + b"L\n",
        lambda: b"\x82\x01",
        lambda: b"Pstorage\n",
        lambda: _call("rushlight.serialize._device", rng.choice(("cuda:9", "no", "cpu:-3"))),
        lambda: _call("rushlight.serialize._dtype", rng.choice(("torch.int8", "no", "os.system"))),
        lambda: b"c" + b"rushlight.serialize\n_tensor\n" + _value({"__code__": 1}) + b"b",
    ]  # fmt: skip
    return _archive(b"\x80\x04" + rng.choice(forms)() + b".", {"0": bytes(64)})


_WAYS: tuple[tuple[Callable[[random.Random, bytes], bytes], bool], ...] = (
    # whether what does load must be what was saved
    (_cut, True), (_bent, True), (_bent, True), (_spliced, True), (_tail, True), (_headers, True),
    (_headers, True), (_bomb, True), (_doubled, True), (_bent_pickle, False), (_bent_pickle, False),
    (_noise, False), (_hostile_tensor, False), (_hostile_tensor, False), (_hostile_calls, False),
    (_hostile_calls, False), (_older, False), (_older, False),
)  # fmt: skip
_hearing: list[bool] = []


def one(seed: int, index: int) -> str | None:
    """One file."""
    if not _hearing:
        _hearing.append(True)
        sys.addaudithook(_heard)
    rng = random.Random(f"{seed} {index}")
    obj = _object(rng)
    good = _saved(obj, rng.choice((2, 2, 3, 4, 5)))
    way, same = _WAYS[index % len(_WAYS)]
    bad = way(rng, good)
    label = f"seed {seed}, attempt {index} ({way.__name__[1:]})"
    _run.clear()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = rushlight.load(io.BytesIO(bad))
            shown, tampered = _shown(found), _tampered(found)
    except _FINE as error:
        if not str(error):
            return f"{label}: {type(error).__name__} without a word"
        shown, tampered = None, False
    except BaseException as error:
        return f"{label}: {type(error).__name__}: {error}"
    if _run or os.path.exists("never"):
        return f"{label}: the file was obeyed: {_run}"
    if same and shown is not None and shown != _shown(obj):
        return f"{label}: loads, and is not what was saved"
    if tampered:
        return f"{label}: loads, and the inside of a tensor was set"
    return None
