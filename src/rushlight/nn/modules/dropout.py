"""Dropout as modules."""

from __future__ import annotations

from typing import Any

from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module

__all__ = [
    "AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout",
]  # fmt: skip
__dir__ = __all__.copy


class Dropping(Module):
    """What all kinds of dropout have: the probability, and whether the input is overwritten."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(Dropping):
    """Dropout(p=0.5, inplace=False): in training, sets elements to 0 with probability `p`.

    >>> torch.nn.Dropout().eval()(torch.ones(2))
    tensor([1., 1.])
    """

    def forward(self, input: Any) -> Any:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(Dropping):
    """Dropout1d(p=0.5, inplace=False): drops whole channels of signals."""

    def forward(self, input: Any) -> Any:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(Dropping):
    """Dropout2d(p=0.5, inplace=False): drops whole channels of images."""

    def forward(self, input: Any) -> Any:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(Dropping):
    """Dropout3d(p=0.5, inplace=False): drops whole channels of volumes."""

    def forward(self, input: Any) -> Any:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(Dropping):
    """AlphaDropout(p=0.5, inplace=False): dropout that keeps mean 0 and variance 1, for SELUs.

    >>> torch.nn.AlphaDropout(0.2)
    AlphaDropout(p=0.2, inplace=False)
    """

    def forward(self, input: Any) -> Any:
        return F.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(Dropping):
    """FeatureAlphaDropout(p=0.5, inplace=False): `AlphaDropout` of whole channels."""

    def forward(self, input: Any) -> Any:
        return F.feature_alpha_dropout(input, self.p, self.training, self.inplace)


_DropoutNd = Dropping  # PyTorch's name, which libraries ask `isinstance` for
