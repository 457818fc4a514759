"""Tensors that are swapped."""

from __future__ import annotations

import weakref

import pytest

import rushlight as torch


def test_edges_to_what_was_swapped_refuse_to_run() -> None:
    a, b = torch.ones(2, requires_grad=True), torch.zeros(3, requires_grad=True)
    y, z = (a * 2).sum(), (b * 2).sum()
    c = torch.ones(2, requires_grad=True)
    w = (a * c).sum()
    shown = y.grad_fn.next_functions[0][0].next_functions[0][0]
    torch.utils.swap_tensors(a, b)
    assert shown.variable is b
    for old in (y, z):
        with pytest.raises(RuntimeError, match="poisoned by swap_tensors"):
            old.backward()
    assert torch.autograd.grad(w, c)[0].tolist() == [1.0, 1.0]  # not by way of what was swapped
    (a.sum() + b.sum()).backward()
    assert a.grad.tolist() == [1.0] * 3 and b.grad.tolist() == [1.0] * 2


def test_views_of_a_tensor_do_not_forbid_to_swap_it() -> None:
    a, b = torch.ones(2), torch.zeros(3)
    views = [a[:1], a.detach(), b.data, b.untyped_storage()]
    torch.utils.swap_tensors(a, b)
    assert len(a) == 3 and views[0].tolist() == [1.0]
    b.resize_(50).fill_(4.0)
    assert views[0].tolist() == [4.0] == views[1][:1].tolist()
    reference = weakref.ref(a)
    with pytest.raises(RuntimeError, match="Cannot swap t1 because it has weakref"):
        torch.utils.swap_tensors(a, b)
    assert reference() is a


def test_swapped_tensors_swap_everything() -> None:
    class Mine(torch.Tensor):
        pass

    a = torch.ones(2, requires_grad=True)
    b = torch.zeros(3).as_subclass(Mine)
    a.note, b.other = "a", "b"
    a.sum().backward()
    torch.utils.swap_tensors(a, b)
    assert type(a) is Mine and type(b) is torch.Tensor
    assert (a.other, b.note) == ("b", "a") and not hasattr(a, "note")
    assert a.grad is None and b.grad.tolist() == [1.0, 1.0]
    (b * 3).sum().backward()
    assert b.grad.tolist() == [4.0, 4.0]


def test_module_load_gives_what_stands_in_a_parameters_place() -> None:
    x, y = torch.zeros(2, requires_grad=True), torch.ones(2)
    with torch.no_grad():
        loaded = x.module_load(y)
    assert loaded.tolist() == x.tolist() == [1, 1] and loaded.data_ptr() == x.data_ptr()
    assert x.module_load(y, assign=True).data_ptr() == y.data_ptr()
