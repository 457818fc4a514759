"""Tensors of one number without dimensions: what is inside them is an array like any other.

NumPy turns results of no dimension into scalars, which can be neither written nor pointed at.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

import rushlight as torch
from rushlight.arrays.host import in_memory, is_array
from rushlight.ops.registry import functions, methods, namespaces

DTYPES = [
    torch.bool, torch.uint8, torch.int8, torch.int64, torch.float16, torch.bfloat16, torch.float32,
    torch.float64, torch.complex32, torch.complex64, torch.complex128, torch.float8_e4m3fn,
]  # fmt: skip
F = torch.nn.functional


def tensors_in(x: Any) -> Iterator[Any]:
    if isinstance(x, torch.Tensor):
        yield x
    elif isinstance(x, tuple | list):
        for each in x:
            yield from tensors_in(each)


def every_function() -> dict[str, Any]:
    found = dict(functions)
    for title, names in (*namespaces.items(), ("Tensor", methods)):
        found |= {f"{title}.{name}": fn for name, fn in names.items()}
    return found


# They change settings of the whole program, or want another machine.
NOT_CALLED = ("set_", "manual_seed", "seed", "cuda")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_results_hold_arrays(dtype: torch.dtype) -> None:
    """Every function of the table, on tensors of no dimension: results, what was written, and
    gradients. Arguments that a function refuses are no part of the law."""
    wrong = set()
    ran = 0
    for name, fn in every_function().items():
        if name.rpartition(".")[2].startswith(NOT_CALLED):
            continue
        for count, more in itertools.product((1, 2, 3), ((), (0,), (1.5,))):
            y: Any = None
            grads: Any = ()
            try:
                xs = [torch.ones((), dtype=dtype) for _ in range(count)]
                y = fn(*xs, *more)
                ran += 1
                if isinstance(y, torch.Tensor) and y.is_floating_point() and dtype.itemsize > 1:
                    for x in xs:
                        x.requires_grad_()
                    grads = torch.autograd.grad(fn(*xs, *more).sum(), xs, allow_unused=True)
            except (TypeError, ValueError, RuntimeError, IndexError, AttributeError, BufferError):
                pass  # refused
            dense = [t for t in tensors_in([*xs, y, *grads]) if t.layout is torch.strided]
            if any(not is_array(in_memory(t._array)) for t in dense):
                wrong.add(name)
    assert ran > 300
    assert wrong == set()


@pytest.mark.parametrize("dtype", DTYPES[:-1], ids=str)
def test_made_for_tests(dtype: torch.dtype) -> None:
    x = torch.testing.make_tensor((), dtype=dtype, device="cpu")
    assert is_array(x._array) and x.shape == () and x.dtype is dtype
    assert repr(x).startswith("tensor(")
    assert weakref.ref(x)() is x
    x.zero_()
    assert x.item() == 0


def test_a_tensor_of_one_number_is_a_parameter() -> None:
    x = torch.tensor([-1.0, 2.0], requires_grad=True)
    two, half = torch.tensor(2), torch.tensor(0.5)
    assert F.elu(x, two).tolist() == F.elu(x, 2).tolist()
    assert F.celu(x, half).tolist() == F.celu(x, 0.5).tolist()
    assert F.hardshrink(x, two).tolist() == [0, 0]
    assert F.softshrink(x, half).tolist() == [-0.5, 1.5]
    assert F.threshold(x, half, two).tolist() == [2, 2]
    assert F.hardtanh(x, -half, half).tolist() == [-0.5, 0.5]
    assert F.leaky_relu(x, half).tolist() == [-0.5, 2]
    assert F.rrelu(x, half, half).tolist() == [-0.5, 2]
    assert F.softplus(x, two).tolist() == F.softplus(x, 2).tolist()
    assert F.huber_loss(x, x + 3, delta=half).item() == F.huber_loss(x, x + 3, delta=0.5).item()
    assert F.smooth_l1_loss(x, x + 3, beta=half).item() == 2.75
    assert torch.isclose(x, x + 0.25, half, half).tolist() == [True, True]
    (g,) = torch.autograd.grad(F.elu(x, two).sum(), x)
    assert g.tolist() == pytest.approx([0.7357588, 1])
    half.add_(0.5)  # the number is read when the function is called
    assert F.leaky_relu(x, half).tolist() == [-1, 2]
    for wrong in (torch.tensor([0.5]), torch.tensor(0.5, requires_grad=True)):
        with pytest.raises(TypeError, match=r"hardshrink\(\): argument 'lambd'.*must be Number"):
            F.hardshrink(x, wrong)
