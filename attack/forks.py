"""Forks while other threads draw, register hooks, write and run passes: the child, which has none
of those threads, can do all that itself, and does not wait for them.

An attempt is one child. It is killed if it takes far longer than it could need; whoever forks runs
in a process of its own too, because PyTorch and the test runner have threads that no fork is good
for.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TITLE = "forks"
SHORT = 30
CHUNK = 15
LONGEST = 60  # seconds until a child is taken to hang


def attempts(seed: int, torch: Any) -> Iterator[str | None]:
    if not hasattr(os, "fork"):
        return
    import rushlight

    root = Path(__file__).resolve().parents[1]
    source = Path(rushlight.__file__).resolve().parents[1]
    paths = os.pathsep.join([str(root), str(source)])
    command = [sys.executable, "-W", "ignore", "-m", "attack.forks", str(CHUNK)]
    while True:
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=root, timeout=LONGEST * (CHUNK + 2),
            env={**os.environ, "PYTHONPATH": paths},
        )  # fmt: skip
        lines = done.stdout.splitlines()
        for line in lines:
            yield None if line == "ok" else f"seed {seed}: {line}"
        if done.returncode or len(lines) != CHUNK:
            yield f"seed {seed}: the process that forks ended with {done.returncode}: {done.stderr}"
            return


# --- in the process that forks --------------------------------------------------------------------
def busy_threads(torch: Any, stop: threading.Event) -> list[threading.Thread]:
    """Threads that hold each of the locks most of the time."""
    x = torch.ones(2, requires_grad=True)
    y = torch.ones(50_000, requires_grad=True)
    z = torch.ones(50_000)
    shared = torch.ones(1, requires_grad=True)

    def draw() -> None:
        torch.rand(100_000)

    def hook() -> None:
        x.register_hook(lambda g: g).remove()

    def backward() -> None:
        (y * y + y).sum().backward()

    def write() -> None:
        z.add_(1)

    def transform() -> None:
        torch.func.vmap(torch.func.grad(lambda t: t * t))(torch.ones(3))

    def several() -> None:
        a, b = shared * 2, shared * 3
        torch.autograd.graph.register_multi_grad_hook([a, b], lambda grads: None)
        (a + b).sum().backward()

    def loop(work: Any) -> None:
        while not stop.is_set():
            work()

    works = [draw, hook, backward, write, transform, several]
    for work in works:
        work()  # a fork in the middle of an import leaves Python's own locks locked
    return [threading.Thread(target=loop, args=(work,), daemon=True) for work in works]


def child(torch: Any) -> str:
    """What a child does; `ok`, or what came out wrong."""
    if torch.rand(1000).shape != (1000,) or torch.randperm(10).sum() != 45:
        return "a draw is wrong"
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    seen: list[Any] = []
    x.register_hook(seen.append)
    torch.autograd.graph.register_multi_grad_hook([x], lambda grads: seen.append(grads))
    (x * x).sum().backward()
    if x.grad.tolist() != [2.0, 4.0] or len(seen) != 2:
        return f"the gradient is {x.grad}, and {len(seen)} hooks were called"
    with torch.no_grad():
        x.add_(1)
    if torch.func.vmap(torch.func.grad(lambda t: t * t))(torch.ones(2)).tolist() != [2.0, 2.0]:
        return "a transform is wrong"
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(torch.rand(3).add_(1)))
    thread.start()
    thread.join()
    return "ok" if len(found) == 1 and torch.is_grad_enabled() else "a thread of the child failed"


def forked(torch: Any) -> str:
    """Fork once; what became of the child."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(LONGEST)
        try:
            said = child(torch)
        except BaseException as error:  # told to the parent
            said = f"{type(error).__name__}: {error}"
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    _, status = os.waitpid(pid, 0)
    said = os.read(read, 4000).decode()
    os.close(read)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return "the child hung" if number == signal.SIGALRM else f"the child died by {number}"
    return " ".join(said.split())


def in_spawned(x: Any, answer: Any) -> None:
    """What a process that begins anew does with a tensor it was sent."""
    import rushlight as torch

    y = x.clone().requires_grad_()
    (y * y).sum().backward()
    answer.send((child(torch), y.grad.tolist()))


def spawned(torch: Any) -> str:
    """Start a process that shares nothing; what became of it."""
    context = multiprocessing.get_context("spawn")
    mine, its = context.Pipe()
    process = context.Process(target=in_spawned, args=(torch.arange(2.0), its))
    process.start()
    try:
        if not mine.poll(LONGEST):
            return "a spawned process hung or died"
        said, grad = mine.recv()
    finally:
        process.kill()
        process.join()
    return str(said) if grad == [0.0, 2.0] else f"a spawned process computed {grad}"


def main(count: int) -> None:
    import rushlight as torch

    sys.setswitchinterval(1e-4)
    stop = threading.Event()
    threads = busy_threads(torch, stop)
    for t in threads:
        t.start()
    try:
        for k in range(count):
            print(spawned(torch) if k == count - 1 else forked(torch), flush=True)
    finally:
        stop.set()
        for t in threads:
            t.join()


if __name__ == "__main__":
    main(int(sys.argv[1]))
