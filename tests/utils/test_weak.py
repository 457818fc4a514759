"""Dictionaries that know their keys by identity, and let them go."""

from __future__ import annotations

import rushlight as torch
from rushlight.utils.weak import TensorWeakRef, WeakIdKeyDictionary


def test_keys_are_compared_by_identity_and_let_go() -> None:
    a, b = torch.ones(2), torch.ones(2)
    known = WeakIdKeyDictionary({a: 1})
    known[b] = 2
    assert known[a] == 1 and known[b] == 2 and len(known) == 2 and 3 not in known
    del known[a]
    assert a not in known and [x is b for x in known] == [True]
    ref = TensorWeakRef(b)
    assert ref() is b
    del b
    assert len(known) == 0 and ref() is None
