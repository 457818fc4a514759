"""What public functions refuse, in PyTorch's words: each check and each text stands here once."""

from __future__ import annotations

from typing import Any, Final

from rushlight import dtypes
from rushlight.arrays.host import is_scalar
from rushlight.core.graph import TensorBase
from rushlight.core.record import recording
from rushlight.dtypes import type_name

_NUMBERS: Final = (TensorBase, int, float, complex)


# --- tensors --------------------------------------------------------------------------------------
def check_tensor(x: Any, function: str, name: str = "input", position: int = 1) -> Any:
    """The raw array of a tensor, or PyTorch's TypeError."""
    if not isinstance(x, TensorBase):
        raise TypeError(
            f"{function}(): argument '{name}' (position {position}) must be Tensor, "
            f"not {type_name(x)}"
        )
    return x._array


def check_tensors(function: str, **named: Any) -> None:
    """Raise PyTorch's TypeError unless all the arguments are tensors."""
    for position, (name, x) in enumerate(named.items(), 1):
        check_tensor(x, function, name, position)


def check_operands(function: str, input: Any, other: Any, second: str = "other") -> None:
    """Raise PyTorch's TypeError unless both operands are tensors or numbers."""
    if isinstance(input, _NUMBERS) and isinstance(other, _NUMBERS):
        return
    for position, name, x in ((1, "input", input), (2, second, other)):
        if not is_number(x):
            check_tensor(x, function, name, position)


def check_second(function: str, input: Any, other: Any) -> None:
    """Raise PyTorch's TypeError unless `input` is a tensor, and `other` one or a number."""
    if not isinstance(input, TensorBase) or not (isinstance(other, TensorBase) or is_number(other)):
        raise invalid(
            function, (input, other), "(Tensor input, Tensor other, *, Tensor out = None)",
            "(Tensor input, Number other, *, Tensor out = None)",
        )  # fmt: skip


def is_number(x: Any) -> bool:
    """Whether `x` counts as a Python number: NumPy's scalars do."""
    return isinstance(x, (int, float, complex)) or is_scalar(x)


def scalar_name(x: Any) -> str:
    """A value's type in the words of PyTorch's list of arguments."""
    return "Tensor" if isinstance(x, TensorBase) else type_name(x)


def invalid(function: str, args: tuple[Any, ...], *forms: str) -> TypeError:
    """PyTorch's error for arguments that fit none of a function's forms."""
    got = ", ".join(scalar_name(x) for x in args)
    lines = "".join(f"\n * {form}" for form in forms)
    return TypeError(
        f"{function}() received an invalid combination of arguments - got ({got}), "
        f"but expected one of:{lines}\n"
    )


def mismatch(function: str, *given: Any, **named: Any) -> TypeError:
    """The same error where the forms are not listed."""
    got = [type_name(x) for x in given] + [f"{name}={type_name(x)}" for name, x in named.items()]
    return TypeError(
        f"{function}() received an invalid combination of arguments - got ({', '.join(got)})"
    )


def refuse_grad(function: str, **tensors: Any) -> None:
    """PyTorch's error for an input that requires a gradient and would get none."""
    for name, t in tensors.items():
        if t is not None and (t._requires_grad or t._node is not None) and recording():
            raise RuntimeError(
                f"The function '{function}' is not differentiable with respect to argument "
                f"'{name}'. This input cannot have requires_grad True."
            )


# --- dtypes ---------------------------------------------------------------------------------------
def check_dtype(dtype: Any, function: str) -> None:
    """Refuse a dtype that is none, with PyTorch's TypeError."""
    if dtype is not None and not isinstance(dtype, dtypes.dtype):
        raise TypeError(
            f"{function}(): argument 'dtype' must be torch.dtype, not {type_name(dtype)}"
        )


def not_implemented(kernel: str, dtype: Any) -> NotImplementedError:
    """PyTorch's error for a dtype (the user's or a raw one) that an op does not take."""
    known = dtype if isinstance(dtype, dtypes.dtype) else dtypes.of(dtype)
    return NotImplementedError(f"\"{kernel}\" not implemented for '{known.scalar_type}'")


def c_name(raw: Any) -> str:
    """A raw dtype as some of PyTorch's errors spell it: the C++ type."""
    return dtypes.c_name(dtypes.of(raw))


def check_same_dtype(xs: dict[str, Any]) -> None:
    """Raise PyTorch's error unless all tensors have the dtype of the first."""
    want, *others = ((name, c_name(x._array.dtype)) for name, x in xs.items())
    for name, have in others:
        if have != want[1]:
            raise RuntimeError(f"expected dtype {want[1]} for `{name}` but got dtype {have}")


# --- shapes ---------------------------------------------------------------------------------------
def check_nonempty(function: str, shape: tuple[int, ...], dim: int) -> None:
    """Refuse to choose an element from an axis that has none."""
    if shape and shape[dim] == 0:
        raise IndexError(
            f"{function}(): Expected reduction dim {dim + len(shape)} to have non-zero size."
        )
