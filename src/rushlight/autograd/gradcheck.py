"""`gradcheck` and `gradgradcheck`: are the gradients right? The work is in `differences`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]
__dir__ = __all__.copy


class GradcheckError(RuntimeError):
    """What `gradcheck` and `gradgradcheck` raise when derivatives do not agree."""


def gradcheck(
    func: Callable[..., Any], inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5,
    rtol: float = 1e-3, raise_exception: bool = True, nondet_tol: float = 0.0,
    check_undefined_grad: bool = True, check_grad_dtypes: bool = False,
    check_batched_grad: bool = False, check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False, check_backward_ad: bool = True, fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:  # fmt: skip
    """Whether the gradients of `func` agree with finite differences; raises where they do not.

    Checked are the inputs that ask for gradients; give them as float64 or complex128.

    >>> x = torch.tensor([0.5, 2.], dtype=torch.float64, requires_grad=True)
    >>> torch.autograd.gradcheck(torch.sin, x)
    True
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError(
            "Expected at least one of check_forward_ad or check_backward_ad to be True"
        )
    if check_batched_grad and not check_backward_ad:
        raise AssertionError(
            "Setting check_batched_grad=True requires check_backward_ad to be True"
        )
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError(
            "Setting check_batched_forward_grad=True requires check_forward_ad to be True"
        )
    from rushlight.autograd.differences import Check, check_all, sequence_as_tuple

    xs = sequence_as_tuple(inputs)
    check = Check(func, xs, eps, atol, rtol, nondet_tol, check_grad_dtypes, fast_mode)
    try:
        check_all(
            check, check_undefined_grad, check_batched_grad, check_forward_ad, check_backward_ad,
            bool(masked), check_batched_forward_grad,
        )  # fmt: skip
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, *, eps: float = 1e-6,
    atol: float = 1e-5, rtol: float = 1e-3, gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True, nondet_tol: float = 0.0, check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False, check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False, check_rev_over_rev: bool = True, fast_mode: bool = False,
    masked: bool = False,
) -> bool:  # fmt: skip
    """`gradcheck` of the gradients of `func`, as functions of its inputs and of `grad_outputs`.

    >>> x = torch.tensor([0.5, 2.], dtype=torch.float64, requires_grad=True)
    >>> torch.autograd.gradgradcheck(torch.sin, x)
    True
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError(
            "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True"
        )
    for argument, wanted in (
        ("check_undefined_grad", check_undefined_grad), ("check_batched_grad", check_batched_grad)
    ):  # fmt: skip
        if wanted and not check_rev_over_rev:
            raise AssertionError(f"Setting {argument}=True requires check_rev_over_rev to be True")
    from rushlight.autograd.differences import gradients_of

    gradients, args = gradients_of(func, inputs, grad_outputs, gen_non_contig_grad_outputs)
    return gradcheck(
        gradients, args, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
        nondet_tol=nondet_tol, check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes, check_batched_grad=check_batched_grad,
        fast_mode=fast_mode, check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev, masked=masked,
    )  # fmt: skip
