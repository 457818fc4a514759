"""`torch._subclasses.fake_tensor`: nothing is a fake tensor."""

from typing import Any

from rushlight.absent import stand_in

__all__ = ["FakeTensor", "FakeTensorMode", "is_fake"]
__dir__ = __all__.copy

_WHY = "rushlight has tensors without numbers on the device 'meta' alone"
FakeTensor = stand_in("torch._subclasses.fake_tensor.FakeTensor", _WHY)
FakeTensorMode = stand_in("torch._subclasses.fake_tensor.FakeTensorMode", _WHY)


def is_fake(x: Any) -> bool:
    """Whether a tensor is a fake one: never."""
    return False


def unset_fake_temporarily() -> Any:
    """A block without fake tensors: any block is."""
    import contextlib

    return contextlib.nullcontext()
