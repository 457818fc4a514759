"""Complex numbers have PyTorch's gradients: stored, and live where it is installed.

The convention: the gradient of a real loss L at z = x + iy is dL/dx + i dL/dy, so that a step
against it goes downhill; that of a complex output is asked for with a cotangent g, and is the
gradient of Re(conj(g) output). A real input has a real gradient, whatever it meets on its way.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight.ops.registry import table
from rushlight.ops.sample_inputs import Draw, samples_of
from tests.harness import LIVE, stored
from tests.laws import cases_complex as written

STORED = stored("laws/complex")


def near(got: Any, want: Any, tolerance: float) -> bool:
    """Whether numbers agree, relative to the largest of them that is finite."""
    size = max((abs(w) for w in want if math.isfinite(w)), default=0.0)
    for a, b in zip(got, want, strict=True):
        same = a == b or (math.isnan(a) and math.isnan(b))
        if not same and not abs(a - b) <= tolerance * (1 + size):
            return False
    return True


def compare(got: Any, want: Any, where: str) -> None:
    if isinstance(want, dict) and "numbers" in want:
        assert isinstance(got, dict), f"{where}: {got}"
        assert (got["dtype"], got["shape"]) == (want["dtype"], want["shape"]), where
        single = want["dtype"] in ("torch.complex64", "torch.float32")
        assert near(got["numbers"], want["numbers"], 1e-5 if single else 1e-9), (
            f"{where}: {got['numbers']} instead of {want['numbers']}"
        )
    elif isinstance(want, dict):
        assert isinstance(got, dict) and got.keys() == want.keys(), f"{where}: {got}"
        for key in want:
            compare(got[key], want[key], f"{where} > {key}")
    elif isinstance(want, list):
        assert isinstance(got, list) and len(got) == len(want), f"{where}: {got}"
        for a, b in zip(got, want, strict=True):
            compare(a, b, where)
    elif isinstance(want, str) and "Error: " in want:
        # a longer text may tell more than PyTorch's
        assert isinstance(got, str) and got[:60] == want[:60], f"{where}: {got}, not {want}"
    else:
        assert got == want, f"{where}: {got}, not {want}"


def wrong(pairs: Any) -> str:
    """What is the matter with pairs of what was got and what was wanted."""
    found: list[str] = []
    for name, got, want in pairs:
        try:
            compare(got, want, name)
        except AssertionError as error:
            found.append(str(error)[:400])
    return "\n".join(found)


GROUPS = sorted({name.split(" ")[0] for name in written.cases})


def of_group(group: str) -> list[str]:
    return [name for name in written.cases if name.split(" ")[0] == group]


def test_all_is_stored() -> None:
    assert STORED["cases"].keys() == written.cases.keys()
    assert STORED["programs"].keys() == written.programs.keys()
    assert list(STORED["calls"]) == list(dict.fromkeys(written.calls()))
    assert len(written.cases) > 500


@pytest.mark.parametrize("group", GROUPS)
def test_derivatives_as_pytorch(group: str) -> None:
    text = wrong(
        (name, written.cases.run(torch, name), STORED["cases"][name]) for name in of_group(group)
    )
    assert not text, text


@pytest.mark.parametrize("name", written.programs)
def test_programs_as_pytorch(name: str) -> None:
    compare(written.programs.run(torch, name), STORED["programs"][name], name)


def test_which_dtypes_are_taken() -> None:
    text = wrong(
        (call, written.told(torch, call).replace("rushlight", "torch"), want)
        for call, want in STORED["calls"].items()
    )
    assert not text, text


if LIVE:

    @pytest.mark.parametrize("group", GROUPS)
    def test_derivatives_at_other_points(group: str) -> None:
        import torch as pytorch

        text = wrong(
            (
                name,
                written.cases.run(torch, name, 0.57),
                written.cases.run(pytorch, name, 0.57),
            )
            for name in of_group(group)
        )
        assert not text, text


# --- laws -----------------------------------------------------------------------------------------
HOLOMORPHIC = [n for n in written.SMOOTH if "conj" not in n and "softsign" not in n]


def points() -> Any:
    numbers = written.wave((4,), 0.3)
    return torch.tensor(numbers, dtype=torch.complex128)


@pytest.mark.parametrize("name", [*written.SMOOTH, *written.ROUGH])
def test_a_gradient_is_that_of_the_parts(name: str) -> None:
    """The gradient by z is the gradient by x plus i times that by y."""
    fn = written.named(name)
    start = points()
    x, y = (part.clone().requires_grad_() for part in (start.real, start.imag))
    whole = start.clone().requires_grad_()
    by_parts, direct = fn(torch, torch.complex(x, y)), fn(torch, whole)
    g = written.cotangent(torch, direct, 0.8)
    gx, gy = torch.autograd.grad(by_parts, [x, y], g)
    (gz,) = torch.autograd.grad(direct, whole, g)
    np.testing.assert_allclose(gz.numpy(), gx.numpy() + 1j * gy.numpy(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", HOLOMORPHIC)
def test_holomorphic_functions_have_one_derivative(name: str) -> None:
    """A tangent is multiplied by f'(z), a cotangent by its conjugate."""
    fn = written.named(name)
    start = points()
    one = torch.ones_like(start)
    value, slope = torch.func.jvp(lambda t: fn(torch, t), (start,), (one,))
    t = written.cotangent(torch, start, 0.1)
    _, along = torch.func.jvp(lambda t: fn(torch, t), (start,), (t,))
    _, pull = torch.func.vjp(lambda t: fn(torch, t), start)
    g = written.cotangent(torch, value, 0.7)
    np.testing.assert_allclose(along.numpy(), (slope * t).numpy(), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(
        pull(g)[0].numpy(), (slope.conj() * g).numpy(), rtol=1e-12, atol=1e-14
    )


# Ops of real numbers, or of real inputs, or of numbers that have an order.
REAL = """
_fft_r2c adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d
affine_grid_generator amax amin aminmax argmax argmin argsort atan2 avg_pool2d avg_pool3d
batch_norm_eval binary_cross_entropy binary_cross_entropy_with_logits bincount bitwise_and
bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor cdist ceil celu clamp
clamp_max clamp_min clamp_numbers complex copysign ctc_loss cummax cummin deg2rad digamma
div_floor div_trunc elu embedding_bag embedding_bag_max erf erfc erfinv floor fmax fmin fmod
fmod_number frac fractional_max_pool2d fractional_max_pool3d frexp gcd ge gelu glu grid_sampler_2d
grid_sampler_3d gt hardshrink hardsigmoid hardswish hardtanh histc huber_loss hypot i0 igamma
igammac index_reduce isneginf isposinf kthvalue lcm le leaky_relu lgamma log_sigmoid log_softmax
logaddexp2 logit lt max max_dim max_pool2d max_pool2d_with_indices max_pool3d
max_pool3d_with_indices max_unpool2d max_unpool3d maximum median median_dim min min_dim minimum
mish mode mse_loss multi_margin_loss multilabel_margin_loss mvlgamma nanmedian nanmedian_dim
nansum native_batch_norm native_group_norm native_layer_norm nextafter nll_loss nll_loss2d nonzero
nonzero_numpy pdist polar polygamma prelu_kernel quantile rad2deg relu remainder remainder_number
round round_decimals rrelu_eval rrelu_with_noise safe_softmax
scaled_dot_product_flash_attention_for_cpu searchsorted sign signbit smooth_l1_loss
soft_margin_loss softmax softplus softshrink sort sort_stable threshold topk trunc unique
unique_consecutive unique_dim upsample_bicubic2d upsample_bicubic2d_aa upsample_bilinear2d
upsample_bilinear2d_aa upsample_lanczos2d_aa upsample_linear1d upsample_nearest1d
upsample_nearest2d upsample_nearest3d upsample_nearest_exact1d upsample_nearest_exact2d
upsample_nearest_exact3d upsample_trilinear3d view_as_complex xlogy
""".split()


def test_every_other_op_is_drawn_in_complex_numbers() -> None:
    """The laws of the table (test_laws.py) see complex inputs of each op that takes them."""
    without = set()
    for name, cls in table.items():
        if not any(
            getattr(x, "dtype", np.dtype(bool)).kind == "c" or isinstance(x, complex)
            for _, *xs in samples_of(cls, Draw(1))
            for x in xs
        ):
            without.add(name)
    left = {n for n in without if not n.startswith("special_")} - set(REAL)
    assert not left, f"give these complex samples, or name them in REAL: {sorted(left)}"


def test_nan_to_num_looks_at_each_part() -> None:
    x = torch.tensor([complex(math.inf, 1), complex(2, math.nan), 1 + 1j], requires_grad=True)
    (g,) = torch.autograd.grad(torch.nan_to_num(x), x, torch.tensor([1 + 1j] * 3))
    assert g.tolist() == [1j, 1, 1 + 1j]


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean"])
def test_scatter_reduce_of_complex_numbers(reduce: str) -> None:
    x, src = points()[:2].requires_grad_(), points().requires_grad_()
    index = torch.tensor([0, 1, 1, 0])
    assert torch.autograd.gradcheck(
        lambda x, src: x.scatter_reduce(0, index, src, reduce), (x, src), check_forward_ad=True
    )


# --- where PyTorch's own gradcheck fails ----------------------------------------------------------
def test_polar_where_the_size_is_zero_or_negative() -> None:
    sizes = torch.tensor([0.0, -1.0, 2.0], dtype=torch.float64, requires_grad=True)
    angles = torch.tensor([0.5, 2.0, -1.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(torch.polar, (sizes, angles), check_forward_ad=True)


def test_index_add_with_a_complex_factor() -> None:
    x, y, i = points(), points()[:2], torch.tensor([0, 0])
    assert torch.autograd.gradcheck(
        lambda x, y: x.index_add(0, i, y, alpha=2 - 1j), (x.requires_grad_(), y.requires_grad_())
    )


def test_tangents_of_powers_of_mixed_operands() -> None:
    x, t = (torch.tensor(n, dtype=torch.float64) for n in ([2.0, -0.5], [1.0, 0.3]))
    base = torch.tensor([1j, 1 - 2j], dtype=torch.complex128)
    for fn in (lambda e: base**e, lambda e: (1 + 2j) ** e, lambda b: b ** (1.5 - 1j)):
        step = 1e-6
        want = (fn(x + step * t) - fn(x - step * t)) / (2 * step)
        _, got = torch.func.jvp(fn, (x,), (t,))
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-7)
