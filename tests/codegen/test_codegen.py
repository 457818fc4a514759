"""From the op table to C: what is recorded, what is written, and what the kernels compute.

Kernels are compared with the rules they were made from, run on NumPy arrays.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight.arrays import kernels
from rushlight.codegen import catalogue, recording
from rushlight.codegen.build import show
from rushlight.codegen.expressions import EACH, ROW, in_order
from rushlight.codegen.language import c_of, c_of_columns
from rushlight.codegen.module import c_module
from rushlight.codegen.numpy_loops import ARITHMETIC, LOOPS
from rushlight.ops.registry import table as ops

needs_kernels = pytest.mark.skipif(not kernels.table, reason="not compiled")

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 3.0, -3.0, 1e-30, -1e-30, 1e30, -1e30, 88.0, -88.0,
           709.0, -745.0, np.inf, -np.inf, np.nan]  # fmt: skip


def by_class(name: str) -> Any:
    return next(c for c in ops.values() if c.__qualname__ == name)


# --- recording ------------------------------------------------------------------------------------
def trace(fn: Any, rows: bool = False) -> Any:
    def run(m: int, n: int) -> Any:
        return fn(recording.array(0, (m, n) if rows else (m * n,), np.float32, m, n))

    return recording.trace(run)[0]


def test_equal_expressions_are_one() -> None:
    (found,) = trace(lambda x: (x + 1) * (x + 1))
    assert found.args[0] is found.args[1]
    assert len(in_order((found,))) == 4  # x, 1, x + 1, the product


def test_a_size_that_a_rule_divides_by_becomes_the_count() -> None:
    (found,) = trace(lambda x: torch_sum(x) / x.shape[-1], rows=True)
    assert found.role == ROW and found.args[1].word == "count"


def torch_sum(x: Any) -> Any:
    from rushlight.arrays import vocabulary as v

    return v.reduce_sum(x, (-1,), True)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x * x.size,  # neither a count of columns nor one over it
        lambda x: x if x.size < 34 else -x,  # another formula for other sizes
        lambda x: x if x > 0 else -x,  # a look at numbers
        lambda x: np.sin(x) if bool(x.any()) else x,
        lambda x: np.modf(x)[0],  # two results
        lambda x: x.astype(int),
    ],
)
def test_what_depends_on_numbers_or_sizes_gives_no_kernel(fn: Any) -> None:
    with pytest.raises((recording.Unfit, AttributeError)):
        trace(fn)


def test_ops_that_c_has_no_words_for_give_no_kernel() -> None:
    assert catalogue.kernel_of(by_class("Lgamma")(), "forward", by_rows=False) is None
    assert catalogue.kernel_of(by_class("Exp")(), "forward", by_rows=False) is not None


def test_functions_of_numpys_take_its_loops() -> None:
    sin = catalogue.kernel_of(by_class("Sin")(), "forward", by_rows=False)
    assert sin is not None and "numpy_loop(LOOP_sin, 0" in c_of(sin, "f", "k")
    assert "numpy_loop(LOOP_sin, 1" in c_of(sin, "d", "k")
    exp = catalogue.kernel_of(by_class("Exp")(), "forward", by_rows=False)
    assert exp is not None and "r_exp_f(" in c_of(exp, "f", "k")
    tan = catalogue.kernel_of(by_class("Tan")(), "forward", by_rows=False)
    assert tan is not None and "numpy_loop_rounded(" in c_of(tan, "f", "k")


# --- the text -------------------------------------------------------------------------------------
def test_the_module_is_the_same_each_time() -> None:
    names = [k.name for k in catalogue.shipped()]
    assert len(names) == len(set(names)) > 100
    assert c_module(catalogue.shipped()) == c_module(catalogue.shipped())


def test_softmax_takes_three_loops_and_one_exponential() -> None:
    text = show("Softmax.forward").split("/* Softmax.forward")[1].split("\n\n/*")[0]
    assert text.count("r_exp_f(") == 1  # put aside in the result, not computed again
    assert len(re.findall(r"for \(npy_intp i", text)) == 3


def test_parameters_are_read_once_in_double() -> None:
    text = show("Elu.forward").split("/* Elu")[1]
    assert "double o" in text and text.index("p[0] * p[1]") < text.index("for (npy_intp i")


def test_a_softmax_over_columns_has_the_same_loops_and_one_exponential() -> None:
    kernel = next(k for k in catalogue.shipped() if k.name == "Softmax.forward")
    text = c_of_columns(kernel, "f", "k")
    assert text.count("r_exp_f(") == 1 and text.count("i < n") == 3


def test_double_has_its_own_text() -> None:
    kernel = catalogue.kernel_of(by_class("Silu")(), "forward", by_rows=False)
    assert kernel is not None and all(e.role in (EACH, "one") for e in in_order(kernel.outputs))
    assert "r_expit_d" in c_of(kernel, "d", "k") and "r_expit_f" not in c_of(kernel, "d", "k")


def test_nothing_has_that_name() -> None:
    assert show("no such thing") == ""


# --- what they compute ----------------------------------------------------------------------------
@needs_kernels
@pytest.mark.parametrize(
    "name", ["exp", "expm1", "elu", "log", "log1p", "tanh", "sigmoid", "erf", "exp2", "tan", "sin"]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_are_exact_to_the_last_digits(name: str, dtype: str) -> None:
    from scipy import special

    wide: Any = {
        "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "erf": special.erf,
        "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    }.get(name, getattr(np, name, None))  # fmt: skip
    rng = np.random.default_rng(1)
    parts = [rng.standard_normal(40_000) * s for s in (1e-3, 0.3, 1, 3, 20)]
    parts.append(np.exp(rng.uniform(-80, 80, 40_000)))
    x = np.concatenate(parts).astype(dtype)
    if name == "log":
        x = abs(x)
    if name == "log1p":
        x = x[x > -1]
    exact = np.longdouble if name != "erf" else np.float64
    with np.errstate(all="ignore"):
        want = wide(x.astype(exact))
        rounded = want.astype(dtype)
    kernel = kernels.table[f"{name.capitalize()}.forward"]
    y = (kernel.bind(1, 1, 1) if name == "elu" else kernel)(x)
    normal = np.isfinite(rounded) & (abs(rounded) >= np.finfo(dtype).tiny)
    assert np.array_equal(np.isinf(y), np.isinf(rounded))
    units = abs(y[normal] - want[normal]) / np.spacing(abs(rounded[normal]))
    if name in ("expm1", "tanh", "sin") or (dtype == "float64" and name in LOOPS):
        assert units.max() <= 4.0  # what NumPy promises of its loops
    else:
        assert units.max() <= (3.0 if dtype == "float64" else 1.5)
    assert units.mean() <= 0.4  # a quarter would be the exact result, rounded


@needs_kernels
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_arithmetic_of_many_elements_has_the_same_bits(dtype: str) -> None:
    """It is NumPy's from some length on: Note [Long lines] in `codegen.numpy_loops`."""
    titles = {
        "Add.alpha=1": "add", "Sub.alpha=1": "subtract", "Mul": "multiply", "Div": "divide",
        "Neg": "negative", "Abs": "absolute", "Floor": "floor", "Ceil": "ceil", "Trunc": "trunc",
    }  # fmt: skip
    assert set(titles.values()) <= set(ARITHMETIC)
    rng = np.random.default_rng(5)
    x, y = (rng.standard_normal(40_000).astype(dtype) * 100 for _ in range(2))
    x[::17], y[::23], x[::29] = np.nan, 0, -0.0
    with np.errstate(all="ignore"):
        for title, name in titles.items():
            fn, kernel = getattr(np, name), kernels.table[f"{title}.forward"]
            for n in (1, 16_383, 16_384, 40_000):
                given = [a[:n] for a in (x, y)[: fn.nin]]
                assert kernel(*given).tobytes() == fn(*given).tobytes()
            short = [a[16_000:16_400] for a in (x, y)[: fn.nin]]
            whole = kernel(*(x, y)[: fn.nin])
            assert whole[16_000:16_400].tobytes() == kernel(*short).tobytes()


@needs_kernels
def test_arrays_that_a_kernel_is_not_made_for_are_refused() -> None:
    exp = kernels.table["Exp.forward"]
    x = np.ones((4, 6), np.float32)
    assert exp(x).shape == (4, 6) and exp(x.T).flags.f_contiguous
    for wrong in (x.astype(np.int16), x.astype(int), x.astype(">f4"), 1.0, None,
                  np.ma.masked_array(x)):  # fmt: skip
        assert exp(wrong) is None
    assert exp() is None and exp(x, x) is None
    softmax = kernels.table["Softmax.forward"]
    assert softmax(x[:0]) is None and softmax(np.float32(1)) is None
    assert softmax.over((2,), False)(x) is None
    larger = kernels.table["Maximum.forward"]
    assert larger(x, x[:, :5]) is None and larger(x, x.astype(float)) is None
    assert larger(x, "a") is None and larger(x, True) is None and larger(2.0, 1.0) is None
    with pytest.raises(TypeError, match="takes 0 numbers, not 1"):
        exp.bind(1.0)
    with pytest.raises(TypeError):
        kernels.table["Elu.forward"].bind("a", 1, 1)
    with pytest.raises(TypeError, match="over"):
        softmax.over(1)
    with pytest.raises(TypeError):
        softmax.over(("a",), False)


@needs_kernels
def test_a_family_gives_the_gradients_that_are_wanted() -> None:
    mul = kernels.kernel_of(by_class("Mul")(), "vjp")
    g, a, b = (np.full(3, float(i), np.float32) for i in (2, 3, 5))
    assert mul(1, g, None, b)[1] is None and mul(1, g, None, b)[0].tolist() == [10, 10, 10]
    assert mul(2, g, a, None)[0] is None and mul(2, g, a, None)[1].tolist() == [6, 6, 6]
    assert [y.tolist() for y in mul(3, g, a, b)] == [[10, 10, 10], [6, 6, 6]]
    assert mul(1, g, None, 2)[0].tolist() == [4, 4, 4]
    for wrong in ((0, g, a, b), (4, g, a, b), ("a", g, a, b), (2, g, None, b), (3,), ()):
        assert mul(*wrong) is None
    with pytest.raises(TypeError):
        kernels._module.family(2)
    with pytest.raises(ValueError, match="not a kernel"):
        kernels._module.family(2, {1: 3})


@needs_kernels
def test_writing_into_arrays() -> None:
    cell = kernels.table["Exp.forward"]
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 24
    y = np.zeros((2, 3, 8), np.float32)
    assert cell.into((y[..., :4],), x)
    np.testing.assert_allclose(y[..., :4], np.exp(x), rtol=1e-6)
    assert not y[..., 4:].any()
    before = x.copy()
    assert cell.into((x,), x)
    np.testing.assert_allclose(x, np.exp(before), rtol=1e-6)
    x.flags.writeable = False
    assert not cell.into((x,), x)
    assert not cell.into((y,), x) and not cell.into((y[..., ::2],), before)
    assert not cell.into((), x) and not cell.into([y], x)
    assert cell.into((np.zeros((0, 3), np.float32),), np.zeros((0, 3), np.float32))


@needs_kernels
@pytest.mark.parametrize("size", [1, 7, 1024, 5000, 300_000])
def test_writing_into_arrays_beside_numbers(size: int) -> None:
    div = kernels.table["Div.forward"]
    x = np.linspace(1, 2, size, dtype=np.float32)
    wanted = np.float32(3.0) / x
    assert div.into((x,), 3, x)
    assert np.array_equal(x, wanted)
    y = x.astype(np.float64)
    assert div.into((y,), y, 0.1) and np.array_equal(y, x.astype(np.float64) / 0.1)
    wide = np.ones((size, 2), np.float32)
    if size > 1:  # not in one piece
        assert not div.into((wide[:, 0],), wide[:, 0], 2.0)
    assert not div.into((y,), y, 10**400) and not div.into((y,), y, True)
    assert (wide == 1).all()


# --- optimisers -----------------------------------------------------------------------------------
STEPS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {}), ("SGD", {"momentum": 0.9}), ("SGD", {"momentum": 0.9, "nesterov": True}),
    ("SGD", {"momentum": 0.9, "weight_decay": 0.1}), ("Adam", {}), ("AdamW", {}),
    ("Adam", {"amsgrad": True, "weight_decay": 0.1}), ("RMSprop", {"momentum": 0.5}),
    ("RMSprop", {"centered": True}), ("Adagrad", {"lr_decay": 0.1}), ("Adadelta", {}),
    ("Adamax", {}), ("Rprop", {}),
]  # fmt: skip


@needs_kernels
@pytest.mark.parametrize(("name", "options"), STEPS)
def test_an_optimiser_steps_as_it_does_without_kernels(
    name: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from rushlight.optim import rules

    asked: list[Any] = []

    def train() -> Any:
        torch.manual_seed(0)
        w = torch.randn(5, 7, requires_grad=True)
        optimizer = getattr(torch.optim, name)([w], **{"lr": 0.03, **options})
        for _ in range(6):
            optimizer.zero_grad()
            (w**2).sin().sum().backward()
            optimizer.step()
        return w.detach()

    def seen(*args: Any) -> Any:
        asked.append(kernels.rule_kernel(*args))
        return asked[-1]

    monkeypatch.setattr(rules, "rule_kernel", seen)
    quick = train()
    assert len(asked) == 6 and None not in asked
    monkeypatch.setattr(rules, "rule_kernel", lambda *args: None)
    torch.testing.assert_close(quick, train(), rtol=1e-6, atol=1e-7)


# --- convolution ----------------------------------------------------------------------------------
@needs_kernels
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("shape", "weight", "padding", "dilation"),
    [
        ((2, 3, 17), (5, 3, 4), (3,), (2,)),
        ((3, 1, 9, 11), (7, 1, 3, 2), (1, 0), (1, 2)),
        ((2, 4, 26, 26), (9, 4, 3, 3), (2, 2), (1, 1)),
        ((1, 2, 5, 6, 7), (4, 2, 2, 3, 2), (1, 1, 0), (1, 1, 2)),
        ((2, 3, 64), (1, 3, 64), (0,), (1,)),
    ],
)
def test_shifted_products_equal_those_of_windows(
    shape: Any, weight: Any, padding: Any, dilation: Any, dtype: str
) -> None:
    from rushlight.arrays import windows

    rng = np.random.default_rng(3)
    x, w = rng.standard_normal(shape).astype(dtype), rng.standard_normal(weight).astype(dtype)
    b = rng.standard_normal(weight[0]).astype(dtype)
    ones = (1,) * len(padding)
    tolerance: Any = {"rtol": 0, "atol": 1e-11 if dtype == "float64" else 2e-3}
    y = kernels.correlate(x, w, b, padding, padding, dilation)
    wide = [a.astype(np.longdouble) for a in (x, w, b)]
    want = windows.convolve(*wide, ones, padding, dilation, 1)
    np.testing.assert_allclose(y, want, **tolerance)
    g = rng.standard_normal(y.shape).astype(dtype)
    kernel = weight[2:]
    found = kernels.correlate_weight(g, x, kernel, padding, padding, dilation)
    want = windows.convolve_weight(
        g.astype(np.longdouble), wide[0], kernel, ones, padding, dilation, 1
    )
    np.testing.assert_allclose(found, want, **tolerance)
    back = windows._input_shifted(g, w, shape[2:], padding, dilation)
    want = windows.convolve_input(
        g.astype(np.longdouble), wide[1], None, shape[2:], ones, padding, dilation, 1
    )
    np.testing.assert_allclose(back, want, **tolerance)


@needs_kernels
def test_correlations_that_do_not_fit_are_refused() -> None:
    x, w = np.ones((2, 3, 8), np.float32), np.ones((4, 3, 3), np.float32)
    assert kernels.correlate(x, w, None, (1,), (1,), (1,)).shape == (2, 4, 8)
    for args in (
        (x, w[:, :2], None, (0,), (0,), (1,)),
        (x, w.astype(float), None, (0,), (0,), (1,)),
        (x, w, np.ones(3, np.float32), (0,), (0,), (1,)),
        (x, w, None, (-1,), (0,), (1,)),
        (x, w, None, (0,), (0,), (9,)),
        (x, w, None, (0, 0), (0,), (1,)),
        (x, w, None, ("a",), (0,), (1,)),
        (x[:, :, ::2], w, None, (0,), (0,), (1,)),
        (x[:0], w, None, (0,), (0,), (1,)),
        (x, w),
    ):
        assert kernels.correlate(*args) is None
    assert kernels.correlate_weight(x, x, (3,), (0,), (0,), (1,)) is None
