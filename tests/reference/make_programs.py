"""Write programs.json.gz: what PyTorch does on the random programs of tests/programs.py.

A program that trips PyTorch itself (an internal assertion of its) is stored as null.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

SEEDS = range(600)


def main() -> None:
    import programs
    import torch

    found = [programs.run(torch, seed) for seed in SEEDS]
    stored = [result if programs.sound(result) else None for result in found]
    text = json.dumps(stored, separators=(",", ":"))
    with gzip.GzipFile(HERE / "programs.json.gz", "wb", mtime=0) as file:
        file.write(text.encode())


if __name__ == "__main__":
    main()
