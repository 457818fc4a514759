"""`torch.distributed.tensor`: tensors of which each process has a part."""

import typing as _typing
from collections.abc import Sequence as _Sequence
from typing import Any as _Any

from rushlight.distributed.tensor._api import DTensor as DTensor
from rushlight.distributed.tensor._api import distribute_module as distribute_module
from rushlight.distributed.tensor._api import distribute_tensor as distribute_tensor
from rushlight.distributed.tensor._api import new_filled as _new_filled
from rushlight.distributed.tensor.placement_types import Partial as Partial
from rushlight.distributed.tensor.placement_types import Placement as Placement
from rushlight.distributed.tensor.placement_types import Replicate as Replicate
from rushlight.distributed.tensor.placement_types import Shard as Shard
from rushlight.missing import face as _face

__all__ = [
    "DTensor", "Partial", "Placement", "Replicate", "Shard", "distribute_module",
    "distribute_tensor", "empty", "full", "ones", "zeros",
]  # fmt: skip


def _size(size: tuple[_Any, ...]) -> _Sequence[int]:
    return size[0] if len(size) == 1 and not isinstance(size[0], int) else size


def zeros(*size: _Any, device_mesh: _Any = None, placements: _Any = None, **how: _Any) -> DTensor:
    """A DTensor of zeros; each process makes its part."""
    given = _size(size)
    return _new_filled("zeros", given, device_mesh=device_mesh, placements=placements, **how)


def ones(*size: _Any, device_mesh: _Any = None, placements: _Any = None, **how: _Any) -> DTensor:
    """A DTensor of ones; each process makes its part."""
    given = _size(size)
    return _new_filled("ones", given, device_mesh=device_mesh, placements=placements, **how)


def empty(*size: _Any, device_mesh: _Any = None, placements: _Any = None, **how: _Any) -> DTensor:
    """A DTensor of whatever is there; each process makes its part."""
    given = _size(size)
    return _new_filled("empty", given, device_mesh=device_mesh, placements=placements, **how)


def full(
    size: _Sequence[int], fill_value: _Any, *, device_mesh: _Any = None, placements: _Any = None,
    **how: _Any,
) -> DTensor:  # fmt: skip
    """A DTensor of one value; each process makes its part."""
    return _new_filled(
        "full", size, fill_value, device_mesh=device_mesh, placements=placements, **how
    )


if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.distributed.tensor", globals(), {"placement_types": ""})
