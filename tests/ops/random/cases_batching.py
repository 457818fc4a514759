"""Random functions inside `vmap`.

`CALLS` are random functions, each run inside one `vmap` of each kind of randomness and on tensors
that are batched or shared; `cases` are situations beside them; `program` makes random nests of
`vmap` and `grad` with calls inside. Of each, the values are stored and the number that is drawn
next, which tells how many were drawn; or the error.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

from tests.harness import Cases

FLAGS = ("error", "same", "different")
SEEDS = range(600)


class DrawingCases(Cases):
    """Of a case also counts what is drawn after it."""

    def run(self, lib: Any, name: str) -> Any:
        return seen(lib, self[name])


cases = DrawingCases()


# --- calls ----------------------------------------------------------------------------------------
def inplace(name: str, *args: Any) -> Callable[[Any, Any, Any], Any]:
    """`name` on a copy of the first tensor."""
    return lambda lib, x, y: getattr(x.clone(), name)(*args)


def dropped(name: str, **kwargs: Any) -> Callable[[Any, Any, Any], Any]:
    """A kind of dropout of the first tensor."""
    return lambda lib, x, y: getattr(lib.nn.functional, name)(x, 0.4, training=True, **kwargs)


# Functions of the library and two tensors of shape [2, 3] with values between 0.1 and 0.9.
CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "rand": lambda lib, x, y: lib.rand(2, 3),
    "rand_double": lambda lib, x, y: lib.rand(2, 3, dtype=lib.float64),
    "rand_generator": lambda lib, x, y: lib.rand(4, generator=lib.Generator().manual_seed(5)),
    "randn": lambda lib, x, y: lib.randn(2, 3),
    "randn_many": lambda lib, x, y: lib.randn(9),
    "randint": lambda lib, x, y: lib.randint(3, 9, (2, 3)),
    "randperm": lambda lib, x, y: lib.randperm(5),
    "normal_numbers": lambda lib, x, y: lib.normal(1.0, 2.0, (2, 3)),
    "normal_mean": lambda lib, x, y: lib.normal(x, 0.5),
    "normal_std": lambda lib, x, y: lib.normal(0.5, x),
    "normal_both": lambda lib, x, y: lib.normal(x, y),
    "normal_row": lambda lib, x, y: lib.normal(x[0], y),
    "normal_matrix": lambda lib, x, y: lib.normal(x, y[1]),
    "rand_like": lambda lib, x, y: lib.rand_like(x),
    "rand_like_turned": lambda lib, x, y: lib.rand_like(x.t()),
    "randn_like": lambda lib, x, y: lib.randn_like(x),
    "randn_like_double": lambda lib, x, y: lib.randn_like(x, dtype=lib.float64),
    "randint_like": lambda lib, x, y: lib.randint_like(x, 2, 8),
    "bernoulli": lambda lib, x, y: lib.bernoulli(x),
    "bernoulli_p": lambda lib, x, y: lib.bernoulli(x, 0.3),
    "multinomial": lambda lib, x, y: lib.multinomial(x[0], 2),
    "multinomial_rows": lambda lib, x, y: lib.multinomial(x, 2),
    "multinomial_one": lambda lib, x, y: lib.multinomial(x, 1),
    "multinomial_again": lambda lib, x, y: lib.multinomial(x, 4, True),
    "uniform_": inplace("uniform_", -1.0, 2.0),
    "normal_": inplace("normal_", 1.0, 2.0),
    "log_normal_": inplace("log_normal_"),
    "exponential_": inplace("exponential_", 2.0),
    "cauchy_": inplace("cauchy_"),
    "geometric_": inplace("geometric_", 0.3),
    "random_": inplace("random_"),
    "random_to": inplace("random_", 7),
    "random_from_to": inplace("random_", 3, 7),
    "bernoulli_": inplace("bernoulli_", 0.3),
    "bernoulli_by": lambda lib, x, y: x.clone().bernoulli_(y),
    "bernoulli_by_row": lambda lib, x, y: x.clone().bernoulli_(y[0]),
    "normal_slice": lambda lib, x, y: written(x.clone(), lambda z: z[:, 1:].normal_()),
    "uniform_column": lambda lib, x, y: written(x.clone(), lambda z: z[:, 0].uniform_()),
    "dropout": dropped("dropout"),
    "dropout_turned": lambda lib, x, y: lib.nn.functional.dropout(x.t()),
    "dropout_inplace": lambda lib, x, y: lib.dropout_(x.clone(), 0.4, True),
    "dropout1d": dropped("dropout1d"),
    "feature_dropout": lambda lib, x, y: lib.feature_dropout((x + y)[:, :, None], 0.5, True),
    "alpha_dropout": dropped("alpha_dropout"),
    "alpha_dropout_inplace": lambda lib, x, y: lib.alpha_dropout_(x.clone(), 0.4, True),
    "feature_alpha_dropout": dropped("feature_alpha_dropout"),
}  # fmt: skip


def written(x: Any, write: Callable[[Any], Any]) -> Any:
    write(x)
    return x


def numbers(lib: Any, *shape: int) -> Any:
    """Values between 0.1 and 0.9."""
    count = 1
    for n in shape:
        count *= n
    return lib.arange(float(count)).mul(0.37).add(0.1).remainder(0.8).add(0.1).reshape(shape)


def called(lib: Any, name: str, flag: str, first: bool, second: bool) -> Any:
    """A call inside `vmap`; the flags say which of its tensors are batched."""
    x, y = numbers(lib, 2, 3), numbers(lib, 2, 3).flip(0)
    xs, ys = numbers(lib, 4, 2, 3), numbers(lib, 4, 2, 3).flip(0)

    def body(a: Any, b: Any) -> Any:
        return CALLS[name](lib, a if first else x, b if second else y)

    return lib.vmap(body, randomness=flag)(xs, ys)


# --- situations -----------------------------------------------------------------------------------
def each_flag(fn: Callable[[str], Any]) -> list[Any]:
    return [attempt(lambda flag=flag: fn(flag)) for flag in FLAGS]  # type: ignore[misc]


@cases
def one_large_tensor(lib: Any) -> Any:
    lib.manual_seed(0)
    drawn = lib.vmap(lambda x: lib.randn(2), randomness="different")(lib.zeros(3, 2))
    lib.manual_seed(0)
    return bool((drawn == lib.randn(3, 2)).all())


@cases
def several_calls(lib: Any) -> Any:
    def fn(x: Any) -> Any:
        return lib.rand(2), lib.randn_like(x), lib.nn.functional.dropout(x)

    return each_flag(lambda flag: lib.vmap(fn, randomness=flag)(lib.ones(3, 2)))


@cases
def batch_of_any_dimension(lib: Any) -> Any:
    x = numbers(lib, 6, 4, 3)
    found = []
    for name in ("rand_like", "bernoulli", "dropout", "normal_mean", "normal_", "randn_like"):
        for d in (0, 1, 2):
            for out in (0, -1):

                def fn(flag: str, name: str = name, d: int = d, out: int = out) -> Any:
                    call = CALLS[name]
                    return lib.vmap(lambda x: call(lib, x, x), d, out, randomness=flag)(x)

                try:
                    found.append(lib.manual_seed(1) and plain(fn("different")))
                except RuntimeError as error:
                    found.append(str(error))
    return found


@cases
def inputs_are_written(lib: Any) -> Any:
    def fn(flag: str) -> Any:
        x = lib.zeros(3, 2)
        lib.vmap(lambda x: x.normal_(), randomness=flag)(x)
        return x

    return each_flag(fn)


@cases
def captured_are_written(lib: Any) -> Any:
    def fn(flag: str) -> Any:
        c = lib.zeros(2)
        return lib.vmap(lambda x: x * c.uniform_(), randomness=flag)(lib.ones(3, 2)), c

    return each_flag(fn)


@cases
def leaves_are_not_written(lib: Any) -> Any:
    x = lib.zeros(3, 2, requires_grad=True)
    return each_flag(lambda flag: lib.vmap(lambda x: x.normal_(), randomness=flag)(x))


@cases
def captured_by_grad(lib: Any) -> Any:
    def fn(flag: str) -> Any:
        c = lib.zeros(2)
        grad = lib.func.grad(lambda x: (x * c.uniform_()).sum())
        return lib.vmap(grad, randomness=flag)(lib.ones(3, 2))

    return [found[: found.index(" (vjp")] for found in each_flag(fn)]


@cases
def expanded_are_not_written(lib: Any) -> Any:
    x = lib.zeros(2).expand(3, 2)
    return each_flag(lambda flag: lib.vmap(lambda x: x.normal_(), randomness=flag)(x))


@cases
def out_is_refused(lib: Any) -> Any:
    found = []
    for call in (
        lambda x: lib.rand(2, out=lib.empty(2)),
        lambda x: lib.randperm(2, out=lib.empty(2, dtype=lib.int64)),
        lambda x: lib.bernoulli(x, out=lib.empty(2)),
        lambda x: lib.normal(0.0, 1.0, (2,), out=lib.empty(2)),
        lambda x: lib.multinomial(x, 1, out=lib.empty(1, dtype=lib.int64)),
    ):
        found.append(each_flag(lambda flag: lib.vmap(call, randomness=flag)(lib.ones(3, 2))))  # noqa: B023
    return found


@cases
def nothing_to_draw(lib: Any) -> Any:
    drop = lib.nn.functional.dropout
    calls = [
        lambda x: drop(x, 0.0),
        lambda x: drop(x, 1.0),
        lambda x: drop(x, 0.5, training=False),
        lambda x: lib.nn.functional.alpha_dropout(x, 0.5),
        lambda x: lib.rand(0),
        lambda x: lib.nn.Dropout().eval()(x),
    ]
    return [
        each_flag(lambda flag: lib.vmap(call, randomness=flag)(lib.ones(3, 2)))  # noqa: B023
        for call in calls
    ]


@cases
def empty_batches(lib: Any) -> Any:
    def fn(flag: str) -> Any:
        return lib.vmap(lambda x: lib.rand(2), randomness=flag)(lib.ones(0, 2))

    return each_flag(fn)


@cases
def batches_of_one(lib: Any) -> Any:
    def fn(flag: str) -> Any:
        names = (
            "randn",
            "normal_both",
            "randn_like",
            "bernoulli",
            "dropout",
            "normal_",
            "randperm",
        )
        x = numbers(lib, 1, 2, 3)
        return [
            lib.vmap(lambda x: CALLS[name](lib, x, x), randomness=flag)(x)  # noqa: B023
            for name in names
        ]

    return [attempt(lambda: fn("different")), attempt(lambda: fn("same"))]


@cases
def wrong_arguments(lib: Any) -> Any:
    calls = [
        lambda x: lib.bernoulli(x + 3),
        lambda x: x.clone().bernoulli_(3.0),
        lambda x: lib.normal(x, -lib.ones(2)),
        lambda x: x.clone().normal_(0, -1),
        lambda x: lib.normal(lib.ones(2), lib.ones(3)),
        lambda x: lib.randint(3, 1, (2,)),
        lambda x: lib.multinomial(x, 5),
        lambda x: lib.multinomial(lib.ones(2, 2, 2), 1),
        lambda x: lib.rand_like(x.long()),
        lambda x: lib.nn.functional.dropout(x, 2.0),
        lambda x: lib.dropout(x, 2.0, True),
        lambda x: lib.feature_dropout(x, 0.5, True),
    ]
    return [
        each_flag(lambda flag: lib.vmap(call, randomness=flag)(lib.ones(3, 2)))  # noqa: B023
        for call in calls
    ]


@cases
def leaves_made_inside(lib: Any) -> Any:
    seen: list[Any] = []

    def fn(x: Any) -> Any:
        made = [lib.rand(2, requires_grad=True), lib.rand_like(x, requires_grad=True)]
        seen.extend(t.requires_grad for t in made)
        return made

    for flag in FLAGS[1:]:
        seen.extend(t.requires_grad for t in lib.vmap(fn, randomness=flag)(lib.ones(3, 2)))
    return seen


@cases
def derivatives_of_draws(lib: Any) -> Any:
    found: list[Any] = []
    calls = [
        lambda x: lib.bernoulli(x),
        lambda x: lib.normal(x, x),
        lambda x: (x * 1).normal_(),
        lambda x: (x * 1).bernoulli_(x),
        lambda x: x * lib.rand_like(x),
        lambda x: x * lib.randn(2),
        lambda x: lib.nn.functional.dropout(x),
        lambda x: lib.nn.functional.alpha_dropout(x, training=True),
    ]
    func = lib.func
    p = numbers(lib, 3, 2)
    for call in calls:
        for flag in FLAGS:

            def mapped(x: Any, call: Any = call, flag: str = flag) -> Any:
                return lib.vmap(call, randomness=flag)(x)

            def single(x: Any, call: Any = call) -> Any:
                return call(x).sum()

            def backward(mapped: Any = mapped) -> Any:
                x = numbers(lib, 3, 2).requires_grad_()
                y = mapped(x)
                y.sum().backward()
                return [type(y.grad_fn).__name__, x.grad]

            def forward(x: Any, call: Any = call) -> Any:
                return func.jvp(call, (x,), (lib.ones_like(x),))

            found.append(attempt(lambda: func.grad(lambda x: mapped(x).sum())(p)))
            found.append(attempt(lambda: lib.vmap(func.grad(single), randomness=flag)(p)))  # noqa: B023
            found.append(attempt(lambda: lib.vmap(forward, randomness=flag)(p)))  # noqa: B023
            found.append(attempt(backward))
    return found


@cases
def captured_probabilities(lib: Any) -> Any:
    def fn(flag: str) -> Any:
        c = lib.full((2,), 0.5, requires_grad=True)
        calls = (
            lambda x: lib.bernoulli(c),
            lambda x: x.clone().bernoulli_(c),
            lambda x: lib.normal(c, 1.0),
            lambda x: lib.nn.functional.dropout(c),
        )
        found = []
        for call in calls:
            y = lib.vmap(call, randomness=flag)(lib.ones(3, 2))
            found.append([y, type(y.grad_fn).__name__, lib.autograd.grad(y.sum(), c)[0]])
        return found

    return each_flag(fn)


@cases
def weights_of_an_inner_grad(lib: Any) -> Any:
    w = lib.full((2,), 0.5)
    calls = (
        lambda w: lib.bernoulli(w).sum(),
        lambda w: (w * lib.normal(w, 1.0)).sum(),
        lambda w: (w * (w * 1).normal_()).sum(),
        lambda w: lib.nn.functional.dropout(w).sum(),
    )
    found = []
    for call in calls:
        for around in (lib.enable_grad, lib.no_grad):
            with around():

                def fn(flag: str, call: Any = call) -> Any:
                    return lib.vmap(lambda x: lib.func.grad(call)(w), randomness=flag)(
                        lib.ones(3, 2)
                    )

                found.append(each_flag(fn))
    return found


@cases
def jacobians(lib: Any) -> Any:
    x = lib.ones(3)
    drop = lib.nn.functional.dropout
    found = [
        each_flag(lambda flag: lib.func.jacfwd(lambda x: x * lib.rand(3), randomness=flag)(x)),
        each_flag(lambda flag: lib.func.jacfwd(drop, randomness=flag)(x)),
        attempt(lambda: lib.func.jacrev(lambda x: x * lib.rand(3))(x)),
        attempt(lambda: lib.func.hessian(lambda x: (x * x * lib.rand(3)).sum())(x)),
    ]
    return found


@cases
def dropout_in_grad_alone(lib: Any) -> Any:
    drop = lib.nn.functional.dropout
    return lib.func.grad(lambda x: drop(x.t()).sum())(lib.ones(6, 2))


@cases
def generators_go_on(lib: Any) -> Any:
    def fn(flag: str) -> Any:
        g = lib.Generator().manual_seed(3)
        first = lib.vmap(lambda x: lib.rand(2, generator=g), randomness=flag)(lib.ones(3, 2))
        return first, lib.rand(1, generator=g), x_drawn(lib, g, flag)

    return each_flag(fn)


def x_drawn(lib: Any, g: Any, flag: str) -> Any:
    return lib.vmap(lambda x: x.clone().normal_(generator=g), randomness=flag)(lib.ones(3, 2))


@cases
def seeds_inside(lib: Any) -> Any:
    def fn(x: Any) -> Any:
        lib.manual_seed(3)
        return lib.rand(2)

    return each_flag(lambda flag: lib.vmap(fn, randomness=flag)(lib.ones(3, 2)))


@cases
def in_chunks(lib: Any) -> Any:
    def fn(flag: str) -> Any:
        return lib.vmap(lambda x: lib.rand(2), randomness=flag, chunk_size=2)(lib.ones(5, 2))

    return fn("different")


@cases
def modules(lib: Any) -> Any:
    found = []
    for module in (
        lib.nn.Dropout(0.3), lib.nn.Dropout1d(), lib.nn.AlphaDropout(0.3),
        lib.nn.FeatureAlphaDropout(), lib.nn.Dropout(0.3, inplace=True),
    ):  # fmt: skip
        x = numbers(lib, 3, 4, 2)
        found.append(each_flag(lambda flag: lib.vmap(module, randomness=flag)(x.clone())))  # noqa: B023
        found.append(repr(module))
    return found


@cases
def outside_vmap(lib: Any) -> Any:
    """Expanded tensors draw as dense ones, and alpha dropout is there."""
    e = numbers(lib, 3).expand(4, 3)
    x = numbers(lib, 4, 3)
    F = lib.nn.functional
    calls = (
        lambda: lib.rand_like(e),
        lambda: lib.randn_like(e.t()),
        lambda: lib.randn_like(e[:, None].expand(4, 2, 3)),
        lambda: lib.bernoulli(e, 0.5),
        lambda: lib.multinomial(e, 2),
        lambda: F.dropout(e),
        lambda: F.dropout(e.t(), 0.3),
        lambda: F.alpha_dropout(x, 0.3, True),
        lambda: F.alpha_dropout(x, 1.0, True),
        lambda: F.feature_alpha_dropout(x, 0.3, True),
        lambda: lib.feature_alpha_dropout(x[:, :, None].expand(4, 3, 2), 0.3, True),
        lambda: lib.feature_dropout(x[:, :, None].expand(4, 3, 2), 0.3, True),
        lambda: lib.feature_dropout_(x.clone(), 0.3, True),
        lambda: lib.alpha_dropout_(x.double(), 0.3, True),
        lambda: lib.feature_alpha_dropout_(x.clone(), 0.3, True),
        lambda: lib.alpha_dropout(x, 0.3, False),
        lambda: lib.alpha_dropout(x, 3.0, False),
        lambda: F.alpha_dropout(x, 3.0),
        lambda: lib.feature_dropout(x[0], 0.3, False),
        lambda: lib.feature_dropout(x[0], 0.3, True),
    )
    return [attempt(call) for call in calls]


# In nests PyTorch may crash on `bernoulli_` with a number, and ask the others for a derivative that
# it does not have (here it is zero).
IN_NO_NEST = {"bernoulli_", "bernoulli_p", "randint_like"}


# --- programs -------------------------------------------------------------------------------------
def program(lib: Any, seed: int) -> Any:
    """A random nest of transforms around a few calls."""
    r = random.Random(seed)
    depth = r.choice((1, 2, 2, 3))
    flags = r.choices(FLAGS, (1, 5, 9), k=depth)
    sizes = [r.randint(2, 4) for _ in flags]
    dims = [r.choice((0, 0, 1, 2)) for _ in flags]
    inner = [r.random() < 0.3 for _ in flags]  # a `grad` stands inside the `vmap`
    names = r.choices(sorted(CALLS.keys() - IN_NO_NEST), k=r.randint(1, 2))
    places = [(r.randint(0, depth), r.randint(0, depth)) for _ in names]

    def nest(level: int, known: list[Any]) -> Any:
        if level == depth:
            return [
                CALLS[name](lib, known[i], known[j])
                for name, (i, j) in zip(names, places, strict=True)
            ]

        def member(x: Any) -> Any:
            if not inner[level]:
                return nest(level + 1, [*known, x])
            return lib.func.grad(lambda x: total(nest(level + 1, [*known, x]), x))(x)

        x = numbers(lib, sizes[level], 2, 3).movedim(0, dims[level])
        return lib.vmap(member, dims[level], randomness=flags[level])(x)

    return attempt(lambda: nest(0, [numbers(lib, 2, 3)]))


def total(found: Any, x: Any) -> Any:
    """One number from all results, which depends on `x`."""
    parts = found if isinstance(found, (list, tuple)) else [found]
    whole = x.sum()
    for part in parts:
        whole = whole + part.to(x.dtype).sum() * x.sum()
    return whole


# --- what is seen ---------------------------------------------------------------------------------
def attempt(fn: Callable[[], Any]) -> Any:
    """What a function gives, or how it fails."""
    try:
        return plain(fn())
    except (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError) as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


def plain(found: Any) -> Any:
    """Results as lists and strings."""
    if isinstance(found, (list, tuple)):
        return [plain(part) for part in found]
    if hasattr(found, "tolist"):
        return [str(found.dtype), list(found.shape), found.tolist()]
    return found


def seen(lib: Any, fn: Callable[[Any], Any]) -> Any:
    """What a function gives, and what is drawn after it."""
    lib.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = attempt(lambda: fn(lib))
    return [found, lib.rand(1).item()]


def seen_call(lib: Any, name: str) -> Any:
    """A call with each flag and each choice of batched tensors."""
    return [
        seen(lib, lambda lib: called(lib, name, flag, *which))  # noqa: B023
        for flag in FLAGS
        for which in ((True, True), (True, False), (False, True), (False, False))
    ]


def results(lib: Any) -> Any:
    return {
        "calls": {name: seen_call(lib, name) for name in CALLS},
        "cases": cases.results(lib),
        "programs": [seen(lib, lambda lib: program(lib, seed)) for seed in SEEDS],  # noqa: B023
    }
