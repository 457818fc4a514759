"""Names of ops, `aten.slice.Tensor` and the like: copied, pickled, probed."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import pytest

import rushlight as torch


@torch.library.custom_op("tests_names::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def named() -> dict[str, Any]:
    """One of each kind of object that stands for a name of an op."""
    aten = torch.ops.aten
    mine = torch.ops.tests_names
    return {
        "aten packet": aten.slice,
        "aten overload": aten.slice.Tensor,
        "namespace": mine,
        "packet": mine.twice,
        "overload": mine.twice.default,
    }


@pytest.mark.parametrize("kind", named())
def test_names_of_ops_are_copied_and_pickled_by_name(kind: str) -> None:
    one = named()[kind]
    assert copy.deepcopy(one) is one
    assert copy.copy(one) is one
    assert copy.deepcopy({"op": [one]}) == {"op": [one]}
    assert pickle.loads(pickle.dumps(one)) is one


@pytest.mark.parametrize("kind", [*named(), "ops", "aten"])
def test_probing_names_of_ops_ends(kind: str) -> None:
    one = {**named(), "ops": torch.ops, "aten": torch.ops.aten}[kind]
    for probe in ("__wrapped__", "__array_interface__", "__array_struct__", "_ipython_display_"):
        assert not hasattr(one, probe)
        # one whose `__init__` has not run, as copying and unpickling make it
        if not inspect.ismodule(one):
            assert not hasattr(object.__new__(type(one)), probe)
    assert inspect.unwrap(one) is one
