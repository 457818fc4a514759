"""Memory that grows while other threads allocate, collect, and make views.

All tensors and storages that share memory must see it grow and go on sharing it; and code that has
nothing to do with it must notice nothing. In a process of its own: what went wrong here once was a
crash.
"""

from __future__ import annotations

import copy
import gc
import pickle
import random
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import rushlight
from attack._apart import apart

TITLE = "memory that grows among threads"
SHORT = 10

_ALIASES: tuple[Callable[[Any], Any], ...] = (
    lambda x: x.view(-1),
    lambda x: x[0],
    lambda x: x.t(),
    lambda x: x.detach(),
    lambda x: x.data,
    lambda x: x.view(rushlight.int32),
    lambda x: x[:1].detach().t(),
    lambda x: rushlight.nn.Parameter(x, requires_grad=False),
    lambda x: copy.copy(x),
    lambda x: rushlight.empty(0).set_(x),
    lambda x: x.as_strided((2,), (1,), 1),
    lambda x: x.expand(3, *x.shape),
    lambda x: x.untyped_storage(),
    lambda x: x.unbind()[0],
    lambda x: x.as_subclass(Mine),
)


class Mine(rushlight.Tensor):
    """A subclass."""


def attempts(seed: int, torch: Any) -> Iterator[str | None]:
    return apart("attack.resizing", seed)


def one(seed: int, index: int) -> str | None:
    """Thirty turns, with three threads beside."""
    sys.setswitchinterval(1e-4)  # in a process of its own: let threads come between each other
    rng = random.Random(f"{seed} {index}")
    label = f"seed {seed}, attempt {index}"
    stop = threading.Event()
    wrong: list[str] = []
    threads = [
        threading.Thread(target=_beside, args=(work, stop, wrong))
        for work in (_tuples, _tensors, _collect)
    ]
    for thread in threads:
        thread.start()
    try:
        for turn in range(30):
            broke = _turn(rng)
            if broke is not None:
                return f"{label}, turn {turn}: {broke}"
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    return f"{label}: in another thread, {wrong[0]}" if wrong else None


def _turn(rng: random.Random) -> str | None:
    x = rushlight.arange(6.0).reshape(2, 3)
    chosen = [rng.choice(_ALIASES) for _ in range(rng.randint(0, 6))]
    family: list[Any] = [x]
    for alias in chosen:
        of = rng.choice([t for t in family if _whole(t)])
        family.append(alias(of))
    if rng.random() < 0.3:
        back = pickle.loads(pickle.dumps([t for t in family if _whole(t)]))
        alone = any(isinstance(t, rushlight.nn.Parameter) for t in back)  # each copied by itself
        family = back if alone or rng.random() < 0.5 else copy.deepcopy(back)
    if rng.random() < 0.2:
        rng.shuffle(family)
        del family[len(family) // 2 + 1 :]
    grown = rng.choice(family)
    before = [_values(t) for t in family]
    count = rng.randint(7, 2000)
    if isinstance(grown, rushlight.UntypedStorage):
        grown.resize_(4 * count)
    elif grown.dtype is rushlight.float32:
        grown.resize_(count + 8)
    for t, old in zip(family, before, strict=True):
        if t is not grown and _values(t)[: len(old)] != old:
            return f"{len(family)} over one memory: values changed as it grew"
    places = {_place(t) for t in family}
    if len(places) > 1:
        return f"{len(family)} over one memory look at {len(places)} after it grew"
    return None


def _whole(t: Any) -> bool:
    return isinstance(t, rushlight.Tensor) and t.shape == (2, 3) and t.dtype is rushlight.float32


def _values(t: Any) -> list[Any]:
    if isinstance(t, rushlight.UntypedStorage):
        return t.tolist()
    found: list[Any] = t.detach().reshape(-1).tolist()
    return found


def _place(t: Any) -> int:
    storage = t if isinstance(t, rushlight.UntypedStorage) else t.untyped_storage()
    return int(storage.data_ptr())


# --- the other threads ----------------------------------------------------------------------------
def _beside(work: Callable[[], None], stop: threading.Event, wrong: list[str]) -> None:
    try:
        while not stop.is_set():
            work()
    except BaseException as error:
        wrong.append(f"{type(error).__name__}: {error}")


def _tuples() -> None:
    """Tuples that grow as they are made: whoever touches one meanwhile makes that fail."""
    for n in (3, 30, 300):
        if len(tuple(i for i in range(n))) != n:
            raise AssertionError("a tuple has another length")


def _tensors() -> None:
    x = rushlight.ones(4, 4)
    parts = [x[i].view(2, 2).t() for i in range(4)]
    if float(sum(p.sum() for p in parts)) != 16.0:
        raise AssertionError("a sum is wrong")


def _collect() -> None:
    gc.collect(0)
    gc.collect()
