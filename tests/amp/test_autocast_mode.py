"""Autocast gives what PyTorch's gives, ends with its block, and leaves other threads alone."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import pytest

import rushlight as torch
from rushlight.amp import casting
from tests.amp.cases_autocast_mode import close, exact, kind
from tests.harness import LIVE, compare, pytorch, stored

STORED = stored("amp/autocast_mode")


def flat(x: Any) -> list[float]:
    return [z for y in x for z in flat(y)] if isinstance(x, list) else [x]


def test_every_case_is_stored() -> None:
    assert STORED.keys() == (exact | close).keys()


@pytest.mark.parametrize("name", sorted(exact))
def test_equals_what_is_stored(name: str) -> None:
    compare(exact.run(torch, name), STORED[name], True, name)


@pytest.mark.parametrize("name", sorted(close))
def test_is_near_what_is_stored(name: str) -> None:
    assert flat(close.run(torch, name)) == pytest.approx(flat(STORED[name]), rel=2**-6, abs=2**-6)


if LIVE:

    @pytest.mark.parametrize("name", sorted(exact))
    def test_equals_pytorch(name: str) -> None:
        compare(exact.run(torch, name), exact.run(pytorch(), name), True, name)


def test_functions_have_their_own_code_again() -> None:
    fns = [torch.matmul, torch.nn.functional.linear, torch.Tensor.mm, torch.cat]
    torch.cat([torch.ones(1)])  # with the first call outside
    before = [fn.__code__ for fn in fns]
    product = casting.operators.matmul
    with torch.autocast("cpu"), torch.autocast("cpu", dtype=torch.float16):
        assert all(fn.__code__ is not code for fn, code in zip(fns, before, strict=True))
    assert torch.cat([torch.ones(1)]).dtype is torch.float32
    assert [fn.__code__ for fn in fns] == before
    assert casting.operators.matmul is product and casting.state.active == 0


def test_from_one_block_to_the_next_no_code_is_exchanged() -> None:
    a = torch.ones(2, 2)
    with torch.autocast("cpu"):
        a @ a
    code = torch.matmul.__code__
    assert code is casting._codes[torch.matmul][1]
    with torch.autocast("cpu"):
        assert kind(a @ a) == "bfloat16"
        assert torch.matmul.__code__ is code
    assert kind(a @ a) == kind(torch.matmul(a, a)) == "float32"
    assert torch.matmul.__code__ is not code


def test_what_looks_for_overrides_is_not_put_around_code_that_casts() -> None:
    """In a process of its own: functions look for overrides once and for good."""
    program = """
import rushlight as torch
a = torch.ones(2, 2)
with torch.autocast("cpu"):
    a @ a
class Seen(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__
assert torch.matmul(a.as_subclass(Seen), a) == "matmul"
from rushlight.amp import casting
assert not casting._codes and not casting._stands[0]
with torch.autocast("cpu"):
    assert torch.matmul(a, a).dtype is torch.bfloat16
assert torch.matmul(a, a).dtype is torch.float32
assert not casting._codes
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_names_that_were_imported_before_are_cast_too() -> None:
    from rushlight import matmul
    from rushlight.nn.functional import linear

    a = torch.ones(2, 2)
    with torch.autocast("cpu"):
        assert kind(matmul(a, a)) == kind(linear(a, a)) == "bfloat16"


def test_other_threads_are_left_alone() -> None:
    a, found = torch.ones(2, 2), []
    with torch.autocast("cpu"):
        thread = threading.Thread(target=lambda: found.append(kind(a @ a)))
        thread.start()
        thread.join(60)
        assert kind(a @ a) == "bfloat16"
    assert found == ["float32"]


def test_parameters_are_cast_once_a_block() -> None:
    net = torch.nn.Linear(2, 2)
    x = torch.ones(1, 2)

    def casts(**options: Any) -> set[Any]:
        with torch.autocast("cpu", **options):
            ys = [net(x), net(x)]
        return {y.grad_fn.next_functions[2][0].next_functions[0][0] for y in ys}

    assert len(casts()) == 1 and len(casts(cache_enabled=False)) == 2
    assert not casting.cache


def test_a_parameter_that_was_written_is_cast_anew() -> None:
    w = torch.ones(1, 1, requires_grad=True)
    with torch.autocast("cpu"):
        first = w @ w
        with torch.no_grad():
            w.fill_(3.0)
        assert first.item() == 1 and (w @ w).item() == 9


def test_a_function_mode_that_begins_inside_goes_on() -> None:
    """Code that was put around autocast's is not taken away with it."""
    from rushlight.overrides import TorchFunctionMode

    seen = []

    class Watch(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    a = torch.ones(2, 2)
    with torch.autocast("cpu"), Watch():
        assert kind(torch.matmul(a, a)) == "bfloat16"
    with Watch():
        assert kind(torch.matmul(a, a)) == "float32"
    with torch.autocast("cpu"):
        assert kind(torch.matmul(a, a)) == "bfloat16"
    assert seen.count("matmul") == 2


def test_under_the_names_of_old() -> None:
    a = torch.ones(2, 2)
    with pytest.warns(FutureWarning, match=r"torch.cpu.amp.autocast\(args...\)"):
        made = torch.cpu.amp.autocast()
    with made:
        assert kind(a @ a) == "bfloat16" and torch.is_autocast_cpu_enabled()
    with pytest.warns(FutureWarning, match="torch.cuda.amp.autocast"):
        made = torch.cuda.amp.autocast(enabled=False)
    with made:
        assert kind(a @ a) == "float32"
    assert torch.cuda.amp.custom_fwd is not None and torch.get_autocast_gpu_dtype() == torch.float16


def test_settings_by_keyword() -> None:
    torch.set_autocast_enabled(device_type="cpu", enabled=True)
    try:
        assert (
            torch.is_autocast_enabled("cpu")
            and kind(torch.ones(2, 2) @ torch.ones(2, 2)) == "bfloat16"
        )
    finally:
        torch.set_autocast_enabled("cpu", enabled=False)
    torch.set_autocast_enabled("xla", False)
    assert not torch.is_autocast_enabled("xla") and not torch.is_autocast_enabled("cpu")


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: torch.set_autocast_enabled(torch.ones(2), True), TypeError,
         r"enabled\(\): argument 'device_type' \(position 1\) must be str, not Tensor"),
        (lambda: torch.set_autocast_enabled("cpu", 1), TypeError,
         r"set_autocast_enabled\(\): argument 'enabled' \(position 2\) must be bool, not int"),
        (lambda: torch.set_autocast_enabled(None), TypeError,
         r"set_autocast_enabled\(\): argument 'enabled' \(position 1\) must be bool, not NoneType"),
        (lambda: torch.set_autocast_enabled(), TypeError,
         r"set_autocast_enabled\(\) received an invalid combination of arguments - got \(\), but"),
        (lambda: torch.set_autocast_enabled("cpu", True, 3), TypeError, r"got \(str, bool, int\)"),
        (lambda: torch.set_autocast_enabled("no", True), RuntimeError, "Expected one of cpu, cuda"),
        (lambda: torch.is_autocast_enabled("meta"), RuntimeError, "unknown device type for autoc"),
        (lambda: torch.set_autocast_cpu_enabled(1), TypeError, r"enabled must be a bool \(got int"),
        (lambda: torch.set_autocast_cache_enabled(None), TypeError, "enabled must be a bool"),
        (lambda: torch.set_autocast_dtype("cpu", 3), TypeError,
         r"argument 'dtype' \(position 2\) must be torch.dtype, not int"),
        (lambda: torch.get_autocast_dtype([]), TypeError, "argument 'device_type' .* must be str"),
    ],
)  # fmt: skip
def test_settings_that_are_none(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
    assert not torch.is_autocast_enabled("cpu") and torch.is_autocast_cache_enabled()


def test_one_autocast_may_be_entered_again() -> None:
    a, again = torch.ones(2, 2), torch.autocast("cpu")

    @again
    def deep(n: int) -> str:
        return deep(n - 1) if n else kind(a @ a)

    with again, again:
        assert kind(a @ a) == "bfloat16"
    assert deep(2) == "bfloat16" and not torch.is_autocast_enabled("cpu")
    assert kind(a @ a) == "float32"
