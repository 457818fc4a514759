"""`LayerNorm`, and normalisation by neighbouring channels."""

from __future__ import annotations

from typing import Any, ClassVar

from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.modules.linear import new_parameter
from rushlight.nn.modules.module import Module

__all__ = ["CrossMapLRN2d", "LayerNorm", "LocalResponseNorm"]
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


class LocalResponseNorm(Module):
    """LocalResponseNorm(size, alpha=0.0001, beta=0.75, k=1.0): each channel divided by what `size`
    neighbouring channels hold.

    >>> torch.nn.LocalResponseNorm(1, alpha=3., beta=1.)(torch.ones(1, 1, 1))
    tensor([[[0.2500]]])
    """

    __constants__: ClassVar[Any] = ["size", "alpha", "beta", "k"]

    def __init__(
        self, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0
    ) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Any) -> Any:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """CrossMapLRN2d(size, alpha=0.0001, beta=0.75, k=1): `LocalResponseNorm` of images, as it was
    in Torch: a window of an even size is one smaller, and the first channel is in all windows.

    >>> torch.nn.CrossMapLRN2d(1, alpha=3., beta=1.)(torch.ones(1, 1, 1, 1))
    tensor([[[[0.2500]]]])
    """

    def __init__(self, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Any) -> Any:
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        reach = (self.size - 1) // 2
        squares = input.mul(input)
        width = 2 * reach + 1
        padded = F.pad(squares, (0, 0, 0, 0, reach, reach)).unsqueeze(1)
        total = F.avg_pool3d(padded, (width, 1, 1), stride=1, divisor_override=1).squeeze(1)
        late = input.shape[1] - reach - 1  # channels whose own window lacks the first
        if late > 0:
            first = squares[:, :1].expand(-1, late, -1, -1)
            total = total + F.pad(first, (0, 0, 0, 0, reach + 1, 0))
        scale = total.mul(self.alpha / self.size).add(self.k)
        return input * scale.pow(-self.beta)
