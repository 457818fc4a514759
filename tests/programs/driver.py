"""Runs programs one after the other, and prints as JSON what each of them printed.

python tests/programs/driver.py a.py b.py                     on PyTorch
python -m rushlight run tests/programs/driver.py a.py b.py    on rushlight
"""

from __future__ import annotations

import contextlib
import io
import json
import runpy
import sys
import traceback
import warnings
from pathlib import Path

import torch


def main(paths: list[str]) -> None:
    torch.set_num_threads(1)
    found: dict[str, list[str]] = {}
    for path in paths:
        out = io.StringIO()
        with contextlib.redirect_stdout(out), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what is old-fashioned: these are ordinary programs
            try:
                runpy.run_path(path, run_name="__main__")
            except Exception:  # one that fails must not hide the others
                print(traceback.format_exc())
        found[Path(path).stem] = out.getvalue().splitlines()
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
