"""Your own operators (`torch.library`): functions that autograd takes for one op.

>>> @torch.library.custom_op("demo::cube", mutates_args=())
... def cube(x: torch.Tensor) -> torch.Tensor:
...     return x ** 3
>>> torch.ops.demo.cube(torch.tensor(2.))
tensor(8.)

`schema` reads signatures and `infer` works them out; `operator` is what a call runs, `derivative`
its history; `custom`, `fragment` and `registration` are how users make one; `check` tests one.
"""

from __future__ import annotations

import typing as _typing

from rushlight.library.check import OpCheckError as OpCheckError
from rushlight.library.check import opcheck as opcheck
from rushlight.library.custom import CustomOpDef as CustomOpDef
from rushlight.library.custom import custom_op
from rushlight.library.fragment import Library
from rushlight.library.fragment import scoped_library as _scoped_library  # noqa: F401  # PyTorch's name
from rushlight.library.infer import Tag as Tag
from rushlight.library.infer import infer_schema
from rushlight.library.operator import OpOverload as OpOverload
from rushlight.library.operator import OpOverloadPacket as OpOverloadPacket
from rushlight.library.registration import define, impl, impl_abstract, register_fake, register_vmap
from rushlight.library.registration import register_autograd as register_autograd
from rushlight.library.registration import register_kernel as register_kernel
from rushlight.missing import face as _face

__all__ = [
    "Library", "custom_op", "define", "impl", "impl_abstract", "infer_schema", "register_fake",
    "register_vmap",
]  # fmt: skip
_UNLISTED = (
    "CustomOpDef", "OpOverload", "_scoped_library", "opcheck", "register_autograd",
    "register_kernel",
)  # fmt: skip

if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.library", globals(), unlisted=_UNLISTED)
