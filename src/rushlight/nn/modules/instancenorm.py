"""Instance normalisation."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

from rushlight.nn import functional as F
from rushlight.nn.modules.batchnorm import Norm

__all__ = ["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"]
__dir__ = __all__.copy


class InstanceNorm(Norm):
    """Normalises each channel of each example over its positions, of which it has `_spatial`
    dimensions; an example may come alone, without a batch."""

    _spatial: ClassVar[int] = 0

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
        track_running_stats: bool = False, device: Any = None, dtype: Any = None, *,
        bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def _check_input_dim(self, input: Any) -> None:
        alone = self._spatial + 1
        if input.ndim not in (alone, alone + 1):
            raise ValueError(f"expected {alone}D or {alone + 1}D input (got {input.ndim}D input)")

    def forward(self, input: Any) -> Any:
        self._check_input_dim(input)
        dim = input.ndim - self._spatial - 1
        if input.shape[dim] != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={dim} to match num_features "
                    f"({self.num_features}), but got: {input.shape[dim]}."
                )
            warnings.warn(
                f"input's size at dim={dim} does not match num_features. You can silence this "
                "warning by not passing in num_features, which is not used because affine=False",
                stacklevel=2,
            )
        batch = input if dim else input.unsqueeze(0)
        y = F.instance_norm(
            batch, self.running_mean, self.running_var, self.weight, self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0, self.eps,
        )  # fmt: skip
        return y if dim else y.squeeze(0)


class InstanceNorm1d(InstanceNorm):
    """InstanceNorm1d(num_features, eps=1e-05, momentum=0.1, affine=False,
    track_running_stats=False): of signals, (N, C, L) or (C, L).

    >>> torch.nn.InstanceNorm1d(2)(torch.tensor([[1., 3.], [10., 30.]]))
    tensor([[-1.0000,  1.0000],
            [-1.0000,  1.0000]])
    """

    _spatial = 1


class InstanceNorm2d(InstanceNorm):
    """InstanceNorm2d(num_features, eps=1e-05, momentum=0.1, affine=False,
    track_running_stats=False): of images, (N, C, H, W) or (C, H, W).

    >>> torch.nn.InstanceNorm2d(1)(torch.tensor([[[1., 3.]]]))
    tensor([[[-1.0000,  1.0000]]])
    """

    _spatial = 2


class InstanceNorm3d(InstanceNorm):
    """InstanceNorm3d(num_features, eps=1e-05, momentum=0.1, affine=False,
    track_running_stats=False): of volumes, (N, C, D, H, W) or (C, D, H, W).

    >>> torch.nn.InstanceNorm3d(1)(torch.tensor([[[[1., 3.]]]]))
    tensor([[[[-1.0000,  1.0000]]]])
    """

    _spatial = 3


_InstanceNorm = InstanceNorm  # PyTorch's name, which libraries ask `isinstance` for
