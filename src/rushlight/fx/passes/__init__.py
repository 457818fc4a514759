"""Passes over graphs: `shape_prop` notes what each node gives."""

import typing as _typing

from rushlight.missing import face as _face

__all__ = ["shape_prop"]

_LATER = {"shape_prop": ""}

if _typing.TYPE_CHECKING:
    from rushlight.fx.passes import shape_prop
else:
    __getattr__, __dir__ = _face("torch.fx.passes", globals(), _LATER)
