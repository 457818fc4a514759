"""utils/data/_utils/collate.py does what PyTorch does: stored, and live where it is installed."""

from __future__ import annotations

import pytest

import rushlight
import rushlight.utils.data
from rushlight.ops.registry import functions
from tests.harness import LIVE, agree, as_stored, pytorch, stored
from tests.utils.data._utils.cases_collate import cases

STORED = stored("utils/data/_utils/collate")


def test_every_case_is_stored() -> None:
    assert STORED.keys() == cases.keys()


@pytest.mark.parametrize("name", cases)
def test_gives_what_is_stored(name: str) -> None:
    got = as_stored(cases.run(rushlight, name))
    assert agree(STORED[name], got), got


def test_samples_of_several_sizes_are_told_with_the_cure() -> None:
    t = rushlight
    loader = t.utils.data.DataLoader([t.zeros(2), t.zeros(3)], batch_size=2)
    with pytest.raises(RuntimeError) as error:
        list(loader)
    said, cure = str(error.value).splitlines()
    assert said == (
        "stack expects each tensor to be equal size, but got [2] at entry 0 and [3] at entry 1"
    )
    assert "`collate_fn`" in cure


@pytest.mark.parametrize("shape", [(), (2,)])
def test_plain_tensors_are_joined_without_an_op(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    t = rushlight
    batch = [t.full(shape, float(i), dtype=t.bfloat16) for i in range(3)]
    long = t.stack(batch)
    monkeypatch.delitem(functions, "stack")
    short = t.utils.data.default_collate(batch)
    assert short.dtype is t.bfloat16
    assert t.equal(short, long)


if LIVE:

    @pytest.mark.parametrize("name", cases)
    def test_gives_what_pytorch_gives(name: str) -> None:
        got = as_stored(cases.run(rushlight, name))
        assert agree(as_stored(cases.run(pytorch(), name)), got), got
