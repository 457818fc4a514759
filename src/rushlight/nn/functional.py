"""`nn.functional`: the functions of networks, by the names that the op table gives them there.

Nothing is listed here: a function of the table that says `namespace="nn.functional"` is one of
these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rushlight.missing import face as _face
from rushlight.ops import fill_rest as _fill_rest
from rushlight.ops.described import describe as _describe
from rushlight.ops.registry import namespaces
from rushlight.ops.registry import set_public_name as _place

_fill_rest()
for _name, _fn in namespaces["nn.functional"].items():
    _describe(_fn)
    _place(_fn, __name__, _name)
globals().update(namespaces["nn.functional"])
__all__ = sorted(namespaces["nn.functional"])

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

else:
    __getattr__, __dir__ = _face("torch.nn.functional", globals())
