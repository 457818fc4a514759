"""What is left of a loop that takes whole steps: Note [Tails] in `codegen/tails.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from rushlight.arrays import kernels
from rushlight.codegen.catalogue import shipped
from rushlight.codegen.expressions import EACH, Kernel

pytestmark = pytest.mark.skipif(kernels._module is None, reason="there are no kernels")

FLAT = [kernel for kernel in shipped() if not kernel.by_rows]
COUNTS = (1, 2, 3, 7, 15, 16, 17, 31, 63, 64, 65, 100)


@pytest.fixture(params=("any", "AVX2", "AVX-512"))
def processor(request: pytest.FixtureRequest) -> Iterator[None]:
    """The functions for one sort of processors."""
    sort = ("any", "AVX2", "AVX-512").index(request.param)
    before = kernels._module.use_processor(0)
    try:
        kernels._module.use_processor(sort)
    except ValueError:
        kernels._module.use_processor(before)
        pytest.skip("not on this processor")
    yield
    kernels._module.use_processor(before)


def arrays(kernel: Kernel, kind: str, count: int) -> list[Any]:
    """Inputs of a kernel; the first elements are the same for any `count`."""
    made: list[Any] = []
    for k, e in enumerate(kernel.inputs):
        x = np.random.default_rng(k).standard_normal(128)
        x[5::31] = 0
        made.append((x > 0 if e.truth else x.astype(kind))[:count].copy())
    return made


def run(name: str, args: list[Any]) -> tuple[Any, ...] | None:
    made = kernels._module.table[name](*args)
    if made is None:
        return None
    return made if isinstance(made, tuple) else (made,)


@pytest.mark.usefixtures("processor")
@pytest.mark.parametrize("kind", ("f4", "f8"))
def test_last_elements_are_computed_as_the_first_are(kind: str) -> None:
    """The same numbers give the same bits, wherever they stand and however many follow."""
    compared = 0
    for kernel in FLAT:
        if not all(e.role == EACH for e in kernel.inputs):
            continue
        whole = run(kernel.name, arrays(kernel, kind, 128))
        for count in COUNTS if whole is not None else ():
            part = run(kernel.name, arrays(kernel, kind, count))
            assert part is not None
            for y, z in zip(part, whole):
                assert y.tobytes() == z[:count].tobytes(), (kernel.name, count)
        compared += whole is not None
    assert compared > 100


@pytest.mark.usefixtures("processor")
@pytest.mark.parametrize("name", ("Exp.forward", "Mul.forward"))
def test_in_place(name: str) -> None:
    """Results may take the place of inputs, and nothing behind them is written."""
    kernel = next(kernel for kernel in FLAT if kernel.name == name)
    for count in COUNTS:
        args = arrays(kernel, "f4", count)
        room = np.append(args[0], np.float32(7))
        expected = run(name, args)
        assert expected is not None
        assert kernels._module.table[name].into((room[:-1],), room[:-1], *args[1:])
        assert room[:-1].tobytes() == expected[0].tobytes() and room[-1] == 7
