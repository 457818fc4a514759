"""Conjugate and negated views: what is put off is done when elements are read, and undone when they
are written; PyTorch shows the same bits, views and graphs."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight.arrays import vocabulary as v
from rushlight.arrays.deferred import CONJ, NEG, Deferred, done
from rushlight.arrays.host import in_memory, put_off, settled
from rushlight.core.engine.engine import backward_of
from rushlight.core.graph import wrap
from rushlight.core.record import apply
from tests import harness
from tests.arrays import cases_deferred as cases
from tests.laws import cases_ops as calls
from tests.laws.test_laws import CASES, SMOOTH, cotangents, is_float, listed, node_of

STORED = harness.stored("arrays/deferred")


# --- PyTorch --------------------------------------------------------------------------------------
def agree(got: Any, want: Any) -> None:
    """Equal; numbers to the digits that are stored."""
    if isinstance(want, list):
        assert isinstance(got, list) and len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            agree(a, b)
    elif isinstance(want, float):
        assert got == pytest.approx(want, rel=1e-4, abs=2e-4)
    else:
        assert harness.agree(want, got)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("line", cases.LINES)
def test_pytorch_shows_the_same(line: str) -> None:
    agree(harness.as_stored(cases.run_line(torch, line)), STORED[line])


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", sorted(cases.programs))
def test_pytorch_does_the_same(name: str) -> None:
    agree(harness.as_stored(cases.run_program(torch, name)), STORED[name])


def test_all_cases_are_stored() -> None:
    assert STORED.keys() == {*cases.LINES, *cases.programs}


if harness.LIVE:

    @pytest.mark.filterwarnings("ignore")
    def test_stored_results_are_pytorchs() -> None:
        found = harness.as_stored(cases.results(harness.pytorch()))
        for name, want in STORED.items():
            agree(found[name], want)


# --- laws -----------------------------------------------------------------------------------------
def behind(x: Any) -> Any:
    """An array that reads as `x`, of which all is put off that can be."""
    if isinstance(x, list):
        return [behind(y) for y in x]
    if not is_float(x):
        return x
    bits = CONJ | NEG if x.dtype.kind == "c" else NEG
    return Deferred(done(x, bits), bits)


def as_tensors(xs: tuple[Any, ...], asks: bool) -> list[Any]:
    made: list[Any] = []
    for x in xs:
        if isinstance(x, (np.ndarray, Deferred)):
            t = wrap(x)
            t._requires_grad = asks and is_float(x)
            made.append(t)
        else:
            made.append(x)
    return made


def same(got: Any, want: Any) -> None:
    for a, b in zip(listed(got), listed(want), strict=True):
        a, b = np.asarray(settled(a)), np.asarray(settled(b))
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(("op", "xs"), CASES)
def test_every_op_reads_what_is_put_off(op: Any, xs: tuple[Any, ...]) -> None:
    plain = listed(apply(op, *as_tensors(xs, False)))
    found = listed(apply(op, *as_tensors(tuple(behind(x) for x in xs), False)))
    same(tuple(t._array for t in found), tuple(t._array for t in plain))


@pytest.mark.parametrize(("op", "xs"), SMOOTH)
def test_every_gradient_reads_what_is_put_off(op: Any, xs: tuple[Any, ...]) -> None:
    found = []
    for inputs in (xs, tuple(behind(x) for x in xs)):
        made = apply(op, *as_tensors(inputs, True))
        node = node_of(made)
        ys = [np.asarray(settled(t._array)) for t in listed(made)]
        gs = cotangents(ys, 3)
        outs = backward_of(node, gs if node._output_metas is not None else gs[0], False)
        found.append(tuple(g for g in outs if g is not None))
    same(found[1], found[0])


# What these do with such a view is another thing than with the numbers that it reads as.
NOT_ALIKE = {"resolve_conj", "resolve_neg", "view_as_real"}
STORED_CALLS, _, BLOB = calls.load()
ENTRIES = sorted({case["n"] for case in STORED_CALLS} - NOT_ALIKE)


def behind_tensor(m: Any, entry: list[Any], blob: Any, made: list[Any]) -> Any:
    """The tensor of a stored call, as a conjugate or negated view that reads as it."""
    asking: list[Any] = []
    x = DECODE(m, entry, blob, asking).detach()
    if x.is_complex():
        x = x.conj().clone().conj()
    elif x.is_floating_point():
        x = m._neg_view(m._neg_view(x).clone())
    if asking:
        made.append(x.requires_grad_())
    return x


DECODE = calls.decode_tensor


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_function_reads_and_writes_what_is_put_off(
    entry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Functions, their gradients, methods, forms in place and `out=`: as of plain tensors."""
    found = [case for case in STORED_CALLS if case["n"] == entry and case["d"][-2:] in ("64", "28")]
    monkeypatch.setattr(calls, "decode_tensor", behind_tensor)

    def compare() -> list[str]:
        wrong: list[str] = []
        for case in found[:: max(len(found) // 2, 1)]:
            want = calls.filled(calls.unpack(case["want"], BLOB))
            wrong += calls.disagreements(case, calls.observe(torch, case, BLOB), want)
        return wrong

    assert not calls.quietly(compare)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 2)])
@pytest.mark.parametrize("bits", [CONJ, NEG, CONJ | NEG])
def test_writes_put_into_memory_what_reads_as_it_was_given(
    shape: tuple[int, ...], bits: int
) -> None:
    draw = np.random.default_rng(1)
    plain = np.asarray(draw.normal(size=shape) + 1j * draw.normal(size=shape))
    x, given = Deferred(plain, bits), np.asarray(draw.normal(size=shape) + 2j)
    v.overwrite(x, given)
    same(x, given)
    same(plain, done(given, bits))
    v.overwrite(x, Deferred(given, NEG))
    same(x, -given)
    x += 1
    x *= 2j
    same(x, (1 - given) * 2j)
    x.fill(3 - 1j)
    same(x, np.full(shape, 3 - 1j))
    v.overwrite(x, np.ones(shape, bool))
    same(x, np.ones(shape, complex))
    if plain.size and plain.ndim:
        x[..., 0] = 5j
        v.store(x, 7j, (..., -1))
        v.store_add(x, np.asarray(1j), (..., -1))
        assert x[..., 0].tolist() in (5j, 8j) or set(x[..., 0].tolist()) <= {5j, 8j}
        same(x[..., -1], np.full(shape[:-1], 8j))


def test_a_number_is_written_as_it_is_read() -> None:
    assert done(2 + 1j, CONJ) == 2 - 1j and done(2 + 1j, NEG) == -2 - 1j and done(3, CONJ) == 3
    x = torch.zeros(2, dtype=torch.complex64)
    x.conj().imag.fill_(2.5)
    assert x.tolist() == [-2.5j, -2.5j]


@pytest.mark.parametrize("dtype", [torch.complex32, torch.complex64, torch.complex128])
def test_every_complex_dtype(dtype: Any) -> None:
    x = torch.tensor([1 + 2j, -3j]).to(dtype)
    y = x.conj()
    assert y.is_conj() and y.dtype is dtype and y.to(torch.complex64).tolist() == [1 - 2j, 3j]
    assert y.imag.is_neg() and y.imag.tolist() == [-2, 3]
    assert y.conj().to(torch.complex64).tolist() == [1 + 2j, -3j]


def test_ints_can_be_negated_views() -> None:
    x = torch.tensor([1, 2])
    y = torch._neg_view(x)
    y += 5
    assert y.tolist() == [4, 3] and x.tolist() == [-4, -3] and y.is_neg()


# --- what is put off of a tensor, and what is not -------------------------------------------------
def test_plain_tensors_hold_plain_arrays() -> None:
    x = torch.tensor([[1 + 2j]], requires_grad=True)
    y = x.conj()
    assert put_off(y._array) == CONJ and in_memory(y._array) is x._array
    for t in (y.conj(), y + 1, y.clone(), y.real, y.resolve_conj(), torch.cat([y, y]), y[[0]]):
        assert type(t._array) is np.ndarray


def test_gradients_have_nothing_put_off() -> None:
    x = torch.tensor([1 + 2j], requires_grad=True)
    g = torch.tensor([1j])
    (found,) = torch.autograd.grad(x.conj(), x, g.conj())
    assert not found.is_conj() and found.tolist() == [1j]
    x.conj().backward(g)
    assert x.grad is not None and x.grad.numpy().tolist() == [-1j]
    y = x * 1
    y.conj().add_(1)
    (found,) = torch.autograd.grad(y, x, g)
    assert found.numpy().tolist() == [1j] and g.tolist() == [1j]


def test_memory_is_not_exported_with_the_wrong_signs() -> None:
    z = torch.tensor([1 + 2j]).conj().imag
    with pytest.raises(BufferError, match="negative bit"):
        z.__dlpack__()


@pytest.mark.parametrize("name", ["Adam", "RMSprop", "Adagrad", "SGD", "NAdam", "Rprop"])
def test_optimisers_step_conjugates_as_they_step_plain_tensors(name: str) -> None:
    start = torch.tensor([[1 + 2j, 3 - 1j], [0.5j, 2 + 0j]])
    found = []
    for tensor in (start.clone(), start.conj().clone().conj()):
        other = torch.nn.Parameter(torch.ones(2))
        p = torch.nn.Parameter(tensor)
        opt = getattr(torch.optim, name)([p, other], lr=0.1)
        for _ in range(3):
            opt.zero_grad()
            ((p * p.conj() * p).abs().sum() + other.sum()).backward()
            opt.step()
        found.append(p.tolist())
    assert p.is_conj() and found[0] != start.tolist()
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6)


def test_pickles_and_copies() -> None:
    x = torch.tensor([1 + 2j, 3j])
    a, b = pickle.loads(pickle.dumps((x, x.conj())))
    b.mul_(1j)
    assert b.is_conj() and a.tolist() == [2 - 1j, 3 + 0j]
    c, d = copy.deepcopy([x, x.conj()])
    assert not d.is_conj() and d.tolist() == [1 - 2j, -3j] and c.tolist() == x.tolist()


def test_other_processes_get_conjugates() -> None:
    from rushlight.multiprocessing.reductions import reduce_tensor

    x = torch.tensor([1 + 2j, 3j])
    y = x.conj()
    _, arguments, _ = reduce_tensor(y)
    assert arguments[-2][-1] == CONJ and x.is_shared() and y.is_conj()
    y.add_(1j)
    assert x.tolist() == [1 + 1j, 2j]


def test_batches_of_a_dataset() -> None:
    rows = torch.tensor([[1 + 2j, 3j], [4j, 5 - 1j]])
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(rows.conj()), batch_size=2)
    assert next(iter(loader))[0].tolist() == rows.conj().tolist()


def test_an_array_answers_as_others_do() -> None:
    x = Deferred(np.array([[1 + 2j, -3j]]), CONJ)
    assert len(x) == 1 and x.sum() == 1 + 1j and x.tolist() == [[1 - 2j, 3j]]
    assert np.shape(x) == (1, 2) and np.zeros_like(x).dtype == complex and "Deferred" in repr(x)
    assert np.concatenate([x, x]).tolist() == [[1 - 2j, 3j]] * 2
    assert complex(x[0, 0]) == 1 - 2j and bool(x[0, 1]) and float(x.imag[0, 0]) == -2
    assert int(x.real[0, 0]) == 1
    np.copyto(x, np.array([[1j, 1j]]))
    assert x.plain.tolist() == [[-1j, -1j]]
    with pytest.raises(AttributeError, match="put"):
        x.put  # it would write into a copy
