"""`torch._tensor`: the module in which PyTorch defines Tensor, by the name that programs use."""

from rushlight.tensor import Tensor as Tensor

__all__: list[str] = []
