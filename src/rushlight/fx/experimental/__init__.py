"""`torch.fx.experimental`: what libraries ask of PyTorch's tracers, which are not here."""

import typing as _typing

from rushlight.missing import face as _face

__all__: list[str] = []

if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face(
        "torch.fx.experimental", globals(), {"proxy_tensor": "", "symbolic_shapes": ""}
    )
