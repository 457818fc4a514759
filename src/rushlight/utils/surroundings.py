"""What a checkpointed function finds around it when it runs again: random state, default device,
autocast."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from rushlight.arrays.device import get_default_device
from rushlight.core.graph import TensorBase
from rushlight.random import default_generator, fork_rng, get_rng_state, set_rng_state


def tensors_in(x: Any) -> Iterator[Any]:
    """The tensors in nested lists, tuples and dictionaries."""
    if isinstance(x, TensorBase):
        yield x
    elif isinstance(x, (list, tuple)):
        for y in x:
            yield from tensors_in(y)
    elif isinstance(x, dict):
        yield from tensors_in(list(x.values()))


class DefaultDeviceType:
    """The device whose random state is kept; one generator serves every device of rushlight."""

    _default_device_type: str | None = None

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Name the device."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """The device that was named, or else the one that tensors are made on."""
        return DefaultDeviceType._default_device_type or get_default_device().type


def get_device_states(*args: Any) -> tuple[list[int], list[Any]]:
    """The numbers of the GPUs the arguments are on, and the state of the generator for each."""
    numbers = [t.get_device() for t in tensors_in(args) if t.device.type != "cpu"]
    return numbers, [get_rng_state() for _ in numbers]


def set_device_states(devices: Any, states: Any, *, device_type: str | None = None) -> None:
    """Put the generator into the states that `get_device_states` gave."""
    for _, state in zip(devices, states, strict=False):
        set_rng_state(state)


class Surroundings:
    """What a function finds around it: the random state (if kept), the default device, autocast."""

    def __init__(self, preserve: bool) -> None:
        self.random = default_generator.raw_state() if preserve else None
        self.device = get_default_device()
        amp: Any = sys.modules.get("rushlight.amp.casting")  # not there: never in force
        self.casting: Any = nullcontext() if amp is None else amp.Again()

    @contextmanager
    def again(self) -> Iterator[None]:
        """The same surroundings once more; what is drawn inside leaves no trace outside."""
        device: Any = self.device
        with fork_rng(enabled=self.random is not None), self.casting:
            if self.random is not None:
                default_generator.load(self.random)
            if device == get_default_device():
                yield
            else:
                with device:
                    yield
