"""Tensors through pickle, copies, files and other processes: nothing about them changes."""

from __future__ import annotations

import copy
import io
import multiprocessing
import pickle
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

import rushlight as torch
from rushlight import dtypes, nn


def saved(x: Any) -> Any:
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    return torch.load(file)


WAYS: dict[str, Callable[[Any], Any]] = {
    **{f"protocol {n}": lambda x, n=n: pickle.loads(pickle.dumps(x, n)) for n in range(6)},
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "save": saved,
}


def facts(x: Any) -> Any:
    whole = x.detach().clone(memory_format=torch.contiguous_format)
    return (
        type(x), x.dtype, x.shape, x.stride(), x.storage_offset(), x.requires_grad,
        x.untyped_storage().nbytes(), whole.reshape(-1).view(torch.uint8).tolist(),
    )  # fmt: skip


VIEWS: dict[str, Callable[[], Any]] = {
    "real": lambda: torch.tensor([1 + 2j, 3 + 4j]).real,
    "imag": lambda: torch.tensor([1 + 2j, 3 + 4j]).imag[1:],
    "bits": lambda: torch.tensor([1.0, 2.0]).view(torch.int32)[1:],
    "bytes": lambda: torch.arange(4.0).view(torch.uint8)[5:9],
    "view_as_complex": lambda: torch.view_as_complex(torch.arange(6.0).view(3, 2)),
    "view_as_real": lambda: torch.view_as_real(torch.tensor([1 + 2j, 3j])),
    "frombuffer": lambda: torch.frombuffer(bytearray(range(20)), dtype=torch.int16, offset=4),
    "transposed": lambda: torch.arange(6.0).view(2, 3).t(),
    "stepped": lambda: torch.arange(9.0)[1::3],
    "expanded": lambda: torch.ones(1, 3).expand(4, 3),
    "0-d": lambda: torch.arange(3)[2],
    "as_strided": lambda: torch.arange(9.0).as_strided((2, 3), (1, 2), 3),
    "leaf": lambda: torch.ones(2, requires_grad=True),
    "from_numpy": lambda: torch.from_numpy(torch.arange(6.0).numpy()[::2]),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("view", VIEWS)
def test_views_come_back_as_they_were(view: str, way: str) -> None:
    x = VIEWS[view]()
    assert facts(WAYS[way](x)) == facts(x)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", dtypes.all_dtypes, ids=str)
def test_every_dtype(dtype: Any, way: str) -> None:
    x = torch.frombuffer(bytearray([1, 0] * 32), dtype=dtype).clone()[1:3]
    assert facts(WAYS[way](x)) == facts(x)


@pytest.mark.parametrize("way", WAYS)
def test_strides_of_empty_tensors(way: str) -> None:
    x = torch.empty(4, 0, 3)[:, :, :1]
    assert WAYS[way](x).stride() == x.stride() and WAYS[way](x).shape == (4, 0, 1)


@pytest.mark.parametrize("way", [w for w in WAYS if w != "copy"])
def test_views_of_one_memory_stay_that(way: str) -> None:
    a = torch.arange(6.0)
    whole, part, bits = WAYS[way]([a, a[2:], a.view(torch.int32)])
    whole[2] = 1.0
    assert part[0].item() == 1.0 and bits[2].item() == 0x3F800000
    whole.resize_(1000).fill_(2.0)  # also when it grows
    assert part.tolist() == [2.0] * 4 and bits.tolist() == [0x40000000] * 6


@pytest.mark.parametrize("way", WAYS)
def test_own_attributes_and_parameters(way: str) -> None:
    t: Any = torch.ones(2)
    t.note, t.other = "mine", torch.arange(3)
    back = WAYS[way](t)
    assert back.note == "mine" and back.other.tolist() == [0, 1, 2]
    p: Any = nn.Parameter(torch.ones(2), requires_grad=False)
    p.note = 1
    back = WAYS[way](p)
    assert type(back) is nn.Parameter and not back.requires_grad
    assert hasattr(back, "note") is (way != "deepcopy")  # PyTorch drops it there, too


@pytest.mark.parametrize("way", [w for w in WAYS if w not in ("copy", "save")])
def test_storages(way: str) -> None:
    x = torch.arange(4.0)
    storage, t, part = WAYS[way]([x.untyped_storage(), x, x.untyped_storage()[4:8]])
    assert storage.tolist() == x.untyped_storage().tolist() and part.tolist() == [0, 0, 128, 63]
    storage.resize_(100)
    storage.fill_(0)
    assert t.tolist() == [0.0] * 4 and t.untyped_storage().nbytes() == 100
    alone = copy.copy(x.untyped_storage())
    alone.fill_(0)
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0] and alone.nbytes() == 16


class Scaled(torch.Tensor):
    scale = 1.0


@pytest.mark.parametrize("way", [w for w in WAYS if w != "save"])
def test_attributes_that_a_subclass_gives_a_default(way: str) -> None:
    t: Any = torch.ones(2).as_subclass(Scaled)
    t.scale = 2.0
    back = WAYS[way](t)
    assert type(back) is Scaled and back.scale == 2.0
    with torch.serialization.safe_globals([Scaled]):
        assert saved(t).scale == 2.0


def test_pickles_from_before_there_was_a_dtype_in_them() -> None:
    from rushlight.tensor_memory import _unpickled

    root = torch.arange(6.0).numpy()
    back = _unpickled(torch.Tensor, root, ((2,), (8,), 4), True)
    assert back.tolist() == [1.0, 3.0] and back.requires_grad


def test_a_state_cannot_set_what_a_tensor_is() -> None:
    t = torch.ones(2)
    with pytest.raises(RuntimeError, match="'_array' is a tensor's own"):
        t.__setstate__({"_array": 1})
    assert t.tolist() == [1.0, 1.0]


def echo(x: Any) -> Any:
    return [facts(t) for t in x], x


def answer(given: Any, back: Any) -> None:
    back.put(echo(given.get()))


@pytest.mark.parametrize("how", ["fork", "spawn", "futures"])
def test_other_processes(how: str) -> None:
    x = [view() for view in VIEWS.values()]
    x.extend(torch.ones(3).to(d) for d in (torch.bfloat16, torch.float8_e5m2, torch.complex32))
    if how == "futures":
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            seen, back = pool.submit(echo, x).result(120)
    else:
        if how not in multiprocessing.get_all_start_methods():
            pytest.skip(f"no {how} on this system")
        context: Any = multiprocessing.get_context(how)
        given, there = context.Queue(), context.Queue()
        process = context.Process(target=answer, args=(given, there))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forking among threads
            process.start()
        given.put(x)
        seen, back = there.get(timeout=120)
        process.join(60)
    assert seen == [facts(t) for t in x] == [facts(t) for t in back]
