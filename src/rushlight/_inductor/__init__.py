"""What programs touch of PyTorch's compiler: `config`. It compiles nothing."""

import typing as _typing

from rushlight._inductor import config as config
from rushlight.missing import face as _face

__all__: list[str] = []

if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch._inductor", globals(), unlisted=["config"])
