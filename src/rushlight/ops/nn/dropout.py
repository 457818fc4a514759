"""Dropout: of elements, of whole channels, and for networks of SELUs."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, Final

from rushlight import random as generators
from rushlight.arrays import vocabulary as v
from rushlight.arrays.device import CPU
from rushlight.arrays.host import device_of, from_host, make_array, move, to_host
from rushlight.core import plain_draws
from rushlight.core.grad_mode import state
from rushlight.core.graph import wrap
from rushlight.core.transforms.stack import innermost
from rushlight.ops.checks import check_tensor
from rushlight.ops.random.batching import draw_new, enclosing_vmap
from rushlight.ops.registry import describe, function, functional, variant

_ALPHA: Final = 1.7580993408473766  # where SELU levels off below 0


def drop(
    input: Any, p: float, inplace: bool = False, features: bool = False, alpha: bool = False
) -> Any:
    """`input` times a mask of 0 and 1/(1-p), drawn for each element, or for whole `features`.

    With `alpha`, dropped elements become -1.758 instead of 0, and the result is scaled and shifted
    so that mean and variance are preserved.
    """
    x = input._array
    if p == 0 or x.size == 0:
        return input
    if p == 1:
        noise = wrap(v.constant(x, 0, x.dtype))
        return input.mul_(noise) if inplace else input * noise
    noise = _noise(x, p, features, generators.keep_mask if alpha else generators.dropout_mask)
    if not alpha:
        return input.mul_(noise) if inplace else input * noise
    a = 1 / math.sqrt((_ALPHA * _ALPHA * p + 1) * (1 - p))
    shift = noise.add(-1).mul_(_ALPHA * a).add_(_ALPHA * a * p)
    noise = noise.mul_(a)
    return input.mul_(noise).add_(shift) if inplace else input * noise + shift


def _noise(x: Any, p: float, features: bool, mask: Callable[[Any, float], Any]) -> Any:
    """A mask for the array `x`, in its memory layout; inside transforms row by row, as in
    PyTorch."""
    if features and x.ndim < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    shape = (*x.shape[:2], *(1,) * (x.ndim - 2)) if features else x.shape
    if state.level != 0 and innermost() is not None:
        return _noise_in_transform(shape, x.dtype, device_of(x), p, mask)
    if device_of(x).type == "meta":
        return wrap(v.empty(x, shape, x.dtype))
    host = to_host(x)
    return wrap(from_host(mask(v.empty(host, shape, host.dtype) if features else host, p), x))


def _noise_in_transform(
    shape: tuple[int, ...], dtype: Any, place: Any, p: float, mask: Callable[[Any, float], Any]
) -> Any:
    if (level := enclosing_vmap()) is not None:
        return draw_new(
            level, shape, False, lambda shape, _: _noise_in_transform(shape, dtype, place, p, mask)
        )
    return wrap(move(mask(make_array(shape, dtype, CPU), p), place))


def _check_p(p: float, error: type[Exception]) -> None:
    if not 0 <= p <= 1:
        shown = p if error is ValueError else f"{p:g}"  # as Python writes it, and as C++ does
        raise error(f"dropout probability has to be between 0 and 1, but got {shown}")


def _export(
    name: str, training: bool, features: bool, alpha: bool, text: str, example: str, shown: str,
    quick: Any = None,
) -> None:  # fmt: skip
    """Make a function of `nn.functional`; `training` is its default."""

    def dropout(
        input: Any, p: float = 0.5, training: bool = training, inplace: bool = False
    ) -> Any:
        _check_p(p, ValueError)
        check_tensor(input, name)
        return drop(input, p, inplace, features, alpha) if training else input

    doc = describe(text, f"torch.nn.functional.{name}({example})", shown)
    functional(quick=quick, told=generators)(variant(dropout, name, doc))


_export(
    "dropout", True, False, False,
    "In training, set each element to 0 with probability `p` and scale the others by 1/(1-p).",
    "torch.tensor([1., 2.]), p=0.5, training=False", "tensor([1., 2.])", plain_draws.dropout,
)  # fmt: skip
_export(
    "alpha_dropout", False, False, True,
    "Dropout for networks of SELUs: in training, elements become -1.758 with probability `p`, and "
    "the\nresult is scaled and shifted so that mean 0 and variance 1 stay.",
    "torch.tensor([1., 2.]), p=0.5, training=False", "tensor([1., 2.])",
)  # fmt: skip
_export(
    "feature_alpha_dropout", False, True, True, "`alpha_dropout` of whole channels.",
    "torch.ones(1, 2), p=1., training=True", "tensor([[0., 0.]])",
)  # fmt: skip


# --- of whole channels ----------------------------------------------------------------------------
def _feature_dropout(name: str, n: int, input: Any, p: float, training: bool, inplace: bool) -> Any:
    _check_p(p, ValueError)
    rank = input._array.ndim
    note = (
        f"Note that {name} exists to provide channel-wise dropout on inputs with {n} spatial "
        f"dimension{'s' if n > 1 else ''}, a channel dimension, and an optional batch dimension "
        f"(i.e. {n + 1}D or {n + 2}D inputs)."
    )
    if rank not in (n + 1, n + 2):
        if n == 1:
            raise RuntimeError(
                f"dropout1d: Expected 2D or 3D input, but received a {rank}D input. {note}"
            )
        warnings.warn(
            f"{name}: Received a {rank}-D input to {name}, which is deprecated and will result in "
            "an error in a future release. To retain the behavior and silence this warning, please "
            f"use dropout instead. {note}",
            stacklevel=3,
        )
    unbatched = rank == n + 1 and n != 2  # for images PyTorch takes such an input for a batch
    x = input
    if unbatched:
        x = input.unsqueeze_(0) if inplace else input.unsqueeze(0)
    y = drop(x, p, inplace, True) if training else x
    if unbatched:
        return y.squeeze_(0) if inplace else y.squeeze(0)
    return y


def _export_channels(name: str, n: int, what: str, example: str, shown: str) -> None:
    def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
        return _feature_dropout(name, n, input, p, training, inplace)

    text = f"Dropout of whole channels of {what}."
    doc = describe(text, f"torch.nn.functional.{name}({example}, p=1.)", shown)
    functional()(variant(dropout, name, doc))


_export_channels(
    "dropout1d", 1, "signals", "torch.ones(1, 2, 2)",
    "tensor([[[0., 0.],\n         [0., 0.]]])",
)  # fmt: skip
_export_channels("dropout2d", 2, "images", "torch.ones(1, 1, 1, 2)", "tensor([[[[0., 0.]]]])")
_export_channels("dropout3d", 3, "volumes", "torch.ones(1, 1, 1, 1, 2)", "tensor([[[[[0., 0.]]]]])")


# --- by the names at the top of the package -------------------------------------------------------
def _export_free(
    name: str, features: bool, alpha: bool, text: str, example: str = "", shown: str = ""
) -> None:
    """Make `torch.f`, and `torch.f_`."""

    def make(title: str, inplace: bool, doc: str) -> None:
        def dropout(input: Any, p: float, train: bool) -> Any:
            _check_p(p, RuntimeError)
            check_tensor(input, title)
            return drop(input, p, inplace, features, alpha) if train else input

        function(method=False)(variant(dropout, title, doc))

    make(name, False, describe(text, example, shown))
    make(name + "_", True, describe(f"In-place version of `{name}`."))


_export_free(
    "dropout", False, False, "`nn.functional.dropout`.",
    "torch.dropout(torch.tensor([1., 2.]), 0., True)", "tensor([1., 2.])",
)  # fmt: skip
_export_free(
    "feature_dropout", True, False,
    "Dropout of whole channels: of all that shares the first two indices.",
    "torch.feature_dropout(torch.ones(1, 2), 1., True)", "tensor([[0., 0.]])",
)  # fmt: skip
_export_free("alpha_dropout", False, True, "`nn.functional.alpha_dropout`.")
_export_free("feature_alpha_dropout", True, True, "`nn.functional.feature_alpha_dropout`.")
