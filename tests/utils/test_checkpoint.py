"""Checkpoints, of both kinds: the same gradients for less memory, and errors that say so if not.

What PyTorch does in the situations of cases_checkpoint.py is stored, and asked live
where it is installed. The other tests run on rushlight, and on PyTorch too where it is installed:
what is asserted is true of both, unless the test says that it is rushlight's own.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import importlib.util
import tracemalloc
import warnings
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import rushlight
from rushlight.core.grad_mode import state
from rushlight.core.observer import observer
from rushlight.utils.around import Around
from tests.harness import LIBRARIES, stored
from tests.utils.cases_checkpoint import cases


@pytest.fixture(params=LIBRARIES)
def torch(request: pytest.FixtureRequest) -> Any:
    importlib.import_module(request.param + ".utils.checkpoint")
    return importlib.import_module(request.param)


@pytest.fixture(params=[True, False], ids=["reentrant", "not reentrant"])
def reentrant(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


STORED = stored("utils/checkpoint")


@pytest.mark.parametrize("name", cases)
def test_as_pytorch(torch: Any, name: str) -> None:
    before = state.active
    assert cases.run(torch, name) == STORED["cases"][name]
    assert state.active == before and observer.profile is None


def start(torch: Any) -> Any:
    return torch.tensor([0.5, 1.0, 2.0], requires_grad=True)


def wavy(x: Any) -> Any:
    return ((x * x).sin() * 0.5).exp()


def gradient(torch: Any, fn: Callable[[Any], Any], x: Any = None) -> Any:
    x = start(torch) if x is None else x
    fn(x).sum().backward()
    return x.grad.tolist()


# --- the same gradients ---------------------------------------------------------------------------
def test_gradients_are_those_without(torch: Any, reentrant: bool) -> None:
    checkpoint = torch.utils.checkpoint.checkpoint
    calls: list[int] = []

    def counted(x: Any) -> Any:
        calls.append(1)
        return wavy(x)

    found = gradient(torch, lambda x: checkpoint(counted, x * 1, use_reentrant=reentrant))
    assert len(calls) == 2
    assert found == gradient(torch, wavy)


def test_several_arguments_and_results(torch: Any, reentrant: bool) -> None:
    def fn(x: Any, text: str, y: Any, n: int) -> tuple[Any, Any]:
        assert (text, n) == ("text", 3)
        return x * y, (y * n).sin()

    grads = []
    for plain in (True, False):
        x, y = start(torch), torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        a, b = (
            fn(x, "text", y, 3)
            if plain
            else torch.utils.checkpoint.checkpoint(fn, x, "text", y, 3, use_reentrant=reentrant)
        )
        (a.sum() + b.sum()).backward()
        grads.append((x.grad.tolist(), y.grad.tolist()))
    assert grads[0] == grads[1]


def test_keyword_arguments(torch: Any) -> None:
    checkpoint = torch.utils.checkpoint.checkpoint
    x, w = start(torch), torch.tensor([2.0, 3.0, 4.0], requires_grad=True)
    y = checkpoint(lambda x, *, w, k: (x * w * k).exp(), x, w=w, k=0.1, use_reentrant=False)
    y.sum().backward()
    assert w.grad is not None
    with pytest.raises(ValueError, match="^Unexpected keyword arguments: w"):
        checkpoint(lambda x, w: x, x, w=w, use_reentrant=True)


def test_random_numbers_are_drawn_again(torch: Any, reentrant: bool) -> None:
    def noisy(x: Any) -> Any:
        return (x * torch.rand(3)).exp()

    torch.manual_seed(0)
    x = start(torch)
    expected = gradient(torch, noisy, x)
    after = torch.rand(2).tolist()
    torch.manual_seed(0)
    x = start(torch)
    y = torch.utils.checkpoint.checkpoint(noisy, x, use_reentrant=reentrant)
    between = torch.rand(2).tolist()
    y.sum().backward()
    assert x.grad.tolist() == expected
    assert between == after
    # without, the second run draws what comes next
    torch.manual_seed(0)
    x = start(torch)
    y = torch.utils.checkpoint.checkpoint(
        noisy, x, use_reentrant=reentrant, preserve_rng_state=False
    )
    y.sum().backward()
    assert x.grad.tolist() != expected


def test_grad_and_inputs(torch: Any) -> None:
    checkpoint = torch.utils.checkpoint.checkpoint
    expected = gradient(torch, wavy)
    x = start(torch)
    (g,) = torch.autograd.grad(checkpoint(wavy, x, use_reentrant=False).sum(), x)
    assert g.tolist() == expected
    checkpoint(wavy, x, use_reentrant=False).sum().backward(inputs=[x])
    assert x.grad.tolist() == expected
    text = "^When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad()"
    with pytest.raises(RuntimeError, match=text):
        torch.autograd.grad(checkpoint(wavy, x, use_reentrant=True).sum(), x)
    with pytest.raises(RuntimeError, match=text):
        checkpoint(wavy, x, use_reentrant=True).sum().backward(inputs=[x])


def test_a_second_pass_and_a_second_derivative(torch: Any) -> None:
    checkpoint = torch.utils.checkpoint.checkpoint
    x = start(torch)
    y = checkpoint(wavy, x, use_reentrant=False).sum()
    y.backward(retain_graph=True)
    y.backward()
    expected = gradient(torch, wavy)
    assert x.grad.tolist() == [2 * g for g in expected]
    with pytest.raises(RuntimeError, match="^Trying to backward through the graph a second time"):
        y.backward()
    second = []
    for fn in (wavy, lambda x: checkpoint(wavy, x, use_reentrant=False)):
        x = start(torch)
        (g,) = torch.autograd.grad(fn(x).sum(), x, create_graph=True)
        second.append(torch.autograd.grad(g.sum(), x)[0].tolist())
    assert second[0] == second[1]


def test_nothing_is_kept_where_nothing_is_recorded(torch: Any, reentrant: bool) -> None:
    checkpoint = torch.utils.checkpoint.checkpoint
    with torch.no_grad():
        assert not checkpoint(wavy, start(torch), use_reentrant=reentrant).requires_grad
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert not checkpoint(wavy, torch.ones(3), use_reentrant=reentrant).requires_grad
    texts = ["None of the inputs have requires_grad=True. Gradients will be None"]
    assert [str(w.message) for w in said] == (texts if reentrant else [])
    if torch.__name__ == "rushlight":
        assert all(w.filename == __file__ for w in said)
    w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = checkpoint(lambda x: (x * w).sin(), torch.ones(3), use_reentrant=reentrant)
    assert y.requires_grad is not reentrant


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
@pytest.mark.parametrize("depth", [2, 3, 4])
def test_nested(torch: Any, reentrant: bool, depth: int) -> None:
    checkpoint = torch.utils.checkpoint.checkpoint
    calls = [0] * depth

    def level(k: int, x: Any, again: bool) -> Any:
        calls[k] += again
        y = (x * (k + 1)).sin()
        if k:
            if again:
                y = checkpoint(lambda z: level(k - 1, z, True), y, use_reentrant=reentrant)
            else:
                y = level(k - 1, y, False)
        return y.cos() * x

    expected = gradient(torch, lambda x: level(depth - 1, x, False))
    found = gradient(
        torch,
        lambda x: checkpoint(lambda z: level(depth - 1, z, True), x, use_reentrant=reentrant),
    )
    assert found == pytest.approx(expected, rel=1e-6)
    # level k runs once in forward, and once for each checkpoint around it
    assert calls == [depth - k + 1 for k in range(depth)]


def test_sequential(torch: Any, reentrant: bool) -> None:
    torch.manual_seed(1)
    nn = torch.nn
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
    x = start(torch)
    net(x).sum().backward()
    expected = [p.grad.tolist() for p in net.parameters()]
    for given in (net, list(net)):
        for segments in (1, 2, 3, 5):
            net.zero_grad()
            y = torch.utils.checkpoint.checkpoint_sequential(
                given, segments, start(torch), use_reentrant=reentrant
            )
            y.sum().backward()
            for p, g in zip(net.parameters(), expected, strict=True):
                assert torch.allclose(p.grad, torch.tensor(g))
    with pytest.raises(ValueError, match="^Unexpected keyword arguments: what"):
        torch.utils.checkpoint.checkpoint_sequential(net, 2, x, use_reentrant=False, what=1)


def test_custom_functions_inside(torch: Any, reentrant: bool) -> None:
    class Cube(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 3 * x * x * g

    found = gradient(
        torch,
        lambda x: torch.utils.checkpoint.checkpoint(
            lambda z: Cube.apply(z.sin()), x, use_reentrant=reentrant
        ),
    )
    assert found == gradient(torch, lambda x: Cube.apply(x.sin()))


def test_modules_with_backward_hooks(torch: Any, reentrant: bool) -> None:
    seen: list[Any] = []
    m = torch.nn.Linear(2, 2)
    m.register_full_backward_hook(lambda module, gs, hs: seen.append(hs[0].tolist()))
    x = torch.ones(1, 2, requires_grad=True)
    with torch.no_grad():
        assert not m(x).requires_grad
    torch.utils.checkpoint.checkpoint(m, x, use_reentrant=reentrant).sum().backward()
    assert seen == [[[1, 1]]]
    assert torch.allclose(x.grad, m.weight.detach().sum(0))


def test_in_place_inside(torch: Any, reentrant: bool) -> None:
    def fn(x: Any) -> Any:
        y = x * 2
        y.sin_()
        y[1:].mul_(x[1:])
        return y + (x + 1).exp_()

    found = gradient(
        torch,
        lambda x: torch.utils.checkpoint.checkpoint(fn, x, use_reentrant=reentrant),
    )
    assert found == gradient(torch, fn)


def test_a_backward_pass_inside_the_function(torch: Any) -> None:
    def keeping(x: Any) -> Any:
        z = x.sin().cos()
        (g,) = torch.autograd.grad(z.sum(), x, retain_graph=True)
        return g.detach() * z * x.exp()

    def freeing(x: Any) -> Any:
        z = x.sin().cos()
        (g,) = torch.autograd.grad(z.sum(), x)
        return x.cos() * g

    def through(fn: Callable[[Any], Any], early_stop: bool) -> Callable[[Any], Any]:
        return lambda x: torch.utils.checkpoint.checkpoint(
            fn, x * 1, use_reentrant=False, early_stop=early_stop
        )

    for fn in (keeping, freeing):
        x = start(torch)
        fn(x * 1).sum().backward()
        for early_stop in (True, False):
            assert gradient(torch, through(fn, early_stop)) == x.grad.tolist()


# --- when the second run stops --------------------------------------------------------------------
def test_early_stop(torch: Any) -> None:
    seen: list[str] = []

    def fn(x: Any) -> Any:
        seen.append("a")
        y = x.sin()
        seen.append("b")
        z = y.cos()
        seen.append("c")
        return z + 1

    utils = torch.utils.checkpoint
    for early_stop, after in ((True, "abcab"), (False, "abcabc")):
        seen.clear()
        y = utils.checkpoint(fn, start(torch), use_reentrant=False, early_stop=early_stop)
        y.sum().backward()
        assert "".join(seen) == after
        seen.clear()
        with utils.set_checkpoint_early_stop(early_stop):
            y = utils.checkpoint(fn, start(torch), use_reentrant=False, early_stop=not early_stop)
        y.sum().backward()
        assert "".join(seen) == after


def test_contexts(torch: Any) -> None:
    seen: list[str] = []

    @contextlib.contextmanager
    def context(name: str) -> Iterator[None]:
        seen.append("enter " + name)
        try:
            yield
        finally:
            seen.append("leave " + name)

    y = torch.utils.checkpoint.checkpoint(
        wavy,
        start(torch),
        use_reentrant=False,
        context_fn=lambda: (context("first"), context("second")),
    )
    assert seen == ["enter first", "leave first"]
    y.sum().backward()
    assert seen[2:] == ["enter second", "leave second"]

    class Swallow:
        def __enter__(self) -> None: ...

        def __exit__(self, *args: object) -> bool:
            return True

    with pytest.raises(RuntimeError, match="^torch.utils.checkpoint: the forward context provided"):
        torch.utils.checkpoint.checkpoint(
            lambda x: 1 / 0,
            start(torch),
            use_reentrant=False,
            context_fn=lambda: (Swallow(), Swallow()),
        )


def test_passes_that_share_a_second_run(torch: Any) -> None:
    utils = torch.utils.checkpoint
    calls: list[int] = []

    def fn(x: Any) -> tuple[Any, Any]:
        calls.append(1)
        return x.sin(), x.cos()

    a, b = utils.checkpoint(fn, start(torch), use_reentrant=False)
    with utils.GraphExecGroup():
        a.sum().backward()
        b.sum().backward()
    assert len(calls) == 2
    a, b = utils.checkpoint(fn, start(torch), use_reentrant=False)
    with utils.GraphExecGroup(), pytest.raises(RuntimeError, match="cannot be nested"):
        utils.GraphExecGroup().__enter__()
    a.sum().backward()
    b.sum().backward()
    assert len(calls) == 5
    a, b = utils.checkpoint(fn, start(torch), use_reentrant=False)
    text = "already unpacked once. Performing two backward calls that overlap"
    with utils.GraphExecGroup():
        a.sum().backward(retain_graph=True)
        with pytest.raises(utils.CheckpointError, match=text):
            a.sum().backward()


def test_looking_at_a_saved_value_computes_it(torch: Any) -> None:
    y = torch.utils.checkpoint.checkpoint(torch.exp, start(torch), use_reentrant=False)
    assert y.grad_fn._saved_result.tolist() == y.tolist()
    assert y.grad_fn._saved_result.tolist() == y.tolist()
    y.sum().backward()


# --- what goes wrong ------------------------------------------------------------------------------
def turncoat(first: Callable[[Any], Any], second: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function that is `first` the first time and `second` ever after."""
    calls: list[int] = []

    def fn(x: Any) -> Any:
        calls.append(1)
        return first(x) if len(calls) == 1 else second(x)

    return fn


FEWER = (
    "torch.utils.checkpoint: A different number of tensors was saved during the original forward "
    "and recomputation.\nNumber of tensors saved during forward: 2\nNumber of tensors saved during "
    "recomputation: 1.\n"
)


MORE = (
    "torch.utils.checkpoint: trying to save more tensors during recomputation than during the "
    "original forward pass.\n"
)


SHAPES = (
    "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata "
    "than during the forward pass.\ntensor at position 0:\nsaved metadata: {'shape': "
    "torch.Size([3]), 'dtype': torch.float32, 'device': device(type='cpu')}\nrecomputed metadata: "
    "{'shape': torch.Size([2]), 'dtype': torch.float32, 'device': device(type='cpu')}\n"
)


def test_errors_of_functions_that_change(torch: Any) -> None:
    utils = torch.utils.checkpoint

    def message(first: Any, second: Any, **kwargs: Any) -> str:
        y = utils.checkpoint(turncoat(first, second), start(torch), use_reentrant=False, **kwargs)
        with pytest.raises(utils.CheckpointError) as caught:
            y.sum().backward()
        assert isinstance(caught.value, RuntimeError)
        return str(caught.value)

    assert message(lambda x: x.sin().cos(), lambda x: x.sin()).startswith(FEWER)
    assert message(lambda x: x.sin(), lambda x: x.sin().cos(), early_stop=False).startswith(MORE)
    assert message(lambda x: x.sin().exp(), lambda x: x[:2].sin().exp()).startswith(SHAPES)
    double = (lambda x: x.sin().exp(), lambda x: x.double().sin().exp())
    assert "'dtype': torch.float64" in message(*double)
    # not compared: then only the numbers differ
    y = utils.checkpoint(
        turncoat(*double), start(torch), use_reentrant=False, determinism_check="none"
    )
    y.sum().backward()
    # more values than asked for are not even computed
    y = utils.checkpoint(
        turncoat(lambda x: x.sin(), lambda x: x.sin().cos()), start(torch), use_reentrant=False
    )
    y.sum().backward()
    text = " An error happened while unpacking tensors; dumping logs of latest computation\nbecause"
    pair = (lambda x: x.sin().cos(), lambda x: x.sin())
    if torch is rushlight:  # PyTorch's log takes seconds
        long = message(*pair, debug=True)
        assert long.startswith(text) and long.count("test_checkpoint.py:") == 6
        assert "\n  1: aten.cos.default(torch.float32[3]) = torch.float32[3], at test_" in long
        with utils.set_checkpoint_debug_enabled(True):
            assert message(*pair).startswith(text)
        with utils.set_checkpoint_debug_enabled(False):
            assert message(*pair, debug=True).startswith(FEWER)


def test_a_value_asked_for_twice(torch: Any) -> None:
    class Twice(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            assert len(ctx.saved_tensors) == len(ctx.saved_tensors)
            return g

    y = torch.utils.checkpoint.checkpoint(Twice.apply, start(torch) * 1, use_reentrant=False)
    with pytest.raises(RuntimeError, match="^torch.utils.checkpoint: Unpack is being triggered"):
        y.sum().backward()


def test_an_argument_that_was_written(torch: Any, reentrant: bool) -> None:
    x = start(torch) * 1
    y = torch.utils.checkpoint.checkpoint(wavy, x, use_reentrant=reentrant)
    with torch.no_grad():
        x.add_(1)
    text = (
        "^one of the variables needed for gradient computation has been modified by an inplace "
        r"operation: \[torch.FloatTensor \[3\]\], which is output 0 of Mul, is at version 1; "
        "expected version 0 instead."
    )
    with pytest.raises(RuntimeError, match=text):
        y.sum().backward()


def test_errors_of_calls(torch: Any) -> None:
    utils = torch.utils.checkpoint
    x = start(torch)
    with pytest.raises(ValueError, match="^Passing `context_fn` or `debug` is only supported when"):
        utils.checkpoint(wavy, x, use_reentrant=True, debug=True)
    with pytest.raises(ValueError, match="^determinism_check should be one of .'default', 'none'."):
        utils.checkpoint(wavy, x, use_reentrant=False, determinism_check="perhaps")
    with pytest.raises(ValueError, match="^debug=True is incompatible with non-default context_fn"):
        utils.checkpoint(wavy, x, use_reentrant=False, debug=True, context_fn=lambda: None)
    with pytest.raises(RuntimeError, match="^Only tuple of tensors is supported. Got Unsupported"):
        utils.detach_variable([x])
    y = utils.checkpoint(lambda x: x.detach(), x, use_reentrant=True)
    with pytest.raises(RuntimeError, match="^none of output has requires_grad=True, this checkpo"):
        y.sum().backward()
    with (
        torch.autograd.graph.disable_saved_tensors_hooks("no hooks"),
        pytest.raises(RuntimeError, match="no hooks"),
    ):
        utils.checkpoint(wavy, x, use_reentrant=False)
    with pytest.raises(ZeroDivisionError):
        utils.checkpoint(lambda x: 1 / 0, x, use_reentrant=False)
    assert gradient(torch, wavy, x)  # and nothing is left in force


def test_use_reentrant_should_be_passed(torch: Any) -> None:
    utils = torch.utils.checkpoint
    with pytest.warns(UserWarning, match="^torch.utils.checkpoint: the use_reentrant parameter s"):
        y = utils.checkpoint(wavy, start(torch))
    assert "CheckpointFunctionBackward" in type(y.grad_fn).__name__
    with pytest.warns(UserWarning, match="^torch.utils.checkpoint.checkpoint_sequential: the use"):
        utils.checkpoint_sequential([wavy, wavy], 2, start(torch))


# --- memory (rushlight's own: PyTorch's is not seen by tracemalloc) -------------------------------
def held(fn: Callable[[], Any]) -> tuple[int, int]:
    """Bytes that are held after the forward pass, and at most in forward and backward."""
    torch: Any = rushlight
    x = torch.ones(10_000, requires_grad=True)
    tracemalloc.start()
    try:
        y = fn()(x).sum()
        after, _ = tracemalloc.get_traced_memory()
        y.backward()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return after, peak


def chain(n: int) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        for _ in range(n):
            x = (x * 0.5).sin()
        return x

    return run


def test_memory_falls(reentrant: bool) -> None:
    checkpoint = rushlight.utils.checkpoint.checkpoint
    one = 40_000  # an array

    def through(parts: int) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            for _ in range(parts):
                x = checkpoint(chain(64 // parts), x, use_reentrant=reentrant)
            return x

        return run

    plain_after, plain_peak = held(lambda: chain(64))
    assert plain_after > 64 * one
    after, peak = held(lambda: through(8))
    assert after < 10 * one + 100_000  # the 8 inputs, and small things
    assert peak < 25 * one + 100_000  # and what one part of 8 steps saves
    assert peak < plain_peak / 2
    after, _ = held(lambda: through(1))
    assert after < 3 * one + 100_000


def test_memory_falls_further_when_nested() -> None:
    checkpoint = rushlight.utils.checkpoint.checkpoint
    one = 40_000

    def inner(x: Any) -> Any:
        for _ in range(4):
            x = checkpoint(chain(4), x, use_reentrant=False)
        return x

    def outer(x: Any) -> Any:
        for _ in range(4):
            x = checkpoint(inner, x, use_reentrant=False)
        return x

    after, peak = held(lambda: outer)
    assert after < 6 * one + 200_000
    assert peak < 22 * one + 200_000
    assert gradient(rushlight, outer) == pytest.approx(gradient(rushlight, chain(64)))


# --- selective checkpoints (rushlight's own) ------------------------------------------------------
class Count(Around):
    """Counts the ops that are computed."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def answer(self, op: Any, raws: tuple[Any, ...], run: Callable[[], Any]) -> Any:
        self.names.append(op.name)
        return run()


def keeping(*ops: Any, **kwargs: Any) -> Any:
    return functools.partial(
        rushlight.utils.checkpoint.create_selective_checkpoint_contexts, list(ops), **kwargs
    )


def selective(fn: Callable[..., Any], *args: Any, ops: tuple[Any, ...]) -> Any:
    return rushlight.utils.checkpoint.checkpoint(
        fn, *args, use_reentrant=False, context_fn=keeping(*ops)
    )


def test_kept_results_are_not_computed_again() -> None:
    torch: Any = rushlight
    aten = torch.ops.aten
    for ops, again in (
        ((), ["mm", "sin", "mm", "exp"]),
        ((aten.mm.default,), ["sin", "exp"]),
        ((aten.mm.default, aten.sin.default, aten.exp.default), []),
    ):
        x = torch.eye(2, requires_grad=True)
        y = selective(lambda x: ((x @ x).sin() @ x).exp(), x, ops=ops).sum()
        with Count() as count:
            y.backward()
        assert count.names == again
    assert state.active == 0 and observer.profile is None


def test_memory_of_selective_checkpoints() -> None:
    one = 40_000
    aten = rushlight.ops.aten

    def through(ops: tuple[Any, ...]) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            for _ in range(8):
                x = selective(chain(8), x, ops=ops)
            return x

        return run

    none, peak_of_none = held(lambda: through(()))
    sines, peak_of_sines = held(lambda: through((aten.sin.default,)))
    everything, _ = held(lambda: through((aten.sin.default, aten.mul.Tensor)))
    plain, _ = held(lambda: chain(64))
    # the 8 inputs; 64 results, of which 7 are inputs too; another 64 that nothing needs
    assert none < 10 * one + 200_000
    assert 60 * one < sines < 66 * one + 300_000
    assert 120 * one < everything < 131 * one + 300_000
    assert plain < 130 * one + 200_000
    assert peak_of_none < 27 * one + 300_000
    assert peak_of_sines < 84 * one + 300_000
    assert gradient(rushlight, through((aten.sin.default,))) == gradient(rushlight, chain(64))


def test_a_kept_result_goes_when_it_was_used() -> None:
    torch: Any = rushlight
    seen: list[Any] = []

    def fn(x: Any) -> Any:
        y = x.sin()
        seen.append(weakref.ref(y._array))
        return y.exp()

    x = torch.ones(3, requires_grad=True)
    y = selective(fn, x, ops=(torch.ops.aten.sin.default,)).sum()
    gc.collect()
    assert seen[0]() is not None
    y.backward()
    gc.collect()
    assert seen[0]() is None


@pytest.mark.parametrize("part", [lambda y: y, lambda y: y.detach(), lambda y: y[1:]])
def test_a_result_that_others_hold_is_copied(part: Callable[[Any], Any]) -> None:
    """PyTorch refuses to go on if such a tensor was written; rushlight has the old value."""
    torch: Any = rushlight
    outside: list[Any] = []

    def fn(x: Any) -> Any:
        y = x.sin()
        outside.append(part(y))
        return y.exp() * 2

    def written_between(x: Any) -> Any:
        y = selective(fn, x, ops=(torch.ops.aten.sin.default,))
        with torch.no_grad():
            outside[0].add_(5)
        return y

    assert gradient(torch, written_between) == gradient(torch, lambda x: x.sin().exp() * 2)


def test_selective_checkpoints_beside_others() -> None:
    """In threads and tasks of their own, and under a profiler."""
    torch: Any = rushlight
    expected = gradient(torch, wavy)
    run = functools.partial(selective, wavy, ops=(torch.ops.aten.sin.default,))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda k: [gradient(torch, run) for _ in range(10)], range(8)))
    assert all(g == expected for some in found for g in some)
    with torch.autograd.profiler.profile() as profiled:
        assert gradient(torch, run) == expected
    assert [e.count for e in profiled.key_averages() if e.key == "aten::sin"] == [1]
    assert observer.profile is None and state.active == 0


def test_ops_that_rushlight_lacks_have_names() -> None:
    """So that a list of ops written for PyTorch can be used as it is."""
    torch: Any = rushlight
    lacking = torch.ops.aten._scaled_dot_product_flash_attention.default
    x = torch.ones(3, requires_grad=True)
    selective(wavy, x, ops=(lacking, torch.ops.aten.sin.default)).sum().backward()
    with pytest.raises(NotImplementedError, match="rushlight has no function for aten._scaled"):
        lacking(x)
    with pytest.raises(AttributeError, match="The underlying op of 'aten.mm' has no overload name"):
        torch.ops.aten.mm._nonsense
    with pytest.raises(AttributeError, match="'aten' object has no attribute 'nonsense'"):
        torch.ops.aten.nonsense


# --- selective checkpoints and others that stand around ops ---------------------------------------
def save_all(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> bool:
    return True


def keep_all(torch: Any) -> Any:
    return functools.partial(torch.utils.checkpoint.create_selective_checkpoint_contexts, save_all)


@pytest.mark.parametrize("how", ["plain", "debug", "selective"])
def test_vmap_inside(torch: Any, how: str) -> None:
    options = {"plain": {}, "debug": {"debug": True}, "selective": {"context_fn": keep_all(torch)}}

    def part(x: Any) -> Any:
        return torch.func.vmap(lambda t: t.cumsum(0) * t.sin())(x).sum()

    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = torch.utils.checkpoint.checkpoint(part, x, use_reentrant=False, **options[how])
    y.backward()
    (g,) = torch.autograd.grad(part(x), x)
    assert torch.allclose(x.grad, g)


def test_writes_into_a_few_places_run_again() -> None:  # rushlight's own
    def part(x: Any) -> Any:
        z = rushlight.zeros(3)
        z[0] = x[1].sin()
        z[rushlight.tensor([1, 2])] = x[:2]
        z.index_add_(0, rushlight.tensor([2]), x[2:])
        z.masked_fill_(rushlight.tensor([False, True, False]), 2.0)
        return (z * z * x).sum()

    x = rushlight.tensor([1.0, 2.0, 3.0], requires_grad=True)
    checkpoint = rushlight.utils.checkpoint.checkpoint
    checkpoint(part, x, use_reentrant=False, context_fn=keep_all(rushlight)).backward()
    (g,) = rushlight.autograd.grad(part(x), x)
    assert x.grad.tolist() == g.tolist()


@pytest.mark.parametrize("when", ["ends inside", "inside", "around"])
def test_profilers_and_selective_checkpoints(when: str) -> None:  # rushlight's own
    asked: list[str] = []

    def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> bool:
        asked.append(str(op))
        return True

    profiler = rushlight.autograd.profiler.profile
    prof = profiler()
    runs = []

    def part(x: Any) -> Any:
        runs.append(1)
        y = x.sin()
        if when == "ends inside" and len(runs) == 1:
            prof.__exit__(None, None, None)
        if when == "inside" and len(runs) == 1:
            with prof:
                y = y.cos()
        else:
            y = y.cos()
        return y.exp()

    contexts = functools.partial(
        rushlight.utils.checkpoint.create_selective_checkpoint_contexts, policy
    )
    x = rushlight.ones(2, requires_grad=True)
    with prof if when == "around" else contextlib.nullcontext():
        if when == "ends inside":
            prof.__enter__()
        y = rushlight.utils.checkpoint.checkpoint(part, x, use_reentrant=False, context_fn=contexts)
        y.sum().backward()
    assert asked == ["aten.sin.default", "aten.cos.default", "aten.exp.default"]
    names = [e.name for e in prof.function_events if e.name in ("aten::sin", "aten::cos")]
    expected = {"ends inside": ["aten::sin"], "inside": ["aten::cos"]}
    assert names == expected.get(when, ["aten::sin", "aten::cos"])
    assert observer.profile is None and observer.timed is None and state.active == 0
    (g,) = rushlight.autograd.grad(part(x).sum(), x)
    assert x.grad.tolist() == g.tolist()


# --- errors keep nothing alive --------------------------------------------------------------------
def test_an_error_leaves_no_cycle(torch: Any, reentrant: bool) -> None:
    refs: list[Any] = []

    def part(x: Any) -> Any:
        y = x.sin()
        refs.append(weakref.ref(y))
        if len(refs) == 2 + 1:  # the second run
            raise ValueError("no")
        return y.exp()

    def run() -> None:
        x = torch.ones(2, requires_grad=True)
        refs.append(weakref.ref(x))
        y = torch.utils.checkpoint.checkpoint(part, x, use_reentrant=reentrant)
        y.sum().backward()

    gc.collect()
    gc.disable()
    try:
        with contextlib.suppress(ValueError):
            run()
        if torch is rushlight:
            assert [ref() is None for ref in refs] == [True] * 3
    finally:
        gc.enable()


def test_a_checkpoint_in_debug_mode_says_where_to_look() -> None:
    from rushlight.utils.checkpoint import CheckpointError, checkpoint

    calls: list[int] = []

    def fn(x: Any) -> Any:
        calls.append(1)
        return x.sin().exp() if len(calls) == 1 else x.sin()

    y = checkpoint(fn, rushlight.ones(2, requires_grad=True), use_reentrant=False, debug=True)
    with pytest.raises(CheckpointError) as error:
        y.sum().backward()
    assert str(error.value).startswith(
        " An error happened while unpacking tensors; dumping logs of latest computation\n"
        "because you passed `debug=True` to `torch.utils.checkpoint.checkpoint()`.\n"
        "Scroll all the way down for guidance on how to navigate these logs.\n"
    )
