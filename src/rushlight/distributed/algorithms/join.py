"""`Join`: training where processes have different numbers of batches.

A process that has run out of batches would leave the others waiting for its part in the next
average. Inside `Join` it keeps answering, with nothing to add, until all have run out.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, NamedTuple

from rushlight.ops.registry import functions

__all__ = ["Join", "JoinHook", "Joinable"]
__dir__ = __all__.copy

_MANY = 1000  # iterations that a process waits for others before it says so


class JoinHook:
    """JoinHook(): what a process does while others still have inputs. Inherit from it."""

    def main_hook(self) -> None:
        """Called again and again while some process still has inputs: take part in the
        communication of one of its iterations."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Called once when all processes have run out.

        Args:
            is_last_joiner: whether this process was among the last.
        """


class _JoinConfig(NamedTuple):
    """What the `with Join(...)` around it tells a joinable."""

    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool

    @staticmethod
    def construct_disabled_join_config() -> _JoinConfig:
        """Outside of any `Join`."""
        return _JoinConfig(False, False, False)


class Joinable(ABC):
    """Joinable(): what `Join` works with: a thing that communicates once in every iteration.

    It calls `Join.notify_join_context(self)` before that.
    """

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = _JoinConfig.construct_disabled_join_config()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook for one `with Join(...)`, which hands its keyword arguments on."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """The device of the tensors that `Join` itself sends."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The processes that take part."""


class Join:
    """Join(joinables, enable=True, throw_on_early_termination=False, **kwargs)

    `with Join([model]):` around a training loop lets processes have different numbers of batches.

    Args:
        joinables: what communicates in the loop: models, optimizers.
        enable: False does nothing, for when all have equally many.
        throw_on_early_termination: raise an error everywhere when the first process runs out.
        kwargs: handed to the `join_hook` of each.
    """

    def __init__(
        self, joinables: list[Joinable], enable: bool = True,
        throw_on_early_termination: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        from rushlight import distributed as dist

        if len(joinables) == 0:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables = joinables
        self._join_hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        self._enable = enable
        self._throw_on_early_termination = throw_on_early_termination
        for at, joinable in enumerate(joinables):
            joinable._join_config = _JoinConfig(enable, throw_on_early_termination, at == 0)
        self._process_group = joinables[0].join_process_group
        if any(joinable.join_process_group != self._process_group for joinable in joinables):
            raise ValueError("Using join context manager with multiple process groups")
        self._rank = dist.get_rank(self._process_group)
        self._device = joinables[0].join_device

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, type: type[BaseException] | None, value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:  # fmt: skip
        if not self._enable or type is not None:
            return
        rounds = 0
        while self._sum_over_processes(0.0) != 0:
            if rounds == _MANY + 1:
                warnings.warn(
                    f"Detected uneven input skew of greater than {_MANY}. This means that rank "
                    f"{self._rank} has at least {_MANY} fewer inputs than other currently-active "
                    "ranks. This level of skew could lead to performance degradation during "
                    "training.",
                    stacklevel=2,
                )
            if self._throw_on_early_termination:
                self._sum_over_processes(1.0)  # the others add 0, and learn that one ran out
                raise RuntimeError(f"Rank {self._rank} exhausted all inputs.")
            for hook in self._join_hooks:
                hook.main_hook()
            rounds += 1
        for hook in self._join_hooks:
            hook.post_hook(rounds == 0)

    def _sum_over_processes(self, mine: float) -> float:
        """A number of each process, added up. Those that have inputs give 1 at this place: see
        `notify`."""
        from rushlight import distributed as dist

        total = functions["full"]((1,), mine, device=self._device)
        dist.all_reduce(total, group=self._process_group)
        return float(total.item())

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Any:
        """Say that this process still has inputs; a joinable calls it before it communicates.

        Returns what to wait for, or None where another joinable has said so, or outside of `Join`.
        """
        if not hasattr(joinable, "_join_config"):
            raise AssertionError(
                f"Check that the {type(joinable)} constructor calls the ``Joinable`` constructor"
            )
        told = notify(joinable)
        return None if told is None else told[0]


def notify(joinable: Joinable) -> tuple[Any, Any] | None:
    """`Join.notify_join_context`, which also returns the tensor that will hold the number of
    processes that have inputs."""
    from rushlight import distributed as dist

    config = joinable._join_config
    if not config.is_first_joinable or not config.enable:
        return None
    place, group = joinable.join_device, joinable.join_process_group
    alive = functions["ones"](1, device=place)
    work = dist.all_reduce(alive, group=group, async_op=True)
    if config.throw_on_early_termination:
        exhausted = functions["zeros"](1, device=place)
        dist.all_reduce(exhausted, group=group)
        if exhausted.item():
            raise RuntimeError(
                "Detected at least one rank that exhausted inputs. Throwing across all ranks."
            )
    return work, alive
