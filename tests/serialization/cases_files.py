"""Objects that are saved, in PyTorch's formats, and what they look like when they are loaded.

Stored are the files that PyTorch wrote, as text, so that they can be loaded where it is absent.
"""

from __future__ import annotations

import base64
import io
import warnings
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

DTYPES = (
    "float32 float64 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64 complex128"
).split()
LATER = (
    "complex32 uint16 uint32 uint64 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz "
    "float8_e8m0fnu"
).split()

OBJECTS: dict[str, Callable[[Any], Any]] = {}


def saved(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    OBJECTS[make.__name__] = make
    return make


@saved
def dtypes(lib: Any) -> Any:
    return {name: lib.tensor([0.0, 1.0, 2.0]).to(getattr(lib, name)) for name in DTYPES}


@saved
def later_dtypes(lib: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that complex32 is experimental
        return {name: lib.tensor([0.0, 1.0, 2.0]).to(getattr(lib, name)) for name in LATER}


@saved
def shapes(lib: Any) -> Any:
    x = lib.arange(12.0)
    return [
        x, x[2:], x.view(3, 4).t(), lib.tensor(5.0), lib.empty(0, 3), lib.ones(1, 3).expand(2, 3),
        lib.arange(9.0)[::2], lib.zeros(2, 0, 3), x.view(3, 4)[1:, ::2],
        x.as_strided((2, 2), (1, 1)),
        lib.arange(24).view(1, 2, 3, 4).contiguous(memory_format=lib.channels_last),
    ]  # fmt: skip


@saved
def plain(lib: Any) -> Any:
    return {
        "dtypes": [lib.float16, lib.int64, lib.bool, lib.complex64, lib.uint16],
        "size": lib.Size([2, 3]), "device": lib.device("cpu"), "layout": lib.strided,
        "cuda": lib.device("cuda", 1), "set": {1, 2}, "complex": 1j, "bytes": b"\x00abc",
        "none": None, "tuple": (1, [2.5, True]), "counter": Counter("aab"), "big": 10**30,
        "ordered": OrderedDict(b=1, a=2), 3: "text", ("a", 1): -5, "array": bytearray(b"x"),
        "many": list(range(300)), "text": "é€\n", "inf": float("inf"),
    }  # fmt: skip


@saved
def parameters(lib: Any) -> Any:
    p = lib.nn.Parameter(lib.ones(2))
    p.note = "mine"
    b = lib.nn.Buffer(lib.zeros(2), persistent=False)
    t = lib.ones(1)
    t.note = [1, lib.ones(1)]
    q = lib.nn.Parameter(lib.arange(3), requires_grad=False)
    return [p, b, t, q, lib.ones(1, requires_grad=True), p, p.data]


@saved
def training(lib: Any) -> Any:
    lib.manual_seed(3)
    net = lib.nn.Sequential(lib.nn.Linear(2, 3), lib.nn.BatchNorm1d(3), lib.nn.Linear(3, 1))
    opts = [
        lib.optim.Adam(net.parameters(), lr=0.1, amsgrad=True),
        lib.optim.SGD(net.parameters(), lr=0.1, momentum=0.9),
    ]
    plan = lib.optim.lr_scheduler.StepLR(opts[0], 2)
    net(lib.arange(8.0).view(4, 2)).sum().backward()
    for opt in opts:
        opt.step()
    plan.step()
    return {
        "net": net.state_dict(), "opts": [opt.state_dict() for opt in opts], "epoch": 3,
        "plan": plan.state_dict(), "rng": lib.get_rng_state()[:64].clone(),
    }  # fmt: skip


@saved
def conjugates(lib: Any) -> Any:
    values = [1 + 2j, 3 - 1j]
    return [lib.tensor(values).conj(), lib.tensor(values).real]


@saved
def storages(lib: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that typed storages are deprecated
        x = lib.arange(3.0)
        return [x, x.storage(), lib.arange(2).storage()]


# Loaded with `weights_only=False` alone.
@saved
def module(lib: Any) -> Any:
    lib.manual_seed(1)
    inner = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.BatchNorm1d(2), lib.nn.Dropout(0.5))
    net = lib.nn.Sequential(
        OrderedDict(a=inner, b=lib.nn.ReLU(inplace=True), c=lib.nn.Embedding(3, 2, padding_idx=1))
    )
    net.register_buffer("kept", lib.ones(1))
    net.register_buffer("left", lib.ones(1), persistent=False)
    return net.eval()


@saved
def modules(lib: Any) -> Any:
    made = lib.nn.ModuleList([
        lib.nn.LayerNorm(3), lib.nn.GELU("tanh"), lib.nn.Softmax(1), lib.nn.Flatten(),
        lib.nn.CrossEntropyLoss(lib.ones(3)), lib.nn.MSELoss(reduction="sum"), lib.nn.Identity(),
        lib.nn.Bilinear(2, 2, 1, bias=False), lib.nn.LeakyReLU(0.3),
    ])  # fmt: skip
    for p in made.parameters():
        lib.nn.init.constant_(p, 0.5)
    return made


@saved
def classes(lib: Any) -> Any:
    f = lib.nn.functional
    return [lib.nn.Linear, lib.optim.SGD, lib.Tensor, lib.nn.Parameter, f.relu, f.gelu, lib.sin]


UNSAFE = {"module", "modules", "classes"}
ZIP_ALONE = {"later_dtypes"}  # PyTorch writes these into older files, and cannot load them


# --- what they look like --------------------------------------------------------------------------
def look(lib: Any, x: Any, seen: dict[int, int] | None = None) -> Any:
    """An object as JSON can hold it. Memories are numbered, so that shared ones are told."""
    seen = {} if seen is None else seen
    if isinstance(x, lib.Tensor):
        memory = seen.setdefault(x.untyped_storage().data_ptr() if x.numel() else 0, len(seen))
        values = x.detach().resolve_conj().resolve_neg() if hasattr(x, "resolve_conj") else x
        bits = values.detach().clone().contiguous().reshape(-1)
        shown = bits.float() if not bits.is_complex() else bits.to(lib.complex64)
        own = {k: look(lib, v, seen) for k, v in vars(x).items() if k in ("note", "persistent")}
        return [
            type(x).__name__, str(x.dtype), list(x.shape), list(x.stride()), x.storage_offset(),
            x.requires_grad, memory, repr(shown.tolist()), own,
        ]  # fmt: skip
    if isinstance(x, lib.nn.Module):
        state = {k: v for k, v in vars(x).items() if k not in ("_modules", "_parameters")}
        return [
            repr(x), x.training, look(lib, x.state_dict(), seen),
            sorted(k for k in state if "hook" not in k),
            [look(lib, b, seen) for b in x.buffers()],
        ]  # fmt: skip
    if isinstance(x, dict):
        more = [look(lib, vars(x), seen)] if type(x) is OrderedDict and vars(x) else []
        return [type(x).__name__, [[repr(k), look(lib, v, seen)] for k, v in x.items()], *more]
    if isinstance(x, list | tuple) and not isinstance(x, lib.Size):
        return [type(x).__name__, [look(lib, v, seen) for v in x]]
    if lib.is_storage(x):
        return [str(x.dtype), x.tolist()]
    if isinstance(x, type) or callable(x):
        return x.__name__
    return repr(x)


def written(lib: Any, name: str, **options: Any) -> bytes:
    """The file of an object."""
    file = io.BytesIO()
    lib.save(OBJECTS[name](lib), file, **options)
    return file.getvalue()


def read(lib: Any, name: str, data: bytes, **options: Any) -> Any:
    """What a file looks like when it is loaded."""
    options.setdefault("weights_only", name not in UNSAFE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's, that typed storages are deprecated
        return look(lib, lib.load(io.BytesIO(data), **options))


FORMATS: dict[str, dict[str, Any]] = {
    "zip": {}, "legacy": {"_use_new_zipfile_serialization": False},
}  # fmt: skip


ALL = [
    (name, title) for name in OBJECTS for title in FORMATS
    if title == "zip" or name not in ZIP_ALONE
]  # fmt: skip


def results(lib: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, title in ALL:
        data = written(lib, name, **FORMATS[title])
        found[f"{name} {title}"] = {
            "file": base64.b64encode(data).decode(), "look": read(lib, name, data),
        }  # fmt: skip
    return found
