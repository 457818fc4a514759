"""Small programs of `masked.MaskedTensor`: what counts, what is shown, and gradients."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

from tests.harness import PlainCases, attempt

exact = PlainCases()  # to the last bit and letter
close = PlainCases()  # to rounding

CALLS = """
    x() | masked(ints, ints > 1) | masked(d[0, 0], m[0, 1]) | masked(d[0, 0], m[0, 0])
    masked(torch.zeros(2, 2, 2), torch.ones(2, 2, 2) > 0) | masked(m, m) | as_masked(d, m)
    masked(torch.tensor([1.23456789, 1e10, -3]), torch.tensor([True, True, False]))
    MaskedTensor(d, m) | x().get_data() | x().get_mask() | x().to_tensor(9.0) | x().shape
    x().dtype | x().requires_grad | x().sin() | x().exp() | x().sqrt_() | x() + x() | x() + 1
    1 + x() | x() * 2 | x() * d | d * x() | x() < 2 | x() == x() | -x() | x() / x() | x() ** 2
    x().abs() | x().sum() | x().sum(0) | x().sum(1) | x().sum(1, keepdim=True) | x().sum(dim=(0, 1))
    x().mean() | x().mean(1) | x().prod() | x().prod(1) | x().amax(1) | x().amin(0) | x().amax()
    x().argmax(1) | x().argmin(0) | x().var() | x().std(0) | x().all() | x().all(1)
    torch.sum(x(), 1) | torch.sin(x()) | torch.add(x(), x()) | x()[0] | x()[0, 1] | x()[:, 1:]
    x().reshape(3, 2) | x().view(6) | x().t() | x().transpose(0, 1) | x().mT | x().unsqueeze(0)
    x().expand(2, 2, 3) | x().clone() | x().detach() | x().contiguous() | x().double()
    x().to(torch.float64).dtype | torch.cat([x(), x()]) | torch.stack([x(), x()]) | x().softmax(1)
    torch.nn.functional.softmax(x(), 0) | torch.where(m, x(), x()) | x().is_sparse
    torch.where(m, x(), masked(d, ~m)) | masked(d[0, 0], m[0, 0]).item() | x().sum().item()
    x().is_sparse_coo() | x().is_sparse_csr() | len(x()) | x().size() | x().ndim | x().numel()
    x().stride() | is_masked(x()) | is_masked(d) | isinstance(x(), torch.Tensor)
    x() + torch.ones(3) | torch.ones(2, 2, 3) + x() | x().floor_divide(2) | torch.maximum(x(), x())
    torch.atan2(x(), x()) | x().fmod(2) | x().round() | x().pow(2) | x().clamp(0, 1)
    torch.ones_like(x()) | x().bool() | x().int() | x().eq(2) | x().isnan() | x().split(1)
    x().chunk(2) | x().unfold(0, 1, 1) | x().select(0, 1) | x().narrow(1, 0, 2) | x().flatten()
    torch.logaddexp(x(), x()) | x().sign() | x().add_(1) | x().mul_(x()) | x().copy_(x())
    x().nan_to_num() | x().data | x().grad | x().is_leaf | x().lt(3) | x() > 1 | x() >= x()
    x().abs().sum(0).get_mask() | masked(ints, ints > 1).sum() | masked(d, d < 0).sum()
    masked(d, d < 0).mean() | x().sum(0, True) | f"{x()}" | torch.is_tensor(x())
"""
ERRORS = """
    x() + masked(d, ~m) | x() + masked(torch.ones(3), torch.ones(3) > 0) | masked(d, m[0])
    masked(d, m[:, :2]) | masked(d, d) | masked(d.tolist(), m) | masked(x(), m) | masked(d, x())
    masked(ints.to(torch.uint8), ints > 1) | masked(torch.tensor([1j]), torch.tensor([True]))
    x().tolist() | x().numpy() | x().item() | masked(d, m.to_sparse())
    masked(ints, ints > 1).mean() | x().backward()
"""
REFUSED = "x().median(1) | x().any() | torch.mm(x(), d.t()) | x().cumsum(1) | torch.zeros_like(x())"


def names(torch: Any) -> dict[str, Any]:
    space = import_module(f"{torch.__name__}.masked")
    d = torch.arange(6.0).reshape(2, 3)
    m = torch.tensor([[True, False, True], [False, False, True]])
    return {
        "torch": torch, "d": d, "m": m, "ints": torch.tensor([1, 2, 3]),
        "masked": space.masked_tensor, "as_masked": space.as_masked_tensor,
        "MaskedTensor": space.MaskedTensor, "is_masked": space.is_masked_tensor,
        "x": lambda **how: space.masked_tensor(d, m, **how),
    }  # fmt: skip


def parts(text: str) -> list[str]:
    return [part.strip() for part in text.replace("\n", "|").split("|") if part.strip()]


def quietly(torch: Any, text: str) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spaces = names(torch)
        return {
            part: attempt(lambda part=part: repr(eval(part, dict(spaces)))) for part in parts(text)
        }


@exact
def calls(torch: Any) -> Any:
    return quietly(torch, CALLS)


@exact
def errors(torch: Any) -> Any:
    return quietly(torch, ERRORS)


@exact
def refused(torch: Any) -> Any:
    start = "TypeError: Multiple dispatch failed for 'torch._ops.aten."
    return {part: text.startswith(start) for part, text in quietly(torch, REFUSED).items()}


GRADIENTS = """
    x.sum() | x.mean() | x.prod() | x.amax() | x.sin().sum() | (x * x).sum() | (x * 2).sum()
    x.get_data().sum() | x.to_tensor(0).sum() | x.amax(1).sum() | (x / x).sum()
    x.t().sum(1).prod() | (x.sqrt() + x).sum() | x.std() | x.var(0).sum()
    torch.cat([x, x * x]).mean() | x.softmax(1).amax()
"""


@exact
def gradients(torch: Any) -> Any:
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for text in parts(GRADIENTS):
            spaces = names(torch)
            x = spaces["x"](requires_grad=True)
            eval(text, {**spaces, "x": x}).backward()
            found[text] = [repr(x.grad), type(x.grad).__name__]
    return found


@close
def numbers(torch: Any) -> Any:
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for text in parts("x.exp().sum() | x.sin().mean(1).sum() | x.prod(0).amax() | x.std()"):
            spaces = names(torch)
            x = spaces["x"](requires_grad=True)
            y = eval(text, {**spaces, "x": x})
            y.backward()
            found[text] = [y.item(), x.grad.to_tensor(0).tolist()]
    return found


@exact
def branches_that_overflow(torch: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        masked = names(torch)["masked"]
        x = torch.tensor([-10.0, -5, 0, 5, 100])
        below = masked(x, x < 0, requires_grad=True)
        above = masked(torch.ones_like(x), x >= 0, requires_grad=True)
        y = torch.where(x < 0, torch.exp(below), above)
        y.sum().backward()
        return [repr(y), repr(below.grad), repr(above.grad)]


def results(torch: Any) -> dict[str, Any]:
    return {**exact.results(torch), **close.results(torch)}
