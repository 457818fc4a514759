"""Random numbers: PyTorch's own, bit for bit, for the same seed.

This package works on NumPy arrays and imports nothing of rushlight; the tensor layer wraps it. It
holds the generator (`generator`), what fills an array in place (`draw`, `normals`, `integers`),
what makes a new one (`choose`), and here the functions on the default generator.

A function without `gen` draws from the default generator. Numbers for a GPU are drawn here too and
copied there, so that a seed means the same on every device.
"""

from __future__ import annotations

import typing as _typing
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rushlight.missing import say_missing as _say_missing
from rushlight.random.choose import multinomial, normal, randperm
from rushlight.random.draw import (
    bernoulli_,
    cauchy_,
    dropout_mask,
    exponential_,
    geometric_,
    keep_mask,
    log_normal_,
    normal_,
    uniform_,
)
from rushlight.random.exact import dense_like
from rushlight.random.generator import Generator, checked_seed, default_generator, present
from rushlight.random.integers import random_

__all__ = [
    "Generator",
    "bernoulli_",
    "cauchy_",
    "default_generator",
    "dense_like",
    "dropout_mask",
    "exponential_",
    "fork_rng",
    "geometric_",
    "get_rng_state",
    "initial_seed",
    "keep_mask",
    "log_normal_",
    "manual_seed",
    "multinomial",
    "normal",
    "normal_",
    "present",
    "random_",
    "randperm",
    "seed",
    "set_rng_state",
    "uniform_",
]


def manual_seed(seed: int) -> Generator:
    """manual_seed(seed) -> Generator: start the default generator over from `seed`.

    >>> import rushlight as torch
    >>> generator = torch.manual_seed(0)
    >>> torch.initial_seed()
    0
    """
    return default_generator.manual_seed(checked_seed(int(seed)))


def seed() -> int:
    """seed() -> int: start the default generator over from a seed of the operating system's.

    >>> import rushlight as torch
    >>> torch.seed() == torch.initial_seed()
    True
    """
    return default_generator.seed()


def initial_seed() -> int:
    """initial_seed() -> int: the seed the default generator was last given.

    >>> import rushlight as torch
    >>> generator = torch.manual_seed(-1)
    >>> torch.initial_seed()
    18446744073709551615
    """
    return default_generator.initial_seed()


def get_rng_state() -> Any:
    """get_rng_state() -> Tensor: the default generator's state.

    >>> import rushlight as torch
    >>> state = torch.get_rng_state()
    >>> state.shape
    torch.Size([5056])
    """
    return default_generator.get_state()


def set_rng_state(new_state: Any) -> None:
    """set_rng_state(new_state): put the default generator into a state that was saved.

    >>> import rushlight as torch
    >>> state = torch.get_rng_state()
    >>> x = torch.rand(3)
    >>> torch.set_rng_state(state)
    >>> bool((torch.rand(3) == x).all())
    True
    """
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(
    devices: Iterable[Any] | None = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str = "cuda",
) -> Iterator[None]:
    """fork_rng(): what is drawn inside leaves the default generator as it was.

    One generator serves every device here, so `devices` and `device_type` change nothing.

    >>> import rushlight as torch
    >>> before = torch.get_rng_state()
    >>> with torch.random.fork_rng():
    ...     x = torch.rand(3)
    >>> bool((torch.get_rng_state() == before).all())
    True
    """
    if not enabled:
        yield
        return
    state = default_generator.raw_state()
    try:
        yield
    finally:
        default_generator.load(state)


if not _typing.TYPE_CHECKING:
    __getattr__ = _say_missing("torch.random", globals())
