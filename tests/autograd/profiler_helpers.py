"""Programs to profile, and their lines."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any


def line_here(back: int = 0) -> str:
    """The place of the line that calls this, or of one `back` lines before it."""
    frame = sys._getframe(1)
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno - back}"


def read_trace(path: Path) -> Any:
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
