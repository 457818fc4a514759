"""The code of PyTorch's notes and tutorials on autograd does here what it does there.

The scripts stand in the files `cases_notes_*.py`; what PyTorch does is stored, and asked live where
it is installed.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import pytest

from tests.autograd import (
    cases_notes_extending,
    cases_notes_func,
    cases_notes_hooks,
    cases_notes_mechanics,
    cases_notes_training,
)
from tests.harness import LIBRARIES, stored

BANKS = {
    "mechanics": cases_notes_mechanics.cases,
    "hooks": cases_notes_hooks.cases,
    "training": cases_notes_training.cases,
    "func": cases_notes_func.cases,
    "extending": cases_notes_extending.cases,
}
SCRIPTS = [(name, key) for name, bank in BANKS.items() for key in bank]
STORED = {name: stored(f"autograd/notes_{name}") for name in BANKS}


def agree(want: Any, got: Any) -> bool:
    """Equal, to the last digits of floats; an error may go on after PyTorch's first words."""
    if isinstance(want, float) or isinstance(got, float):
        return (want != want and got != got) or abs(want - got) <= 1e-4 * (1 + abs(want))
    if isinstance(want, str) and isinstance(got, str) and "Error: " in want:
        return got[:80] == want[:80]
    if isinstance(want, list) and isinstance(got, list):
        return len(want) == len(got) and all(map(agree, want, got))
    if isinstance(want, dict) and isinstance(got, dict):
        return want.keys() == got.keys() and all(agree(want[k], got[k]) for k in want)
    return bool(want == got)


def test_every_script_is_stored_and_runs_to_its_end() -> None:
    for name, bank in BANKS.items():
        assert STORED[name].keys() == bank.keys()
        for key, events in STORED[name].items():
            assert all(event[:1] != ["raised"] for event in events), key


@pytest.mark.parametrize("module", LIBRARIES)
@pytest.mark.parametrize(("name", "key"), SCRIPTS, ids=[key for _, key in SCRIPTS])
def test_as_pytorch(name: str, key: str, module: str) -> None:
    library = importlib.import_module(module)
    importlib.import_module(module + ".utils.checkpoint")
    got, want = BANKS[name].run(library, key), STORED[name][key]
    for mine, theirs in zip(got, want):
        assert agree(theirs, mine), f"PyTorch {theirs}\nhere    {mine}"
    assert len(got) == len(want)
