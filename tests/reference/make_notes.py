"""Store what PyTorch does in the notes of tests/autograd; needs PyTorch 2.13.

`python tests/reference/make_notes.py` writes notes.json.gz.
"""

from __future__ import annotations

import gzip
import importlib
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "autograd"))


def main() -> None:
    import torch
    import torch.utils.checkpoint
    from scripted import outcome

    found: dict[str, dict[str, list[Any]]] = {}
    for name in ("mechanics", "hooks", "training", "func", "extending"):
        bank = importlib.import_module(f"notes_{name}").script
        found[name] = {key: outcome(run, torch) for key, run in bank.items()}
    text = json.dumps(found, separators=(",", ":"), sort_keys=True)
    (HERE / "notes.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    print({name: len(bank) for name, bank in found.items()}, len(text))


if __name__ == "__main__":
    main()
