"""`with rushlight.why.watching():` what was done with tensors, and what each backward pass did.

A `TorchFunctionMode` sees every public call with the user's own tensors, and a `PassObserver` every
node. What is kept are short notes: no tensor is kept alive, and of backward passes the last ones.
Programs that never watch pay nothing; see Note [Overrides] in `ops.overriding` for what is paid
from the first block on.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from typing import Any, Final, NamedTuple, Self

from rushlight.core.engine.observers import PassObserver, observe, stop_observing
from rushlight.core.grad_mode import grad_enabled, inference_enabled
from rushlight.core.graph import TensorBase, here
from rushlight.ops.overriding import public_name
from rushlight.overrides import TorchFunctionMode
from rushlight.reasons.flow import Turn, edges, turn_of
from rushlight.trees import tree_leaves

PASSES: Final = 3  # that are remembered
EVENTS: Final = 200_000
NUMBERS: Final = {"item", "tolist", "numpy", "__float__", "__int__", "__bool__", "__array__"}


class Event(NamedTuple):
    """A call: the numbers of the tensors that went in and came out."""

    name: str
    place: str
    ins: tuple[int, ...]
    asked: tuple[bool, ...]  # which of them asked for gradients
    outs: tuple[int, ...]
    gives: tuple[bool, ...]
    off: str  # 'no_grad' or 'inference_mode', if recording was off
    kind: str  # of dtype that came out: 'f', 'i'


class Seen(PassObserver):
    """One pass as it goes on."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self.turns: list[Turn] = []
        self.g: Any = None
        log.passes.append(self.turns)

    def before_rule(self, node: Any, g: Any) -> None:
        self.g = list(g) if isinstance(g, list) else [g]

    def after_node(self, node: Any, outs: Any) -> None:
        self.turns.append(turn_of(node, self.g, edges(node, outs)))


class Log(TorchFunctionMode):
    """What was seen."""

    def __init__(self) -> None:
        self.events: deque[Event] = deque(maxlen=EVENTS)
        self.passes: deque[list[Turn]] = deque(maxlen=PASSES)
        self.known: dict[int, tuple[Any, int]] = {}  # id -> weak reference, number
        self.count = 0
        self.thread = 0

    def __enter__(self) -> Self:
        global last
        last = self
        self.thread = threading.get_ident()
        observe(self.begin)
        super().__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        stop_observing(self.begin)

    def begin(self) -> PassObserver | None:
        return Seen(self) if threading.get_ident() == self.thread else None

    # --- calls ----------------------------------------------------------------------------------
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = [t for t in tree_leaves((args, kwargs or {})) if isinstance(t, TensorBase)]
        ins = tuple(map(self.number, given))
        asked = tuple(bool(t.requires_grad) for t in given)  # type: ignore[attr-defined]
        result = func(*args, **(kwargs or {}))
        name = short_name(func)
        made = [t for t in tree_leaves(result) if isinstance(t, TensorBase)]
        if not name.endswith("__get__") or name == "data.__get__":
            off = "" if grad_enabled() else "inference_mode" if inference_enabled() else "no_grad"
            kinds = {"f" if t._array.dtype.kind in "fcVW" else "i" for t in made}
            self.events.append(
                Event(
                    name, str(here()), ins, asked, tuple(map(self.number, made)),
                    tuple(bool(t.requires_grad) for t in made),  # type: ignore[attr-defined]
                    off, "i" if kinds == {"i"} else "f",
                )
            )  # fmt: skip
        return result

    def number(self, t: Any) -> int:
        """A number for a tensor, which no other tensor gets."""
        found = self.known.get(id(t))
        if found is not None and found[0]() is t:
            return found[1]
        self.count += 1
        self.known[id(t)] = (weakref.ref(t), self.count)
        return self.count

    def number_of(self, t: Any) -> int:
        """The number of a tensor that was seen; 0 if it was not."""
        found = self.known.get(id(t))
        return found[1] if found is not None and found[0]() is t else 0

    # --- what became of a tensor ------------------------------------------------------------------
    def flow(self, start: int) -> tuple[set[int], list[Event]]:
        """The tensors computed from one, and the calls that did it."""
        reached, found = {start}, []
        for event in self.events:
            if any(n in reached for n in event.ins):
                found.append(event)
                reached.update(event.outs)
        return reached, found

    def leads_to(self, goal: int) -> set[int]:
        """The tensors that one was computed from."""
        found = {goal}
        for event in reversed(self.events):
            if any(n in found for n in event.outs):
                found.update(event.ins)
        return found

    def cuts(self, start: int, goal: int) -> list[tuple[str, Event]]:
        """Where a tensor's value went on without its history: kind of cut, and the call. With a
        `goal`, only what that was computed from; numbers that left the tensors come last."""
        _, calls = self.flow(start)
        towards = self.leads_to(goal) if goal else None
        found, numbers = [], []
        for event in calls:
            if not any(event.asked) or any(event.gives):
                continue
            kind = kind_of_cut(event)
            if kind in ("item", "numpy"):
                numbers.append((kind, event))
            elif kind and (towards is None or any(n in towards for n in event.outs)):
                found.append((kind, event))
        return found + numbers

    def backward_of(self) -> list[Event]:
        """The calls of `backward`, last first."""
        return [e for e in reversed(self.events) if e.name == "backward"]


last: Log | None = None


def short_name(func: Any) -> str:
    """A function's name; that of a property's getter is 'data.__get__'."""
    name: str = getattr(func, "__name__", "")
    if name not in ("__get__", "__set__"):
        return name
    owner = func.__self__
    if owner not in _names:
        _names[owner] = public_name(func).split(".")[-2]
    return f"{_names[owner]}.{name}"


_names: Final[dict[Any, str]] = {}


def kind_of_cut(event: Event) -> str:
    """How a call left the graph; "" if it does not give what its inputs were."""
    if event.name in NUMBERS:
        return "numpy" if event.name in ("numpy", "__array__") else "item"
    if not event.outs or event.name.endswith("__set__"):
        return ""
    if event.name in ("detach", "detach_"):
        return "detach"
    if event.name.startswith("data."):
        return "data"
    if event.off:
        return event.off
    return "integer" if event.kind == "i" else "other"
