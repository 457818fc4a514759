"""What is measured: each case builds the same work for one library.

A case is a function `case(lib) -> callable`; `lib` is rushlight or torch, whose names agree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["AGAINST_NUMPY", "AGAINST_TORCH", "numpy_pairs"]

Work = Callable[[], object]


def multiply(lib: Any) -> Work:
    """A recorded 2x2 multiply, a hundred times: the loop's own cost counts little."""
    x = lib.ones(2, 2, requires_grad=True)
    y = lib.ones(2, 2)

    def work() -> None:
        for _ in range(100):
            x * y

    return work


def chain(lib: Any) -> Work:
    """100 multiplies forward, then backward."""
    x = lib.ones(2, 2, requires_grad=True)
    y = lib.ones(2, 2)

    def work() -> None:
        z = x
        for _ in range(100):
            z = z * y
        z.backward(y)
        x.grad = None

    return work


def tutorial(lib: Any) -> Work:
    """ones, +, *, *, mean, backward: the first tutorial's example."""

    def work() -> None:
        x = lib.ones(2, 2, requires_grad=True)
        y = x + 2
        z = y * y * 3
        z.mean().backward()

    return work


def matmul_chain(lib: Any) -> Work:
    """Ten 64x64 matrix products, forward and backward."""
    w = lib.full((64, 64), 1 / 64).requires_grad_()
    x = lib.ones(64, 64)

    def work() -> None:
        y = x
        for _ in range(10):
            y = y @ w
        y.sum().backward()
        w.grad = None

    return work


def mlp_step(lib: Any) -> Work:
    """A training step of a small network: 32x16 -> 32 -> 1, mean squared error, SGD."""
    lib.manual_seed(0)
    nn = lib.nn
    model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))
    optimiser = lib.optim.SGD(model.parameters(), lr=0.01)
    x, target = lib.randn(32, 16), lib.randn(32, 1)
    loss_fn = nn.MSELoss()

    def work() -> None:
        optimiser.zero_grad()
        loss_fn(model(x), target).backward()
        optimiser.step()

    return work


AGAINST_TORCH: dict[str, tuple[Callable[[Any], Work], float | None]] = {
    "100 2x2 multiplies, recorded": (multiply, 0.45),
    "100 multiplies, forward + backward": (chain, 0.35),
    "the first tutorial's example": (tutorial, 0.35),
    "64x64 matmul chain, forward + backward": (matmul_chain, 0.7),
    "MLP training step 32x16-32-1": (mlp_step, None),
}


def numpy_pairs(lib: Any, np: Any) -> dict[str, tuple[Work, Work]]:
    """Pairs of the same work on a million floats: through rushlight, and in NumPy alone."""
    a = np.random.default_rng(0).random(1_000_000, dtype=np.float32)
    b = np.random.default_rng(1).random(1_000_000, dtype=np.float32)
    x, y = lib.from_numpy(a), lib.from_numpy(b)
    return {
        "x * y": (lambda: x * y, lambda: a * b),
        "x + y": (lambda: x + y, lambda: a + b),
        "exp(x)": (lambda: lib.exp(x), lambda: np.exp(a)),
        "tanh(x)": (lambda: lib.tanh(x), lambda: np.tanh(a)),
        "sum(x)": (lambda: x.sum(), lambda: np.add.reduce(a)),
        "max(x)": (lambda: x.amax(), lambda: np.maximum.reduce(a)),
    }


AGAINST_NUMPY: dict[str, float] = dict.fromkeys(
    ("x * y", "x + y", "exp(x)", "tanh(x)", "sum(x)", "max(x)"), 1.05
)
