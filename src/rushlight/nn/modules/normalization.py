"""`LayerNorm`."""

from __future__ import annotations

from typing import Any

from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.modules.linear import new_parameter
from rushlight.nn.modules.module import Module

__all__ = ["LayerNorm"]
__dir__ = __all__.copy


class LayerNorm(Module):
    """LayerNorm(normalized_shape, eps=1e-05, elementwise_affine=True, bias=True): mean 0 and
    variance 1 over the last dimensions, then scaled and shifted.

    >>> torch.nn.LayerNorm(2, elementwise_affine=False)(torch.tensor([1., 3.]))
    tensor([-1.0000,  1.0000])
    """

    def __init__(
        self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True,
        bias: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        shape = (
            (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        )
        self.normalized_shape = shape
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        for name, wanted in (("weight", True), ("bias", bias)):
            there = elementwise_affine and wanted
            self.register_parameter(
                name, new_parameter(*shape, device=device, dtype=dtype) if there else None
            )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Scale by 1, shift by 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Any) -> Any:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )
