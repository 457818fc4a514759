"""Programs that are interrupted, and what must be true afterwards. Run as a child process:

    python -m attack._interrupted SEED MODE PROGRAM:FIRST:COUNT ...

makes COUNT attempts on each program, from the FIRST on, and prints a line for each: its name, and
`ok` or what broke. It ends at the first that broke: what was left behind would spoil the next.

MODE `calls` raises KeyboardInterrupt deterministically, at the n-th place where the interpreter
could: where a function begins, or behind a call of compiled code. MODE `timer` lets a timer's
signal do it, at moments that nobody chose.
"""

from __future__ import annotations

import gc
import random
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import rushlight as torch
from rushlight.autograd import forward_ad as fwAD
from rushlight.autograd.anomaly_mode import is_anomaly_enabled
from rushlight.core.engine.engine import current_task
from rushlight.core.engine.hooks import leaf_hooks
from rushlight.core.engine.observers import begins
from rushlight.core.grad_mode import current, state
from rushlight.core.observer import observer
from rushlight.core.saved.packed import saving_now
from rushlight.core.transforms.stack import innermost, stack
from rushlight.utils.checkpoint import checkpoint

Program = Callable[[], str | None]


# --- programs -------------------------------------------------------------------------------------
class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 3 * x * x


class Twice(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any) -> Any:
        return x * 2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        return t * 2


@torch.library.custom_op("attack::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


twice.register_autograd(lambda ctx, g: g * 2)
X = torch.arange(6.0).reshape(2, 3)


@contextmanager
def whole(*leaves: Any) -> Iterator[None]:
    """All leaves have a gradient in the end, or none has."""
    try:
        yield
    except KeyboardInterrupt:
        have = [x.grad is not None for x in leaves]
        if any(have) != all(have):
            raise AssertionError(f"an interrupted pass gave a gradient to {have}") from None
        raise


def leaves(n: int = 2) -> list[Any]:
    return [torch.full((2, 3), float(k + 1), requires_grad=True) for k in range(n)]


def training() -> None:
    a, b, c = leaves(3)
    h = torch.tanh(a * X + b)
    loss = ((h - c) ** 2).mean()
    with whole(a, b, c):
        loss.backward()
    with torch.no_grad():
        a -= 0.1 * a.grad


def again() -> None:
    """The second pass adds to gradients that are there: to all of them, or to none."""
    a, b = leaves()
    (a * b).sum().backward()
    before = a.grad.tolist(), b.grad.tolist()
    loss = (a * b).sum()
    try:
        loss.backward()
    except KeyboardInterrupt:
        if (a.grad.tolist() == before[0]) != (b.grad.tolist() == before[1]):
            raise AssertionError("an interrupted pass added to one gradient of two") from None
        raise


def graphs() -> None:
    a, b = leaves()
    with whole(a, b):
        (a * b * b).sum().backward(create_graph=True)
    torch.autograd.grad(a.grad.sum(), b)


def functions() -> None:
    a = leaves(1)[0]
    y = Cube.apply(a) + Twice.apply(a)
    y.sum().backward()


def modes() -> None:
    a = leaves(1)[0]
    with torch.no_grad():
        with torch.enable_grad():
            a * 2
        a * 3
    with torch.inference_mode():
        a * 2
    with torch.inference_mode(False), torch.set_grad_enabled(True):
        a * 2

    @torch.no_grad()
    def inside(x: Any) -> Any:
        return x * 2

    inside(a)


def many_modes() -> None:
    for _ in range(20):
        with torch.no_grad():
            pass
        with torch.inference_mode():
            pass


def batches() -> None:
    torch.func.vmap(lambda x: (x * 2).sum())(X)
    torch.func.vmap(torch.func.vmap(torch.sin))(X)
    torch.func.vmap(Twice.apply)(X)


def derivatives() -> None:
    torch.func.grad(lambda x: (x**3).sum())(X)
    torch.func.grad(lambda x: torch.func.grad(lambda y: (y**3).sum())(x).sum())(X)
    torch.func.vjp(torch.sin, X)[1](X)


def forward() -> None:
    torch.func.jvp(lambda x: x**2, (X,), (X,))
    torch.func.jvp(Twice.apply, (X,), (X,))
    with fwAD.dual_level():
        fwAD.unpack_dual(fwAD.make_dual(X, X) * 2)


def hessians() -> None:
    torch.func.hessian(lambda x: (x**3).sum())(torch.ones(2))


def jacobians() -> None:
    torch.autograd.functional.jacobian(lambda x: x**2, torch.ones(2))
    torch.autograd.functional.hvp(lambda x: (x**3).sum(), torch.ones(2), torch.ones(2))


def checkpoints() -> None:
    a, b = leaves()
    checkpoint(lambda x, y: (x * y).tanh(), a, b, use_reentrant=False).sum().backward()
    checkpoint(lambda x: x.sin(), a, use_reentrant=True).sum().backward()


def saved() -> None:
    a, b = leaves()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach(), lambda t: t):
        y = (a * b).exp()
    y.sum().backward()
    with torch.autograd.graph.disable_saved_tensors_hooks("no"):
        a * b


def anomalies() -> None:
    a = leaves(1)[0]
    with torch.autograd.detect_anomaly():
        (a * 2).sum().backward()


def profiles() -> None:
    a = leaves(1)[0]
    with torch.autograd.profiler.profile():
        (a * 2).sum().backward()


def operators() -> None:
    a = leaves(1)[0]
    twice(a).sum().backward()


def hooks() -> None:
    a = leaves(1)[0]
    b = a * 2
    with b.register_hook(lambda g: g * 2):
        b.sum().backward()


PROGRAMS: dict[str, Callable[[], None]] = {
    f.__name__: f
    for f in (
        training, again, graphs, functions, modes, many_modes, batches, derivatives, forward,
        hessians, jacobians, checkpoints, saved, anomalies, hooks, profiles, operators,
    )
}  # fmt: skip


# --- afterwards -----------------------------------------------------------------------------------
def left_behind() -> list[str]:
    """What an interrupted program must not leave behind, and did."""
    found = {
        "recording is off": not torch.is_grad_enabled(),
        "inference mode is on": torch.is_inference_mode_enabled(),
        "a transform is open": innermost() is not None or state.level != 0,
        "a batch is open": stack.batches != 0,
        "a level of tangents is open": stack.tangents != 0 or fwAD.mine() is not None,
        "hooks on saved tensors are on": saving_now() is not None,
        "a mode is in force": current() is not None,
        "modes are counted": state.active != 0,
        "a pass is running": current_task() is not None,
        "somebody stands around ops": observer.profile is not None or bool(begins),
        "anomaly mode is on": is_anomaly_enabled(),
        "an op computes": state.busy,
        "threads are off": not torch.autograd.grad_mode.is_multithreading_enabled(),
        "hooks on leaves are counted": leaf_hooks.count != 0,
    }
    broken = [what for what, true in found.items() if true]
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    if not y.requires_grad:
        broken.append("the next op is not recorded")
    else:
        y.sum().backward()
        if x.grad.tolist() != [2.0, 4.0]:
            broken.append(f"the next gradient is {x.grad}")
    if torch.func.vmap(torch.func.grad(lambda t: t * t))(X[0]).tolist() != [0.0, 2.0, 4.0]:
        broken.append("the next transform is wrong")
    return broken


def judged(run: Callable[[], None]) -> str:
    """`ok`, or what broke. While it is asked, the interrupt is still being handled."""
    try:
        run()
    except KeyboardInterrupt:
        return ", ".join(left_behind()) or "ok"
    except BaseException as error:  # told to whoever asked
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    return ", ".join(left_behind()) or "ok"


# --- interrupts -----------------------------------------------------------------------------------
class Countdown:
    """A profile function that raises at its n-th place."""

    def __init__(self, n: int) -> None:
        self.left = n

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == "call" or event == "c_return":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt


def places(program: Callable[[], None]) -> int:
    """How many places there are where a program can be interrupted."""
    counter = Countdown(0)
    sys.setprofile(counter)
    try:
        program()
    finally:
        sys.setprofile(None)
    return -counter.left


def at_place(program: Callable[[], None], n: int) -> str:
    def run() -> None:
        sys.setprofile(Countdown(n))
        try:
            program()
        finally:
            sys.setprofile(None)

    return judged(run)


def by_timer(program: Callable[[], None], rng: random.Random, longest: float) -> str:
    def run() -> None:
        signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-6, longest))
        try:
            program()
            program()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    return judged(run)


def interrupt(number: int, frame: FrameType | None) -> None:
    """What Python's own handler of SIGINT does."""
    raise KeyboardInterrupt


def main(seed: int, mode: str, *wanted: str) -> None:
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, interrupt)
    sys.unraisablehook = lambda _: None  # an interrupt inside a destructor is told to nobody
    gc.disable()
    for text in wanted:
        name, first, count = text.split(":")
        program = PROGRAMS[name]
        for _ in range(3):
            program()
        total = places(program)
        rng = random.Random(f"{seed} {text}")
        order = list(range(1, total + 1))
        random.Random(f"{seed} {name}").shuffle(order)
        for k in range(int(first), int(first) + int(count)):
            if mode == "calls":
                n = order[k % total]
                said, where = at_place(program, n), f"at place {n} of {total}"
            else:
                said, where = by_timer(program, rng, 2e-6 * total), "by a timer"
            broke = "ok" if said == "ok" else f"interrupted {where}: {said}"
            print(f"{name} {broke}", flush=True)
            if said != "ok":
                return
        gc.collect()


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
