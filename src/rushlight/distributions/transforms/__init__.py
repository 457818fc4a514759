"""Invertible maps with known Jacobians: what turns one distribution into another.

>>> t = torch.distributions.ComposeTransform([
...     torch.distributions.ExpTransform(), torch.distributions.AffineTransform(1.0, 2.0)])
>>> x = torch.tensor(0.0)
>>> y = t(x)
>>> y, t.inv(y), t.log_abs_det_jacobian(x, y)
(tensor(3.), tensor(0.), tensor(0.6931))
"""

from rushlight.distributions.transforms.combined import (
    CatTransform,
    ComposeTransform,
    IndependentTransform,
    ReshapeTransform,
    StackTransform,
    identity_transform,
)
from rushlight.distributions.transforms.elementwise import (
    AbsTransform,
    AffineTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    SoftplusTransform,
    TanhTransform,
)
from rushlight.distributions.transforms.elementwise import _clipped_sigmoid as _clipped_sigmoid
from rushlight.distributions.transforms.events import (
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    SoftmaxTransform,
    StickBreakingTransform,
)
from rushlight.distributions.transforms.transform import Transform
from rushlight.distributions.transforms.transform import _InverseTransform as _InverseTransform

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
    "CumulativeDistributionTransform", "ExpTransform", "IndependentTransform",
    "LowerCholeskyTransform", "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform",
    "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform", "StackTransform",
    "StickBreakingTransform", "TanhTransform", "Transform", "identity_transform",
]  # fmt: skip
__dir__ = __all__.copy
