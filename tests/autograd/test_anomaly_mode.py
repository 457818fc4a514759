"""Anomaly mode names the forward line."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import rushlight as torch
from rushlight.autograd import detect_anomaly, set_detect_anomaly
from rushlight.autograd.anomaly_mode import is_anomaly_enabled
from tests.autograd.cases_anomaly_mode import cases
from tests.harness import LIVE, pytorch, stored


@pytest.fixture(autouse=True)
def off_again() -> Iterator[None]:
    yield
    assert not is_anomaly_enabled()


@contextmanager
def warned(text: str) -> Iterator[list[warnings.WarningMessage]]:
    """`pytest.warns`, without turning on NumPy's warnings, which rushlight keeps silent."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UserWarning)
        yield said
    assert any(text in str(w.message) for w in said)


def test_nan_names_the_line_and_the_place() -> None:
    x = torch.tensor([[4.0, 1.0], [-1.0, 2.0]], requires_grad=True)
    y = x.sqrt()  # the culprit
    with (
        set_detect_anomaly(True),
        warned("Error detected in SqrtBackward0") as said,
        pytest.raises(RuntimeError) as caught,
    ):
        y.sum().backward()
    text = str(caught.value)
    assert text.startswith("Function 'SqrtBackward0' returned nan values in its 0th output.\n")
    assert "y = x.sqrt()  # the culprit" in text
    assert "the shape [2, 2]; the first nan stands at [1, 0]" in text
    warning = str(said[0].message)
    assert f'File "{__file__}", line ' in warning
    assert warning.endswith("y = x.sqrt()  # the culprit\n")
    assert said[0].filename == __file__
    assert x.grad is None


def test_a_graph_made_before_the_mode_is_explained_too() -> None:
    x = torch.tensor(0.0, requires_grad=True)
    y = x * float("inf")
    with (
        set_detect_anomaly(True),
        warned("y = x * float"),
        pytest.raises(RuntimeError, match="'MulBackward0' returned nan"),
    ):
        y.backward(torch.tensor(0.0))


def test_a_nan_that_nobody_wants_is_no_anomaly() -> None:
    x = torch.tensor([1.0], requires_grad=True)
    zero = torch.tensor([0.0])
    with set_detect_anomaly(True):
        torch.where(torch.tensor([True]), x, zero / zero).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [1.0]


def test_complex_and_low_precision() -> None:
    for dtype in (torch.complex64, torch.bfloat16, torch.float16):
        x = torch.tensor([1.0], dtype=dtype, requires_grad=True)
        with (
            set_detect_anomaly(True),
            warned("Error detected"),
            pytest.raises(RuntimeError, match="returned nan values"),
        ):
            (x * float("nan")).sum().abs().backward()


def test_second_derivatives_tell_the_whole_way() -> None:
    x = torch.tensor([0.0], requires_grad=True)
    with set_detect_anomaly(True):
        y = x**1.5
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", UserWarning)
            with pytest.raises(RuntimeError, match="'PowBackward0' returned nan"):
                (h,) = torch.autograd.grad(g.sum(), x, create_graph=True)
                (h * 0).sum().backward()
    texts = [str(w.message) for w in said if w.category is UserWarning]
    assert len(texts) == 3
    assert "create_graph=True" in texts[0]
    assert texts[1].startswith("\n\nPrevious calculation was induced by PowBackward0.")
    assert "y = x**1.5" in texts[2]


def test_parents_are_in_the_metadata() -> None:
    x = torch.tensor([1.0], requires_grad=True)
    with set_detect_anomaly(True):
        y = x.exp()
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    assert g.grad_fn.metadata["parent_"] is y.grad_fn


def test_errors_in_hooks_name_the_line_without_any_mode() -> None:
    y = torch.ones(2, requires_grad=True) * 2  # hooked
    y.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError) as caught:
        y.sum().backward()
    assert any("MulBackward0, made at" in n and "# hooked" in n for n in caught.value.__notes__)
    z = torch.ones(2, requires_grad=True) * 2
    assert z.grad_fn is not None
    z.grad_fn.register_hook(lambda gi, go: 1 / 0)
    with (
        set_detect_anomaly(True),
        warned("Error detected in MulBackward0"),
        pytest.raises(ZeroDivisionError),
    ):
        z.sum().backward()


def test_the_mode_is_on_in_all_threads() -> None:
    failures: list[BaseException] = []

    def work() -> None:
        x = torch.tensor([-1.0], requires_grad=True)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                x.sqrt().sum().backward()
        except RuntimeError as error:
            failures.append(error)

    with set_detect_anomaly(True):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert len(failures) == 1


def test_entering_warns_that_it_is_slow() -> None:
    with warned("Anomaly Detection has been enabled. This mode will increase the runtime"):
        mode = detect_anomaly()
    assert not is_anomaly_enabled()
    with mode:
        assert is_anomaly_enabled()


def test_gradients_are_the_same_with_the_mode_on() -> None:
    def gradient(x: Any) -> Any:
        y = (x.sin() * x).cumsum(0)
        y[1:] *= 2
        return torch.autograd.grad(y.sum(), x)[0]

    x = torch.tensor([0.1, 0.2, 0.3], requires_grad=True)
    off = gradient(x)
    with set_detect_anomaly(True):
        assert torch.equal(gradient(x), off)


# --- as PyTorch -----------------------------------------------------------------------------------
STORED = stored("autograd/anomaly_mode")


def test_every_case_is_stored() -> None:
    assert STORED.keys() == cases.keys()


@pytest.mark.parametrize("name", cases)
def test_as_pytorch(name: str) -> None:
    wrong = cases.only([name]).differing(torch, STORED)
    assert not wrong, "\n".join(wrong)


if LIVE:

    @pytest.mark.parametrize("name", cases)
    def test_stored_is_what_pytorch_does(name: str) -> None:
        wrong = cases.only([name]).differing(pytorch(), STORED)
        assert not wrong, "\n".join(wrong)
