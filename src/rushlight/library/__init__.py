"""Your own operators (`torch.library`): functions that autograd takes for one op.

>>> import rushlight as torch
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

from rushlight.library.check import OpCheckError, opcheck
from rushlight.library.custom import CustomOpDef, custom_op
from rushlight.library.fragment import Library
from rushlight.library.fragment import scoped_library as _scoped_library
from rushlight.library.infer import Tag, infer_schema
from rushlight.library.operator import OpOverload, OpOverloadPacket
from rushlight.library.registration import (
    define,
    impl,
    impl_abstract,
    register_autograd,
    register_fake,
    register_kernel,
    register_vmap,
)
from rushlight.missing import say_missing as _say_missing

__all__ = [
    "CustomOpDef",
    "Library",
    "OpCheckError",
    "OpOverload",
    "OpOverloadPacket",
    "Tag",
    "_scoped_library",
    "custom_op",
    "define",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_vmap",
]

if not _typing.TYPE_CHECKING:
    __getattr__ = _say_missing("torch.library", globals())
