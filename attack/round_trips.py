"""Tensors and views of every dtype through pickle, copies, files and other processes, and back.

What comes back must be the same in values (to the bit), dtype, shape, strides, offset, length of
the memory, `requires_grad`, class and own attributes; views of one memory must still be views of
one memory, and go on being so when it grows.
"""

from __future__ import annotations

import copy
import io
import multiprocessing
import pickle
import random
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import rushlight

TITLE = "round trips of tensors and views"
SHORT = 500

_DTYPES = (
    "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 "
    "complex32 complex64 complex128 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz "
    "float8_e8m0fnu"
).split()


# --- tensors --------------------------------------------------------------------------------------
def _plan(rng: random.Random) -> list[Any]:
    """How a tensor is made, in words that rushlight and PyTorch both understand."""
    shape = [rng.choice((0, 1, 2, 3, 4)) if rng.random() < 0.3 else rng.randint(1, 5)
             for _ in range(rng.randint(0, 3))]  # fmt: skip
    steps: list[Any] = [("dtype", rng.choice(_DTYPES)), ("shape", shape)]
    for _ in range(rng.randint(0, 4)):
        steps.append((rng.choice(_STEPS), rng.random(), rng.random()))
    return steps


_STEPS = (
    "index", "slice", "step", "transpose", "flat", "expand", "unsqueeze", "real", "imag", "bits",
    "narrow_bits", "as_real", "as_complex", "strided", "diagonal", "unfold", "detach", "buffer",
    "numpy", "squeeze", "data", "movedim",
)  # fmt: skip


def _made(torch: Any, steps: list[Any]) -> Any:
    dtype = getattr(torch, steps[0][1])
    shape = steps[1][1]
    count = 1
    for n in shape:
        count *= n
    raw = bytearray((7 * i + 3) % 97 % (2 if dtype is torch.bool else 97) for i in range(
        max(count, 1) * dtype.itemsize))  # fmt: skip
    x = torch.frombuffer(raw, dtype=dtype).clone()[:count].reshape(shape)
    for name, a, b in steps[2:]:
        x = _step(torch, x, name, a, b)
    return x


def _step(torch: Any, x: Any, name: str, a: float, b: float) -> Any:
    """One view of `x`, or `x` itself where there is no such view."""
    rank = x.dim()
    d = int(a * rank)
    n = x.shape[d] if rank else 0
    if name == "unsqueeze":
        return x.unsqueeze(int(a * (rank + 1)))
    if name == "detach":
        return x.detach()
    if name == "data":
        return x.data
    if name == "squeeze":
        return x.squeeze()
    parts = x.dtype in (torch.complex64, torch.complex128)
    if name in ("real", "imag"):
        return getattr(x, name) if parts else x
    if name == "as_real":
        return torch.view_as_real(x) if parts else x
    if name == "as_complex":
        fits = rank and x.shape[-1] == 2 and x.dtype in (torch.float32, torch.float64)
        fits = fits and x.stride(-1) == 1 and all(s % 2 == 0 for s in x.stride()[:-1])
        return torch.view_as_complex(x) if fits and x.storage_offset() % 2 == 0 else x
    if name == "bits":
        kinds = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}
        kind = kinds.get(x.dtype.itemsize)
        return x.view(getattr(torch, kind)) if kind is not None else x
    if name == "narrow_bits":
        fits = rank and x.is_contiguous() and x.numel() and x.stride(-1) == 1 and x.shape[-1] > 1
        return x.view(torch.uint8) if fits else x
    if name == "numpy":
        known = x.dtype in (torch.float32, torch.int64, torch.complex64, torch.bool, torch.float64)
        return torch.from_numpy(x.detach().numpy()) if known else x
    if name == "buffer":
        if x.dtype is not torch.float32:
            return x
        return torch.frombuffer(
            bytearray(range(64)), dtype=torch.int16, offset=4, count=int(a * 9) + 2
        )
    if not rank or not x.numel():
        return x
    if name == "index":
        return x.select(d, int(b * n))
    if name == "slice":
        return x.narrow(d, int(b * n), max(1, (n - int(b * n)) // 2))
    if name == "step":
        return x[(slice(None),) * d + (slice(int(b * n), None, 2),)]
    if name == "transpose":
        return x.transpose(d, int(b * rank))
    if name == "movedim":
        return x.movedim(d, int(b * rank))
    if name == "flat":
        return x.view(-1) if x.is_contiguous() else x
    if name == "expand":
        return x.unsqueeze(d).expand(*x.shape[:d], 3, *x.shape[d:])
    if name == "strided":
        last = sum((k - 1) * s for k, s in zip(x.shape, x.stride()))
        return x.as_strided((2, max(1, last // 2)), (1, 1), x.storage_offset()) if last > 1 else x
    if name == "diagonal":
        return x.diagonal(0, 0, 1) if rank > 1 else x
    return x.unfold(d, max(1, n // 2), 1)


def _facts(x: Any) -> Any:
    """All that must come back."""
    plain = x.detach()
    whole = plain.clone(memory_format=rushlight.contiguous_format)
    values = bytes(whole.reshape(-1).view(rushlight.uint8).tolist()) if x.numel() else b""
    return (
        type(x).__name__, str(x.dtype), tuple(x.shape), x.stride(), x.storage_offset(),
        x.requires_grad, x.untyped_storage().nbytes() if x.numel() else 0, values,
    )  # fmt: skip


# --- ways -----------------------------------------------------------------------------------------
def _through_file(x: Any, protocol: int = 2, **options: Any) -> Any:
    file = io.BytesIO()
    rushlight.save(x, file, pickle_protocol=protocol)
    file.seek(0)
    return rushlight.load(file, **options)


def _out_of_band(x: Any) -> Any:
    buffers: list[Any] = []
    data = pickle.dumps(x, 5, buffer_callback=buffers.append)
    return pickle.loads(data, buffers=[bytearray(b.raw()) for b in buffers])


def _echo(given: Any, back: Any) -> None:
    """In another process: send back what comes, with what is seen of it there."""
    while (x := given.get()) is not None:
        back.put(([_facts(t) for t in x], x))


def _both(x: Any) -> Any:
    return [_facts(t) for t in x], x


class _Elsewhere:
    """Processes that send tensors back: forked, spawned, and of a pool."""

    def __init__(self) -> None:
        self.queues: dict[str, Any] = {}
        self.processes: list[Any] = []
        self.pool: Any = None

    def through(self, how: str, x: Any) -> Any:
        if how == "pool":
            if self.pool is None:
                self.pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
            facts, back = self.pool.submit(_both, x).result(120)
        else:
            if how not in self.queues:
                context: Any = multiprocessing.get_context(how)
                given, there = context.Queue(), context.Queue()
                process = context.Process(target=_echo, args=(given, there), daemon=True)
                with warnings.catch_warnings():  # of forking while there are threads
                    warnings.simplefilter("ignore", DeprecationWarning)
                    process.start()
                self.processes.append(process)
                self.queues[how] = given, there
            given, there = self.queues[how]
            given.put(x)
            facts, back = there.get(timeout=120)
        if facts != [_facts(t) for t in x]:
            raise AssertionError(f"another process sees {facts}")
        return back

    def close(self) -> None:
        for given, there in self.queues.values():
            given.put(None)
            for queue in (given, there):
                queue.close()
        for process in self.processes:
            process.join(30)
        if self.pool is not None:
            self.pool.shutdown()


def _ways(elsewhere: _Elsewhere) -> list[tuple[str, Callable[[Any], Any]]]:
    found: list[tuple[str, Callable[[Any], Any]]] = [
        (f"pickle protocol {n}", lambda x, n=n: pickle.loads(pickle.dumps(x, n))) for n in range(6)
    ]
    found += [
        ("pickle out of band", _out_of_band),
        ("deepcopy", copy.deepcopy),
        ("copy", lambda x: [copy.copy(t) for t in x]),
        ("save", _through_file),
        ("save, protocol 5", lambda x: _through_file(x, 5)),
        ("save, trusted", lambda x: _through_file(x, weights_only=False)),
        ("a forked process", lambda x: elsewhere.through("fork", x)),
        ("a spawned process", lambda x: elsewhere.through("spawn", x)),
        ("a pool of processes", lambda x: elsewhere.through("pool", x)),
    ]
    return found


def attempts(seed: int, torch: Any) -> Iterator[str | None]:
    elsewhere = _Elsewhere()
    ways = _ways(elsewhere)
    index = 0
    try:
        while True:
            yield _one(seed, index, ways[index % len(ways)], torch)
            index += 1
    finally:
        elsewhere.close()


def _one(seed: int, index: int, way: tuple[str, Callable[[Any], Any]], torch: Any) -> str | None:
    rng = random.Random(f"{seed} {index}")
    steps = _plan(rng)
    name, through = way
    label = f"seed {seed}, attempt {index}, {steps} through {name}"
    try:
        x = _made(rushlight, steps)
        broke = _against_pytorch(steps, x, torch)
        if broke is not None:
            return f"{label}: {broke}"
        whole: Any = rushlight.nn.Parameter(x) if rng.random() < 0.1 and _differs(x) else x
        if whole is x and rng.random() < 0.2 and _differs(x) and name != "deepcopy":
            whole = x.detach().requires_grad_()
        whole.note = {"seen": [index]}
        part = x.detach()[..., :1] if x.dim() else x.detach()
        back, back_part = through([whole, part])
        lost = name == "deepcopy" and isinstance(whole, rushlight.nn.Parameter)  # as in PyTorch
        for a, b in ((whole, back), (part, back_part)):
            mine, theirs = _facts(a), _facts(b)
            if lost:  # a parameter is copied alone, without the rest of its memory
                mine, theirs = mine[:3] + mine[7:], theirs[:3] + theirs[7:]
            if mine != theirs:
                return f"{label}: {mine} came back as {theirs}"
        if not lost and getattr(back, "note", None) != {"seen": [index]}:
            return f"{label}: its own attribute is lost"
        return None if lost else _sharing(label, back, back_part)
    except Exception as error:
        return f"{label}: {type(error).__name__}: {error}"


def _differs(x: Any) -> bool:
    return bool(x.dtype.is_floating_point or x.dtype.is_complex)


def _sharing(label: str, back: Any, part: Any) -> str | None:
    """Whether two views of one memory are that still, also when it has grown."""
    if not part.numel():
        return None
    back, part = back.detach(), part.detach()
    if back.untyped_storage().data_ptr() != part.untyped_storage().data_ptr():
        return f"{label}: views of one memory came back with two"
    if not back.untyped_storage().resizable():
        return None
    size = back.untyped_storage().nbytes()
    part.untyped_storage().resize_(4 * size + 64)
    if back.untyped_storage().data_ptr() != part.untyped_storage().data_ptr():
        return f"{label}: of two views of one memory, one did not follow when it grew"
    return None


def _against_pytorch(steps: list[Any], x: Any, torch: Any) -> str | None:
    """That the views are PyTorch's: otherwise little is said by their coming back."""
    if torch is None or not x.numel():
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch calls complex32 experimental
        y = _made(torch, steps)
    lent = any(step[0] == "numpy" for step in steps)  # the memory is NumPy's: all of it, here
    mine, theirs = (
        (
            str(t.dtype),
            tuple(t.shape),
            lent or t.storage_offset(),
            [s for s, n in _axes(t) if n > 1],
        )
        for t in (x, y)
    )
    return None if mine == theirs else f"is {mine}, PyTorch's is {theirs}"


def _axes(t: Any) -> Any:
    return zip(t.stride(), t.shape, strict=True)
