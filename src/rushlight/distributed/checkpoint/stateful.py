"""`Stateful`: anything that can say what it remembers, and take it back."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable

__all__ = ["Stateful", "StatefulT"]
__dir__ = __all__.copy


@runtime_checkable
class Stateful(Protocol):
    """An object with `state_dict` and `load_state_dict`: a module, an optimiser, a scheduler.

    `checkpoint.save` asks such a value of a state dict for its state; `checkpoint.load` asks for
    it too, reads into the tensors it was given, and hands it back.

    >>> from rushlight.distributed.checkpoint.stateful import Stateful
    >>> isinstance(torch.nn.Linear(1, 1), Stateful), isinstance({}, Stateful)
    (True, False)
    """

    def state_dict(self) -> dict[str, Any]:
        """What is remembered, as a dictionary."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Remember this."""
        ...


StatefulT = TypeVar("StatefulT", bound=Stateful)
