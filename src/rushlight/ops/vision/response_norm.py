"""`local_response_norm`: each channel divided by what its neighbours hold."""

from __future__ import annotations

from typing import Any

from rushlight.ops.checks import check_tensor
from rushlight.ops.registry import functional, namespaces
from rushlight.ops.shape.pad import constant_pad_nd


@functional()
def local_response_norm(
    input: Any, size: int, alpha: Any = 1e-4, beta: Any = 0.75, k: Any = 1.0
) -> Any:
    """x / (k + alpha · mean of the squares of `size` neighbouring channels)^beta.

    Args:
        size: how many channels are neighbours.
        alpha: how much they count.
        beta: the exponent.
        k: what is added to their mean.

    >>> torch.nn.functional.local_response_norm(torch.ones(1, 1, 1), 1, alpha=3., beta=1.)
    tensor([[[0.2500]]])
    """
    x = check_tensor(input, "local_response_norm")
    if x.ndim < 3:
        raise ValueError(
            "Expected 3D or higher dimensionality                          input (got "
            f"{x.ndim} dimensions)"
        )
    if x.size == 0:
        return input
    avg2, avg3 = (namespaces["nn.functional"][f"avg_pool{n}d"] for n in (2, 3))
    div = input.mul(input)
    sides = (size // 2, (size - 1) // 2)
    if x.ndim == 3:
        div = constant_pad_nd(div.unsqueeze(1), (0, 0, *sides))
        div = avg2(div, (size, 1), stride=1).squeeze(1)
    else:
        rest = 1
        for n in x.shape[3:]:
            rest *= n
        shape = x.shape
        div = div.view(shape[0], 1, shape[1], shape[2], rest)
        div = constant_pad_nd(div, (0, 0, 0, 0, *sides))
        div = avg3(div, (size, 1, 1), stride=1).squeeze(1).view(*shape)
    return input / div.mul(alpha).add(k).pow(beta)
