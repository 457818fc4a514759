"""The names that storages had by dtype: `FloatStorage([1., 2.])`, `isinstance(s, FloatStorage)`.

Beside `storage`, which it builds on. Files name the dtype of a memory by these, and programs that
read such files do, too; new code says `UntypedStorage`.
"""

from __future__ import annotations

from typing import Any, Final

from rushlight import dtypes
from rushlight.arrays.device import CPU
from rushlight.storage import TypedStorage, UntypedStorage, typed_storage_of

_FORMS: Final = (
    "{}.__new__ received an invalid combination of arguments. Expected one of:\n"
    " * no arguments\n * (int size)\n * (Sequence data)\n * (*, UntypedStorage wrap_storage)\n"
)


class LegacyStorageClass(type):
    """The class of `FloatStorage` and its like: makes storages of one dtype, and knows them."""

    dtype: dtypes.dtype

    def __call__(
        cls, *args: Any, wrap_storage: Any = None, dtype: Any = None, device: Any = None
    ) -> TypedStorage:
        for name, given in (("device", device), ("dtype", dtype)):
            if given is not None:
                raise cls._refused(f"Keyword argument '{name}' cannot be specified")
        if len(args) > 1 or (args and wrap_storage is not None):
            raise cls._refused("Too many positional arguments")
        if wrap_storage is not None and not isinstance(wrap_storage, UntypedStorage):
            raise TypeError(
                _FORMS.format(cls)
                + f"Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}"
            )
        return typed_storage_of(cls.dtype, args, wrap_storage, CPU, _FORMS.format(cls))

    def _refused(cls, why: str) -> RuntimeError:
        return RuntimeError(_FORMS.format(cls) + why)

    def __instancecheck__(cls, instance: object) -> bool:
        return (
            isinstance(instance, TypedStorage)
            and instance.dtype is cls.dtype
            and not instance.is_cuda
        )

    def __subclasscheck__(cls, other: type) -> bool:
        return other is cls

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"


def _legacy(dtype: dtypes.dtype) -> LegacyStorageClass:
    title = dtype.scalar_type + "Storage"
    doc = f"{title}(values) or {title}(size): memory as elements of {dtype}."
    # the module that pickles name, and find it in
    space = {"dtype": dtype, "_dtype": dtype, "__doc__": doc, "__module__": "rushlight"}
    return LegacyStorageClass(title, (TypedStorage,), space)


storage_types: Final[dict[str, LegacyStorageClass]] = {
    made.__name__: made
    for made in map(
        _legacy,
        (
            dtypes.float64, dtypes.float32, dtypes.float16, dtypes.int64, dtypes.int32,
            dtypes.int16, dtypes.int8, dtypes.uint8, dtypes.bool_, dtypes.bfloat16,
            dtypes.complex128, dtypes.complex64,
        ),
    )
}  # fmt: skip
globals().update(storage_types)
# The class that stands for a dtype; those that came later have none.
of_dtype: Final = {made.dtype: made for made in storage_types.values()}
Storage: Final = storage_types["FloatStorage"]
