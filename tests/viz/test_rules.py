"""Laws over the whole table of ops: what a formula says is what the op's rule computes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from xml.dom.minidom import parseString

import numpy as np
import pytest

from rushlight import ops
from rushlight.arrays.terms import Term
from rushlight.arrays.vocabulary import primitives, ufuncs
from rushlight.core.graph import wrap
from rushlight.core.node import fit
from rushlight.core.record import apply
from rushlight.ops.registry import table
from rushlight.ops.sample_inputs import Draw, samples_of
from rushlight.viz.formula import boxes_of, formula, mathml
from rushlight.viz.kept import kept_values
from rushlight.viz.rules import letter, names_of_inputs, rule_of
from rushlight.viz.shapes import Shapes

ops.fill_rest()
OPS = sorted(name for name, cls in table.items() if cls.differentiable)


def nodes_of(name: str) -> Iterator[tuple[Any, list[Any]]]:
    """Nodes of an op, from its samples, each with the results."""
    for op, *xs in list(samples_of(table[name], Draw(0)))[:3]:
        inputs = [wrap(x).detach() if hasattr(x, "dtype") else x for x in xs]
        for t in inputs:
            if hasattr(t, "is_floating_point") and (t.is_floating_point() or t.is_complex()):
                t.requires_grad_()
        made = apply(op, *inputs)
        outs = list(made) if isinstance(made, (tuple, list)) else [made]
        yield next(out._node for out in outs if out._node is not None), outs


def compute(term: Any, names: dict[str, Any]) -> Any:
    """The numbers of a term, as it was written down, before it was tidied."""
    if isinstance(term, tuple):
        return tuple(compute(t, names) for t in term)
    if not isinstance(term, Term):
        return term
    if not term.args:
        return names[term.word]
    if term.word == "put":
        return put(*term.args, names)
    args = [compute(a, names) for a in term.args]
    if term.word == "summed":
        return fit(args[0], term.shape, None)
    if term.word == "part":
        return args[0][args[1]]
    if term.word == "concat":
        args[0] = list(args[0])
    fn: Any = ufuncs.get(term.word) or primitives.get(term.word) or getattr(np, term.word)
    if not term.word.startswith(("store", "overwrite")):
        return fn(*args)
    args[0] = np.array(args[0])
    fn(*args)
    return args[0]


def put(whole: Term, value: Any, view: Term, names: dict[str, Any]) -> Any:
    """An array with something else in a region, which `view` shows of it."""
    made = np.array(compute(whole, names))

    def seen(term: Term) -> Any:
        if repr(term) == repr(whole):
            return made
        rest = [compute(a, names) for a in term.args[1:]]
        return primitives[term.word](seen(term.args[0]), *rest)

    seen(view)[...] = compute(value, names)
    return made


def gradients(outs: list[Any]) -> list[Any]:
    random = np.random.default_rng(0)
    return [
        random.standard_normal(y._array.shape).astype(y._array.dtype)
        if y._array.dtype.kind in "fc"
        else np.zeros(y._array.shape, y._array.dtype)
        for y in outs
    ]


def values_by_name(node: Any, gs: list[Any]) -> dict[str, Any]:
    """What a formula calls things -> their numbers."""
    op = node._op
    inputs = names_of_inputs(op, len(node._next_edges))
    if node._output_metas is None:
        names = {"g": gs[0]}
    else:
        titles = op.outputs if len(op.outputs) == len(gs) else range(1, len(gs) + 1)
        names = {f"g_{title}": g for title, g in zip(titles, gs)}
    for j, value in enumerate(node._kept_values):
        source = j if op.plan.variadic else op.plan.sources[j]
        names[inputs[source] if source >= 0 else letter(op.outputs[-1 - source])] = value
    return names


@pytest.mark.parametrize("name", OPS)
def test_a_formula_says_what_the_rule_computes(name: str) -> None:
    for node, outs in nodes_of(name):
        rule = rule_of(node)
        gs = gradients(outs)
        g = gs[0] if node._output_metas is None else gs
        names = values_by_name(node, gs)
        with np.errstate(all="ignore"):
            found = node._op.vjp(node, g, *node._kept_values)
            wanted = [
                (i, out)
                for i, out in enumerate(found)
                if out is not None and node._next_edges[i] is not None
            ]
            assert len(rule.grads) in (0, len(wanted))
            for (i, out), (_, term) in zip(wanted, rule.grads):
                like = Shapes().of_input(node, i)
                assert like is not None
                told = fit(np.asarray(compute(term, names)), like[0], None)
                expected = fit(np.asarray(out), like[0], None)
                np.testing.assert_allclose(told, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", OPS)
def test_every_op_can_be_shown(name: str) -> None:
    for node, outs in nodes_of(name):
        rule = rule_of(node)
        for box in boxes_of(rule):
            parseString(mathml(box))
        assert bool(formula(node)) == bool(rule.grads)
        assert rule.grads or "def " in rule.source
        kept_values(node)
        shapes = [like[0] for like in Shapes().of_outputs(node)]
        assert shapes == [tuple(out._array.shape) for out in outs]


def test_most_ops_have_a_formula() -> None:
    without = [name for name in OPS if not all(rule_of(node).grads for node, _ in nodes_of(name))]
    assert len(without) < len(OPS) / 8, without
