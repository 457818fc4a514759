"""Write strides.json.gz: how PyTorch's results lie in memory (tests/strides_cases.py).

Run after make_ops.py, whose cases these are.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))


def main() -> None:
    import ops_cases
    import strides_cases
    import torch

    torch.set_num_threads(1)
    stored = ops_cases.quietly(lambda: strides_cases.stored_of(torch))
    strides_cases.save(stored)
    print(f"{len(stored['calls'])} entries, {len(stored['written'])} expressions")


if __name__ == "__main__":
    main()
