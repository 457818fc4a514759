"""The grad and inference modes: situations, of which all one can see counts, errors included; and
random nestings (`program`) of modes, calls, generators, threads and exceptions.
"""

from __future__ import annotations

import asyncio
import copy
import pickle
import random
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from contextvars import copy_context
from typing import Any

from tests.harness import Cases, as_stored

SEEDS = range(400)


class ModeCases(Cases):
    """Each case is run in a thread of its own, so that it leaves no mode behind."""

    def run(self, lib: Any, name: str) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return as_stored(in_thread(lambda: attempt(lambda: self[name](lib))))


cases = ModeCases()


def modes(lib: Any) -> list[bool]:
    """The modes in force, as functions tell them and as an op feels them."""
    y = lib.ones(1, requires_grad=True) * 2
    return [lib.is_grad_enabled(), lib.is_inference_mode_enabled(), y.requires_grad]


def attempt(fn: Callable[[], Any]) -> Any:
    """What a function gives, or how it fails."""
    try:
        return fn()
    except Exception as error:  # whatever it is, both libraries must raise it
        text = str(error).splitlines()[0].split(" Hint: ")[0]  # of anomaly mode
        return f"{type(error).__name__}: {text}"


def multithreading_of(lib: Any) -> tuple[Any, Any]:
    """`set_multithreading_enabled`, `is_multithreading_enabled`."""
    home = lib.autograd if hasattr(lib.autograd, "is_multithreading_enabled") else None
    home = home or lib.autograd.grad_mode
    return home.set_multithreading_enabled, home.is_multithreading_enabled


def in_thread(fn: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(fn).result()


# --- switching ------------------------------------------------------------------------------------
@cases
def nested(lib: Any) -> Any:
    seen = [modes(lib)]
    for outer in (lib.no_grad, lib.enable_grad, lib.inference_mode):
        for inner in (lib.no_grad, lib.enable_grad, lib.inference_mode):
            with outer():
                seen.append(modes(lib))
                with inner():
                    seen.append(modes(lib))
                seen.append(modes(lib))
            seen.append(modes(lib))
    return seen


@cases
def inference_switched_off(lib: Any) -> Any:
    seen = []
    for outer in (lib.no_grad, lib.enable_grad, lib.inference_mode):
        with outer(), lib.inference_mode(False):
            seen.append(modes(lib))
            with lib.no_grad():
                seen.append(modes(lib))
    return seen


@cases
def set_by_a_call(lib: Any) -> Any:
    seen = []
    for flags in ((False, True), (False, False, True), (True, False, True, True)):
        for flag in flags:
            lib.set_grad_enabled(flag)
            seen.append(modes(lib))
    return seen


@cases
def set_by_a_call_inside(lib: Any) -> Any:
    seen = []
    for mode in (lib.no_grad, lib.enable_grad, lib.inference_mode):
        for flag in (False, True):
            with mode():
                lib.set_grad_enabled(flag)
                seen.append(modes(lib))
                with lib.no_grad():
                    lib.set_grad_enabled(not flag)
                    seen.append(modes(lib))
                seen.append(modes(lib))
            seen.append(modes(lib))
    return seen


@cases
def made_before_it_is_entered(lib: Any) -> Any:
    seen = []
    mode = lib.set_grad_enabled(False)
    seen.append(modes(lib))
    with mode:
        seen.append(modes(lib))
    seen.append(modes(lib))
    mode = lib.set_grad_enabled(True)
    with mode:
        lib.set_grad_enabled(False)
        seen.append(modes(lib))
    seen.append(modes(lib))
    return seen


@cases
def what_set_grad_enabled_is(lib: Any) -> Any:
    mode = lib.set_grad_enabled(True)
    return [mode.prev, mode.mode, str(mode).rsplit(".", 1)[-1], repr(mode) == str(mode)]


@cases
def no_bool(lib: Any) -> Any:
    return [
        attempt(lambda: lib.set_grad_enabled(1)),
        attempt(lambda: lib.set_grad_enabled("no")),
        attempt(lambda: multithreading_of(lib)[0](0)),
        modes(lib),
    ]


@cases
def one_object_several_times(lib: Any) -> Any:
    seen = []
    for mode in (lib.no_grad(), lib.enable_grad()):
        with lib.no_grad():
            for _ in range(2):
                with mode:
                    seen.append(modes(lib))
                seen.append(modes(lib))
    return seen


@cases
def left_by_exceptions(lib: Any) -> Any:
    seen = []
    for mode in (lib.no_grad, lib.inference_mode, lambda: lib.set_grad_enabled(False)):
        try:
            with mode(), lib.enable_grad(), mode():
                seen.append(modes(lib))
                raise KeyError
        except KeyError:
            seen.append(modes(lib))
    return seen


@cases
def exit_stacks(lib: Any) -> Any:
    seen = []
    with ExitStack() as stack:
        for mode in (lib.no_grad(), lib.enable_grad(), lib.inference_mode(), lib.no_grad()):
            stack.enter_context(mode)
            seen.append(modes(lib))
        kept = stack.pop_all()
    seen.append(modes(lib))
    kept.close()
    return [*seen, modes(lib)]


@cases
def multithreading(lib: Any) -> Any:
    setting, enabled = multithreading_of(lib)
    seen = [enabled()]
    with setting(False):
        seen.append(enabled())
        with setting(True):
            seen.append(enabled())
        seen += [enabled(), in_thread(enabled)]
        x = lib.ones(2, requires_grad=True)
        (x * x).sum().backward()
        seen.append(x.grad.tolist())
    seen.append(enabled())
    with lib.inference_mode():
        seen.append(enabled())
        with setting(True):
            seen.append(enabled())
        with lib.inference_mode(False):
            seen.append(enabled())
    seen.append(enabled())
    setting(False)
    seen.append(enabled())
    setting(True)
    return [*seen, enabled()]


@cases
def multithreading_decorates(lib: Any) -> Any:
    setting, enabled = multithreading_of(lib)
    seen = []

    @setting(False)  # type: ignore[untyped-decorator]
    def fn() -> None:
        seen.append(enabled())

    setting(True)
    fn()
    return [*seen, enabled()]


# --- decorating -----------------------------------------------------------------------------------
@cases
def decorated(lib: Any) -> Any:
    seen = []
    decorators = (
        lib.no_grad, lib.no_grad(), lib.enable_grad, lib.enable_grad(), lib.inference_mode,
        lib.inference_mode(), lib.inference_mode(False), lib.set_grad_enabled(False),
    )  # fmt: skip
    for decorator in decorators:

        @decorator  # type: ignore[untyped-decorator]
        def fn(depth: int, *, stop: int = 2) -> int:
            """Doc."""
            seen.append(modes(lib))
            return depth if depth == stop else int(fn(depth + 1, stop=stop))

        assert fn.__name__ == "fn" and fn.__doc__ == "Doc."
        with lib.no_grad():
            seen.append(fn(0))
            seen.append(modes(lib))
        seen.append(fn(0, stop=1))
        seen.append(modes(lib))
    return seen


@cases
def decorated_and_raising(lib: Any) -> Any:
    @lib.no_grad()  # type: ignore[untyped-decorator]
    def fn() -> None:
        lib.set_grad_enabled(True)
        raise KeyError(modes(lib))

    return [attempt(fn), modes(lib)]


@cases
def decorated_methods(lib: Any) -> Any:
    class Thing:
        @lib.no_grad()  # type: ignore[untyped-decorator]
        def method(self) -> Any:
            return modes(lib)

        @staticmethod
        @lib.no_grad()  # type: ignore[untyped-decorator]
        def static() -> Any:
            return modes(lib)

        @classmethod
        @lib.inference_mode()  # type: ignore[untyped-decorator]
        def of_class(cls) -> Any:
            return modes(lib)

        @property
        @lib.no_grad()  # type: ignore[untyped-decorator]
        def prop(self) -> Any:
            return modes(lib)

    thing = Thing()
    return [thing.method(), thing.static(), Thing.of_class(), thing.prop, modes(lib)]


def stepper(lib: Any, seen: list[Any]) -> Iterator[Any]:
    received: Any = "start"
    try:
        while received != "stop":
            try:
                received = yield [received, modes(lib)]
            except KeyError as error:
                received = ["caught", str(error)]
    finally:
        seen.append(["finally", modes(lib)])
    return "result"


@cases
def decorated_generators(lib: Any) -> Any:
    seen: list[Any] = []
    for mode in (lib.no_grad(), lib.inference_mode(), lib.set_grad_enabled(False)):
        steps = mode(stepper)
        g = steps(lib, seen)
        seen += [next(g), modes(lib), g.send(1), modes(lib), g.throw(KeyError("k")), modes(lib)]
        with lib.enable_grad():
            seen += [g.send(2), modes(lib)]
        try:
            g.send("stop")
        except StopIteration as stop:
            seen.append(stop.value)
        g = steps(lib, seen)
        seen += [next(g), modes(lib)]
        g.close()
        seen.append(modes(lib))
        g = steps(lib, seen)
        next(g)
        seen += [attempt(lambda g=g: g.throw(ValueError("v"))), modes(lib)]
        g = steps(lib, seen)
        next(g)
        del g
        seen.append(modes(lib))
    return seen


@cases
def decorated_generators_from(lib: Any) -> Any:
    seen: list[Any] = []

    @lib.no_grad()  # type: ignore[untyped-decorator]
    def inner() -> Iterator[int]:
        seen.append(modes(lib))
        yield 1
        seen.append(modes(lib))
        yield 2

    @lib.enable_grad()  # type: ignore[untyped-decorator]
    def outer() -> Iterator[int]:
        yield from inner()
        seen.append(modes(lib))
        yield 3

    with lib.no_grad():
        found = list(outer())
    return [found, seen, modes(lib)]


@cases
def a_block_in_a_generator(lib: Any) -> Any:
    def steps() -> Iterator[Any]:
        with lib.no_grad():
            yield modes(lib)
            yield modes(lib)

    seen = []
    for found in steps():
        seen += [found, modes(lib)]
    seen.append(modes(lib))
    g = steps()
    next(g)
    g.close()
    return [*seen, modes(lib)]


# --- threads and tasks ----------------------------------------------------------------------------
@cases
def threads(lib: Any) -> Any:
    seen = []
    for mode in (lib.no_grad, lib.inference_mode, lib.enable_grad):
        with mode():
            seen.append(in_thread(lambda: modes(lib)))
            in_thread(lambda: lib.set_grad_enabled(False))
            seen.append(modes(lib))
    return seen


@cases
def a_pool_keeps_what_was_set(lib: Any) -> Any:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lib.set_grad_enabled, False).result()
        return [pool.submit(modes, lib).result(), modes(lib)]


@cases
def a_context_in_another_thread(lib: Any) -> Any:
    seen = []
    for mode in (lib.no_grad, lib.inference_mode):
        with mode():
            context = copy_context()
            seen.append(in_thread(lambda context=context: context.run(modes, lib)))
            seen.append(asyncio.run(asyncio.to_thread(modes, lib)))
    return seen


@cases
def one_object_in_two_threads(lib: Any) -> Any:
    mode = lib.no_grad()
    entered, go = threading.Event(), threading.Event()
    seen: list[Any] = []

    def other() -> None:
        with mode:
            seen.append(modes(lib))
            entered.set()
            go.wait(10)
            seen.append(modes(lib))
        seen.append(modes(lib))

    thread = threading.Thread(target=other)
    thread.start()
    entered.wait(10)
    seen.append(modes(lib))
    go.set()
    thread.join()
    return seen


@cases
def tasks(lib: Any) -> Any:
    async def look() -> Any:
        await asyncio.sleep(0)
        return modes(lib)

    async def main() -> Any:
        seen = []
        with lib.no_grad():
            seen.append(await look())
            seen.append(await asyncio.create_task(look()))
            seen += await asyncio.gather(look(), look())
            async with asyncio.TaskGroup() as group:
                task = group.create_task(look())
            seen.append(task.result())
            late = asyncio.create_task(look())
        seen.append(await late)
        return seen

    return [asyncio.run(main()), modes(lib)]


@cases
def a_task_that_fails(lib: Any) -> Any:
    async def fail() -> None:
        with lib.inference_mode():
            await asyncio.sleep(0)
            raise KeyError

    async def main() -> Any:
        seen: list[Any] = []
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(fail())
        except* KeyError:
            seen.append(modes(lib))
        try:
            async with asyncio.timeout(0.01):
                with lib.no_grad():
                    await asyncio.sleep(5)
        except TimeoutError:
            seen.append(modes(lib))
        return seen

    return [asyncio.run(main()), modes(lib)]


# --- backward and modes ---------------------------------------------------------------------------
@cases
def backward_inside(lib: Any) -> Any:
    seen: list[Any] = []
    for mode in (lib.no_grad, lib.inference_mode):
        x = lib.tensor([2.0], requires_grad=True)
        y = x * x
        y.register_hook(lambda g, seen=seen: seen.append(lib.is_grad_enabled()))
        with mode():
            y.backward()
            seen.append(modes(lib))
        seen += [x.grad.tolist(), x.grad.requires_grad]
    return seen


@cases
def modes_in_hooks(lib: Any) -> Any:
    x = lib.tensor([2.0], requires_grad=True)
    seen: list[Any] = []

    def hook(g: Any) -> None:
        seen.append(modes(lib))
        with lib.enable_grad():
            seen.append(modes(lib))
        lib.set_grad_enabled(not lib.is_grad_enabled())
        seen.append(modes(lib))

    for create in (False, True):
        y = x * x
        y.register_hook(hook)
        lib.autograd.grad(y, x, create_graph=create)
        seen.append(modes(lib))
    return seen


@cases
def modes_in_functions(lib: Any) -> Any:
    seen = []

    class Twice(lib.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            seen.append(modes(lib))
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            seen.append(modes(lib))
            return g * 2

    x = lib.tensor([2.0], requires_grad=True)
    for create in (False, True):
        (g,) = lib.autograd.grad(Twice.apply(x), x, create_graph=create)
        seen.append(g.requires_grad)
    for mode in (lib.no_grad, lib.inference_mode):
        with mode():
            y = Twice.apply(x)
        seen += [y.requires_grad, y.is_inference()]
    return seen


# --- inference tensors ----------------------------------------------------------------------------
def kind(t: Any) -> Any:
    """What can be told of a tensor."""
    return [
        t.is_inference(), t.requires_grad, t.is_leaf, t._is_view(),
        attempt(lambda: t._version), None if t.grad_fn is None else t.grad_fn.name(),
    ]  # fmt: skip


def inferred(lib: Any) -> Any:
    with lib.inference_mode():
        return lib.ones(2, 3)


def normal(lib: Any, asks: bool = True) -> Any:
    return lib.ones(2, 3, requires_grad=asks)


@cases
def made_inside(lib: Any) -> Any:
    x = normal(lib)
    with lib.inference_mode():
        found = [
            x * 2, x[0], x.view(6), x.detach(), x.clone(), x.data, lib.ones(2), lib.tensor([1.0]),
            lib.ones(2, requires_grad=True), x.t(), x.reshape(6), x.contiguous(), x.float(),
            lib.zeros_like(x), x.new_ones(2), *x.unbind(), lib.arange(3), x.sum(), x.to(lib.int64),
        ]  # fmt: skip
        inside = [kind(t) for t in found]
    return [inside, [kind(t) for t in found], kind(x)]


@cases
def made_outside_of_one(lib: Any) -> Any:
    t = inferred(lib)
    found = [
        t * 2, t[0], t.view(6), t.detach(), t.clone(), t.data, t.t(), t.reshape(6), t.contiguous(),
        t.float(), t.double(), lib.zeros_like(t), t.new_ones(2), *t.unbind(), t.sum(),
        lib.cat([t, t]), t.expand(4, 2, 3), lib.ones(2, 3) + t, copy.deepcopy(t),
        pickle.loads(pickle.dumps(t)),
    ]  # fmt: skip
    return [kind(x)[:4] for x in found]


@cases
def used_with_gradients(lib: Any) -> Any:
    x, t = normal(lib), inferred(lib)
    uses: list[Callable[[], Any]] = [
        lambda: x + t, lambda: x * 2 + t, lambda: x * t, lambda: t * x, lambda: x.matmul(t.t()),
        lambda: lib.cat([x, t]), lambda: lib.where(x > 0, x, t), lambda: x.sub(t),
        lambda: x.expand_as(t), lambda: lib.stack([x, t]), lambda: x.masked_fill(t > 0, 0.0),
        lambda: x[t.long()[0, 0]], lambda: x.pow(t), lambda: x * t.sum(), lambda: x * t.clone(),
    ]  # fmt: skip
    return [attempt(lambda use=use: kind(use())) for use in uses]


WRITES: list[Callable[[Any, Any, Any], Any]] = [
    lambda lib, t, x: t.add_(1), lambda lib, t, x: t[0].add_(1), lambda lib, t, x: t.zero_(),
    lambda lib, t, x: t.view(6).mul_(2), lambda lib, t, x: t.copy_(x), lambda lib, t, x: t.fill_(2),
    lambda lib, t, x: t.__setitem__(0, 1.0),
    lambda lib, t, x: t.t_(), lambda lib, t, x: t.unsqueeze_(0), lambda lib, t, x: t.normal_(),
    lambda lib, t, x: t.clone().add_(1),
    lambda lib, t, x: t.requires_grad_(), lambda lib, t, x: t.requires_grad_(False),
    lambda lib, t, x: t.detach_(), lambda lib, t, x: x.add_(t), lambda lib, t, x: x.copy_(t),
    lambda lib, t, x: x.set_(t), lambda lib, t, x: t.index_fill_(0, lib.tensor([0]), 1.0),
    lambda lib, t, x: t.masked_fill_(x > 0, 2.0),
]  # fmt: skip


@cases
def written_outside(lib: Any) -> Any:
    seen: list[Any] = []
    for write in WRITES:
        for mode in (lib.enable_grad, lib.no_grad):
            t, x = inferred(lib), normal(lib, False)
            with mode():
                y = attempt(lambda write=write, t=t, x=x: write(lib, t, x))
            seen.append(y if isinstance(y, (str, type(None))) else kind(y)[:4])
    return seen


@cases
def written_inside(lib: Any) -> Any:
    seen = []
    with lib.inference_mode():
        t = lib.ones(2, 3)
        t.add_(1)
        t[0].mul_(3)
        t.view(6)[1] = 7.0
        seen += [kind(t), t.tolist()]
    x = normal(lib, False)
    y = normal(lib)
    z = y * 2
    with lib.inference_mode():
        x.add_(1)
        y.add_(1)
        z.mul_(3)
        seen += [kind(x), kind(y), kind(z), attempt(lambda: kind(x.add_(inferred(lib))))]
        seen += [attempt(lambda: kind(x[0].add_(1))), attempt(lambda: kind(x.detach().add_(1)))]
    return [*seen, kind(x), kind(y), kind(z), attempt(lambda: z.sum().backward())]


@cases
def written_inside_breaks_a_graph(lib: Any) -> Any:
    x = normal(lib)
    y = x * 1
    z = y * y
    with lib.inference_mode():
        y.add_(1)
    return attempt(lambda: z.sum().backward())


@cases
def views_of_normal_tensors(lib: Any) -> Any:
    seen = []
    for asks in (False, True):
        x = normal(lib, asks)
        with lib.inference_mode():
            v, w = x[0], x.view(6)
        base = x * 2
        with lib.inference_mode():
            part = base[0]
        seen += [kind(v), kind(part)]
        for act in (
            lambda v=v: v.add_(1),
            lambda v=v, base=base: v.add_(base[0]),
            lambda w=w: w * 2,
            lambda part=part: part.add_(1),
            lambda part=part: part * 2,
            lambda part=part: part.view(3, 1).add_(1),
        ):
            seen.append(attempt(lambda act=act: kind(act())))
        with lib.no_grad():
            seen.append(attempt(lambda v=v: kind(v.add_(1))))
    return seen


@cases
def views_of_inference_tensors(lib: Any) -> Any:
    v = inferred(lib)[0]
    seen = [kind(v), attempt(lambda: v.add_(1))]
    with lib.inference_mode():
        seen += [kind(v[0]), kind(v.add_(1)), kind(v.view(3, 1))]
    return seen


@cases
def attributes(lib: Any) -> Any:
    t = inferred(lib)
    seen: list[Any] = [attempt(lambda: t._version), t.grad, t.is_leaf, t.requires_grad]

    def requires() -> Any:
        t.requires_grad = True

    def gradient() -> Any:
        x = normal(lib)
        x.grad = inferred(lib)
        return kind(x.grad)

    seen += [attempt(requires), attempt(gradient)]
    with lib.inference_mode():
        seen += [attempt(requires), kind(t), attempt(lambda: kind((t * 2).sum()))]
        seen.append(attempt(lambda: (t * 2).sum().backward()))
        x = lib.ones(2, requires_grad=True)
        seen += [kind(x), attempt(lambda: x.add_(1).tolist())]
    return seen


@cases
def a_parameter_made_inside(lib: Any) -> Any:
    with lib.inference_mode():
        layer = lib.nn.Linear(2, 2)
    y = attempt(lambda: kind(layer(lib.ones(1, 2))))
    return [kind(layer.weight), y, attempt(lambda: layer.weight.requires_grad_().is_inference())]


@cases
def enabled_inside(lib: Any) -> Any:
    x = normal(lib)
    with lib.inference_mode(), lib.enable_grad():
        y = x * 2
        v = x[0]
        seen = [kind(y), kind(v), kind(lib.ones(2)), attempt(lambda: y.sum().backward())]
    with lib.inference_mode(), lib.inference_mode(False):
        y = x * 2
        seen += [kind(y), kind(lib.ones(2))]
        y.sum().backward()
    return [*seen, x.grad.tolist()]


@cases
def saved_by_functions(lib: Any) -> Any:
    class Keep(lib.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, t: Any) -> Any:
            ctx.save_for_backward(x, t)
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.saved_tensors[1], None

    x = normal(lib)
    return [
        attempt(lambda: kind(Keep.apply(x, inferred(lib)))),
        attempt(lambda: kind(Keep.apply(inferred(lib), inferred(lib)))),
    ]


@cases
def shown(lib: Any) -> Any:
    t = inferred(lib)
    return [str(t), str(t[0] * 2), t.is_inference(), t.numpy().tolist()]


# --- random programs ------------------------------------------------------------------------------
def program(rng: random.Random, depth: int = 3) -> list[Any]:
    """Statements, as nested lists."""
    made: list[Any] = []
    for _ in range(rng.randint(1, 4)):
        what = rng.choice(["look", "look", "set", "with", "with", "call", "try", "steps", "thread"])
        if depth == 0 and what not in ("look", "set"):
            what = "look"
        if what == "look":
            made.append(["look"])
        elif what == "set":
            made.append(["set", rng.random() < 0.5])
        elif what == "try":
            made.append(["try", [*program(rng, depth - 1), ["raise"]], program(rng, depth - 1)])
        elif what == "thread":
            made.append(["thread", program(rng, depth - 1)])
        else:
            names = ["no_grad", "enable_grad", "inference", "normal", "on", "off"]
            made.append([what, rng.choice(names), program(rng, depth - 1)])
    return made


def mode_of(lib: Any, name: str) -> Any:
    makers: dict[str, Callable[[], Any]] = {
        "no_grad": lib.no_grad, "enable_grad": lib.enable_grad, "inference": lib.inference_mode,
        "normal": lambda: lib.inference_mode(False), "on": lambda: lib.set_grad_enabled(True),
        "off": lambda: lib.set_grad_enabled(False),
    }  # fmt: skip
    return makers[name]()


def run(lib: Any, statements: list[Any], seen: list[Any]) -> None:
    """Run a program; `seen` gets the modes wherever it looks, and after every statement."""
    for statement in statements:
        what = statement[0]
        if what == "set":
            lib.set_grad_enabled(statement[1])
        elif what == "with":
            with mode_of(lib, statement[1]):
                run(lib, statement[2], seen)
        elif what == "call":
            mode_of(lib, statement[1])(run)(lib, statement[2], seen)
        elif what == "try":
            try:
                run(lib, statement[1], seen)
            except KeyError:
                run(lib, statement[2], seen)
        elif what == "raise":
            raise KeyError
        elif what == "thread":
            in_thread(lambda todo=statement[1]: run(lib, todo, seen))
        elif what == "steps":
            for _ in mode_of(lib, statement[1])(stepwise)(lib, statement[2], seen):
                seen.append("".join("ny"[flag] for flag in modes(lib)))
        seen.append("".join("ny"[flag] for flag in modes(lib)))


def stepwise(lib: Any, statements: list[Any], seen: list[Any]) -> Iterator[None]:
    for statement in statements:
        run(lib, [statement], seen)
        yield


def observed(lib: Any, seed: int) -> list[str]:
    """What a random program sees, run in a thread of its own so that it leaves nothing behind."""
    seen: list[str] = []
    in_thread(lambda: run(lib, program(random.Random(seed)), seen))
    return seen


def results(lib: Any) -> Any:
    return {
        "cases": cases.results(lib),
        "programs": [observed(lib, seed) for seed in SEEDS],
    }
