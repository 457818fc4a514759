"""Reading a pickle without running it: what `load` does with `weights_only=True`.

Python's own unpickler calls what a file names, sets attributes of what it finds, and makes room for
as much as the file says there will be. `Reader` knows the opcodes that tensors, numbers, text and
containers are written with, and no others. It calls the functions it is given, by their names, and
nothing else; it fills only containers that it made, and sets the attributes only of classes that
the user allowed and of `OrderedDict`, which a `state_dict` is. What a file makes it keep is never
longer than the file.

Note [Keys]
    A key is hashed, and Python hashes a tuple anew, and all that stands in it, each time it is
    asked. A few bytes can name a tuple whose hash takes a year, or one so deep that it crashes.
    So a tuple is a key only up to a size that no honest one has.
"""

from __future__ import annotations

import pickle
import struct
from collections import OrderedDict
from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any, Final

_LARGEST_KEY: Final = 1000  # see Note [Keys]
_DIGITS: Final = 4000


class Reader:
    """A pickle, read once. `find` gives what a file may name; `memory` what it refers to beside
    itself; `allowed` are the classes and functions that the user lets it name."""

    def __init__(
        self, data: bytes, find: Callable[[str], Any], memory: Callable[[Any], Any],
        calls: list[Any], allowed: list[Any], encoding: str = "utf-8", at: int = 0,
    ) -> None:  # fmt: skip
        self.data = data
        self.at = at
        self.encoding = encoding  # of texts that Python 2 wrote
        self.find = find
        self.memory = memory
        self.calls = calls
        self.allowed = allowed
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []  # what was there before each mark
        self.memo: dict[int, Any] = {}

    def load(self) -> Any:
        """The object that was pickled."""
        while True:
            code = self.take(1)
            if code == pickle.STOP:
                return self.pop()
            rule = _RULES.get(code)
            if rule is None:
                raise UnpicklingError(f"Unsupported operand {code[0]}")
            rule(self)

    # --- its bytes ------------------------------------------------------------------------------
    def take(self, n: int) -> bytes:
        at = self.at
        if n < 0 or n > len(self.data) - at:
            raise UnpicklingError("pickle data was truncated")
        self.at = at + n
        return self.data[at : at + n]

    def line(self) -> str:
        end = self.data.find(b"\n", self.at)
        if end < 0:
            raise UnpicklingError("pickle data was truncated")
        found = self.data[self.at : end]
        self.at = end + 1
        return found.decode("utf-8")

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    # --- its stack ------------------------------------------------------------------------------
    def push(self, x: Any) -> None:
        self.stack.append(x)

    def pop(self) -> Any:
        if not self.stack:
            raise UnpicklingError("unexpected end of the stack")
        return self.stack.pop()

    def top(self) -> Any:
        if not self.stack:
            raise UnpicklingError("unexpected end of the stack")
        return self.stack[-1]

    def since_mark(self) -> list[Any]:
        if not self.below:
            raise UnpicklingError("could not find MARK")
        found = self.stack
        self.stack = self.below.pop()
        return found

    def remembered(self, key: int) -> Any:
        if key not in self.memo:
            raise UnpicklingError(f"Memo value not found at index {key}")
        return self.memo[key]

    # --- what it may do -------------------------------------------------------------------------
    def may(self, x: Any, among: list[Any]) -> bool:
        return any(x is known for known in among)

    def is_users(self, x: Any) -> bool:
        """Whether `x` is an object of a class that the user allowed."""
        return self.may(type(x), self.allowed)

    def call(self, fn: Any, args: Any) -> Any:
        if not self.may(fn, self.calls) and not self.may(fn, self.allowed):
            raise UnpicklingError(
                f"Trying to call reduce for unrecognized function {type(fn).__name__}"
            )
        if type(args) is not tuple:
            raise UnpicklingError("the arguments of a call are no tuple")
        return fn(*args)

    def new(self, cls: Any, args: Any, options: dict[str, Any]) -> Any:
        if not self.may(cls, self.allowed) or not isinstance(cls, type):
            raise UnpicklingError(
                f"Trying to create new object for unallowed class {type(cls).__name__}"
            )
        return cls.__new__(cls, *args, **options)

    def put(self, there: Any, items: list[Any]) -> None:
        """Enter keys and values, one after the other, in a dictionary."""
        if not isinstance(there, dict) and not self.is_users(there):
            raise UnpicklingError(f"Can only SETITEMS for dict, but got {type(there).__name__}")
        if len(items) % 2:
            raise UnpicklingError("odd number of items for SETITEMS")
        for at in range(0, len(items), 2):
            there[hashable_key(items[at])] = items[at + 1]

    def extend(self, there: Any, items: list[Any]) -> None:
        if type(there) is list:
            there.extend(items)
        elif self.is_users(there):
            for x in items:
                there.append(x)
        else:
            raise UnpicklingError(f"Can only APPENDS to lists, but got {type(there).__name__}")

    def build(self, x: Any, state: Any) -> None:
        """Set the attributes of what was made."""
        if type(x) is OrderedDict:
            fill(vars(x), state)
            return
        if not self.is_users(x):
            raise UnpicklingError(
                "Can only build OrderedDict or types allowlisted via "
                f"`add_safe_globals`, but got {type(x).__name__}"
            )
        if hasattr(x, "__setstate__"):
            x.__setstate__(state)
            return
        slots = None
        if type(state) is tuple and len(state) == 2:
            state, slots = state
        if state is not None:
            fill(vars(x), state)
        for key, value in (slots or {}).items():
            setattr(x, key, value)


def fill(attributes: dict[str, Any], state: Any) -> None:
    if type(state) is not dict or not all(type(key) is str for key in state):
        raise UnpicklingError("the attributes of an object are no dictionary of names")
    attributes.update(state)


def hashable_key(x: Any) -> Any:
    """A key or member of a set, if it is one that can be hashed. See Note [Keys]."""
    if not isinstance(x, tuple):
        return x
    seen = 0
    parts: list[Any] = [x]
    while parts:
        part = parts.pop()
        seen += len(part)
        if seen > _LARGEST_KEY:
            raise UnpicklingError("a tuple is too large to be a key")
        parts.extend(inner for inner in part if isinstance(inner, tuple))
        seen += sum(1 for inner in part if isinstance(inner, tuple))
    return x


def integer(text: str) -> int:
    if len(text) > _DIGITS:
        raise UnpicklingError("a number has too many digits")
    return int(text)


# --- opcodes --------------------------------------------------------------------------------------
_RULES: Final[dict[bytes, Callable[[Reader], None]]] = {}


def _rule(*codes: bytes) -> Callable[[Callable[[Reader], None]], Callable[[Reader], None]]:
    def enter(rule: Callable[[Reader], None]) -> Callable[[Reader], None]:
        for code in codes:
            _RULES[code] = rule
        return rule

    return enter


def _constant(code: bytes, make: Callable[[], Any]) -> None:
    _RULES[code] = lambda r: r.push(make())


for _code, _make in (
    (pickle.NONE, lambda: None), (pickle.NEWTRUE, lambda: True), (pickle.NEWFALSE, lambda: False),
    (pickle.EMPTY_TUPLE, tuple), (pickle.EMPTY_LIST, list), (pickle.EMPTY_DICT, dict),
    (pickle.EMPTY_SET, set),
):  # fmt: skip
    _constant(_code, _make)


def _packed(code: bytes, form: str) -> None:
    _RULES[code] = lambda r: r.push(r.number(form))


for _code, _form in (
    (pickle.BININT, "<i"), (pickle.BININT1, "<B"), (pickle.BININT2, "<H"),
    (pickle.BINFLOAT, ">d"),
):  # fmt: skip
    _packed(_code, _form)


def _sized(code: bytes, form: str, make: Callable[[bytes], Any]) -> None:
    _RULES[code] = lambda r: r.push(make(r.take(r.number(form))))


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogatepass")


def _long(raw: bytes) -> int:
    return int.from_bytes(raw, "little", signed=True)


for _code, _form, _of in (
    (pickle.LONG1, "<B", _long), (pickle.LONG4, "<i", _long),
    (pickle.SHORT_BINUNICODE, "<B", _text), (pickle.BINUNICODE, "<I", _text),
    (pickle.BINUNICODE8, "<Q", _text),
    (pickle.SHORT_BINBYTES, "<B", bytes), (pickle.BINBYTES, "<I", bytes),
    (pickle.BINBYTES8, "<Q", bytes), (pickle.BYTEARRAY8, "<Q", bytearray),
):  # fmt: skip
    _sized(_code, _form, _of)


@_rule(pickle.SHORT_BINSTRING)
def _short_string(r: Reader) -> None:
    _string(r, r.take(r.number("<B")))


@_rule(pickle.BINSTRING)
def _long_string(r: Reader) -> None:
    _string(r, r.take(r.number("<i")))


def _string(r: Reader, raw: bytes) -> None:
    r.push(raw if r.encoding == "bytes" else raw.decode(r.encoding, "strict"))


@_rule(pickle.PROTO)
def _proto(r: Reader) -> None:
    if r.take(1)[0] > 5:
        raise UnpicklingError("the pickle is of a protocol that is not known")


@_rule(pickle.FRAME)
def _frame(r: Reader) -> None:
    r.take(8)  # how long the next frame is: all of it is there already


@_rule(pickle.INT)
def _int(r: Reader) -> None:
    text = r.line()
    r.push({"00": False, "01": True}[text] if text in ("00", "01") else integer(text))


@_rule(pickle.LONG)
def _long_text(r: Reader) -> None:
    r.push(integer(r.line().rstrip("L")))


@_rule(pickle.FLOAT)
def _float(r: Reader) -> None:
    r.push(float(r.line()))


@_rule(pickle.UNICODE)
def _unicode(r: Reader) -> None:
    r.push(r.line().encode("latin-1", "backslashreplace").decode("raw-unicode-escape"))


# --- the stack, and what is remembered
@_rule(pickle.MARK)
def _mark(r: Reader) -> None:
    r.below.append(r.stack)
    r.stack = []


@_rule(pickle.POP)
def _pop(r: Reader) -> None:
    if r.stack:
        r.stack.pop()
    else:
        r.since_mark()


@_rule(pickle.POP_MARK)
def _pop_mark(r: Reader) -> None:
    r.since_mark()


@_rule(pickle.DUP)
def _dup(r: Reader) -> None:
    r.push(r.top())


@_rule(pickle.PUT)
def _put(r: Reader) -> None:
    r.memo[integer(r.line())] = r.top()


@_rule(pickle.BINPUT)
def _binput(r: Reader) -> None:
    r.memo[r.number("<B")] = r.top()


@_rule(pickle.LONG_BINPUT)
def _long_binput(r: Reader) -> None:
    r.memo[r.number("<I")] = r.top()


@_rule(pickle.MEMOIZE)
def _memoize(r: Reader) -> None:
    r.memo[len(r.memo)] = r.top()


@_rule(pickle.GET)
def _get(r: Reader) -> None:
    r.push(r.remembered(integer(r.line())))


@_rule(pickle.BINGET)
def _binget(r: Reader) -> None:
    r.push(r.remembered(r.number("<B")))


@_rule(pickle.LONG_BINGET)
def _long_binget(r: Reader) -> None:
    r.push(r.remembered(r.number("<I")))


# --- containers
def _tuple_of(n: int) -> Callable[[Reader], None]:
    def make(r: Reader) -> None:
        parts = [r.pop() for _ in range(n)]
        r.push(tuple(reversed(parts)))

    return make


for _n, _code in enumerate((pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3)):
    _RULES[_code] = _tuple_of(_n + 1)


@_rule(pickle.TUPLE)
def _tuple(r: Reader) -> None:
    items = r.since_mark()
    r.push(tuple(items))


@_rule(pickle.LIST)
def _list(r: Reader) -> None:
    items = r.since_mark()
    r.push(items)


@_rule(pickle.DICT)
def _dict(r: Reader) -> None:
    items = r.since_mark()
    made: dict[Any, Any] = {}
    r.put(made, items)
    r.push(made)


@_rule(pickle.FROZENSET)
def _frozenset(r: Reader) -> None:
    items = r.since_mark()
    r.push(frozenset(hashable_key(x) for x in items))


@_rule(pickle.APPEND)
def _append(r: Reader) -> None:
    item = r.pop()
    r.extend(r.top(), [item])


@_rule(pickle.APPENDS)
def _appends(r: Reader) -> None:
    items = r.since_mark()
    r.extend(r.top(), items)


@_rule(pickle.SETITEM)
def _setitem(r: Reader) -> None:
    value, key = r.pop(), r.pop()
    r.put(r.top(), [key, value])


@_rule(pickle.SETITEMS)
def _setitems(r: Reader) -> None:
    items = r.since_mark()
    r.put(r.top(), items)


@_rule(pickle.ADDITEMS)
def _additems(r: Reader) -> None:
    items = r.since_mark()
    if type(r.top()) is not set:
        raise UnpicklingError("Can only ADDITEMS to sets")
    r.top().update(hashable_key(x) for x in items)


# --- calls
@_rule(pickle.GLOBAL)
def _global(r: Reader) -> None:
    module, name = r.line(), r.line()
    r.push(r.find(f"{module}.{name}"))


@_rule(pickle.STACK_GLOBAL)
def _stack_global(r: Reader) -> None:
    name, module = r.pop(), r.pop()
    if type(name) is not str or type(module) is not str:
        raise UnpicklingError("STACK_GLOBAL requires str")
    r.push(r.find(f"{module}.{name}"))


@_rule(pickle.REDUCE)
def _reduce(r: Reader) -> None:
    args, fn = r.pop(), r.pop()
    r.push(r.call(fn, args))


@_rule(pickle.NEWOBJ)
def _newobj(r: Reader) -> None:
    args, cls = r.pop(), r.pop()
    r.push(r.new(cls, args, {}))


@_rule(pickle.NEWOBJ_EX)
def _newobj_ex(r: Reader) -> None:
    options, args, cls = r.pop(), r.pop(), r.pop()
    r.push(r.new(cls, args, options))


@_rule(pickle.BUILD)
def _build(r: Reader) -> None:
    state = r.pop()
    r.build(r.top(), state)


@_rule(pickle.BINPERSID)
def _binpersid(r: Reader) -> None:
    r.push(r.memory(r.pop()))
