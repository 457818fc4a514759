"""Names in pickles: files speak of `torch.nn.modules.linear.Linear`, whoever wrote them.

Python pickles a class or a function as the names of its module and of itself. What `save` writes is
spelt as PyTorch spells it, and what a file says is looked up here, so that either library reads the
other's files.
"""

from __future__ import annotations

import importlib
from typing import Any, Final

from rushlight.missing import advice

_OURS: Final = "rushlight"
_THEIRS: Final = "torch"
_REBUILD: Final = "rushlight.serialization.rebuild"

# Where PyTorch has what stands in these modules of ours.
_HOMES: Final = {
    "rushlight.dtypes": "torch",
    "rushlight.size": "torch",
    "rushlight.arrays.device": "torch",
    "rushlight.tensor": "torch",
    "rushlight.storage_types": "torch",
    "rushlight.random.generator": "torch._C",
    **{
        f"rushlight.distributions.transforms.{part}": "torch.distributions.transforms"
        for part in ("combined", "elementwise", "events", "transform")
    },
    _REBUILD: "torch._utils",
}
_SINGLE: Final = {
    (_REBUILD, "_rebuild_from_type_v2"): ("torch._tensor", "_rebuild_from_type_v2"),
    (_REBUILD, "_get_layout"): ("torch.serialization", "_get_layout"),
    ("rushlight.dtypes", "bool_"): ("torch", "bool"),
}
_SINGLE_BACK: Final = {theirs: ours for ours, theirs in _SINGLE.items()}
# Modules of PyTorch's that are not written in Python, and where their names stand here.
_COMPILED: Final = {"torch._C": "rushlight", "torch._C._nn": "rushlight.nn.functional"}


def is_ours(module: Any) -> bool:
    """Whether a module's name is that of rushlight, or of a part of it."""
    return isinstance(module, str) and (module == _OURS or module.startswith(_OURS + "."))


def theirs(module: str, name: str) -> tuple[str, str]:
    """How PyTorch spells what stands as `name` in a module of ours.

    >>> theirs("rushlight.nn.modules.linear", "Linear"), theirs("rushlight.dtypes", "float32")
    (('torch.nn.modules.linear', 'Linear'), ('torch', 'float32'))
    """
    if not is_ours(module):
        return module, name
    if (module, name) in _SINGLE:
        return _SINGLE[module, name]
    if module in _HOMES:
        return _HOMES[module], name
    return _THEIRS + module.removeprefix(_OURS), name


def ours(module: str, name: str) -> Any:
    """What a file means by a name of PyTorch's. Raises AttributeError if rushlight lacks it.

    >>> ours("torch.nn.modules.linear", "Linear")
    <class 'rushlight.nn.modules.linear.Linear'>
    """
    if name == "_VariableFunctionsClass":  # PyTorch refers to `torch.sin` as an attribute of it
        return importlib.import_module(_OURS)
    if (module, name) in _SINGLE_BACK:
        module, name = _SINGLE_BACK[module, name]
    elif module in _COMPILED:
        module = _COMPILED[module]
    else:
        module = _OURS + module.removeprefix(_THEIRS)
    home = module
    while home:
        found = _in_module(home, name)
        if found is not None:
            return found
        # PyTorch may have it in another file of the same package
        home = "" if name.startswith("_") else home.rpartition(".")[0]
    where = _THEIRS + module.removeprefix(_OURS)
    more = advice(where, name, ()) or advice(where.rpartition(".")[0], name, ())
    raise AttributeError(
        f"Can't get attribute {name!r} on {where!r}: rushlight has no such name"
        + (f"\n{more}" if more else "")
    )


def _in_module(home: str, name: str) -> Any:
    try:
        found: Any = importlib.import_module(home)
    except ModuleNotFoundError as error:
        if error.name is None or not (home == error.name or home.startswith(error.name + ".")):
            raise
        return None
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def is_theirs(module: str) -> bool:
    """Whether a module's name is that of PyTorch, or of a part of it."""
    return module == _THEIRS or module.startswith(_THEIRS + ".")


# --- pickles --------------------------------------------------------------------------------------
def respell(data: bytes, named: set[tuple[str, str]], protocol: int) -> bytes:
    """A pickle with the names of ours spelt as PyTorch spells them.

    `named` are those that the pickler was given. In the older protocols each stands in the pickle
    once, in lines of text: if it does, it is replaced there. Where the same text is part of what
    was pickled, or the protocol has names on its stack, the pickle is gone through code by code.
    """
    if protocol < 4:
        pairs = [(_lines(*pair), _lines(*theirs(*pair))) for pair in named]
        if all(data.count(old) == 1 for old, _ in pairs):
            for old, new in pairs:
                data = data.replace(old, new)
            return data
    return _respell_codes(data)


def _lines(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode()


def _respell_codes(data: bytes) -> bytes:
    """See `respell`. A name on the stack is dropped, and written as lines; so are frames, which say
    how long what follows is."""
    import pickletools  # slow to import, and wanted here alone

    parts: list[bytes] = []
    memo: dict[int, Any] = {}
    last: list[Any] = [None, None]  # the two newest texts
    steps = list(pickletools.genops(data))
    ends = [step[2] or 0 for step in steps[1:]] + [len(data)]
    for (code, given, start), end in zip(steps, ends, strict=True):
        part = data[start:end]
        what = code.name
        if what == "FRAME":
            continue
        if what.endswith(("UNICODE", "UNICODE8")):
            last = [last[1], given]
        elif what == "MEMOIZE":
            memo[len(memo)] = last[1]
        elif what in ("BINGET", "LONG_BINGET") and given in memo:
            last = [last[1], memo[given]]
        elif what == "GLOBAL":
            module, _, name = str(given).partition(" ")
            part = _lines(*theirs(module, name))
        elif what == "STACK_GLOBAL" and is_ours(last[0]):
            part = b"00" + _lines(*theirs(last[0], last[1]))
        parts.append(part)
    return b"".join(parts)
