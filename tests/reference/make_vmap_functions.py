"""Write vmap_functions.json.gz: what PyTorch's public functions give on the members of a batch.

    python tests/reference/make_vmap_functions.py

Needs torch 2.13. The calls stand in tests/func/vmap_calls.py; tests/func/test_vmap_functions.py
makes them in rushlight.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "func"))

import vmap_calls as vc

HERE = Path(__file__).resolve().parent


def rounded(x: Any) -> Any:
    """Floats with the digits that float32 has, so that the file stays small."""
    if isinstance(x, float):
        return float(f"{x:.7g}")
    return [rounded(y) for y in x] if isinstance(x, list) else x


def shortened(found: list[Any]) -> list[Any]:
    return [*found[:2], found[2][:200]] if found[0] == "error" else rounded(found)


def generate() -> None:
    import torch

    found = {text: shortened(vc.outcome(torch, text)) for text in (*vc.CALLS, *vc.WRITES)}
    text = json.dumps(found, separators=(",", ":"))
    with gzip.GzipFile(HERE / "vmap_functions.json.gz", "wb", mtime=0) as file:
        file.write(text.encode())
    kinds = [result[0] for result in found.values()]
    print({kind: kinds.count(kind) for kind in sorted(set(kinds))})


if __name__ == "__main__":
    generate()
