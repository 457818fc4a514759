"""Print the requirements of one of rushlight's extras, a line each: what pip installs for it.

    python tools/requirements.py dev

`pip install -e '.[dev]'` would build rushlight once more for the tools' sake.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def main() -> None:
    extras = tomllib.loads(PROJECT.read_text("utf-8"))["project"]["optional-dependencies"]
    for extra in sys.argv[1:]:
        print("\n".join(extras[extra]))


if __name__ == "__main__":
    main()
