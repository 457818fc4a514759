"""Every public function that PyTorch's own tests sample agrees with PyTorch on those samples.

The stored cases are compared always: values and dtypes, first and
second gradients, the names of nodes, methods, in-place forms, `out=`, other names, and errors.
Where PyTorch and what its samples need are installed, fresh samples are drawn as well, in more
dtypes. `cases_ops.KNOWN` lists the differences that stand.
"""

from __future__ import annotations

import importlib.util
import inspect
from collections import defaultdict
from typing import Any

import pytest

import rushlight
from rushlight.ops.registry import functions, methods, namespaces, signature_of
from tests.laws import cases_ops as oc

CASES, ERRORS, BLOB = oc.load()
BY_ENTRY: dict[str, list[dict[str, Any]]] = defaultdict(list)
for _case in CASES:
    BY_ENTRY[_case["n"]].append(_case)
ERRORS_BY_ENTRY: dict[str, list[dict[str, Any]]] = defaultdict(list)
for _case in ERRORS:
    ERRORS_BY_ENTRY[_case["n"]].append(_case)

LIVE = all(importlib.util.find_spec(name) for name in ("torch", "expecttest"))


def described(case: dict[str, Any]) -> str:
    return f"{case['f']} in {case['d'] or 'an error'}, called with {case['a']} {case['k']}"[:600]


@pytest.mark.parametrize("entry", sorted(BY_ENTRY))
def test_stored_samples_are_answered_as_by_pytorch(entry: str) -> None:
    def compare() -> list[str]:
        wrong = []
        for case in BY_ENTRY[entry]:
            want = oc.filled(oc.unpack(case["want"], BLOB))
            have = oc.observe(rushlight, case, BLOB)
            for text in oc.disagreements(case, have, want):
                wrong.append(f"{described(case)}\n    {text}")
        return wrong

    wrong = oc.quietly(compare)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("entry", sorted(ERRORS_BY_ENTRY))
def test_errors_are_pytorchs(entry: str) -> None:
    def compare() -> list[str]:
        wrong = []
        for case in ERRORS_BY_ENTRY[entry]:
            have = oc.observe(rushlight, case, BLOB)["forward"]
            kind, text = case["want"]["forward"]["error"]
            found = have.get("error")
            if oc.known(case, "error") is None and (
                found is None or found[0] != kind or found[1][:40] != text[:40]
            ):
                wrong.append(f"{described(case)}\n    {found} instead of {kind}: {text}")
        return wrong

    wrong = oc.quietly(compare)
    assert not wrong, "\n".join(wrong)


def test_what_is_known_is_still_so() -> None:
    """Every key of KNOWN names something that the stored cases hold."""
    named = {case["n"] for case in CASES} | {case["f"].removeprefix("Tensor.") for case in CASES}
    assert {key.split(":")[0] for key in oc.KNOWN} <= named


def test_a_wrong_value_is_noticed() -> None:
    """The comparison fails for a result that is off in one element, or of another dtype."""
    case = next(c for c in BY_ENTRY["tanh"] if c["d"] == "float64")
    want = oc.filled(oc.unpack(case["want"], BLOB))
    have = oc.observe(rushlight, case, BLOB)
    assert not list(oc.disagreements(case, have, want))
    key = "x" if "x" in have["forward"] else "p"
    have["forward"][key] = have["forward"][key].copy()
    have["forward"][key][0] += 1e-8
    assert list(oc.disagreements(case, have, want))
    other = oc.observe(rushlight, case, BLOB)
    other["forward"]["d"] = "float32"
    assert list(oc.disagreements(case, other, want))


def test_most_of_what_is_public_is_sampled() -> None:
    """Most of what is public is sampled; what is not has no samples in PyTorch's tests."""
    public = {*functions, *methods, *(f"{k}.{n}" for k, d in namespaces.items() for n in d)}
    sampled = {case["f"].removeprefix("Tensor.") for case in CASES}
    sampled |= {alias for case in CASES for alias in case.get("also", ())}
    assert len(sampled & public) >= 400


if LIVE:
    from tests.laws import ops_samples

    ENTRIES = {ops_samples.title(op): (op, name) for op, name in oc.quietly(ops_samples.entries)}

    @pytest.mark.parametrize("entry", sorted(ENTRIES))
    def test_fresh_samples_are_answered_as_by_pytorch(entry: str) -> None:
        import torch

        op, name = ENTRIES[entry]

        def compare() -> list[str]:
            wrong = []
            for dtype, count in ops_samples.LIVE.items():
                if getattr(torch, dtype) not in op.supported_dtypes("cpu"):
                    continue
                blob = oc.Blob()
                for case, want in ops_samples.cases_of(op, name, dtype, count, "live", blob):
                    have = oc.observe(rushlight, case, blob)
                    for text in oc.disagreements(case, have, want):
                        wrong.append(f"{described(case)}\n    {text}")
            return wrong

        wrong = oc.quietly(compare)
        assert not wrong, "\n".join(wrong)

    def test_signatures_are_pytorchs() -> None:
        """Parameters have PyTorch's names, in its order, where its function is a Python one."""
        wrong = []
        for space, names in (("", functions), *namespaces.items()):
            for name, ours in names.items():
                theirs = oc.lookup(torch_module(), f"{space}.{name}" if space else name)
                if inspect.isfunction(theirs) and (b := parameters(theirs)):
                    a = parameters(ours)
                    by_place = [p for p in a if a[p]]
                    if a.keys() != b.keys() or by_place != list(b)[: len(by_place)]:
                        wrong.append(f"{space}.{name}: {list(a)} instead of {list(b)}")
        assert not wrong, "\n".join(wrong)


def torch_module() -> Any:
    import torch

    return torch


def parameters(fn: Any) -> dict[str, bool]:
    """The names of parameters that are not catch-alls or private: may they be given by place?"""
    skip = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {
        p.name: p.kind is not inspect.Parameter.KEYWORD_ONLY
        for p in signature_of(fn).parameters.values()
        if p.kind not in skip and not p.name.startswith("_")
    }
