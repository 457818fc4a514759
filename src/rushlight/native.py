"""What mypyc wants to be told, without a run-time dependency: `i64` and `mypyc_attr`.

mypyc knows both by where they are defined, mypy_extensions, which only builds and type checks
have. At run time an i64 is an int, and mypyc_attr leaves a class as it is, but for tensors: what
compiled they keep in their struct, they keep in slots (`with_slots`). This file must stay
interpreted (compiled, the branch that is not type-checked would raise). The modules of `core`
import it; it imports nothing of rushlight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_extensions import i64 as i64
    from mypy_extensions import mypyc_attr as mypyc_attr
else:
    i64 = int

    def mypyc_attr(*names, **values):
        return lambda cls: with_slots(cls) if cls.__name__ == "TensorBase" else cls

    def with_slots(cls):
        """The class with a slot for each attribute that it declares: so `__dict__` of an instance
        holds what its user hung on it, and nothing else. Slots have no defaults: `__new__` fills
        them."""
        space = {k: x for k, x in vars(cls).items() if k not in ("__dict__", "__weakref__")}
        names = space["__slots__"] = tuple(space["__annotations__"])
        lines = [f"self.{k} = {space.pop(k)!r}" for k in names if k in space]
        code = "def __new__(cls): " + "; ".join(["self = new(cls)", *lines, "return self"])
        made = {"new": object.__new__}
        exec(code, made)
        space["__new__"] = made["__new__"]
        return type(cls)(cls.__name__, cls.__bases__, space)


def hide_internals() -> None:
    """Take from compiled classes the methods by which mypyc makes their instances: called from
    Python they would crash it. mypyc itself does not look for them by name."""
    found: list[Any] = [c for c in object.__subclasses__() if _is_core(c)]
    for cls in found:
        for name in ("__internal_mypyc_setup", "__mypyc_defaults_setup"):
            if name in vars(cls):
                delattr(cls, name)
        found.extend(c for c in type.__subclasses__(cls) if _is_core(c))


def _is_core(cls: type[Any]) -> bool:
    return str(cls.__module__).startswith("rushlight.core.")
