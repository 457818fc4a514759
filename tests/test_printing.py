"""The printed form of tensors is PyTorch's, letter for letter."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import rushlight
from rushlight import dtypes
from rushlight.arrays.device import CPU, device
from rushlight.printing import (
    get_printoptions,
    parameter_str,
    printoptions,
    set_printoptions,
    tensor_format,
    tensor_str,
    wrapper_str,
)
from tests import cases_printing as written
from tests import harness


@dataclass
class Node:
    called: str

    def name(self) -> str:
        return self.called


@dataclass
class Bare:
    """The least that can be printed: an array, and what is said of it."""

    array: Any
    dtype: dtypes.dtype
    device: device = CPU
    requires_grad: bool = False
    grad_fn: Node | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)

    def item(self) -> Any:
        return self.array.item()

    def _host_array(self) -> Any:
        return self.array


def bare(values: Any, **fields: Any) -> Bare:
    array = np.asarray(values)
    if array.dtype == np.float64:
        array = array.astype(np.float32)
    return Bare(array, dtypes.of(array.dtype), **fields)


@pytest.fixture(autouse=True)
def _defaults() -> Iterator[None]:
    yield
    set_printoptions(profile="default")
    dtypes.set_default_dtype(dtypes.float32)


@pytest.fixture(scope="module")
def stored() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = harness.stored("printing")
    return found


@pytest.fixture(scope="module")
def cases(stored: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The stored cases and, where PyTorch is installed, others that it has just printed."""
    fresh = written.draw(seed=1, count=400) if harness.LIVE else ()
    return stored + [{**case, "text": written.expected(harness.pytorch(), case)} for case in fresh]


def test_arrays_print_as_in_pytorch(cases: list[dict[str, Any]]) -> None:
    for case in cases:
        node = None if case["node"] in ("", "leaf") else Node(case["node"])
        t = Bare(
            written.array(case),
            dtypes.aliases[case["dtype"]],
            requires_grad=bool(case["node"]),
            grad_fn=node,
        )
        dtypes.set_default_dtype(dtypes.aliases[case["default"]])
        with printoptions(**case["options"]):
            assert tensor_str(t) == case["text"], {**case, "data": "..."}


def test_tensors_print_as_in_pytorch(cases: list[dict[str, Any]]) -> None:
    for case in cases:
        assert written.printed(rushlight, case) == case["text"], {**case, "data": "..."}


def test_the_stored_cases_meet_every_dtype_and_form(stored: list[dict[str, Any]]) -> None:
    assert {case["dtype"] for case in stored} == {d.name for d in dtypes.all_dtypes}
    texts = [case["text"] for case in stored]
    for form in ("e+", "nan", "inf", "-0.", "...", "[]", "size=", "True", "j", "grad_fn=", "\n\n"):
        assert sum(form in text for text in texts) >= 5, form


def test_any_memory_layout_prints_as_its_copy() -> None:
    base = np.arange(5040.0, dtype=np.float32).reshape(7, 8, 9, 10)
    for view in (base.T, base[::-1, :, ::2], base.transpose(2, 0, 3, 1), base[:, 3, :, 1]):
        assert tensor_str(bare(view)) == tensor_str(bare(view.copy()))


def test_cost_does_not_grow_with_the_array() -> None:
    huge = np.broadcast_to(np.float32(1), (10**6, 10**6, 10**4))  # 40 petabytes, if it were copied
    with printoptions(edgeitems=1):
        assert tensor_str(bare(huge)) == (
            "tensor([[[1.,  ..., 1.],\n"
            "         ...,\n"
            "         [1.,  ..., 1.]],\n\n"
            "        ...,\n\n"
            "        [[1.,  ..., 1.],\n"
            "         ...,\n"
            "         [1.,  ..., 1.]]])"
        )


def test_printing_changes_nothing() -> None:
    t = bare([[1.5, 2.0], [np.nan, -0.0]], requires_grad=True)
    data, options = t.array.tobytes(), get_printoptions()
    assert tensor_str(t) == tensor_str(t)
    assert (t.array.tobytes(), get_printoptions()) == (data, options)


def test_device_comes_first() -> None:
    gpu = device("cuda:0")
    assert tensor_str(bare([1.0], device=gpu)) == "tensor([1.], device='cuda:0')"
    assert tensor_str(Bare(np.ones(2), dtypes.float64, gpu, requires_grad=True)) == (
        "tensor([1., 1.], device='cuda:0', dtype=torch.float64, requires_grad=True)"
    )
    assert tensor_str(Bare(np.ones((0, 2), int), dtypes.int64, gpu)) == (
        "tensor([], device='cuda:0', size=(0, 2), dtype=torch.int64)"
    )


def test_meta_tensors_print_their_shape() -> None:
    meta = device("meta")
    assert tensor_str(bare(np.ones((2, 3)), device=meta)) == (
        "tensor(..., device='meta', size=(2, 3))"
    )
    assert tensor_str(bare(np.ones((), int), device=meta)) == (
        "tensor(..., device='meta', size=(), dtype=torch.int64)"
    )
    assert tensor_str(Bare(np.ones((2, 3)), dtypes.float64, meta, requires_grad=True)) == (
        "tensor(..., device='meta', size=(2, 3), dtype=torch.float64,\n       requires_grad=True)"
    )


def test_history() -> None:
    slices = Node("torch::autograd::CopySlices")
    assert tensor_str(bare([1.0], grad_fn=slices)) == "tensor([1.], grad_fn=<CopySlices>)"

    class Overwritten(Bare):
        @property
        def grad_fn(self) -> Any:
            raise RuntimeError("Output 0 of SplitBackward0 is a view and its base was modified")

        @grad_fn.setter
        def grad_fn(self, node: Any) -> None: ...

    t = Overwritten(np.ones(1, np.float32), dtypes.float32)
    assert tensor_str(t) == "tensor([1.], grad_fn=<Invalid>)"


@pytest.mark.parametrize(
    ("columns", "length", "lines"),
    # Of 80 columns PyTorch uses 79; a line of suffixes may be two longer than a line of numbers.
    [(80, 30, 1), (80, 31, 2), (80, 50, 2), (80, 51, 2), (45, 99, 3), (46, 99, 2)],
)
def test_suffixes_wrap(columns: int, length: int, lines: int) -> None:
    t = Bare(np.ones(2), dtypes.float64, requires_grad=True)
    with printoptions(linewidth=columns):
        assert len(tensor_str(t, "X" * length).splitlines()) == lines
        assert len(tensor_str(t, "YY\n" + "X" * (length + 7)).splitlines()) == lines + 1


def test_contents_name_and_tangent() -> None:
    t = bare(np.ones((2, 2)), requires_grad=True)
    assert tensor_str(t, "...") == "tensor(..., requires_grad=True)"
    assert tensor_str(t, name="Sub") == "Sub([[1., 1.],\n     [1., 1.]], requires_grad=True)"
    assert tensor_str(bare([1.0]), tangent=4.0) == "tensor([1.], tangent=4.0)"


def test_parameters() -> None:
    t = bare([1.0, 1.0], requires_grad=True)
    assert parameter_str(t) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"
    assert parameter_str(t, name="Mine") == (
        "Parameter containing:\nParameter(Mine([1., 1.], requires_grad=True))"
    )


def test_wrapped_tensors_nest() -> None:
    class Value:
        def __init__(self, text: str) -> None:
            self.text = text

        def __repr__(self) -> str:
            return self.text

    inner = wrapper_str("BatchedTensor", Value("tensor([[1.],\n        [1.]])"), lvl=1, bdim=0)
    assert wrapper_str("GradTrackingTensor", Value(inner), lvl=2) == (
        "GradTrackingTensor(lvl=2, value=\n"
        "    BatchedTensor(lvl=1, bdim=0, value=\n"
        "        tensor([[1.],\n"
        "                [1.]])\n"
        "    )\n"
        ")"
    )


def test_format() -> None:
    assert tensor_format(bare(1.5), ".2f") == "1.50"
    assert tensor_format(bare(1.5), "") == "1.5"
    assert tensor_format(bare(True), ">6") == "     1"
    assert tensor_format(bare(1 + 2j), "") == "(1+2j)"
    with pytest.raises(ValueError, match="Unknown format code 'd'"):
        tensor_format(bare(1.5), "d")
    for t, plain in (
        (bare([1.5]), True),
        (bare(1.5), False),
        (bare(1.5, device=device("meta")), True),
    ):
        assert tensor_format(t, "", plain=plain) == str(t)
        with pytest.raises(TypeError, match=r"unsupported format string passed to Bare.__format__"):
            tensor_format(t, ".2f", plain=plain)


def test_options() -> None:
    default = {
        "precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None
    }  # fmt: skip
    assert get_printoptions() == default
    set_printoptions(profile="short", precision=9, sci_mode=True)
    assert get_printoptions() == {**default, "precision": 9, "edgeitems": 2, "sci_mode": True}
    set_printoptions(linewidth=100)  # a call that says nothing of sci_mode resets it
    assert get_printoptions() == {**default, "precision": 9, "edgeitems": 2, "linewidth": 100}
    set_printoptions(profile="Full")  # PyTorch passes over profiles that it does not know
    assert get_printoptions()["threshold"] == 1000
    set_printoptions(profile="full")
    assert get_printoptions() == {**default, "threshold": float("inf")}


def test_options_of_a_block_end_with_it() -> None:
    set_printoptions(sci_mode=True)
    before = get_printoptions()
    with printoptions(precision=1):
        assert get_printoptions() == {**before, "precision": 1, "sci_mode": None}
    assert get_printoptions() == before
    with pytest.raises(ZeroDivisionError), printoptions(precision=1):
        1 / 0
    assert get_printoptions() == before
    with (
        pytest.raises(TypeError, match="unexpected keyword argument 'digits'"),
        printoptions(digits=1),
    ):
        pass
    assert get_printoptions() == before
