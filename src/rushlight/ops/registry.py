"""The table of ops and of the public functions made from them.

    @op            registers an op class under its name; if the class has a `word`, the op, given
                   inputs and then parameters, stands for that primitive when rules run on tensors
    @function      a function for users: becomes `rushlight.f` and `Tensor.f`, and if it says so
                   `f(..., out=...)` and `f_` (in place)
    @implements    says which function stands for a primitive of the vocabulary when rules run on
                   tensors

What is exported takes whatever users pass as numbers (`ops.numbers`) and tells of arguments of the
wrong type (`ops.mistakes`). `rushlight/__init__.py` and `tensor.py` export what is here;
nothing lists ops a second time.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any, Final, TypeGuard, TypeVar

from rushlight.arrays.batched import beside_tensors
from rushlight.arrays.kernels import PublicFunction
from rushlight.arrays.vocabulary import Kind, register
from rushlight.core.dispatch import pair, pair_if_plain, plain_pair, unary
from rushlight.core.families import ViewOp
from rushlight.core.graph import Op, TensorBase
from rushlight.core.operators import table as operators
from rushlight.core.recall import Memo, ask, quick_or_recall, recall
from rushlight.core.record import apply
from rushlight.core.views.views import apply_view
from rushlight.errors import hide_insides
from rushlight.ops import fill_more
from rushlight.ops.apply import run, run_inplace, run_out
from rushlight.ops.checks import check_tensor, from_end
from rushlight.ops.mistakes import BLAMED, better_error
from rushlight.ops.numbers import has_negative_zero, numbers_of
from rushlight.ops.numpy_names import with_our_names

C = TypeVar("C", bound=type[Op])
F = TypeVar("F", bound=Callable[..., Any])

T = TypeVar("T")


class Filling(dict[str, T]):
    """A table that is filled further when a name is asked for that it does not have yet."""

    def __missing__(self, name: str) -> T:
        while name not in self and fill_more():
            continue
        if name not in self:
            raise KeyError(name)
        return self[name]


table: Final[dict[str, type[Op]]] = Filling()
functions: Final[dict[str, Callable[..., Any]]] = Filling()
methods: Final[dict[str, Callable[..., Any]]] = Filling()
namespaces: Final[dict[str, dict[str, Callable[..., Any]]]] = {
    "nn.functional": {}, "special": {}, "linalg": {}, "fft": {}, "masked": {}, "signal.windows": {},
    "sparse": {},
}  # fmt: skip
# which parameters are numbers is read at the first call: for all functions it takes 2 ms
UNREAD: Final = object()
takes_out: Final[set[Callable[..., Any]]] = set()
tensor_impls: Final[dict[str, Callable[..., Any]]] = {}


def op(cls: C) -> C:
    """Register an op class in the table."""
    if cls.name in table:
        raise ValueError(f"two ops are called {cls.name!r}")
    table[cls.name] = cls
    word = vars(cls).get("word")
    if word is not None:
        tensor_impls[word] = _standing_for(cls)
    return cls


def _standing_for(cls: Any) -> Callable[..., Any]:
    """An op class as the word it stands for: inputs, then parameters. Ops count dimensions from the
    end, words may count them from the front."""
    count, act = len(cls.inputs), apply_view if issubclass(cls, ViewOp) else apply
    dims = [i for i, name in enumerate(cls.params, count) if name.startswith("dim")]

    def answer(*args: Any) -> Any:
        values = list(args)
        for i in dims:
            rank, d = args[0]._array.ndim, args[i]
            some = isinstance(d, tuple)
            values[i] = tuple([from_end(a, rank) for a in d]) if some else from_end(d, rank)
        return act(cls(*values[count:]), *args[:count])

    return answer


def _export(
    fn: Callable[..., Any], names: tuple[str, ...], method: bool, free: bool, namespace: str
) -> None:
    for name in names:
        if free:
            _put(functions, name, fn)
        if method:
            _put(methods, name, fn)
        if namespace:
            _put(namespaces[namespace], name, fn)


def _put(place: dict[str, Callable[..., Any]], name: str, fn: Callable[..., Any]) -> None:
    known = place.get(name)
    if known is not None and known.__module__ != fn.__module__:  # whichever is imported last wins
        raise ValueError(f"{known.__module__} and {fn.__module__} both export {name!r}")
    place[name] = fn


def function(
    *, name: str = "", aliases: tuple[str, ...] = (), method: bool = True, free: bool = True,
    namespace: str = "", out: bool = False, inplace: bool = False, bare: bool = False,
    settles: bool | str = False, returns: str = "Tensor", made: Op | None = None,
    quick: Callable[..., Any] | None = None, told: Any = False,
) -> Callable[[F], F]:  # fmt: skip
    """Export a function as `rushlight.f` (`free`), `Tensor.f` (`method`), and in a namespace.

    It returns its result, and is handed back as it was, for others to be made of: those pass it
    what they have settled. With `out` or `inplace` it returns `(op, inputs)` instead; the op is
    applied to them, and the function gets `out=`, and a form `f_` that writes its first input.
    With `settles` it is asked once only for arguments of one signature: see Note [What may be kept]
    in `core.recall` for what that asks of it, and Note [What is worth keeping] for "rank". `made`
    is the op, if it is always the same element-wise one of one or two tensors. `quick` is compiled
    code that is asked first, and told something (`told`: of views, that ints may come one by one,
    see `core.views.plain_views`).

    With `bare` it is exported as it is, which saves a call (180 ns): for hot functions that take no
    numbers and look at their arguments themselves. `returns` is the type of what it returns, where
    its annotation does not say.
    """

    def register_it(fn: F) -> F:
        title = name or fn.__name__
        names = (title, *aliases)
        if fn.__annotations__.get("return", "Any") == "Any":
            fn.__annotations__["return"] = returns
        if bare:
            given = fn if quick is None else asking(fn, 3, quick, told)
            if made is not None:
                given = asking(fn, len(made.inputs), unary, made)
            _export(given, names, method, free, namespace)
            return fn
        memo = Memo(None, settles == "rank", quick, told) if settles else None
        if not (out or inplace):
            call = _wrap(fn, title, None, False, memo, made, quick, told)
            _export(call, names, method, free, namespace)
            return fn
        call = _wrap(fn, title, run, out, memo, made, quick, told)
        _export(call, names, method, free, namespace)
        if inplace:
            memory = Memo(run_inplace) if settles else None
            write = _wrap(fn, title, run_inplace, False, memory)
            write.__name__ = write.__qualname__ = title + "_"
            write.__doc__ = f"In-place version of `{title}`."
            _export(write, tuple(n + "_" for n in names), method, free, "")
        made_of: F = call
        return made_of

    return register_it


def functional(
    *, name: str = "", bare: bool = False, settles: bool | str = False, made: Op | None = None,
    quick: Callable[..., Any] | None = None, told: Any = False,
) -> Callable[[F], F]:  # fmt: skip
    """Export a function as `rushlight.nn.functional.f`, and nowhere else."""
    return function(
        name=name, method=False, free=False, namespace="nn.functional", bare=bare, settles=settles,
        made=made, quick=quick, told=told,
    )  # fmt: skip


def _wrap(
    fn: Callable[..., Any], title: str, finish: Callable[..., Any] | None, out: bool,
    memo: Memo | None = None, made: Op | None = None, quick: Any = None, told: Any = False,
) -> Any:  # fmt: skip
    """A function as users call it: see the module's text. `finish` applies the op that `fn` names
    to the inputs that it names; `out` says whether they may pass `out=`."""
    taking: Any = UNREAD
    first = -1

    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal taking, first
        target = None
        try:
            if memo is not None:
                found = recall(memo, args, kwargs)
                if found is not None:
                    return found
            if out and kwargs:
                target = kwargs.pop("out", None)
            if taking is not None and (kwargs or len(args) > first):
                if taking is UNREAD:
                    taking, first = numbers_of(fn, title)
                if taking is not None:
                    args, kwargs = taking.settle(args, kwargs)
            if memo is not None and target is None:
                return ask(memo, fn, finish, args, kwargs)
            found = fn(*args, **kwargs)
            if finish is None:
                return found
            what, xs = found
            return finish(what, xs) if target is None else run_out(title, what, xs, target)
        except BLAMED as error:
            given = kwargs if target is None else {**kwargs, "out": target}
            answer = answer_otherwise(error, args, given)
            if answer is not NotImplemented:
                return answer
            if (better := better_error(title, fn, args, kwargs, error)) is not None:
                raise better from None  # here: one frame of ours in the traceback
            raise

    def answer_otherwise(error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a call gives that failed: by a class that takes it over, or by arguments as NumPy
        calls them. NotImplemented if it gives nothing."""
        if takes_over(args, kwargs):
            return overridden(public, *args, **kwargs)
        given = without_out(kwargs)
        if given and isinstance(error, TypeError) and public in _takes_numpy_names(title):
            again = with_our_names(fn, given)
            if again is not None:
                target = kwargs.get("out") if out else None
                return call(*args, **({} if target is None else {"out": target}), **again)
        return NotImplemented

    def without_out(kwargs: dict[str, Any]) -> dict[str, Any]:
        return {name: x for name, x in kwargs.items() if name != "out"} if out else kwargs

    def blame(error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a call gives that compiled code failed at, or NotImplemented: the error stands, or a
        better one is raised."""
        answer = answer_otherwise(error, args, kwargs)
        if answer is NotImplemented:
            better = better_error(title, fn, args, without_out(kwargs), error)
            if better is not None:
                raise better from None
        return answer

    # what `functools.wraps` does, in a fifth of the time: there are 800 of them at each import
    call.__module__, call.__name__, call.__qualname__ = fn.__module__, fn.__name__, fn.__qualname__
    call.__doc__, call.__annotations__ = fn.__doc__, fn.__annotations__
    call.__dict__.update(fn.__dict__, __wrapped__=fn)
    if quick is not None and memo is not None:
        public = asking(call, 3, quick_or_recall, memo, blame)
    elif quick is not None:
        public = asking(call, 3, quick, told, blame)
    elif made is not None:
        public = _applying(call, made, blame)
    else:
        public = call if memo is None else asking(call, 3, recall, memo, blame)
    if out:
        takes_out.add(public)
    return public


def asking(call: Any, kind: int, ask: Any, what: Any, blame: Any = None) -> Any:
    """A function that asks compiled code first, where there is some: see Note [Public functions] in
    `codegen.public_function`."""
    if PublicFunction is None:
        return call
    return PublicFunction(call, kind, ask, what, blame or _stands, TensorBase)


def _stands(error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Of functions that tell of their errors themselves."""
    hide_insides(error)
    return NotImplemented


def _applying(call: Callable[..., Any], op: Op, blame: Any) -> Any:
    """A public function that applies an element-wise op to float tensors at once; for all else it
    is `call`."""
    inputs = len(op.inputs)
    if PublicFunction is not None:
        return asking(call, inputs, unary if inputs == 1 else pair_if_plain, op, blame)

    def one(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and isinstance(args[0], TensorBase):
            return unary(op, args[0])
        return call(*args, **kwargs)

    def two(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 2 and not kwargs:
            a, b = args
            if isinstance(a, TensorBase) and isinstance(b, TensorBase) and plain_pair(a, b):
                return pair(op, a, b)
        return call(*args, **kwargs)

    quick = one if inputs == 1 else two
    quick.__module__, quick.__name__ = call.__module__, call.__name__
    quick.__qualname__, quick.__doc__ = call.__qualname__, call.__doc__
    quick.__annotations__ = call.__annotations__
    quick.__dict__.update(call.__dict__)
    return quick


def is_function(x: Any) -> TypeGuard[FunctionType]:
    """Whether something is a function written in Python, or a public one that is made of one."""
    return isinstance(x, FunctionType) or type(x) is PublicFunction


def guarded(fn: Callable[..., Any], title: str) -> Callable[..., Any]:
    """A function as `function` exports it, but exported nowhere: what a bare function that looks
    after common calls leaves all others to."""
    call = _wrap(fn, title, None, False)

    def rest(*args: Any, **kwargs: Any) -> Any:
        try:
            return call(*args, **kwargs)
        except Exception as error:
            hide_insides(error)
            raise

    return rest


def said(named: dict[str, Any], **options: Any) -> dict[str, Any]:
    """The keywords that a caller wrote, of options that are None or False by default: what errors
    show of a call."""
    for name, value in options.items():
        if value is not (False if name in ("requires_grad", "pin_memory") else None):
            named[name] = value
    return named


def settle(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What reads an attribute, as a function that `settles`."""
    memo = Memo()

    def get(self: Any) -> Any:
        found = recall(memo, (self,), {})
        return ask(memo, read, None, (self,), {}) if found is None else found

    return get


def _takes_numpy_names(title: str) -> tuple[Any, ...]:
    """The functions of this name that PyTorch writes in C++: they take NumPy's names too. What it
    writes in Python, all of `nn.functional` among it, does not."""
    found = [namespaces[space].get(title) for space in ("linalg", "fft", "special")]
    if title not in _IN_PYTHON:
        found += [functions.get(title), methods.get(title), methods.get(title + "_")]
    return tuple(found)


_IN_PYTHON: Final = frozenset({"split", "norm", "unique", "unique_consecutive", "cdist", "stft"})


def takes_over(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a call failed because an argument is no tensor, but has a `__torch_function__`, which
    functions do not look for yet: see Note [Overrides]."""
    return not looking_for_overrides[0] and any(
        is_foreign(x)
        for y in (*args, *kwargs.values())
        for x in (y if isinstance(y, (list, tuple)) else (y,))
    )


looking_for_overrides: Final = [False]  # whether all functions do


def is_foreign(x: Any) -> bool:
    """Whether an argument is no tensor, but has a `__torch_function__`."""
    return hasattr(type(x), "__torch_function__") and not isinstance(x, TensorBase)


def overridden(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function again, now that it looks for overrides."""
    from rushlight.ops import overriding

    overriding.switch_on()
    return fn(*args, **kwargs)


def refuse_input(title: str, fn: Callable[..., Any], input: Any, *rest: Any, **named: Any) -> Any:
    """What a bare function gives whose input is no tensor: what that says, or PyTorch's error."""
    if takes_over((input,), {}):
        return overridden(fn, input, *rest, **named)
    return check_tensor(input, title)


def _meet(title: str, a: Any, b: Any) -> Any:
    """A compiled operator with an operand that it does not know."""
    if not is_foreign(b):
        return NotImplemented
    from rushlight.ops import overriding

    return overriding.answer_operator(title, a, b)


operators.foreign = _meet


def set_public_name(fn: Any, module: str, name: str) -> None:
    """Say where users find a function of the table: by that, pickles refer to it."""
    if fn.__module__.startswith("rushlight.ops."):
        fn.__module__ = module
        fn.__name__ = fn.__qualname__ = name


def shared_op(cls: Any, *values: Any) -> Any:
    """The op of a class with these parameters: made once, for ops hold no state."""
    if 0.0 in values and has_negative_zero(values):
        return cls(*values)
    return _made(cls, *values)


@functools.lru_cache(maxsize=1024, typed=True)
def _made(cls: Any, *values: Any) -> Any:
    return cls(*values)


def variant(fn: Callable[..., Any], name: str, text: str, **parameters: str) -> Any:
    """A function of a family: `fn` under a name and with a text of its own, some of its parameters
    renamed (`a="mat1"`). What users see, and what errors say, is as if it were written out."""
    code = fn.__code__
    names = tuple([parameters.get(n, n) for n in code.co_varnames])
    made = FunctionType(
        code.replace(co_varnames=names, co_name=name, co_qualname=name), fn.__globals__, name,
        fn.__defaults__, fn.__closure__,
    )  # fmt: skip
    made.__kwdefaults__ = fn.__kwdefaults__
    made.__annotations__ = {parameters.get(n, n): kind for n, kind in fn.__annotations__.items()}
    made.__doc__, made.__module__ = text, fn.__module__
    return made


def describe(text: str, example: str = "", gives: str = "") -> str:
    """The text of a public function that another function makes."""
    return f"{text}\n\n>>> {example}\n{gives}\n" if example else f"{text}\n"


def signature_of(fn: Callable[..., Any]) -> inspect.Signature:
    """A public function's signature, with the `out=` that `function` gave it; see `described`."""
    return inspect.signature(fn)


def implements(*names: str) -> Callable[[F], F]:
    """Let a function on tensors answer to words (or ufuncs) of the vocabulary."""

    def register_it(fn: F) -> F:
        for n in names:
            tensor_impls[n] = fn
        return fn

    return register_it


def implementation_of(name: str) -> Callable[..., Any] | None:
    """The function on tensors that stands for a word (or ufunc), or None."""
    while name not in tensor_impls and fill_more():
        continue
    return tensor_impls.get(name)


_words: Final[dict[str, Memo]] = {}  # what words came down to on tensors: see `core.recall`


def _answer(name: str, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    memo = _words.get(name)
    if memo is not None:
        y = recall(memo, args, {})
        if y is not None:
            return y
    answer = implementation_of(name)
    if answer is None:
        raise NotImplementedError(f"no op answers to the word {name!r} on tensors")
    if memo is None:
        memo = _words[name] = Memo()
    return ask(memo, answer, None, tuple(beside_tensors(args)), {})


register(TensorBase, Kind(10, _answer))
