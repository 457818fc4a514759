"""The tensor itself: attributes, memory, Python and NumPy around it, copies and pickles."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from tests.helpers import raises


# --- numbers --------------------------------------------------------------------------------------
def test_one_element_as_a_number() -> None:
    x = torch.tensor([[2.5]])
    assert (x.item(), float(x), int(x), bool(x), complex(x)) == (2.5, 2.5, 2, True, 2.5 + 0j)
    assert [10, 20][torch.tensor(1)] == 20
    assert f"{torch.tensor(1.5):.2f}" == "1.50"
    assert torch.tensor([1.0], dtype=torch.bfloat16).tolist() == [1.0]


def test_many_elements_are_no_number() -> None:
    x = torch.ones(2)
    raises(RuntimeError, "a Tensor with 2 elements cannot be converted to Scalar", x.item)
    raises(RuntimeError, "Boolean value of Tensor with more than one value is ambiguous", bool, x)
    raises(RuntimeError, "Boolean value of Tensor with no values is ambiguous", bool, x[:0])
    raises(ValueError, "only one element tensors can be converted to Python scalars", float, x)
    raises(TypeError, "only integer tensors of a single element can be", [1].__getitem__, x)
    raises(
        RuntimeError, "value cannot be converted to type double without", float, torch.tensor(1j)
    )


def test_a_tensor_that_requires_grad_warns_as_a_number() -> None:
    x = torch.tensor(1.0, requires_grad=True)
    assert x.item() == 1.0
    with pytest.warns(UserWarning, match="Converting a tensor with requires_grad=True"):
        float(x)


def test_contains_and_reversed() -> None:
    x = torch.arange(3)
    assert 2 in x and 5 not in x
    assert reversed(x).tolist() == [2, 1, 0]
    raises(RuntimeError, "Tensor.__contains__ only supports Tensor or scalar", x.__contains__, "a")


# --- attributes -----------------------------------------------------------------------------------
def test_requires_grad() -> None:
    x = torch.ones(2)
    x.requires_grad = True
    y = x * 2
    raises(RuntimeError, "you can only change requires_grad flags of leaf variables. If",
           y.requires_grad_, False)  # fmt: skip
    raises(RuntimeError, "only Tensors of floating point dtype can require gradients",
           torch.tensor([1]).requires_grad_)  # fmt: skip
    raises(TypeError, "requires_grad_(): argument 'requires_grad' (position 1) must be bool",
           x.requires_grad_, 1)  # fmt: skip
    assert x.is_leaf and not y.is_leaf and y.output_nr == 0


def test_grad_may_be_assigned() -> None:
    x = torch.ones(2)
    x.grad = torch.zeros(2)
    assert x.grad.tolist() == [0, 0]
    del x.grad
    assert x.grad is None
    for value, error, text in (
        (3, TypeError, "assigned grad expected to be a Tensor or None but got grad of type int"),
        (x, RuntimeError, "can't assign Variable as its own grad"),
        (torch.ones(3), RuntimeError, "attempting to assign a gradient of size '[3]' to a tensor"),
        (torch.ones(2, dtype=torch.float64), RuntimeError, "attempting to assign a gradient with"),
    ):
        raises(error, text, setattr, x, "grad", value)


def test_reading_grad_of_an_interior_tensor_warns() -> None:
    y = torch.ones(2, requires_grad=True) * 2
    with pytest.warns(UserWarning, match="is not a leaf Tensor is being accessed"):
        assert y.grad is None


def test_data_has_its_own_version_and_no_history() -> None:
    x = torch.ones(2, requires_grad=True)
    bare = x.data
    assert not bare.requires_grad and bare.is_leaf
    bare.add_(1)
    assert x.tolist() == [2, 2]
    assert (x._version, bare._version) == (0, 1)
    x.data = torch.zeros(3, dtype=torch.float64)
    assert x.shape == (3,) and x.requires_grad and x._version == 0
    raises(TypeError, "Variable data has to be a tensor, but got int", setattr, x, "data", 3)
    raises(RuntimeError, "data set to a tensor that requires gradients must be floating point",
           setattr, x, "data", torch.ones(2, dtype=torch.int64))  # fmt: skip


def test_plain_facts() -> None:
    x = torch.ones(2, 3)
    assert (x.itemsize, x.nbytes, x.element_size(), x.layout) == (4, 24, 4, torch.strided)
    assert not (x.is_cuda or x.is_sparse or x.is_quantized or x.is_meta)
    assert x.get_device() == -1 and x.is_cpu and x.name is None
    assert x[0]._base is x and x[0]._is_view() and not x._is_view()
    assert x.is_set_to(x) and not x.is_set_to(x.clone())
    assert repr(torch.Tensor) == "<class 'torch.Tensor'>"


# --- NumPy and others -----------------------------------------------------------------------------
def test_numpy_shares_memory() -> None:
    x = torch.zeros(2)
    x.numpy()[0] = 3
    assert x.tolist() == [3, 0]
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    grad = torch.ones(2, requires_grad=True)
    raises(RuntimeError, "Can't call numpy() on Tensor that requires grad.", grad.numpy)
    raises(RuntimeError, "Can't call numpy() on Tensor that requires grad.", np.asarray, grad)
    assert grad.numpy(force=True).tolist() == [1, 1]
    narrow = torch.ones(1, dtype=torch.bfloat16)
    raises(TypeError, "Got unsupported ScalarType BFloat16", narrow.numpy)


def test_numpy_functions_give_tensors() -> None:
    x = torch.tensor([1.0, 4.0], dtype=torch.float64, requires_grad=True)
    y = np.sqrt(x) + np.ones(2) * x
    assert isinstance(y, torch.Tensor)
    y.sum().backward()
    assert x.grad.tolist() == [1.5, 1.25]
    plain = torch.tensor([1.0, 4.0])
    out = np.zeros(2)
    assert np.add(np.ones(2), plain, out=out) is out
    assert out.tolist() == [2, 5]
    assert np.add.reduce(plain).item() == 5
    target = torch.zeros(2, dtype=torch.float64)
    assert np.add(np.ones(2), np.ones(2), out=target) is target
    assert target.tolist() == [2, 2] and target._version == 1


def test_dlpack() -> None:
    x = torch.zeros(2)
    there = np.from_dlpack(x)
    back = torch.from_dlpack(np.arange(3))
    x[0] = 4
    assert there.tolist() == [4, 0] and back.tolist() == [0, 1, 2]
    assert tuple(x.__dlpack_device__()) == (1, 0)
    assert torch.from_dlpack(torch.to_dlpack(x)).tolist() == [4, 0]
    grad = torch.ones(2, requires_grad=True)
    raises(BufferError, "Can't export tensors that require gradient", grad.__dlpack__)


# --- dtypes and devices ---------------------------------------------------------------------------
def test_to_gives_the_tensor_itself_where_nothing_changes() -> None:
    x = torch.ones(2, requires_grad=True)
    same = (x.to(torch.float32), x.float(), x.to("cpu"), x.cpu(), x.type_as(x), x.to(None))
    assert all(y is x for y in same)
    assert x.to(torch.float32, copy=True).grad_fn.name() == "ToCopyBackward0"
    assert x.to(torch.int64).grad_fn is None
    x.double().sum().backward()
    assert x.grad.dtype is torch.float32


def test_to_keeps_the_order_of_strides() -> None:
    x = torch.ones(2, 3).t()
    assert x.double().stride() == (1, 3)
    assert x.to(torch.float64, memory_format=torch.contiguous_format).stride() == (2, 1)
    last = torch.ones(1, 2, 3, 4).to(memory_format=torch.channels_last)
    assert last.stride() == (24, 1, 8, 2)


def test_casts() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = torch.tensor([1.7, -1.7, float("nan"), 300.0])
        assert x.int().tolist() == [1, -1, -(2**31), 300]
        assert x.bool().tolist() == [True] * 4
        assert torch.tensor([1e6]).half().tolist() == [float("inf")]
        assert torch.tensor([1j, 0]).bool().tolist() == [True, False]
    with pytest.warns(UserWarning, match="Casting complex values to real discards"):
        assert torch.tensor([1 + 2j]).float().tolist() == [1]
    raises(TypeError, "to() received an invalid combination of arguments", x.to, dtype=3)
    if not torch.cuda.is_available():
        raises(AssertionError, "Torch not compiled with CUDA enabled", x.cuda)


def test_python_functions_on_elements() -> None:
    assert torch.arange(3).apply_(lambda n: n * 10).tolist() == [0, 10, 20]
    assert torch.ones(3).map_(torch.arange(3.0), lambda a, b: a + b).tolist() == [1, 2, 3]
    raises(RuntimeError, "Can't call apply_() on Variable that requires grad.",
           torch.ones(2, requires_grad=True).apply_, abs)  # fmt: skip


# --- copies ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64", "bool", "int64"])
@pytest.mark.parametrize("again", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_are_equal_and_apart(dtype: str, again: Any) -> None:
    kind = getattr(torch, dtype)
    for x in (
        torch.ones(2, 3, dtype=kind),
        torch.ones(3, 2, dtype=kind).t()[:, 1:],
        torch.ones((), dtype=kind),
    ):
        y = again(x)
        assert y.tolist() == x.tolist() and y.dtype is kind and y.stride() == x.stride()
        y.zero_()
        assert bool(x.bool().all())


@pytest.mark.parametrize("again", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_views_stay_views_of_one_memory(again: Any) -> None:
    x = torch.ones(4)
    a, b = again((x, x[1:]))
    b[0] = 7
    assert a.tolist() == [1, 7, 1, 1] and x.tolist() == [1, 1, 1, 1]


def test_copies_keep_what_belongs_to_the_tensor() -> None:
    x = torch.ones(2, requires_grad=True)
    x.note = "mine"
    x.grad = torch.zeros(2)
    deep = copy.deepcopy(x)
    assert deep.requires_grad and deep.note == "mine" and deep.grad.tolist() == [0, 0]
    sent = pickle.loads(pickle.dumps(x))
    assert sent.requires_grad and sent.note == "mine" and sent.grad is None
    assert copy.copy(x).data_ptr() == x.data_ptr()
    raises(RuntimeError, "Only Tensors created explicitly by the user (graph leaves)",
           copy.deepcopy, x * 2)  # fmt: skip
    assert pickle.loads(pickle.dumps(x * 2)).is_leaf


def test_a_subclass() -> None:
    class Mine(torch.Tensor):
        pass

    x = torch.ones(2, requires_grad=True)
    mine = x.as_subclass(Mine)
    assert type(mine) is Mine and mine.requires_grad
    assert type(Mine([1.0, 2.0])) is Mine
    assert type(torch.Tensor._make_subclass(Mine, x.detach(), True)) is Mine


def test_the_dict_of_a_tensor_is_its_users() -> None:
    """Libraries hand it on: `type(x)(data, **x.__dict__)`, `new.__dict__.update(x.__dict__)`."""
    x = torch.ones(2, requires_grad=True)
    p = torch.nn.Parameter(torch.ones(2))
    for t in (x, p, x * 2, x[:1], torch.Tensor([1.0]), torch.ones(2).as_subclass(type(p))):
        repr(t), t.shape, t.is_contiguous(), t + 1
        assert vars(t) == {}
        t.note = 1
        t.__dict__["more"] = 2
        assert t.__dict__ == {"note": 1, "more": t.more}
    y = torch.zeros(2)
    y.__dict__.update(p.__dict__)
    torch.utils.swap_tensors(y, x)
    assert vars(x) == {"note": 1, "more": 2} and not vars(x).keys() & {"_array", "_storage"}
    assert vars(type(p)(torch.ones(1))) == {}


def test_settings_are_remembered() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    assert torch.get_num_threads() == 2
    torch.set_num_threads(before)
    raises(RuntimeError, "set_num_threads expects a positive integer", torch.set_num_threads, 0)
    assert torch.typename(torch.ones(2)) == "torch.FloatTensor"
    assert torch.is_tensor(torch.ones(1)) and not torch.is_tensor(1)
