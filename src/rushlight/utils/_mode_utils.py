"""`torch.utils._mode_utils`, which other people's test helpers import."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

__all__ = ["all_same_mode", "no_dispatch"]
__dir__ = __all__.copy


def all_same_mode(modes: Sequence[Any]) -> bool:
    """Whether all modes are equal."""
    return all(mode == modes[0] for mode in modes)


class no_dispatch(contextlib.nullcontext[None]):
    """Switches user-defined dispatch off in PyTorch. There is none here: it does nothing."""
