"""Anomaly mode: what it finds, what it says, and its settings."""

from __future__ import annotations

from typing import Any

from tests.autograd.warning_cases import WarningCases

cases = WarningCases()


@cases
def anomaly_nan(torch: Any) -> Any:
    with torch.autograd.detect_anomaly():
        torch.tensor([-1.0, 2.0], requires_grad=True).sqrt().sum().backward()


@cases
def anomaly_nan_unchecked(torch: Any) -> Any:
    x = torch.tensor([-1.0, 4.0], requires_grad=True)
    with torch.autograd.detect_anomaly(check_nan=False):
        x.sqrt().sum().backward()
    return x.grad[1]


@cases
def anomaly_nan_given(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        (x * 2).backward(torch.tensor([float("nan"), 1.0]))


@cases
def anomaly_second_output(torch: Any) -> Any:
    x = torch.tensor([1.0], requires_grad=True)
    y = torch.tensor([0.0], requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        (x * 0 / y).sum().backward()


@cases
def anomaly_where_nothing_asks(torch: Any) -> Any:
    x = torch.tensor([0.0], requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        (x * float("inf")).sum().backward()
    return x.grad


@cases
def anomaly_nested(torch: Any) -> Any:
    x = torch.tensor([0.0], requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        (g,) = torch.autograd.grad((x**1.5).sum(), x, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), x, create_graph=True)
        (h * 0).sum().backward()


@cases
def anomaly_hook_raises(torch: Any) -> Any:
    with torch.autograd.set_detect_anomaly(True):
        y = torch.ones(2, requires_grad=True) * 2
        y.register_hook(lambda g: 1 / 0)
        y.sum().backward()


@cases
def anomaly_function(torch: Any) -> Any:
    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            return a + b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, g * float("nan")

    x = torch.ones(2, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        Broken.apply(x, x).sum().backward()


@cases
def anomaly_error(torch: Any) -> Any:
    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            return a.clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            raise RuntimeError("Some error in backward")

    x = torch.ones(2, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        Broken.apply(x).sum().backward()


@cases
def anomaly_settings(torch: Any) -> Any:
    mode = torch.autograd.anomaly_mode
    enabled = getattr(mode, "is_anomaly_enabled", None) or torch.is_anomaly_enabled
    nan = getattr(mode, "is_anomaly_check_nan_enabled", None) or torch.is_anomaly_check_nan_enabled
    seen = [enabled(), nan()]
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        seen += [enabled(), nan()]
        with torch.autograd.detect_anomaly():
            seen += [enabled(), nan()]
        seen += [enabled(), nan()]
    seen += [enabled(), nan()]
    torch.autograd.set_detect_anomaly(True)
    seen += [enabled(), nan()]
    torch.autograd.set_detect_anomaly(False)
    return [*seen, enabled(), nan()]


results = cases.results
