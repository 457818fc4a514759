"""Making tensors: values, dtypes, strides, shared memory and the texts of errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rushlight as torch


def raises(error: type[Exception], text: str, fn: Any, *args: Any, **kwargs: Any) -> None:
    with pytest.raises(error) as caught:
        fn(*args, **kwargs)
    assert str(caught.value).startswith(text), str(caught.value)


# --- tensor(...) ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (True, torch.bool, ()),
        (3, torch.int64, ()),
        (2.5, torch.float32, ()),
        (1j, torch.complex64, ()),
        ([], torch.float32, (0,)),
        ([[], []], torch.float32, (2, 0)),
        ([True, 1], torch.int64, (2,)),
        ([True, 1.0], torch.float32, (2,)),
        ([1, 1j], torch.complex64, (2,)),
        ([[1, 2], (3, 4)], torch.int64, (2, 2)),
        (range(3), torch.int64, (3,)),
        (bytearray(b"ab"), torch.int64, (2,)),
        (np.float64(1), torch.float64, ()),
        ([np.float32(1), 2], torch.float32, (2,)),
        ([np.int32(1)], torch.int32, (1,)),
        (np.ones((2, 1), np.int16), torch.int16, (2, 1)),
        ([np.array([1, 2]), np.array([3, 4])], torch.int64, (2, 2)),
        ([torch.tensor(1), torch.tensor(2.0)], torch.float32, (2,)),
        ([torch.tensor([1]), torch.tensor([3])], torch.int64, (2,)),
        ([torch.tensor(1.0, dtype=torch.float64), 2], torch.float64, (2,)),
    ],
)
def test_dtype_and_shape_are_inferred(data: Any, dtype: Any, shape: tuple[int, ...]) -> None:
    made = torch.tensor(data)
    assert made.dtype is dtype
    assert made.shape == shape


def test_values() -> None:
    assert torch.tensor([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert torch.tensor([1.5, 2.5], dtype=torch.int32).tolist() == [1, 2]
    assert torch.tensor([-1], dtype=torch.uint8).tolist() == [255]
    assert torch.tensor([float("nan"), 0.0], dtype=torch.bool).tolist() == [True, False]
    assert torch.tensor([1e40]).item() == math.inf
    assert torch.tensor(2**63, dtype=torch.uint64).item() == 2**63
    assert torch.tensor([1], dtype=float).dtype is torch.float64


@pytest.mark.parametrize(
    ("data", "error", "text"),
    [
        ([[1, 2], [3]], ValueError, "expected sequence of length 2 at dim 1 (got 1)"),
        ([[1, 2], 3], TypeError, "not a sequence"),
        ([1, [2, 3]], TypeError, "'list' object cannot be interpreted as an integer"),
        (["a"], ValueError, "too many dimensions 'str'"),
        ("a", TypeError, "new(): invalid data type 'str'"),
        ([1.0, "a"], TypeError, "new(): invalid data type 'str'"),
        (None, RuntimeError, "Could not infer dtype of NoneType"),
        ([object()], RuntimeError, "Could not infer dtype of object"),
        ({1: 2}, RuntimeError, "Could not infer dtype of dict"),
        ([2**63], ValueError, "Overflow when unpacking long long"),
        (np.array(["a"]), TypeError, "can't convert np.ndarray of type numpy.str_."),
        (np.arange(3)[::-1], ValueError, "At least one stride in the given numpy array is negat"),
    ],
)
def test_data_that_makes_no_tensor(data: Any, error: type[Exception], text: str) -> None:
    raises(error, text, torch.tensor, data)


def test_options_that_make_no_tensor() -> None:
    overflow = "value cannot be converted to type uint8 without overflow"
    raises(RuntimeError, overflow, torch.tensor, [300], dtype=torch.uint8)
    raises(TypeError, "must be real number, not complex", torch.tensor, [1j], dtype=torch.float32)
    grad = "Only Tensors of floating point and complex dtype can require gradients"
    raises(RuntimeError, grad, torch.tensor, [1], requires_grad=True)
    raises(TypeError, "tensor(): argument 'dtype' must be torch.dtype", torch.tensor, 1, dtype="f")
    raises(
        TypeError, "tensor(): argument 'requires_grad' must be", torch.tensor, 1, requires_grad=1
    )


def test_a_tensor_from_a_tensor_warns_and_copies() -> None:
    x = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        y = torch.tensor(x)
    assert y.is_leaf and not y.requires_grad
    y[0] = 5
    assert x.tolist() == [1, 1]


def test_numpy_memory_is_shared_or_not() -> None:
    a = np.zeros(2)
    shared, copied = torch.from_numpy(a), torch.tensor(a)
    also, cast = torch.as_tensor(a), torch.as_tensor(a, dtype=torch.float32)
    a[0] = 7
    assert shared.tolist() == also.tolist() == torch.asarray(a).tolist() == [7, 0]
    assert copied.tolist() == cast.tolist() == [0, 0]
    raises(TypeError, "expected np.ndarray (got list)", torch.from_numpy, [1])
    with pytest.warns(UserWarning, match="not writable"):
        torch.from_numpy(np.broadcast_to(np.ones(1), (2,)))


# --- filled ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("size", [(2, 3), ((2, 3),), ([2, 3],), (torch.Size([2, 3]),)])
def test_sizes(size: tuple[Any, ...]) -> None:
    assert torch.zeros(*size).tolist() == [[0, 0, 0], [0, 0, 0]]
    assert torch.empty(*size).shape == (2, 3)


def test_odd_sizes() -> None:
    assert torch.zeros(()).shape == torch.zeros([]).shape == ()
    assert torch.zeros(size=(2,)).shape == (2,)
    assert torch.zeros(np.int64(2), torch.tensor(3)).shape == (2, 3)
    assert torch.ones(0, 3).shape == (0, 3)
    raises(TypeError, 'zeros() missing 1 required positional arguments: "size"', torch.zeros)
    raises(RuntimeError, "zeros: Dimension size must be non-negative.", torch.zeros, -1)
    raises(
        RuntimeError, "Trying to create tensor with negative dimension -1: [-1]", torch.empty, -1
    )
    raises(TypeError, "zeros(): argument 'size' (position 1) must be tuple of ints, not float",
           torch.zeros, 2.0)  # fmt: skip
    raises(TypeError, "zeros(): argument 'size' failed to unpack the object at pos 2",
           torch.zeros, 2, "a")  # fmt: skip
    raises(TypeError, "zeros() got an unexpected keyword argument 'foo'", torch.zeros, 2, foo=1)


def test_full_takes_the_dtype_of_its_value() -> None:
    kinds = [torch.full((1,), value).dtype for value in (True, 1, 1.5, 1j)]
    assert kinds == [torch.bool, torch.int64, torch.float32, torch.complex64]
    assert torch.full((2,), torch.tensor(3)).tolist() == [3, 3]
    assert torch.full((1,), 1.5, dtype=torch.int64).tolist() == [1]
    raises(TypeError, "full(): argument 'fill_value' (position 2) must be Number, not str",
           torch.full, (2,), "a")  # fmt: skip
    raises(RuntimeError, "value cannot be converted to type uint8_t without overflow",
           torch.full, (2,), 300, dtype=torch.uint8)  # fmt: skip


def test_eye() -> None:
    assert torch.eye(2, 3, dtype=torch.int64).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert torch.eye(0).shape == (0, 0)
    raises(RuntimeError, "n must be greater or equal to 0, got -1", torch.eye, -1)


def test_out() -> None:
    out = torch.ones(3)
    assert torch.zeros(2, out=out) is out
    assert out.tolist() == [0, 0]
    assert torch.arange(3, out=torch.ones(3)).dtype is torch.float32
    raises(RuntimeError, "dtype Float does not match dtype of out parameter (Long)",
           torch.zeros, 2, out=torch.ones(2, dtype=torch.int64), dtype=torch.float32)  # fmt: skip


# --- counted --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("args", "values", "dtype"),
    [
        ((5,), [0, 1, 2, 3, 4], torch.int64),
        ((2.0,), [0, 1], torch.float32),
        ((0, 5, 2), [0, 2, 4], torch.int64),
        ((5, 0, -2), [5, 3, 1], torch.int64),
        ((1, 2.5, 0.5), [1, 1.5, 2], torch.float32),
        ((torch.tensor(2),), [0, 1], torch.int64),
        ((3, 3), [], torch.int64),
        ((2**62, 2**62 + 2), [2**62, 2**62 + 1], torch.int64),
    ],
)
def test_arange(args: Any, values: list[Any], dtype: Any) -> None:
    made = torch.arange(*args)
    assert made.tolist() == values
    assert made.dtype is dtype


def test_arange_refuses() -> None:
    raises(
        RuntimeError, "upper bound and lower bound inconsistent with step sign", torch.arange, 5, 0
    )
    raises(RuntimeError, "step must be nonzero", torch.arange, 0, 5, 0)
    raises(RuntimeError, "unsupported range: 0 -> inf", torch.arange, 0, math.inf)
    raises(TypeError, "arange() received an invalid combination of arguments", torch.arange)
    raises(TypeError, "arange(): argument 'end' (position 1) must be Number", torch.arange, "a")
    raises(
        NotImplementedError, '"arange_cpu" not implemented for', torch.arange, 3, dtype=torch.bool
    )


def test_linspace_and_logspace() -> None:
    assert torch.linspace(0, 1, 5).tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert torch.linspace(0, 10, 4, dtype=torch.int64).tolist() == [0, 3, 6, 10]
    assert torch.linspace(3, 9, 1).tolist() == [3]
    assert torch.linspace(0, 1, 0).shape == (0,)
    assert torch.linspace(0, 2j, 3).tolist() == [0, 1j, 2j]
    assert torch.logspace(0, 2, 3).tolist() == [1, 10, 100]
    assert torch.logspace(0, 2, 3, base=2, dtype=torch.int64).tolist() == [1, 2, 4]
    raises(RuntimeError, "number of steps must be non-negative", torch.linspace, 0, 1, -1)


# --- like others ----------------------------------------------------------------------------------
def test_like_keeps_the_order_of_strides() -> None:
    turned = torch.ones(2, 3).t()
    assert torch.zeros_like(turned).stride() == (1, 3)
    assert torch.ones_like(turned, memory_format=torch.contiguous_format).stride() == (2, 1)
    assert torch.zeros_like(torch.ones(2, 1).expand(2, 3)).stride() == (3, 1)
    assert torch.full_like(torch.ones(2, dtype=torch.int64), 1.5).tolist() == [1, 1]
    assert torch.zeros_like(torch.ones(2, requires_grad=True)).requires_grad is False
    raises(TypeError, "zeros_like(): argument 'input' (position 1) must be Tensor, not list",
           torch.zeros_like, [1])  # fmt: skip


def test_new() -> None:
    x = torch.ones(2, dtype=torch.float64)
    assert x.new_zeros(2).dtype is torch.float64
    assert x.new_ones((1, 2), dtype=torch.int64).tolist() == [[1, 1]]
    assert x.new_full((2,), 3).tolist() == [3, 3]
    assert x.new_tensor([1, 2]).dtype is torch.float64
    assert x.new_empty(0).shape == (0,)
    assert x.new([1, 2]).dtype is torch.float64
    assert x.new(3, 2).shape == (3, 2)


def test_empty_strided_and_scalar_tensor() -> None:
    assert torch.empty_strided((2, 3), (1, 2)).stride() == (1, 2)
    assert torch.scalar_tensor(2).dtype is torch.float32


def test_as_tensor_keeps_the_history() -> None:
    x = torch.ones(2, requires_grad=True)
    assert torch.as_tensor(x) is x
    assert torch.as_tensor(x, dtype=torch.float64).grad_fn is not None


def test_asarray() -> None:
    raises(ValueError, "can't alias arbitrary sequence", torch.asarray, [1], copy=False)
    a = np.ones(2)
    assert torch.asarray(a, copy=True).numpy() is not a
    assert torch.asarray(np.ones(1), requires_grad=True).requires_grad


def test_frombuffer() -> None:
    data = bytearray(b"\x01\x00\x02\x00")
    made = torch.frombuffer(data, dtype=torch.int16)
    data[0] = 9
    assert made.tolist() == [9, 2]
    assert torch.frombuffer(data, dtype=torch.uint8, count=1, offset=2).tolist() == [2]
    raises(ValueError, "buffer length (3 bytes) after offset (1 bytes) must be a multiple",
           torch.frombuffer, data, dtype=torch.int16, offset=1)  # fmt: skip
    raises(ValueError, "object does not implement Python buffer protocol", torch.frombuffer, 3,
           dtype=torch.int16)  # fmt: skip


# --- complex --------------------------------------------------------------------------------------
def test_complex_and_polar() -> None:
    re = torch.tensor([1.0, 2.0], requires_grad=True)
    im = torch.tensor([[3.0]], requires_grad=True)
    z = torch.complex(re, im)
    assert z.tolist() == [[1 + 3j, 2 + 3j]]
    (z * (1 - 2j)).real.sum().backward()
    assert re.grad.tolist() == [1, 1]
    assert im.grad.tolist() == [[4]]
    r = torch.tensor([2.0], dtype=torch.float64, requires_grad=True)
    angle = torch.tensor([0.5], dtype=torch.float64, requires_grad=True)
    w = torch.polar(r, angle)
    assert w.item() == pytest.approx(2 * complex(math.cos(0.5), math.sin(0.5)))
    w.imag.sum().backward()
    assert r.grad.item() == pytest.approx(math.sin(0.5))
    assert angle.grad.item() == pytest.approx(2 * math.cos(0.5))
    raises(RuntimeError, "Expected both inputs to be Half, Float or Double tensors but got Long",
           torch.complex, torch.tensor([1]), torch.tensor([1]))  # fmt: skip


# --- random ---------------------------------------------------------------------------------------
def test_the_same_seed_gives_pytorch_numbers() -> None:
    torch.manual_seed(0)
    assert torch.rand(2).tolist() == pytest.approx([0.4962565899, 0.7682217956])
    torch.manual_seed(0)
    assert torch.randn(2).tolist() == pytest.approx([1.5409961, -0.2934289], abs=1e-6)
    torch.manual_seed(0)
    assert torch.randint(10, (3,)).tolist() == [4, 9, 3]
    torch.manual_seed(0)
    assert torch.randperm(4).tolist() == [0, 1, 3, 2]


def test_state_is_a_tensor() -> None:
    state = torch.get_rng_state()
    assert state.dtype is torch.uint8 and state.shape == (5056,)
    first = torch.rand(3)
    torch.set_rng_state(state)
    assert torch.equal(torch.rand(3), first)
    generator = torch.Generator()
    assert generator.device == torch.device("cpu")
    raises(TypeError, "expected a torch.ByteTensor, but got int", generator.set_state, 3)


def test_random_arguments() -> None:
    assert torch.randint(low=1, high=2, size=(2,)).tolist() == [1, 1]
    assert torch.randint_like(torch.zeros(2), 3, 4).tolist() == [3, 3]
    assert torch.normal(torch.tensor([1.0, 2.0]), 0.0).tolist() == [1, 2]
    assert torch.bernoulli(torch.tensor([0.0, 1.0])).tolist() == [0, 1]
    assert torch.multinomial(torch.tensor([0.0, 1.0]), 3, replacement=True).tolist() == [1, 1, 1]
    raises(TypeError, "randint() received an invalid combination", torch.randint, 3)
    raises(TypeError, "normal() received an invalid combination", torch.normal, 0.0, 1.0)
    raises(NotImplementedError, '"check_uniform_bounds" not implemented for \'Long\'',
           torch.rand, 2, dtype=torch.int64)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "args", "node"),
    [
        ("uniform_", (), "UniformBackward0"),
        ("normal_", (), "NormalBackward0"),
        ("random_", (), "RandomBackward2"),
        ("bernoulli_", (0.5,), "BernoulliBackward2"),
        ("exponential_", (), "ExponentialBackward0"),
        ("geometric_", (0.5,), "GeometricBackward0"),
        ("cauchy_", (), "CauchyBackward0"),
        ("log_normal_", (), "LogNormalBackward0"),
    ],
)
def test_drawing_in_place_cuts_the_gradient(name: str, args: Any, node: str) -> None:
    x = torch.ones(3, requires_grad=True)
    raises(RuntimeError, "a leaf Variable that requires grad is being used in an in-place",
           getattr(x, name), *args)  # fmt: skip
    y = x * 2
    assert getattr(y, name)(*args) is y
    assert y.grad_fn.name() == node
    y.sum().backward()
    assert x.grad.tolist() == [0, 0, 0]
