"""In which module of a model an error was raised: a note under the error.

    RuntimeError: mat1 and mat2 shapes cannot be multiplied (5x2 and 3x4)
    The data has 2 features in its last dimension, and the weight takes 3.
    in model.encoder.layers[2].linear, where model is a Net
      Linear(in_features=3, out_features=4, bias=True)
      called with: float32 [5, 2]
      parameters: weight float32 [4, 3], bias float32 [4]

The error keeps its type and text.
"""

from __future__ import annotations

from typing import Any

from rushlight.core.graph import TensorBase
from rushlight.nn.parameter import is_lazy

_MANY = 8  # so many arguments or parameters are listed


class Note(str):
    """A note that knows of which module it speaks, so that the modules around can say more."""

    __slots__ = ("about", "outermost", "path")

    about: str  # the module in which the error was raised, and what it was called with
    outermost: Any  # the last module that the error has left
    path: str  # the way from that to the first


def say_where(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> None:
    """Say in a note on `error`, which is leaving `module`, where in the model it was raised.

    Errors of other types than Python's own may be signals between parts of a program: they get
    no note.
    """
    if type(error).__module__ != "builtins" or isinstance(error, RecursionError):
        return
    notes: list[str] = getattr(error, "__notes__", [])
    said = next((note for note in notes if type(note) is Note), None)
    if said is None:
        note = _note(_about(module, args, kwargs), module, "")
        error.add_note(note)
        return
    path = _way(module, said.outermost)
    if path is None or said.outermost is module:
        return  # not a part of this module: the note speaks of the model it is in
    notes[notes.index(said)] = _note(said.about, module, path + said.path)


def _note(about: str, outermost: Any, path: str) -> Note:
    kind = type(outermost).__name__
    name = f"model{path}, where model is a {kind}" if path else f"a {kind}"
    note = Note(f"in {name}\n{about}")
    note.about, note.outermost, note.path = about, outermost, path
    return note


def _way(module: Any, part: Any) -> str | None:
    """How to reach a part from a module, as one writes it: `.layers[2].linear`."""
    for name, found in module.named_modules():
        if found is part:
            steps = name.split(".") if name else []
            return "".join(f"[{s}]" if s.isdigit() else f".{s}" for s in steps)
    return None


def _about(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    given = [_kind(x) for x in args[:_MANY]]
    given += [f"{name}={_kind(x)}" for name, x in list(kwargs.items())[:_MANY]]
    lines = [_head(module), f"called with: {', '.join(given) or 'nothing'}"]
    parameters = [(name, p) for name, p in module._parameters.items() if p is not None]
    own = [f"{name} {_kind(p)}" for name, p in parameters[:_MANY]]
    if own:
        lines.append(f"parameters: {', '.join(own)}")
    return "\n".join(f"  {line}" for line in lines)


def _head(module: Any) -> str:
    """The module in one line."""
    try:
        extra = str(module.extra_repr())
    except Exception:  # of the user's, and about another matter: it must not hide the error
        extra = "..."
    return f"{type(module).__name__}({extra if chr(10) not in extra else '...'})"


def _kind(x: Any) -> str:
    """A value as far as it matters here: a tensor's dtype and shape, or a type."""
    if is_lazy(x):
        return repr(x)
    if isinstance(x, TensorBase):
        tensor: Any = x
        return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"
    if isinstance(x, (tuple, list)) and 0 < len(x) <= _MANY:
        return f"{type(x).__name__} of ({', '.join(_kind(part) for part in x)})"
    return type(x).__name__
