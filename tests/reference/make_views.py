"""Write views.json.gz: what PyTorch does in the cases of tests/autograd/view_cases.py."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "autograd"))


def main() -> None:
    import torch
    import view_cases

    stored = {name: view_cases.run(torch, name) for name in view_cases.CASES}
    text = json.dumps(stored, separators=(",", ":"))
    with gzip.GzipFile(HERE / "views.json.gz", "wb", mtime=0) as file:
        file.write(text.encode())


if __name__ == "__main__":
    main()
