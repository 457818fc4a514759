"""Calls that are kept: the same results as if the function were asked each time."""

from __future__ import annotations

import math
import threading
import warnings
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from bench.ops import expressions
from rushlight.core import recall

F = torch.nn.functional
LEFT_OUT = ("t.empty",)  # whatever the memory held


def flat(y: Any) -> list[Any]:
    return list(y) if isinstance(y, (tuple, list)) else [y]


def run(text: str, seed: int, recorded: bool) -> list[Any]:
    """What an expression gives, and its gradient, with all that can be seen of them."""
    torch.manual_seed(seed)
    x, y = torch.randn(8, 16), torch.randn(8, 16)
    if recorded:
        x.requires_grad_()
    found: list[Any] = []
    results = flat(eval(text, {"t": torch, "F": F, "x": x, "y": y}))
    for r in results:
        found += [r.detach().numpy().copy(), r.dtype, r.stride(), r.requires_grad, r._is_view()]
        found.append(type(r.grad_fn).__name__)
    if recorded and results[0].requires_grad:
        (g,) = torch.autograd.grad(results[0], x, torch.ones_like(results[0]))
        found += [g.numpy().copy(), g.stride()]
    return found


@pytest.mark.parametrize("text", [e for e in expressions() if not any(d in e for d in LEFT_OUT)])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_kept_call_gives_what_the_function_gives(text: str) -> None:
    for recorded in (False, True):
        for seed in range(3):
            recall.forget_calls()
            asked = run(text, seed, recorded)
            for other in (seed + 1, seed):  # the signature is known by now
                kept = run(text, other, recorded)
            assert len(kept) == len(asked)
            for a, b in zip(asked, kept, strict=True):
                if isinstance(a, np.ndarray):
                    np.testing.assert_array_equal(a, b)
                else:
                    assert a == b


def test_a_signature_has_shapes_dtypes_strides_and_numbers() -> None:
    x = torch.arange(12.0).reshape(3, 4)
    for _ in range(3):
        assert x.sum(0).tolist() == [12, 15, 18, 21]
        assert x.sum(1).tolist() == [6, 22, 38]
        assert x.t().sum(1).tolist() == [12, 15, 18, 21]
        assert x.long().sum(1).dtype == torch.int64
        assert x.reshape(4, 3).sum(0).tolist() == [18, 22, 26]
        assert x.t().reshape(-1).tolist()[:3] == [0, 4, 8]
        assert x.view(-1)[:2].tolist() == [0, 1]
        assert x.sum(0, True).shape == (1, 4)
        assert x.sum((0, 1)).item() == 66


def test_one_and_true_are_told_apart() -> None:
    x = torch.ones(2, 3)
    assert x.squeeze(1).shape == (2, 3)
    for _ in range(2):
        with pytest.raises(TypeError):
            torch.cumsum(x, 1.0)
        assert torch.cumsum(x, 1).shape == (2, 3)


def test_zero_has_its_sign() -> None:
    x = torch.tensor([-1.0, -0.0, 1.0])
    for _ in range(3):
        assert math.copysign(1, torch.clamp(x, min=0.0)[0].item()) == 1
        assert math.copysign(1, torch.clamp(x, max=-0.0)[2].item()) == -1
        assert math.copysign(1, torch.clamp(x, max=0.0)[2].item()) == 1


def test_what_depends_on_values_is_asked_each_time() -> None:
    x = torch.arange(10.0).view(2, 5)
    for k in (1, 3, 0, 4):
        assert x[1, torch.tensor(k)].item() == 5 + k
        assert x[0, : torch.tensor(k)].tolist() == list(range(k))
        assert x.select(1, torch.tensor(k)).tolist() == [k, 5 + k]
        assert torch.tensor([k]).mul(torch.tensor(2)).item() == 2 * k
        assert x.add(1, alpha=torch.tensor(float(k)))[0, 0].item() == k
        assert F.leaky_relu(torch.tensor([-1.0]), torch.tensor(float(k))).item() == -k
    for rounding_mode in ("floor", "trunc"):
        assert torch.tensor([7]).div(torch.tensor([2]), rounding_mode=rounding_mode).item() == 3
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            torch.tensor([7]).div(torch.tensor([0]), rounding_mode=rounding_mode)
    for function in (torch.remainder, torch.fmod, torch.floor_divide):
        for divisor in (2, 4, 2, 0):
            if divisor:
                want = {"fmod": 7 % divisor, "remainder": 7 % divisor}.get(
                    function.__name__, 7 // divisor
                )
                assert function(torch.tensor([7]), divisor).item() == want
                assert function(torch.tensor([7]), torch.tensor([divisor])).item() == want
            else:
                for zero in (divisor, torch.tensor([divisor])):
                    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
                        function(torch.tensor([7]), zero)
    for function in (torch.quantile, torch.nanquantile):
        assert function(x, torch.tensor(0.5)).item() == 4.5
        with pytest.raises(RuntimeError, match="values must be in the range"):
            function(x, torch.tensor(1.5))


def test_which_arguments_are_the_same_tensor_counts() -> None:
    a, b, c = torch.tensor([1.0]), torch.tensor([2.0]), torch.tensor([4.0])
    for _ in range(2):
        assert torch.addcmul(a, b, b).item() == 5
        assert torch.addcmul(a, b, c).item() == 9
        assert torch.addcmul(b, b, c).item() == 10
        assert torch.sub(b, b).item() == 0
        assert torch.sub(b, a).item() == 1
        assert torch.where(a > 0, c, c).item() == 4
        assert torch.where(a > 0, b, c).item() == 2


def test_a_gradient_that_is_wanted_is_not_a_tensor_named_twice() -> None:
    a, b = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    some = torch.tensor([True, False])
    assert torch.where(some, a, a).tolist() == [1, 2]
    assert torch.where(some, a, b.requires_grad_()).tolist() == [1, 4]
    assert torch.where(some, b, b).tolist() == [3, 4]


def test_warnings_come_each_time() -> None:
    x = torch.ones(2, 3)
    for _ in range(3):
        with pytest.warns(UserWarning, match="different to the input size"):
            F.mse_loss(x, torch.ones(3))
        with pytest.warns(UserWarning, match="Implicit dimension choice"):
            F.softmax(x)


def test_a_warning_names_the_users_line() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        F.mse_loss(torch.ones(2, 3), torch.ones(3))
    assert seen[0].filename == __file__


def test_the_default_dtype_is_asked_for_anew() -> None:
    x = torch.arange(4)
    assert torch.sqrt(x).dtype == x.mean(dtype=torch.float32).dtype == torch.float32
    assert torch.logsumexp(x, 0).dtype == torch.float32
    try:
        torch.set_default_dtype(torch.float64)
        assert torch.logsumexp(x, 0).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.logsumexp(x, 0).dtype == torch.float32


def test_modes() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    for _ in range(3):
        assert x.sum(0).requires_grad and F.softmax(x, 1).requires_grad
        with torch.no_grad():
            y = x.sum(0)
            assert not y.requires_grad and not F.softmax(x, 1).requires_grad
            with torch.enable_grad():
                assert x.sum(0).requires_grad
        with torch.inference_mode():
            assert x.sum(0).is_inference() and not x.view(-1).is_inference()
        assert torch.func.vmap(lambda r: r.sum(0))(x.detach()).shape == (2,)
        assert torch.func.jvp(lambda r: r.sum(0), (x.detach(),), (x.detach(),))[1].shape == (3,)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert F.linear(torch.ones(2, 3), torch.ones(4, 3)).dtype == torch.bfloat16
    assert F.linear(torch.ones(2, 3), torch.ones(4, 3)).dtype == torch.float32


def test_writing_in_place() -> None:
    x = torch.zeros(3)
    for k in range(1, 4):
        assert x.add_(1) is x and x.tolist() == [k] * 3 and x._version == k
    leaf = torch.zeros(3, requires_grad=True)
    for k in range(1, 4):
        with torch.no_grad():
            leaf.add_(1)
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            leaf.add_(1)
        assert leaf.tolist() == [k] * 3
    y = leaf * 1
    y.mul_(leaf).mul_(2)
    y.sum().backward()
    assert leaf.grad is not None and leaf.grad.tolist() == [12] * 3
    z = torch.zeros(2, 3)
    for _ in range(2):
        z.t().add_(1)
        z[0].mul_(2)
    assert z.tolist() == [[6, 6, 6], [2, 2, 2]]
    whole = torch.arange(3)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="can't be cast"):
            whole.add_(0.5)
        whole.add_(1)
    assert whole.tolist() == [2, 3, 4]


def test_a_write_that_overlaps_is_refused_each_time() -> None:
    x = torch.zeros(4)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="single memory location"):
            x[1:].add_(x[:-1])
        with pytest.raises(RuntimeError, match="more than one element"):
            torch.zeros(1).expand(3).add_(1)


def test_views_share_memory_and_history() -> None:
    x = torch.zeros(2, 3, requires_grad=True)
    for _ in range(2):
        y = x * 1
        y.view(-1)[:2].add_(1)
        y[:, 1].mul_(5)
        assert y.tolist() == [[1, 5, 0], [0, 0, 0]]
        (g,) = torch.autograd.grad(y.t().sum(), x)
        assert g.tolist() == [[1, 5, 1], [1, 5, 1]]


def test_layouts_that_look_alike() -> None:
    """A size of 1 may have any stride, and a gradient may be expanded."""
    for make in (lambda: torch.zeros(3, 1), lambda: torch.zeros(3, 4)[:, :1]):
        for _ in range(2):
            assert make().t().shape == (1, 3) and make().view(3).shape == (3,)
    x = torch.ones(2, 3, requires_grad=True)
    for g in (torch.ones(3, 2), torch.ones(1, 1).expand(3, 2), torch.ones(2, 3).t()):
        (found,) = torch.autograd.grad(x.t(), x, g)
        assert found.tolist() == [[1, 1, 1], [1, 1, 1]]


def test_lists_are_read_each_time() -> None:
    x, sizes, parts = torch.arange(6.0), [2, 3], [torch.ones(1)]
    assert x.reshape(sizes).shape == (2, 3) and torch.cat(parts).shape == (1,)
    sizes[:] = [3, 2]
    parts.append(torch.zeros(2))
    assert x.reshape(sizes).shape == (3, 2) and torch.cat(parts).tolist() == [1, 0, 0]


def test_ever_new_numbers_do_not_fill_memory() -> None:
    x = torch.ones(2)
    for k in range(1, 1200):
        assert x.add(k)[0].item() == 1 + k
    assert max(len(memo.calls) for memo in recall.memos) <= 512


def test_threads() -> None:
    """Others compute while a function is asked: what is kept is its own."""
    wrong: list[Any] = []

    def work(n: int) -> None:
        for k in range(60):
            x = torch.full((n, k % 7 + 1), 2.0)
            if x.sum(1).tolist() != [2.0 * (k % 7 + 1)] * n or x.t().shape != (k % 7 + 1, n):
                wrong.append((n, k))

    recall.forget_calls()
    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


# --- Note [What is worth keeping] -----------------------------------------------------------------
def memo_of(fn: Any) -> Any:
    return next(c.cell_contents for c in fn.__closure__ if isinstance(c.cell_contents, recall.Memo))


def test_a_signature_is_kept_when_it_is_met_again() -> None:
    memo = memo_of(torch.Tensor.cumprod)
    memo.calls.clear()
    memo.met.clear()
    for n in range(1, 6):
        torch.ones(n, 7).cumprod(1)
    assert not memo.calls and len(memo.met) == 5
    torch.ones(3, 7).cumprod(1)
    assert len(memo.calls) == 1 and len(memo.met) == 4


def test_the_oldest_is_forgotten() -> None:
    memo = memo_of(torch.Tensor.cumprod)
    for n in range(1, 700):
        for _ in range(2):
            torch.ones(n).cumprod(0)
    assert len(memo.calls) == 512 and len(memo.met) <= 512
    assert any(699 in shape for key in memo.calls for shape in key if isinstance(shape, tuple))


@pytest.mark.parametrize("name", ["sum", "mean", "softmax", "log_softmax"])
def test_an_op_is_kept_for_all_sizes_of_a_rank(name: str) -> None:
    """Results, gradients and errors are those of calls that nothing is known of."""
    for shape in [(2, 3), (4, 1), (1, 5), (2, 3), (0, 3), (3, 0), (2, 3, 4), (5,), (2, 6, 4), (1,)]:
        for dim in (0, -1, 1):
            x = torch.arange(float(torch.Size(shape).numel())).reshape(shape).requires_grad_()
            found = [told(name, x, dim, forget) for forget in (False, True)]
            assert str(found[0]) == str(found[1])


def told(name: str, x: Any, dim: int, forget: bool) -> Any:
    if forget:
        recall.forget_calls()
    try:
        y = getattr(x, name)(dim)
    except IndexError as error:
        return str(error)
    (g,) = torch.autograd.grad((y * y).sum(), x)
    return y.shape, y.tolist(), y.grad_fn.name(), g.tolist()
