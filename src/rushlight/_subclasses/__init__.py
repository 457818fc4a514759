"""`torch._subclasses`: tensors without numbers for PyTorch's compiler. Here nothing is one; on the
device `meta` tensors have no numbers either."""

import typing as _typing

from rushlight._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from rushlight.missing import face as _face

__all__ = ["FakeTensor", "FakeTensorMode"]

if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch._subclasses", globals(), {"functional_tensor": ""})
