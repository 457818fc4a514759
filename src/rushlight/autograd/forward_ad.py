"""Forward mode: derivatives that travel with the values, one direction at a time.

Inside a level, `make_dual(x, t)` is `x` with a tangent; whatever is computed from it has a tangent
too, the derivative along `t`, which `unpack_dual` reads. How tangents travel is in
`core.transforms.forward_ad`.

>>> import rushlight.autograd.forward_ad as fwAD
>>> with fwAD.dual_level():
...     x = fwAD.make_dual(torch.tensor([1., 2.]), torch.tensor([1., 0.]))
...     y = x ** 3
...     fwAD.unpack_dual(y).tangent
tensor([3., 0.])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rushlight.arrays.host import ByteBounds, put_off
from rushlight.autograd.grad_mode import Decorator
from rushlight.core.grad_mode import Mode, current, grad_enabled, inference_enabled, leave, within
from rushlight.core.graph import DIFFERENTIABLE, TensorBase
from rushlight.core.transforms.forward_ad import (
    DualLevel,
    LevelBlock,
    disable_forward_ad,
    end_tangent,
    gather,
    give,
    laid_like,
    mine,
    now,
    open_level,
    seeing_beneath,
    seen_in,
    seen_levels,
    shares,
    tangent_in,
)
from rushlight.core.transforms.inplace_tangents import Pending, write_tangent
from rushlight.core.views.views import apply_view
from rushlight.dtypes import type_name
from rushlight.ops.view.select import Alias
from rushlight.tensor import Tensor

__all__ = [
    "UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual",
    "unpack_dual",
]  # fmt: skip
__dir__ = __all__.copy


class UnpackedDualTensor(NamedTuple):
    """What `unpack_dual` returns."""

    primal: Tensor
    tangent: Tensor | None


class MakeDual(Alias):
    """From a tensor to its dual."""

    name, node = "_make_dual", "ViewBackward0"
    saved_names = "self_sym_sizes=self.sizes"


class Primal(Alias):
    """From a dual back to its value."""

    name, node = "_fw_primal", "Identity"


MAKE_DUAL, PRIMAL = MakeDual(), Primal()
_EVERYTHING = float("inf")


# --- levels ---------------------------------------------------------------------------------------
def enter_dual_level() -> int:
    """Begin a level: until `exit_dual_level`, tensors may have tangents. Better use `dual_level`.

    >>> import rushlight.autograd.forward_ad as fwAD
    >>> fwAD.enter_dual_level()
    0
    >>> fwAD.exit_dual_level()
    """
    check_no_level()
    open_level()
    return 0


def check_no_level() -> None:
    """Refuse a level of the user's inside another."""
    if mine() is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")


def exit_dual_level(*, level: int | None = None) -> None:
    """End the level: all tangents made in it are gone.

    >>> import rushlight.autograd.forward_ad as fwAD
    >>> fwAD.exit_dual_level()
    Traceback (most recent call last):
    RuntimeError: Dual level must be a positive number.
    """
    newest = mine()
    last = -1 if newest is None else 0
    if level is not None and level != last:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This "
            "is not supported."
        )
    if newest is None:
        raise RuntimeError("Dual level must be a positive number.")
    newest.close()


if not TYPE_CHECKING:

    def __getattr__(name: str) -> int:
        if name == "_current_level":  # what PyTorch keeps here: the innermost level, -1 for none
            return -1 if mine() is None else 0
        raise AttributeError(f"module 'torch.autograd.forward_ad' has no attribute {name!r}")


class dual_level(LevelBlock, Decorator):
    """A level for a block, or as a decorator for the calls of a function.

    >>> import rushlight.autograd.forward_ad as fwAD
    >>> x = torch.tensor([1.])
    >>> with fwAD.dual_level():
    ...     y = fwAD.make_dual(x, torch.ones(1)) * 2
    ...     print(y)
    tensor([2.], tangent=tensor([2.]))
    >>> print(y)
    tensor([2.])
    """

    def __init__(self) -> None:
        super().__init__(False)

    def fill(self, mode: Mode) -> int:
        check_no_level()
        mode.closes = Newest(super().fill(mode))
        return 0


class Newest:
    """What the end of a `dual_level` closes: its level, or one that was begun in its place."""

    def __init__(self, level: DualLevel) -> None:
        self.level: DualLevel | None = level
        self.chosen = False

    def close(self) -> None:
        """Close it: called by its mode, and again if an interrupt came between."""
        if not self.chosen and self.level is not None and not self.level.alive:
            self.level = mine()
        self.chosen = True
        if self.level is not None:
            self.level.close()


# --- duals ----------------------------------------------------------------------------------------
def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """A view of `tensor` with the tangent `tangent`, which must have the same shape.

    The tangent is kept as it is where it lies in memory as the tensor does, and copied otherwise.

    >>> import rushlight.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     fwAD.make_dual(torch.zeros(2), torch.ones(2)).cos()
    tensor([1., 1.], tangent=tensor([-0., -0.]))
    """
    newest = now()
    if level is None:
        level = -1 if newest is None else 0
    if level < 0:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first."
        )
    for what, t in (("primal", tensor), ("tangent", tangent)):
        if not (t.is_floating_point() or t.is_complex()):
            raise ValueError(f"Expected {what} to be floating point or complex, but got: {t.dtype}")
    if level != 0:
        raise RuntimeError("Invalid level given to _make_dual")
    if newest is None:
        raise RuntimeError(
            "Trying to access a forward AD level with an invalid index. This index was either not "
            "created or is already deleted."
        )
    if seen_in(tensor, newest) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the "
            "same level 0 is not supported."
        )
    if seen_in(tangent, newest) is not None:
        raise RuntimeError(
            "Setting a forward grad that itself has a forward gradient at the same level0 is not "
            "supported."
        )
    if inference_enabled() or (tensor._storage.inference and tangent._storage.inference):
        return apply_view(MAKE_DUAL, tensor)  # as in PyTorch, to which this is no derivative
    check_size(tensor, tangent)
    alike = lies_alike(tensor._array, tangent._array)
    return with_tangent(tensor, tangent, newest, not alike)


def with_tangent(tensor: Any, tangent: Any, level: DualLevel, copied: bool) -> Any:
    """A view of `tensor` with a tangent in `level`, or with a copy of it."""
    with seeing_beneath(grad_enabled(), level.depth):
        dual = apply_view(MAKE_DUAL, tensor)
        if copied and put_off(tensor._array) & 1:
            tangent = tangent.conj().clone().conj()  # a conjugate view, as its tensor is
        elif copied:
            tangent = tangent.clone()
        give(dual, level, laid_like(tangent, tensor._array))
    return dual


def check_size(tensor: Any, tangent: Any) -> None:
    """Refuse a tangent of another shape."""
    have, want = tangent._array.shape, tensor._array.shape
    if have != want:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original "
            f"Tensor, this is not supported. Tensor is of size {list(want)} while the given "
            f"forward gradient is of size {list(have)}."
        )


def lies_alike(x: Any, t: Any) -> bool:
    """Whether `t` lies in memory that is as large, begins at the same place in it, and holds there
    what `x` holds: its elements, or their conjugates."""
    a, b = ByteBounds(x), ByteBounds(t)
    m, n = x.dtype.itemsize, t.dtype.itemsize
    if put_off(x) != put_off(t):
        return False
    return bool(a.nbytes * n == b.nbytes * m and a.offset * n == b.offset * m)


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """The value and the tangent of a tensor; the tangent is None if it has none.

    >>> import rushlight.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     primal, tangent = fwAD.unpack_dual(fwAD.make_dual(torch.zeros(1), torch.ones(1)))
    >>> primal, tangent
    (tensor([0.]), tensor([1.]))
    """
    newest = now()
    if level is None:
        level = -1 if newest is None else 0
    if level < 0:
        return UnpackedDualTensor(tensor, None)
    if not isinstance(tensor, TensorBase):
        raise TypeError(
            f"_unpack_dual(): argument 'dual' (position 1) must be Tensor, not {type_name(tensor)}"
        )
    if level != 0:
        raise RuntimeError("Invalid level given to _fw_primal")
    if newest is None:
        return UnpackedDualTensor(apply_view(PRIMAL, tensor), None)
    return UnpackedDualTensor(primal_at(tensor, newest), seen_in(tensor, newest))


# --- levels that nest -----------------------------------------------------------------------------
def enter_jvp_level() -> DualLevel:
    """Begin a level inside those there are, for a derivative of its own; end it with `close`.

    Close the innermost first. What was computed in a level keeps the tangents that it has in
    others: the derivative of a derivative is that of the inner level's tangent in the outer.

    >>> one, outer = torch.tensor(1.), enter_jvp_level()
    >>> x = dual_at(torch.tensor(2.), outer, one)
    >>> inner = enter_jvp_level()
    >>> slope = tangent_at(dual_at(x, inner, one) ** 3, inner)
    >>> inner.close()
    >>> slope, tangent_at(slope, outer)
    (tensor(12., tangent=12.0), tensor(12.))
    >>> outer.close()
    """
    return open_level(True)


def dual_at(x: Any, level: DualLevel, t: Any) -> Any:
    """A view of `x` with the tangent `t` in a level, and the tangents `x` has in those below."""
    check_size(x, t)
    return with_tangent(x, t, level, shares(x._array, t._array))


def tangent_at(x: Any, level: DualLevel) -> Any:
    """The tangent of `x` in a level, which may have tangents in those below; None if it has
    none."""
    return tangent_in(x, level) if level.alive else None


def primal_at(x: Any, level: DualLevel) -> Any:
    """A view of `x` without its tangent in a level, and with those in the levels below."""
    with seeing_beneath(grad_enabled(), level.depth):
        primal = apply_view(PRIMAL, x)
    end_tangent(primal, level)
    return primal


def derivative_along(
    fn: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Any, Any]:
    """`fn(*primals)` and its derivative along `tangents`, in a level of its own, which may stand
    inside others.

    Both come in the structure that `fn` returns, a tensor or a tuple of tensors; where a result
    does not depend on the primals, its derivative is zero.

    >>> derivative_along(lambda a, b: a * b, torch.tensor([2., 3.]), torch.tensor([1., 0.]))
    (tensor(6.), tensor(3.))
    """
    with LevelBlock(True) as level:
        duals = [dual_at(x, level, t) for x, t in zip(primals, tangents, strict=True)]
        results = fn(*duals)
        several = isinstance(results, (tuple, list))
        ys = results if several else (results,)
        found = tuple([tangent_at(y, level) for y in ys])
        values = tuple([primal_at(y, level) for y in ys])
    found = tuple([_zeros(y) if t is None else t for y, t in zip(values, found, strict=True)])
    return (values, found) if several else (values[0], found[0])


def _has_tangents(x: Any) -> bool:
    """Whether an argument is a tensor of numbers that can have a derivative."""
    return isinstance(x, TensorBase) and x._array.dtype.kind in DIFFERENTIABLE


def _zeros(t: Any) -> Any:
    return t.new_zeros(t.shape)


# --- custom functions -----------------------------------------------------------------------------
def push_custom(
    ctx: Any, cls: Any, args: tuple[Any, ...], outputs: tuple[Any, ...], made: list[Any],
    dirty: tuple[Any, ...], fixed: tuple[Any, ...], several: bool | None = None,
) -> None:  # fmt: skip
    """Give the outputs of a custom function the tangents that its `jvp` says.

    `outputs` are what `forward` returned, `made` what the caller gets for them; `dirty` and `fixed`
    were marked as written in place and as not differentiable. `several`: they come as a tuple.
    """
    if ctx.saved_for_forward is not None:
        stand_in = {id(o): m for o, m in zip(outputs, made, strict=True)}
        ctx.saved_for_forward = [stand_in.get(id(t), t) for t in ctx.saved_for_forward]
    lowest = True
    for level in seen_levels(args):
        ts = gather(args, level)
        if ts is None:
            continue
        with seeing_beneath(grad_enabled(), level.depth):
            if not lowest and (several is not None or len(outputs) > 1):
                ctx = set_up_again(ctx, cls, args, made[0] if several is False else tuple(made))
            push_custom_in(level, ctx, cls, args, ts, outputs, made, dirty, fixed)
        lowest = False


def set_up_again(ctx: Any, cls: Any, args: tuple[Any, ...], output: Any) -> Any:
    """A context for a deeper level: what `setup_context` computes then has the tangents of the
    levels below. Where `forward` itself made the context, that one."""
    from rushlight.autograd.function import Function

    if cls.setup_context is Function.setup_context:
        return ctx
    again = cls._backward_cls()
    again.needs_input_grad = ctx.needs_input_grad
    with within(False, inference_enabled()):
        cls.setup_context(again, args, output)
    return again


def push_custom_in(
    level: DualLevel, ctx: Any, cls: Any, args: tuple[Any, ...], ts: list[Any],
    outputs: tuple[Any, ...], made: list[Any], dirty: tuple[Any, ...], fixed: tuple[Any, ...],
) -> None:  # fmt: skip
    """`push_custom` in one level, where `ts` are the arguments' tangents."""
    versions = [None if t is None else t._storage.version for t in ts]
    given = list(ts)
    if ctx.materialize_grads:
        given = [
            _zeros(x) if t is None and _has_tangents(x) else t
            for x, t in zip(args, ts, strict=True)
        ]
    found = check_tangents(cls.jvp(ctx, *given), len(outputs))
    for i, (o, m, g) in enumerate(zip(outputs, made, found, strict=True)):
        if not isinstance(o, TensorBase):
            continue
        if o._array.dtype.kind not in "fcVW" or any(o is t for t in fixed):
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
        give(m, level, laid_like(g, o._array))


def check_tangents(found: Any, count: int) -> tuple[Any, ...]:
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


def settle_dirty(target: Any, g: Any, level: DualLevel, had: Any) -> None:
    """The tangent of an input that `forward` wrote in place: `jvp` must have done likewise."""
    if had is not None and had[0] is not None:
        if g is not had[0] or g._storage.version == had[1]:
            raise RuntimeError(
                "An inplace custom Function is not modifying the forward mode gradients inplace. "
                "If the forward is modifying an input inplace, then the jvp function must modify "
                "the corresponding gradient inplace."
            )
        return
    check_size(target, g)
    write_tangent(target, Pending(level, g, g.requires_grad))


def check_view(o: Any, g: Any, args: tuple[Any, ...], ts: list[Any]) -> None:
    """The tangent of a view of an input must be a view of that input's tangent."""
    for x, t in zip(args, ts, strict=True):
        if t is None or o._storage is not x._storage:
            continue
        if g._view is None:
            raise RuntimeError(
                "A custom Function's forward is returning a view (or an input as-is) but the jvp "
                "is not returning a view."
            )
        if g._storage is not t._storage:
            raise RuntimeError(
                "A custom Function is returning a view but the jvp is not returning a view of the "
                "given grad input."
            )


# --- on and off -----------------------------------------------------------------------------------
class _set_fwd_grad_enabled:
    """Switch tangents on or off: at once, and until the end of the block if there is one."""

    def __init__(self, mode: bool) -> None:
        now = (
            within(grad_enabled(), inference_enabled())
            if mode
            else disable_forward_ad(grad_enabled())
        )
        if mode:
            now.dual = _EVERYTHING
        now.at_once = True
        self._mode: Mode = now
        now.__enter__()

    def __enter__(self) -> None:
        self._mode.at_once = False

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        leave(self._mode)


def _is_fwd_grad_enabled() -> bool:
    mode = current()
    if mode is None or mode.dual is None:
        return not inference_enabled()
    return bool(mode.dual == _EVERYTHING)
