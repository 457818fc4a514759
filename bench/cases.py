"""What is measured: each case builds the same work for one library.

A case is a function `case(lib) -> callable`; `lib` is rushlight or torch, whose names agree.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from bench.science import bundle, k_means, mixture, recurrent, stochastic

__all__ = [
    "AGAINST_A_LOOP", "AGAINST_NUMPY", "AGAINST_TORCH", "MEMORY", "SMALL_AGAINST_NUMPY",
    "numpy_multiplies", "numpy_pairs",
]  # fmt: skip

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


def curve(lib: Any) -> tuple[Callable[[Any], Any], Any]:
    """A function of 50 parameters that gives 50 numbers, and a point."""
    lib.manual_seed(0)
    a, p = lib.randn(50, 50), lib.randn(50)
    return lambda x: (a @ x).tanh() + x**4, p


def hessian(lib: Any) -> Work:
    """The Hessian of a function of 50 parameters, by `autograd.functional`."""
    f, p = curve(lib)
    return lambda: lib.autograd.functional.hessian(lambda x: f(x).pow(2).sum(), p)


def func_hessian(lib: Any) -> Work:
    """The same by `func`."""
    f, p = curve(lib)
    second = lib.func.hessian(lambda x: f(x).pow(2).sum())
    return lambda: second(p)


def jacobian(lib: Any) -> Work:
    """A 50x50 Jacobian, all rows at once."""
    f, p = curve(lib)
    return lambda: lib.autograd.functional.jacobian(f, p, vectorize=True)


def small_grad(lib: Any) -> Work:
    """The gradient of a sum of squares: what `func.grad` itself costs."""
    x = lib.ones(3)
    gradient = lib.func.grad(lambda x: (x * x).sum())
    return lambda: gradient(x)


def samples(lib: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The loss of a 20-64-64-10 network for one sample, and 64 samples with its parameters."""
    lib.manual_seed(0)
    nn = lib.nn
    net = nn.Sequential(
        nn.Linear(20, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10)
    )
    params = {name: p.detach() for name, p in net.named_parameters()}

    def loss(params: Any, x: Any, y: Any) -> Any:
        out = lib.func.functional_call(net, params, (x[None],))
        return nn.functional.cross_entropy(out, y[None])

    return loss, (params, lib.randn(64, 20), lib.randint(0, 10, (64,)))


def per_sample(lib: Any) -> Work:
    """Gradients of the loss for each of 64 samples, at once."""
    loss, given = samples(lib)
    gradients = lib.func.vmap(lib.func.grad(loss), in_dims=(None, 0, 0))
    return lambda: gradients(*given)


def per_sample_loop(lib: Any) -> Work:
    """The same, one sample after the other."""
    loss, (params, x, y) = samples(lib)
    gradient = lib.func.grad(loss)
    return lambda: [gradient(params, x[i], y[i]) for i in range(64)]


def prod_gradient(lib: Any) -> Work:
    """The gradient of a product of 128 numbers."""
    lib.manual_seed(0)
    x = (lib.rand(128) + 0.5).requires_grad_()
    y = x.prod()
    return lambda: lib.autograd.grad(y, x, retain_graph=True)


def chosen(lib: Any, choose: Callable[[Any, Any], Any]) -> Work:
    """The gradient of 32 of 100 rows of 16, chosen by index."""
    lib.manual_seed(0)
    x, i = lib.randn(100, 16).requires_grad_(), lib.randint(0, 100, (32,))
    y = choose(x, i)
    g = lib.ones_like(y)
    return lambda: lib.autograd.grad(y, x, g, retain_graph=True)


def index_gradient(lib: Any) -> Work:
    return chosen(lib, lambda x, i: x[i])


def index_select_gradient(lib: Any) -> Work:
    return chosen(lib, lambda x, i: x.index_select(0, i))


def embedding_gradient(lib: Any) -> Work:
    return chosen(lib, lambda x, i: lib.nn.functional.embedding(i, x))


def loader(lib: Any) -> Work:
    """The first 200 shuffled batches of 256 of a million rows."""
    lib.manual_seed(0)
    data = lib.utils.data
    rows = data.TensorDataset(lib.randn(1_000_000, 8), lib.arange(1_000_000))

    def work() -> None:
        for _ in itertools.islice(data.DataLoader(rows, batch_size=256, shuffle=True), 200):
            pass

    return work


def conv_step(lib: Any) -> Work:
    """Two 3x3 convolutions, 3 -> 16 -> 32, of 32 images of 28x28, forward and backward."""
    lib.manual_seed(0)
    nn = lib.nn
    net = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 32, 3))
    x = lib.randn(32, 3, 28, 28)

    def work() -> None:
        net.zero_grad()
        net(x).sum().backward()

    return work


def lstm_step(lib: Any) -> Work:
    """An LSTM of 64 hidden numbers over 32 steps of 16 sequences, forward and backward."""
    lib.manual_seed(0)
    net = lib.nn.LSTM(64, 64)
    x = lib.randn(32, 16, 64)

    def work() -> None:
        net.zero_grad()
        net(x)[0].sum().backward()

    return work


def digits_step(lib: Any) -> Work:
    """A training step of a 784-256-10 network on 64 images, Adam."""
    lib.manual_seed(0)
    nn = lib.nn
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    optimiser = lib.optim.Adam(model.parameters(), lr=1e-3)
    x, target = lib.randn(64, 784), lib.randint(0, 10, (64,))

    def work() -> None:
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(x), target).backward()
        optimiser.step()

    return work


def update(lib: Any, name: str, **options: Any) -> Work:
    """A step of an optimiser on a million weights in ten parameters."""
    lib.manual_seed(0)
    weights = [lib.randn(400, 250).requires_grad_() for _ in range(10)]
    for w in weights:
        w.grad = lib.randn(400, 250)
    optimiser = getattr(lib.optim, name)(weights, **options)
    return lambda: optimiser.step()


def sgd_update(lib: Any) -> Work:
    return update(lib, "SGD", lr=1e-3, momentum=0.9)


def adam_update(lib: Any) -> Work:
    return update(lib, "Adam", lr=1e-3)


def adamw_update(lib: Any) -> Work:
    return update(lib, "AdamW", lr=1e-3)


def draw(lib: Any) -> Work:
    return lambda: lib.randn(1000)


def gpt_step(lib: Any, layers: int = 2) -> Work:
    """A training step of a GPT: layers of width 128, 8 sequences of 64 tokens, Adam."""
    lib.manual_seed(0)
    nn = lib.nn
    F = nn.functional

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.before, self.after = nn.LayerNorm(128), nn.LayerNorm(128)
            self.qkv, self.out = nn.Linear(128, 384), nn.Linear(128, 128)
            self.mlp = nn.Sequential(nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 128))

        def forward(self, x: Any) -> Any:
            n, t, d = x.shape
            parts = self.qkv(self.before(x)).split(d, dim=2)
            q, k, v = (part.view(n, t, 4, d // 4).transpose(1, 2) for part in parts)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(n, t, d))
            return x + self.mlp(self.after(x))

    class Gpt(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.token, self.place = nn.Embedding(65, 128), nn.Embedding(64, 128)
            self.blocks = nn.Sequential(*[Block() for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(128), nn.Linear(128, 65, bias=False)

        def forward(self, x: Any) -> Any:
            places = lib.arange(x.shape[1])
            return self.head(self.norm(self.blocks(self.token(x) + self.place(places))))

    model = Gpt()
    optimiser = lib.optim.Adam(model.parameters(), lr=1e-3)
    text = lib.randint(0, 65, (8, 65))

    def work() -> None:
        optimiser.zero_grad()
        said = model(text[:, :-1])
        F.cross_entropy(said.reshape(-1, 65), text[:, 1:].reshape(-1)).backward()
        optimiser.step()

    return work


def gpt_step_deep(lib: Any) -> Work:
    return gpt_step(lib, 4)


AGAINST_TORCH: dict[str, tuple[Callable[[Any], Work], float | None]] = {
    "100 2x2 multiplies, recorded": (multiply, 0.25),
    "100 multiplies, forward + backward": (chain, 0.25),
    "the first tutorial's example": (tutorial, 0.2),
    "64x64 matmul chain, forward + backward": (matmul_chain, 0.7),
    "MLP training step 32x16-32-1": (mlp_step, None),
    "hessian, 50 parameters": (hessian, 0.5),
    "jacobian(vectorize=True), 50x50": (jacobian, 1.0),
    "func.hessian, 50 parameters": (func_hessian, None),
    "func.grad of a sum of squares": (small_grad, 1.0),
    "vmap(grad), 64 samples of 20-64-64-10": (per_sample, None),
    "gradient of prod, 128 numbers": (prod_gradient, 1.0),
    "gradient of x[i], 32 rows of 100x16": (index_gradient, 1.0),
    "gradient of index_select, 32 rows": (index_select_gradient, 1.0),
    "gradient of embedding, 32 rows": (embedding_gradient, 1.0),
    "Conv2d 3-16-32, 3x3, 32 images, both ways": (conv_step, 1.5),
    "LSTM of 64, 32 steps of 16, both ways": (lstm_step, 1.0),
    "GPT training step, 2 layers of 128": (gpt_step, 1.2),
    "GPT training step, 4 layers of 128": (gpt_step_deep, 0.9),
    "MLP training step 64x784-256-10, Adam": (digits_step, 0.6),
    "SGD with momentum, 1e6 weights": (sgd_update, 0.8),
    "Adam, 1e6 weights": (adam_update, 0.8),
    "AdamW, 1e6 weights": (adamw_update, 0.8),
    "randn(1000)": (draw, 1.0),
    "Gaussian mixture, gradient": (mixture, 0.6),
    "k-means, Hessian": (k_means, 0.6),
    "LSTM written out, gradient": (recurrent, 0.6),
    "bundle adjustment, gradient": (bundle, 0.6),
    "SDE of small tensors, gradient": (stochastic, 0.6),
    "DataLoader, 200 batches of 256 of 1e6 rows": (loader, 1.0),
}

# Work that is compared by the memory it takes too, in bytes at the highest, and what it may take.
MEMORY: dict[str, tuple[Callable[[Any], Work], float]] = {
    "Conv2d 3-16-32, 3x3, 32 images, both ways": (conv_step, 1.1),
    "LSTM of 64, 32 steps of 16, both ways": (lstm_step, 1.1),
    "GPT training step, 2 layers of 128": (gpt_step, 1.0),
    "MLP training step 64x784-256-10, Adam": (digits_step, 1.0),
    "DataLoader, 200 batches of 256 of 1e6 rows": (loader, 1.1),
}

# the work, what it replaces, and how much of its time it may take
AGAINST_A_LOOP: dict[str, tuple[Callable[[Any], Work], Callable[[Any], Work], float]] = {
    "vmap(grad), 64 samples of 20-64-64-10": (per_sample, per_sample_loop, 0.2),
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


def numpy_multiplies(np: Any) -> Work:
    """NumPy's own 2x2 multiply, a hundred times: the unit in which the cost of an op is given."""
    a = np.ones((2, 2), np.float32)

    def work() -> None:
        for _ in range(100):
            a * a

    return work


# What recording may cost, in NumPy's multiplies: on a quiet machine 2.7 and 5.
SMALL_AGAINST_NUMPY: dict[str, tuple[Callable[[Any], Work], float]] = {
    "100 2x2 multiplies, recorded": (multiply, 4.0),
    "100 multiplies, forward + backward": (chain, 7.5),
}
