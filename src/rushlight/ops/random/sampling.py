"""Random tensors. The numbers come from `rushlight.random`, PyTorch's for the same seed.

What is drawn does not depend on what was there: in the graph it is a node whose gradient is zero.
Inside `vmap` a function hands itself to `ops.random.batching`, which calls it again, outside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from rushlight import dtypes, random
from rushlight.arrays import vocabulary as v
from rushlight.arrays.device import CPU, current, device
from rushlight.arrays.host import device_of, from_host, is_array, make_array, move, to_host
from rushlight.core import plain_draws
from rushlight.core.graph import Op, TensorBase, wrap
from rushlight.core.record import finish, keep_record
from rushlight.core.transforms.stack import stack
from rushlight.core.views.inplace import check_writable, overlaps, write_raw
from rushlight.dtypes import type_name
from rushlight.errors import broadcast_mismatch
from rushlight.ops.checks import check_tensor, unmatched
from rushlight.ops.creation import tensor as creation
from rushlight.ops.creation.like import alike
from rushlight.ops.creation.tensor import dtype_of, place_of, write_created
from rushlight.ops.numbers import Operand, python_number
from rushlight.ops.random import batching
from rushlight.ops.random.batching import enclosing_vmap
from rushlight.ops.registry import describe, function, guarded, said, variant


def _to_tensor(raw: Any) -> Any:
    return finish(wrap(raw))


def _to_array(state: Any) -> Any:
    return to_host(state._array) if isinstance(state, TensorBase) else state


random.generator.present(_to_tensor, _to_array, device)


# --- nodes ----------------------------------------------------------------------------------------
class Drawn(Op):
    """Values that were drawn: nothing flows back but zeros."""

    def vjp(self, node: Any, g: Any) -> Any:
        shapes, kinds = node._input_shapes, node._input_dtypes
        return [
            v.full(g, shape, 0, kinds[i]) if node._needs_grad(i) else None
            for i, shape in enumerate(shapes)
        ]

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return v.full(y, y.shape, 0, y.dtype)


def drawn_op(name: str, node: str, *inputs: str) -> Drawn:
    cls = type(name, (Drawn,), {"name": name, "node": node, "inputs": inputs or ("self",)})
    made: Drawn = cls()
    return made


_UNIFORM: Final = drawn_op("uniform", "UniformBackward0")
_NORMAL: Final = drawn_op("normal", "NormalBackward0")
_LOG_NORMAL: Final = drawn_op("log_normal", "LogNormalBackward0")
_EXPONENTIAL: Final = drawn_op("exponential", "ExponentialBackward0")
_CAUCHY: Final = drawn_op("cauchy", "CauchyBackward0")
_GEOMETRIC: Final = drawn_op("geometric", "GeometricBackward0")
_RANDOM: Final = (
    drawn_op("random", "RandomBackward2"),  # random_()
    drawn_op("random", "RandomBackward1"),  # random_(to)
    drawn_op("random", "RandomBackward0"),  # random_(from, to)
)
_BERNOULLI_BY: Final = drawn_op("bernoulli", "BernoulliBackward1", "self", "p")
_BERNOULLI_IN: Final = drawn_op("bernoulli", "BernoulliBackward2")
_BERNOULLI: Final = drawn_op("bernoulli", "BernoulliBackward0")
_NORMAL_OF: Final = {
    (True, False): drawn_op("normal", "NormalBackward1", "mean"),
    (False, True): drawn_op("normal", "NormalBackward2", "std"),
    (True, True): drawn_op("normal", "NormalBackward3", "mean", "std"),
}


def generator_of(name: str, generator: Any) -> Any:
    if generator is None or isinstance(generator, random.Generator):
        return generator
    raise TypeError(
        f"{name}(): argument 'generator' must be torch.Generator, not {type_name(generator)}"
    )


def _fill(op: Drawn, target: Any, draw: Callable[..., None], *others: Any) -> Any:
    """Draw into a tensor, from the values of others: by the rules of every write in place."""
    if stack.batches != 0 and (level := enclosing_vmap()) is not None:
        return batching.draw_into(level, op, target, others, lambda t, *xs: _fill(op, t, draw, *xs))
    check_writable(target, True)
    raw = target._array
    place = device_of(raw)
    hosts = [to_host(x._array) for x in others] if others and place.type != "meta" else others
    if place is CPU and is_array(raw):
        draw(raw, *hosts)
    elif place is CPU:  # what is drawn is what is read, whatever is put off
        drawn = v.copy(raw)
        draw(drawn, *hosts)
        v.overwrite(raw, drawn)
    elif place.type != "meta":  # there, nothing is drawn
        host = make_array(raw.shape, raw.dtype, CPU)
        draw(host, *hosts)
        v.overwrite(raw, from_host(host, raw))
    xs = (target, *others)
    raws = tuple(x._array for x in xs)
    return write_raw(op, target, xs, raws, raw)


# --- in place -------------------------------------------------------------------------------------
@function(free=False, quick=plain_draws.uniform_, told=random)
def uniform_(
    input: Any, from_: float = 0, to: float = 1, *, generator: Any = None, **named: Any
) -> Any:
    """Fill with numbers drawn evenly from [from, to).

    >>> generator = torch.manual_seed(0)
    >>> torch.empty(2).uniform_()
    tensor([0.4963, 0.7682])
    """
    low = _named_from("uniform_", from_, named)
    gen = generator_of("uniform_", generator)
    return _fill(_UNIFORM, input, lambda a: random.uniform_(a, float(low), float(to), gen))


def _named_from(name: str, given: Any, named: dict[str, Any]) -> Any:
    """`from=`, which is a word of Python's and so comes through `**named`."""
    value = named.pop("from", given)
    for key in named:
        raise TypeError(f"{name}() got an unexpected keyword argument '{key}'")
    return value


@function(free=False, quick=plain_draws.normal_, told=random)
def normal_(input: Any, mean: float = 0, std: float = 1, *, generator: Any = None) -> Any:
    """Fill with numbers drawn from a normal distribution.

    >>> generator = torch.manual_seed(0)
    >>> torch.empty(2).normal_()
    tensor([ 1.5410, -0.2934])
    """
    gen = generator_of("normal_", generator)
    return _fill(_NORMAL, input, lambda a: random.normal_(a, mean, std, gen))


@function(free=False)
def log_normal_(input: Any, mean: float = 1, std: float = 2, *, generator: Any = None) -> Any:
    """Fill with exp of normal numbers."""
    gen = generator_of("log_normal_", generator)
    return _fill(_LOG_NORMAL, input, lambda a: random.log_normal_(a, mean, std, gen))


@function(free=False, quick=plain_draws.exponential_, told=random)
def exponential_(input: Any, lambd: float = 1, *, generator: Any = None) -> Any:
    """Fill from an exponential distribution.

    Args:
        lambd: the rate.
    """
    gen = generator_of("exponential_", generator)
    return _fill(_EXPONENTIAL, input, lambda a: random.exponential_(a, lambd, gen))


@function(free=False)
def cauchy_(input: Any, median: float = 0, sigma: float = 1, *, generator: Any = None) -> Any:
    """Fill from a Cauchy distribution."""
    gen = generator_of("cauchy_", generator)
    return _fill(_CAUCHY, input, lambda a: random.cauchy_(a, median, sigma, gen))


@function(free=False)
def geometric_(input: Any, p: float, *, generator: Any = None) -> Any:
    """Fill from a geometric distribution."""
    gen = generator_of("geometric_", generator)
    return _fill(_GEOMETRIC, input, lambda a: random.geometric_(a, p, gen))


_RANDOM_FORMS: Final = """
 * (*, torch.Generator generator = None)
 * (int from, int to, *, torch.Generator generator = None)
 * (int to, *, torch.Generator generator = None)
"""


@function(free=False)
def random_(input: Any, *bounds: Any, generator: Any = None, **named: Any) -> Any:
    """Fill with integers from [from, to); without bounds, with any the dtype holds exactly.

    Args:
        bounds: `to`, left out itself; or `from` and `to`.

    >>> generator = torch.manual_seed(0)
    >>> torch.empty(3, dtype=torch.int64).random_(10)
    tensor([4, 9, 3])
    """
    gen = generator_of("random_", generator)
    given = dict(named)
    names = ("to",) if len(bounds) == 1 and "to" not in named else ("from", "to")
    given.update(zip(names, bounds, strict=False))
    alone = len(bounds) == 1 and bounds[0] is None
    if alone or any(x is not None and creation.whole_number(x) is None for x in given.values()):
        raise unmatched("random_", _RANDOM_FORMS, bounds, named)
    low, high = (
        x if x is None else creation.whole_number(x) for x in (given.get("from"), given.get("to"))
    )
    op = _RANDOM[0 if not given else 1 if "from" not in given else 2]
    return _fill(op, input, lambda a: random.random_(a, low, high, gen))


@function(free=False, quick=plain_draws.bernoulli_, told=random)
def bernoulli_(input: Any, p: Operand = 0.5, *, generator: Any = None) -> Any:
    """Fill with ones, each with probability `p` (a number, or a tensor of them), and zeros.

    >>> torch.zeros(3).bernoulli_(1.0)
    tensor([1., 1., 1.])
    """
    gen = generator_of("bernoulli_", generator)
    if isinstance(p, TensorBase):
        return _fill(_BERNOULLI_BY, input, lambda a, by: random.bernoulli_(a, by, gen), p)
    return _fill(_BERNOULLI_IN, input, lambda a: random.bernoulli_(a, float(p), gen))


# --- new tensors ----------------------------------------------------------------------------------
def _sample(
    name: str, shape: tuple[int, ...], draw: Callable[[Any], None], out: Any, dtype: Any,
    layout: Any, device: Any, pin_memory: bool, requires_grad: bool,
    default: dtypes.dtype | None = None,
) -> Any:  # fmt: skip
    if stack.batches != 0 and (level := enclosing_vmap()) is not None:
        batching.refuse_out_in_vmap(out)
        return batching.draw_new(
            level, shape, requires_grad,
            lambda shape, requires_grad: _sample(
                name, shape, draw, None, dtype, layout, device, pin_memory, requires_grad, default
            ),
        )  # fmt: skip
    creation.check_plain(name, layout, pin_memory, requires_grad)
    want = kind = dtype_of(dtype, name)
    if kind is None and isinstance(out, TensorBase):
        kind = dtypes.of(out._array.dtype)
    place = place_of(device, name)
    if place.type == "meta":
        meta = make_array(shape, (kind or default or dtypes.default).numpy, place)
        return write_created(name, out, meta, want, requires_grad)
    array = make_array(shape, (kind or default or dtypes.default).numpy, CPU)
    draw(array)
    return write_created(
        name, out, array if place is CPU else move(array, place), want, requires_grad
    )


def _uniform(array: Any, generator: Any) -> None:
    random.uniform_(array, 0.0, 1.0, generator)


def _normal(array: Any, generator: Any) -> None:
    random.normal_(array, 0.0, 1.0, generator)


def _export_sampled(
    name: str, draw: Callable[[Any, Any], None], make: Any, end: float, text: str, shown: str
) -> None:
    """Make `torch.name`; `make` is the method of a twister that gives the array of most calls, of
    numbers up to `end` or of that deviation."""

    def whole(
        *size: Any, generator: Any = None, out: Any = None, dtype: Any = None, layout: Any = None,
        device: Any = None, requires_grad: bool = False, pin_memory: bool = False, **named: Any,
    ) -> Any:  # fmt: skip
        gen = generator_of(name, generator)
        shape = creation.size_of(name, size, creation.size_named(name, named))
        return _sample(
            name, shape, lambda a: draw(a, gen), out, dtype, layout, device, pin_memory,
            requires_grad,
        )  # fmt: skip

    rest = guarded(variant(whole, name, ""), name)

    def sample(
        *size: Any, generator: Any = None, out: Any = None, dtype: Any = None, layout: Any = None,
        device: Any = None, requires_grad: bool = False, pin_memory: bool = False, **named: Any,
    ) -> Any:  # fmt: skip
        gen = random.default_generator if generator is None else generator
        kind = dtypes.default if dtype is None else dtype
        if (
            type(gen) is random.Generator and type(kind) is dtypes.dtype and not named
            and out is layout is device is None and requires_grad is pin_memory is False
            and stack.batches == 0 and current() is CPU
        ):  # fmt: skip
            array = make(gen.bits, size, kind.numpy.num, 0.0, end)
            if array is not None:
                return finish(wrap(array))
        return rest(
            *size,
            **said(
                named,
                generator=generator,
                out=out,
                dtype=dtype,
                layout=layout,
                device=device,
                requires_grad=requires_grad,
                pin_memory=pin_memory,
            ),
        )

    example = f"generator = torch.manual_seed(0)\n>>> torch.{name}(3)"
    export = function(method=False, bare=True, quick=plain_draws.sample, told=(random, make, end))
    export(variant(sample, name, describe(text, example, shown)))


_export_sampled(
    "rand", _uniform, random.generator.Twister.new_uniform, 1.0,
    "Numbers drawn evenly from [0, 1).",
    "tensor([0.4963, 0.7682, 0.0885])",
)  # fmt: skip
_export_sampled(
    "randn", _normal, random.generator.Twister.new_normals, 1.0,
    "Numbers drawn from a normal distribution of mean 0 and variance 1.",
    "tensor([ 1.5410, -0.2934, -2.1788])",
)  # fmt: skip


_RANDINT: Final = """
 * (int high, tuple of ints size, *, torch.Generator generator = None, Tensor out = None, \
torch.dtype dtype = None, torch.layout layout = None, torch.device device = None, \
bool pin_memory = False, bool requires_grad = False)
 * (int low, int high, tuple of ints size, *, torch.Generator generator = None, \
Tensor out = None, torch.dtype dtype = None, torch.layout layout = None, \
torch.device device = None, bool pin_memory = False, bool requires_grad = False)
"""


def _bound(name: str, argument: str, x: Any, position: int) -> int:
    found = creation.whole_number(x)
    if found is None:
        raise TypeError(
            f"{name}(): argument '{argument}' (position {position}) must be int, not {type_name(x)}"
        )
    return found


def _randint(
    *args: Any, generator: Any = None, out: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False, **named: Any,
) -> Any:  # fmt: skip
    gen = generator_of("randint", generator)
    given = dict(named)
    short = len(args) + len(named) == 2
    names = ("high", "size") if short else ("low", "high", "size")
    for key, value in zip(names, args, strict=False):
        if key in given:
            raise unmatched("randint", _RANDINT, args, named)
        given[key] = value
    if set(given) - {"low", "high", "size"} or "high" not in given or "size" not in given:
        raise unmatched("randint", _RANDINT, args, named)
    at = 0 if short else 1
    low = _bound("randint", "low", given.get("low", 0), 1)
    high = _bound("randint", "high", given["high"], at + 1)
    if not isinstance(given["size"], (tuple, list)):
        raise TypeError(
            f"randint(): argument 'size' (position {at + 2}) must be tuple of ints, "
            f"not {type_name(given['size'])}"
        )
    shape = creation.shape_of("randint", given["size"], at + 2)
    return _sample(
        "randint", shape, lambda a: random.random_(a, low, high, gen), out, dtype, layout, device,
        pin_memory, requires_grad, dtypes.int64,
    )  # fmt: skip


_any_randint: Final = guarded(variant(_randint, "randint", ""), "randint")
_new_integers: Final[Any] = random.generator.Twister.new_integers


@function(method=False, bare=True, quick=plain_draws.randint, told=random)
def randint(
    *args: Any, generator: Any = None, out: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False, **named: Any,
) -> Any:  # fmt: skip
    """Integers drawn evenly from [low, high).

    Args:
        args: `high` and `size`; or `low`, `high` and `size`.

    >>> generator = torch.manual_seed(0)
    >>> torch.randint(10, (3,))
    tensor([4, 9, 3])
    """
    gen = random.default_generator if generator is None else generator
    if (
        type(gen) is random.Generator and (dtype is None or dtype is dtypes.int64) and not named
        and out is layout is device is None and requires_grad is pin_memory is False
        and stack.batches == 0 and current() is CPU and 2 <= len(args) <= 3
    ):  # fmt: skip
        low, high = (0, args[0]) if len(args) == 2 else args[:2]
        if type(low) is int and type(high) is int and type(args[-1]) is tuple and low < high:
            array = _new_integers(gen.bits, args[-1:], low, high - low)
            if array is not None:
                return finish(wrap(array))
    options = said(
        named, generator=generator, out=out, dtype=dtype, layout=layout, device=device,
        requires_grad=requires_grad, pin_memory=pin_memory,
    )  # fmt: skip
    return _any_randint(*args, **options)


@function(method=False, quick=plain_draws.randperm, told=random)
def randperm(
    n: Any, *, generator: Any = None, out: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """The integers from 0 to n - 1 in random order.

    Args:
        n: how many numbers: 0 to n - 1.

    >>> generator = torch.manual_seed(0)
    >>> torch.randperm(4)
    tensor([0, 1, 3, 2])
    """
    gen = generator_of("randperm", generator)
    count = _bound("randperm", "n", n, 1)
    if stack.batches != 0 and (level := enclosing_vmap()) is not None:
        batching.refuse_out_in_vmap(out)
        return batching.draw_singly(
            level, requires_grad,
            lambda requires_grad: randperm(
                count, generator=gen, dtype=dtype, layout=layout, device=device,
                requires_grad=requires_grad, pin_memory=pin_memory,
            ),
        )  # fmt: skip
    creation.check_plain("randperm", layout, pin_memory, requires_grad)
    want = kind = dtype_of(dtype, "randperm")
    if kind is None:
        kind = dtypes.of(out._array.dtype) if isinstance(out, TensorBase) else dtypes.int64
    array = random.randperm(count, kind.numpy, gen)
    place = place_of(device, "randperm")
    return write_created("randperm", out, move(array, place), want, requires_grad)


def _like(
    name: str, input: Any, draw: Callable[[Any], None], dtype: Any, layout: Any, device: Any,
    pin_memory: bool, requires_grad: bool, memory_format: Any,
) -> Any:  # fmt: skip
    check_tensor(input, name)
    if stack.batches != 0 and (level := enclosing_vmap()) is not None:
        return batching.draw_like(
            level, input, requires_grad,
            lambda like, requires_grad: _like(
                name, like, draw, dtype, layout, device, pin_memory, requires_grad, memory_format
            ),
        )  # fmt: skip
    if overlaps(input._array):  # an expanded tensor: its axes in the order of a dense one
        input = wrap(from_host(random.dense_like(to_host(input._array)), input._array))
    t = alike(name, input, dtype, layout, device, pin_memory, requires_grad, memory_format)
    raw = t._array
    place = device_of(raw)
    if place is CPU:
        draw(raw)
    elif place.type != "meta":
        host = make_array(raw.shape, raw.dtype, CPU)
        draw(host)
        v.overwrite(raw, from_host(host, raw))
    return t


def _export_like(name: str, draw: Callable[[Any, Any], None], text: str) -> None:
    def like(
        input: Any, *, generator: Any = None, dtype: Any = None, layout: Any = None,
        device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
        memory_format: Any = dtypes.preserve_format,
    ) -> Any:  # fmt: skip
        gen = generator_of(name, generator)
        return _like(
            name, input, lambda a: draw(a, gen), dtype, layout, device, pin_memory, requires_grad,
            memory_format,
        )  # fmt: skip

    export = function(method=False, quick=plain_draws.like, told=(random, draw is _normal))
    export(variant(like, name, describe(text)))


_export_like(
    "rand_like", _uniform, "Numbers drawn evenly from [0, 1), in the shape and dtype of `input`."
)
_export_like("randn_like", _normal, "Normal numbers in the shape and dtype of `input`.")


@function(method=False)
def randint_like(
    input: Any, low: Any = None, high: Any = None, *, generator: Any = None, dtype: Any = None,
    layout: Any = None, device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
    memory_format: Any = dtypes.preserve_format,
) -> Any:  # fmt: skip
    """Integers drawn evenly from [low, high), in the shape and dtype of `input`."""
    gen = generator_of("randint_like", generator)
    if high is None:
        low, high = 0, low
    first = _bound("randint_like", "low", 0 if low is None else low, 2)
    last = _bound("randint_like", "high", high, 3)
    return _like(
        "randint_like", input, lambda a: random.random_(a, first, last, gen), dtype, layout, device,
        pin_memory, requires_grad, memory_format,
    )  # fmt: skip


# --- from the values of other tensors -------------------------------------------------------------
_NORMAL_FORMS: Final = """
 * (Tensor mean, Tensor std, *, torch.Generator generator = None, Tensor out = None)
 * (Tensor mean, float std = 1, *, torch.Generator generator = None, Tensor out = None)
 * (float mean, Tensor std, *, torch.Generator generator = None, Tensor out = None)
 * (float mean, float std, tuple of ints size, *, torch.Generator generator = None, \
Tensor out = None, torch.dtype dtype = None, torch.layout layout = None, \
torch.device device = None, bool pin_memory = False, bool requires_grad = False)
"""


@function(method=False)
def normal(
    mean: Operand, std: Operand = 1.0, size: Any = None, *, generator: Any = None, out: Any = None,
    dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Normal numbers, each with its own mean and deviation where those are tensors.

    >>> generator = torch.manual_seed(0)
    >>> torch.normal(torch.tensor([0., 10.]), 1.0)
    tensor([1.5410, 9.7066])
    """
    gen = generator_of("normal", generator)
    if size is not None:  # the form of two numbers, which 0-d tensors may be too
        mean, std = python_number(mean), python_number(std)
        if isinstance(mean, TensorBase) or isinstance(std, TensorBase):
            raise unmatched("normal", _NORMAL_FORMS, (mean, std, size), {})
    by = (isinstance(mean, TensorBase), isinstance(std, TensorBase))
    if not any(by):
        if size is None:
            raise unmatched("normal", _NORMAL_FORMS, (mean, std), {})
        m, s = (
            creation.checked_number(mean, "normal", "mean", 1),
            creation.checked_number(std, "normal", "std", 2),
        )
        return _sample(
            "normal", creation.shape_of("normal", size, 3), lambda a: random.normal_(a, m, s, gen),
            out, dtype, layout, device, pin_memory, requires_grad,
        )  # fmt: skip
    xs = [x for x in (mean, std) if isinstance(x, TensorBase)]
    if stack.batches != 0 and (level := enclosing_vmap()) is not None:
        batching.refuse_out_in_vmap(out)
        fixed = {"mean": mean} if not by[0] else {"std": std} if not by[1] else {}
        names = [name for name, tensor in zip(("mean", "std"), by, strict=True) if tensor]
        return batching.draw_from(
            level, _NORMAL_OF[by], tuple(xs),
            lambda *xs: normal(**fixed, **dict(zip(names, xs, strict=True)), generator=gen),
        )  # fmt: skip
    raws: list[Any] = [
        to_host(x._array) if isinstance(x, TensorBase) else float(x) for x in (mean, std)
    ]
    try:
        drawn = random.normal(raws[0], raws[1], gen)
    except ValueError:
        raise RuntimeError(broadcast_mismatch(raws[0].shape, raws[1].shape)) from None
    return _record("normal", _NORMAL_OF[by], xs, drawn, out)


def _record(name: str, op: Drawn, xs: list[Any], drawn: Any, out: Any) -> Any:
    drawn = from_host(drawn, xs[0]._array)
    if out is not None:
        return write_created(name, out, drawn, None, False)
    return keep_record(op, tuple(xs), tuple(x._array for x in xs), drawn)


@function(quick=plain_draws.bernoulli, told=random)
def bernoulli(input: Any, p: float | None = None, *, generator: Any = None, out: Any = None) -> Any:
    """Ones, each with the probability that stands in its place in `input`, and zeros.

    Args:
        input: the probabilities, where `p` does not give one for all.

    >>> torch.bernoulli(torch.tensor([0., 1., 1.]))
    tensor([0., 1., 1.])
    """
    gen = generator_of("bernoulli", generator)
    if stack.batches != 0 and (level := enclosing_vmap()) is not None:
        batching.refuse_out_in_vmap(out)
        return batching.draw_from(
            level, _BERNOULLI, (input,), lambda x: bernoulli(x, p, generator=gen)
        )  # fmt: skip
    if device_of(input._array).type == "meta":
        return _record("bernoulli", _BERNOULLI, [input], v.copy(input._array), out)
    raw = to_host(input._array)
    drawn = make_array(raw.shape, raw.dtype, CPU)
    if p is None:
        chance = raw
    else:
        chance = to_host(p._array) if isinstance(p, TensorBase) else float(p)
    random.bernoulli_(drawn, chance, gen)
    return _record("bernoulli", _BERNOULLI, [input], drawn, out)


@function()
def multinomial(
    input: Any, num_samples: int, replacement: bool = False, *, generator: Any = None,
    out: Any = None,
) -> Any:  # fmt: skip
    """Indices drawn with probabilities proportional to the rows of `input`.

    Args:
        input: the weights of what may be drawn; each row is one distribution.

    >>> torch.multinomial(torch.tensor([0., 0., 1.]), 2, replacement=True)
    tensor([2, 2])
    """
    gen = generator_of("multinomial", generator)
    count = _bound("multinomial", "num_samples", num_samples, 2)
    if stack.batches != 0 and (level := enclosing_vmap()) is not None:
        batching.refuse_out_in_vmap(out)
        different = level.batch.randomness == "different"
        return batching.draw_from(
            level, None, (input,), lambda x: _by_rows(x, different, count, replacement, gen)
        )
    if isinstance(out, TensorBase) and dtypes.of(out._array.dtype) is not dtypes.int64:
        kind = dtypes.of(out._array.dtype).scalar_type
        raise RuntimeError(f"multinomial expects Long tensor out, got: {kind}")
    place = device_of(input._array)
    if place.type == "meta":
        shape = (*input._array.shape[:-1], count)
        drawn = make_array(shape, dtypes.int64.numpy, place)
        return write_created("multinomial", out, drawn, dtypes.int64, False)
    drawn = random.multinomial(to_host(input._array), count, bool(replacement), gen)
    return write_created("multinomial", out, from_host(drawn, input._array), dtypes.int64, False)


def _by_rows(x: Any, batched: bool, count: int, replacement: bool, gen: Any) -> Any:
    """`multinomial` of the rows of a batch of matrices, if it is one."""
    if not batched or x._array.ndim != 3:
        return multinomial(x, count, replacement, generator=gen)
    n, rows, _ = x._array.shape
    y = multinomial(x.reshape((n * rows, -1)), count, replacement, generator=gen)
    return y.reshape((n, rows, count))
