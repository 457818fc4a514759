"""Store what PyTorch does in all cases, or in those of the named files.

    python tests/reference/make.py                    all of them: `make references`
    python tests/reference/make.py autograd/graph     those of tests/autograd/cases_graph.py

Needs PyTorch 2.13. What `results(torch)` of a file of cases gives is stored beside this script, as
`<folder>/<name>.json.gz`; a file of cases that stores something else as well has a function
`store(torch)` instead. Each is run in a process of its own, in which sets have the same order every
time: some of PyTorch's samples are drawn from one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[2])  # the repository, for `tests.harness`

from tests import harness  # noqa: E402  # found there


def make(name: str) -> None:
    torch = harness.pytorch()
    assert torch.__version__.startswith("2.13"), torch.__version__
    torch.set_num_threads(1)
    cases = harness.cases_of(name)
    if hasattr(cases, "store"):
        cases.store(torch)
    else:
        harness.store(name, harness.packed(cases.results(torch)))
    print(f"{name}: {harness.path_of(name).stat().st_size:,} bytes", flush=True)


def main(wanted: list[str]) -> None:
    known = harness.names()
    if unknown := set(wanted) - set(known):
        sys.exit(f"no cases: {', '.join(sorted(unknown))}; there are: {', '.join(known)}")
    if len(wanted) == 1 and os.environ.get("PYTHONHASHSEED") == "0":
        make(wanted[0])
        return
    for name in wanted or known:
        command = [sys.executable, __file__, name]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": "0"})


if __name__ == "__main__":
    main(sys.argv[1:])
