"""`torch.jit.annotations`: names for annotations, which nothing here reads."""

from __future__ import annotations

import typing as _typing
from typing import Any

from rushlight.tensor import Tensor as Tensor

__all__ = [
    "Any", "BroadcastingList1", "BroadcastingList2", "BroadcastingList3",
]  # fmt: skip
__dir__ = __all__.copy

# as they stand in PyTorch's module, from which older programs import them
Dict, List, Optional, Tuple, Union = (
    dict, list, _typing.Optional, tuple, _typing.Union
)  # fmt: skip


class BroadcastingListCls:
    """A list of numbers of a given length, or one number for all."""

    def __getitem__(self, types: Any) -> None:
        return None


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = BroadcastingListCls()
BroadcastingList4 = BroadcastingList5 = BroadcastingList6 = BroadcastingList1
