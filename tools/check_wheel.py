"""Look into a built wheel: what it weighs, whether it is compiled, whether something strayed in.

python tools/check_wheel.py dist/rushlight-*.whl
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

LIMIT = 3_000_000  # bytes
BELONGS = (".py", ".pyi", ".txt", ".html", ".css", ".js", "py.typed", "_build.json", ".so", ".pyd")
PAGES = ("rushlight/viz/page_files/", (".html", ".css", ".js"))  # what pages are made of


def trouble(path: Path) -> list[str]:
    """What is wrong with the wheel, a line each."""
    found = []
    if path.stat().st_size > LIMIT:
        found.append(f"{path.stat().st_size} bytes are more than {LIMIT}")
    with zipfile.ZipFile(path) as wheel:
        names = [name for name in wheel.namelist() if ".dist-info/" not in name]
    for name in names:
        if name.startswith(PAGES[0]) and name.endswith(PAGES[1]):
            continue
        if not name.startswith(("rushlight/", "rushlight__mypyc.")) or not name.endswith(BELONGS):
            found.append(f"{name} does not belong in a wheel")
    for needed in ("rushlight/__init__.py", "rushlight/py.typed", "rushlight/_build.json"):
        if needed not in names:
            found.append(f"{needed} is missing")
    return found


def main() -> int:
    status = 0
    for argument in sys.argv[1:]:
        path = Path(argument)
        found = trouble(path)
        status |= bool(found)
        kind = "pure" if path.stem.endswith("none-any") else "compiled"
        print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB, {kind}")
        for line in found:
            print(f"  {line}")
    return status


if __name__ == "__main__":
    sys.exit(main())
