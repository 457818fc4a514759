"""The examples of public functions, as `help` shows them, run and print what they say.

Examples that stand in the sources are run by test_docs.py too; many functions of a family are made
by one other, and their texts are put together at run time.
"""

from __future__ import annotations

import doctest
import io

import pytest

import rushlight as torch
from rushlight.ops.described import describe
from rushlight.ops.registry import functions, methods, namespaces

TABLES = {"torch": functions, "torch.Tensor": methods, **namespaces}
PARSER = doctest.DocTestParser()


@pytest.mark.parametrize("space", TABLES)
def test_examples_of_functions_run(space: str) -> None:
    seen = 0
    for name, fn in TABLES[space].items():
        describe(fn)
        text = fn.__doc__ or ""
        if ">>> " not in text:
            continue
        seen += 1
        report = io.StringIO()
        test = PARSER.get_doctest(text, {"torch": torch}, name, None, 0)
        doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.write)
        assert not report.getvalue(), f"{space}.{name}\n{report.getvalue()}"
    assert seen > min(10, len(TABLES[space]) - 1)  # or all, of few
