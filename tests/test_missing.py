"""Names that PyTorch has and rushlight lacks: what is said of them, and where they are listed."""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import Any

import pytest

import rushlight as torch
from tests import harness

LACKING = {
    "torch.quantize_per_tensor": "torch.",
    "torch.cudnn_convolution": "torch.",
    "torch.ThroughputBenchmark": "torch.",
    "torch.func.functionalize": "torch.func.",
    "torch.utils.data.IterDataPipe": "torch.utils.data.",
    "torch.cuda.MemPool": "torch.cuda.",
    "torch.Tensor.q_scale": "torch.Tensor.",
    "torch.Tensor.to_mkldnn": "torch.Tensor.",
}


def module_of(name: str) -> Any:
    home: Any = torch
    for part in name.split(".")[1:-1]:
        home = getattr(home, part)
    return home


@pytest.mark.parametrize(("name", "near"), LACKING.items())
def test_a_missing_name_says_so(name: str, near: str) -> None:
    home, last = module_of(name), name.rpartition(".")[2]
    for owner in (home, torch.ones(2)) if home is torch.Tensor else (home,):
        assert not hasattr(owner, last)
        assert getattr(owner, last, None) is None
        with pytest.raises(AttributeError) as error:
            getattr(owner, last)
        first, *rest = str(error.value).split("\n")
        assert f"has no attribute '{last}'" in first
        text = "\n".join(rest)
        assert f"PyTorch has {name}, rushlight has not" in text
        assert f"Nearest to it: {near}" in text or near in text
        assert "docs/missing.md" in text
        assert last not in dir(owner)


def test_a_name_that_nobody_has_says_less() -> None:
    for owner in (torch, torch.nn, torch.linalg, torch.optim, torch.ones(1)):
        with pytest.raises(AttributeError) as error:
            owner.no_such_name
        assert "rushlight has not" not in str(error.value)
        assert not hasattr(owner, "__no_such_name__")


def test_missing_names_can_be_given_by_users() -> None:
    class Mine(torch.Tensor):
        def q_scale(self) -> str:
            return "mine"

    assert Mine([1.0]).q_scale() == "mine"


def test_the_page_of_what_is_missing_is_up_to_date() -> None:
    # in a process of its own: it looks at what `import rushlight` brings, and what comes late
    path = harness.ROOT / "tools" / "make_missing.py"
    subprocess.run([sys.executable, path, "--check"], check=True, cwd=harness.ROOT)


def test_hints_are_for_missing_names() -> None:
    from rushlight.missing import HINTS, is_missing

    assert [n for n in HINTS if not is_missing(*n.rpartition(".")[::2])] == []


if harness.LIVE:

    def test_stored_names_are_pytorchs() -> None:
        stored = harness.stored("repo/names")
        theirs = importlib.import_module("torch")
        for title, names in stored.items():
            home = theirs.Tensor if title == "torch.Tensor" else importlib.import_module(title)
            assert [n for n in names if not hasattr(home, n)] == []
