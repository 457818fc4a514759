"""`Join` with a thing of one's own; with `DistributedDataParallel` see tests/nn/parallel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import rushlight as torch
from rushlight import distributed as dist
from rushlight.distributed.algorithms import Join, Joinable, JoinHook
from tests.helpers import raises


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """A group of this process only."""
    dist.init_process_group("gloo", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


class Counter(Joinable):
    """Counts its calls in all processes."""

    def __init__(self, group: Any = None) -> None:
        super().__init__()
        self.group = dist.group.WORLD if group is None else group
        self.count = torch.zeros(1)
        self.given: dict[str, Any] = {}
        self.ended: list[bool] = []

    def __call__(self) -> Any:
        work = Join.notify_join_context(self)
        self.count += 1
        return work

    def join_hook(self, **kwargs: Any) -> JoinHook:
        self.given = kwargs
        counter = self

        class Hook(JoinHook):
            def post_hook(self, is_last_joiner: bool) -> None:
                counter.ended.append(is_last_joiner)

        return Hook()

    @property
    def join_device(self) -> Any:
        return torch.device("cpu")

    @property
    def join_process_group(self) -> Any:
        return self.group


def test_hooks_get_what_was_given_and_are_told_of_the_end() -> None:
    first, second = Counter(), Counter()
    assert first() is None, "outside of any Join"
    with Join([first, second], answer=42):
        assert first() is not None and second() is None, "one of them speaks for both"
    assert first.given == {"answer": 42} and first.ended == second.ended == [True]


def test_disabled_it_does_nothing() -> None:
    counter = Counter()
    with Join([counter], enable=False):
        assert counter() is None
    assert counter.ended == []


def test_errors_go_through() -> None:
    counter = Counter()
    with pytest.raises(KeyError), Join([counter]):
        raise KeyError("mine")
    assert counter.ended == []


def test_what_it_refuses() -> None:
    raises(ValueError, "The join context manager requires at least one joinable", Join, [])
    other = Counter(dist.new_group([0]))
    raises(
        ValueError, "Using join context manager with multiple process groups", Join,
        [Counter(), other],
    )  # fmt: skip

    class Forgetful(Counter):
        def __init__(self) -> None:
            self.given = {}

    raises(AssertionError, "Check that the <class", Join.notify_join_context, Forgetful())
