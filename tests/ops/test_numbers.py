"""What users pass as numbers, and what becomes of it: in parameters, beside tensors of every dtype,
and where dtypes hold less than Python's numbers do."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from attack import scalars
from rushlight.ops.numbers import Numbers, has_negative_zero, number, numbers_of
from rushlight.ops.registry import functions, methods, namespaces

F: Any = torch.nn.functional
HALF = (torch.float16, torch.bfloat16)


# --- one place ------------------------------------------------------------------------------------
def numbered() -> dict[str, Numbers]:
    """The functions of the table that take numbers, by name."""
    found = {}
    for names in (functions, methods, *namespaces.values()):
        for name, fn in names.items():
            if not isinstance(fn, property):
                taking, _ = numbers_of(fn, name)
                if taking is not None and any(w != "int" for _, w, _ in taking.by_name.values()):
                    found[name] = taking
    return found


def test_every_number_is_tried() -> None:
    """A function that takes a number stands in the attack that tries every kind of number."""
    tried = scalars.CALLS
    aliases = {"clip_": "clamp_", "subtract": "sub", "subtract_": "sub_", "where": "where"}
    missing = [
        name for name in numbered()
        if f".{name}(" not in tried and f".{aliases.get(name, name)}(" not in tried
        and name not in ("sspaddmm", "saddmm", "range", "pstrf")  # sparse; deprecated, they warn
    ]  # fmt: skip
    assert not missing


def test_annotations_cover_pytorch() -> None:
    """What PyTorch's schemas call a number is said to be one by our annotations too."""
    theirs = pytest.importorskip("torch")
    kinds: dict[str, dict[str, set[str]]] = {}
    for schema in theirs._C._jit_get_all_schemas():
        if schema.name.startswith("aten::"):
            for argument in schema.arguments:
                kind = str(argument.type).replace("Optional[", "").rstrip("]")
                there = kinds.setdefault(schema.name[6:], {})
                there.setdefault(argument.name, set()).add(kind)
    taking, missing = numbered(), []
    elsewhere = [(name, "dropout") for name in ("lstm", "gru", "rnn_tanh", "rnn_relu")]
    for name, fn in functions.items():
        for parameter, kind in kinds.get(name, {}).items():
            names = fn.__annotations__
            if (name, parameter) in elsewhere:
                continue  # its place differs between two forms: `test_dropout_between_layers`
            if kind <= {"number", "float"} and parameter in names and names[parameter] == "Any":
                known = taking.get(name)
                if known is None or parameter not in known.by_name:
                    missing.append(f"{name}.{parameter}")
    assert not missing


def test_number() -> None:
    for x in (np.float32(0.5), np.float64(0.5), np.float16(0.5), torch.tensor(0.5)):
        assert number(x) == 0.5 and type(number(x)) is float
    for x in (np.uint8(3), np.int64(3), torch.tensor(3), torch.tensor(3, dtype=torch.uint8)):
        assert number(x) == 3 and type(number(x)) is int
    assert number(np.bool_(True)) is True and number(torch.tensor(False)) is False
    assert type(number(3, "float")) is float and number(1j) == 1j
    for x in ("a", None, [1], np.ones(1), np.array(1.0), torch.ones(1)):
        assert number(x) is NotImplemented
    assert number(torch.tensor(1.0, requires_grad=True)) is NotImplemented
    assert number(1j, "float") is NotImplemented and number(True, "int") is NotImplemented
    assert number(2.0, "int") is NotImplemented and number(np.int32(2), "int") == 2
    assert has_negative_zero((1, -0.0)) and not has_negative_zero((0.0, 0, False))


# --- parameters -----------------------------------------------------------------------------------
KINDS = (np.float64, np.float32, torch.tensor, lambda n: torch.tensor(n, dtype=torch.float64))


@pytest.mark.parametrize("kind", KINDS)
def test_parameters(kind: Any) -> None:
    x = torch.tensor([-2.0, 1.0])
    half, two = kind(0.5), kind(2.0)
    cases = [
        (F.leaky_relu(x, half), [-1.0, 1.0]),
        (F.hardtanh(x, -half, half), [-0.5, 0.5]),
        (F.threshold(x, half, two), [2.0, 1.0]),
        (F.hardshrink(x, two), [0.0, 0.0]),
        (F.softshrink(x, half), [-1.5, 0.5]),
        (torch.add(x, x, alpha=two), [-6.0, 3.0]),
        (torch.addcmul(x, x, x, value=half), [0.0, 1.5]),
        (x.norm(two).square(), 5.0),
        (F.huber_loss(x, x * 0, delta=two), 1.25),
        (F.smooth_l1_loss(x, x * 0, beta=two), 0.625),
        (torch.var(x, correction=kind(0.0)), 2.25),
        (x.scatter(0, torch.tensor([0]), value=half), [0.5, 1.0]),
        (x.masked_fill(x > 0, half), [-2.0, 0.5]),
        (torch.full_like(x, half), [0.5, 0.5]),
        (torch.nn.Threshold(half, two)(x), [2.0, 1.0]),
    ]
    for found, want in cases:
        assert found.dtype is torch.float32 and repr(found)
        assert found.tolist() == pytest.approx(want)
    weight = torch.tensor([1.0], requires_grad=True)
    for optimizer in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop):
        steps = optimizer([weight], lr=kind(0.0), weight_decay=half)
        (weight * weight).sum().backward()
        steps.step()
        assert weight.tolist() == [1.0] and weight.dtype is torch.float32


@pytest.mark.parametrize("kind", (*KINDS, float))
@pytest.mark.parametrize("name", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
def test_dropout_between_layers(name: str, kind: Any) -> None:
    gates = {"lstm": 4, "gru": 3}.get(name, 1)
    weights = [torch.ones(gates, 1), torch.ones(gates, 1)] * 2
    h = torch.zeros(2, 1, 1)
    hx = (h, h) if name == "lstm" else h
    rows, one = torch.ones(3, 1), torch.tensor([1, 1, 1])
    run = getattr(torch, name)
    for p, kept in ((kind(0.0), True), (kind(1.0), False)):
        padded = run(rows[:, None], hx, weights, False, 2, p, True, False, False)[0]
        packed = run(rows, one, hx, weights, False, 2, p, True, False)[0]
        assert padded.flatten().tolist() == packed.flatten().tolist()
        plain = run(rows[:, None], hx, weights, False, 2, 0.0, True, False, False)[0]
        assert (padded.tolist() == plain.tolist()) is kept
    for wrong in ("a", None, [0.5]):
        with pytest.raises(TypeError, match=rf"{name}\(\) received an invalid combination"):
            run(rows[:, None], hx, weights, False, 2, wrong, True, False, False)
        with pytest.raises(TypeError, match=rf"{name}\(\) received an invalid combination"):
            run(rows, one, hx, weights, False, 2, wrong, True, False)


def test_whole_numbers() -> None:
    x = torch.tensor([3.0, 1.0, 2.0])
    for k in (2, np.int64(2), np.uint8(2), torch.tensor(2)):
        assert x.topk(k).values.tolist() == [3.0, 2.0]
        assert torch.stack([x, x], torch.tensor(0)).shape == (2, 3)
    assert torch.hardshrink(x, np.uint8(2)).tolist() == [3.0, 0.0, 0.0]
    for k in (2.0, "2", None, True, torch.tensor(2.0)):
        with pytest.raises(TypeError, match=r"topk\(\): argument 'k' \(position 1\) must be int"):
            x.topk(k)


def test_written_numbers() -> None:
    x = torch.zeros(2)
    x[0] = np.int64(3)
    x[1] = np.float32(0.5)
    assert x.tolist() == [3.0, 0.5] and x.dtype is torch.float32


@pytest.mark.parametrize(
    "wrong, name",
    [("a", "str"), (None, "NoneType"), ([1], "list"), (np.ones(1), "numpy.ndarray")],
)
def test_refused(wrong: Any, name: str) -> None:
    x = torch.ones(2)
    with pytest.raises(
        TypeError, match=r"leaky_relu\(\): argument 'negative_slope' \(position 2\)"
    ):
        F.leaky_relu(x, wrong)
    with pytest.raises(TypeError, match=rf"add\(\): argument 'alpha' must be Number, not {name}"):
        torch.add(x, x, alpha=wrong)
    with pytest.raises(TypeError, match=rf"must be float, not {name}"):
        torch.dropout(x, wrong, True)


def test_what_asks_for_gradients_is_no_number() -> None:
    x, slope = torch.ones(2), torch.tensor(0.1, requires_grad=True)
    with pytest.raises(TypeError, match="must be Number, not Tensor"):
        F.leaky_relu(x, slope)
    with pytest.raises(TypeError, match="must be float, not Tensor"):
        F.layer_norm(x, (2,), eps=slope)
    with pytest.raises(RuntimeError, match="cannot be converted to type float without overflow"):
        F.leaky_relu(x, 1j)


def test_negative_zero_is_a_number_of_its_own() -> None:
    x = torch.tensor([-1.0])
    assert math.copysign(1, F.threshold(x, 0.0, 0.0).item()) == 1
    assert math.copysign(1, F.threshold(x, 0.0, -0.0).item()) == -1
    assert (torch.pow(-0.0, x).item(), torch.pow(0.0, x).item()) == (-math.inf, math.inf)


# --- beside tensors -------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", HALF)
def test_comparisons_in_low_precision(dtype: Any) -> None:
    x = torch.tensor([0.1], dtype=dtype)
    zero_d = torch.tensor(0.1)
    for other in (0.1, zero_d, torch.tensor(0.1, dtype=torch.float64), np.float64(0.1)):
        assert (x == other).item() and (x >= other).item() and (x <= other).item()
        assert not (x != other).item() and not (x < other).item() and not (x > other).item()
        assert (x - other).item() == 0.0 and torch.isin(x, other).item()
    assert torch.where(x == 0.1, 1.0, x).item() == 1.0
    assert torch.fmod(x, 0.1).item() == 0.0 and (x % 0.1).item() == 0.0


def test_large_numbers_in_low_precision() -> None:
    x = torch.tensor([math.inf, 1.0], dtype=torch.float16)
    assert (x == 2**40).tolist() == [True, False]  # which float16 holds as infinity
    assert math.isnan((x - 2**40)[0].item())
    for write in (x.clone().fill_, x.clamp, x.masked_fill(x > 0, 0).masked_fill):
        args = (torch.tensor([True, False]), 70000.0) if "masked" in write.__name__ else (70000.0,)
        with pytest.raises(RuntimeError, match="type c10::Half without overflow"):
            write(*args)
    assert torch.where(x > 5, 70000.0, x).tolist() == [math.inf, 1.0]


def test_products_read_numbers_as_they_are() -> None:
    x = torch.tensor([3.0], dtype=torch.bfloat16)
    assert (x * 0.1).item() == torch.tensor(0.3, dtype=torch.bfloat16).item()
    assert (x / 0.1).item() == 30.0


def test_integers_wrap_round() -> None:
    x = torch.tensor([5, 200], dtype=torch.uint8)
    assert (x % -3).tolist() == [5, 200]  # -3 is 253
    assert ((-3) ** torch.tensor([2, 3], dtype=torch.uint8)).tolist() == [9, 229]
    assert torch.fmod(torch.tensor([5], dtype=torch.int8), 300).tolist() == [5]
    assert torch.clamp(x, -1).tolist() == [255, 255]
    assert torch.where(x > 9, x, -1).tolist() == [255, 200]
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.tensor([1], dtype=torch.int8) // 256
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        np.int64(1) % torch.tensor([0])
    with pytest.raises(RuntimeError, match="cannot be converted to type int8_t without overflow"):
        torch.tensor([1], dtype=torch.int8) ** 300


# --- results of every dtype -----------------------------------------------------------------------
def test_complex_halves() -> None:
    re = torch.tensor([1.0, 2.0], dtype=torch.float16, requires_grad=True)
    im = torch.tensor([3.0, 4.0], dtype=torch.float16, requires_grad=True)
    z = torch.complex(re, im)
    assert z.dtype is torch.complex32
    assert z.real.tolist() == [1.0, 2.0] and z.imag.tolist() == [3.0, 4.0]
    assert z.imag.dtype is torch.float16 and z.conj().imag.tolist() == [-3.0, -4.0]
    assert torch.isreal(z).tolist() == [False, False]
    (z.real * 2 + z.imag * 3).sum().backward()
    assert re.grad.tolist() == [2.0, 2.0] and im.grad.tolist() == [3.0, 3.0]
    assert z.detach().norm().dtype is torch.float16


@pytest.mark.parametrize("dtype, step", [(torch.float16, 2**-10), (torch.bfloat16, 2**-7)])
def test_nextafter_in_low_precision(dtype: Any, step: float) -> None:
    one, two = torch.tensor([1.0], dtype=dtype), torch.tensor([2.0], dtype=dtype)
    assert torch.nextafter(one, two).item() == 1 + step
    assert torch.nextafter(one, one).item() == 1.0


def test_special_values() -> None:
    assert torch.lgamma(torch.tensor([-math.inf])).item() == math.inf
    assert torch.special.gammaln(torch.tensor([-math.inf])).item() == math.inf
    assert torch.logit(torch.tensor([0.2]), 1.0).item() == math.inf
    x = torch.tensor([1.0, math.nan, 2.0], dtype=torch.bfloat16)
    assert torch.isin(x, x.flip(0)).tolist() == [True, False, True]
    x = torch.tensor([[-1.0, 2.0, 5.0]], requires_grad=True)
    with pytest.warns(UserWarning, match="degrees of freedom"):
        torch.var(x, 1, correction=3).backward()
    assert x.grad.tolist()[0][::2] == [-math.inf, math.inf]


def test_results_of_mixed_dtypes() -> None:
    whole, half = torch.tensor([1, 2], dtype=torch.int32), torch.tensor([1.0, 1.0]).half()
    assert torch.dist(whole, half).dtype is torch.float16
    with pytest.raises(RuntimeError, match="must match the size"):
        torch.dist(torch.ones(2), torch.ones(3))
    assert torch.add(torch.tensor([True]), torch.tensor([False]), alpha=2).dtype is torch.bool


def test_dtypes_of_indices() -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    flat = torch.tensor([0, 3])
    assert torch.take_along_dim(x, flat.int()).tolist() == [1.0, 4.0]
    with pytest.raises(RuntimeError, match="Expected dtype int32/int64 for index"):
        torch.take_along_dim(x, flat.short())
    with pytest.raises(RuntimeError, match="dtype of indices should be Long but got Int"):
        torch.take_along_dim(x, torch.tensor([[0, 1]]).int(), 0)
    with pytest.raises(RuntimeError, match="to have dtype of long, but got Int"):
        torch.tensor_split(x, flat.int())
    with pytest.raises(RuntimeError, match="sorter must be a tensor of long dtype"):
        torch.searchsorted(x[0], x[0], sorter=flat.int())


def test_second_derivatives_of_renorm_in_half() -> None:
    x = torch.tensor([[1e-3, 0.0], [3.0, 4.0]], dtype=torch.float16, requires_grad=True)
    (g,) = torch.autograd.grad(x.renorm(2, 0, 1.5).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad((g * g).sum(), x)
    assert h[0].tolist() == [0.0, 0.0]


def test_remainders_slope() -> None:
    a, b = torch.tensor([3.0, 1.0]), torch.tensor([0.1, 0.1], requires_grad=True)
    torch.remainder(a.double(), b.double()).sum().backward()
    want = [-(3.0 // 0.10000000149011612), -(1.0 // 0.10000000149011612)]
    assert b.grad.tolist() == want


# --- rules beside operands of other dtypes --------------------------------------------------------
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8])
@pytest.mark.parametrize("shape", [(), (1,)])
def test_logarithms_of_small_integers_keep_their_digits(dtype: Any, shape: Any) -> None:
    b = torch.full(shape, 3, dtype=dtype)
    for function, want in (
        (torch.pow(b, torch.tensor([2.0], requires_grad=True)), 9 * math.log(3)),
        (torch.xlogy(torch.tensor([2.0], requires_grad=True), b), math.log(3)),
        (torch.special.xlog1py(torch.tensor([2.0], requires_grad=True), b), math.log(4)),
        (torch.ldexp(torch.tensor([2.0], requires_grad=True), b * 7), 2.0**21),
    ):
        leaf = function.grad_fn.next_functions[0][0] or function.grad_fn.next_functions[1][0]
        function.sum().backward()
        assert leaf.variable.grad.item() == pytest.approx(want, rel=1e-6)


def test_slopes_see_the_numbers_that_were_compared() -> None:
    """A 0-d tensor of a wider dtype is rounded to the other's before an op compares them: its
    rule must find equal what the op did."""
    n = torch.tensor(0.1, dtype=torch.float64)
    for dtype in (torch.float32, *HALF):
        for function, want in (
            (lambda x: torch.clamp_max(x, n), 1.0),
            (lambda x: torch.clamp_min(x, n), 1.0),
            (lambda x: torch.clamp(x, n, n), 1.0),
            (lambda x: torch.clamp(x, max=n), 1.0),
            (lambda x: torch.maximum(x, n), 0.5),
            (lambda x: torch.minimum(n, x), 0.5),
            (lambda x: torch.fmax(x, n), 1.0),
            (lambda x: torch.fmin(x, n), 1.0),
            (lambda x: torch.nextafter(x, n), 0.0),
            (lambda x: torch.remainder(n, x), -1.0),
            (lambda x: torch.fmod(n, x), -1.0),
        ):
            x = torch.tensor([0.1], dtype=dtype, requires_grad=True)
            function(x).sum().backward()
            assert x.grad.tolist() == [want], (dtype, want)
            tangent = torch.func.jvp(function, (x.detach(),), (torch.ones_like(x.detach()),))[1]
            assert tangent.tolist() == [want], (dtype, want)


def test_ends_of_clamps_in_low_precision() -> None:
    """`clamp` compares with the end as the dtype holds it, `hardtanh` with the one given: 0.1 lies
    above what float16 makes of it, and below what bfloat16 does."""
    for dtype, slope in ((torch.float16, 1.0), (torch.bfloat16, 0.0)):
        x = torch.tensor([0.1, 0.2, -0.1], dtype=dtype, requires_grad=True)
        for function, want in (
            (lambda t: torch.clamp(t, -1, 0.1), [1, 0, 1]),
            (lambda t: torch.clamp_max(t, 0.1), [1, 0, 1]),
            (lambda t: torch.clamp(t, -0.1, 3), [1, 1, 1]),
            (lambda t: F.hardtanh(t, -1, 0.1), [slope, 0, 1]),
            (lambda t: F.hardshrink(t, 0.1), [0, 1, 0]),
            (lambda t: F.softshrink(t, 0.1), [0, 1, 0]),
        ):
            (g,) = torch.autograd.grad(function(x).sum(), x)
            assert g.tolist() == want, dtype
