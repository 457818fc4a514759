"""Blocks that are decorators too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rushlight.utils._contextlib import _DecoratorContextManager, _NoParamDecoratorContextManager

inside: list[int] = []


class Block(_DecoratorContextManager):
    def __enter__(self) -> None:
        inside.append(1)

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        inside.pop()


class Bare(_NoParamDecoratorContextManager, Block):
    pass


def test_functions_and_generators() -> None:
    @Block()
    def count(more: int) -> int:
        return len(inside) + more

    @Block()
    def steps() -> Iterator[int]:
        sent = yield len(inside)
        yield len(inside) + (sent or 0)

    assert count(1) == 2 and inside == []
    running: Any = steps()
    assert next(running) == 1 and inside == []  # between the steps it is left
    assert running.send(5) == 6 and list(running) == [] and inside == []


def test_without_brackets() -> None:
    @Bare
    def count() -> int:
        return len(inside)

    assert count() == 1 and inside == []
