"""Measurements with given times, and their tables."""

from __future__ import annotations

from typing import Any

from tests.harness import Cases

cases = Cases()
results = cases.results

ROWS: list[tuple[int, list[float], dict[str, Any]]] = [
    (10, [1e-5, 1.1e-5, 1.2e-5, 1e-5], {"sub_label": "n=3", "description": "eager"}),
    (10, [1.23e-3, 1.1e-3], {"sub_label": "n=300", "description": "eager"}),
    (1, [4.56e-6] * 9, {"sub_label": "n=3", "description": "other one"}),
    (1, [4.56e-4] * 9, {"sub_label": "n=300", "description": "other one", "num_threads": 4}),
    (1, [4.56e-4, 9e-4, 3e-4, 8e-4], {}),
]


def measurements(lib: Any) -> list[Any]:
    b = __import__(f"{lib.__name__}.utils.benchmark", fromlist=["x"])
    made = []
    for number, times, words in ROWS:
        spec = b.TaskSpec("f()", "x = 1" if not words else "pass", label="mm", **words)
        made.append(b.Measurement(number, times, spec))
    return made


@cases
def values(lib: Any) -> Any:
    names = """
        significant_figures has_warnings title as_row_name number_per_run num_threads stmt env
    """.split()
    return [
        [m.median * 1e9, m.mean * 1e9, m.iqr * 1e9, *(getattr(m, name) for name in names)]
        for m in measurements(lib)
    ]


@cases
def printed(lib: Any) -> Any:
    return [repr(m).splitlines()[1:] for m in measurements(lib)]


@cases
def tables(lib: Any) -> Any:
    b = __import__(f"{lib.__name__}.utils.benchmark", fromlist=["x"])
    table = b.Compare(measurements(lib)[:4])
    whole = str(table)
    table.trim_significant_figures()
    return [whole, str(table), str(b.Compare(measurements(lib)[2:3]))]


@cases
def merged(lib: Any) -> Any:
    b = __import__(f"{lib.__name__}.utils.benchmark", fromlist=["x"])
    twice = b.Measurement.merge(measurements(lib) + measurements(lib))
    return [[len(m.times), m.number_per_run, m.sub_label] for m in twice]
