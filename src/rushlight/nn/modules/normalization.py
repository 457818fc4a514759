"""Normalisation of each example by itself."""

from __future__ import annotations

from typing import Any

from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.modules.linear import new_parameter
from rushlight.nn.modules.module import Module
from rushlight.ops.norms.rms_norm import cross_map_norm

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]
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


class RMSNorm(Module):
    """RMSNorm(normalized_shape, eps=None, elementwise_affine=True): divided by the root of the
    mean square over the last dimensions, then scaled.

    >>> torch.nn.RMSNorm(4)(torch.tensor([3., 4., 0., 0.])).detach()
    tensor([1.2000, 1.6000, 0.0000, 0.0000])
    """

    def __init__(
        self, normalized_shape: Any, eps: float | None = None, elementwise_affine: bool = True,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        shape = (
            (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        )
        self.normalized_shape = shape
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.register_parameter(
            "weight",
            new_parameter(*shape, device=device, dtype=dtype) if elementwise_affine else None,
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Scale by 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Any) -> Any:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class GroupNorm(Module):
    """GroupNorm(num_groups, num_channels, eps=1e-05, affine=True): mean 0 and variance 1 over each
    group of channels of each example, then scaled and shifted by channel.

    >>> torch.nn.GroupNorm(2, 4, affine=False)(torch.tensor([[1., 3., 10., 30.]]))
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True,
        device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(
                f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        for name, wanted in (("weight", True), ("bias", bias)):
            there = affine and wanted
            self.register_parameter(
                name, new_parameter(num_channels, device=device, dtype=dtype) if there else None
            )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Scale by 1, shift by 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Any) -> Any:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class LocalResponseNorm(Module):
    """LocalResponseNorm(size, alpha=0.0001, beta=0.75, k=1.0): divided by a power of the mean
    square over neighbouring channels.

    >>> torch.nn.LocalResponseNorm(2, alpha=1., beta=1.)(torch.ones(1, 2, 1)).flatten()
    tensor([0.6667, 0.5000])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
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
    """CrossMapLRN2d(size, alpha=0.0001, beta=0.75, k=1): `LocalResponseNorm` of images, with the
    window centred.

    >>> torch.nn.CrossMapLRN2d(3, alpha=3., beta=1.)(torch.ones(1, 2, 1, 1)).flatten()
    tensor([0.3333, 0.3333])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Any) -> Any:
        if input.ndim != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.ndim}D instead.")
        return cross_map_norm(input, self.size, self.alpha, self.beta, self.k)
