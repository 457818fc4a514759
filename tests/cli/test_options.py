"""The options of `rushlight run` stand before the script."""

from __future__ import annotations

import os

import pytest

from rushlight.cli.options import Wrong, parse


def test_all_of_them() -> None:
    words = "--graph g.html --explain --memory --profile --seed -3 --pass=2 train.py --seed 4"
    options = parse(words.split())
    assert options.graph == os.path.abspath("g.html")
    assert options.explain and options.memory and options.profile
    assert (options.seed, options.which, options.profile_file) == (-3, 2, None)
    assert options.program == ["train.py", "--seed", "4"]


def test_none() -> None:
    options = parse(["-c", "pass", "--explain"])
    assert options.program == ["-c", "pass", "--explain"]
    assert not options.looks_at_passes


def test_a_file_for_the_profile_follows_an_equals_sign() -> None:
    options = parse(["--profile=t.json", "train.py"])
    assert options.profile and options.profile_file == os.path.abspath("t.json")


@pytest.mark.parametrize(
    ("words", "trouble"),
    [
        ("--graph", "--graph wants a value"),
        ("--graph g.jpg x.py", "--graph wants a file that ends in .html or .svg or .png or .dot"),
        ("--profile=t.txt x.py", "--profile wants a file that ends in"),
        ("--seed x x.py", "--seed wants a whole number, not 'x'"),
        ("--pass 0 x.py", "--pass counts from 1"),
        ("--explain=yes x.py", "unknown option of run: --explain=yes"),
        ("--bogus x.py", "unknown option of run: --bogus"),
    ],
)
def test_what_is_wrong(words: str, trouble: str) -> None:
    with pytest.raises(Wrong, match=f"^{trouble}"):
        parse(words.split())
