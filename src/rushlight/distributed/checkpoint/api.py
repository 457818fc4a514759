"""`CheckpointException`: what failed, on which ranks."""

from __future__ import annotations

import traceback

__all__ = ["CheckpointException"]
__dir__ = __all__.copy

Failure = tuple[BaseException, traceback.StackSummary]


class CheckpointException(BaseException):
    """A save or a load failed on some rank; raised on all of them.

    `failures` has the error of each rank that failed, and where it was raised.
    """

    def __init__(self, msg: str, failures: dict[int, Failure]) -> None:
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict[int, Failure]:
        """By rank: the error, and the calls that led to it."""
        return self._failures

    def __str__(self) -> str:
        text = f"CheckpointException ranks:{self._failures.keys()}\n"
        for rank, (error, calls) in self._failures.items():
            text += f"Traceback (most recent call last): (RANK {rank})\n"
            text += "".join(traceback.format_list(calls))
            text += "".join(traceback.format_exception_only(type(error), error))
        return text
