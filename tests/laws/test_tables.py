"""What ops say of themselves by name (`aten`, `saved_names`, `shown_edges`) names what exists.

A name that nothing has is silently never found: what is said of it is lost.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest

import rushlight as torch
from rushlight.core.graph import Op
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


OPS = list(every_op())


def ident(cls: type[Any]) -> str:
    return f"{cls.__module__.removeprefix('rushlight.')}.{cls.__name__}"


def test_what_is_lacking_is_lacking() -> None:
    there = {n for n in overloads._LACKING if n in table or n in functions}
    assert there <= {"detach"}  # a function here, and no op


def test_edges_are_edges() -> None:
    narrowed = [cls for cls in OPS if cls.shown_edges is not None]
    assert len(narrowed) > 30
    for cls in narrowed:
        shown = cls.shown_edges
        assert list(shown) == sorted(set(shown)) and (
            cls.variadic or max(shown) < len(cls.inputs)
        ), ident(cls)


def test_shown_values_can_be_read() -> None:
    """Each name of a saved value stands for a parameter or an input of its op."""
    named = [cls for cls in OPS if cls.saved_names is not None]
    assert len(named) > 90
    for cls in named:
        for entry in cls.saved_names.split():
            name, _, source = entry.partition("=")
            assert name.isidentifier(), (ident(cls), entry)
            source = (source or name).rstrip("*+")
            head, dot, what = source.partition(".")
            if dot:
                known = what in ("sizes", "strides", "numel") or what.isdigit()
                assert known and head in cls.inputs, (ident(cls), entry)
            else:
                assert source in cls.params, (ident(cls), entry)


def test_every_name_in_pytorch_has_its_form() -> None:
    stated = [cls for cls in OPS if cls.aten]
    assert len(stated) > 80
    for cls in stated:
        name, dot, forms = cls.aten.partition(".")
        assert name.isidentifier() and dot, ident(cls)
        assert all(form.isidentifier() for form in forms.split("|")), ident(cls)


def test_pytorch_has_the_overloads() -> None:
    reference = pytest.importorskip("torch")
    for cls in OPS:
        if not cls.aten:
            continue
        name, _, forms = cls.aten.partition(".")
        packet = getattr(reference.ops.aten, name)
        assert set(forms.split("|")) <= set(packet.overloads()), (ident(cls), cls.aten)
        assert hasattr(reference.ops.aten, cls.profile_name or name), ident(cls)


def test_names_of_writes() -> None:
    expected = {
        "add": "add_.Tensor", "div_floor": "div_.Tensor_mode", "fill": "fill_.Scalar",
        "fill_": "fill_.Scalar", "fill_tensor": "fill_.Tensor", "fill_tensor_": "fill_.Tensor",
        "clamp_numbers": "clamp_", "masked_fill": "masked_fill_.Scalar", "pow": "pow_.Tensor",
        "pow_number": "pow_.Scalar", "scatter_value": "scatter_.value", "exp": "exp_",
        "eq": "eq_.Tensor",
    }  # fmt: skip
    by_name = {cls.name: cls for cls in OPS}
    assert {n: levels.aten_name(by_name[n]) for n in expected} == {
        name: "aten::" + form for name, form in expected.items()
    }


def test_facts_go_with_the_op() -> None:
    """What a subclass is in PyTorch is not what its base is, where that has another name."""
    for cls in OPS:
        for base in cls.__mro__[1:]:
            if cls.aten and getattr(base, "aten", "") == cls.aten and "aten" not in vars(cls):
                assert base.name in ("", cls.name, cls.name + "_view"), (ident(cls), cls.aten)


def test_edges_of_indices_are_seen_by_nobody() -> None:
    """Hooks and calls by hand see the inputs that `next_functions` shows."""
    x = torch.ones(3, 2, requires_grad=True)
    y = x.index_select(0, torch.tensor([0, 2]))
    seen: list[int] = []
    y.grad_fn.register_hook(lambda grads_in, grads_out: seen.append(len(grads_in)))
    y.sum().backward(retain_graph=True)
    assert seen == [1] and len(y.grad_fn.next_functions) == 1
    assert y.grad_fn(torch.ones(2, 2)).tolist() == [[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]]


def test_a_complex_base_can_be_read() -> None:
    y = torch.pow(2j, torch.ones(2, requires_grad=True))
    assert y.grad_fn.name() == "PowBackward2" and y.grad_fn._saved_self == 2j


def test_nodes_of_views_in_place_show_what_the_others_show() -> None:
    x = torch.ones(1, 3, requires_grad=True) * 1
    assert x.squeeze_().grad_fn._saved_self_sym_sizes == (1, 3)
    assert not hasattr(x.t_().grad_fn, "_saved_rank")


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
