"""How autocast reaches functions, and what it does to their arguments.

Note [Autocast's seam]
    Autocast is about functions as users call them: `linear` casts its arguments before it looks at
    their dtypes. A test in each function would cost every call. So nothing is tested: while an
    autocast is in force anywhere, the listed functions, and they alone, have other code, which
    casts and then runs the old code; it is put back after the last one (see `uninstall`). The
    functions remain the same objects, wherever they are kept, as with `ops.overriding`. Who called
    decides: in another thread the new code runs the old one at once. `@` is compiled, and asks a
    table for what to do with anything but plain matrices; as long as `state.active` is not 0
    nothing is plain.
"""

from __future__ import annotations

import functools
from contextvars import ContextVar
from types import CodeType, FunctionType
from typing import Any, Final

from rushlight import dtypes
from rushlight.amp.lists import LISTS
from rushlight.arrays import vocabulary as v
from rushlight.arrays.device import cuda_count
from rushlight.arrays.host import device_of
from rushlight.core.grad_mode import state
from rushlight.core.graph import TensorBase, requires_grad, wrap
from rushlight.core.observer import observer
from rushlight.core.operators import table as operators
from rushlight.core.record import apply, finish
from rushlight.core.transforms.stack import stack
from rushlight.locks import lock
from rushlight.ops.overriding import before_switching, code_calling
from rushlight.ops.pointwise.cast import ToCopy
from rushlight.ops.registry import functions, is_function, methods, namespaces


class Setting:
    """What autocast is set to, here: one for each change, never changed itself."""

    def __init__(self) -> None:
        self.enabled = {"cpu": False, "cuda": False}
        self.dtype = {"cpu": dtypes.bfloat16, "cuda": dtypes.float16}
        self.caches = True

    def copy(self) -> Setting:
        made = Setting()
        made.enabled, made.dtype, made.caches = dict(self.enabled), dict(self.dtype), self.caches
        return made


UNSET: Final = Setting()
setting: Final[ContextVar[Setting]] = ContextVar("rushlight_autocast", default=UNSET)
inside: Final[ContextVar[bool]] = ContextVar("rushlight_autocast_inside", default=False)
nesting: Final[ContextVar[int]] = ContextVar("rushlight_autocast_nesting", default=0)
# Parameters that were cast, so that a weight which is used twice is cast once: by id, with the
# parameter itself, and its version then.
cache: Final[dict[tuple[int, Any], tuple[Any, int, Any]]] = {}


# --- casting --------------------------------------------------------------------------------------
def autocast_tensor(x: Any, dtype: Any, device: str, caches: bool) -> Any:
    """A float tensor of a device in a dtype; all else, doubles among it, as it is."""
    if isinstance(x, TensorBase):
        raw = x._array
        have = dtypes.of(raw.dtype)
        if have is dtype or not _is_eligible(x, device):
            return x
        keep = caches and x._requires_grad and have is dtypes.float32
        if not keep or dtype is dtypes.float32 or x._node is not None or x._view is not None:
            return _in(x, dtype)
        key = (id(x), dtype)
        version = x._storage.version
        found = cache.get(key)
        if found is None or found[0] is not x or found[1] != version:
            found = cache[key] = (x, version, _in(x, dtype))
        return found[2]
    if type(x) is list or type(x) is tuple:
        return type(x)([autocast_tensor(y, dtype, device, caches) for y in x])
    return x


def _in(x: TensorBase, dtype: Any) -> Any:
    """`x.to(dtype)`; where nobody asks for a gradient or looks on, without an op."""
    if requires_grad(x) or stack.open or observer.profile is not None:
        return apply(_copying(dtype), x)
    return finish(wrap(v.cast(x._array, dtype.numpy)))


@functools.cache
def _copying(dtype: Any) -> ToCopy:
    return ToCopy(dtype.numpy)


def _is_eligible(t: Any, device: str) -> bool:
    dtype = dtypes.of(t._array.dtype)
    return (
        dtype.is_floating_point
        and dtype is not dtypes.float64
        and device_of(t._array).type == device
    )


def _widest(values: Any, device: str, lower: Any) -> Any:
    """The dtype that holds all eligible tensors: float32 if one of them is that, else `lower`."""
    for x in values:
        if isinstance(x, TensorBase):
            have = dtypes.of(x._array.dtype)
            wide = have is dtypes.float32 or have is dtypes.float64
            if wide and device_of(x._array).type == device:
                # doubles: the function promotes by itself
                return have if have is dtypes.float32 else None
        elif (type(x) is list or type(x) is tuple) and x:
            found = _widest(x, device, lower)
            if found is not lower:
                return found
    return lower


def _device_of(values: Any) -> str:
    for x in values:
        if isinstance(x, TensorBase):
            return device_of(x._array).type
        if (type(x) is list or type(x) is tuple) and x and (found := _device_of(x)):
            return found
    return ""


def call(
    inner: FunctionType, public: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call a listed function, whose old code is `inner`."""
    now = setting.get()
    if _stands[0] and _in_force[0] == 0:
        restore()
    if now is UNSET or inside.get() or kwargs.get("out") is not None:
        return inner(*args, **kwargs)
    values = (*args, *kwargs.values())
    device = _device_of(values)
    policy = _policies[public].get(device)
    if policy is None or not now.enabled[device]:
        return inner(*args, **kwargs)
    lower = now.dtype[device]
    dtype: Any = None
    if policy == "lower":
        dtype = lower
    elif policy == "float32":
        dtype = dtypes.float32
    elif policy == "widest":
        dtype = _widest(values, device, lower)
    elif policy == "first":
        dtype = next((x.dtype for x in values if isinstance(x, TensorBase)), None)  # type: ignore[attr-defined]
    token = inside.set(True)  # what a function calls itself is not cast again
    try:
        if dtype is not None:
            args = tuple([autocast_tensor(x, dtype, device, now.caches) for x in args])
            kwargs = {
                name: autocast_tensor(x, dtype, device, now.caches) for name, x in kwargs.items()
            }
        return inner(*args, **kwargs)
    finally:
        inside.reset(token)


class Again:
    """The setting in which this was made, once more: inside `with`."""

    def __init__(self) -> None:
        self.setting = setting.get()
        self.tokens: list[Any] = []

    def __enter__(self) -> None:
        install_casts()
        self.tokens.append((setting.set(self.setting), nesting.set(nesting.get() + 1)))

    def __exit__(self, *args: object) -> None:
        before, depth = self.tokens.pop()
        setting.reset(before)
        nesting.reset(depth)
        if nesting.get() == 0:
            cache.clear()
        uninstall_casts()


# --- exchanging code ------------------------------------------------------------------------------
_lock: Final = lock()
_in_force = [0]
_stands = [False]  # whether functions have other code
_codes: Final[dict[FunctionType, tuple[CodeType, CodeType]]] = {}  # the old, and ours
_made: Final[dict[FunctionType, tuple[CodeType, CodeType]]] = {}  # likewise, of before
_policies: Final[dict[FunctionType, dict[str, str]]] = {}
_matmul: list[Any] = []


def install_casts() -> None:
    """One autocast more is in force; see Note [Autocast's seam]."""
    with _lock:
        _in_force[0] += 1
        if _in_force[0] > 1:
            return
        if not _policies:
            _find()
        if not _stands[0]:
            _stands[0] = True
            for fn in _policies:
                if fn not in _codes:  # else someone put code of theirs around ours
                    _codes[fn] = (fn.__code__, _code_of(fn))
                    fn.__code__ = _codes[fn][1]
        _matmul.append(operators.matmul)
        operators.matmul = functions["matmul"]
        state.active += 1


def _code_of(fn: FunctionType) -> CodeType:
    """The code that casts and then runs the function's present code: made once, for that takes
    a hundred times as long as to exchange it."""
    old = fn.__code__
    made = _made.get(fn)
    if made is None or made[0] is not old:
        inner = FunctionType(old, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)
        inner.__kwdefaults__ = fn.__kwdefaults__
        made = _made[fn] = (old, code_calling(call, inner, fn))
    return made[1]


def uninstall_casts() -> None:
    """One less. The first listed function that is called without one puts the old code back: a
    step of training calls none between one autocast and the next, and to exchange the code of
    them all takes as long as several small products."""
    with _lock:
        _in_force[0] -= 1
        if _in_force[0] > 0:
            return
        state.active -= 1
        operators.matmul = _matmul.pop()


def restore() -> None:
    """Put the old code back, unless an autocast is in force, or someone put code of theirs around
    ours: that leads to the old code too."""
    with _lock:
        if _in_force[0] > 0 or not _stands[0]:
            return
        _stands[0] = False
        for fn, (old, ours) in list(_codes.items()):
            if fn.__code__ is ours:
                fn.__code__ = old
                del _codes[fn]


before_switching.append(restore)


def _find() -> None:
    """The functions of the lists, wherever they are kept."""
    from rushlight.nn import functional
    from rushlight.ops import fill_rest

    fill_rest()
    places = (functions, methods, namespaces["nn.functional"], vars(functional))
    for device, lists in LISTS.items():
        if device == "cuda" and cuda_count() == 0:
            continue
        for policy, names in lists.items():
            for name in names:
                home, _, last = name.rpartition(".")
                for place in (namespaces.get(home, {}),) if home else places:
                    found = place.get(last)
                    if is_function(found):
                        _policies.setdefault(found, {})[device] = policy
