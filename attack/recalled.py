"""Calls that are recalled (`core.recall`) against the same calls asked anew.

Sample inputs of PyTorch's operator tests, each called often: with other values, with NaN and inf
among them, with the same tensor for two arguments, transposed, without gradients. Whatever a call
leaves behind must not show in the next one.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import rushlight
from rushlight.core.recall import forget_calls

TITLE = "recalled calls, asked anew"
SHORT = 60
WEIGHT = 1.5

_DTYPES = ("float32", "float64", "int64", "bool")
_SAMPLES = 10
_UNSET = ("empty", "resize", "set")  # whose results have no values


def attempts(seed: int, torch: Any) -> Iterator[str | None]:
    """One attempt is one sample of one entry, in all its forms."""
    if torch is None:
        yield from _without_pytorch(random.Random(seed))
        return
    from torch.testing._internal.common_methods_invocations import op_db

    rng = random.Random(seed)
    entries = [op for op in op_db if not any(word in op.name for word in _UNSET)]
    while True:
        rng.shuffle(entries)
        for op in entries:
            here = _find(op.name)
            dtype = rng.choice(_DTYPES)
            if here is None or getattr(torch, dtype) not in op.dtypes:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                samples = list(op.sample_inputs("cpu", getattr(torch, dtype)))
                rng.shuffle(samples)
                for sample in samples[:_SAMPLES]:
                    yield _try(op.name, dtype, here, sample, torch, rng)


def _without_pytorch(rng: random.Random) -> Iterator[str | None]:
    """Calls of functions of one and of two tensors, where there are no samples."""
    one = "exp sum mean softmax sigmoid tanh sort cumsum var max norm clamp_min flip".split()
    two = "add mul div atan2 maximum where pow dist matmul".split()
    extra: dict[str, tuple[Any, ...]] = {
        "softmax": (1,), "cumsum": (0,), "clamp_min": (0.2,), "flip": ([0],),
    }  # fmt: skip
    draw = np.random.default_rng(rng.randrange(2**31))
    while True:
        for name in (*one, *two):
            shape = rng.choice(((3, 3), (1, 3), (4, 3)) if name != "matmul" else ((3, 3),))
            made = [
                _Made(draw.standard_normal(shape).astype(dtype), rng.random() < 0.5)
                for dtype in [rng.choice(("f4", "f8"))]
                for _ in range(1 if name in one else 2)
            ]
            if name == "where":
                made.insert(0, _Made(draw.random(shape) < 0.5, False))
            given = (*made, *extra.get(name, ())), {}
            yield _compare(name, str(made[-1].array.dtype), _find(name), given, rng)


def _find(name: str) -> Callable[..., Any] | None:
    for path in (name, "Tensor." + name):
        found: Any = rushlight
        for part in path.split("."):
            found = getattr(found, part, None)
        if callable(found):
            return found  # type: ignore[no-any-return]
    return None


def _try(name: str, dtype: str, fn: Any, sample: Any, torch: Any, rng: random.Random) -> str | None:
    try:
        given = _ours((sample.input, *sample.args), torch), _ours(sample.kwargs, torch)
    except (TypeError, NotImplementedError):
        return None  # a layout or a kind of argument that has no array
    return _compare(name, dtype, fn, given, rng)


def _compare(name: str, dtype: str, fn: Any, given: Any, rng: random.Random) -> str | None:
    """Call a function in several forms of these arguments, and each of them again, asked anew."""
    forms = [given, given]
    for _ in range(3):
        forms.append(_changed(given, rng.choice(("shuffle", "special", "turn", "wants")), rng))
    forms += [_same(given), given]
    with_grad = [rng.random() < 0.8 for _ in forms]
    forget_calls()
    recalled = [_outcome(fn, form, mode) for form, mode in zip(forms, with_grad, strict=True)]
    for i, (form, mode) in enumerate(zip(forms, with_grad, strict=True)):
        forget_calls()
        anew = _outcome(fn, form, mode)
        if not _agree(anew, recalled[i]):
            return f"{name} {dtype}, form {i}: {_first_difference(recalled[i], anew)} {form}"[:900]
    return None


def _agree(a: Any, b: Any) -> bool:
    """Equal, bit for bit but for the last ones: BLAS rounds as its operands happen to lie."""
    if isinstance(a, list):
        return len(a) == len(b) and all(_agree(x, y) for x, y in zip(a, b, strict=True))
    if not isinstance(a, np.ndarray) or a.dtype.kind not in "fc":
        return bool(np.array_equal(a, b))
    if a.tobytes() == b.tobytes():
        return True
    with np.errstate(all="ignore"):
        size = np.max(np.abs(a), initial=0.0, where=np.isfinite(a))
        least = 8 * np.finfo(a.dtype).eps
        return np.allclose(a, b, rtol=least, atol=least * float(size), equal_nan=True)


def _first_difference(a: Any, b: Any) -> str:
    for x, y in zip(a, b, strict=False):
        if not _agree(x, y):
            return f"recalled {_short(x)}, anew {_short(y)}"
    return f"recalled {len(a)} things, anew {len(b)}"


def _short(x: Any) -> str:
    text = repr(x)
    return text if len(text) < 80 else text[:60] + "..." + text[-17:]


# --- arguments ------------------------------------------------------------------------------------
def _ours(x: Any, torch: Any) -> Any:
    """An argument with arrays in the place of tensors, to make new tensors of each time."""
    if isinstance(x, torch.Tensor):
        if x.layout is not torch.strided:
            raise NotImplementedError
        return _Made(x.detach().resolve_conj().resolve_neg().numpy().copy(), x.requires_grad)
    if isinstance(x, torch.Size):
        return rushlight.Size(x)
    if isinstance(x, (list, tuple)):
        parts = [_ours(y, torch) for y in x]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    if isinstance(x, dict):
        return {k: _ours(y, torch) for k, y in x.items()}
    if isinstance(x, (torch.dtype, torch.memory_format)):
        return getattr(rushlight, str(x).removeprefix("torch."))
    if x is None or isinstance(x, (bool, int, float, complex, str, slice, type(...))):
        return x
    raise NotImplementedError


class _Made:
    """What a tensor is made of."""

    def __init__(self, array: Any, wants: bool) -> None:
        self.array = array
        self.wants = wants
        self.turned = False

    def changed(self, how: str, rng: random.Random) -> _Made:
        new = _Made(self.array.copy(), self.wants)
        flat = new.array.reshape(-1)
        if how == "shuffle" and flat.size:
            np.random.default_rng(rng.randrange(2**31)).shuffle(flat)
            new.array = flat.reshape(self.array.shape)
        elif how == "special" and flat.size and flat.dtype.kind == "f":
            for value in (np.nan, np.inf, -np.inf, 0.0, -0.0):
                flat[rng.randrange(flat.size)] = value
        elif how == "special" and flat.size and flat.dtype.kind == "i":
            flat[rng.randrange(flat.size)] = rng.choice((-1, 0, 7, 1000))  # no index, often
        elif how == "turn":
            new.turned = new.array.ndim > 1
        elif how == "wants":
            new.wants = not self.wants and flat.dtype.kind in "fc"
        return new

    def tensor(self) -> Any:
        array = self.array
        if self.turned:
            array = np.ascontiguousarray(array.swapaxes(0, -1)).swapaxes(0, -1)
        t = rushlight.from_numpy(array.copy(order="K"))
        return t.requires_grad_() if self.wants and array.dtype.kind in "fc" else t

    def __repr__(self) -> str:
        return f"<{self.array.dtype} {self.array.shape} {self.wants} {self.turned}>"


def _changed(x: Any, how: str, rng: random.Random) -> Any:
    if isinstance(x, _Made):
        return x.changed(how, rng) if rng.random() < 0.8 else x
    return _mapped(x, lambda y: _changed(y, how, rng))


def _same(x: Any) -> Any:
    """The same tensor wherever two are alike."""
    seen: list[_Made] = []

    def one(y: Any) -> Any:
        if not isinstance(y, _Made):
            return _mapped(y, one)
        for other in seen:
            if other.array.shape == y.array.shape and other.array.dtype == y.array.dtype:
                return other
        seen.append(y)
        return y

    return one(x)


def _mapped(x: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(x, dict):
        return {k: change(y) for k, y in x.items()}
    if isinstance(x, (list, tuple)) and not isinstance(x, rushlight.Size):
        parts = [change(y) for y in x]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    return x


# --- what comes of it -----------------------------------------------------------------------------
def _outcome(fn: Any, form: Any, with_grad: bool) -> list[Any]:
    """Everything that can be seen of a call: results, gradients, what was written, or the error."""
    made: dict[int, Any] = {}

    def tensor(x: Any) -> Any:
        if isinstance(x, _Made):
            if id(x) not in made:
                made[id(x)] = x.tensor()
            return made[id(x)]
        return _mapped(x, tensor)

    args, kwargs = tensor(form[0]), tensor(form[1])
    seen: list[Any] = []
    rushlight.manual_seed(0)
    try:
        with rushlight.set_grad_enabled(with_grad):
            y = fn(*args, **kwargs)
        results = _tensors(y)
        seen += [type(y).__name__, None if results else repr(y)]
        for t in results:
            seen += [*_look(t), t.requires_grad, type(t.grad_fn).__name__, t._is_view(), t.is_leaf]
        roots = [t.sum() for t in results if t.requires_grad]
        leaves = [t for t in made.values() if t.requires_grad and t.is_leaf]
        if roots and leaves:
            for g in rushlight.autograd.grad(roots, leaves, allow_unused=True):
                seen += [None] if g is None else _look(g)
    except Exception as error:  # compared, whatever it is
        seen += [type(error).__name__, str(error)]
    for t in made.values():
        seen += [*_look(t.detach()), t._version]
    return seen


def _look(t: Any) -> list[Any]:
    if t.layout is not rushlight.strided:
        t = t.to_dense()
    t = t.detach()
    return [str(t.dtype), tuple(t.shape), t.stride(), t.clone().resolve_conj().numpy()]


def _tensors(y: Any) -> list[Any]:
    if isinstance(y, rushlight.Tensor):
        return [y]
    if isinstance(y, (list, tuple)):
        return [t for part in y for t in _tensors(part)]
    return []
