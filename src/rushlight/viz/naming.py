"""What the user calls things: names of leaves, of constants and of what ops made.

They come from `params` (a module, a dict, pairs), then from the variables of the functions that are
running, nearest first. A variable that holds a module gives names to its parameters.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from types import FrameType, ModuleType
from typing import Any

from rushlight.core.graph import Node, TensorBase
from rushlight.core.views.history import edge_of_view

_OWN = os.path.dirname(os.path.dirname(__file__)) + os.sep  # where the sources of rushlight are
_MOST = 200  # elements of a list or dict that are looked at


class Names:
    """The names found so far; the first name of a thing stays."""

    def __init__(self) -> None:
        self._tensors: dict[int, str] = {}
        self._arrays: dict[int, str] = {}
        self._outputs: dict[tuple[int, int], str] = {}
        self._modules: dict[int, tuple[str, ...]] = {}
        self._alive: list[Any] = []  # so that an id stays that of what it was taken of
        self.classes: dict[tuple[str, ...], str] = {}
        self.paths: dict[int, tuple[str, ...]] = {}  # id of a module -> its path

    # --- asking ---------------------------------------------------------------------------------
    def of_tensor(self, t: Any) -> str:
        """The name of a tensor, or ""."""
        return self._tensors.get(id(t), "")

    def of_array(self, array: Any) -> str:
        """The name of a tensor with this raw array, or ""."""
        return self._arrays.get(id(array), "")

    def of_output(self, node: Any, nr: int) -> str:
        """The name of what a node made, or ""."""
        return self._outputs.get((id(node), nr), "")

    def module_of(self, t: Any) -> tuple[str, ...]:
        """The path of the module that a parameter belongs to."""
        return self._modules.get(id(t), ())

    # --- telling --------------------------------------------------------------------------------
    def add(self, name: str, t: Any) -> None:
        """A tensor has a name."""
        if id(t) not in self._tensors:
            self._alive.append(t)
            self._tensors[id(t)] = name
        self._arrays.setdefault(id(t._array), name)
        edge = t._node if t._view is None else edge_of_view(t)
        if isinstance(edge, Node):
            self._outputs.setdefault((id(edge), int(t._output_nr)), name)

    def add_module(self, prefix: str, module: Any) -> None:
        """A module names its parameters and buffers, and what it consists of."""
        base = (prefix,) if prefix else ()
        self.paths.setdefault(id(module), base)
        for path, inner in module.named_modules():
            whole = base + tuple(path.split(".")) if path else base
            self.classes.setdefault(whole, type(inner).__name__)
            self.paths.setdefault(id(inner), whole)
            self._alive.append(inner)
        for path, t in [*module.named_parameters(), *module.named_buffers()]:
            if isinstance(t, TensorBase) and id(t) not in self._modules:
                self._modules[id(t)] = base + tuple(path.split(".")[:-1])
                self.add(f"{prefix}.{path}" if prefix else path, t)

    def add_params(self, params: Any) -> None:
        """What the caller gave: a module, a dict, or pairs of name and tensor."""
        if hasattr(params, "named_parameters"):
            self.add_module("", params)
            return
        pairs = params.items() if isinstance(params, Mapping) else params
        if not isinstance(pairs, Iterable):
            raise TypeError(
                "params is a module, a dict of tensors, or pairs of a name and a tensor, not "
                f"{type(params).__name__}"
            )
        for pair in pairs:
            if not (isinstance(pair, tuple) and len(pair) == 2):
                raise TypeError("params holds pairs of a name and a tensor or module")
            name, thing = pair
            if hasattr(thing, "named_parameters"):
                self.add_module(str(name), thing)
            elif isinstance(thing, TensorBase):
                self.add(str(name), thing)
                path = tuple(str(name).split(".")[:-1])
                if path:
                    self._modules.setdefault(id(thing), path)
            elif thing is not None:
                raise TypeError(f"params[{name!r}] is no tensor, but {type(thing).__name__}")

    def add_frames(self, frame: FrameType | None) -> None:
        """The variables of a function that is running, and of those that called it; not those of
        rushlight itself."""
        seen: set[int] = set()
        while frame is not None:
            if frame.f_code.co_filename.startswith(_OWN):
                frame = frame.f_back
                continue
            spaces: list[Mapping[str, Any]] = [frame.f_locals]
            if id(frame.f_globals) not in seen:
                seen.add(id(frame.f_globals))
                spaces.append(frame.f_globals)
            for space in spaces:
                self.add_variables(dict(space))
            frame = frame.f_back

    def add_variables(self, space: Mapping[str, Any]) -> None:
        """Tensors first, then modules, then what lies in lists, dicts and objects."""
        shown = [(n, x) for n, x in space.items() if isinstance(n, str) and not n.startswith("_")]
        for name, thing in shown:
            if isinstance(thing, TensorBase):
                self.add(name, thing)
        for name, thing in shown:
            if _is_module(thing) and id(thing) not in self.paths:
                self.add_module(name, thing)
        for name, thing in shown:
            for inner, t in _parts(name, thing):
                self.add(inner, t)


def _is_module(thing: Any) -> bool:
    return hasattr(type(thing), "named_parameters") and hasattr(type(thing), "named_modules")


def _parts(name: str, thing: Any) -> list[tuple[str, Any]]:
    """The tensors in a list, a dict or an object of a class of the user's."""
    found: list[tuple[str, Any]] = []
    if type(thing) in (list, tuple):
        found = [(f"{name}[{i}]", t) for i, t in enumerate(thing[:_MOST])]
    elif type(thing) is dict:
        found = [(f"{name}[{k!r}]", t) for k, t in list(thing.items())[:_MOST]]
    elif not isinstance(thing, (TensorBase, type, ModuleType)) and not _is_module(thing):
        inside = getattr(thing, "__dict__", None)
        if type(inside) is dict and not str(type(thing).__module__).startswith("rushlight"):
            found = [(f"{name}.{k}", t) for k, t in list(inside.items())[:_MOST]]
    return [(text, t) for text, t in found if isinstance(t, TensorBase)]
