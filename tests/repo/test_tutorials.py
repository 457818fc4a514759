"""Tutorials on PyTorch's autograd run unchanged and print what they show.

The tutorials are read where they lie, in ../shared/seeds beside the checkout; in a checkout without
that folder the laws here are tested on a page of our own. How a page is read: see transcripts.py.

A page is run under several seeds. What differs between the runs is random (numbers are then masked
on both sides); everything else has to equal the page letter for letter, addresses apart. The pages
are older than PyTorch 2.13, whose form is the right one where it differs: `today` has the list.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.harness import ROOT
from tests.repo import transcripts
from tests.repo.transcripts import Block

SEEDS = ("0", "1", "2", "3", "4", "5")
FOLDER = ROOT.parent / "shared" / "seeds"
NAMES = FOLDER / "tensor_names_1_0_1.txt"
PAGES = sorted(page for page in FOLDER.glob("*.txt") if "```" in page.read_text("utf-8"))
# The pages run in rushlight; where PyTorch is at hand, in PyTorch too: are we asking for the truth?
LIBRARIES = ["rushlight", "torch"] if importlib.util.find_spec("torch") else ["rushlight"]

# Names that dir() of a tensor had in PyTorch 1.0.1 and has not in 2.13.
GONE = set(
    "btrifact btrifact_with_info btrisolve fft gels gesv ifft irfft potrf potri potrs pstrf rfft "
    "trtrs".split()
)
# Defaults that are others today than in the pages' listings.
DEFAULTS_TODAY = {("torch.autograd.grad", "allow_unused"): "None"}

OUR_PAGE = """
# A page in the forms that tutorials have

```python
z = y * y * 3
print(z.sum())

####
Out:

tensor(108., grad_fn=<SumBackward0>)
```

It needs an opening. Then a notebook's cells:

```python
a = torch.rand(2, requires_grad=True)
a
```


    tensor([0.1234, 0.5678], requires_grad=True)


```python
print(a.grad_fn)   # None, since nobody computed it
print((a * 2).grad_fn)   # is a <MulBackward0 object at 0x12ab>
```

And one more:

```python
(a * 2).grad_fn.next_functions
```

    ((<AccumulateGrad at 0x120840a90>, 0), (None, 0))

A listing, an error and an old name:

```py
torch.autograd.backward(
    tensors,
    grad_tensors=None,
    retain_graph=None)
```

```python
y.backward()
### RuntimeError: grad can be implicitly created only for scalar outputs
```

```py
print(torch.mm(y, y))
```

Out:

```py
tensor([[18., 18.],
        [18., 18.]], grad_fn=<MmBackward>)
```
"""


@functools.cache
def runs(page: Path, library: str) -> list[list[dict[str, Any]]]:
    """The page's transcript under each seed, in a process of its own."""
    launcher = ["-m", "rushlight", "run"] if library == "rushlight" else []
    command = [sys.executable, *launcher, transcripts.__file__, str(page), *SEEDS]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=300)
    assert done.returncode == 0, done.stderr
    result: list[list[dict[str, Any]]] = json.loads(done.stdout)
    return result


def masked(text: str) -> str:
    """Addresses, ids and version numbers are of the day."""
    text = re.sub(r"0x[0-9A-Fa-f]+", "0x~", text)
    text = re.sub(r"\b\d{7,}\b", "~", text)
    return re.sub(r"'\d+\.\d+[\w.+]*'", "'~'", text).strip()


def today(text: str, custom: set[str]) -> str:
    """What a page shows in the form it has in PyTorch 2.13, without the page's own ornaments."""
    text = "\n".join(line for line in text.splitlines() if set(line.strip()) != {"#"})
    # Nodes of built-in functions got a number; those of the user's Functions have none.
    return re.sub(
        r"<(\w+)Backward\b(?= object|>)",
        lambda m: m[0] if m[1] in custom else f"<{m[1]}Backward0",
        text,
    )


def numberless(text: str) -> str:
    """Random numbers masked, and the spaces and line breaks that depend on their width."""
    text = re.sub(r"-?\b\d+\.\d*(e[+-]\d+)?", "~", text)
    return re.sub(r"\[ +", "[", " ".join(text.split()))


def check(blocks: list[Block], transcript: list[list[dict[str, Any]]], library: str) -> int:
    """Compare every block's doings with what the page shows; how many claims were checked."""
    custom = {
        node.name
        for block in blocks
        for node in ast.walk(ast.parse(block.code))
        if isinstance(node, ast.ClassDef)
    }
    claims = 0
    for number, block in enumerate(blocks):
        results = [run[number] for run in transcript]
        if block.signature:
            check_signature(block, results[0]["signature"])
            claims += 1
            continue
        assert results[0]["raised"].split("\n")[0] == block.raises, block.code
        claims += bool(block.raises)
        printed = [masked(result["printed"]) for result in results]
        for line, said in block.remarks:
            got = masked(results[0]["lines"][str(line)])
            # A comment is one line: its breaks are not the output's.
            assert "".join(got.split()) == "".join(masked(today(said, custom)).split())
            claims += 1
        if not block.printed:
            continue
        claims += 1
        expected = masked(today(block.printed, custom))
        if block.code.splitlines()[-1].startswith("dir("):
            check_names(set(ast.literal_eval(expected)), results[0]["printed"], library)
        elif len(set(printed)) > 1:
            assert {numberless(text) for text in printed} == {numberless(expected)}
        else:
            assert printed[0] == expected
    return claims


def check_signature(block: Block, parameters: list[list[str | None]]) -> None:
    """Parameters may have been added behind those listed; the listed ones stand."""
    function, listed = transcripts.signature_of(block.code)
    for (name, default), found in zip(listed, parameters, strict=False):
        assert found == [name, DEFAULTS_TODAY.get((function, name), default)]
    assert len(parameters) >= len(listed)


def check_names(listed: set[str], printed: str, library: str) -> None:
    lost = listed - set(ast.literal_eval(printed))
    # rushlight has kept them; and the list of what is gone is no longer than it has to be
    assert lost == (listed & GONE if library == "torch" else set())


@pytest.mark.parametrize("library", LIBRARIES)
def test_our_own_page(library: str, tmp_path: Path) -> None:
    page = tmp_path / "page.txt"
    page.write_text(OUR_PAGE, "utf-8")
    blocks = transcripts.read(page)
    assert len(blocks) == 8  # the opening and seven of the page's own
    assert check(blocks, runs(page, library), library) == 8


def test_a_wrong_page_is_noticed(tmp_path: Path) -> None:
    for true, false in [
        ("108.", "109."),
        ("MmBackward", "MulBackward"),
        ("None, since", "True, since"),
        ("scalar outputs", "scalars"),
        ("retain_graph=None", "retain_graph=True"),
        ("0.5678]", "0.5678, 0.1]"),
    ]:
        assert true in OUR_PAGE
        page = tmp_path / "page.txt"
        page.write_text(OUR_PAGE, "utf-8")
        transcript = runs(page, "rushlight")
        page.write_text(OUR_PAGE.replace(true, false), "utf-8")
        with pytest.raises(AssertionError):
            check(transcripts.read(page), transcript, "rushlight")


if PAGES:

    @pytest.mark.parametrize("library", LIBRARIES)
    @pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem[:3])
    def test_page(page: Path, library: str) -> None:
        claims = check(transcripts.read(page), runs(page, library), library)
        assert claims, "nothing on this page was compared"

    if "torch" in LIBRARIES:

        @pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem[:3])
        def test_random_numbers_are_pytorchs(page: Path) -> None:
            blocks = transcripts.read(page)
            for ours, theirs in zip(runs(page, "rushlight"), runs(page, "torch"), strict=True):
                for block, mine, other in zip(blocks, ours, theirs, strict=True):
                    if not block.code.splitlines()[-1].startswith("dir("):
                        assert masked(mine.get("printed", "")) == masked(other.get("printed", ""))

    @pytest.mark.parametrize("library", LIBRARIES)
    def test_names_of_1_0_1(library: str) -> None:
        code = "import torch; print(dir(torch.ones(2, requires_grad=True) * 2))"
        launcher = ["-m", "rushlight", "run"] if library == "rushlight" else []
        done = subprocess.run(
            [sys.executable, *launcher, "-c", code], capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        check_names(set(NAMES.read_text("utf-8").split()), done.stdout, library)
