"""The same thing done over and over with the garbage collector off: what is alive stays the same.

Each attempt repeats one scene (a training step, a transform, an error half way, a class made at run
time) and compares the numbers of objects and of allocated blocks before and after. The repetitions
grow from round to round, to 20,000.
"""

from __future__ import annotations

import copy
import gc
import io
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import rushlight as torch
from rushlight.autograd import forward_ad as fwAD
from rushlight.core.engine.hooks import leaf_hooks
from rushlight.core.grad_mode import current, state
from rushlight.utils.checkpoint import checkpoint

TITLE = "memory"
SHORT = 19
FIRST, LAST = 200, 20_000  # repetitions in the first round and in the later ones
SPARE, STORES = 60, 400  # objects that caches may keep; blocks in the interpreter's own stores
W = torch.ones(3, 3, requires_grad=True)
X = torch.arange(6.0).reshape(2, 3)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 2 * x


class Failing(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        raise ValueError("half way")


def fails(work: Callable[[], Any]) -> None:
    try:
        work()
    except (ValueError, RuntimeError, IndexError, TypeError):
        return
    raise AssertionError("this should have raised")


# --- scenes ---------------------------------------------------------------------------------------
def training() -> Callable[[], None]:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    optimiser = torch.optim.Adam(model.parameters())

    def step() -> None:
        optimiser.zero_grad()
        torch.nn.functional.mse_loss(model(X), torch.ones(2, 1)).backward()
        optimiser.step()

    return step


def by_hand() -> Callable[[], None]:
    w = torch.ones(3, 3, requires_grad=True)

    def step() -> None:
        ((X @ w).tanh() ** 2).mean().backward()
        with torch.no_grad():
            w.sub_(0.01 * w.grad)
        w.grad = None

    return step


def custom() -> Callable[[], None]:
    def step() -> None:
        W.grad = None
        Square.apply(Square.apply(W)).sum().backward()

    return step


def second_order() -> Callable[[], None]:
    def step() -> None:
        (g,) = torch.autograd.grad((W**3).sum(), W, create_graph=True)
        torch.autograd.grad(g.sum(), W)

    return step


def transforms() -> Callable[[], None]:
    def step() -> None:
        torch.func.vmap(torch.func.grad(lambda x: (x**3).sum()))(X)
        torch.func.jvp(lambda x: x.sin(), (X,), (X,))

    return step


def hessians() -> Callable[[], None]:
    return lambda: torch.func.hessian(lambda x: (x**3).sum())(X[0])


def views() -> Callable[[], None]:
    def step() -> None:
        y = W * 2
        y[0].mul_(3)
        y.view(-1)[2:5] = 1
        y.t().sum().backward()
        W.grad = None

    return step


def hooks() -> Callable[[], None]:
    def step() -> None:
        y = W * 2
        with W.register_hook(lambda g: g * 2), y.register_hook(lambda g: g + 1):
            y.retain_grad()
            y.sum().backward()
        W.grad = None

    return step


def checkpoints() -> Callable[[], None]:
    def step() -> None:
        checkpoint(lambda x: (x @ x).sin(), W, use_reentrant=False).sum().backward()
        checkpoint(lambda x: (x @ x).sin(), W, use_reentrant=True).sum().backward()
        W.grad = None

    return step


def packed() -> Callable[[], None]:
    def step() -> None:
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach(), lambda t: t):
            y = (W * W).exp()
        y.sum().backward()
        W.grad = None

    return step


def duals() -> Callable[[], None]:
    def step() -> None:
        with fwAD.dual_level():
            fwAD.unpack_dual((fwAD.make_dual(X, X) * 2).sin())

    return step


def modes() -> Callable[[], None]:
    def step() -> None:
        with torch.no_grad(), torch.enable_grad(), torch.set_grad_enabled(False):
            W * 2
        with torch.inference_mode():
            W * 2

    return step


def wrong_forward() -> Callable[[], None]:
    def step() -> None:
        fails(lambda: X @ X)
        fails(lambda: X[7])
        fails(lambda: (W * 2) + torch.ones(5))
        fails(lambda: W.add_(1))

    return step


def wrong_backward() -> Callable[[], None]:
    def refuse(g: Any) -> None:
        raise ValueError("half way")

    def step() -> None:
        fails(lambda: Failing.apply(W).sum().backward())
        y = W * 2
        with y.register_hook(refuse):
            fails(lambda: y.sum().backward())
        z = (W * W).sum()
        z.backward()
        fails(lambda: z.backward())
        W.grad = None

    return step


def wrong_transform() -> Callable[[], None]:
    def step() -> None:
        fails(lambda: torch.func.vmap(lambda x: x @ x @ torch.ones(9))(X))
        fails(lambda: torch.func.grad(lambda x: x * 2)(X))
        fails(lambda: torch.func.jvp(lambda x: x[9], (X,), (X,)))

    return step


def copies() -> Callable[[], None]:
    model = torch.nn.Linear(3, 3)

    def step() -> None:
        file = io.BytesIO()
        torch.save(copy.deepcopy(model).state_dict(), file)
        file.seek(0)
        model.load_state_dict(torch.load(file))

    return step


def draws() -> Callable[[], None]:
    def step() -> None:
        torch.rand(3), torch.randn(20), torch.randperm(5), torch.Generator().manual_seed(3)

    return step


def classes() -> Callable[[], None]:
    def step() -> None:
        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x * 2

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return g * 2

        Twice.apply(W).sum().backward()
        W.grad = None

    return step


def subclasses() -> Callable[[], None]:
    def step() -> None:
        class Mine(torch.Tensor):
            pass

        (torch.ones(2, requires_grad=True).as_subclass(Mine) * 2).sum().backward()

    return step


SCENES = (
    training, by_hand, custom, second_order, transforms, hessians, views, hooks, checkpoints,
    packed, duals, modes, wrong_forward, wrong_backward, wrong_transform, copies, draws, classes,
    subclasses,
)  # fmt: skip
# a class always stands in cycles, which only the collector frees; saving and loading make some
COLLECTED = {classes, subclasses, copies}


def count() -> tuple[int, int]:
    return len(gc.get_objects()), sys.getallocatedblocks()


def repeated(scene: Callable[[], Callable[[], None]], times: int) -> str | None:
    step = scene()
    for _ in range(2):
        gc.collect()  # which also empties the interpreter's stores of freed objects
        for _ in range(30):
            step()
    if scene in COLLECTED:
        gc.collect()
    objects, blocks = count()
    for _ in range(times):
        step()
    if scene in COLLECTED:
        gc.collect()
    more, bigger = count()
    if more - objects > SPARE or bigger - blocks > STORES + times // 50:
        return f"{times} times: {more - objects} more objects, {bigger - blocks} more blocks"
    if current() is not None or state.active or leaf_hooks.count:
        return "a mode or a hook was left behind"
    return None


def attempts(seed: int, torch: Any) -> Iterator[str | None]:
    rng = random.Random(f"memory {seed}")
    on = gc.isenabled()
    gc.disable()
    gc.collect()
    gc.freeze()  # what was there before is not looked at again: there may be a great deal of it
    try:
        times = FIRST
        while True:
            for scene in SCENES:
                said = repeated(scene, times)
                gc.collect()
                yield None if said is None else f"seed {seed}, {scene.__name__} {said}"
            times = min(LAST, times * 4 + rng.randrange(10))
    finally:
        gc.unfreeze()
        if on:
            gc.enable()
