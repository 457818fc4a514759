"""The cost of an op is guarded by counting what its Python does: functions entered, lines run.

Counts are the same on a busy machine and on a quiet one. Bars stand a little above what is counted
now (on Python 3.11; another version may count a comprehension as a call or not). Whoever makes an
op dearer on purpose raises its bar and says why. `make bench` measures time, against NumPy and
PyTorch.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

# case: functions entered, lines run
BARS = {
    "multiply": (18, 135),
    "multiply, not recorded": (11, 55),
    "a function of one tensor": (18, 133),
    "a sum": (24, 158),
    "a view": (24, 155),
    "a product of matrices": (23, 154),
    # a gradient is looked for as a kernel before the rule is run
    "100 multiplies, there and back": (2750, 24000),
}


@cache
def counts() -> dict[str, list[int]]:
    script = Path(__file__).with_name("overhead_counts.py")
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, list[int]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("case", BARS)
def test_an_op_does_little(case: str) -> None:
    calls, lines = counts()[case]
    most_calls, most_lines = BARS[case]
    # fewer than half of the bar: something is not counted any more, and the guard is none
    assert most_calls / 2 < calls <= most_calls
    assert most_lines / 2 < lines <= most_lines


def test_gradients_of_samples_are_taken_at_once() -> None:
    found = counts()
    # 64 at once enter fewer functions than four one by one, and 256 hardly more than 64: sums of
    # many rows are cut into sets
    assert found["64 gradients at once"][0] < 4 * found["a gradient"][0]
    assert found["256 gradients at once"][0] < 1.01 * found["64 gradients at once"][0]


def test_a_chain_of_views_costs_by_its_length() -> None:
    short, long = counts()["100 views, written"], counts()["1000 views, written"]
    assert long[0] < 11 * short[0] and long[1] < 11 * short[1]  # squared, it would be 100 times
