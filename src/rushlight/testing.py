"""`torch.testing`: comparing tensors and making them, for test suites.

Messages and default tolerances are PyTorch's.
"""

from __future__ import annotations

import cmath
import math
import typing as _typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn

from rushlight import dtypes
from rushlight.arrays import making
from rushlight.arrays.device import CPU
from rushlight.arrays.host import is_array, is_scalar, make_array, move, to_host
from rushlight.arrays.vocabulary import cast
from rushlight.core.graph import wrap
from rushlight.missing import face as _face
from rushlight.ops.creation.tensor import make_tensor as _from_array
from rushlight.ops.creation.tensor import place_of, shape_of
from rushlight.ops.described import describe_all as _describe_all
from rushlight.ops.random.sampling import randint
from rushlight.ops.registry import functions
from rushlight.ops.warned import warn_caller
from rushlight.tensor import Tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

_TOLERANCES: Final[dict[dtypes.dtype, tuple[float, float]]] = {
    dtypes.float16: (1e-3, 1e-5), dtypes.bfloat16: (1.6e-2, 1e-5), dtypes.float32: (1.3e-6, 1e-5),
    dtypes.float64: (1e-7, 1e-7), dtypes.complex32: (1e-3, 1e-5), dtypes.complex64: (1.3e-6, 1e-5),
    dtypes.complex128: (1e-7, 1e-7),
}  # fmt: skip

Message = str | Callable[[str], str] | None


def default_tolerances(*kinds: dtypes.dtype) -> tuple[float, float]:
    """The loosest (rtol, atol) that any of the dtypes needs."""
    found = [_TOLERANCES.get(kind, (0.0, 0.0)) for kind in kinds]
    return max(r for r, _ in found), max(a for _, a in found)


class _Comparison:
    """The settings of one `assert_close`, and where in nested containers it is."""

    def __init__(
        self, rtol: float | None, atol: float | None, equal_nan: bool, check_device: bool,
        check_dtype: bool, check_stride: bool, allow_subclasses: bool, msg: Message,
    ) -> None:  # fmt: skip
        self.rtol = rtol
        self.atol = atol
        self.equal_nan = equal_nan
        self.check_device = check_device
        self.check_dtype = check_dtype
        self.check_stride = check_stride
        self.allow_subclasses = allow_subclasses
        self.msg = msg

    def fail(self, text: str, path: tuple[Any, ...]) -> NoReturn:
        if path:
            where = "".join(f"[{item!r}]" for item in path)
            text = f"{text}\n\nThe failure occurred for item {where}"
        if callable(self.msg):
            text = self.msg(text)
        elif self.msg is not None:
            text = self.msg
        raise AssertionError(text)

    # --- what is compared -------------------------------------------------------------------------
    def compare(self, actual: Any, expected: Any, path: tuple[Any, ...]) -> None:
        if _is_sequence(actual) and _is_sequence(expected):
            self._sequences(actual, expected, path)
        elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
            self._mappings(actual, expected, path)
        else:
            self._single(actual, expected, path)

    def _sequences(self, actual: Any, expected: Any, path: tuple[Any, ...]) -> None:
        if len(actual) != len(expected):
            self.fail(
                f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", path
            )
        for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
            self.compare(a, e, (*path, i))

    def _mappings(self, actual: Any, expected: Any, path: tuple[Any, ...]) -> None:
        if set(actual) != set(expected):
            missing = set(expected) - set(actual)
            extra = set(actual) - set(expected)
            self.fail(
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: {sorted(missing)}\n"
                f"Additional keys in the actual mapping: {sorted(extra)}",
                path,
            )
        for key in sorted(actual):
            self.compare(actual[key], expected[key], (*path, key))

    def _single(self, actual: Any, expected: Any, path: tuple[Any, ...]) -> None:
        if actual is None or expected is None:
            if actual is not expected:
                self.fail(f"None mismatch: {actual} is not {expected}", path)
            return
        if isinstance(actual, bool | int | float | complex) and isinstance(
            expected, bool | int | float | complex
        ):
            self._numbers(actual, expected, path)
            return
        if not self.allow_subclasses and type(actual) is not type(expected):
            self._mismatched(actual, expected)
        related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
        a, e = _as_tensor(actual), _as_tensor(expected)
        if a is None or e is None or not related:
            self._mismatched(actual, expected)
        self._tensors(a, e, path)

    def _mismatched(self, actual: Any, expected: Any) -> NoReturn:
        raise TypeError(
            "No comparison pair was able to handle inputs of type "
            f"{type(actual)} and {type(expected)}."
        )

    # --- numbers ----------------------------------------------------------------------------------
    def _numbers(self, actual: Any, expected: Any, path: tuple[Any, ...]) -> None:
        if self.check_dtype and type(actual) is not type(expected):
            self.fail(f"The (d)types do not match: {type(actual)} != {type(expected)}.", path)
        if isinstance(actual, bool) or isinstance(expected, bool):
            if bool(actual) is not bool(expected):
                self.fail(f"Booleans mismatch: {actual} is not {expected}", path)
            return
        names = {int: dtypes.int64, float: dtypes.float64, complex: dtypes.complex128}
        base = default_tolerances(names[type(actual)], names[type(expected)])
        rtol = base[0] if self.rtol is None else self.rtol
        atol = base[1] if self.atol is None else self.atol
        if self.equal_nan and cmath.isnan(actual) and cmath.isnan(expected):
            return
        if actual == expected:
            return
        difference = abs(actual - expected)
        allowed = atol + rtol * abs(expected)
        if cmath.isfinite(difference) and difference <= allowed:
            return
        exact = rtol == 0 and atol == 0
        lines = [f"Scalars are not {'equal' if exact else 'close'}!", ""]
        lines.append(f"Expected {expected} but got {actual}.")
        relative = difference / abs(expected) if expected else math.inf
        more = "" if exact else f" (up to {atol} allowed)"
        lines.append(f"Absolute difference: {difference}{more}")
        more = "" if exact else f" (up to {rtol} allowed)"
        lines.append(f"Relative difference: {relative}{more}")
        self.fail("\n".join(lines), path)

    # --- tensors ----------------------------------------------------------------------------------
    def _tensors(self, actual: Any, expected: Any, path: tuple[Any, ...]) -> None:
        a, e = to_host(actual.to_dense()._array), to_host(expected.to_dense()._array)
        if a.shape != e.shape:
            self.fail(
                f"The values for attribute 'shape' do not match: {actual.shape} != "
                f"{expected.shape}.",
                path,
            )
        if self.check_device and actual.device != expected.device:
            self.fail(
                f"The values for attribute 'device' do not match: {actual.device} != "
                f"{expected.device}.",
                path,
            )
        if self.check_dtype and actual.dtype is not expected.dtype:
            self.fail(
                f"The values for attribute 'dtype' do not match: {actual.dtype} != "
                f"{expected.dtype}.",
                path,
            )
        if self.check_stride and actual.stride() != expected.stride():
            self.fail(
                f"The values for attribute 'stride()' do not match: {actual.stride()} != "
                f"{expected.stride()}.",
                path,
            )
        base = default_tolerances(actual.dtype, expected.dtype)
        rtol = base[0] if self.rtol is None else self.rtol
        atol = base[1] if self.atol is None else self.atol
        found = making.compare(a, e, rtol, atol, self.equal_nan)
        if found is not None:
            self.fail(_report(found, rtol, atol), path)


def _is_sequence(x: Any) -> bool:
    return isinstance(x, Sequence) and not isinstance(x, str)


def _as_tensor(x: Any) -> Any:
    if isinstance(x, Tensor):
        return x
    if is_array(x):
        return wrap(making.check_ndarray(x))
    if is_scalar(x) or isinstance(x, bool | int | float | complex):
        return wrap(making.from_data(x, None, lambda _: None))
    return None


def _report(found: making.Mismatch, rtol: float, atol: float) -> str:
    """PyTorch's account of how two tensors differ."""
    exact = rtol == 0 and atol == 0
    kind = "Scalars" if not found.shape else "Tensor-likes"
    lines = [f"{kind} are not {'equal' if exact else 'close'}!", ""]
    if not found.shape:
        lines.append(f"Expected {found.expected} but got {found.actual}.")
    else:
        share = found.wrong / max(found.total, 1)
        lines.append(f"Mismatched elements: {found.wrong} / {found.total} ({share:.1%})")
    title = "Absolute" if not found.shape else "Greatest absolute"
    for name, value, index, allowed in (
        (title, found.absolute, found.absolute_at, atol),
        (title.replace("Absolute", "Relative").replace("absolute", "relative"),
         found.relative, found.relative_at, rtol),
    ):  # fmt: skip
        where = "" if not found.shape else f" at index {index}"
        more = "" if exact else f" (up to {allowed} allowed)"
        lines.append(f"{name} difference: {value}{where}{more}")
    return "\n".join(lines)


def assert_close(
    actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None,
    atol: float | None = None, equal_nan: bool = False, check_device: bool = True,
    check_dtype: bool = True, check_layout: bool = True, check_stride: bool = False,
    msg: Message = None,
) -> None:  # fmt: skip
    """assert_close(actual, expected, *, rtol=None, atol=None, equal_nan=False, ...)

    Raise unless |actual - expected| <= atol + rtol * |expected| for every element. Tensors, numbers
    and nested sequences and mappings of them; tolerances by dtype unless both are given.

    >>> torch.testing.assert_close(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0000001]))
    >>> torch.testing.assert_close(torch.tensor([1, 2]), torch.tensor([1, 3]))
    Traceback (most recent call last):
    ...
    AssertionError: Tensor-likes are not equal!
    <BLANKLINE>
    Mismatched elements: 1 / 2 (50.0%)
    Greatest absolute difference: 1 at index (1,)
    Greatest relative difference: 0.3333333432674408 at index (1,)
    """
    if (rtol is None) != (atol is None):
        missing = "atol" if atol is None else "rtol"
        raise ValueError(
            f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}."
        )
    comparison = _Comparison(
        rtol, atol, equal_nan, check_device, check_dtype, check_stride, allow_subclasses, msg
    )
    comparison.compare(actual, expected, ())


_FLOAT_RANGE: Final = (-9.0, 9.0)


def make_tensor(
    *shape: Any, dtype: dtypes.dtype, device: Any = None, low: float | None = None,
    high: float | None = None, requires_grad: bool = False, noncontiguous: bool = False,
    exclude_zero: bool = False, memory_format: Any = None,
) -> Any:  # fmt: skip
    """make_tensor(*shape, dtype, device, low=None, high=None, requires_grad=False, ...) -> Tensor

    A tensor of numbers drawn evenly from [low, high): by default [-9, 9), [0, 10) for uint8, and
    both bools.

    >>> torch.testing.make_tensor(2, 3, dtype=torch.int64, low=0, high=5).shape
    torch.Size([2, 3])
    """
    one = len(shape) == 1 and isinstance(shape[0], Sequence)
    sizes = shape_of("make_tensor", shape[0] if one else shape)
    if requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(
            "`requires_grad=True` is not supported for boolean and integral dtypes, but got "
            f"dtype={dtype}"
        )
    if noncontiguous and memory_format is not None:
        raise ValueError(
            f"The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"noncontiguous={noncontiguous} and memory_format={memory_format}"
        )
    wide = (*sizes[:-1], 2 * sizes[-1]) if noncontiguous and _count(sizes) > 1 else sizes
    raw = _draw(wide, dtype, low, high)
    if wide != sizes:
        raw = raw[..., ::2]
    if exclude_zero:
        raw[raw == 0] = dtypes.finfo(dtype.to_real()).tiny if dtype.is_floating_point else 1
    t = _from_array(move(raw, place_of(device, "make_tensor")), requires_grad)
    if memory_format is not None:
        t = t.detach().contiguous(memory_format=memory_format).requires_grad_(requires_grad)
    return t


def _count(sizes: tuple[int, ...]) -> int:
    return math.prod(sizes)


def _draw(sizes: tuple[int, ...], dtype: dtypes.dtype, low: Any, high: Any) -> Any:
    if dtype is dtypes.bool_:
        first, last = _range(dtype, low, high, 0, 2)
        return randint(first, last, sizes)._array.astype(dtype.numpy)
    if not (dtype.is_floating_point or dtype.is_complex):
        lowest = 0 if dtype is dtypes.uint8 else -9
        first, last = _range(dtype, low, high, lowest, 10)
        return randint(math.floor(first), math.ceil(last), sizes)._array.astype(dtype.numpy)
    first, last = _range(dtype, low, high, *_FLOAT_RANGE)
    inside = dtypes.float64 if dtype.to_real() is dtypes.float64 else dtypes.float32
    if dtype.is_complex:
        parts = functions["rand"](*sizes, 2, dtype=inside)._array * (last - first) + first
        wide = dtypes.complex128 if inside is dtypes.float64 else dtypes.complex64
        out = make_array(sizes, wide.numpy, CPU)
        out.real, out.imag = parts[..., 0], parts[..., 1]
        return cast(out, dtype.numpy)  # NumPy knows no parts of the narrowest
    drawn = functions["rand"](sizes, dtype=inside)  # an array, even of one number
    drawn.mul_(last - first).add_(first)
    return drawn._array.astype(dtype.numpy)


def _range(dtype: dtypes.dtype, low: Any, high: Any, lowest: Any, highest: Any) -> tuple[Any, Any]:
    first = lowest if low is None else low
    last = highest if high is None else high
    if any(isinstance(x, float) and math.isnan(x) for x in (first, last)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if first > last:
        raise ValueError(f"`low` must be less than `high`, but got {first} >= {last}")
    return first, last


def assert_allclose(
    actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None,
    equal_nan: bool = True, msg: str = "",
) -> None:  # fmt: skip
    """The older form of `assert_close`, which takes numbers and lists too, and does not compare
    dtypes, devices or strides.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", FutureWarning)
    ...     torch.testing.assert_allclose(torch.ones(2), [1, 1])
    """
    warn_caller(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a "
        "future release. Please use `torch.testing.assert_close()` instead. You can find detailed "
        "upgrade instructions in https://github.com/pytorch/pytorch/issues/61844.",
        FutureWarning,
    )
    if not isinstance(actual, Tensor):
        actual = functions["tensor"](actual)
    if not isinstance(expected, Tensor):
        expected = functions["tensor"](expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        pairs = {
            dtypes.float16: (1e-3, 1e-3),
            dtypes.float32: (1e-4, 1e-5),
            dtypes.float64: (1e-5, 1e-8),
        }
        both = [pairs.get(x.dtype, (0.0, 0.0)) for x in (actual, expected)]
        rtol, atol = max(r for r, _ in both), max(a for _, a in both)
    assert_close(
        actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=True,
        check_dtype=False, check_stride=False, msg=msg or None,
    )  # fmt: skip


_describe_all(globals(), __all__)

if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.testing", globals())
