"""Write what `make bench` measured into the documents: `python tools/make_figures.py`.

It reads bench/results/latest.json and writes the table of docs/figures.md between its two marks,
and the ratios of those rows that README.md and README.zh.md repeat. tests/repo/test_docs.py
compares them.
"""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MEASURED = ROOT / "bench" / "results" / "latest.json"
BEGIN, END = "<!-- measured -->\n", "<!-- end -->\n"


def table(record: dict[str, Any], date: str) -> str:
    kind = "compiled" if record["compiled"] else "interpreted"
    lines = [f"Measured on {date}, {kind}.", ""]
    lines += ["| case | against | rushlight µs | the other µs | ratio |"]
    lines += ["| --- | --- | ---: | ---: | ---: |"]
    for row in record["rows"]:
        times = f"{row['ours_us']:.1f} | {row['theirs_us']:.1f}"
        lines.append(f"| {row['case']} | {row['against']} | {times} | {row['ratio']:.2f} |")
    imports = record["import"]
    plain, ours = f"{imports['numpy_ms']:.0f} ms", f"{imports['rushlight_ms']:.0f} ms"
    lines += ["", f"`import numpy` takes {plain}, `import rushlight` {ours}, NumPy among it."]
    return "\n".join(lines) + "\n"


def with_ratios(page: str, record: dict[str, Any]) -> str:
    """The page, with the ratio in each table row `| case | against | ... |` that was measured."""
    for row in record["rows"]:
        start = f"| {row['case']} | {row['against']} |"
        page = re.sub(
            rf"^{re.escape(start)}.*$", f"{start} {row['ratio']:.2f} |", page, flags=re.MULTILINE
        )
    return page


def main() -> None:
    record = json.loads(MEASURED.read_text("utf-8"))
    date = time.strftime("%Y-%m-%d", time.gmtime(MEASURED.stat().st_mtime))
    figures = ROOT / "docs" / "figures.md"
    before, rest = figures.read_text("utf-8").split(BEGIN)
    after = rest.split(END)[1]
    figures.write_text(f"{before}{BEGIN}{table(record, date)}{END}{after}", "utf-8")
    for readme in (ROOT / "README.md", ROOT / "README.zh.md"):
        readme.write_text(with_ratios(readme.read_text("utf-8"), record), "utf-8")


if __name__ == "__main__":
    main()
