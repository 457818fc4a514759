"""Results with names: `x.max(0).values`. Tuples that print as PyTorch prints them.

In the lowest layer; `ops` returns them, users rarely make them.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import Any, ClassVar, Final

__all__ = [
    "Named", "aminmax", "cummax", "cummin", "frexp", "kthvalue", "max", "median", "min", "mode",
    "nanmedian", "sort", "topk",
]  # fmt: skip


class Named(tuple[Any, ...]):
    """A tuple whose places have names, in the order of `fields`.

    >>> pair = sort([[1, 2], [1, 0]])
    >>> pair.values
    [1, 2]
    >>> pair
    torch.return_types.sort(
    values=[1, 2],
    indices=[1, 0])
    """

    __slots__ = ()
    fields: ClassVar[tuple[str, ...]] = ()
    n_fields: ClassVar[int] = 0
    n_sequence_fields: ClassVar[int] = 0
    n_unnamed_fields: ClassVar[int] = 0

    def __new__(cls, values: Iterable[Any]) -> Named:
        made = tuple.__new__(cls, values)
        if len(made) != cls.n_fields:
            raise TypeError(
                f"torch.return_types.{cls.__name__}() takes a {cls.n_fields}-sequence "
                f"({len(made)}-sequence given)"
            )
        return made

    def __repr__(self) -> str:
        inside = ",\n".join(f"{name}={value!r}" for name, value in zip(self.fields, self))
        return f"torch.return_types.{type(self).__name__}(\n{inside})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (tuple(self),)


def _make(name: str, *fields: str) -> Any:
    members: dict[str, Any] = {
        field: property(itemgetter(i), doc=f"item {i} of the tuple")
        for i, field in enumerate(fields)
    }
    members.update(__slots__=(), __module__=__name__, fields=fields)
    members.update(n_fields=len(fields), n_sequence_fields=len(fields))
    return type(name, (Named,), members)


aminmax: Final = _make("aminmax", "min", "max")
cummax: Final = _make("cummax", "values", "indices")
cummin: Final = _make("cummin", "values", "indices")
frexp: Final = _make("frexp", "mantissa", "exponent")
kthvalue: Final = _make("kthvalue", "values", "indices")
max: Final = _make("max", "values", "indices")
median: Final = _make("median", "values", "indices")
min: Final = _make("min", "values", "indices")
mode: Final = _make("mode", "values", "indices")
nanmedian: Final = _make("nanmedian", "values", "indices")
sort: Final = _make("sort", "values", "indices")
topk: Final = _make("topk", "values", "indices")
