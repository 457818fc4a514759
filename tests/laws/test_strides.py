"""Results lie in memory as PyTorch's do, whatever way their inputs lie there.

So `view` and `reshape` of a result do here what they do there, and a write through `reshape`
changes the tensor it came from, or not. What PyTorch said is stored.
"""

from __future__ import annotations

from typing import Any

import pytest

import rushlight
from tests.harness import stored
from tests.laws import cases_ops as oc
from tests.laws import cases_strides as sc

STORED = stored("laws/strides")
BY_ENTRY, BLOB = sc.chosen()


@pytest.mark.parametrize("entry", sorted(BY_ENTRY))
def test_results_of_calls_lie_as_pytorchs(entry: str) -> None:
    """Every function that PyTorch's tests sample: results, gradients, in place, `out=`."""

    known = {key for key in sc.KNOWN if key.startswith(f"{entry}:")}

    def compare() -> list[str]:
        wrong = []
        gone = set(known)
        for case, answers in zip(BY_ENTRY[entry], STORED["calls"][entry], strict=True):
            for how, want in answers.items():
                have = sc.observe(rushlight, case, BLOB, how)
                for aspect, text in sc.differences(have, want).items():
                    gone.discard(f"{entry}:{aspect}")
                    if f"{entry}:{aspect}" not in known:
                        wrong.append(f"{how}: {case['a']} {case['k']}\n    {text}"[:700])
        return wrong + [f"KNOWN, but there is no difference: {key}" for key in gone]

    wrong = oc.quietly(compare)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("text", sorted(STORED["written"]))
def test_results_of_expressions_lie_as_pytorchs(text: str) -> None:
    def compare() -> list[str]:
        wrong = []
        for rank, answers in STORED["written"][text].items():
            for (one, other), want in zip(sc.PAIRS, answers, strict=True):
                have = sc.evaluated(rushlight, text, sc.SHAPES[rank], one, other)
                if want != "error" and have != want:
                    names = f"{rank} axes, {one.__name__}, {other.__name__}"
                    wrong.append(f"{names}: {have} instead of {want}")
        return wrong

    wrong = oc.quietly(compare)
    assert bool(wrong) is (text in sc.KNOWN), "\n".join(wrong)


def test_what_is_stored_is_what_is_asked() -> None:
    assert STORED["calls"].keys() == BY_ENTRY.keys()
    assert STORED["written"].keys() == {text for _, text in sc.expressions()}
    named = {key.split(":")[0] for key in sc.KNOWN if not key.startswith("m.")}
    assert named <= BY_ENTRY.keys()


def test_a_wrong_stride_is_noticed() -> None:
    case = next(c for c in BY_ENTRY["softmax"] if len(c["a"][0]["t"][1]) > 1)
    want = sc.observe(rushlight, case, BLOB, "permuted")
    assert not sc.differences(want, want)
    shape, strides, *rest = want["forward"][0]
    other = {**want, "forward": [[shape, strides[::-1], *rest]]}
    assert sc.differences(other, want).keys() == {"forward"}


# -- by hand --------------------------------------------------------------------------------------


def turned() -> Any:
    return rushlight.arange(12.0).reshape(3, 4).t()


@pytest.mark.parametrize(
    "make",
    [
        lambda m, x: m.cat([x, x]),
        lambda m, x: m.stack([x, x]),
        lambda m, x: m.softmax(x, 0),
        lambda m, x: m.nn.functional.layer_norm(x, (3,)),
        lambda m, x: m.cumsum(x, 0),
        lambda m, x: m.masked_fill(x, x > 3, 0),
        lambda m, x: m.nn.functional.pad(x, (1, 1)),
        lambda m, x: m.tril(x),
        lambda m, x: m.sum(x.expand(2, 4, 3), 0),
        lambda m, x: m.nn.functional.one_hot(x.long(), 12),
        lambda m, x: m.cdist(x, x),
    ],
)
def test_results_in_rows_can_be_viewed_flat(make: Any) -> None:
    assert make(rushlight, turned()).view(-1).ndim == 1


def test_results_in_the_order_of_the_operands() -> None:
    x, y = turned(), rushlight.ones(4, 3)
    assert (x + y).stride() == (1, 4)
    assert (y + x).stride() == (3, 1)
    assert (x[:, None] * y).stride() == (1, 4, 16)
    assert (y * x[:, None]).stride() == (1, 4, 16)
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        (x + y).view(-1)


def test_a_write_through_reshape_reaches_what_lies_flat_only() -> None:
    sorted_ = turned().sort(0)[0]
    sorted_.reshape(-1)[0] = 99
    assert sorted_[0, 0] == 0  # the sorted copy lies as its input does: `reshape` copied it
    soft = turned().softmax(0)
    soft.reshape(-1)[0] = 99
    assert soft[0, 0] == 99


def test_places_lie_column_by_column() -> None:
    places = rushlight.eye(3).nonzero()
    assert places.stride() == (1, 3)
    assert [p.is_contiguous() for p in places.unbind(1)] == [True, True]


def test_gradients_of_a_linear_layer_can_be_viewed_flat() -> None:
    layer = rushlight.nn.Linear(3, 2)
    loss = layer(rushlight.ones(4, 3)).sum()
    grads = rushlight.autograd.grad(loss, list(layer.parameters()))
    assert [g.view(-1).shape[0] for g in grads] == [6, 2]
    x, w = rushlight.ones(4, 3, requires_grad=True), rushlight.ones(2, 3, requires_grad=True)
    for y in (x @ w.t(), x.mm(w.t()), rushlight.addmm(rushlight.zeros(2), x, w.t())):
        assert [g.stride() for g in rushlight.autograd.grad(y.sum(), (x, w))] == [(3, 1), (3, 1)]


def test_the_gradient_of_a_mean_can_be_written() -> None:
    x = rushlight.ones(2, 3, requires_grad=True)
    for y in (x.mean(), x.mean(0).sum(), x.mean(1, keepdim=True).sum()):
        (g,) = rushlight.autograd.grad(y, x)
        if y.grad_fn.name() == "MeanBackward0":
            assert g.mul_(6).tolist() == [[1, 1, 1], [1, 1, 1]]
        assert g.stride() == (3, 1)


def test_gradients_of_leaves_lie_as_the_leaf_or_in_rows() -> None:
    dense = turned().clone().requires_grad_()
    (dense * rushlight.ones(4, 3)).sum().backward()
    assert dense.grad.stride() == dense.stride() == (1, 4)
    gaps = rushlight.zeros(8, 6).t()[:3, ::2].detach().requires_grad_()
    (gaps * 2).sum().backward()
    assert gaps.grad.is_contiguous()


def test_unsafe_pieces_share_the_memory() -> None:
    x = rushlight.zeros(4)
    first, _ = x.unsafe_split(2)
    first.fill_(1)
    assert x.tolist() == [1, 1, 0, 0]


def test_as_strided_scatter_goes_by_the_memory_of_its_input() -> None:
    x = rushlight.zeros(2, 3).t()
    y = rushlight.as_strided_scatter(x, rushlight.tensor([1.0, 2.0]), (2,), (1,), 1)
    assert y.tolist() == [[0, 0], [1, 0], [2, 0]]
    assert y.stride() == (1, 3)


def test_to_a_memory_format_asks_for_the_order_of_strides_alone() -> None:
    x = turned()
    assert x.to(memory_format=rushlight.contiguous_format) is x
    image = rushlight.zeros(1, 2, 3, 4)
    there = image.to(memory_format=rushlight.channels_last)
    assert there.stride() == (24, 1, 8, 2)
    assert there.to(memory_format=rushlight.channels_last) is there


def test_resize_to_the_same_shape_changes_nothing() -> None:
    assert turned().clone().resize_(4, 3).stride() == (1, 4)
