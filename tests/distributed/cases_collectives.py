"""Every collective, in two processes and in three: `programs/collectives.py` on a library."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from tests.distributed import running

PROGRAM = Path(__file__).with_name("programs") / "collectives.py"
SIZES = (2, 3)


def results(lib: Any) -> dict[str, Any]:
    """What each rank found, by the number of processes."""
    found = {}
    for n in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            if lib.__name__ == "torch":
                ended = running.start_on_pytorch(PROGRAM, n, Path(folder), "torch")
                assert not any(ended.status), ended.output
                found[str(n)] = ended.values
            else:
                found[str(n)] = running.launch(PROGRAM, n, Path(folder))
    return found
