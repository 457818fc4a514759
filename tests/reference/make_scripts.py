"""Store what PyTorch does in the scripts of tests/autograd; needs PyTorch 2.13.

`python tests/reference/make_scripts.py` writes scripts.json.gz.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "autograd"))

RANDOM = 250
NESTED = 60


def banks() -> dict[str, dict[str, Any]]:
    """All scripts, by file."""
    import graph_scripts
    import hooks_modules
    import hooks_nodes
    import hooks_random
    import hooks_saved
    import hooks_tensors

    return {
        "tensors": hooks_tensors.script,
        "nodes": hooks_nodes.script,
        "saved": hooks_saved.script,
        "modules": hooks_modules.script,
        "random": {str(seed): hooks_random.random_script(seed) for seed in range(RANDOM)},
        "nested": {str(seed): hooks_random.nested_script(seed) for seed in range(NESTED)},
        "graph": graph_scripts.script,
    }


def main() -> None:
    import torch
    from scripted import outcome

    found = {
        name: {key: outcome(run, torch) for key, run in bank.items()}
        for name, bank in banks().items()
    }
    text = json.dumps(found, separators=(",", ":"), sort_keys=True)
    (HERE / "scripts.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    print({name: len(bank) for name, bank in found.items()}, len(text))


if __name__ == "__main__":
    main()
