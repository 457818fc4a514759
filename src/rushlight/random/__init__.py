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

from rushlight.missing import face as _face
from rushlight.random.choose import multinomial as multinomial
from rushlight.random.choose import normal as normal
from rushlight.random.choose import randperm as randperm
from rushlight.random.draw import bernoulli_ as bernoulli_
from rushlight.random.draw import cauchy_ as cauchy_
from rushlight.random.draw import dropout_mask as dropout_mask
from rushlight.random.draw import exponential_ as exponential_
from rushlight.random.draw import geometric_ as geometric_
from rushlight.random.draw import keep_mask as keep_mask
from rushlight.random.draw import log_normal_ as log_normal_
from rushlight.random.draw import normal_ as normal_
from rushlight.random.draw import uniform_ as uniform_
from rushlight.random.exact import dense_like as dense_like
from rushlight.random.generator import Generator as Generator
from rushlight.random.generator import checked_seed
from rushlight.random.generator import default_generator as default_generator
from rushlight.random.generator import present as present
from rushlight.random.integers import random_ as random_

__all__ = ["fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]


def manual_seed(seed: int) -> Generator:
    """manual_seed(seed) -> Generator: start the default generator over from `seed`.

    >>> generator = torch.manual_seed(0)
    >>> torch.initial_seed()
    0
    """
    return default_generator.manual_seed(checked_seed(int(seed)))


def seed() -> int:
    """seed() -> int: start the default generator over from a seed of the operating system's.

    >>> torch.seed() == torch.initial_seed()
    True
    """
    return default_generator.seed()


def initial_seed() -> int:
    """initial_seed() -> int: the seed the default generator was last given.

    >>> generator = torch.manual_seed(-1)
    >>> torch.initial_seed()
    18446744073709551615
    """
    return default_generator.initial_seed()


def get_rng_state() -> Any:
    """get_rng_state() -> Tensor: the default generator's state.

    >>> state = torch.get_rng_state()
    >>> state.shape
    torch.Size([5056])
    """
    return default_generator.get_state()


def set_rng_state(new_state: Any) -> None:
    """set_rng_state(new_state): put the default generator into a state that was saved.

    >>> state = torch.get_rng_state()
    >>> x = torch.rand(3)
    >>> torch.set_rng_state(state)
    >>> bool((torch.rand(3) == x).all())
    True
    """
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(
    devices: Iterable[Any] | None = None, enabled: bool = True, _caller: str = "fork_rng",
    _devices_kw: str = "devices", device_type: str = "cuda",
) -> Iterator[None]:  # fmt: skip
    """fork_rng(): what is drawn inside leaves the default generator as it was.

    One generator serves every device here, so `devices` and `device_type` change nothing.

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
    __getattr__, __dir__ = _face("torch.random", globals())
