"""gradcheck finds faults and reports the worst."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight.autograd import Function, gradcheck, gradgradcheck
from rushlight.autograd.gradcheck import GradcheckError
from tests.autograd.cases_gradcheck import cases
from tests.harness import LIVE, pytorch, stored

DOUBLE = torch.float64


def leaf(*numbers: float) -> torch.Tensor:
    return torch.tensor(numbers, dtype=DOUBLE, requires_grad=True)


class OneOff(Function):
    """x ** 2, with a backward that is wrong in element [1, 0] alone."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        d = 2 * x * g
        d = d.clone()
        d[1, 0] = d[1, 0] * 1.5
        return d


def test_report_shows_the_worst_element() -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=DOUBLE, requires_grad=True)
    with pytest.raises(GradcheckError) as caught:
        gradcheck(OneOff.apply, x)
    text = str(caught.value)
    assert text.startswith(
        "Jacobian mismatch for output 0 with respect to input 0,\nnumerical:tensor([["
    )
    worst = text.strip().splitlines()[-1]
    assert worst.startswith("worst element: output[1, 0] by input[1, 0]: numerical 6.0")
    assert "analytical 9.0, difference 3 (allowed 0.00601)" in worst


def test_fast_mode_shows_whole_jacobians_and_the_worst_element() -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=DOUBLE, requires_grad=True)
    with pytest.raises(GradcheckError, match="The max per-element difference") as caught:
        gradcheck(OneOff.apply, x, fast_mode=True)
    assert "worst element: output[1, 0] by input[1, 0]" in str(caught.value)


def test_scalars_have_no_place() -> None:
    class Wrong(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 3

    with pytest.raises(GradcheckError, match="element: output by input: numerical (2.0|1.99)"):
        gradcheck(Wrong.apply, torch.tensor(1.0, dtype=DOUBLE, requires_grad=True))


def test_nan_is_the_worst() -> None:
    class Nan(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * torch.tensor([2.0, float("nan"), 100.0], dtype=DOUBLE)

    with pytest.raises(GradcheckError, match=r"worst element: output\[0\] by input\[1\]"):
        gradcheck(Nan.apply, leaf(1.0, 2.0, 3.0), nondet_tol=float("inf"))


def test_integer_outputs_anywhere() -> None:
    assert gradcheck(lambda x: (x.argmax(), x * 2, x.long()), leaf(1.0, 2.0))
    assert gradcheck(lambda x: (x.argmax(), x * 2), leaf(1.0, 2.0), fast_mode=True)


def test_numbers_and_tensors_that_do_not_ask_are_passed_on() -> None:
    y = torch.ones(2, dtype=DOUBLE)
    assert gradcheck(lambda x, n, y: x**n * y, (leaf(1.0, 2.0), 3, y))
    assert gradgradcheck(lambda x, n, y: x**n * y, (leaf(1.0, 2.0), 3, y))


def test_a_view_as_input_is_perturbed_in_its_own_memory() -> None:
    base = torch.arange(6, dtype=DOUBLE)
    x = base.reshape(2, 3).T.requires_grad_()
    before = base.clone()
    assert gradcheck(lambda x: (x * x).sum(0), x)
    assert gradcheck(lambda x: (x * x).sum(0), x, fast_mode=True)
    assert torch.equal(base, before)


def test_the_input_is_whole_again_after_an_error() -> None:
    x = leaf(1.0, 2.0)

    def fails(x: torch.Tensor) -> torch.Tensor:
        if float(x.detach()[1]) != 2.0:
            raise ZeroDivisionError
        return x * 2

    with pytest.raises(ZeroDivisionError):
        gradcheck(fails, x)
    assert x.tolist() == [1.0, 2.0]


def test_memory_that_elements_share() -> None:
    x = torch.arange(4, dtype=DOUBLE).as_strided((3, 2), (1, 1)).requires_grad_()
    with pytest.raises(RuntimeError, match="The 0th input has elements that share memory"):
        gradcheck(torch.sin, x)


def test_outputs_that_change_their_dtype() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if float(x.detach()[0]) <= 1.0 else (x * 2).float()

    with pytest.raises(AssertionError, match="outputs with the same dtype when inputs are pertu"):
        gradcheck(f, leaf(1.0))


def test_the_users_random_numbers_are_not_touched_in_fast_mode() -> None:
    torch.manual_seed(3)
    gradcheck(torch.sin, leaf(1.0, 2.0), fast_mode=True)
    after = torch.rand(1)
    torch.manual_seed(3)
    assert torch.equal(after, torch.rand(1))


def test_second_derivatives_of_a_function_with_a_wrong_one() -> None:
    class Wrong(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * 3 * x.detach() ** 2

    assert gradcheck(Wrong.apply, leaf(1.0, 2.0))
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to inp"):
        gradgradcheck(Wrong.apply, leaf(1.0, 2.0))
    assert not gradgradcheck(Wrong.apply, leaf(1.0, 2.0), raise_exception=False)


@pytest.mark.parametrize("fast", [False, True])
def test_forward_mode(fast: bool) -> None:
    z = torch.tensor([1 + 2j, -0.5j], dtype=torch.complex128, requires_grad=True)
    x = leaf(0.5, 2.0)
    some: dict[str, Any] = {"check_forward_ad": True, "fast_mode": fast}
    assert gradcheck(lambda x: (x.sin() * x).cumsum(0), x, **some)
    assert gradcheck(lambda x: torch.complex(x, x * x), x, **some)
    assert gradcheck(lambda z: z * z.conj() * z, z, **some)
    assert gradcheck(torch.sin, x, check_backward_ad=False, **some)
    assert gradgradcheck(torch.sin, x, check_fwd_over_rev=True, fast_mode=fast)
    assert gradgradcheck(lambda z: z * z.conj() * z, z, check_fwd_over_rev=True, fast_mode=fast)


def test_batched_tangents_are_checked_through_vmap() -> None:
    x, w = leaf(0.3, -1.2, 2.0), leaf(0.5, 1.5, -0.7)
    assert gradcheck(
        lambda x, w: (torch.tanh(w * x), x.sum()), (x, w),
        check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True,
    )  # fmt: skip


class Peeks(Function):
    """2 x, with a backward that looks at a number: it cannot run on a batch."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2 if g.sum().item() < 1e9 else g


def test_a_rule_that_cannot_be_batched_is_reported() -> None:
    x = leaf(1.0, 2.0)
    assert gradcheck(Peeks.apply, x)
    with pytest.raises(GradcheckError, match="check_batched_grad=False"):
        gradcheck(Peeks.apply, x, check_batched_grad=True)


# --- as PyTorch -----------------------------------------------------------------------------------
STORED = stored("autograd/gradcheck")


def test_every_case_is_stored() -> None:
    assert STORED.keys() == cases.keys()


@pytest.mark.parametrize("group", sorted({name.split(" ")[0] for name in cases}))
def test_as_pytorch(group: str) -> None:
    wrong = cases.only(n for n in cases if n.split(" ")[0] == group).differing(torch, STORED)
    assert not wrong, "\n".join(wrong[:5])


if LIVE:

    def test_stored_is_what_pytorch_does() -> None:
        wrong = cases.only(list(cases)[::7]).differing(pytorch(), STORED)
        assert not wrong, "\n".join(wrong[:5])
