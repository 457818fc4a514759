"""The tables that say something about ops or nodes by name name only what exists.

A name that nothing has any more is silently never found: what the table says of it is lost.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest

import rushlight as torch
from rushlight.autograd import profiler_record
from rushlight.core import node_api
from rushlight.core.graph import Op
from rushlight.core.saved import saved_names
from rushlight.core.transforms import stack as levels
from rushlight.ops.compat import overloads
from rushlight.ops.registry import functions, table


def every_op() -> Iterator[type[Any]]:
    """Every class of op in the package, in the table or not."""
    for module in pkgutil.walk_packages(torch.__path__, "rushlight."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    seen: list[type[Any]] = [Op]
    for cls in seen:
        seen += [c for c in cls.__subclasses__() if c not in seen]
    return (cls for cls in seen if cls.name and cls.__module__.startswith("rushlight."))


def titles() -> dict[str, list[type[Any]]]:
    """The ops by the name of their node."""
    found: dict[str, list[type[Any]]] = {}
    for cls in every_op():
        title = cls.node or "".join(w.capitalize() for w in cls.name.split("_")) + "Backward0"
        found.setdefault(title, []).append(cls)
    return found


NAMES = {cls.name for cls in every_op()}
TABLES: dict[str, tuple[Any, Any]] = {
    "core.node_api._EDGES": (node_api._EDGES, titles()),
    "core.saved.saved_names._TABLE": (saved_names._shown, titles()),
    "core.saved.saved_names._ONE_MORE": (saved_names._ONE_MORE, titles()),
    "core.transforms.stack._NAMES": (levels._NAMES, NAMES),
    "autograd.profiler_record._RENAMED": (profiler_record._RENAMED, NAMES),
    "autograd.profiler_record._OWN": (profiler_record._OWN, NAMES),
    "ops.compat.overloads._FORMS": (overloads._FORMS, NAMES),
    "ops.compat.overloads._BY_OPERAND": (overloads._BY_OPERAND, NAMES),
    "ops.compat.overloads._BY_DIM": (overloads._BY_DIM, NAMES),
}


@pytest.mark.parametrize("title", TABLES)
def test_names_in_tables_exist(title: str) -> None:
    said, exist = TABLES[title]
    assert said
    assert [name for name in said if name not in exist] == []


def test_what_is_lacking_is_lacking() -> None:
    there = {n for n in overloads._LACKING if n in table or n in functions}
    assert there <= {"detach"}  # a function here, and no op


def test_edges_are_edges() -> None:
    ops = titles()
    for name, shown in node_api._EDGES.items():
        assert any(max(shown) < len(cls.inputs) for cls in ops[name]), name


def test_shown_values_can_be_read() -> None:
    """Each name of a saved value stands for a parameter or an input of an op with that node."""
    ops = titles()
    for name, entries in saved_names._shown.items():
        for entry in entries:
            _, _, source = entry.partition("=")
            source = (source or entry).rstrip("*")
            head, dot, what = source.partition(".")
            if dot:
                assert what in ("sizes", "numel") and any(head in c.inputs for c in ops[name]), name
            else:
                assert any(source in c.params for c in ops[name]), (name, source)


def test_the_loss_of_images_has_one_edge() -> None:
    x = torch.zeros(2, 3, 4, 4, requires_grad=True)
    y = torch.nn.functional.nll_loss(x, torch.zeros(2, 4, 4, dtype=torch.long))
    assert type(y.grad_fn).__name__ == "NllLoss2DBackward0"
    assert [type(fn).__name__ for fn, _ in y.grad_fn.next_functions] == ["AccumulateGrad"]


def test_tests_of_truth_have_a_form_for_each_kind_of_dim() -> None:
    raw = torch.ones(2, 3)._array
    for name in ("all", "any"):
        op: Any = table[name]
        forms = {None: "default", (-1,): "dim", (-2, -1): "dims"}
        for dims, form in forms.items():
            assert str(overloads.overload_of(op(dims, False), (raw,))) == f"aten.{name}.{form}"
