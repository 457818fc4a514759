"""Random graphs of leaves, ops and custom functions, with hooks of every kind at random places.

Each hook logs its gradient and which leaves have theirs by then.
"""

from __future__ import annotations

import random
from functools import partial
from typing import Any

from tests.harness import Case, Log, LoggedCases, vector


def random_script(seed: int) -> Case:
    """A graph with hooks of every kind at random places, and a few passes over it."""

    def run(torch: Any, log: Log) -> None:
        rng = random.Random(seed)
        counts = [0]

        class Twice(torch.autograd.Function):  # type: ignore[misc]
            @staticmethod
            def forward(ctx: Any, x: Any, y: Any) -> Any:
                return x + 2 * y, x * 1

            @staticmethod
            def backward(ctx: Any, g: Any, h: Any) -> Any:
                log("function", g, h, held())
                return g + h, 2 * g

        leaves = [vector(torch, float(i + 1)) for i in range(rng.randint(1, 5))]
        inner: list[Any] = []

        def held() -> list[Any]:
            return [None if x.grad is None else x.grad.tolist()[0] for x in leaves]

        def named(kind: str) -> str:
            counts[0] += 1
            return f"{kind} {counts[0]}"

        def hook(kind: str, factor: int) -> Any:
            name = named(kind)

            def tensor(g: Any) -> Any:
                log(name, g, held())
                return g * factor if factor and g is not None else None

            def pre(go: Any) -> Any:
                log(name, go, held())
                if factor:
                    return tuple(None if g is None else g * factor for g in go)
                return None

            def post(gi: Any, go: Any) -> Any:
                log(name, gi, go, held())
                if factor and gi:
                    return tuple(None if g is None else g * factor for g in gi)
                return None

            def accumulated(p: Any) -> None:
                log(name, p.grad, held())

            return {"pre": pre, "post": post, "accumulated": accumulated}.get(kind, tensor)

        def pick() -> Any:
            return rng.choice(leaves + inner * 2)

        def packing() -> Any:
            name = named("saved")
            return torch.autograd.graph.saved_tensors_hooks(
                lambda t: t.detach(), lambda t: (log(name, t, held()), t)[1]
            )

        def grow() -> None:
            kind = rng.randrange(9)
            if kind == 0:
                inner.append(pick() * pick())
            elif kind == 1:
                inner.append(pick() + pick())
            elif kind == 2:
                inner.append(pick() - 2 * pick())
            elif kind == 3:
                inner.append(pick() * 3)
            elif kind == 4:
                parts = torch.cat([pick() for _ in range(rng.randint(2, 6))])
                inner.append(parts.sum().reshape(1))
            elif kind == 5:
                inner.extend(Twice.apply(pick(), pick()))
            elif kind == 6:
                inner.append(pick().square())
            elif kind == 7:
                a, b = torch.stack([pick(), pick()]).unbind()
                inner.extend((a, b))
            else:
                inner.append(torch.addcmul(pick(), pick(), pick()))

        with_functions = rng.random() < 0.7
        for _ in range(rng.randint(2, 12)):
            state = rng.getstate()
            if not with_functions and rng.randrange(9) == 5:
                continue
            rng.setstate(state)
            if rng.random() < 0.15:
                with packing():
                    grow()
            else:
                grow()
        hooked = rng.choice(["few", "some", "inner", "leaves"])
        for x in leaves:
            if hooked != "inner" and rng.random() < 0.5:
                x.register_hook(hook("leaf", rng.choice([0, 0, 2])))
            if hooked != "inner" and rng.random() < 0.3:
                x.register_post_accumulate_grad_hook(hook("accumulated", 0))
            if hooked == "some" and rng.random() < 0.2:
                node = torch.autograd.graph.get_gradient_edge(x).node
                inner.append(x * 1)  # keeps the node alive
                inner[-1].keep = node
                node.register_prehook(hook("pre", rng.choice([0, 2])))
                node.register_hook(hook("post", 0))
        for y in inner:
            often = {"few": 0.1, "some": 0.4, "inner": 0.4, "leaves": 0.0}[hooked]
            if rng.random() < often:
                y.register_hook(hook("tensor", rng.choice([0, 0, 3])))
            if rng.random() < often / 2:
                y.grad_fn.register_prehook(hook("pre", rng.choice([0, 0, 2])))
            if rng.random() < often / 2:
                y.grad_fn.register_hook(hook("post", rng.choice([0, 0, 2])))
            if rng.random() < 0.1:
                y.retain_grad()
        several = rng.random() < 0.3
        if several:
            some = [rng.choice(leaves + inner) for _ in range(rng.randint(1, 3))]
            mode = rng.choice(["all", "any"])
            torch.autograd.graph.register_multi_grad_hook(
                some, lambda g: log("multi", g, held()), mode=mode
            )
        for _ in range(rng.randint(1, 3)):
            roots = [rng.choice(inner or leaves) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
            if several:  # PyTorch forgets the root itself when it counts what will come
                roots = [y * 1 for y in roots]
            ones = [torch.ones(1) for _ in roots]
            create = rng.random() < 0.15
            how = rng.randrange(4)
            inputs = [rng.choice(leaves + inner) for _ in range(rng.randint(1, 3))]
            log("pass", how, create)
            kept: dict[str, Any] = {"retain_graph": True, "create_graph": create}
            if how < 2:
                torch.autograd.backward(roots, ones, **kept)
            elif how == 2:
                go = partial(torch.autograd.backward, roots, ones, inputs=inputs, **kept)
                log.attempt("inputs", go)
            else:
                go = partial(torch.autograd.grad, roots, inputs, ones, allow_unused=True, **kept)
                log.attempt("grad", go)
        log("leaves", [x.grad for x in leaves])
        log("inner", [y.grad for y in inner if y.retains_grad])

    return run


def nested_script(seed: int) -> Case:
    """A graph whose hooks run passes of their own over some of its leaves."""

    def run(torch: Any, log: Log) -> None:
        rng, inside = random.Random(seed), random.Random(seed + 1)
        leaves = [vector(torch, float(i + 1)) for i in range(rng.randint(2, 5))]
        others = [vector(torch, float(-i - 1)) for i in range(rng.randint(1, 5))]
        inner: list[Any] = []
        depth = [0]

        def held() -> list[Any]:
            return [None if x.grad is None else x.grad.tolist()[0] for x in leaves]

        def pick() -> Any:
            return rng.choice(leaves + inner * 2)

        def noting(name: str) -> Any:
            return lambda g: log(name, g, held())

        def nested(g: Any) -> None:
            if depth[0] > 2:
                return
            depth[0] += 1
            log("nested", depth[0])
            some = [inside.choice(others + leaves) for _ in range(inside.randint(1, 6))]
            with torch.enable_grad():
                z = torch.cat(some).sum()
            if inside.random() < 0.1:
                z.register_hook(lambda g: 1 // 0)
            log.attempt("nested", z.backward)
            log("done", held())
            depth[0] -= 1

        for _ in range(rng.randint(3, 9)):
            kind = rng.randrange(4)
            if kind == 0:
                inner.append(pick() * pick())
            elif kind == 1:
                inner.append(pick() + pick())
            elif kind == 2:
                parts = torch.cat([pick() for _ in range(rng.randint(2, 5))])
                inner.append(parts.sum().reshape(1))
            else:
                inner.append(pick() * 2)
        for name, tensors in (("leaf", leaves), ("other", others), ("inner", inner)):
            for i, t in enumerate(tensors):
                if rng.random() < 0.6:
                    t.register_hook(noting(f"{name} {i}"))
        for y in rng.sample(inner, 2):
            y.register_hook(nested)
        if rng.random() < 0.3:
            rng.choice(leaves).register_hook(nested)
        inner[-1].backward(retain_graph=True)
        log(held(), [x.grad for x in others])

    return run


def random_graphs(seeds: range) -> LoggedCases:
    return LoggedCases({str(seed): random_script(seed) for seed in seeds})


def nested_passes(seeds: range) -> LoggedCases:
    return LoggedCases({str(seed): nested_script(seed) for seed in seeds})


def results(lib: Any) -> Any:
    return {
        "random": random_graphs(range(250)).results(lib),
        "nested": nested_passes(range(60)).results(lib),
    }
