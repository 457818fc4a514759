"""Write library.json.gz: what `torch.library` does in PyTorch.

    python tests/reference/make_library.py

The cases are those of tests/library_cases.py.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    sys.path[:0] = [str(HERE.parent)]
    import library_cases
    import torch
    from cases import outcome

    stored = {name: outcome(torch, case) for name, case in library_cases.entered.items()}
    text = json.dumps(stored, separators=(",", ":"))
    with gzip.GzipFile(HERE / "library.json.gz", "wb", mtime=0) as file:
        file.write(text.encode())


if __name__ == "__main__":
    main()
