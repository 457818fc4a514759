"""Programs of several processes that run on rushlight and on PyTorch alike.

A program is called with the name of a library; `chosen()` is that library, as `torch`, and `tell`
ends it with what it found. `ranks` starts it, and gives what each process found.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any


def chosen() -> Any:
    """`torch`: PyTorch, or rushlight under its name."""
    if sys.argv[1] == "rushlight":
        from rushlight import compat

        compat.install()
    import torch

    return torch


def numbers(value: Any) -> Any:
    """Tensors of nested containers as lists."""
    if hasattr(value, "full_tensor"):
        return value.detach().full_tensor().tolist()
    if hasattr(value, "tolist"):
        return value.detach().tolist()
    if isinstance(value, dict):
        return {str(key): numbers(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [numbers(inner) for inner in value]
    return value


def tell(torch: Any, found: Any) -> None:
    """End a program with what this process found."""
    dist = torch.distributed
    rank = dist.get_rank()
    dist.barrier()
    dist.destroy_process_group()
    if "RUSHLIGHT_TEST_RESULTS" in os.environ:
        from tests.distributed.running import report

        report(rank, found)
    print(json.dumps(found))


def ranks(library: str, program: Path, n: int, *arguments: str) -> list[Any]:
    """What each of `n` processes of a program found."""
    from tests.distributed.running import launch
    from tests.distributed.two_libraries import run_ranks

    if library == "torch":
        return run_ranks(library, program, n, *arguments)
    with tempfile.TemporaryDirectory() as folder:
        return launch(program, n, Path(folder), library, *arguments)
