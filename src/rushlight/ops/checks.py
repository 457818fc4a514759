"""What users wrote, as ops want it, and what public functions refuse, in PyTorch's words.

Each check and each text is here once; dimensions become negative ints.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from rushlight import dtypes
from rushlight.arrays.batched import Batched, outer
from rushlight.arrays.batched import from_end as from_end
from rushlight.arrays.host import is_scalar
from rushlight.core.graph import TensorBase
from rushlight.core.observer import observer
from rushlight.core.record import recording
from rushlight.dtypes import type_name
from rushlight.errors import dim_out_of_range

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


def tensor_type(x: TensorBase) -> str:
    """The type of a tensor as PyTorch's older errors name it: `torch.FloatTensor`."""
    return f"torch.{dtypes.of(x._array.dtype).scalar_type}Tensor"


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


def unmatched(function: str, forms: str, args: tuple[Any, ...], named: dict[str, Any]) -> TypeError:
    """The same error for a call with keywords; `forms` is the list as PyTorch writes it."""
    error = mismatch(function, *args, **named)
    return TypeError(f"{error}, but expected one of:{forms}")


def mismatch(function: str, *given: Any, **named: Any) -> TypeError:
    """The same error where the forms are not listed."""
    got = [type_name(x) for x in given] + [f"{name}={type_name(x)}" for name, x in named.items()]
    return TypeError(
        f"{function}() received an invalid combination of arguments - got ({', '.join(got)})"
    )


def refuse_grad(function: str, **tensors: Any) -> None:
    """PyTorch's error for an input that requires a gradient and would get none."""
    for name, t in tensors.items():
        if t is None or (not t._requires_grad and t._node is None):
            continue
        observer.keep_nothing()  # another time gradients may be recorded, or not
        if recording():
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


def refuse_complex(kernel: str, array: Any) -> None:
    """Refuse complex numbers where an op needs an order, which they have not."""
    if array.dtype.kind == "c":
        raise not_implemented(kernel, array.dtype)


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


# --- dimensions and sizes -------------------------------------------------------------------------
def one_dim(dim: Any, rank: int) -> int:
    """A dimension as a negative int (-1 for a 0-d tensor), checked.

    >>> one_dim(0, 3), one_dim(-1, 3)
    (-3, -1)
    """
    if isinstance(dim, bool) or not hasattr(dim, "__index__"):
        raise TypeError(f"argument 'dim' must be int, not {type(dim).__name__}")
    d = int(dim.__index__())
    top = max(rank, 1)
    if not -top <= d < top:
        raise IndexError(dim_out_of_range(d, rank))
    return d - top if d >= 0 else d


def some_dims(dim: int | Sequence[int] | None, rank: int) -> tuple[int, ...] | None:
    """Dimensions as negative ints, in order; None (or none given, or a 0-d tensor): all.

    >>> some_dims((0, 2), 3), some_dims(None, 3), some_dims([], 2)
    ((-3, -1), None, None)
    """
    if dim is None:
        return None
    if isinstance(dim, (tuple, list)):
        found = tuple(one_dim(d, rank) for d in dim)
        for d in found:
            if found.count(d) > 1:
                raise RuntimeError(
                    f"dim {d % max(rank, 1)} appears multiple times in the list of dims"
                )
    else:
        found = (one_dim(dim, rank),)
    return found if found and rank else None


def axes_of(dims: tuple[int, ...] | None, rank: int) -> tuple[int, ...]:
    """All the axes that `dims` means for an array of `rank` dimensions, as negative ints."""
    return tuple(range(-rank, 0)) if dims is None else dims


def ints(function_name: str, name: str, given: Any) -> tuple[int, ...]:
    """What the user wrote as sizes or dims, `f(2, 3)` or `f((2, 3))`, as a tuple of ints."""
    if len(given) == 1 and isinstance(given[0], (tuple, list)):
        given = given[0]
    elif not given:
        raise TypeError(f'{function_name}() missing 1 required positional arguments: "{name}"')
    found = []
    for position, item in enumerate(given):
        if not hasattr(item, "__index__"):
            raise TypeError(
                f"{function_name}(): argument '{name}' failed to unpack the object at pos "
                f'{position + 1} with error "type must be tuple of ints,but got '
                f'{type(item).__name__}"'
            )
        found.append(int(item.__index__()))
    return tuple(found)


def tuple_of_ints(function_name: str, name: str, given: Any, position: int) -> tuple[int, ...]:
    if not isinstance(given, (tuple, list)):
        raise TypeError(
            f"{function_name}(): argument '{name}' (position {position}) must be tuple of ints, "
            f"not {type(given).__name__}"
        )
    return ints(function_name, name, (given,))


def one_int(function_name: str, name: str, given: Any, position: int) -> int:
    """An int argument, or PyTorch's TypeError."""
    tensor = isinstance(given, TensorBase)
    fine = given._array.ndim == 0 and given._array.dtype.kind in "iu" if tensor else True
    if isinstance(given, bool) or not fine or not hasattr(given, "__index__"):
        raise TypeError(
            f"{function_name}(): argument '{name}' (position {position}) must be int, "
            f"not {'Tensor' if tensor else type(given).__name__}"
        )
    return int(given.__index__())


# --- what functions ask of their arguments --------------------------------------------------------
def raw_dtype(x: Any) -> Any:
    """The raw dtype of an array or a tensor."""
    return x._array.dtype if isinstance(x, TensorBase) else x.dtype


def vmap_levels_of(array: Any) -> set[Any]:
    """The levels of `vmap` from member to member of whose batch an array differs."""
    found: set[Any] = set()
    while type(array) is Batched:
        if array.has_batch_dim:
            found.add(array.level)
        array = outer(array.value)
    return found


def varies(array: Any) -> bool:
    """Whether an array differs from member to member of a batch: it cannot be read as one value."""
    return type(array) is Batched and bool(vmap_levels_of(array))


def is_batched(x: Any) -> bool:
    """Whether an argument is a tensor whose values differ from member to member of a batch."""
    return isinstance(x, TensorBase) and varies(x._array)
