"""What mypyc wants to be told, without a run-time dependency: `i64` and `mypyc_attr`.

mypyc knows both by where they are defined, mypy_extensions, which only builds and type checks
have. At run time they say nothing: an i64 is an int, and mypyc_attr leaves a class as it is. This
file must stay interpreted (compiled, the branch that is not type-checked would raise). The modules
of `core` import it; it imports nothing of rushlight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_extensions import i64 as i64
    from mypy_extensions import mypyc_attr as mypyc_attr
else:
    i64 = int

    def mypyc_attr(*names, **values):
        return lambda cls: cls


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
