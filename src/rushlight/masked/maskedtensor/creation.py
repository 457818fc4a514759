"""Making tensors with a mask."""

from __future__ import annotations

from typing import Any

from rushlight.masked.maskedtensor.core import MaskedTensor

__all__ = ["as_masked_tensor", "masked_tensor"]
__dir__ = __all__.copy


def masked_tensor(data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
    """A tensor of which only the elements count where the mask is true: a copy, and a leaf.

    >>> from rushlight.masked import masked_tensor
    >>> x = masked_tensor(torch.tensor([1., 2., 3.]), torch.tensor([True, False, True]))
    >>> x.sum()
    MaskedTensor(  4.0000, True)
    """
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Any, mask: Any) -> MaskedTensor:
    """The same, with the history of `data`: gradients reach it where the mask is true.

    >>> from rushlight.masked import as_masked_tensor
    >>> x = torch.tensor([0., 4.], requires_grad=True)
    >>> as_masked_tensor(x, x > 0).sqrt().sum().backward()
    >>> x.grad
    tensor([0.0000, 0.2500])
    """
    return MaskedTensor._from_values(data, mask)
