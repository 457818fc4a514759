"""The code of PyTorch's notes and tutorials on autograd does here what it does there.

The scripts stand in the files `notes_*.py`; what `reference/make_notes.py` stored is PyTorch's, and
is checked live where it is installed.
"""

from __future__ import annotations

import gzip
import importlib
import importlib.util
import json
from pathlib import Path
from typing import Any

import notes_extending
import notes_func
import notes_hooks
import notes_mechanics
import notes_training
import pytest
from scripted import outcome

REFERENCE = Path(__file__).resolve().parents[1] / "reference"
STORED = json.loads(gzip.decompress((REFERENCE / "notes.json.gz").read_bytes()))
BANKS = {
    "mechanics": notes_mechanics.script,
    "hooks": notes_hooks.script,
    "training": notes_training.script,
    "func": notes_func.script,
    "extending": notes_extending.script,
}
SCRIPTS = [(name, key) for name, bank in BANKS.items() for key in bank]
MODULES = ["rushlight", *(["torch"] if importlib.util.find_spec("torch") else [])]


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


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize(("name", "key"), SCRIPTS, ids=[key for _, key in SCRIPTS])
def test_as_pytorch(name: str, key: str, module: str) -> None:
    library = importlib.import_module(module)
    importlib.import_module(module + ".utils.checkpoint")
    got, want = outcome(BANKS[name][key], library), STORED[name][key]
    for mine, theirs in zip(got, want):
        assert agree(theirs, mine), f"PyTorch {theirs}\nhere    {mine}"
    assert len(got) == len(want)
