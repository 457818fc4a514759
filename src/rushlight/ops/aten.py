"""The names of `torch.ops.aten`, for programs that compare with them or call them.

>>> torch.ops.aten.mm.default
<OpOverload(op='aten.mm', overload='default')>
>>> torch.ops.aten.add.Tensor(torch.ones(2), 1)
tensor([2., 2.])
"""

from rushlight.ops.compat.overloads import OpOverloadPacket as _OpOverloadPacket
from rushlight.ops.compat.overloads import packet as _packet


def __getattr__(name: str) -> _OpOverloadPacket:
    return _packet(name)
