"""Interrupts, forks, threads that write, and classes that come and go: nothing is left behind.

The long forms stand in `attack/interrupts.py`, `forks.py`, `threads.py` and `memory.py`.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import rushlight
from rushlight.core.engine.engine import current_task
from rushlight.core.grad_mode import current, state
from rushlight.core.saved.packed import saving_now
from rushlight.core.transforms.stack import innermost, stack
from tests.harness import LIBRARIES

torch: Any = rushlight


# --- interrupts -----------------------------------------------------------------------------------
class Countdown:
    """A profile function that raises where the interpreter might have: where a function begins, or
    behind a call of compiled code. Not in destructors, whose errors go to nobody."""

    def __init__(self, n: int) -> None:
        self.left = n

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        if event in ("call", "c_return") and frame.f_code.co_name != "__del__":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt


def interrupted(work: Callable[[], Any], n: int) -> bool:
    """Whether `work` has so many places, at the n-th of which it was interrupted."""
    before = sys.getprofile()
    sys.setprofile(Countdown(n))
    try:
        work()
    except KeyboardInterrupt:
        # what must hold does while the interrupt is still being handled
        sys.setprofile(before)
        check_calm(n)
        return True
    finally:
        sys.setprofile(before)
    return False


def check_calm(n: int) -> None:
    assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled(), n
    assert innermost() is None and current() is None and saving_now() is None, n
    assert current_task() is None and not state.busy, n
    assert (state.active, state.level, stack.batches, stack.tangents) == (0, 0, 0, 0), n
    assert (torch.ones(1, requires_grad=True) * 2).requires_grad, n


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2


W = torch.ones(2, requires_grad=True)


def blocks() -> None:
    with torch.no_grad(), torch.enable_grad():
        pass
    with torch.inference_mode():
        pass


def hooks() -> None:
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        W * W
    with torch.autograd.graph.disable_saved_tensors_hooks("no"):
        W * W


def duals() -> None:
    with torch.autograd.forward_ad.dual_level():
        pass


def sums_inside() -> None:
    """Gradients are added at an interior tensor, and to what `.grad` has, hooks looking on."""
    y = W * 2
    y.register_hook(lambda g: None)
    (y * y + y).sum().backward()


WORKS: dict[str, Callable[[], Any]] = {
    "blocks": blocks,
    "function": lambda: Double.apply(W),
    "function backward": lambda: Double.apply(W).sum().backward(),
    "sums of gradients": lambda: (W * W + W.exp()).sum().backward(),
    "sums inside": sums_inside,
    "hooks": hooks,
    "duals": duals,
    "vmap": lambda: torch.func.vmap(lambda x: x * 2)(W.detach()),
    "grad": lambda: torch.func.grad(lambda x: x * 2)(torch.tensor(1.0)),
    "jvp": lambda: torch.func.jvp(lambda x: x * 2, (torch.ones(1),), (torch.ones(1),)),
}


@pytest.mark.parametrize("name", WORKS)
def test_interrupted_at_every_place(name: str) -> None:
    WORKS[name]()
    n = 1
    while interrupted(WORKS[name], n):
        n += 1
    assert n > 3


def test_an_interrupted_pass_gives_all_leaves_their_gradients_or_none() -> None:
    n, given = 1, set()
    while True:
        a, b, c = [torch.full((2,), float(k), requires_grad=True) for k in (1, 2, 3)]
        for first in (False, True):
            if first:
                a.grad, b.grad, c.grad = torch.ones(2), torch.ones(2), torch.ones(2)
            loss = (a * b * c).sum()
            more = interrupted(loss.backward, n)
            have = [x.grad is not None and x.grad.tolist() != [1.0, 1.0] for x in (a, b, c)]
            assert any(have) == all(have), (n, have)
            given.add(all(have))
            a.grad = b.grad = c.grad = None
        if not more:
            break
        n += 1
    assert given == {False, True}


def test_a_mode_that_was_left_out_of_order() -> None:
    x = torch.ones(1, requires_grad=True)
    with torch.no_grad():
        inner = torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)
        inner.__enter__()
    assert (x * 2).requires_grad
    inner.__exit__(None, None, None)
    inner.__enter__()
    with torch.no_grad():
        inner.__exit__(None, None, None)
        assert not (x * 2).requires_grad
    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad and state.active == 0


@pytest.mark.parametrize("module", LIBRARIES)
def test_what_a_call_sets_inside_a_block_about_something_else_stays(module: str) -> None:
    lib = importlib.import_module(module)
    others = (
        lambda: lib.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t),
        lib.autograd.forward_ad.dual_level,
        lambda: lib.autograd.set_detect_anomaly(False),
    )
    for other in others:
        with other():
            lib.set_grad_enabled(False)
        assert not lib.is_grad_enabled()
        lib.set_grad_enabled(True)
    with lib.no_grad():
        lib.set_grad_enabled(False)
    assert lib.is_grad_enabled()


@pytest.mark.filterwarnings("ignore:Anomaly Detection", "ignore:Error detected in")
def test_anomaly_mode_around_a_batch() -> None:
    with torch.autograd.detect_anomaly():
        found = torch.func.vmap(torch.func.grad(lambda x: x * x))(torch.arange(3.0))
        with pytest.raises(RuntimeError, match="returned nan values in its 0th output"):
            torch.func.vmap(torch.func.grad(lambda x: x.sqrt()))(torch.tensor([1.0, -1.0]))
    assert found.tolist() == [0.0, 2.0, 4.0]
    assert not torch.is_anomaly_enabled()


# --- classes --------------------------------------------------------------------------------------
def make_function() -> type:
    class Twice(Double):
        pass

    Twice.apply(torch.ones(1, requires_grad=True)).sum().backward()
    return Twice


def make_tensor() -> type:
    class Mine(torch.Tensor):
        pass

    torch.ones(1).as_subclass(Mine) * 2
    return Mine


def make_block() -> type:
    class Quiet(torch.no_grad):
        pass

    with Quiet():
        pass
    return Quiet


def make_tensor_in_a_cycle() -> type:
    class Mine(torch.Tensor):
        kept: Any = None

    Mine.kept = torch.ones(1).as_subclass(Mine)
    return Mine


@pytest.mark.parametrize("make", [make_function, make_tensor, make_block, make_tensor_in_a_cycle])
def test_a_class_made_at_run_time_dies(make: Callable[[], type]) -> None:
    made = [weakref.ref(make()) for _ in range(10)]
    gc.collect()
    assert [r() for r in made] == [None] * 10


def test_compiled_internals_cannot_be_called() -> None:
    seen = [object]
    for cls in seen:
        seen.extend(
            c for c in type.__subclasses__(cls) if str(c.__module__).startswith("rushlight")
        )
    names = {name for cls in seen[1:] for name in dir(cls) if name.endswith("_setup")}
    assert len(seen) > 100 and not {name for name in names if "mypyc" in name}
    assert not hasattr(torch.ones(1), "__internal_mypyc_setup")


# --- threads and forks ----------------------------------------------------------------------------
@pytest.mark.parametrize("n", [1, 20_000])
def test_threads_that_add_to_one_tensor_lose_nothing(n: int) -> None:
    x = torch.zeros(n)
    part = x[: n // 2 + 1]
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)

    def work() -> None:
        for _ in range(60):
            x.add_(1)
            part.mul_(1)

    try:
        threads = [threading.Thread(target=work) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(before)
    assert (x.min().item(), x.max().item(), x._version) == (480.0, 480.0, 960)


FORK = """
import os, threading
import rushlight as torch
from rushlight import locks
torch.rand(2)
held, done = threading.Event(), threading.Event()

def hold():
    taken = list(locks._locks)
    for lock in taken:
        lock.acquire()
    held.set()
    done.wait()
    for lock in taken:
        lock.release()

thread = threading.Thread(target=hold)
thread.start()
held.wait()
pid = os.fork()
if pid == 0:
    import signal
    signal.alarm(60)
    torch.rand(3)
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda g: g * 2)
    torch.autograd.graph.register_multi_grad_hook([x], lambda grads: None)
    (x * 3).sum().backward()
    torch.func.vmap(torch.sin)(torch.ones(2))
    with torch.no_grad():
        x.add_(1)
    os._exit(0 if x.grad.tolist() == [6.0, 6.0] else 1)
_, status = os.waitpid(pid, 0)
done.set()
thread.join()
print("status", status)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_does_not_wait_for_threads_that_it_has_not() -> None:
    source = str(Path(rushlight.__file__).resolve().parents[1])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK], capture_output=True, text=True, timeout=300,
        env={**os.environ, "PYTHONPATH": source},
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("status 0\n", "")
