"""Situations of checkpoints, of which all one can see counts, errors and warnings included."""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.harness import Cases, as_stored

MATRIX = [[0.3, 0.7], [0.2, 0.9]]


class CheckpointCases(Cases):
    """Cases of the library and its utils.checkpoint."""

    def run(self, lib: Any, name: str) -> Any:
        utils = importlib.import_module(f"{lib.__name__}.utils.checkpoint")
        importlib.import_module(f"{lib.__name__}.nn.functional")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return as_stored(attempt(lambda: self[name](lib, utils)))


cases = CheckpointCases()


def attempt(fn: Callable[[], Any]) -> Any:
    """What a function gives, or the first paragraph of how it fails."""
    try:
        return fn()
    except Exception as error:  # whatever it is, both libraries must raise it
        return f"{type(error).__name__}: " + str(error).split("\n\n")[0]


def matrix(lib: Any) -> Any:
    return lib.tensor(MATRIX, requires_grad=True)


def numbers(t: Any) -> Any:
    """A tensor's values, to four digits."""
    if t is None:
        return None
    return [round(x, 4) for x in t.detach().flatten().tolist()]


def graded(lib: Any, fn: Callable[[Any], Any], x: Any = None) -> Any:
    x = matrix(lib) if x is None else x
    fn(x).sum().backward()
    return numbers(x.grad)


# --- selective ------------------------------------------------------------------------------------
FUNCTIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "products": lambda lib, x, y: lib.sigmoid(lib.matmul(lib.matmul(x, y), y)) * y,
    "layers": lambda lib, x, y: lib.nn.functional.linear(x, y, y[0]) @ x,
    "softmax": lambda lib, x, y: lib.nn.functional.softmax(x @ y, 1),
    "numbers": lambda lib, x, y: (x * 2 + 1 - y) / 3 + (1 - x) + 2 / x,
    "powers": lambda lib, x, y: x**2 + x**y + 2**x,
    "reductions": lambda lib, x, y: x.sum(1) + x.mean(0) + y.max() + y.amax(1) + x.var(1) + x.std(),
    "several results": lambda lib, x, y: x.max(1).values + y.median(0).values,
    "comparisons": lambda lib, x, y: lib.where(x > 0.5, x, y) * (x > y).float(),
    "activations": lambda lib, x, y: x.relu() + lib.nn.functional.gelu(y) + x.tanh(),
    "normalised": lambda lib, x, y: lib.nn.functional.layer_norm(x, (2,), y[0], y[1]),
    "batches": lambda lib, x, y: lib.bmm(x[None], y[None]) + x[None] @ y[None],
    "einsum": lambda lib, x, y: lib.einsum("ij,jk->ik", x, y),
    "views": lambda lib, x, y: x.t().reshape(4)[1:].unsqueeze(0) * y.view(-1)[0],
    "joined": lambda lib, x, y: lib.cat([x, y]) + lib.stack([x[0], y[0], x[1], y[1]]),
    "copies": lambda lib, x, y: x.clone().t().contiguous() * y,
}


def with_policy(utils: Any, policy: Any, **kwargs: Any) -> Callable[..., Any]:
    """A checkpoint whose contexts follow a policy."""
    contexts = functools.partial(utils.create_selective_checkpoint_contexts, policy, **kwargs)
    return functools.partial(utils.checkpoint, use_reentrant=False, context_fn=contexts)


@cases
def what_policies_see(lib: Any, utils: Any) -> Any:
    found = {}
    for name, fn in FUNCTIONS.items():
        for save in (False, True):
            seen: list[str] = []

            def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
                assert ctx.is_recompute is False
                seen.append(str(op))  # noqa: B023  # called in this turn of the loop
                return save  # noqa: B023

            x, y = matrix(lib), matrix(lib)
            part = functools.partial(fn, lib)
            with_policy(utils, policy)(part, x, y).sum().backward()
            found[f"{name} {save}"] = [seen, numbers(x.grad), numbers(y.grad)]
    return found


@cases
def lists_of_ops(lib: Any, utils: Any) -> Any:
    aten = lib.ops.aten
    found = []
    for ops in ([], [aten.mm.default], [aten.mm.default, aten.sigmoid.default, aten.mul.Tensor]):
        fn = functools.partial(FUNCTIONS["products"], lib)
        found.append(graded(lib, lambda x, fn=fn, ops=ops: with_policy(utils, ops)(fn, x, x)))
    return found


@cases
def which_results_are_kept(lib: Any, utils: Any) -> Any:
    """Overwrite a factor after forward: what was kept still has its old value."""
    aten = lib.ops.aten
    policies: list[Any] = [[], [aten.mm.default], [aten.mul.Tensor]]
    for chosen in (True, False, *utils.CheckpointPolicy):
        policies.append(lambda ctx, op, *args, chosen=chosen, **kwargs: chosen)
    found = []
    for policy in policies:
        for early_stop in (True, False):
            x, w = matrix(lib), lib.tensor(MATRIX)
            y = with_policy(utils, policy)(
                lambda x, w=w: ((x @ w).sin() * w).exp().cos(), x, early_stop=early_stop
            )
            w.fill_(2.0)
            y.sum().backward()
            found.append(numbers(x.grad))
    return found


@cases
def what_a_policy_is_told(lib: Any, utils: Any) -> Any:
    seen: list[Any] = []

    def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
        tensors = [numbers(a) for a in args if isinstance(a, lib.Tensor)]
        seen.append([str(op), numbers(ctx.op_output), tensors, lib.is_grad_enabled()])
        lib.ones(2).exp()  # ops of its own are not shown to it
        return ctx.op_output.sum() > 1

    found = graded(lib, lambda x: with_policy(utils, policy)(lambda x: (x @ x).sin() * x, x))
    return [[[*parts[:3]] for parts in seen], found]


@cases
def the_policies(lib: Any, utils: Any) -> Any:
    context = utils.SelectiveCheckpointContext(is_recompute=True)
    return [
        [(p.name, p.value) for p in utils.CheckpointPolicy],
        context.is_recompute, context.op_output,
        attempt(lambda: utils.SelectiveCheckpointContext()),
    ]  # fmt: skip


@cases
def wrong_policies(lib: Any, utils: Any) -> Any:
    make = utils.create_selective_checkpoint_contexts
    aten = lib.ops.aten
    return [
        attempt(lambda: make([aten.mm])).split(" of type")[0],
        attempt(lambda: make([lib.mm])).split(":")[0],
        attempt(lambda: make((aten.mm.default,))),
        attempt(lambda: make(None)),
        attempt(lambda: make({aten.mm.default})),
    ]


@cases
def a_policy_that_raises(lib: Any, utils: Any) -> Any:
    def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
        raise KeyError("policy")

    found = attempt(lambda: with_policy(utils, policy)(lib.sin, matrix(lib)))
    return [found, graded(lib, lib.sin)]


@cases
def backward_twice(lib: Any, utils: Any) -> Any:
    found = []
    for policy in ([], [lib.ops.aten.sin.default], [lib.ops.aten.mm.default]):
        y = with_policy(utils, policy)(lambda x: (x @ x).sin().exp(), matrix(lib)).sum()
        y.backward(retain_graph=True)
        found.append(attempt(y.backward))
    return found


@cases
def kept_and_written(lib: Any, utils: Any) -> Any:
    aten = lib.ops.aten

    def inside(x: Any) -> Any:
        y = x @ x
        z = y.sin()
        y.mul_(2)
        return z.exp()

    def through_a_view(x: Any) -> Any:
        y = x @ x
        z = y.sin()
        y.view(4)[0].mul_(2)
        return z.exp()

    found = []
    for fn in (inside, through_a_view):
        for ops in ([aten.mm.default], [aten.sin.default]):
            for allow in (False, True):
                run = with_policy(utils, ops, allow_cache_entry_mutation=allow)
                found.append(attempt(lambda run=run, fn=fn: graded(lib, lambda x: run(fn, x))))
    for ops in ([aten.exp.default], [aten.sin.default]):
        x = matrix(lib)
        y = with_policy(utils, ops)(lambda x: x.sin().exp(), x)
        z = (y * 3).sum()
        with lib.no_grad():
            y.add_(1)
        found.append(attempt(lambda z=z, x=x: [z.backward(), numbers(x.grad)]))
    return found


@cases
def functions_that_change(lib: Any, utils: Any) -> Any:
    found = []
    for first, second in (
        (lambda x: x.sin().exp(), lambda x: x.cos().exp()),
        (lambda x: x.sin().exp(), lambda x: x.neg().sin().exp()),
        (lambda x: x.sin().exp(), lambda x: x.sin()),
        (lambda x: x.sin().exp(), lambda x: x[:1].sin().exp()),
    ):
        for policy in ([], [lib.ops.aten.sin.default]):
            calls: list[int] = []

            def fn(x: Any, calls: Any = calls, first: Any = first, second: Any = second) -> Any:
                calls.append(1)
                return first(x) if len(calls) == 1 else second(x)

            y = with_policy(utils, policy)(fn, matrix(lib)).sum()
            found.append(attempt(y.backward))
    return found


@cases
def selective_inside_selective(lib: Any, utils: Any) -> Any:
    aten = lib.ops.aten
    seen: list[str] = []

    def policy(name: str, chosen: Any) -> Any:
        def answer(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
            seen.append(f"{name} {op}")
            return op is chosen

        return answer

    inner = with_policy(utils, policy("inner", aten.sin.default))
    outer = with_policy(utils, policy("outer", aten.mm.default))
    found = graded(lib, lambda x: outer(lambda x: inner(lambda x: (x @ x).sin(), x).exp(), x))
    return [seen, found]


@cases
def selective_inside_plain(lib: Any, utils: Any) -> Any:
    inner = with_policy(utils, [lib.ops.aten.mm.default])
    plain = functools.partial(utils.checkpoint, use_reentrant=False)
    return [
        graded(lib, lambda x: plain(lambda x: inner(lambda x: (x @ x).sin(), x * 2).exp(), x)),
        graded(lib, lambda x: inner(lambda x: plain(lambda x: (x @ x).sin(), x * 2).exp(), x)),
    ]


@cases
def selective_second_derivatives(lib: Any, utils: Any) -> Any:
    x = matrix(lib)
    y = with_policy(utils, [lib.ops.aten.sin.default])(lambda x: x.sin().exp(), x).sum()
    (g,) = lib.autograd.grad(y, x, create_graph=True)
    return [numbers(g), attempt(lambda: numbers(lib.autograd.grad(g.sum(), x)[0]))]


@cases
def selective_without_gradients(lib: Any, utils: Any) -> Any:
    seen: list[str] = []

    def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(str(op))
        return True

    with lib.no_grad():
        y = with_policy(utils, policy)(lib.sin, matrix(lib))
    return [numbers(y), y.requires_grad, seen]


@cases
def contexts_by_hand(lib: Any, utils: Any) -> Any:
    make = utils.create_selective_checkpoint_contexts
    first, second = make([lib.ops.aten.sin.default])
    x, zero = lib.tensor(MATRIX), lib.zeros(2, 2)
    with first:
        found = [x.sin(), x.exp()]
    with second:
        found += [zero.sin(), zero.exp()]
    return [numbers(t) for t in found]


@cases
def names_of_ops(lib: Any, utils: Any) -> Any:
    aten = lib.ops.aten
    mm, add = aten.mm.default, aten.add.Tensor
    return [
        repr(mm), str(mm), mm.name(), mm.__name__, mm.namespace, repr(aten.mm), str(aten.mm),
        add.name(), mm is aten.mm.default, mm == add, mm in {add, mm}, mm.overloadpacket is aten.mm,
        numbers(mm(matrix(lib), matrix(lib))), numbers(aten.mm(matrix(lib), matrix(lib))),
        numbers(add(matrix(lib), 1)), hasattr(aten, "__wrapped__"),
    ]  # fmt: skip


# --- plain ----------------------------------------------------------------------------------------
def both(utils: Any) -> list[Callable[..., Any]]:
    return [functools.partial(utils.checkpoint, use_reentrant=flag) for flag in (True, False)]


@cases
def arguments_of_all_kinds(lib: Any, utils: Any) -> Any:
    def fn(x: Any, parts: Any, *rest: Any, scale: float = 1.0, more: Any = None) -> Any:
        y = x * scale * len(rest)
        for part in parts:
            y = y * part.sin()
        return (y + (0 if more is None else more["w"])).exp()

    found = []
    for run in both(utils):
        x, w = matrix(lib), matrix(lib)
        found.append(attempt(lambda run=run, x=x: graded(lib, lambda x: run(fn, x, [x * 2], 1), x)))
        found.append(
            attempt(
                lambda run=run, x=x, w=w: [
                    run(fn, x, (w,), None, "s", scale=0.5, more={"w": w}).sum().backward(),
                    numbers(x.grad), numbers(w.grad),
                ]
            )
        )  # fmt: skip
    return found


@cases
def results_of_all_kinds(lib: Any, utils: Any) -> Any:
    makers: list[Callable[[Any], Any]] = [
        lambda x: (x.sin(), 3, None), lambda x: [x.sin(), x.cos()], lambda x: {"a": x.sin()},
        lambda x: x, lambda x: x.detach(), lambda x: None, lambda x: x[0], lambda x: (x, x.sin()),
    ]  # fmt: skip

    def shown(lib: Any, y: Any) -> Any:
        if isinstance(y, (tuple, list)):
            return [type(y).__name__, *[shown(lib, z) for z in y]]
        if isinstance(y, dict):
            return {k: shown(lib, z) for k, z in y.items()}
        return [y.requires_grad, y.is_leaf, numbers(y)] if isinstance(y, lib.Tensor) else y

    return [
        attempt(lambda run=run, make=make: shown(lib, run(make, matrix(lib))))
        for run in both(utils)
        for make in makers
    ]


@cases
def some_results_unused(lib: Any, utils: Any) -> Any:
    found = []
    for run in both(utils):
        x = matrix(lib)
        a, _ = run(lambda x: (x.sin().exp(), x.cos().exp()), x)
        a.sum().backward()
        found.append(numbers(x.grad))
    return found


@cases
def random_numbers(lib: Any, utils: Any) -> Any:
    found = []
    for run in both(utils):
        for keep in (True, False):
            lib.manual_seed(3)
            x = matrix(lib)
            y = run(lambda x: (x * lib.rand(2, 2)).exp(), x, preserve_rng_state=keep)
            between = numbers(lib.rand(1))
            y.sum().backward()
            found.append([numbers(y), between, numbers(x.grad), numbers(lib.rand(1))])
    return found


@cases
def inside_a_function(lib: Any, utils: Any) -> Any:
    def made(run: Any, again: bool) -> Any:
        class Part(lib.autograd.Function):  # type: ignore[misc]
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.save_for_backward(x)
                return run(lambda x: x.sin().exp(), x)

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                (x,) = ctx.saved_tensors
                with lib.enable_grad():
                    x = x.detach().requires_grad_()
                    y = run(lambda x: x.sin().exp(), x)
                    y.backward(g)
                return x.grad

        return Part

    return [
        attempt(lambda run=run: graded(lib, lambda x: made(run, True).apply(x) * x))
        for run in both(utils)
    ]


@cases
def hooks_inside(lib: Any, utils: Any) -> Any:
    found = []
    for run in both(utils):
        seen: list[Any] = []

        def fn(x: Any, seen: list[Any] = seen) -> Any:
            y = x.sin()
            if y.requires_grad:
                y.register_hook(lambda g: seen.append(numbers(g)))
            return y.exp()

        x = matrix(lib)
        x.register_hook(lambda g, seen=seen: seen.append("leaf"))
        found.append([graded(lib, lambda x, run=run: run(fn, x), x), seen])
    return found


@cases
def other_hooks_around(lib: Any, utils: Any) -> Any:
    seen: list[Any] = []

    def pack(t: Any) -> Any:
        seen.append(list(t.shape))
        return t

    with lib.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        x = matrix(lib)
        y = utils.checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False)
        z = (y * y).sum()
    count = len(seen)
    z.backward()
    return [count, len(seen), seen, numbers(x.grad)]


@cases
def other_hooks_inside(lib: Any, utils: Any) -> Any:
    seen: list[Any] = []

    def pack(t: Any) -> Any:
        seen.append("pack")
        return t

    def fn(x: Any) -> Any:
        with lib.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            y = x.sin()
        return y.exp()

    x = matrix(lib)
    return [graded(lib, lambda x: utils.checkpoint(fn, x, use_reentrant=False), x), seen]


@cases
def modes_inside(lib: Any, utils: Any) -> Any:
    found = []
    for run in both(utils):
        seen: list[Any] = []

        def fn(x: Any, seen: list[Any] = seen) -> Any:
            seen.append(lib.is_grad_enabled())
            with lib.no_grad():
                c = x.exp()
            return (x * c).sin()

        found.append([graded(lib, lambda x, run=run, fn=fn: run(fn, x)), seen])
    with lib.no_grad():
        y = utils.checkpoint(lib.exp, matrix(lib), use_reentrant=False)
        found.append([y.requires_grad])
    with lib.inference_mode():
        y = utils.checkpoint(lib.exp, matrix(lib), use_reentrant=False)
        found.append([y.requires_grad, y.is_inference()])
    return found


@cases
def parts_of_a_graph(lib: Any, utils: Any) -> Any:
    found = []
    x, w = matrix(lib), matrix(lib)
    y = utils.checkpoint(lambda x, w: (x.sin() * w).exp(), x, w, use_reentrant=False)
    found.append(numbers(lib.autograd.grad(y.sum(), x, retain_graph=True)[0]))
    found.append(numbers(lib.autograd.grad(y.sum(), w, retain_graph=True)[0]))
    y.sum().backward(inputs=[w])
    return [*found, numbers(x.grad), numbers(w.grad)]


@cases
def an_argument_that_is_freed(lib: Any, utils: Any) -> Any:
    x = matrix(lib)
    y = x * 1
    z = utils.checkpoint(lambda y: y.sin().exp(), y, use_reentrant=False)
    del y
    z.sum().backward()
    return numbers(x.grad)


@cases
def a_function_that_raises_the_second_time(lib: Any, utils: Any) -> Any:
    found = []
    for run in both(utils):
        calls: list[int] = []

        def fn(x: Any, calls: list[int] = calls) -> Any:
            calls.append(1)
            if len(calls) == 2:
                raise KeyError("second")
            return x.sin().exp()

        x = matrix(lib)
        y = run(fn, x)
        found.append(attempt(lambda y=y: y.sum().backward(retain_graph=True)))
        found.append(attempt(lambda y=y, x=x: [y.sum().backward(), numbers(x.grad)]))
        found.append(len(calls))
    return found


@cases
def early_stop_settings(lib: Any, utils: Any) -> Any:
    found = []
    for outer in (None, True, False):
        for own in (None, True, False):
            ran: list[str] = []

            def fn(x: Any, ran: list[str] = ran) -> Any:
                y = x.sin().exp()
                ran.append("end")
                return y

            kwargs = {} if own is None else {"early_stop": own}
            with utils.set_checkpoint_early_stop(outer):
                y = utils.checkpoint(fn, matrix(lib), use_reentrant=False, **kwargs)
            y.sum().backward()
            found.append(len(ran))
    return found


@cases
def calls_that_are_refused(lib: Any, utils: Any) -> Any:
    x = matrix(lib)
    run = utils.checkpoint
    return [
        attempt(lambda: run(lib.sin, x, use_reentrant=True, debug=True)),
        attempt(lambda: run(lib.sin, x, use_reentrant=True, context_fn=lambda: None)),
        attempt(lambda: run(lib.sin, x, use_reentrant=True, a=1, b=2)),
        attempt(lambda: run(lib.sin, x, use_reentrant=False, determinism_check="sure")),
        attempt(lambda: run(lib.sin, x, use_reentrant=False, debug=True, context_fn=lambda: None)),
        attempt(lambda: utils.checkpoint_sequential([lib.sin], 1, x, use_reentrant=True, a=1)),
        attempt(lambda: utils.detach_variable(x)),
        attempt(lambda: utils.detach_variable([x])),
        attempt(lambda: lib.autograd.grad(run(lib.exp, x, use_reentrant=True).sum(), x)),
    ]


@cases
def warnings_that_are_given(lib: Any, utils: Any) -> Any:
    found = []
    calls: list[Callable[[], Any]] = [
        lambda: utils.checkpoint(lib.sin, matrix(lib)),
        lambda: utils.checkpoint(lib.sin, lib.ones(2)),
        lambda: utils.checkpoint(lib.sin, lib.ones(2), use_reentrant=True),
        lambda: utils.checkpoint(lib.sin, lib.ones(2), use_reentrant=False),
        lambda: utils.checkpoint_sequential([lib.sin, lib.cos], 2, matrix(lib)),
        lambda: utils.check_backward_validity([lib.ones(2), 3]),
        lambda: utils.check_backward_validity([matrix(lib)]),
    ]
    for call in calls:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            call()
        found.append([f"{w.category.__name__}: {w.message}" for w in said])
    return found


@cases
def helpers(lib: Any, utils: Any) -> Any:
    x = matrix(lib) * 2
    detached = utils.detach_variable((x, 3, lib.ones(1)))
    first, second = utils.noop_context_fn()
    with first, second:
        states = utils.get_device_states(x, [x], 3)
    kind = utils.DefaultDeviceType
    before = kind.get_device_type()
    kind.set_device_type("cuda")
    found = [
        [d.requires_grad if isinstance(d, lib.Tensor) else d for d in detached],
        detached[0].is_leaf, numbers(detached[0]), list(states), before, kind.get_device_type(),
    ]  # fmt: skip
    kind.set_device_type(before)
    utils.set_device_states([], [])
    return found


@cases
def segments(lib: Any, utils: Any) -> Any:
    found = []
    for count in (1, 2, 3, 4):
        for flag in (True, False):
            calls: list[str] = []

            def step(name: str, calls: list[str] = calls) -> Any:
                def fn(t: Any) -> Any:
                    calls.append(name)
                    return t.sin() * 2

                return fn

            parts = [step(name) for name in "abcd"]
            x = matrix(lib)
            utils.checkpoint_sequential(parts, count, x, use_reentrant=flag).sum().backward()
            found.append([numbers(x.grad), "".join(calls)])
    return found


@cases
def from_many_threads(lib: Any, utils: Any) -> Any:
    shared = matrix(lib)

    def work(k: int) -> Any:
        x = matrix(lib)
        for run in both(utils):
            y = run(lambda x: ((x * (k + 1)).sin() * shared).exp(), x)
            y.sum().backward()
        return numbers(x.grad)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, range(8)))
    return [found, [round(g, 2) for g in shared.grad.flatten().tolist()]]


def results(lib: Any) -> Any:
    return {"cases": cases.results(lib)}
