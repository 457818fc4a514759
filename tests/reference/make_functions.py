"""Write functions.json.gz: what custom autograd functions do in PyTorch.

    python tests/reference/make_functions.py

The cases are those of tests/autograd/functions_*.py: each is one behaviour, a small program over
either library that returns all one can see of it. Errors count too, by type and first line.
"""

from __future__ import annotations

import gzip
import importlib
import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
PARTS = ("calls", "outputs", "dirty", "saved", "rules", "nested")


def main() -> None:
    sys.path[:0] = [str(HERE.parent), str(HERE.parent / "autograd")]
    import torch
    from cases import outcome

    stored = {}
    for part in PARTS:
        for name, case in importlib.import_module(f"functions_{part}").cases.items():
            stored[name] = outcome(torch, case)
    text = json.dumps(stored, separators=(",", ":"))
    with gzip.GzipFile(HERE / "functions.json.gz", "wb", mtime=0) as file:
        file.write(text.encode())


if __name__ == "__main__":
    main()
