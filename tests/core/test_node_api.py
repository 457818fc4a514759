"""Nodes and edges as users and tools read them."""

from __future__ import annotations

import weakref

import pytest

import rushlight as torch


def test_names_and_edges() -> None:
    x = torch.rand(5, 5, requires_grad=True)
    y = torch.rand(5, 5, requires_grad=True)
    z = x**2 + y**3
    assert z.grad_fn.name() == "AddBackward0"
    (left, i), (right, j) = z.grad_fn.next_functions
    assert left.name() == right.name() == "PowBackward0" and i == j == 0
    leaf = left.next_functions[0][0]
    assert type(leaf).__name__ == "AccumulateGrad"
    assert leaf.variable is x
    assert leaf.next_functions == ()


def test_repr_of_a_node_has_no_module() -> None:
    y = torch.ones(1, requires_grad=True) * 2
    assert repr(y.grad_fn).startswith("<MulBackward0 object at 0x")
    assert str(type(y.grad_fn)) == "<class 'MulBackward0'>"


def test_one_object_per_node() -> None:
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    assert y.grad_fn is y.grad_fn
    acc = y.grad_fn.next_functions[0][0]
    assert y.grad_fn.next_functions[0][0] is acc
    assert (x * 3).grad_fn.next_functions[0][0] is acc
    assert weakref.ref(y.grad_fn)() is y.grad_fn


def test_numbers_have_no_edge() -> None:
    x = torch.ones(1, requires_grad=True)
    assert (x + 2).grad_fn.next_functions[1] == (None, 0)
    assert (2 + x).grad_fn.next_functions[1] == (None, 0)
    assert (2 - x).grad_fn.name() == "RsubBackward1"


def test_where_a_node_was_made() -> None:
    x = torch.ones(1, requires_grad=True)
    y = x * 2  # this line
    where = y.grad_fn.where
    assert where.file == __file__
    assert where.source == "y = x * 2  # this line"
    assert where.function == "test_where_a_node_was_made"
    z = torch.exp(x)  # through a function of the table
    assert z.grad_fn.where.source.startswith("z = torch.exp(x)")


def test_metadata_is_a_dict_of_your_own() -> None:
    y = torch.ones(1, requires_grad=True) * 2
    y.grad_fn.metadata["note"] = 1
    assert y.grad_fn.metadata == {"note": 1}


def test_saved_values() -> None:
    x = torch.tensor([2.0], requires_grad=True)
    w = torch.tensor([5.0])
    y = x * w
    assert y.grad_fn._saved_other.tolist() == [5]
    assert y.grad_fn._saved_self is None
    e = x.exp()
    assert e.grad_fn._saved_result.tolist() == e.tolist()
    e.backward()
    with pytest.raises(RuntimeError, match="^Trying to backward through the graph a second time"):
        e.grad_fn._saved_result


def test_a_node_can_be_called() -> None:
    x = torch.tensor([2.0], requires_grad=True)
    y = x * 5
    g = y.grad_fn(torch.tensor([3.0]))
    assert g[0].tolist() == [15] and g[1] is None


def test_leaves() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x + 1
    assert x.is_leaf and x.grad_fn is None and x.output_nr == 0
    assert not y.is_leaf and y.requires_grad
    with pytest.raises(
        RuntimeError, match="^you can only change requires_grad flags of leaf variables."
    ):
        y.requires_grad = False
    with pytest.raises(RuntimeError, match="^only Tensors of floating point"):
        torch.ones(2, dtype=torch.int64).requires_grad_()
    d = y.detach()
    assert d.is_leaf and not d.requires_grad
    y.detach_()
    assert y.is_leaf and y.grad_fn is None


def test_several_outputs() -> None:
    x = torch.arange(6.0).requires_grad_()
    a, b, _ = x.split(2)
    assert b.output_nr == 1 and a.grad_fn is b.grad_fn
    y = b * 2
    assert y.grad_fn.next_functions[0] == (b.grad_fn, 1)
    y.sum().backward()
    assert x.grad.tolist() == [0, 0, 2, 2, 0, 0]
