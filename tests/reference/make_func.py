"""Write func.json.gz: what PyTorch's transforms do.

    python tests/reference/make_func.py

The situations of tests/func/transform_cases.py and module_cases.py, the functions of nestings.py in
each nesting, and the random programs of nested_programs.py. Where PyTorch itself goes wrong
(`nestings.WRONG`, `nested_programs.sound`) nothing is stored.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "func"))
SEEDS = range(400)


def main() -> None:
    import module_cases
    import nested_programs
    import nestings
    import torch
    import transform_cases

    found: dict[str, Any] = {
        "version": torch.__version__,
        "cases": {name: transform_cases.run(torch, name) for name in transform_cases.CASES},
        "nestings": {
            f"{f} | {n}": nestings.run(torch, f, n)
            for f in nestings.FUNCTIONS
            for n in nestings.NESTINGS
            if not nestings.is_wrong(f, n)
        },
        "modules": {name: module_cases.run(torch, name) for name in module_cases.CASES},
        "programs": {},
    }
    for seed in SEEDS:
        result = nested_programs.run(torch, seed)
        if nested_programs.sound(result):
            found["programs"][str(seed)] = result
    text = json.dumps(rounded(found), separators=(",", ":"))
    with gzip.GzipFile(HERE / "func.json.gz", "wb", mtime=0) as file:
        file.write(text.encode())


def rounded(x: Any) -> Any:
    """Floats with as many digits as count."""
    if isinstance(x, float):
        return float(f"{x:.8g}")
    if isinstance(x, list):
        return [rounded(part) for part in x]
    if isinstance(x, dict):
        return {k: rounded(part) for k, part in x.items()}
    return x


if __name__ == "__main__":
    main()
