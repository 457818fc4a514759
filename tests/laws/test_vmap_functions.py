"""Public functions and methods inside `vmap`: as a loop over the members, and as PyTorch has them.

The calls of cases_vmap_functions.py are compared with PyTorch's outcomes, stored and asked live
where it is installed. The calls that are stored for test_ops_reference.py are made on batches too,
and so are their derivatives.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight.core.graph import TensorBase
from tests.harness import LIVE, stored
from tests.laws import cases_ops as oc
from tests.laws import cases_vmap_functions as vc

EVERY = (*vc.CALLS, *vc.WRITES)
STORED = stored("laws/vmap_functions")


# --- calls that PyTorch was asked about -----------------------------------------------------------
@pytest.mark.parametrize("text", EVERY)
def test_as_pytorch(text: str) -> None:
    have = vc.outcome(torch, text)
    if text in vc.OURS:
        assert not vc.agree(have, STORED[text]), "no difference any more"
    else:
        assert vc.agree(have, STORED[text]), f"{have} instead of {STORED[text]}"


def test_as_a_loop() -> None:
    for text in EVERY:
        have = vc.outcome(torch, text)
        if have[0] == "tensors":
            want = vc.member_by_member(torch, text)
            assert vc.agree(have, want), f"{text}: {have} instead of {want}"


if LIVE:

    @pytest.mark.parametrize("text", EVERY[:: len(EVERY) // 60])
    def test_what_is_stored_is_so(text: str) -> None:
        import torch as pytorch

        assert vc.agree(vc.outcome(pytorch, text), STORED[text])


# What these say depends on strides, which differ where the batch stands elsewhere, or PyTorch's way
# of counting levels.
STRIDES = ("strid", ".view(", "view_as_complex", "contiguous", "repr", "str(", "format", '"')


def test_batches_elsewhere() -> None:
    """in_dims and out_dims that are not the first dimension."""
    for text in EVERY:
        want = vc.outcome(torch, text)
        if want[0] == "tensors" and not any(word in text for word in STRIDES):
            batch = [t.movedim(0, -1) for t in vc.batch_of(torch)]
            have = vc.outcome(torch, text, batch=batch, in_dims=-1, out_dims=-1)
            for part in have[1]:
                part[1:] = _to_front(part[1], part[2])
            assert vc.agree(have, want), f"{text}: {have} instead of {want}"


def _to_front(shape: list[int], values: list[Any]) -> list[Any]:
    """Shape and values of a tensor whose last dimension, not counting parts of complex numbers,
    becomes the first."""
    parts = len(values) // max(int(np.prod(shape)), 1)
    moved = np.moveaxis(np.reshape(values, (*shape, parts)), len(shape) - 1, 0)
    return [list(moved.shape[:-1]), moved.reshape(-1).tolist()]


def test_batches_of_batches() -> None:
    """Two levels: twice the same batch, the second time backwards."""
    batch = [torch.stack([t, t.flip(0)]) for t in vc.batch_of(torch)]
    for text in EVERY:
        want = vc.outcome(torch, text)
        if want[0] != "tensors":
            continue
        call = vc.called(torch, text)

        def inner(*members: Any, call: Any = call) -> Any:
            return tuple(vc.tensors_of(torch, call(*members)) or ())

        fresh = [t.clone() for t in batch]
        found = oc.quietly(lambda f=inner, xs=fresh: torch.vmap(torch.vmap(f))(*xs))
        for half in (0, 1):
            have = [vc.plain(torch, t[half].flip(0) if half else t[half]) for t in found]
            assert vc.agree(["tensors", have], want), text


# PyTorch too goes member by member there, and needs one.
LOOPS = (
    "bincount", "argwhere", "repeat_interleave", "hist", "nonzero_static",
)  # fmt: skip


def test_batches_of_nothing() -> None:
    batch = [t[:0] for t in vc.batch_of(torch)]
    for text in EVERY:
        want = vc.outcome(torch, text)
        if want[0] == "tensors" and not any(word in text for word in LOOPS):
            have = vc.outcome(torch, text, batch=batch)
            assert have[0] == "tensors", (text, have)
            shapes = [[p[0], [0, *p[1][1:]]] for p in want[1]]
            assert [part[:2] for part in have[1]] == shapes, text


# --- calls that PyTorch's own tests make ----------------------------------------------------------
CASES, _, BLOB = oc.load()
BY_ENTRY: dict[str, list[dict[str, Any]]] = defaultdict(list)
for _case in CASES:
    if _case["d"] in ("float64", "int64", "bool", "complex128") and not _case.get("seed"):
        BY_ENTRY[_case["n"]].append(_case)

SHAPES = "vmap: We do not support batching operators that can"
SIZES = "stack expects each tensor to be equal size"
RANDOM = "vmap: called random operation while in randomness error mode"
# Calls that are refused, here as in PyTorch, where the tensors that say what happens are batched.
REFUSED: dict[str, tuple[str, ...]] = {
    "nonzero": (SHAPES, "Batching rule not implemented for aten::nonzero_numpy"),
    "argwhere": (SIZES,),
    "unique": (SHAPES,),
    "unique_consecutive": (SHAPES,),
    "masked_select": ("vmap: Attempted to vmap over `mask`",),
    "bincount": (SIZES,),
    "repeat_interleave": (SIZES,),
    "where": (SHAPES,),
    "index_put": (SHAPES,),
    "Tensor.__getitem__": (SHAPES,),
    "narrow": ("Batching rule not implemented for aten::narrow.Tensor",),
    "tensor_split": ("Batching rule not implemented for aten::tensor_split",),
    "split": ("vmap: It looks like you're calling .item()",),
    "equal": ("Batching rule not implemented for aten::equal",),
    "allclose": ("vmap over torch.allclose isn't supported yet",),
    "Tensor.item": ("vmap: It looks like you're calling .item()",),
    "nn.functional.one_hot": ("When vmap-ing torch.nn.functional.one_hot",),
    "nn.functional.embedding": ("vmap: ",),
    "nn.functional.batch_norm": ("Batch norm got a batched tensor as input",),
    "nn.functional.rrelu": ("vmap: we do not yet support aten::rrelu",),
    "Tensor.resize_": ("Cannot access storage of BatchedTensorImpl",),
    "Tensor.resize_as_": ("Cannot access storage of BatchedTensorImpl", "vmap: "),
    "as_strided": ("result = tensor.as_strided",),
    "cov": ("vmap: It looks like you're attempting to use a Tensor in some data-dependent",),
    "native_batch_norm": ("Batch norm got a batched tensor as input",),
    "nn.functional.instance_norm": ("Batch norm got a batched tensor as input",),
    **dict.fromkeys(("bernoulli", "rand_like", "randint_like", "randn_like"), (RANDOM,)),
    "nn.functional.fractional_max_pool2d": (RANDOM,),
    "nn.functional.fractional_max_pool3d": (RANDOM,),
    "histogramdd": ("Batching rule not implemented for aten::histogramdd",),
}
UNSET = ("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted")


def replaced(x: Any, given: list[Any]) -> Any:
    """An argument with its tensors replaced, in order."""
    if isinstance(x, TensorBase):
        return given.pop(0)
    if type(x) in (list, tuple):
        return type(x)(replaced(y, given) for y in x)
    return x


def prepared(case: dict[str, Any]) -> tuple[Any, list[list[Any]]]:
    """A case as a function of its tensors, and those tensors for three members of a batch: floats
    differ from member to member, towards zero, so that they stay in their domain."""
    args = [oc.decode(torch, x, BLOB, []) for x in case["a"]]
    kwargs = {k: oc.decode(torch, x, BLOB, []) for k, x in case["k"].items()}
    first = [t.detach() for t in oc.leaves(torch, [*args, *kwargs.values()])]

    def call(*tensors: Any) -> tuple[Any, ...]:
        given = list(tensors)
        these = [replaced(x, given) for x in args]
        named = {k: replaced(x, given) for k, x in kwargs.items()}
        return tuple(oc.leaves(torch, oc.called(torch, case["f"], these, named)))

    sizes = (1.0, 0.875, 0.75)
    smooth = [t.is_floating_point() or t.is_complex() for t in first]
    rows = [[t * k if s else t for t, s in zip(first, smooth, strict=True)] for k in sizes]
    return call, rows


def which_batched(count: int) -> list[tuple[bool, ...]]:
    """All tensors; only the first; all but the first."""
    found = [(True,) * count]
    if count > 1:
        found += [(True, *[False] * (count - 1)), (False, *[True] * (count - 1))]
    return found


def chosen(rows: list[list[Any]], flags: tuple[bool, ...], k: int) -> list[Any]:
    """The tensors that member `k` sees."""
    return [rows[k if f else 0][j].clone() for j, f in enumerate(flags)]


def stacked(rows: list[list[Any]], flags: tuple[bool, ...]) -> list[Any]:
    columns = [[row[j] for row in rows] for j in range(len(flags))]
    return [torch.stack(c) if f else c[0].clone() for c, f in zip(columns, flags, strict=True)]


def dims(flags: tuple[bool, ...]) -> tuple[Any, ...]:
    return tuple(0 if f else None for f in flags)


def raw(t: Any) -> Any:
    return t.detach()._array  # NumPy's own conversion does not take bfloat16


def close(have: Any, want: Any) -> bool:
    if have.dtype != want.dtype or have.shape != want.shape:
        return False
    if have.dtype.kind not in "fc":
        return bool(np.array_equal(have, want))
    finite = np.where(np.isfinite(want), want, 0)
    scale = max(1.0, float(np.abs(finite).max(initial=0)))
    rtol = 1e-9 if want.dtype in (np.float64, np.complex128) else 1e-4
    return bool(np.allclose(have, want, rtol=rtol, atol=rtol * scale, equal_nan=True))


def refused(case: dict[str, Any], error: Exception) -> bool:
    return any(str(error).startswith(text) for text in REFUSED.get(case["f"], ()))


def mapped_differs(case: dict[str, Any]) -> list[str]:
    call, rows = prepared(case)
    if not rows[0] or case["f"].split(".")[-1] in UNSET or case["k"].get("sparse"):
        return []
    wrong = []
    for flags in which_batched(len(rows[0])):
        where = f"{case['f']} in {case['d']}, batched {flags}: {case['a']} {case['k']}"[:500]
        try:
            loop = [call(*chosen(rows, flags, k)) for k in range(3)]
        except oc.ERRORS:
            continue  # the scaled tensors are no longer ones that the function takes
        try:
            found = torch.vmap(call, in_dims=dims(flags))(*stacked(rows, flags))
        except oc.ERRORS as error:
            if not refused(case, error):
                wrong.append(f"{where}\n    {error!r}")
            continue
        for j, y in enumerate(found):
            want = np.stack([raw(row[j]) for row in loop])
            if not close(raw(y), want):
                wrong.append(f"{where}\n    {raw(y)!r} instead of {want!r}")
    return wrong


@pytest.mark.parametrize("entry", sorted(BY_ENTRY))
def test_stored_calls(entry: str) -> None:
    wrong = oc.quietly(lambda: [w for case in BY_ENTRY[entry][:8] for w in mapped_differs(case)])
    assert not wrong, "\n".join(wrong)


def smooth_case(case: dict[str, Any]) -> Any:
    """The case as a function of its float tensors, giving its float results; those tensors, and the
    results' shapes. None if it has no gradient."""
    if case["d"] != "float64" or "first" not in case["asks"]:
        return None
    call, rows = prepared(case)
    places = [j for j, t in enumerate(rows[0]) if t.is_floating_point() or t.is_complex()]

    def part(*floats: Any) -> tuple[Any, ...]:
        full = list(rows[0])
        for j, t in zip(places, floats, strict=True):
            full[j] = t
        return tuple(y for y in call(*full) if y.is_floating_point() or y.is_complex())

    floats = [[row[j] for j in places] for row in rows]
    try:
        shapes = [(tuple(y.shape), y.dtype) for y in part(*[t.clone() for t in floats[0]])]
    except oc.ERRORS:
        return None
    return (part, floats, shapes) if places and shapes else None


def gradients_differ(case: dict[str, Any]) -> list[str]:
    """vjp of vmap and vmap of vjp against a loop."""
    smooth = smooth_case(case)
    if smooth is None:
        return []
    part, rows, shapes = smooth
    gs = [oc.weights(torch, torch.zeros(3, *s, dtype=d), 0.5) for s, d in shapes]

    def pulled(*xs: Any) -> Any:
        n = len(rows[0])
        _, pull = torch.func.vjp(part, *xs[:n])
        return pull(tuple(xs[n:]))

    where = f"{case['f']}: {case['a']} {case['k']}"[:500]
    xs = [torch.stack(list(column)) for column in zip(*rows, strict=True)]
    try:
        loop = [pulled(*[t.clone() for t in rows[k]], *[g[k] for g in gs]) for k in range(3)]
    except oc.ERRORS:
        return []
    try:
        inside = torch.vmap(pulled)(*xs, *gs)
        _, pull = torch.func.vjp(torch.vmap(part), *xs)
        through = pull(tuple(gs))
    except oc.ERRORS as error:
        return [] if refused(case, error) else [f"{where}\n    {error!r}"]
    wrong = []
    for j in range(len(xs)):
        want = np.stack([raw(row[j]) for row in loop])
        for name, found in (("inside", inside[j]), ("through", through[j])):
            if not close(raw(found), want):
                wrong.append(f"{where}\n    {name}: {raw(found)!r} instead of {want!r}")
    return wrong


@pytest.mark.parametrize("entry", sorted(BY_ENTRY))
def test_stored_gradients(entry: str) -> None:
    cases = [c for c in BY_ENTRY[entry] if c["d"] == "float64"][:3]
    wrong = oc.quietly(lambda: [w for case in cases for w in gradients_differ(case)])
    assert not wrong, "\n".join(wrong)


# --- printing -------------------------------------------------------------------------------------
def test_printed_inside_and_after() -> None:
    kept: list[Any] = []
    seen: list[str] = []

    def outer(x: Any) -> Any:
        def inner(y: Any) -> Any:
            seen.extend([repr(y), repr(x), str(torch.ones(1))])
            return y

        kept.append(x)
        torch.vmap(inner)(x)
        return x

    torch.vmap(outer)(torch.arange(4.0).reshape(2, 2))
    batch = "BatchedTensor(lvl=1, bdim=0, value=\n    tensor([[0., 1.],\n            [2., 3.]])\n)"
    nested = "BatchedTensor(lvl=2, bdim=0, value=\n    " + batch.replace("\n", "\n    ") + "\n)"
    assert seen == [nested, batch, "tensor([1.])"]
    assert repr(kept[0]) == batch  # after the vmap has ended too
    assert kept[0].shape == (2,) and kept[0].dtype is torch.float32


def test_printed_under_grad() -> None:
    """A derivative outside is a level too, and what is recorded there is shown."""
    seen: list[str] = []

    def square(x: Any) -> Any:
        y = torch.vmap(lambda t: (seen.append(repr(t)), t * t)[1])(x)
        return y.sum()

    torch.func.grad(square)(torch.ones(2))
    assert seen[0].startswith("BatchedTensor(lvl=2, bdim=0, value=\n    tensor([1., 1.]")
    x = torch.ones(2, requires_grad=True)
    torch.vmap(lambda t: (seen.append(repr(t * 2)), t)[1])(x)
    assert "grad_fn=<MulBackward0>" in seen[1]


# --- derivatives at the level beneath -------------------------------------------------------------
def test_detach_cuts_at_every_level() -> None:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    torch.vmap(lambda t: t.detach() * t)(x).sum().backward()
    assert x.grad.tolist() == [1.0, 2.0, 3.0]
    found = torch.func.grad(lambda t: torch.vmap(lambda s: s.detach() * s)(t).sum())(x.detach())
    assert found.tolist() == [1.0, 2.0, 3.0]


def test_inputs_of_jvp_are_written_inside() -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])

    def twice(x: Any) -> Any:
        return torch.func.jvp(lambda t: t.mul_(2), (x.clone(),), (x,))

    value, slope = torch.vmap(twice)(x)
    assert value.tolist() == slope.tolist() == [[2.0, 4.0], [6.0, 8.0]]
