"""Control flow written as functions, and checks that raise: what compilers want said so. Here they
run as Python runs them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from rushlight.core.graph import TensorBase
from rushlight.ops.registry import describe, function, functions, variant


@function(method=False, returns="Any")
def cond(pred: Any, true_fn: Any, false_fn: Any, operands: Any = ()) -> Any:
    """`true_fn(*operands)` if `pred` is true, else `false_fn(*operands)`.

    Args:
        pred: a bool, or a tensor of one element.
        true_fn: what to call if it is true.
        false_fn: what to call if it is not.
        operands: what to call it with.

    >>> torch.cond(torch.tensor(True), torch.sin, torch.cos, (torch.zeros(1),))
    tensor([0.])
    """
    if isinstance(pred, TensorBase):
        if pred._array.size != 1:
            raise RuntimeError(
                f"Expected pred to be bool or single-element tensor, but got {pred}."
            )
        pred = bool(pred)
    elif not isinstance(pred, (bool, int, float)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    for fn in (true_fn, false_fn):
        if not callable(fn):
            raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError(
            "Expect operands to be a tuple of possibly nested dict/list/tuple that only consists "
            f"of tensor leaves, but got {operands}."
        )
    return (true_fn if pred else false_fn)(*operands)


@function(method=False, returns="Any")
def while_loop(cond_fn: Any, body_fn: Any, carried_inputs: Any) -> Any:
    """Call `body_fn` on what it gave before, as long as `cond_fn` of that is true.

    Args:
        cond_fn: gives a bool, or a tensor of one element.
        body_fn: gives as many tensors as it takes.
        carried_inputs: what to begin with.

    >>> torch.while_loop(lambda x: x < 3, lambda x: (x + 1,), (torch.zeros(()),))
    (tensor(3.),)
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(f"carried_inputs must be a tuple or list, got {type(carried_inputs)}")
    given: Any = carried_inputs
    while True:
        operands = given if isinstance(given, (tuple, list)) else (given,)
        if not bool(cond_fn(*operands)):
            return given
        given = body_fn(*operands)


# --- checks ---------------------------------------------------------------------------------------
_WORDS = (
    "Expected cond to be True, but got False. (Could this error message be improved? If so, please "
    "report an enhancement request to PyTorch.)"
)


def _raise(error: type[Exception], message: Any) -> None:
    raise error(_WORDS if message is None else str(message() if callable(message) else message))


def _checking(error: type[Exception]) -> Callable[..., None]:
    def check(cond: Any, message: Any = None) -> Any:
        if isinstance(cond, TensorBase):
            raise TypeError(
                "cond must be a bool, but got a Tensor. For tensor conditions, use "
                "torch._check_tensor_all() to assert that all elements are true."
            )
        if not isinstance(cond, bool):
            raise TypeError(f"cond must be a bool, but got {type(cond)}")
        if not cond:
            _raise(error, message)

    return check


def _export_checks() -> None:
    for name, error in (
        ("_check", RuntimeError), ("_check_index", IndexError), ("_check_value", ValueError),
        ("_check_type", TypeError), ("_check_not_implemented", NotImplementedError),
    ):  # fmt: skip
        text = describe(f"Raise {error.__name__} unless `cond` is true.", f"torch.{name}(True)", "")
        function(method=False, returns="None")(
            variant(_checking(error), name, text.rstrip() + "\n")
        )


_export_checks()


@function(method=False, returns="None")
def _check_with(error_type: Any, cond: Any, message: Any) -> Any:
    """Raise `error_type` unless `cond` is true.

    >>> torch._check_with(ValueError, True, "no")
    """
    _checking(error_type)(cond, message)


@function(method=False, returns="None")
def _check_tensor_all(cond: Any, message: Any = None) -> Any:
    """Raise RuntimeError unless all elements of a tensor are true.

    >>> torch._check_tensor_all(torch.tensor([True]))
    """
    if not isinstance(cond, TensorBase):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    given: Any = cond
    if not bool(given.all()):
        _raise(RuntimeError, message)


@function(method=False, returns="None")
def _check_is_size(i: Any, message: Any = None, *, max: Any = None) -> Any:
    """Raise RuntimeError unless `i` is a size: at least 0. Deprecated."""
    warnings.warn(
        "_check_is_size will be removed in a future PyTorch release along with "
        "guard_size_oblivious.     Use _check(i >= 0) instead.",
        FutureWarning,
        stacklevel=2,
    )
    if not (i >= 0 and (max is None or i <= max)):
        _raise(RuntimeError, message)


@function(method=False, returns="None")
def _assert(condition: Any, message: Any) -> Any:
    """`assert condition, message`, as a function.

    >>> torch._assert(True, "no")
    """
    if not condition:
        raise AssertionError(message)


@function(method=False, returns="None")
def _assert_async(input: Any, assert_msg: str = "") -> Any:
    """Raise RuntimeError unless the one element of a tensor is not zero.

    >>> torch._assert_async(torch.tensor(1))
    """
    if input._array.size != 1:
        words = "no values" if input._array.size == 0 else "more than one value"
        raise RuntimeError(f"Boolean value of Tensor with {words} is ambiguous")
    if not bool(input):
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")


@function(method=False)
def _is_all_true(input: Any) -> Any:
    """Whether all elements of a tensor of bools are true.

    >>> torch._is_all_true(torch.tensor([True, False]))
    tensor(False)
    """
    return functions["all"](input)


@function(method=False)
def _is_any_true(input: Any) -> Any:
    """Whether any element of a tensor of bools is true.

    >>> torch._is_any_true(torch.tensor([True, False]))
    tensor(True)
    """
    return functions["any"](input)
