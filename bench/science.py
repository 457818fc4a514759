"""Scientific functions written from their published formulas, as a user would write them, and
their derivatives: work for `bench.cases`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

Work = Callable[[], object]


def mixture(lib: Any) -> Work:
    """The gradient of the log-likelihood of 200 points in 4 dimensions under 5 Gaussians, whose
    precisions are given by lower triangles with logarithms on the diagonal."""
    lib.manual_seed(0)
    n, d, k = 200, 4, 5
    points = lib.randn(n, d)
    weights, means = lib.randn(k), lib.randn(k, d)
    logs, lower = lib.randn(k, d) * 0.1, lib.randn(k, d, d) * 0.1
    params = [p.requires_grad_() for p in (weights, means, logs, lower)]
    mask = lib.ones(d, d).tril(-1)

    def work() -> Any:
        factors = lib.diag_embed(logs.exp()) + lower * mask
        apart = points[:, None, :] - means[None]
        turned = lib.einsum("kij,nkj->nki", factors, apart)
        inside = weights + logs.sum(-1) - 0.5 * (turned * turned).sum(-1)
        whole = lib.logsumexp(inside, 1).sum() - n * lib.logsumexp(weights, 0)
        whole = whole - n * d * 0.5 * math.log(2 * math.pi)
        prior = 0.5 * ((logs.exp() ** 2).sum() + ((lower * mask) ** 2).sum()) - logs.sum()
        return lib.autograd.grad(whole - prior, params)

    return work


def k_means(lib: Any) -> Work:
    """The diagonal of the Hessian of the k-means cost: 500 points in 3 dimensions, 8 centres."""
    lib.manual_seed(0)
    points, centres = lib.randn(500, 3), lib.randn(8, 3).requires_grad_()

    def work() -> Any:
        square = (points * points).sum(1, keepdim=True) + (centres * centres).sum(1)
        far = square - 2 * points @ centres.t()
        cost = far.min(1).values.sum()
        (g,) = lib.autograd.grad(cost, centres, create_graph=True)
        return lib.autograd.grad(g.sum(), centres)

    return work


def recurrent(lib: Any) -> Work:
    """The gradient of the loss of a two-layer LSTM with diagonal weights over 20 steps."""
    lib.manual_seed(0)
    layers, width, steps = 2, 14, 20
    main = [
        [lib.randn(width) * 0.1 for _ in range(8)] for _ in range(layers)
    ]  # for each gate a weight and a bias
    outer = [lib.randn(width) for _ in range(3)]
    start = [[lib.randn(width), lib.randn(width)] for _ in range(layers)]
    sequence = [lib.randn(width) for _ in range(steps)]
    params = [p.requires_grad_() for p in (*main[0], *main[1], *outer)]

    def cell(parts: list[Any], hidden: Any, state: Any, x: Any) -> tuple[Any, Any]:
        forget = lib.sigmoid(x * parts[0] + parts[1])
        ingate = lib.sigmoid(hidden * parts[2] + parts[3])
        out = lib.sigmoid(x * parts[4] + parts[5])
        change = lib.tanh(hidden * parts[6] + parts[7])
        state = state * forget + ingate * change
        return out * lib.tanh(state), state

    def work() -> Any:
        states = [list(pair) for pair in start]
        total = 0.0
        for now, after in itertools.pairwise(sequence):
            x = now * outer[0]
            for parts, pair in zip(main, states, strict=True):
                pair[0], pair[1] = cell(parts, pair[0], pair[1], x)
                x = pair[0]
            said = x * outer[1] + outer[2]
            total = total + (after * (said - lib.log(lib.exp(said).sum() + 2))).sum()
        return lib.autograd.grad(total, params)

    return work


def bundle(lib: Any) -> Work:
    """The gradient of the reprojection error of 100 points in 10 cameras with radial distortion;
    rotations by Rodrigues' formula."""
    lib.manual_seed(0)
    cameras, points, n = lib.randn(10, 11) * 0.1, lib.randn(100, 3), 400
    which, what = lib.randint(0, 10, (n,)), lib.randint(0, 100, (n,))
    seen, weights = lib.randn(n, 2), lib.rand(n, 1)
    params = [p.requires_grad_() for p in (cameras, points)]

    def work() -> Any:
        camera, x = cameras[which], points[what]
        rotation, centre = camera[:, :3], camera[:, 3:6]
        x = x - centre
        angle = (rotation * rotation).sum(1, keepdim=True).sqrt()
        axis = rotation / angle
        turned = x * angle.cos() + lib.linalg.cross(axis, x) * angle.sin()
        turned = turned + axis * (axis * x).sum(1, keepdim=True) * (1 - angle.cos())
        flat = turned[:, :2] / (turned[:, 2:] + 5)
        r = (flat * flat).sum(1, keepdim=True)
        flat = flat * (1 + camera[:, 9:10] * r + camera[:, 10:11] * r * r)
        error = weights * (camera[:, 7:9] + (1 + camera[:, 6:7]) * flat - seen)
        return lib.autograd.grad((error * error).sum(), params)

    return work


def stochastic(lib: Any) -> Work:
    """A stochastic differential equation by Euler-Maruyama: 50 steps of 16 paths, each with a
    Brownian increment, and the gradient of the mean square at the end."""
    lib.manual_seed(0)
    speed, level, noise = (lib.tensor(x, requires_grad=True) for x in (1.5, 0.5, 0.3))
    params = [speed, level, noise]
    step = 0.02

    def work() -> Any:
        x = lib.zeros(16)
        for _ in range(50):
            increment = lib.randn(16) * math.sqrt(step)
            x = x + speed * (level - x) * step + noise * increment
        return lib.autograd.grad((x * x).mean(), params)

    return work
