"""Random programs of views, in-place writes, ops, detaching, hooks, custom functions and modes.

`run(lib, seed)` writes the program of that seed for a library with PyTorch's names, runs it, and
returns everything one can observe: values, versions, flags, node names, gradients, what hooks saw,
and errors. The same seed gives the same program for every library, whatever happens in it. `alike`
compares two results. `step` is one plain step, for other generators.

Where PyTorch leaves the outcome open, or rushlight does better (docs/differences.md), programs do
not go: writes to memory that overlaps itself, writes to inference tensors outside of the mode,
`detach_` and new `.data` of what was saved, `requires_grad_` of views that may not be used.
"""

from __future__ import annotations

import math
import random
import re
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

__all__ = ["SHAPES", "alike", "results", "run", "sound", "step"]

SEEDS = range(600)

SHAPES = [(2, 3), (3, 2), (6,), (2, 1, 3), (1, 4), (4,)]
KINDS = (
    ["leaf"] * 2 + ["view"] * 9 + ["parts"] * 3 + ["op"] * 7 + ["write"] * 9 + ["item"] * 3
    + ["turn"] + ["detach"] * 2 + ["detach_"] + ["data"] + ["replace"] + ["asks"] * 2 + ["hook"] * 3
    + ["retain"] * 2 + ["function"] * 4 + ["backward"] * 2 + ["grad"] + ["version"] + ["look"] * 2
    + ["complex"] * 2 + ["memory"]
)  # fmt: skip

OF_INFERENCE = ("view", "parts", "op", "look", "asks")


def run(lib: Any, seed: int, steps: int = 16) -> list[Any]:
    """What the program of `seed` does: a list of plain Python values."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Program(lib, random.Random(seed)).run(steps)


def alike(a: Any, b: Any) -> bool:
    """Whether two results are equal, but for rounding."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return a == b or math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-7) or (a != a and b != b)
    return type(a) is type(b) and bool(a == b)


def sound(result: list[Any]) -> bool:
    """Whether PyTorch went through the program without tripping over itself."""
    return "INTERNAL ASSERT" not in repr(result)


class Stop(Exception):
    """A backward pass failed: what it added before is not compared, nor what follows."""


class Program:
    """One program while it runs."""

    def __init__(self, lib: Any, rng: random.Random) -> None:
        self.lib = lib
        self.rng = rng
        self.pool: list[Any] = []
        self.seen: list[Any] = []
        self.heard: list[list[Any]] = []  # by hook: the gradients it was called with
        self.inference = False

    def run(self, steps: int) -> list[Any]:
        self.leaf()
        self.leaf()
        try:
            for _ in range(steps):
                self.step()
            self.finish()
        except Stop:
            return self.seen
        return [*self.seen, self.heard]

    def leaf(self) -> None:
        rng = self.rng
        shape = rng.choice(SHAPES)
        count = math.prod(shape)
        t = self.lib.tensor(
            [round(rng.uniform(-2, 2), 3) for _ in range(count)], dtype=self.lib.float64
        )
        t = t.reshape(shape).clone()
        if rng.random() < 0.6:
            t.requires_grad_()
        self.pool.append(t)

    def step(self) -> None:
        rng = self.rng
        kind = rng.choice(KINDS)
        a, b = rng.choice(self.pool), rng.choice(self.pool)
        dice = [rng.random() for _ in range(6)]
        if kind == "leaf":
            self.leaf()
            return
        self.inference = dice[5] > 0.95
        if a.is_inference() and not self.inference and kind not in OF_INFERENCE:
            return
        if a.is_complex() and dice[5] > 0.83 and kind not in ("view", "parts", "op"):
            return  # a stale view is repeated, and in these modes that leaves no history in PyTorch
        try:
            with self.mode(dice[5]):
                made = getattr(self, kind)(a, b, dice)
        except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError) as error:
            self.seen.append(["error", kind, type(error).__name__, words(error)])
            return
        finally:
            self.inference = False
        self.pool.extend(made or [])

    def mode(self, dice: float) -> AbstractContextManager[Any]:
        if dice > 0.95:
            found: AbstractContextManager[Any] = self.lib.inference_mode()
        elif dice > 0.83:
            found = self.lib.no_grad()
        else:
            found = nullcontext()
        return found

    # --- steps --------------------------------------------------------------------------------
    def look(self, a: Any, b: Any, dice: list[float]) -> None:
        self.seen.append(observe(a))

    def view(self, a: Any, b: Any, dice: list[float]) -> Any:
        return [pick(VIEWS, dice[0])(self.lib, a, dice[1:])]

    def parts(self, a: Any, b: Any, dice: list[float]) -> Any:
        return list(pick(PARTS, dice[0])(a, -1 if dice[1] < 0.3 else 0))[:2] if a.dim() else None

    def op(self, a: Any, b: Any, dice: list[float]) -> Any:
        if a.is_inference() and not self.inference:
            return [a * 2] if dice[0] < 0.5 else [self.lib.sin(a)]
        if dice[0] < 0.3:
            return [pick(PAIRS, dice[1])(self.lib, a, b)] if fits(a, b) else [a * 2]
        return [pick(UNARY, dice[1])(self.lib, a)]

    def write(self, a: Any, b: Any, dice: list[float]) -> Any:
        if not self.writable(a):
            return None
        if dice[0] < 0.45 and fits(a, b):
            if b is not a and a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr():
                b = b.clone()  # what overlaps in part has no certain value
            made = pick(PAIRS_, dice[1])(self.lib, a, b)
        else:
            made = pick(UNARY_, dice[1])(self.lib, a)
        return [made] if dice[2] < 0.1 else None  # the same object once more

    def item(self, a: Any, b: Any, dice: list[float]) -> Any:
        if a.dim() and self.writable(a):
            pick(ITEMS, dice[0])(self.lib, a, b)

    def turn(self, a: Any, b: Any, dice: list[float]) -> Any:
        if a.is_complex() or (dice[5] > 0.83 and a.requires_grad):
            return None
        t = a + 0.5 if dice[1] < 0.5 else a.clone()
        v = pick(VIEWS, dice[2])(self.lib, t, dice[3:])
        pick(TURNS, dice[0])(t)
        return [t, v]

    def writable(self, a: Any) -> bool:
        # PyTorch takes a stale view for a leaf, and refuses the write, until someone asks for its
        # node
        safe(lambda: a.grad_fn)
        return not overlapping(a) and (self.inference or not a.is_inference())

    def detach(self, a: Any, b: Any, dice: list[float]) -> Any:
        return [a.detach()]

    def detach_(self, a: Any, b: Any, dice: list[float]) -> Any:
        if dice[0] < 0.4 and (a._is_view() or a.grad_fn is None):
            a.detach_()
            return None
        t = a + 0.5  # saved nowhere: see above
        v = pick(VIEWS, dice[1])(self.lib, t, dice[2:])
        t.detach_()
        return [t, v]

    def data(self, a: Any, b: Any, dice: list[float]) -> Any:
        t = a.data
        if dice[0] < 0.4 and self.writable(t):
            t.mul_(0.5)
        return [t]

    def replace(self, a: Any, b: Any, dice: list[float]) -> Any:
        if self.inference or a.is_complex() or b.is_complex():
            return None
        t = a.detach().clone()
        if dice[0] < 0.6:
            t.requires_grad_()
        t.data = b.detach().contiguous().clone()  # before it is used: see above
        return [t]

    def asks(self, a: Any, b: Any, dice: list[float]) -> Any:
        if not a._is_view() and not a.is_inference():
            a.requires_grad_(dice[0] < 0.75)

    def hook(self, a: Any, b: Any, dice: list[float]) -> Any:
        if a._is_view() and a.grad_fn is None:
            return None  # PyTorch crashes
        heard: list[Any] = []
        factor = 1 + round(dice[0], 1)

        def listen(g: Any) -> Any:
            heard.append(None if g is None else numbers(g))
            return g * factor if g is not None and dice[1] < 0.5 else None

        handle = a.register_hook(listen)
        self.heard.append(heard)
        if dice[2] < 0.1:
            handle.remove()
        return None

    def retain(self, a: Any, b: Any, dice: list[float]) -> Any:
        safe(lambda: a.grad_fn)  # as for writes
        a.retain_grad()

    def function(self, a: Any, b: Any, dice: list[float]) -> Any:
        name = pick(FUNCTIONS, dice[0])
        writes = name in ("Double", "DoubleAndMore")
        whole = a.dim() == 0 or a.is_complex() or a.shape[0] < 2
        if whole or (writes and not self.writable(a)):
            return None
        found = functions(self.lib)
        made = found[name](a, b) if name == "DoubleAndMore" else found[name](a)
        return [t for t in (made if isinstance(made, tuple) else [made]) if t is not a]

    def backward(self, a: Any, b: Any, dice: list[float]) -> Any:
        self.differentiate(lambda loss: loss.backward(retain_graph=dice[0] < 0.6), [a])

    def grad(self, a: Any, b: Any, dice: list[float]) -> Any:
        if a.requires_grad and b.requires_grad:
            grad = self.lib.autograd.grad
            self.seen.append(
                self.differentiate(
                    lambda loss: seen_all(grad(loss, [b], retain_graph=True, allow_unused=True)),
                    [a],
                )
            )

    def version(self, a: Any, b: Any, dice: list[float]) -> Any:
        if self.inference or not a.is_inference():
            self.lib.autograd.graph.increment_version(a)

    def complex(self, a: Any, b: Any, dice: list[float]) -> Any:
        if a.is_complex():
            return [pick(OF_COMPLEX, dice[0])(self.lib, a)]
        if dice[0] < 0.5 or not pairs(a):
            a = a.contiguous()
            return [self.lib.view_as_complex(self.lib.stack([a, a * 0.5], -1))]
        return [self.lib.view_as_complex(a)]

    def memory(self, a: Any, b: Any, dice: list[float]) -> Any:
        strides = [s for s, n in zip(a.stride(), a.shape, strict=True) if n > 1]
        self.seen.append([strides, a.storage_offset(), a._is_view(), a._base is b])
        if dice[0] < 0.3 and not (self.inference and a.requires_grad):
            a.resize_(1)

    # --- the end ------------------------------------------------------------------------------
    def finish(self) -> None:
        leaves = [
            t for t in self.pool
            if safe(lambda t=t: t.is_leaf and t.requires_grad) is True and t._base is None
        ]  # fmt: skip
        for t in self.pool:
            self.seen.append(observe(t))
        losses: list[Any] = []
        for t in self.pool:
            try:
                losses.append((t * t).real.sum())
            except RuntimeError as error:
                self.seen.append(["use", words(error)])
        if self.rng.random() < 0.25:
            self.differentiate_twice(losses, leaves)
        else:
            self.differentiate(lambda loss: loss.backward(), losses, [1.0] * len(losses))
        for t in self.pool:
            grad = t._grad if hasattr(t, "_grad") else t.grad
            self.seen.append(None if grad is None else numbers(grad))

    def differentiate(
        self, how: Callable[[Any], Any], tensors: list[Any], weights: list[float] | None = None
    ) -> Any:
        """Run a backward pass; if it fails, all that is known is that it failed, and how."""
        total: Any = None
        for t in tensors:
            part = t if weights is not None else (t * t).real.sum()
            total = part if total is None else total + part
        if total is None or not total.requires_grad:
            return None
        try:
            return how(total)
        except RuntimeError as error:
            self.seen.append(["backward", type(error).__name__])
            raise Stop from None

    def differentiate_twice(self, losses: list[Any], leaves: list[Any]) -> None:
        def twice(loss: Any) -> None:
            if not leaves:
                return
            found = self.lib.autograd.grad(loss, leaves, create_graph=True, allow_unused=True)
            self.seen.append(seen_all(found))
            asking = [(g * g).real.sum() for g in found if g is not None and g.requires_grad]
            if asking:
                sum(asking[1:], asking[0]).backward()

        self.differentiate(twice, losses, [])


# --- what can be done -----------------------------------------------------------------------------
def pick(table: Any, dice: float) -> Any:
    return table[int(dice * len(table))]


def last(a: Any) -> int:
    return max(a.dim() - 1, 0)


def strided(a: Any) -> Any:
    """Every other element in memory, as far as they go."""
    n = a.numel()
    return a.as_strided((max(n // 2, 1),), (2 if n > 1 else 1,)) if a.is_contiguous() else a[...]


def plain(a: Any) -> bool:
    """Whether copies of it have version 0: in PyTorch, those of inference tensors may have 1."""
    return not a.is_inference()


def pairs(a: Any) -> bool:
    """Whether it can be seen as complex numbers, whatever strides its axes of size 1 have."""
    even = a.dim() > 0 and a.shape[-1] == 2 and 1 not in a.shape
    return even and a.is_contiguous() and a.storage_offset() % 2 == 0


def chosen(lib: Any, a: Any, b: Any) -> Any:
    return lib.where(a.real > 0, a, b) if a.dtype == b.dtype else a * 3


def value(a: Any, b: Any) -> Any:
    """A 0-d tensor to write into `a`; PyTorch cannot differentiate real ones in complex ones."""
    if a.is_complex():
        return b.sum() if b.is_complex() else 0.3
    return b.sum().real


VIEWS: list[Callable[[Any, Any, list[float]], Any]] = [
    lambda lib, a, dice: a.view(-1) if a.is_contiguous() else a.view_as(a),
    lambda lib, a, dice: a.reshape(-1) if plain(a) else a.view_as(a),
    lambda lib, a, dice: a.transpose(0, last(a)),
    lambda lib, a, dice: a.permute(*range(a.dim() - 1, -1, -1)) if a.dim() else a.view(1),
    lambda lib, a, dice: a[0] if a.dim() else a.unsqueeze(0),
    lambda lib, a, dice: a.select(-1, -1) if a.dim() else a.view_as(a),
    lambda lib, a, dice: a.unsqueeze(1 if a.dim() else 0),
    lambda lib, a, dice: a.narrow(last(a), 0, max(1, a.shape[last(a)] - 1)),
    lambda lib, a, dice: a[..., ::2] if a.dim() else a.unsqueeze(0),
    lambda lib, a, dice: a[1:] if a.dim() and a.shape[0] > 1 else a[None],
    lambda lib, a, dice: a[:] if a.dim() else a.view_as(a),
    lambda lib, a, dice: a.squeeze(),
    lambda lib, a, dice: a.squeeze(0),
    lambda lib, a, dice: a.expand(2, *a.shape),
    lambda lib, a, dice: a.diagonal() if a.dim() > 1 else a.view_as(a),
    lambda lib, a, dice: strided(a),
    lambda lib, a, dice: a.unfold(last(a), 1, 1) if a.dim() else a.view_as(a),
    lambda lib, a, dice: a.flatten() if plain(a) else a.view_as(a),
    lambda lib, a, dice: a.mT if a.dim() > 1 else a.view_as(a),
    lambda lib, a, dice: a.movedim(0, last(a)),
    lambda lib, a, dice: a.unflatten(-1, (1, -1)) if a.dim() else a.view_as(a),
]
PARTS: list[Callable[[Any, int], Any]] = [
    lambda a, dim: a.unbind(dim),
    lambda a, dim: a.split(1, dim),
    lambda a, dim: a.chunk(2, dim),
    lambda a, dim: a.tensor_split(2, dim) if a.shape[dim] > 1 else a.chunk(1, dim),
    lambda a, dim: a.split([1] * a.shape[dim], dim),
]
UNARY: list[Callable[[Any, Any], Any]] = [
    lambda lib, a: a * 2,
    lambda lib, a: lib.sin(a),
    lambda lib, a: a.clone() if plain(a) else a - 2,
    lambda lib, a: a + 1,
    lambda lib, a: lib.tanh(a),
    lambda lib, a: a.sum(),
    lambda lib, a: a * a,
    lambda lib, a: a.contiguous() if plain(a) else a - 3,
    lambda lib, a: lib.cat([a, a]) if a.dim() and a.is_contiguous() else a - 1,
]
PAIRS: list[Callable[[Any, Any, Any], Any]] = [
    lambda lib, a, b: a.contiguous() * b.contiguous(),
    lambda lib, a, b: a.contiguous() + b.contiguous(),
    lambda lib, a, b: chosen(lib, a.contiguous(), b.contiguous()),
]
UNARY_: list[Callable[[Any, Any], Any]] = [
    lambda lib, a: a.mul_(2),
    lambda lib, a: a.add_(1),
    lambda lib, a: a.sin_(),
    lambda lib, a: a.tanh_(),
    lambda lib, a: a.zero_(),
    lambda lib, a: a.fill_(0.5),
    lambda lib, a: a.neg_(),
    lambda lib, a: a.mul_(a),
    lambda lib, a: a.sigmoid_(),
]
PAIRS_: list[Callable[[Any, Any, Any], Any]] = [
    lambda lib, a, b: a.mul_(b),
    lambda lib, a, b: a.add_(b),
    lambda lib, a, b: a.copy_(b),
    lambda lib, a, b: a.sub_(b),
    lambda lib, a, b: a.fill_(value(a, b)),
]
ITEMS: list[Callable[[Any, Any, Any], Any]] = [
    lambda lib, a, b: a.__setitem__(0, 0.5),
    lambda lib, a, b: a.__setitem__((..., slice(0, 1)), value(a, b)),
    lambda lib, a, b: a.__setitem__((..., slice(0, 1)), 1.5),
    lambda lib, a, b: a.__setitem__(slice(None), 0.25),
    lambda lib, a, b: a.__setitem__(..., a.detach().clone()),
    lambda lib, a, b: a.__setitem__(a.real > 0, 0.125),
    lambda lib, a, b: a.__setitem__(lib.tensor([0]), value(a, b)),
    lambda lib, a, b: a.masked_fill_(a.real > 0.5, 0.75),
    lambda lib, a, b: a.index_fill_(0, lib.tensor([0]), 2.0),
]
TURNS: list[Callable[[Any], Any]] = [
    lambda a: a.transpose_(0, last(a)),
    lambda a: a.unsqueeze_(0),
    lambda a: a.squeeze_(),
]
OF_COMPLEX: list[Callable[[Any, Any], Any]] = [
    lambda lib, a: lib.view_as_real(a),
    lambda lib, a: a.real,
    lambda lib, a: a.imag,
    lambda lib, a: lib.view_as_real(a * 1j),
]
FUNCTIONS = [
    "Narrow", "Two", "Same", "Alias", "Double", "Double", "Detached", "DoubleAndMore", "Square",
]  # fmt: skip


@cache
def functions(lib: Any) -> dict[str, Any]:
    """Custom functions that return views, inputs, and what they wrote."""

    class Narrow(lib.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.rest = x.shape[0] - 1
            return x[:1]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return lib.cat([g * 3] + [g * 0] * ctx.rest)

    class Two(lib.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x[:1], x[1:]

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            return lib.cat([g * 3, h])

    class Same(lib.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 3

    class Alias(Same):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.view_as(x)

    class Detached(Same):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.detach()

    class Double(lib.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    class DoubleAndMore(lib.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2), y + 1

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            return g * 2, h

    class Square(lib.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * x * g

    found = (Narrow, Two, Same, Alias, Detached, Double, DoubleAndMore, Square)
    return {cls.__name__: cls.apply for cls in found}


# --- what can be seen -----------------------------------------------------------------------------
def fits(a: Any, b: Any) -> bool:
    return tuple(a.shape) == tuple(b.shape) and a.is_complex() >= b.is_complex()


def overlapping(a: Any) -> bool:
    """Whether two elements share memory."""
    places = {0}
    for n, s in zip(a.shape, a.stride(), strict=True):
        places = {p + k * s for p in places for k in range(n)}
    return len(places) < a.numel()


def words(error: Exception) -> str:
    """The first words of an error, without the name of a node that PyTorch has renewed since."""
    text = str(error).split("\n")[0]
    return re.sub(r", which is output \d+ of \w+,", "", text)[:90]


def safe(f: Callable[[], Any]) -> Any:
    try:
        return f()
    except RuntimeError as error:
        return "error " + words(error)


def numbers(t: Any) -> list[Any]:
    t = t.detach()
    found: list[Any] = []
    for part in (t.real, t.imag) if t.is_complex() else (t,):
        found += [float(f"{x:.7g}") for x in part.reshape(-1).tolist()]
    return found


def seen_all(found: Any) -> list[Any]:
    return [None if g is None else numbers(g) for g in found]


def observe(t: Any) -> list[Any]:
    return [
        list(t.shape),
        numbers(t),
        safe(lambda: t._version),
        safe(lambda: t.requires_grad),
        safe(lambda: t.is_leaf),
        safe(lambda: t.grad_fn.name() if t.grad_fn is not None else None),
        safe(lambda: t.output_nr),
        t._is_view(),
        t.is_inference(),
        t.retains_grad,
    ]


# --- one plain step, for other generators ---------------------------------------------------------
def step(lib: Any, kind: str, a: Any, b: Any, dice: list[float]) -> list[Any] | None:
    if kind == "view":
        return plain_view(a, dice)
    if kind == "op":
        return [plain_op(lib, a, b, dice)]
    if kind == "detach":
        return [a.detach()]
    plain_write(lib, a, b, dice)
    return None


def plain_view(a: Any, dice: list[float]) -> list[Any]:
    which = int(dice[0] * 9)
    last = a.dim() - 1
    if which == 0:
        return [a.view(-1)]
    if which == 1:
        return [a.transpose(0, last)]
    if which == 2:
        return [a[0]] if a.dim() > 0 else [a.unsqueeze(0)]
    if which == 3:
        return [a.unsqueeze(1 if a.dim() else 0)]
    if which == 4:
        return [a.narrow(last, 0, max(1, a.shape[last] - 1))] if a.dim() else [a.view(1)]
    if which == 5:
        return [a[..., ::2]] if a.dim() else [a.unsqueeze(0)]
    if which == 6:
        return list(a.unbind(0))[:2] if a.dim() else [a.view(1)]
    if which == 7:
        return list(a.split(1, 0))[:2] if a.dim() else [a.view(1)]
    return [a.squeeze()]


def plain_op(lib: Any, a: Any, b: Any, dice: list[float]) -> Any:
    which = int(dice[0] * 5)
    if which == 0:
        return a * 2
    if which == 1 and tuple(a.shape) == tuple(b.shape):
        return a * b
    if which == 2:
        return lib.sin(a)
    if which == 3:
        return a.clone()
    return a + 1


def plain_write(lib: Any, a: Any, b: Any, dice: list[float]) -> None:
    # PyTorch takes a stale view for a leaf, and refuses the write, until someone asks for its node
    safe(lambda: a.grad_fn)
    which = int(dice[0] * 9)
    if which == 0:
        a.mul_(2)
    elif which == 1 and tuple(a.shape) == tuple(b.shape):
        a.mul_(b)
    elif which == 2 and tuple(a.shape) == tuple(b.shape):
        a.add_(b)
    elif which == 3 and a.dim():
        a[0] = 0.5
    elif which == 4 and a.dim():
        a[..., :1] = b.sum() if dice[1] < 0.5 else 1.5
    elif which == 5:
        a.zero_()
    elif which == 6 and tuple(a.shape) == tuple(b.shape):
        a.copy_(b)
    elif which == 7:
        a.sin_()
    else:
        a.add_(1)


def results(lib: Any) -> Any:
    """By seed; a program that trips PyTorch itself (an internal assertion of its) gives None."""
    found = [run(lib, seed) for seed in SEEDS]
    return [result if sound(result) else None for result in found]
