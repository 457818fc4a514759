"""Forward mode: functions of one matrix, and situations in a level.

Of `FUNCTIONS` the tangents are stored; of `cases` everything one can see, errors included. Random
programs of duals stand in cases_dual_programs.py.
"""

from __future__ import annotations

import contextlib
import importlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from tests.harness import Cases, attempt, rounded

X = [[0.3, -1.2, 0.7], [1.1, 0.4, -0.6]]
T = [[1.0, 2.0, -1.0], [0.5, -0.5, 3.0]]

Function = Callable[[Any, Any, Any], Any]  # of the library, its nn.functional and the matrix

FUNCTIONS: dict[str, Function] = {
    "exp": lambda lib, F, x: x.exp(),
    "power of itself": lambda lib, F, x: x.abs() ** x,
    "square": lambda lib, F, x: x**3,
    "number to the power": lambda lib, F, x: 2**x,
    "integers to the power": lambda lib, F, x: lib.tensor([2, 3, 4]) ** x,
    "one over": lambda lib, F, x: 1 / x,
    "times integers": lambda lib, F, x: x * lib.tensor([1, 2, 3]),
    "atan2": lambda lib, F, x: lib.atan2(x, x.roll(1)),
    "atan2 of integers": lambda lib, F, x: lib.atan2(x, lib.tensor([1, 2, 3])),
    "sigmoid": lambda lib, F, x: x.sigmoid(),
    "tanh": lambda lib, F, x: x.tanh(),
    "erf": lambda lib, F, x: x.erf(),
    "lgamma": lambda lib, F, x: x.abs().lgamma(),
    "fmod": lambda lib, F, x: lib.fmod(x, 0.4),
    "remainder": lambda lib, F, x: x % x.roll(1),
    "lerp": lambda lib, F, x: lib.lerp(x, x * x, 0.3),
    "addcmul": lambda lib, F, x: lib.addcmul(x, x, x, value=0.5),
    "where": lambda lib, F, x: lib.where(x > 0, x * 2, x.exp()),
    "clamp": lambda lib, F, x: x.clamp(-0.5, 0.5),
    "floor": lambda lib, F, x: x.floor() + x,
    "to float": lambda lib, F, x: x.float() * 2,
    "complex, absolute": lambda lib, F, x: lib.complex(x, x * x).abs(),
    "complex, as real": lambda lib, F, x: lib.view_as_real(lib.complex(x, x) * 1j),
    "sum": lambda lib, F, x: x.sum() * x,
    "mean": lambda lib, F, x: x.mean(1, keepdim=True),
    "prod": lambda lib, F, x: x.prod(),
    "prod along": lambda lib, F, x: x.prod(1),
    "norm": lambda lib, F, x: x.norm(),
    "std": lambda lib, F, x: x.std(),
    "var": lambda lib, F, x: x.var(0),
    "max": lambda lib, F, x: x.max(),
    "amax": lambda lib, F, x: x.amax(1),
    "sort": lambda lib, F, x: x.sort(1)[0],
    "topk": lambda lib, F, x: x.topk(2)[0],
    "median": lambda lib, F, x: x.median(),
    "logsumexp": lambda lib, F, x: x.logsumexp(1),
    "cumsum": lambda lib, F, x: x.cumsum(1),
    "cumprod": lambda lib, F, x: x.cumprod(0),
    "cummax": lambda lib, F, x: x.cummax(1)[0],
    "mm": lambda lib, F, x: x @ x.t(),
    "mv": lambda lib, F, x: x @ x[0],
    "bmm": lambda lib, F, x: lib.bmm(x[None], x.t()[None]),
    "einsum": lambda lib, F, x: lib.einsum("ij,kj->ik", x, x),
    "outer": lambda lib, F, x: lib.outer(x[0], x[1]),
    "kron": lambda lib, F, x: lib.kron(x, x),
    "trace": lambda lib, F, x: (x @ x.t()).trace(),
    "det": lambda lib, F, x: (x @ x.t()).det(),
    "inverse": lambda lib, F, x: (x @ x.t()).inverse(),
    "cholesky": lambda lib, F, x: lib.linalg.cholesky(x @ x.t()),
    "solve": lambda lib, F, x: lib.linalg.solve(x @ x.t(), x),
    "svdvals": lambda lib, F, x: lib.linalg.svdvals(x),
    "eigvalsh": lambda lib, F, x: lib.linalg.eigvalsh(x @ x.t()),
    "gather": lambda lib, F, x: x.gather(1, lib.tensor([[0, 1], [2, 0]])),
    "index": lambda lib, F, x: x[[1, 0, 1]],
    "mask": lambda lib, F, x: x[x > 0],
    "index_select": lambda lib, F, x: x.index_select(1, lib.tensor([2, 0])),
    "index_add": lambda lib, F, x: x.index_add(0, lib.tensor([1, 0]), x),
    "scatter_add": lambda lib, F, x: x.scatter_add(1, lib.tensor([[0, 1, 1], [2, 0, 0]]), x),
    "masked_fill": lambda lib, F, x: x.masked_fill(x > 0, 2.0),
    "cat": lambda lib, F, x: lib.cat([x, x.exp()]),
    "stack": lambda lib, F, x: lib.stack([x, x.sin()], 1),
    "flip": lambda lib, F, x: x.flip(0),
    "repeat": lambda lib, F, x: x.repeat(2, 2),
    "tril": lambda lib, F, x: x.tril(),
    "pad": lambda lib, F, x: F.pad(x, (1, 1)),
    "diagonal": lambda lib, F, x: x.diagonal(),
    "as_strided": lambda lib, F, x: x.as_strided((2, 2), (1, 2)),
    "unfold": lambda lib, F, x: x.unfold(1, 2, 1),
    "expand": lambda lib, F, x: x[:, None].expand(2, 4, 3) * 2,
    "unbind": lambda lib, F, x: x.unbind(1)[1] * 2,
    "split": lambda lib, F, x: x.split([1, 2], 1)[1],
    "softmax": lambda lib, F, x: F.softmax(x, 1),
    "log_softmax": lambda lib, F, x: F.log_softmax(x, 0),
    "relu": lambda lib, F, x: F.relu(x),
    "gelu": lambda lib, F, x: F.gelu(x),
    "softplus": lambda lib, F, x: F.softplus(x),
    "elu": lambda lib, F, x: F.elu(x),
    "silu": lambda lib, F, x: F.silu(x),
    "layer_norm": lambda lib, F, x: F.layer_norm(x, (3,)),
    "batch_norm": lambda lib, F, x: F.batch_norm(x, None, None, training=True),
    "linear": lambda lib, F, x: F.linear(x, x, x.sum(1)),
    "embedding": lambda lib, F, x: F.embedding(lib.tensor([1, 0]), x),
    "cross_entropy": lambda lib, F, x: F.cross_entropy(x, lib.tensor([1, 0])),
    "nll_loss": lambda lib, F, x: F.nll_loss(x, lib.tensor([1, 2])),
    "mse_loss": lambda lib, F, x: F.mse_loss(x, x * 2),
    "smooth_l1_loss": lambda lib, F, x: F.smooth_l1_loss(x, lib.zeros(2, 3).double()),
    "bce": lambda lib, F, x: F.binary_cross_entropy_with_logits(x, lib.ones(2, 3).double()),
    "kl_div": lambda lib, F, x: F.kl_div(F.log_softmax(x, 1), F.softmax(x * 2, 1)),
    "cosine_similarity": lambda lib, F, x: F.cosine_similarity(x, x * x),
    "exp_": lambda lib, F, x: x.clone().exp_(),
    "chain_": lambda lib, F, x: x.clone().mul_(2).add_(x).sin_(),
    "div_": lambda lib, F, x: (x * 1).div_(x.sum()),
    "write to a view": lambda lib, F, x: written(x * 2, lambda y: y[0].mul_(x[1])),
    "set a slice": lambda lib, F, x: written(
        x * 2, lambda y: set_item(y, (0, slice(1, 3)), x[1, :2])
    ),
    "set a column of constants": lambda lib, F, x: written(
        lib.ones(2, 3).double(), lambda y: set_item(y, (slice(None), 1), x[:, 0])
    ),
    "set by mask": lambda lib, F, x: written(x * 2, lambda y: set_item(y, y > 0, 0.0)),
    "masked_fill_": lambda lib, F, x: x.clone().masked_fill_(x > 0, x.sum()),
    "index_put_": lambda lib, F, x: x.clone().index_put_(
        (lib.tensor([0, 1]), lib.tensor([2, 0])), x.sum(1), accumulate=True
    ),
    "copy_": lambda lib, F, x: x.clone().copy_(x.flip(0)),
    "zero_": lambda lib, F, x: x.clone().zero_(),
    "fill_": lambda lib, F, x: lib.zeros(3).double().fill_(x.sum()),
    "t_": lambda lib, F, x: (x * 1).t_(),
    "unsqueeze_": lambda lib, F, x: (x * 1).unsqueeze_(0),
}


def written(y: Any, write: Callable[[Any], Any]) -> Any:
    """`y` after a write."""
    write(y)
    return y


def set_item(y: Any, index: Any, value: Any) -> None:
    y[index] = value


def tangent_of(lib: Any, fn: Function, asks: bool = False) -> Any:
    """The value of one of `FUNCTIONS` and its tangent."""
    fw = importlib.import_module(f"{lib.__name__}.autograd.forward_ad")
    functional = importlib.import_module(f"{lib.__name__}.nn.functional")
    with warnings.catch_warnings(), fw.dual_level():
        warnings.simplefilter("ignore")
        x = lib.tensor(X, dtype=lib.float64, requires_grad=asks)
        y = fn(lib, functional, fw.make_dual(x, lib.tensor(T, dtype=lib.float64)))
        return fw.unpack_dual(y)


# --- situations -----------------------------------------------------------------------------------
class DualCases(Cases):
    """Cases of the library and its forward_ad, run inside a level."""

    def run(self, lib: Any, name: str) -> Any:
        fw = importlib.import_module(f"{lib.__name__}.autograd.forward_ad")
        with warnings.catch_warnings(), fw.dual_level():
            warnings.simplefilter("ignore")
            return plain(lib, fw, attempt(lambda: self[name](lib, fw)))


cases = DualCases()


def dual(lib: Any, fw: Any, asks: bool = False) -> Any:
    """2 x 3 numbers with a tangent of ones."""
    return fw.make_dual(numbers(lib).requires_grad_(asks), lib.ones(2, 3))


def numbers(lib: Any) -> Any:
    return lib.arange(6.0).reshape(2, 3).clone()


def tangents(fw: Any, *ts: Any) -> list[Any]:
    return [fw.unpack_dual(t).tangent for t in ts]


@cases
def other_sizes(lib: Any, fw: Any) -> Any:
    return fw.make_dual(numbers(lib), lib.ones(3))


@cases
def integer_tangent(lib: Any, fw: Any) -> Any:
    return fw.make_dual(numbers(lib), lib.ones(2, 3).long())


@cases
def integer_primal(lib: Any, fw: Any) -> Any:
    return fw.make_dual(numbers(lib).long(), lib.ones(2, 3))


@cases
def other_dtypes(lib: Any, fw: Any) -> Any:
    d = fw.make_dual(numbers(lib), lib.ones(2, 3).double())
    return tangents(fw, d, d * 2, d * numbers(lib), d.sin(), d[0], d.sum(), d.mul_(2))


@cases
def no_tangent(lib: Any, fw: Any) -> Any:
    return fw.make_dual(numbers(lib), None)


@cases
def no_tensor(lib: Any, fw: Any) -> Any:
    return fw.make_dual(1.0, lib.ones(1))


@cases
def unpack_no_tensor(lib: Any, fw: Any) -> Any:
    return fw.unpack_dual(1.0)


@cases
def dual_of_a_dual(lib: Any, fw: Any) -> Any:
    return fw.make_dual(dual(lib, fw), lib.ones(2, 3))


@cases
def tangent_that_is_dual(lib: Any, fw: Any) -> Any:
    return fw.make_dual(numbers(lib), dual(lib, fw))


@cases
def wrong_level(lib: Any, fw: Any) -> Any:
    return fw.make_dual(numbers(lib), lib.ones(2, 3), level=3)


@cases
def negative_level(lib: Any, fw: Any) -> Any:
    return fw.make_dual(numbers(lib), lib.ones(2, 3), level=-1)


@cases
def unpack_wrong_level(lib: Any, fw: Any) -> Any:
    return fw.unpack_dual(dual(lib, fw), level=3)


@cases
def exit_wrong_level(lib: Any, fw: Any) -> Any:
    return fw.exit_dual_level(level=3)


@cases
def nested(lib: Any, fw: Any) -> Any:
    return fw.enter_dual_level()


@cases
def nested_block(lib: Any, fw: Any) -> Any:
    with contextlib.suppress(RuntimeError), fw.dual_level():
        pass
    return dual(lib, fw) * 2  # the outer level goes on


@cases
def exit_negative_level(lib: Any, fw: Any) -> Any:
    return fw.exit_dual_level(level=-1)


@contextlib.contextmanager
def outside(fw: Any) -> Iterator[None]:
    """Code outside the level that a situation is in."""
    fw.exit_dual_level()
    try:
        yield
    finally:
        fw.enter_dual_level()


@cases
def exit_twice(lib: Any, fw: Any) -> Any:
    with outside(fw):
        fw.exit_dual_level()


@cases
def make_outside(lib: Any, fw: Any) -> Any:
    with outside(fw):
        return fw.make_dual(numbers(lib), lib.ones(2, 3), level=0)


@cases
def unpack_outside(lib: Any, fw: Any) -> Any:
    d = dual(lib, fw)
    with outside(fw):
        whole, parts = fw.unpack_dual(d), fw.unpack_dual(d, level=0)
        return [whole.primal is d, *whole, parts.primal is d, *parts, fw.unpack_dual(3).primal, d]


@cases
def from_one_level_to_the_next(lib: Any, fw: Any) -> Any:
    d = dual(lib, fw)
    y = d * 2
    kept = fw.unpack_dual(y).tangent
    with outside(fw):
        pass
    return [*tangents(fw, d, y, y[0], d * y), fw.make_dual(kept, numbers(lib)) * d]


@cases
def keywords(lib: Any, fw: Any) -> Any:
    d = fw.make_dual(tensor=numbers(lib), tangent=lib.ones(2, 3), level=None)
    found = fw.unpack_dual(tensor=d, level=0)
    return [list(found), list(found._fields), type(found).__name__, *fw.unpack_dual(d, level=-1)]


@cases
def levels_are_keywords(lib: Any, fw: Any) -> Any:
    failed = []
    for call in (
        lambda: fw.make_dual(numbers(lib), lib.ones(2, 3), 0),
        lambda: fw.unpack_dual(numbers(lib), 0),
        lambda: fw.exit_dual_level(0),
    ):
        with contextlib.suppress(TypeError):
            call()
            failed.append("not refused")
    return failed


@cases
def switched_off(lib: Any, fw: Any) -> Any:
    d, x = dual(lib, fw), numbers(lib)
    with fw._set_fwd_grad_enabled(False) as nothing:
        y, row, text = d * 2, d[0], str(d)
        x.mul_(d)
        made = fw.make_dual(d, lib.ones(2, 3) * 5)  # nothing is seen of its tangent
        other = fw.make_dual(numbers(lib), d)
        with fw._set_fwd_grad_enabled(True):
            z = d * 2
        seen = [fw._is_fwd_grad_enabled(), *tangents(fw, d, made)]
    return [nothing, y, row, text, x, made, other, z, seen, fw._is_fwd_grad_enabled(), d]


@cases
def written_while_switched_off(lib: Any, fw: Any) -> Any:
    d = dual(lib, fw)
    with fw._set_fwd_grad_enabled(False):
        d.mul_(3)
    return d


@cases
def switched_off_at_once(lib: Any, fw: Any) -> Any:
    d = dual(lib, fw)
    off = fw._set_fwd_grad_enabled(False)
    seen = [fw._is_fwd_grad_enabled(), d * 2]
    with off:
        seen.append(fw._is_fwd_grad_enabled())
    return [*seen, fw._is_fwd_grad_enabled(), d * 2]


@cases
def made_in_inference_mode(lib: Any, fw: Any) -> Any:
    d, x = dual(lib, fw), numbers(lib)
    with lib.inference_mode():
        made, row, seen = dual(lib, fw), d[0], [fw._is_fwd_grad_enabled()]
        fixed = numbers(lib)
        x.mul_(d)
        with fw._set_fwd_grad_enabled(True):
            seen += [fw._is_fwd_grad_enabled(), d * 2]
    return [made, made * 2, row, row * 2, x, seen, fw.make_dual(fixed, lib.ones(2, 3)) * d]


@cases
def a_level_in_inference_mode(lib: Any, fw: Any) -> Any:
    with outside(fw), lib.inference_mode(), fw.dual_level():
        d = dual(lib, fw)
        return [x.tolist() for x in (d, d * 2)] + tangents(fw, d, d * 2)


@cases
def printed(lib: Any, fw: Any) -> Any:
    asks = dual(lib, fw, True)
    return [str(x) for x in (dual(lib, fw), asks, dual(lib, fw).sum(), asks.sum(), asks[0] > 1)]


@cases
def what_a_dual_is(lib: Any, fw: Any) -> Any:
    x, t = lib.ones(3), lib.arange(3.0)
    d = fw.make_dual(x, t)
    primal, tangent = fw.unpack_dual(d)
    return [
        d._base is x, d._is_view(), d.data_ptr() == x.data_ptr(), d._version, d.is_leaf,
        tangent is t, primal is d, primal._base is x, tangents(fw, x, primal),
    ]  # fmt: skip


@cases
def a_dual_that_requires_grad(lib: Any, fw: Any) -> Any:
    d = dual(lib, fw, True)
    primal = fw.unpack_dual(d).primal
    return [d.requires_grad, d.is_leaf, d.grad_fn.name(), primal.grad_fn.name()]


@cases
def detached(lib: Any, fw: Any) -> Any:
    d = dual(lib, fw)
    return tangents(fw, d.detach(), d.data, d[0].detach(), d.clone(), d.detach().clone())


@cases
def without_grad(lib: Any, fw: Any) -> Any:
    with lib.no_grad():
        d = dual(lib, fw, True)
        return tangents(fw, d.detach(), d * 2, d[0], d.clone().mul_(2))


@cases
def in_inference_mode(lib: Any, fw: Any) -> Any:
    d = dual(lib, fw)
    with lib.inference_mode():
        return tangents(fw, d, d * 2, d[0], dual(lib, fw))


@cases
def no_derivative(lib: Any, fw: Any) -> Any:
    d = dual(lib, fw)
    return tangents(
        fw, d > 1, d.argmax(), d.long(), d.floor(), d.sign(), d.round(), lib.zeros_like(d),
        d.new_zeros(2), lib.ones_like(d), lib.as_tensor(d),
    )  # fmt: skip


@cases
def several_results(lib: Any, fw: Any) -> Any:
    d = dual(lib, fw)
    parts = [*d.unbind(), *d.split(1), *d.max(0), *d.sort()]
    return tangents(fw, *parts, lib.cat([numbers(lib), d]), lib.stack([d[0], lib.ones(3)]))


@cases
def writing_writes_the_tangent(lib: Any, fw: Any) -> Any:
    x, t = numbers(lib), lib.ones(2, 3)
    d = fw.make_dual(x, t)
    d.mul_(2)
    d[0].mul_(3)
    return [d, x, t, t._version, d._version, fw.unpack_dual(d).tangent is t]


@cases
def its_own_tangent(lib: Any, fw: Any) -> Any:
    x = numbers(lib)
    d = fw.make_dual(x, x)
    return [d * d, fw.unpack_dual(d).tangent is x]


@cases
def written_by_others(lib: Any, fw: Any) -> Any:
    d = dual(lib, fw)
    row = d[0]
    primal, t = fw.unpack_dual(d)
    primal.mul_(2)
    t.mul_(3)
    d.detach().mul_(2)
    return [d, row, primal, primal._version, d._version]


@cases
def written_in_another_dtype(lib: Any, fw: Any) -> Any:
    made = [numbers(lib), numbers(lib), numbers(lib).long()]
    d = fw.make_dual(numbers(lib).double(), lib.ones(2, 3).double())
    made[0].mul_(d)
    made[1].mul_(d[0, 1])
    made[2].copy_(d)
    return made


@cases
def written_without_grad(lib: Any, fw: Any) -> Any:
    d = dual(lib, fw, True)
    with lib.no_grad():
        d.mul_(2)
    moved = fw.make_dual(numbers(lib).requires_grad_() * 1, lib.ones(2, 3))
    moved.mul_(2)
    return [d.detach(), *tangents(fw, d), moved.detach(), moved.grad_fn.name()]


@cases
def a_leaf_written(lib: Any, fw: Any) -> Any:
    return dual(lib, fw, True).mul_(2)


@cases
def rows_exchanged(lib: Any, fw: Any) -> Any:
    d, x = dual(lib, fw), numbers(lib)
    d[0] = d[1].clone() * 2
    x[[0, 1], [1, 2]] = d[0, :2]
    x[x > 4] = d[0, 0]
    return [d, x]


@cases
def a_shared_tangent(lib: Any, fw: Any) -> Any:
    x, t = numbers(lib), lib.ones(2, 3)
    first, second = fw.make_dual(x, t), fw.make_dual(x, t)
    first.mul_(2)
    return [first, second]


@cases
def a_view_of_constants(lib: Any, fw: Any) -> Any:
    x = numbers(lib)
    row, column = x[0], x[:, 0]
    row.mul_(fw.make_dual(lib.ones(3), lib.ones(3)))
    return tangents(fw, x, row, column, x[1])


@cases
def a_view_made_before(lib: Any, fw: Any) -> Any:
    x = numbers(lib)
    row = x[0]
    x.mul_(dual(lib, fw))
    return tangents(fw, x, row)


@cases
def views_share_the_tangent(lib: Any, fw: Any) -> Any:
    d = dual(lib, fw)
    row, flat = d[0], d.view(6)
    flat.mul_(2.0)
    d[:, 1] = 5.0
    return tangents(fw, d, row, flat)


@cases
def a_view_of_the_primal(lib: Any, fw: Any) -> Any:
    x = numbers(lib)
    d = fw.make_dual(x, lib.ones(2, 3))
    primal = fw.unpack_dual(d).primal
    row = primal[0]
    row.mul_(fw.make_dual(lib.ones(3), lib.ones(3)))
    return tangents(fw, x, d, primal, row)


@cases
def a_dual_of_a_view(lib: Any, fw: Any) -> Any:
    x = numbers(lib)
    row = x[0]
    return tangents(fw, fw.make_dual(row, lib.ones(3)), row, x)


@cases
def the_primal_is_written(lib: Any, fw: Any) -> Any:
    x = numbers(lib)
    d = fw.make_dual(x, lib.ones(2, 3))
    x.mul_(d)
    return [x, d]


@cases
def overwritten(lib: Any, fw: Any) -> Any:
    made = [dual(lib, fw) for _ in range(3)]
    made[0].zero_()
    made[1].fill_(3.0)
    made[2].copy_(lib.ones(2, 3))
    return made


@cases
def set_an_element(lib: Any, fw: Any) -> Any:
    x = numbers(lib)
    number = fw.make_dual(lib.tensor(3.0), lib.tensor(1.0))
    x[0, 1] = number
    x[x > 3] = number * 2
    return x


@cases
def set_data(lib: Any, fw: Any) -> Any:
    d = dual(lib, fw)
    d.data = lib.zeros(2, 3)
    return d


@cases
def layouts(lib: Any, fw: Any) -> Any:
    found = []
    for t in (lib.ones(3, 2).t(), lib.ones(1).expand(2, 3), lib.ones(2, 2, 3)[0]):
        kept = fw.unpack_dual(fw.make_dual(numbers(lib), t)).tangent
        found.append([kept is t, list(kept.stride())])
    turned = fw.make_dual(numbers(lib).t(), lib.ones(3, 2))
    return [*found, list(fw.unpack_dual(turned * 2).tangent.stride()), turned.t().view(6) * 1]


@cases
def into_out(lib: Any, fw: Any) -> Any:
    return lib.mul(dual(lib, fw), 2, out=lib.zeros(2, 3))


@cases
def out_is_a_dual(lib: Any, fw: Any) -> Any:
    return lib.mul(numbers(lib), 2, out=dual(lib, fw))


@cases
def promotion(lib: Any, fw: Any) -> Any:
    d = fw.make_dual(lib.tensor(2.0).double(), lib.tensor(1.0).double())
    y = d * numbers(lib)
    return [y, *tangents(fw, y, numbers(lib) + d, d.float(), numbers(lib).long() * d)]


@cases
def low_precision(lib: Any, fw: Any) -> Any:
    d = dual(lib, fw)
    return tangents(fw, d.half() * 2, d.bfloat16() * 3, d.half().sum())


@cases
def complex_numbers(lib: Any, fw: Any) -> Any:
    z = lib.complex(numbers(lib), numbers(lib) * 2)
    d = fw.make_dual(z, lib.complex(lib.ones(2, 3), -lib.ones(2, 3)))
    parts = [d.real, d.imag, lib.view_as_real(d)]
    found = tangents(fw, d * 2j, d.abs(), d.conj() * 1, d.exp(), (d * d).sum(), *parts)
    return [lib.view_as_real(x) if x.is_complex() else x for x in found]


# gradients inside a level
@cases
def gradients_have_tangents(lib: Any, fw: Any) -> Any:
    x = numbers(lib).requires_grad_()
    y = (fw.make_dual(x, lib.ones(2, 3)) ** 3).sum()
    (g,) = lib.autograd.grad(y, x)
    return [y.detach(), fw.unpack_dual(y).tangent.detach(), g]


@cases
def tangents_have_gradients(lib: Any, fw: Any) -> Any:
    x = numbers(lib).requires_grad_()
    y = (fw.make_dual(x, lib.ones(2, 3)) ** 3).sum()
    return lib.autograd.grad(fw.unpack_dual(y).tangent, x)[0]


@cases
def the_tangent_requires_grad(lib: Any, fw: Any) -> Any:
    t = lib.ones(2, 3, requires_grad=True)
    y = fw.make_dual(numbers(lib), t).exp()
    (g,) = lib.autograd.grad(fw.unpack_dual(y).tangent.sum(), t)
    return [y.requires_grad, g.detach()]


@cases
def a_weight_that_requires_grad(lib: Any, fw: Any) -> Any:
    w = lib.ones(3, 2, requires_grad=True)
    y = dual(lib, fw) @ w
    return lib.autograd.grad((y * y).sum(), w)[0]


@cases
def create_graph(lib: Any, fw: Any) -> Any:
    x = numbers(lib).requires_grad_()
    y = (fw.make_dual(x, lib.ones(2, 3)) ** 3).sum()
    (g,) = lib.autograd.grad(y, x, create_graph=True)
    (t,) = tangents(fw, g)
    return [g.detach(), t.detach(), lib.autograd.grad(t.sum(), x)[0].detach()]


@cases
def accumulated(lib: Any, fw: Any) -> Any:
    x = numbers(lib).requires_grad_()
    d = fw.make_dual(x, lib.ones(2, 3))
    (d**3).sum().backward()
    first = tangents(fw, x.grad)
    (d**3).sum().backward()
    return [first, x.grad]


@cases
def dual_cotangent(lib: Any, fw: Any) -> Any:
    x = numbers(lib).requires_grad_()
    seen = []
    y = x * x
    y.register_hook(lambda g: seen.append(tangents(fw, g)))
    return [lib.autograd.grad(y, x, dual(lib, fw))[0], seen]


@cases
def retained(lib: Any, fw: Any) -> Any:
    y = dual(lib, fw, True) ** 3
    y.retain_grad()
    (y * y).sum().backward()
    return y.grad


@cases
def written_with_history(lib: Any, fw: Any) -> Any:
    x = numbers(lib).requires_grad_()
    y = fw.make_dual(x * 1, lib.ones(2, 3))
    y.exp_()
    (t,) = tangents(fw, y)
    return [lib.autograd.grad(t.sum(), x, retain_graph=True)[0].detach(),
            *lib.autograd.grad(y.sum(), x)]  # fmt: skip


@cases
def a_tangent_that_is_a_leaf(lib: Any, fw: Any) -> Any:
    return fw.make_dual(numbers(lib), lib.ones(2, 3, requires_grad=True)).mul_(2)


@cases
def becomes_a_leaf(lib: Any, fw: Any) -> Any:
    d = dual(lib, fw)
    d.requires_grad_()
    y = d * d
    return [y.requires_grad, *tangents(fw, lib.autograd.grad(y.sum(), d)[0])]


# --- custom functions -----------------------------------------------------------------------------
def function(
    lib: Any, forward: Any, jvp: Any = None, backward: Any = None, setup: Any = None
) -> Any:
    """A custom function named F."""
    parts = {"forward": forward, "jvp": jvp, "backward": backward, "setup_context": setup}
    members = {k: staticmethod(fn) for k, fn in parts.items() if fn is not None}
    return type("F", (lib.autograd.Function,), members)


def twice(ctx: Any, x: Any) -> Any:
    return x * 2


@cases
def custom(lib: Any, fw: Any) -> Any:
    return function(lib, twice, twice).apply(dual(lib, fw))


@cases
def custom_without_jvp(lib: Any, fw: Any) -> Any:
    return function(lib, twice).apply(dual(lib, fw))


@cases
def custom_arguments(lib: Any, fw: Any) -> Any:
    seen: list[Any] = []

    def forward(ctx: Any, a: Any, b: Any, c: float) -> Any:
        ctx.save_for_forward(a, b)
        ctx.c = c
        seen.append(tangents(fw, a))
        return a * b * c

    def jvp(ctx: Any, *ts: Any) -> Any:
        seen.append([list(ts), list(ctx.saved_tensors), tangents(fw, *ctx.saved_tensors)])
        return ts[0] * ctx.saved_tensors[1] * ctx.c

    y = function(lib, forward, jvp).apply(dual(lib, fw), numbers(lib), 3.0)
    return [y, seen]


@cases
def custom_unmaterialised(lib: Any, fw: Any) -> Any:
    seen: list[Any] = []

    def forward(ctx: Any, a: Any, b: Any) -> Any:
        ctx.set_materialize_grads(False)
        return a * 2

    def jvp(ctx: Any, *ts: Any) -> Any:
        seen.extend(ts)
        return ts[0]

    return [function(lib, forward, jvp).apply(dual(lib, fw), numbers(lib)), seen]


@cases
def custom_too_many(lib: Any, fw: Any) -> Any:
    return function(lib, twice, lambda ctx, t: (t, t)).apply(dual(lib, fw))


@cases
def custom_too_few(lib: Any, fw: Any) -> Any:
    return function(lib, lambda ctx, x: (x * 2, x * 3), twice).apply(dual(lib, fw))


@cases
def custom_no_tensor(lib: Any, fw: Any) -> Any:
    return function(lib, twice, lambda ctx, t: 3.0).apply(dual(lib, fw))


@cases
def custom_list(lib: Any, fw: Any) -> Any:
    return function(lib, twice, lambda ctx, t: [t]).apply(dual(lib, fw))


@cases
def custom_other_size(lib: Any, fw: Any) -> Any:
    return function(lib, twice, lambda ctx, t: t[0]).apply(dual(lib, fw))


@cases
def custom_fixed(lib: Any, fw: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        y = x > 1
        ctx.mark_non_differentiable(y)
        return x * 2, y

    return list(function(lib, forward, lambda ctx, t: (t * 2, None)).apply(dual(lib, fw)))


@cases
def custom_fixed_with_tangent(lib: Any, fw: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        y = x * 1
        ctx.mark_non_differentiable(y)
        return x * 2, y

    return function(lib, forward, lambda ctx, t: (t * 2, t)).apply(dual(lib, fw))


@cases
def custom_integer_with_tangent(lib: Any, fw: Any) -> Any:
    return function(lib, lambda ctx, x: (x * 2, x.long()), lambda ctx, t: (t, t)).apply(
        dual(lib, fw)
    )


def written_twice(ctx: Any, x: Any, *others: Any) -> Any:
    ctx.mark_dirty(x)
    return x.mul_(others[0] if others else 2)


@cases
def custom_dirty(lib: Any, fw: Any) -> Any:
    d = dual(lib, fw)
    y = function(lib, written_twice, lambda ctx, t: t.mul_(2)).apply(d)
    return [d, y is d]


@cases
def custom_dirty_out_of_place(lib: Any, fw: Any) -> Any:
    return function(lib, written_twice, twice).apply(dual(lib, fw))


@cases
def custom_dirty_constant(lib: Any, fw: Any) -> Any:
    x = numbers(lib)
    function(lib, written_twice, lambda ctx, s, t: t * 2).apply(x, dual(lib, fw))
    return x


@cases
def custom_dirty_view(lib: Any, fw: Any) -> Any:
    x = numbers(lib)
    function(lib, written_twice, lambda ctx, s, t: t * 2).apply(x[0], dual(lib, fw)[0])
    return x


def flat(ctx: Any, x: Any) -> Any:
    return x.view(6)


@cases
def custom_view(lib: Any, fw: Any) -> Any:
    d = dual(lib, fw)
    y = function(lib, flat, flat).apply(d)
    y.mul_(2)
    return [y, d]


@cases
def custom_view_of_a_copy(lib: Any, fw: Any) -> Any:
    return function(lib, flat, lambda ctx, t: t.clone().view(6)).apply(dual(lib, fw))


@cases
def custom_view_no_view(lib: Any, fw: Any) -> Any:
    return function(lib, lambda ctx, x: x, lambda ctx, t: t * 2).apply(dual(lib, fw))


@cases
def custom_setup(lib: Any, fw: Any) -> Any:
    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_forward(inputs[0], output)

    F = function(lib, lambda x: x.exp(), lambda ctx, t: t * ctx.saved_tensors[1], setup=setup)
    return F.apply(dual(lib, fw))


@cases
def custom_both_ways(lib: Any, fw: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x**3

    def rule(ctx: Any, t: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x * x * t

    x = numbers(lib).requires_grad_()
    y = function(lib, forward, rule, rule).apply(fw.make_dual(x, lib.ones(2, 3)))
    (g,) = lib.autograd.grad(y.sum(), x, retain_graph=True)
    (t,) = tangents(fw, y)
    return [y.detach(), t.detach(), g, lib.autograd.grad(t.sum(), x)[0].detach()]


@cases
def custom_saved_for_forward_only(lib: Any, fw: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_forward(x)
        return x * 2

    y = function(lib, forward, twice, twice).apply(numbers(lib).requires_grad_())
    return len(y.grad_fn.saved_tensors)


@cases
def custom_raises(lib: Any, fw: Any) -> Any:
    return function(lib, twice, lambda ctx, t: 1 / 0).apply(dual(lib, fw))


# --- writing them down ----------------------------------------------------------------------------
def plain(lib: Any, fw: Any, x: Any) -> Any:
    """A result as JSON can hold it: of a tensor its dtype, numbers and tangent."""
    if isinstance(x, (list, tuple)):
        return [plain(lib, fw, y) for y in x]
    if isinstance(x, lib.Tensor):
        tangent = fw.unpack_dual(x).tangent
        found = [str(x.dtype), rounded(x.detach().tolist())]
        return found if tangent is None else [*found, plain(lib, fw, tangent.detach())]
    return x


def results(lib: Any) -> Any:
    tangents = {name: tangent_of(lib, fn) for name, fn in FUNCTIONS.items()}
    return {
        "functions": {name: [t.tolist() for t in found] for name, found in tangents.items()},
        "cases": cases.results(lib),
    }
