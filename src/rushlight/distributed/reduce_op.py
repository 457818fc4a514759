"""`ReduceOp`: how the values of several processes become one."""

from __future__ import annotations

import enum

__all__ = ["ReduceOp"]
__dir__ = __all__.copy


class ReduceOp(enum.Enum):
    """How values of several processes become one: an argument of `all_reduce` and its kin.

    >>> torch.distributed.ReduceOp.SUM.name
    'SUM'
    """

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8

    def __repr__(self) -> str:
        return f"<RedOpType.{self.name}: {self.value}>"

    def __str__(self) -> str:
        return f"RedOpType.{self.name}"


ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]  # what PyTorch calls the enumeration
