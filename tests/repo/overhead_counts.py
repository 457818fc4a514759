"""Counts what rushlight's own Python does in an op: prints {case: [functions entered, lines run]}.

Run by `test_overhead.py` in a process of its own, in which rushlight is interpreted even where it
is compiled: a compiled function leaves nothing to count, and the same source costs the same.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Callable
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, SourceFileLoader
from types import FrameType
from typing import Any

_where = importlib.util.find_spec("rushlight")
assert _where is not None and _where.origin is not None
HOME = os.path.dirname(_where.origin)
_source = FileFinder.path_hook((SourceFileLoader, SOURCE_SUFFIXES))


def _sources_only(path: str) -> Any:
    if not path.startswith(HOME):
        raise ImportError("not rushlight's")
    return _source(path)


def counted(work: Callable[[], object]) -> list[int]:
    """How many functions of rushlight's a call of `work` enters, and how many lines it runs."""
    found = [0, 0]

    def line(frame: FrameType, event: str, arg: object) -> Any:
        found[1] += event == "line"
        return line

    def call(frame: FrameType, event: str, arg: object) -> Any:
        if not frame.f_code.co_filename.startswith(HOME):
            return None
        found[0] += 1
        return line

    for _ in range(2):  # what happens once (imports), and what is kept at the second time
        work()
    sys.settrace(call)
    try:
        work()
    finally:
        sys.settrace(None)
    return found


def main() -> None:
    sys.path_hooks.insert(0, _sources_only)
    sys.path_importer_cache.clear()
    import rushlight as torch

    assert not torch.__config__.compiled()
    nn = torch.nn
    x, y = torch.ones(2, 2, requires_grad=True), torch.ones(2, 2)

    def chain(steps: int) -> Callable[[], None]:
        def work() -> None:
            z = x
            for _ in range(steps):
                z = z * y
            z.backward(y)
            x.grad = None

        return work

    def views(length: int) -> Callable[[], None]:
        def work() -> None:
            v = x * 1
            for _ in range(length):
                v = v.t()
            v.mul_(2)
            v.sum().backward()
            x.grad = None

        return work

    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Linear(20, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10)
    )
    params = {name: p.detach() for name, p in net.named_parameters()}
    images, labels = torch.randn(64, 20), torch.randint(0, 10, (64,))
    more, their_labels = images.repeat(4, 1), labels.repeat(4)

    def loss(params: dict[str, Any], x: Any, y: Any) -> Any:
        out = torch.func.functional_call(net, params, (x[None],))
        return nn.functional.cross_entropy(out, y[None])

    one = torch.func.grad(loss)
    many = torch.func.vmap(one, in_dims=(None, 0, 0))
    short, long = counted(chain(10)), counted(chain(110))
    found = {
        "multiply": counted(lambda: x * y),
        "multiply, not recorded": counted(lambda: y * y),
        "a function of one tensor": counted(lambda: torch.exp(x)),
        "a sum": counted(lambda: x.sum()),
        "a view": counted(lambda: x.view(4)),
        "a product of matrices": counted(lambda: x @ y),
        "100 multiplies, there and back": [b - a for a, b in zip(short, long, strict=True)],
        "100 views, written": counted(views(100)),
        "1000 views, written": counted(views(1000)),
        "a gradient": counted(lambda: one(params, images[0], labels[0])),
        "64 gradients at once": counted(lambda: many(params, images, labels)),
        "256 gradients at once": counted(lambda: many(params, more, their_labels)),
    }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
