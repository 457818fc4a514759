"""Write what `make bench` measured into the documents: `python tools/make_figures.py`.

It reads bench/results/latest.json and bench/results/ops.json and writes the tables of
docs/figures.md between their marks, and the ratios of those rows that README.md and README.zh.md
repeat; pictures are copied. tests/repo/test_docs.py compares them.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MEASURED = ROOT / "bench" / "results" / "latest.json"
OPS = MEASURED.with_name("ops.json")
BEGIN, END = "<!-- measured -->\n", "<!-- end -->\n"
BEGIN_OPS, END_OPS = "<!-- means -->\n", "<!-- end of means -->\n"


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


def means(measured: dict[str, Any]) -> str:
    """The geometric means of the ratios of all ops, a line for each size and number of threads."""
    lines = ["| size | threads | ops | forward | forward + backward |"]
    lines += ["| --- | ---: | ---: | ---: | ---: |"]
    for title, forward in measured.items():
        size, way, threads = title.split(", ")
        if way == "forward":
            both = measured[f"{size}, forward + backward, {threads}"]
            name, shape = size.split()
            cells = [f"{name}, {shape}", threads.split()[1], f"{len(forward['ratios'])}"]
            cells += [f"{forward['mean']:.2f}", f"{both['mean']:.2f}"]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def between(page: str, begin: str, end: str, text: str) -> str:
    """A page with the text between two marks replaced."""
    before, rest = page.split(begin)
    return f"{before}{begin}{text}{end}{rest.split(end)[1]}"


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
    page = between(figures.read_text("utf-8"), BEGIN, END, table(record, date))
    measured = json.loads(OPS.read_text("utf-8"))
    figures.write_text(between(page, BEGIN_OPS, END_OPS, means(measured)), "utf-8")
    for picture in ("ops.svg", "ops-names.svg"):
        shutil.copy(OPS.with_name(picture), ROOT / "docs" / "figures" / picture)
    for readme in (ROOT / "README.md", ROOT / "README.zh.md"):
        readme.write_text(with_ratios(readme.read_text("utf-8"), record), "utf-8")


if __name__ == "__main__":
    main()
