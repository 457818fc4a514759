"""Write programs.json.gz: what PyTorch does on the random programs of tests/programs.py."""

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

    stored = [programs.run(torch, seed) for seed in SEEDS]
    text = json.dumps(stored, separators=(",", ":"))
    with gzip.GzipFile(HERE / "programs.json.gz", "wb", mtime=0) as file:
        file.write(text.encode())


if __name__ == "__main__":
    main()
