"""`torch.utils.weak`: dictionaries that know their keys by identity, and do not keep them alive."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, MutableMapping
from typing import Any

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]
__dir__ = __all__.copy


class WeakIdRef(weakref.ref[Any]):
    """A weak reference that is equal to another of the same object, whatever `==` of it says."""

    __slots__ = ("_id",)
    _id: int

    def __new__(cls, key: Any, callback: Any = None) -> WeakIdRef:
        made = super().__new__(cls, key, callback)
        made._id = id(key)
        return made

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        mine = self()
        if mine is not None and isinstance(other, WeakIdRef):
            return mine is other()
        return self is other


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A dict whose keys are compared by identity; an entry goes when its key goes.

    >>> from rushlight.utils.weak import WeakIdKeyDictionary
    >>> x, known = torch.ones(2), WeakIdKeyDictionary()
    >>> known[x] = "one"
    >>> known[x], len(known)
    ('one', 1)
    >>> del x
    >>> len(known)
    0
    """

    def __init__(self, dict: Any = None, ref_type: type[WeakIdRef] = WeakIdRef) -> None:
        self.data: Any = {}
        self.ref_type = ref_type
        me = weakref.ref(self)

        def forget(ref: Any) -> None:
            alive = me()
            if alive is not None:
                alive.data.pop(ref, None)

        self._forget = forget
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._forget)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # of what there can be no weak references to
            return False

    def __iter__(self) -> Iterator[Any]:
        for ref in list(self.data):
            key = ref()
            if key is not None:
                yield key

    def __len__(self) -> int:
        return len(self.data)


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """TensorWeakRef(tensor): the tensor when it is called, or None if it is gone."""

    def __init__(self, tensor: Any) -> None:
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Any:
        return self.ref()
