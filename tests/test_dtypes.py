"""dtypes, size and device say what PyTorch says, word for word: stored, and live where it is."""

import copy
import itertools
import pickle
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from rushlight import dtypes
from rushlight.arrays import device as devices
from rushlight.arrays.device import device
from rushlight.size import Size
from tests import cases_dtypes as written
from tests.harness import LIVE, as_stored, pytorch, stored

STORED: dict[str, Any] = stored("dtypes")

# The names as the package exports them, taken from where they are defined.
NAMESPACE = SimpleNamespace(
    **{k: v for k, v in vars(dtypes).items() if not k.startswith("_")} | dtypes.aliases,
    Size=Size,
    device=device,
    get_default_device=devices.get_default_device,
    set_default_device=devices.set_default_device,
)


def _result_type(*operands: tuple[str, dtypes.Category]) -> dtypes.dtype:
    numbers = {name: dtypes.of_scalar(value) for name, value in written.NUMBERS.items()}
    return dtypes.promote([((dtypes.aliases | numbers)[name], kind) for name, kind in operands])


@pytest.fixture(scope="module")
def ours() -> dict[str, Any]:
    found: dict[str, Any] = written.describe(NAMESPACE, _result_type, dtypes.of)
    return found


@pytest.fixture(autouse=True)
def _restore_defaults() -> Iterator[None]:
    yield
    dtypes.set_default_dtype(dtypes.float32)
    devices.set_default_device(None)


def _differences(got: dict[str, Any], want: dict[str, Any]) -> dict[str, Any]:
    assert got.keys() == want.keys()
    return {key: (got[key], want[key]) for key in want if got[key] != want[key]}


@pytest.mark.parametrize("section", STORED)
def test_agrees_with_stored_pytorch(ours: dict[str, Any], section: str) -> None:
    assert _differences(ours[section], STORED[section]) == {}


def test_stored_is_what_pytorch_says() -> None:
    if LIVE:
        live = as_stored(written.results(pytorch()))
        for section in STORED:
            assert _differences(live[section], STORED[section]) == {}


def test_every_dtype_is_asked_about() -> None:
    assert sorted(written.NAMES) == sorted(d.name for d in dtypes.all_dtypes)
    assert sorted(written.NAMES + written.ALIASES) == sorted(dtypes.aliases)


@pytest.mark.parametrize("d", dtypes.all_dtypes, ids=str)
def test_one_object_a_type(d: dtypes.dtype) -> None:
    assert dtypes.of(d.numpy) is d
    assert copy.copy(d) is d
    assert copy.deepcopy(d) is d
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(d, protocol)) is d
    assert {d: 1}[dtypes.aliases[d.name]] == 1


def test_of_refuses_types_pytorch_does_not_have() -> None:
    with pytest.raises(TypeError, match=r"can't convert np\.ndarray of type ml_dtypes\.int4\."):
        dtypes.of(np.dtype(ml_dtypes.int4))


def test_default_dtype_sets_all_three() -> None:
    for d, c in (
        (dtypes.float64, dtypes.complex128),
        (dtypes.float16, dtypes.complex32),
        (dtypes.bfloat16, dtypes.complex64),
        (dtypes.float32, dtypes.complex64),
    ):
        dtypes.set_default_dtype(d)
        assert dtypes.get_default_dtype() is dtypes.default is d
        assert dtypes.default_numpy is d.numpy
        assert dtypes.default_complex is c
        assert dtypes.of_scalar(1.0) is d
        assert dtypes.of_scalar(1j) is c
        assert dtypes.finfo() == dtypes.finfo(d)


def test_of_scalar() -> None:
    assert dtypes.of_scalar(True) is dtypes.bool_
    assert dtypes.of_scalar(3) is dtypes.int64
    with pytest.raises(TypeError, match="must be a number, not str"):
        dtypes.of_scalar("3")  # type: ignore[arg-type]


def test_promotion_forgets_the_order_of_operands() -> None:
    plain = [d for d in dtypes.all_dtypes if d.itemsize > 1 and not d.name.startswith("uint")]
    plain += [dtypes.bool_, dtypes.uint8, dtypes.int8]
    categories: tuple[dtypes.Category, ...] = ("dim", "zero", "number")
    for a, b, c in itertools.combinations(plain, 3):
        triple = tuple(zip((a, b, c), categories))
        assert len({dtypes.promote(order) for order in itertools.permutations(triple)}) == 1


def test_promote_of_one_and_of_none() -> None:
    for d in dtypes.all_dtypes:
        assert dtypes.promote([(d, "dim")]) is dtypes.promote([(d, "zero")]) is d
    with pytest.raises(ValueError, match="at least one operand"):
        dtypes.promote([])


def test_low_precision_and_accumulation() -> None:
    low = {d.name for d in dtypes.all_dtypes if dtypes.is_low_precision(d.numpy)}
    assert low == {"float16", "bfloat16"} | {n for n in written.NAMES if n.startswith("float8")}
    for d in dtypes.all_dtypes:
        integral = not (d.is_floating_point or d.is_complex)
        assert dtypes.sum_dtype(d.numpy) == (np.dtype(np.int64) if integral else d.numpy)


def test_infos_are_unhashable() -> None:
    for info in (dtypes.finfo(), dtypes.iinfo(dtypes.int8)):
        with pytest.raises(TypeError, match="unhashable"):
            hash(info)
