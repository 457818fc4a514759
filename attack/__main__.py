"""`python -m attack [--seconds 570] [--seed 0] [name ...]`: every attack in its share of the time.

Prints what broke and a table of counts; the exit status is 1 if anything broke.
"""

from __future__ import annotations

import argparse
import sys

from attack.harness import Report, modules, pytorch, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="attack", description=__doc__)
    parser.add_argument("names", nargs="*", help="attacks to run; all if none is named")
    parser.add_argument("--seconds", type=float, default=570.0, help="for all of them together")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch = pytorch()
    chosen = [m for m in modules() if not options.names or m.__name__[7:] in options.names]
    if not chosen:
        parser.error(f"no such attack; there are {[m.__name__[7:] for m in modules()]}")
    weights = [float(getattr(m, "WEIGHT", 1.0)) for m in chosen]
    reports = []
    for module, weight in zip(chosen, weights):
        share = options.seconds * weight / sum(weights)
        report = run(module, options.seed, torch, seconds=share)
        reports.append(report)
        for text in report.broken[:20]:
            print(f"BROKEN {report.title}: {text}", flush=True)
    print_table(reports)
    return 1 if any(r.broken for r in reports) else 0


def print_table(reports: list[Report]) -> None:
    width = max(len(r.title) for r in reports)
    print(f"{'attack':{width}}  {'attempts':>9}  {'broken':>6}  {'seconds':>7}")
    for r in reports:
        print(f"{r.title:{width}}  {r.attempts:9d}  {len(r.broken):6d}  {r.seconds:7.1f}")


if __name__ == "__main__":
    sys.exit(main())
