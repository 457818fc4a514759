"""Dtypes that neither NumPy nor ml_dtypes has: programs list them; no tensor has them.

>>> torch.qint8, torch.qint8.itemsize
(torch.qint8, 1)
>>> torch.zeros(2, dtype=torch.qint8)
Traceback (most recent call last):
NotImplementedError: rushlight has no tensors of torch.qint8
"""

from __future__ import annotations

from rushlight.dtypes import NumpyDtype, dtype

__all__ = ["NumberlessDtype"]


class NumberlessDtype(dtype):
    """A dtype that no tensor has."""

    @property
    def numpy(self) -> NumpyDtype:  # type: ignore[override]
        raise NotImplementedError(f"rushlight has no tensors of {self!r}")


def _make(name: str, scalar_type: str, itemsize: int = 1, is_signed: bool = False) -> dtype:
    made: dtype = object.__new__(NumberlessDtype)
    fields: dict[str, object] = {
        "name": name, "itemsize": itemsize, "is_floating_point": name.startswith("float"),
        "is_complex": False, "is_signed": is_signed, "scalar_type": scalar_type, "abbr": name,
    }  # fmt: skip
    for field, value in fields.items():
        object.__setattr__(made, field, value)
    __all__.append(name)
    return made


qint8 = _make("qint8", "QInt8", is_signed=True)
quint8 = _make("quint8", "QUInt8")
qint32 = _make("qint32", "QInt32", 4, is_signed=True)
quint4x2 = _make("quint4x2", "QUInt4x2")
quint2x4 = _make("quint2x4", "QUInt2x4")
int1, int2, int3, int4, int5, int6, int7 = [
    _make(f"int{bits}", f"Int{bits}", is_signed=True) for bits in range(1, 8)
]
uint1, uint2, uint3, uint4, uint5, uint6, uint7 = [
    _make(f"uint{bits}", f"UInt{bits}") for bits in range(1, 8)
]
float4_e2m1fn_x2 = _make("float4_e2m1fn_x2", "Float4_e2m1fn_x2", is_signed=True)
__dir__ = __all__.copy
