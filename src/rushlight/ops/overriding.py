"""`__torch_function__`: objects that take over the functions they are passed to.

Note [Overrides]
    A class may have a `__torch_function__`: a subclass of Tensor that wants to see what is done to
    its instances, or a class that is no tensor at all. Functions would have to look at the type of
    each argument, at each call. They do not: until the first such class turns up nothing here
    runs, and plain tensors pay nothing. Then `switch_on` exchanges the code of every public
    function, once and for good, for code that looks first and calls the old code after. The
    functions remain the same objects, wherever they are kept.

    Compiled operators and properties have no code to exchange. Subclasses get their own
    (`attach_overrides`); while a `TorchFunctionMode` is active, Tensor gets them too.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any, Final

from rushlight.core.graph import factory
from rushlight.errors import hide_insides
from rushlight.ops.registry import (
    functions,
    is_function,
    looking_for_overrides,
    methods,
    namespaces,
)


class State(threading.local):
    """What a thread has on: its modes, and what it has switched off."""

    def __init__(self) -> None:
        self.modes: list[Any] = []
        self.subclasses_off = 0
        self.all_off = 0


state: Final = State()
_lock: Final = threading.RLock()
_switched: Final[set[Any]] = set()  # functions with exchanged code
_modes_active: Final = [0]  # in all threads
# Called before code is exchanged: others who do it take back what is there for no reason now.
before_switching: Final[list[Callable[[], None]]] = []


def disabled_torch_function(
    cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None
) -> Any:
    """The `__torch_function__` of classes that want none: Parameter."""
    return NotImplemented


def overrides(x: Any) -> bool:
    """Whether an argument takes over the function that it is passed to."""
    cls = type(x)
    if cls is factory.cls:
        return False
    return hasattr(cls, "__torch_function__") and not is_disabled(cls)


def is_disabled(cls: Any) -> bool:
    """Whether a class wants no part in this, as Parameter."""
    found = cls.__torch_function__
    return getattr(found, "__func__", found) is disabled_torch_function


def overloaded(values: Iterable[Any]) -> list[Any]:
    """The arguments that take over, one of each type: subclasses first, then from the left.
    Lists are looked into."""
    found: list[Any] = []
    for x in values:
        for y in x if type(x) in (list, tuple) else (x,):
            if overrides(y) and all(type(y) is not type(z) for z in found):
                at = next((i for i, z in enumerate(found) if isinstance(y, type(z))), len(found))
                found.insert(at, y)
    return found


def dispatch(inner: Any, public: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call `public`, which is `inner` before its code was exchanged."""
    if not state.all_off:
        found = [] if state.subclasses_off else overloaded((*args, *kwargs.values()))
        if found or state.modes:
            if public is functions["einsum"] and len(args) == 2 and type(args[1]) in (list, tuple):
                args = (args[0], *args[1])  # who takes over sees the operands one by one
            return handle(public, found, args, kwargs)
    return inner(*args, **kwargs)


def handle(public: Any, found: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Let the innermost mode, then the arguments `found`, answer for a function."""
    types = tuple(type(x) for x in found)
    if state.modes:
        with mode_popped() as mode:
            answer = mode.__torch_function__(public, types, args, kwargs)
        if answer is not NotImplemented:
            return answer
    elif not found:
        return public(*args, **kwargs)
    for x in found:
        answer = x.__torch_function__(public, types, args, kwargs)
        if answer is not NotImplemented:
            return answer
    raise TypeError(_nobody_answers(public, types))


def _nobody_answers(public: Any, types: tuple[type, ...]) -> str:
    name = public_name(public)
    if name.startswith("torch.nn."):
        said = f"no implementation found for {name!r} on types that implement __torch_function__"
        said += f": {list(types)}"
    else:
        who = "".join(f"\n\n  - tensor subclass {cls}" for cls in types)
        said = f"Multiple dispatch failed for {name!r}; all __torch_function__ handlers returned "
        said += f"NotImplemented:{who}"
    if state.modes:
        said += f"\n\n  - mode object {state.modes[-1]}"
    return said


def public_name(fn: Any) -> str:
    """What PyTorch calls a function, a method or a property's getter: `torch.add`."""
    for space, table in (("", functions), *namespaces.items(), ("Tensor", methods)):
        for name, found in table.items():
            if found is fn:
                return ".".join(filter(None, ("torch", space, name)))
    owner = getattr(fn, "__self__", None)
    for name, found in vars(factory.cls).items():
        if found is fn or (isinstance(owner, property) and _plain(found) is owner):
            return f"torch.Tensor.{name}" + (f".{fn.__name__}" if owner is not None else "")
    return str(getattr(fn, "__name__", fn))


def _plain(x: Any) -> Any:
    return x.inner if isinstance(x, OverriddenProperty) else x


@contextmanager
def mode_popped() -> Iterator[Any]:
    """Take the innermost mode off while it answers: what it calls goes to the next one."""
    mode = state.modes.pop()
    try:
        yield mode
    finally:
        state.modes.append(mode)


# -- exchanging code -------------------------------------------------------------------------------


def switch_on() -> None:
    """Let all public functions look for overrides; see Note [Overrides]."""
    from rushlight.ops import after_filling, fill_rest

    with _lock:
        if _switched:
            return
        fill_rest()
        for take_back in before_switching:
            take_back()
        _exchange_all()
        after_filling.append(_exchange_all)
        looking_for_overrides[0] = True


def _exchange_all() -> None:
    for table in (functions, methods, *namespaces.values(), dict(vars(factory.cls))):
        for name, fn in table.items():
            if is_function(fn) and fn not in _switched and name not in _LEFT:
                _exchange(fn)
                fn.__name__ = name  # what a `__torch_function__` is shown


_LEFT: Final = frozenset(
    {
        "__new__", "__init__", "__init_subclass__", "__dir__", "__setstate__", "as_subclass",
        "__array_wrap__", "__array_ufunc__", "_make_subclass", "_host_array", "__reduce_ex__",
        "is_tensor", "tensor", "as_tensor", "asarray", "from_numpy", "__torch_function__",
    }
)  # fmt: skip


def _exchange(fn: FunctionType) -> None:
    """Give a function code that calls `dispatch` with its old code.

    The new code has the same parameters, so the function's defaults stay where they are, and
    threads that call it meanwhile run the one code or the other.
    """
    old = fn.__code__
    inner = FunctionType(old, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)
    inner.__kwdefaults__ = fn.__kwdefaults__
    _switched.add(fn)
    fn.__code__ = code_calling(_dispatch_given, inner, fn)


def code_calling(dispatcher: Any, inner: FunctionType, public: FunctionType) -> CodeType:
    """Code for `public` that calls `dispatcher(inner, public, args, kwargs)`."""
    old = inner.__code__
    count, keyed = old.co_argcount, old.co_kwonlyargcount
    names = old.co_varnames
    plain, after = names[:count], names[count : count + keyed]
    rest = names[count + keyed :]
    star = rest[0] if old.co_flags & inspect.CO_VARARGS else ""
    stars = rest[bool(star)] if old.co_flags & inspect.CO_VARKEYWORDS else ""
    heads = [*plain, *(["*" + star] if star else ["*"] if after else []), *after]
    heads += ["**" + stars] if stars else []
    if old.co_posonlyargcount:
        heads.insert(old.co_posonlyargcount, "/")
    given = "".join(f"{n}, " for n in plain)
    named = "".join(f"{n!r}: {n}, " for n in after)
    around = ", ".join(old.co_freevars)  # used by `inner` alone, but a frame must have them
    source = (
        f"def outside({around}):\n"
        f"  def made({', '.join(heads)}):\n"
        f"    {f'nonlocal {around}' if around else 'pass'}\n"
        "    _dispatch = '<dispatch>'\n"
        f"    return _dispatch('<inner>', '<public>', ({given}{f'*{star},' if star else ''}), "
        f"{{{named}{'**' + stars if stars else ''}}})\n"
    )
    module = compile(source, old.co_filename, "exec")
    outside = next(c for c in module.co_consts if isinstance(c, CodeType))
    made = next(c for c in outside.co_consts if isinstance(c, CodeType))
    meant = {"<dispatch>": dispatcher, "<inner>": inner, "<public>": public}
    consts = tuple(meant.get(c, c) if isinstance(c, str) else c for c in made.co_consts)
    return made.replace(
        co_consts=consts, co_name=old.co_name, co_qualname=old.co_qualname,
        co_firstlineno=old.co_firstlineno,
    )  # fmt: skip


def _dispatch_given(
    inner: FunctionType, public: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """`dispatch` without the arguments that were not given: those that are their defaults."""
    if state.all_off or not (state.modes or (not state.subclasses_off and _any(args, kwargs))):
        try:
            return inner(*args, **kwargs)
        except Exception as error:
            hide_insides(error)
            raise
    defaults = inner.__defaults__ or ()
    if defaults and len(args) == inner.__code__.co_argcount:
        n = len(args)
        for default in reversed(defaults):
            if args[n - 1] is not default:
                break
            n -= 1
        args = args[:n]
    known = inner.__kwdefaults__ or {}
    kwargs = {k: x for k, x in kwargs.items() if k not in known or x is not known[k]}
    return dispatch(inner, public, args, kwargs)


def _any(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    for x in (*args, *kwargs.values()):
        if type(x) is list or type(x) is tuple:
            if any(map(overrides, x)):
                return True
        elif type(x) is not factory.cls and overrides(x):
            return True
    return False


# -- operators and properties ----------------------------------------------------------------------

# The function that an operator stands for, where it is not the operator itself.
_MEANS: Final = {
    "__add__": "add", "__radd__": "add", "__sub__": "sub", "__mul__": "mul", "__rmul__": "mul",
    "__truediv__": "div", "__matmul__": "matmul", "__neg__": "neg",
}  # fmt: skip


def attach_overrides(cls: Any) -> None:
    """Give a class operators and properties that look for overrides: Tensor, or a subclass."""
    tensor = factory.cls
    for base in tensor.__mro__[:0:-1]:
        for name, inner in vars(base).items():
            if name in _OPERATORS and _is_tensors(cls, name):
                setattr(cls, name, _operator(name, inner))
    for name, inner in list(vars(tensor).items()):
        if isinstance(inner, property) and _is_tensors(cls, name):
            setattr(cls, name, OverriddenProperty(inner))


_OPERATORS: Final = frozenset(
    """__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __matmul__
    __neg__""".split()
)


def detach_from(cls: Any) -> None:
    """Take back what `attach_overrides` gave to Tensor."""
    for name in _OPERATORS:
        if name in vars(cls):
            delattr(cls, name)
    for name, x in list(vars(cls).items()):
        if isinstance(x, OverriddenProperty):
            setattr(cls, name, x.inner)


def _is_tensors(cls: Any, name: str) -> bool:
    """Whether a class has an attribute from Tensor, and not from a class in between."""
    for base in cls.__mro__:
        if base is factory.cls:
            return True
        if name in vars(base):
            return False
    return False


def _operator(name: str, inner: Any) -> Any:
    def operator(self: Any, *others: Any) -> Any:
        if _is_plain(self) and not (others and not _is_plain(others[0])):
            return inner(self, *others)
        public = functions[_MEANS[name]] if name in _MEANS else inner
        try:
            return dispatch(inner, public, (self, *others), {})
        except TypeError:
            foreign = others and not isinstance(others[0], (factory.cls, int, float, complex))
            if foreign and not overrides(others[0]):
                return NotImplemented  # the other operand may know
            raise

    operator.__name__ = operator.__qualname__ = name
    return operator


def answer_operator(name: str, a: Any, b: Any) -> Any:
    """An operator of a tensor, with an operand that is none and has a `__torch_function__`."""
    switch_on()
    if state.all_off or state.subclasses_off or not overrides(b):
        return NotImplemented
    public = functions[_MEANS[name]] if name in _MEANS else getattr(factory.cls, name)
    try:
        return handle(public, [b], (a, b), {})
    except TypeError:  # as PyTorch does: the operand's own operator may know
        return NotImplemented


class OverriddenProperty(property):
    """A property of Tensor that looks for overrides: `Tensor.shape.__get__` is what they see."""

    def __init__(self, inner: property) -> None:
        super().__init__(inner.fget, inner.fset, inner.fdel, inner.__doc__)
        self.inner = inner

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        if _is_plain(instance):
            return self.inner.__get__(instance, owner)
        return dispatch(self.inner.__get__, self.inner.__get__, (instance,), {})

    def __set__(self, instance: Any, value: Any) -> None:
        if _is_plain(instance):
            self.inner.__set__(instance, value)
        else:
            dispatch(self.inner.__set__, self.inner.__set__, (instance, value), {})


def _is_plain(x: Any) -> bool:
    return bool(state.all_off or not (state.modes or (not state.subclasses_off and overrides(x))))


# -- modes, and switching off ----------------------------------------------------------------------


def push_mode(mode: Any) -> None:
    """Let a mode see every call of this thread."""
    switch_on()
    with _lock:
        if _modes_active[0] == 0:
            attach_overrides(factory.cls)
        _modes_active[0] += 1
    state.modes.append(mode)


def pop_mode() -> Any:
    """End the innermost mode."""
    mode = state.modes.pop()
    with _lock:
        _modes_active[0] -= 1
        if _modes_active[0] == 0:
            detach_from(factory.cls)
    return mode


class DisableTorchFunctionSubclass:
    """Inside, arguments do not take over functions; modes still do."""

    def __enter__(self) -> None:
        state.subclasses_off += 1

    def __exit__(self, *exc: object) -> None:
        state.subclasses_off -= 1


class DisableTorchFunction:
    """Inside, neither arguments nor modes take over functions."""

    def __enter__(self) -> None:
        state.all_off += 1

    def __exit__(self, *exc: object) -> None:
        state.all_off -= 1


def default_torch_function(cls: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Tensor's `__torch_function__`: compute as ever, and give the result the class `cls`."""
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        found = func(*args, **(kwargs or {}))
        return found if func in nowrap() else as_subclass_of(found, cls)


def nowrap() -> set[Any]:
    """Functions that give results as they are: gradients and bases have classes of their own."""
    cls = factory.cls
    return {_plain(vars(cls)[name]).__get__ for name in ("_base", "grad", "_grad")}


def as_subclass_of(x: Any, cls: Any) -> Any:
    """The tensors in a result as instances of `cls`."""
    if cls is factory.cls:
        return x
    if isinstance(x, factory.cls) and not isinstance(x, cls):
        return methods["as_subclass"](x, cls)
    if isinstance(x, (tuple, list)):
        parts = [as_subclass_of(y, cls) for y in x]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    return x
