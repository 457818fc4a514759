"""Forward mode: derivatives that travel with the values, one direction at a time.

Inside a level, `make_dual(x, t)` is `x` with a tangent; whatever is computed from it has a tangent
too, the derivative along `t`, which `unpack_dual` reads. How tangents travel stands in
`core.tangents`.

>>> import rushlight as torch
>>> import rushlight.autograd.forward_ad as fwAD
>>> with fwAD.dual_level():
...     x = fwAD.make_dual(torch.tensor([1., 2.]), torch.tensor([1., 0.]))
...     y = x ** 3
...     fwAD.unpack_dual(y).tangent
tensor([3., 0.])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rushlight.arrays.host import ByteBounds
from rushlight.autograd.grad_mode import ModeContext
from rushlight.core.graph import TensorBase
from rushlight.core.modes import Mode, enter, grad_enabled, inference_enabled, leave
from rushlight.core.tangents import (
    Level,
    Pending,
    Tangent,
    fulfil,
    give,
    laid_like,
    live,
    mine,
    mute,
    muted,
    now,
    open_level,
    tangent_of,
)
from rushlight.core.views import look_at
from rushlight.dtypes import type_name
from rushlight.ops.view import Alias
from rushlight.tensor import Tensor

__all__ = [
    "UnpackedDualTensor", "derivative_along", "dual_level", "enter_dual_level", "exit_dual_level",
    "make_dual", "unpack_dual",
]  # fmt: skip


class UnpackedDualTensor(NamedTuple):
    """What `unpack_dual` returns."""

    primal: Tensor
    tangent: Tensor | None


class MakeDual(Alias):
    """From a tensor to its dual."""

    name, node = "_make_dual", "ViewBackward0"


class Primal(Alias):
    """From a dual back to its value."""

    name, node = "_fw_primal", "Identity"


MAKE_DUAL, PRIMAL = MakeDual(), Primal()


# --- levels ---------------------------------------------------------------------------------------
def enter_dual_level() -> int:
    """Begin a level: until `exit_dual_level`, tensors may have tangents. Better use `dual_level`.

    >>> import rushlight.autograd.forward_ad as fwAD
    >>> fwAD.enter_dual_level()
    0
    >>> fwAD.exit_dual_level()
    """
    if mine() is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    open_level()
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """End the level: all tangents made in it are gone.

    >>> import rushlight.autograd.forward_ad as fwAD
    >>> fwAD.exit_dual_level()
    Traceback (most recent call last):
    RuntimeError: Dual level must be a positive number.
    """
    current = mine()
    if level is None:
        level = -1 if current is None else 0
    if level < 0:
        raise RuntimeError("Dual level must be a positive number.")
    if current is None or level != 0:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This "
            "is not supported."
        )
    current.close()


class dual_level(ModeContext):
    """A level for a block, or as a decorator for the calls of a function.

    >>> import rushlight as torch
    >>> import rushlight.autograd.forward_ad as fwAD
    >>> x = torch.tensor([1.])
    >>> with fwAD.dual_level():
    ...     y = fwAD.make_dual(x, torch.ones(1)) * 2
    ...     print(y)
    tensor([2.], tangent=tensor([2.]))
    >>> print(y)
    tensor([2.])
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        exit_dual_level()


# --- duals ----------------------------------------------------------------------------------------
def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """A view of `tensor` with the tangent `tangent`, which must have the same shape.

    The tangent is kept as it is where it lies in memory as the tensor does, and copied otherwise.

    >>> import rushlight as torch
    >>> import rushlight.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     fwAD.make_dual(torch.zeros(2), torch.ones(2)).cos()
    tensor([1., 1.], tangent=tensor([-0., -0.]))
    """
    current = now()
    if level is None:
        level = -1 if current is None else 0
    if level < 0:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first."
        )
    for what, t in (("primal", tensor), ("tangent", tangent)):
        if not (t.is_floating_point() or t.is_complex()):
            raise ValueError(f"Expected {what} to be floating point or complex, but got: {t.dtype}")
    if current is None or level != 0:
        raise RuntimeError("Invalid level given to _make_dual")
    if live(tensor) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the "
            "same level 0 is not supported."
        )
    if live(tangent) is not None:
        raise RuntimeError(
            "Setting a forward grad that itself has a forward gradient at the same level0 is not "
            "supported."
        )
    return with_tangent(tensor, tangent, current)


def with_tangent(tensor: Any, tangent: Any, level: Level) -> Any:
    """A view of `tensor` with a tangent in `level`."""
    check_size(tensor, tangent)
    mode = mute(grad_enabled())
    try:
        dual = look_at(MAKE_DUAL, tensor)
        if not lies_alike(tensor.array, tangent.array):
            tangent = tangent.clone()
        give(dual, level, laid_like(tangent, tensor.array))
    finally:
        leave(mode)
    return dual


def check_size(tensor: Any, tangent: Any) -> None:
    """Refuse a tangent of another shape."""
    have, want = tangent.array.shape, tensor.array.shape
    if have != want:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original "
            f"Tensor, this is not supported. Tensor is of size {list(want)} while the given "
            f"forward gradient is of size {list(have)}."
        )


def lies_alike(x: Any, t: Any) -> bool:
    """Whether `t` lies in memory that is as large, and begins at the same place in it."""
    a, b = ByteBounds(x), ByteBounds(t)
    m, n = x.dtype.itemsize, t.dtype.itemsize
    return bool(a.nbytes * n == b.nbytes * m and a.offset * n == b.offset * m)


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """The value and the tangent of a tensor; the tangent is None if it has none.

    >>> import rushlight as torch
    >>> import rushlight.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     primal, tangent = fwAD.unpack_dual(fwAD.make_dual(torch.zeros(1), torch.ones(1)))
    >>> primal, tangent
    (tensor([0.]), tensor([1.]))
    """
    current = now()
    if level is None:
        level = -1 if current is None else 0
    if level < 0:
        return UnpackedDualTensor(tensor, None)
    if not isinstance(tensor, TensorBase):
        raise TypeError(
            f"_unpack_dual(): argument 'dual' (position 1) must be Tensor, not {type_name(tensor)}"
        )
    if current is None or level != 0:
        raise RuntimeError("Invalid level given to _fw_primal")
    tangent = tangent_of(tensor)
    mode = mute(grad_enabled())
    try:
        primal = look_at(PRIMAL, tensor)
    finally:
        leave(mode)
    primal.tangent = Tangent(current, None, None, ())
    return UnpackedDualTensor(primal, tangent)


def derivative_along(
    fn: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Any, Any]:
    """`fn(*primals)` and its derivative along `tangents`, in a level of its own.

    Both come in the structure that `fn` returns, a tensor or a tuple of tensors; where a result
    does not depend on the primals, its derivative is zero.

    >>> import rushlight as torch
    >>> from rushlight.autograd.forward_ad import derivative_along
    >>> derivative_along(lambda a, b: a * b, torch.tensor([2., 3.]), torch.tensor([1., 0.]))
    (tensor(6.), tensor(3.))
    """
    with dual_level():
        duals = [make_dual(x, t) for x, t in zip(primals, tangents, strict=True)]
        results = fn(*duals)
        several = isinstance(results, (tuple, list))
        parts = [unpack_dual(y) for y in (results if several else (results,))]
    values = tuple([p.primal for p in parts])
    found = tuple([_zeros(p.primal) if p.tangent is None else p.tangent for p in parts])
    return (values, found) if several else (values[0], found[0])


def _zeros(t: Any) -> Any:
    return t.new_zeros(t.shape)


# --- custom functions -----------------------------------------------------------------------------
def push_custom(
    ctx: Any, cls: Any, args: tuple[Any, ...], outputs: tuple[Any, ...], made: list[Any],
    dirty: tuple[Any, ...], fixed: tuple[Any, ...],
) -> None:  # fmt: skip
    """Give the outputs of a custom function the tangents that its `jvp` says.

    `outputs` are what `forward` returned, `made` what the caller gets for them; `dirty` and `fixed`
    were marked as written in place and as not differentiable.
    """
    if muted():
        return
    ts = [live(x) if isinstance(x, TensorBase) else None for x in args]
    first = next((x for x, t in zip(args, ts, strict=True) if t is not None), None)
    if first is None:
        return
    level: Level = first.tangent.level
    versions = [None if t is None else t.memory.version for t in ts]
    given = list(ts)
    if ctx.materialize_grads:
        given = [
            x.new_zeros(x.shape) if t is None and isinstance(x, TensorBase) else t  # type: ignore[attr-defined]
            for x, t in zip(args, ts, strict=True)
        ]
    if ctx.saved_for_forward is not None:
        stand_in = {id(o): m for o, m in zip(outputs, made, strict=True)}
        ctx.saved_for_forward = [stand_in.get(id(t), t) for t in ctx.saved_for_forward]
    mode = mute(grad_enabled())
    try:
        found = checked_tangents(cls.jvp(ctx, *given), len(outputs))
        for i, (o, m, g) in enumerate(zip(outputs, made, found, strict=True)):
            if not isinstance(o, TensorBase):
                continue
            if o.array.dtype.kind not in "fcVW" or any(o is t for t in fixed):
                if g is not None:
                    raise RuntimeError(
                        f"Function's jvp returned a gradient at position {i}, but  the "
                        "corresponding forward output is not a differentiable Tensor.You should "
                        "return None at that position instead."
                    )
                continue
            if g is None:
                raise RuntimeError(
                    "Expected both tensor and its forward grad to be floating point or complex, "
                    f"but the jvp of {cls.__name__} returned None for output {i}. Return zeros "
                    "where an output does not depend on the inputs."
                )
            at = next((k for k, x in enumerate(args) if x is o), None)
            if any(o is t for t in dirty):
                settle_dirty(o, g, level, None if at is None else (ts[at], versions[at]))
                continue
            check_size(o, g)
            check_view(o, g, args, ts)
            give(m, level, laid_like(g, o.array))
    finally:
        leave(mode)


def checked_tangents(found: Any, count: int) -> tuple[Any, ...]:
    """What `jvp` returned, one for each output."""
    given: tuple[Any, ...] = found if isinstance(found, tuple) else (found,)
    for i, g in enumerate(given):
        if g is not None and not isinstance(g, TensorBase):
            raise RuntimeError(
                f"expected Variable or None (got {type_name(g)}) for grad output {i}."
            )
    if len(given) != count:
        raise RuntimeError(
            "Function's jvp returned an invalid number of forward gradients (expected "
            f"{count} but got {len(given)})"
        )
    return given


def settle_dirty(target: Any, g: Any, level: Level, had: Any) -> None:
    """The tangent of an input that `forward` wrote in place: `jvp` must have done likewise."""
    if had is not None and had[0] is not None:
        if g is not had[0] or g.memory.version == had[1]:
            raise RuntimeError(
                "An inplace custom Function is not modifying the forward mode gradients inplace. "
                "If the forward is modifying an input inplace, then the jvp function must modify "
                "the corresponding gradient inplace."
            )
        return
    check_size(target, g)
    fulfil(target, Pending(level, g, g.requires_grad))


def check_view(o: Any, g: Any, args: tuple[Any, ...], ts: list[Any]) -> None:
    """The tangent of a view of an input must be a view of that input's tangent."""
    for x, t in zip(args, ts, strict=True):
        if t is None or o.memory is not x.memory:
            continue
        if g.as_view is None:
            raise RuntimeError(
                "A custom Function's forward is returning a view (or an input as-is) but the jvp "
                "is not returning a view."
            )
        if g.memory is not t.memory:
            raise RuntimeError(
                "A custom Function is returning a view but the jvp is not returning a view of the "
                "given grad input."
            )


# --- on and off -----------------------------------------------------------------------------------
class _set_fwd_grad_enabled:
    """Switch tangents on or off for a block."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self._entered: list[Mode] = []

    def __enter__(self) -> None:
        mode = enter(grad_enabled(), inference_enabled())
        mode.dual = None if self.mode else False
        self._entered.append(mode)

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        leave(self._entered.pop())


def _is_fwd_grad_enabled() -> bool:
    return not muted()
