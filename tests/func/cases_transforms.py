"""Situations in and around transforms: small programs for any library with PyTorch's names.

`alike` compares two results.
"""

from __future__ import annotations

import math
import re
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from typing import Any

from tests.harness import Case, Cases

__all__ = ["alike", "cases", "results", "seen", "significant"]

Pair = namedtuple("Pair", ["a", "b"])
WORDS = 120  # of an error's first line, so many characters count


class TransformCases(Cases):
    def run(self, lib: Any, name: str) -> Any:
        return attempt(lib, lambda: self[name](lib))

    def results(self, lib: Any) -> dict[str, Any]:
        found: dict[str, Any] = significant(super().results(lib))
        return found


cases = TransformCases()


def attempt(lib: Any, fn: Callable[[], Any]) -> Any:
    """What `fn()` gives; of an error its type and first words."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return seen(lib, fn())
        except Exception as error:
            return ["error", type(error).__name__, words(error)]


def words(error: Exception) -> str:
    text = re.sub(r"0x[0-9a-f]+", "0x", str(error).split("\n")[0])
    text = text.replace("rushlight.tensor", "torch").replace("rushlight", "torch")
    return text[:WORDS].rstrip()


def seen(lib: Any, thing: Any) -> Any:
    """Everything one can see of a result: structure, dtypes, shapes, values, flags."""
    if isinstance(thing, lib.Tensor):
        values = thing.detach().to(lib.float64 if not thing.is_complex() else lib.complex128)
        flat = values.reshape(-1).tolist()
        numbers = [str(x) if isinstance(x, complex) else x for x in flat]
        dtype = str(thing.dtype).split(".")[-1]
        return ["tensor", dtype, list(thing.shape), numbers, thing.requires_grad]
    if isinstance(thing, dict):
        return [type(thing).__name__, [[str(k), seen(lib, v)] for k, v in thing.items()]]
    if isinstance(thing, (list, tuple, deque)) and type(thing).__name__ != "Size":
        return [type(thing).__name__, [seen(lib, part) for part in thing]]
    if isinstance(thing, (bool, int, float, str)) or thing is None:
        return thing
    if callable(thing):
        return attempt(lib, thing)
    return str(thing)


def alike(a: Any, b: Any) -> bool:
    """Whether two results are equal, but for rounding."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, float) or isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-6) or (a != a and b != b)
    return type(a) is type(b) and bool(a == b)


def significant(x: Any) -> Any:
    """Floats with as many digits as count."""
    if isinstance(x, float):
        return float(f"{x:.8g}")
    if isinstance(x, list):
        return [significant(part) for part in x]
    if isinstance(x, dict):
        return {k: significant(part) for k, part in x.items()}
    return x


def several(prefix: str, found: dict[str, Case]) -> None:
    for name, fn in found.items():
        cases.enter(f"{prefix}: {name}", fn)


def X(lib: Any) -> Any:
    return lib.arange(6.0).reshape(3, 2)


def row(lib: Any) -> Any:
    return lib.tensor([0.5, -1.5, 2.0])


# --- vmap: arguments ------------------------------------------------------------------------------
several("vmap", {
    "sizes differ": lambda t: t.func.vmap(lambda x, y: x)(X(t), t.ones(4, 2)),
    "no inputs": lambda t: t.func.vmap(lambda: 1)(),
    "only kwargs": lambda t: t.func.vmap(lambda x: x)(x=X(t)),
    "not a tensor": lambda t: t.func.vmap(lambda x: x)(3),
    "in_dims too short": lambda t: t.func.vmap(lambda x, y: x, (0,))(X(t), X(t)),
    "in_dims too long": lambda t: t.func.vmap(lambda x: x, (0, 0))(X(t)),
    "in_dims all None": lambda t: t.func.vmap(lambda x: x, (None,))(X(t)),
    "in_dims None": lambda t: t.func.vmap(lambda x: x, None)(X(t)),
    "in_dims a list": lambda t: t.func.vmap(lambda x: x, [0])(X(t)),
    "in_dims a string": lambda t: t.func.vmap(lambda x: x, "a")(X(t)),
    "in_dims of a float": lambda t: t.func.vmap(lambda x, y: x, (0, 0))(X(t), 2.0),
    "in_dims a float": lambda t: t.func.vmap(lambda x, y: x, (0.5, 0))(X(t), X(t)),
    "in_dims too large": lambda t: t.func.vmap(lambda x, y: x, (5, 0))(X(t), X(t)),
    "in_dims too small": lambda t: t.func.vmap(lambda x, y: x, (-3, 0))(X(t), X(t)),
    "in_dims negative": lambda t: t.func.vmap(lambda x: x.sum(), -1)(X(t)),
    "in_dims of a number": lambda t: t.func.vmap(lambda x: x)(t.tensor(1.0)),
    "in_dims another dict": lambda t: t.func.vmap(lambda x: x["a"], ({"b": 0},))({"a": X(t)}),
    "in_dims prefix": lambda t: t.func.vmap(lambda d, y: d["a"] + y, ({"a": 1}, 0))(
        {"a": X(t)}, t.ones(2, 3)),
    "in_dims deep": lambda t: t.func.vmap(lambda p: p[0] + p[1]["k"], (((0, {"k": None})),))(
        (X(t), {"k": t.ones(2)})),
    "in_dims one for a tree": lambda t: t.func.vmap(lambda p: p[0] + p[1], (0,))((X(t), X(t))),
    "in_dims int for a tree": lambda t: t.func.vmap(lambda p: p[0] * p[1], 1)([X(t), X(t)]),
    "other values pass": lambda t: t.func.vmap(lambda x, s, n: x * n, (0, None, None))(
        X(t), "name", 3),
    "shared tensor": lambda t: t.func.vmap(lambda x, w: x @ w, (0, None))(X(t), t.eye(2)),
    "out_dims too short": lambda t: t.func.vmap(lambda x: (x, x), out_dims=(0,))(X(t)),
    "out_dims too large": lambda t: t.func.vmap(lambda x: x, out_dims=3)(X(t)),
    "out_dims a string": lambda t: t.func.vmap(lambda x: x, out_dims="a")(X(t)),
    "out_dims a float": lambda t: t.func.vmap(lambda x: x, out_dims=0.5)(X(t)),
    "out_dims None of a batch": lambda t: t.func.vmap(lambda x: x, out_dims=None)(X(t)),
    "out_dims None of what all share": lambda t: t.func.vmap(
        lambda x: X(t).sum(), out_dims=None)(X(t)),
    "out_dims 1 in a tuple": lambda t: t.func.vmap(lambda x: x, out_dims=(1,))(X(t)),
    "out_dims negative": lambda t: t.func.vmap(lambda x: x, out_dims=-1)(X(t)),
    "out_dims of a dict": lambda t: t.func.vmap(
        lambda x: {"a": x, "b": x.sum()}, out_dims={"a": 1, "b": 0})(X(t)),
    "out_dims of another dict": lambda t: t.func.vmap(
        lambda x: {"a": x}, out_dims={"b": 1})(X(t)),
    "out_dims list for a tuple": lambda t: t.func.vmap(
        lambda x: (x, x), out_dims=[0, 1])(X(t)),
    "out_dims None for a string": lambda t: t.func.vmap(
        lambda x: (x, "s"), out_dims=(0, None))(X(t)),
    "what all share is repeated": lambda t: t.func.vmap(lambda x: t.ones(2))(X(t)),
    "strides of what is repeated": lambda t: list(
        t.func.vmap(lambda x: t.ones(2))(X(t)).stride()),
    "strides of what moved": lambda t: list(
        t.func.vmap(lambda x: x * 1, out_dims=1)(X(t)).stride()),
    "returns a number": lambda t: t.func.vmap(lambda x: 5)(X(t)),
    "returns a string": lambda t: t.func.vmap(lambda x: "s")(X(t)),
    "returns None": lambda t: t.func.vmap(lambda x: None)(X(t)),
    "returns None in a tuple": lambda t: t.func.vmap(lambda x: (x, None))(X(t)),
    "returns an empty tuple": lambda t: t.func.vmap(lambda x: ())(X(t)),
    "returns a list": lambda t: t.func.vmap(lambda x: [x, x.sum()])(X(t)),
    "returns a dict": lambda t: t.func.vmap(lambda x: {"b": x, "a": {"c": x.sum()}})(X(t)),
    "returns its input": lambda t: t.func.vmap(lambda x: x)(X(t)),
    "returns an integer tensor": lambda t: t.func.vmap(lambda x: x.argmax())(X(t)),
    "returns a bool tensor": lambda t: t.func.vmap(lambda x: x > 2)(X(t)),
    "chunk_size 0": lambda t: t.func.vmap(lambda x: x, chunk_size=0)(X(t)),
    "chunk_size -1": lambda t: t.func.vmap(lambda x: x, chunk_size=-1),
    "chunk_size 2": lambda t: t.func.vmap(lambda x: x * 2, chunk_size=2)(X(t)),
    "chunk_size 1, several": lambda t: t.func.vmap(
        lambda x, y: (x * 2, {"s": y}), (0, 1), (1, 0), chunk_size=1)(X(t), X(t).T),
    "chunk_size of more": lambda t: t.func.vmap(lambda x: x * 2, chunk_size=100)(X(t)),
    "chunk_size and what all share": lambda t: t.func.vmap(
        lambda x: t.ones(2), chunk_size=2)(X(t)),
    "randomness unknown": lambda t: t.func.vmap(lambda x: x, randomness="foo")(X(t)),
    "kwargs are not mapped": lambda t: t.func.vmap(lambda x, y: x + y)(X(t), y=X(t)),
    "kwargs of any kind": lambda t: t.func.vmap(lambda x, n=1: x * n)(X(t), n=3),
    "empty batch": lambda t: t.func.vmap(lambda x: x * 2)(t.empty(0, 2)),
    "empty batch, summed": lambda t: t.func.vmap(lambda x: x.sum())(t.empty(0, 2)),
    "name and doc": lambda t: t.func.vmap(X).__name__,
    "torch.vmap": lambda t: t.vmap(lambda x: x.sum())(X(t)),
    "batch of one": lambda t: t.func.vmap(lambda x: x.sum())(X(t)[:1]),
    "of a method": lambda t: t.func.vmap(t.Tensor.sum)(X(t)),
    "of a builtin": lambda t: t.func.vmap(t.dot)(X(t), X(t)),
    "integers": lambda t: t.func.vmap(lambda i: i * 2)(t.arange(3)),
    "indexing with a batch": lambda t: t.func.vmap(lambda i: X(t)[i])(t.tensor([2, 0])),
    "no x.requires_grad inside": lambda t: t.func.vmap(
        lambda x: (x, x.requires_grad, x.is_leaf), out_dims=(0, None, None))(
        X(t).requires_grad_()),
    "shape inside": lambda t: t.func.vmap(
        lambda x: (x.sum(), list(x.shape), x.dim(), x.numel(), x.size(0)),
        out_dims=(0, None, None, None, None))(X(t)),
})  # fmt: skip


# --- vmap: what cannot be done --------------------------------------------------------------------
several("inside vmap", {
    "item": lambda t: t.func.vmap(lambda x: x[0].item())(X(t)),
    "float": lambda t: t.func.vmap(lambda x: float(x[0]))(X(t)),
    "int": lambda t: t.func.vmap(lambda x: int(x[0]))(X(t)),
    "if": lambda t: t.func.vmap(lambda x: x if x.sum() > 0 else -x)(X(t)),
    "while": lambda t: t.func.vmap(lambda x: [0 for _ in range(int(x[0]))])(X(t)),
    "nonzero": lambda t: t.func.vmap(lambda x: x.nonzero())(X(t)),
    "mask": lambda t: t.func.vmap(lambda x: x[x > 1])(X(t)),
    "numpy": lambda t: t.func.vmap(lambda x: x.numpy())(X(t)),
    "tolist": lambda t: t.func.vmap(lambda x: x.tolist())(X(t)),
    "backward": lambda t: t.func.vmap(lambda x: x.sum().backward())(X(t).requires_grad_()),
    "requires_grad_": lambda t: t.func.vmap(lambda x: x.requires_grad_())(X(t)),
    "retain_grad": lambda t: t.func.vmap(lambda x: x.retain_grad())(X(t).requires_grad_()),
    "autograd.grad": lambda t: t.func.vmap(
        lambda x: t.autograd.grad((x * x).sum(), x))(X(t)),
    "set item of what all share": lambda t: t.func.vmap(
        lambda x: t.zeros(2).__setitem__(0, x[0]))(X(t)),
    "out=": lambda t: t.func.vmap(lambda x: t.add(x, x, out=t.empty(2)))(X(t)),
    "write to new_zeros": lambda t: t.func.vmap(lambda x: x.new_zeros(2).add_(x))(X(t)),
    "write what all share": lambda t: t.func.vmap(lambda x: x.clone().add_(t.ones(2)))(X(t)),
    "fill what all share": lambda t: t.func.vmap(
        lambda x: (t.zeros(2).fill_(3.0) * x).sum())(X(t)),
    "random": lambda t: t.func.vmap(lambda x: x + t.rand(2))(X(t)),
    "detach": lambda t: t.func.vmap(lambda x: x.detach() * 2)(X(t)),
    "data": lambda t: t.func.vmap(lambda x: x.data * 2)(X(t)),
    "len and iteration": lambda t: t.func.vmap(lambda x: sum(a for a in x) * len(x))(X(t)),
    "allclose": lambda t: t.func.vmap(lambda x: t.allclose(x, x))(X(t)),
    "equal": lambda t: t.func.vmap(lambda x: t.equal(x, x))(X(t)),
    "masked_fill": lambda t: t.func.vmap(lambda x: x.masked_fill(x > 1, 0.0))(X(t)),
    "where": lambda t: t.func.vmap(lambda x: t.where(x.sum() > 2, x, -x))(X(t)),
})  # fmt: skip


@cases
def writing_an_input_of_vmap(t: Any) -> Any:
    x = X(t)
    return t.func.vmap(lambda r: r.mul_(2))(x), x, x._version


@cases
def writing_a_view_of_an_input_of_vmap(t: Any) -> Any:
    x = X(t)

    def f(r: Any) -> Any:
        r[0] = r[1] * 3
        return r.sum()

    return t.func.vmap(f)(x), x


@cases
def writing_to_a_captured_tensor_in_vmap(t: Any) -> Any:
    c = t.zeros(2)
    return t.func.vmap(lambda x: (c.add_(1), x)[1])(X(t)), c


@cases
def a_batch_that_escaped(t: Any) -> Any:
    kept: list[Any] = []
    t.func.vmap(lambda x: (kept.append(x), x)[1])(X(t))
    return list(kept[0].shape), lambda: kept[0] + 1


# --- grad -----------------------------------------------------------------------------------------
several("grad", {
    "not a scalar": lambda t: t.func.grad(lambda x: x * 2)(X(t)),
    "one element in a vector": lambda t: t.func.grad(lambda x: x.sum().reshape(1))(X(t)),
    "not a tensor": lambda t: t.func.grad(lambda x: 2.0)(X(t)),
    "a tuple": lambda t: t.func.grad(lambda x: (x.sum(), x))(X(t)),
    "aux missing": lambda t: t.func.grad(lambda x: x.sum(), has_aux=True)(X(t)),
    "aux of three": lambda t: t.func.grad(lambda x: (x.sum(), x, x), has_aux=True)(X(t)),
    "aux a list": lambda t: t.func.grad(lambda x: [x.sum(), x], has_aux=True)(X(t)),
    "aux no tensor": lambda t: t.func.grad(lambda x: (x.sum(), "s"), has_aux=True)(X(t)),
    "aux None": lambda t: t.func.grad(lambda x: (x.sum(), None), has_aux=True)(X(t)),
    "aux a tree": lambda t: t.func.grad(
        lambda x: (x.sum(), {"a": x * 2, "b": [x.argmax()]}), has_aux=True)(X(t)),
    "argnums too large": lambda t: t.func.grad(lambda x: x.sum(), argnums=1)(X(t)),
    "argnums negative": lambda t: t.func.grad(
        lambda x, y: (x * y.sum()).sum(), argnums=-1)(X(t), X(t)),
    "argnums too negative": lambda t: t.func.grad(lambda x: x.sum(), argnums=-2)(X(t)),
    "argnums twice": lambda t: t.func.grad(lambda x: x.sum(), argnums=(0, 0))(X(t)),
    "argnums twice, in disguise": lambda t: t.func.grad(
        lambda x: x.sum(), argnums=(0, -1))(X(t)),
    "argnums a string": lambda t: t.func.grad(lambda x: x.sum(), argnums="a")(X(t)),
    "argnums a list": lambda t: t.func.grad(lambda x: x.sum(), argnums=[0])(X(t)),
    "argnums of a string": lambda t: t.func.grad(lambda x: x.sum(), argnums=("a",))(X(t)),
    "argnums empty": lambda t: t.func.grad(lambda x: x.sum(), argnums=())(X(t)),
    "argnums a tuple": lambda t: t.func.grad(
        lambda x, y: (x * y).sum(), argnums=(1, 0))(X(t), X(t) + 1),
    "argnums a tuple of one": lambda t: t.func.grad(lambda x: x.sum(), argnums=(0,))(X(t)),
    "argnums a bool": lambda t: t.func.grad(
        lambda x, y: (x * y.sum()).sum(), argnums=True)(X(t), X(t)),
    "no arguments": lambda t: t.func.grad(lambda: t.ones(()))(),
    "by keyword only": lambda t: t.func.grad(lambda x: x.sum())(x=X(t)),
    "integers": lambda t: t.func.grad(lambda x: x.sum())(t.arange(3)),
    "integers beside": lambda t: t.func.grad(lambda x, i: x[i].sum())(X(t), t.tensor([0, 0])),
    "complex output": lambda t: t.func.grad(
        lambda x: (x * x).sum())(t.ones(2, dtype=t.complex64)),
    "complex input": lambda t: t.func.grad(
        lambda z: (z * z.conj()).real.sum())(t.tensor([1 + 2j, 3 - 1j])),
    "a number": lambda t: t.func.grad(lambda x: x * x)(3.0),
    "None in a tree": lambda t: t.func.grad(lambda d: d["a"].sum())({"a": X(t), "b": None}),
    "a number in a tree": lambda t: t.func.grad(lambda d: d[0].sum())([X(t), 2]),
    "not used": lambda t: t.func.grad(lambda x, y: y.sum())(X(t), X(t)),
    "not used, one of two": lambda t: t.func.grad(
        lambda x, y: y.sum(), argnums=(0, 1))(X(t), X(t)),
    "returns its input": lambda t: t.func.grad(lambda x: x)(t.tensor(2.0)),
    "returns a constant": lambda t: t.func.grad(lambda x: t.tensor(2.0))(X(t)),
    "returns a view": lambda t: t.func.grad(lambda x: x[1, 1])(X(t)),
    "a dict": lambda t: t.func.grad(
        lambda d: (d["a"] * d["b"]).sum())({"a": X(t), "b": X(t) + 1}),
    "a list": lambda t: t.func.grad(lambda d: (d[0] * d[1]).sum())([X(t), X(t) + 1]),
    "a namedtuple": lambda t: t.func.grad(
        lambda p: (p.a * p.b).sum())(Pair(X(t), X(t) + 1)),
    "an OrderedDict": lambda t: t.func.grad(
        lambda d: (d["z"] * d["a"]).sum())(OrderedDict(z=X(t), a=X(t) + 1)),
    "a defaultdict": lambda t: t.func.grad(
        lambda d: (d["z"] * 2).sum())(defaultdict(list, z=X(t))),
    "a deque": lambda t: t.func.grad(lambda d: (d[0] * 2).sum())(deque([X(t)])),
    "an empty dict": lambda t: t.func.grad(lambda d: t.tensor(1.0))({}),
    "kwargs": lambda t: t.func.grad(lambda x, y, k=1: (x * y * k).sum())(X(t), y=X(t), k=3),
    "float64": lambda t: t.func.grad(lambda x: (x * x).sum())(X(t).double()),
    "half": lambda t: t.func.grad(lambda x: (x * x).sum())(X(t).half()),
    "the same tensor twice": lambda t: (lambda x: t.func.grad(
        lambda a, b: (a * b * b).sum(), argnums=(0, 1))(x, x))(X(t)),
    "and value": lambda t: t.func.grad_and_value(lambda x: (x * x).sum())(X(t)),
    "and value, with aux": lambda t: t.func.grad_and_value(
        lambda x: ((x * x).sum(), (x, {"k": x * 2})), has_aux=True)(X(t)),
    "and value, argnums": lambda t: t.func.grad_and_value(
        lambda x, y: (x * y).sum(), (0, 1))(X(t), X(t)),
    "item inside": lambda t: t.func.grad(lambda x: x.sum() * x[0, 1].item())(X(t)),
    "if inside": lambda t: t.func.grad(lambda x: x.sum() if x.sum() > 0 else -x.sum())(X(t)),
    "numpy inside": lambda t: t.func.grad(lambda x: x.numpy())(X(t)),
    "tolist inside": lambda t: t.func.grad(lambda x: x.sum() * x.tolist()[0][1])(X(t)),
    "detach inside": lambda t: t.func.grad(lambda x: (x.detach() * x).sum())(X(t)),
    "nonzero inside": lambda t: t.func.grad(lambda x: x[x.nonzero()[:, 0]].sum())(X(t)),
    "mask inside": lambda t: t.func.grad(lambda x: (x[x > 2] ** 2).sum())(X(t)),
    "random inside": lambda t: (t.manual_seed(0), t.func.grad(
        lambda x: (x * t.rand(3, 2)).sum())(X(t)))[1],
    "flags inside": lambda t: t.func.grad(lambda x: (x.sum(), [
        x.new_tensor(float(v)) for v in (x.requires_grad, x.is_leaf, x.grad_fn is None,
                                         (x * 2).requires_grad, (x * 2).is_leaf)]),
        has_aux=True)(X(t)),
    "flags of a captured tensor": lambda t: (lambda c: t.func.grad(lambda x: (x.sum(), [
        x.new_tensor(float(v)) for v in (c.requires_grad, c.is_leaf)]),
        has_aux=True)(X(t)))(t.ones(2, requires_grad=True)),
    "name": lambda t: t.func.grad(X).__name__,
    "of grad, cubed": lambda t: t.func.grad(t.func.grad(t.func.grad(
        lambda x: x ** 4)))(t.tensor(2.0)),
    "over torch.sin": lambda t: t.func.grad(t.sin)(t.tensor(0.0)),
    "an error inside": lambda t: t.func.grad(lambda x: {}["key"])(X(t)),
})  # fmt: skip


several("inside grad", {
    "backward": lambda t: t.func.grad(lambda x: (x.sum().backward(), x.sum())[1])(X(t)),
    "backward of a captured loss": lambda t: (lambda w: t.func.grad(
        lambda x: ((w * 2).sum().backward(), x.sum())[1])(X(t)))(t.ones(2, requires_grad=True)),
    "autograd.backward": lambda t: t.func.grad(
        lambda x: (t.autograd.backward(x.sum()), x.sum())[1])(X(t)),
    "autograd.grad": lambda t: t.func.grad(lambda x: t.autograd.grad(
        (x**3).sum(), x, create_graph=True)[0].sum())(X(t)),
    "autograd.functional": lambda t: t.func.grad(
        lambda x: t.autograd.functional.jacobian(lambda y: y**3, x).sum())(X(t)),
    "requires_grad_": lambda t: t.func.grad(lambda x: x.requires_grad_().sum())(X(t)),
    "requires_grad_ of a new tensor": lambda t: t.func.grad(
        lambda x: (t.ones(2).requires_grad_(), x.sum())[1])(X(t)),
    "requires_grad_(False)": lambda t: t.func.grad(
        lambda x: (t.ones(2).requires_grad_(False), x.sum())[1])(X(t)),
    "requires_grad=True": lambda t: t.func.grad(
        lambda x: (t.ones(2, requires_grad=True) * x).sum())(X(t)),
    "retain_grad": lambda t: t.func.grad(lambda x: (x.retain_grad(), x.sum())[1])(X(t)),
    "setting requires_grad": lambda t: t.func.grad(
        lambda x: (setattr(t.ones(2), "requires_grad", True), x.sum())[1])(X(t)),
    "detach_": lambda t: t.func.grad(lambda x: (x * 2).detach_().sum())(X(t)),
    "grad attribute": lambda t: t.func.grad(
        lambda x: x.sum() if x.grad is None else x.sum() * 2)(X(t)),
})  # fmt: skip


@cases
def a_value_that_escaped_grad(t: Any) -> Any:
    kept: list[Any] = []
    t.func.grad(lambda x: (kept.append(x * 2), x.sum())[1])(X(t))
    return (kept[0] + 1).detach()


@cases
def a_leaf_that_escaped_grad_differentiated(t: Any) -> Any:
    kept: list[Any] = []
    t.func.grad(lambda x: (kept.append(x), x.sum())[1])(X(t))
    return t.func.grad(lambda y: (y * kept[0]).sum())(X(t))


@cases
def an_escaped_value_in_a_later_grad(t: Any) -> Any:
    kept: list[Any] = []
    t.func.grad(lambda x: (kept.append(x * x), x.sum())[1])(X(t))
    return t.func.grad(lambda y: (y * kept[0]).sum())(X(t) + 1)


@cases
def an_inner_value_used_outside(t: Any) -> Any:
    def f(x: Any) -> Any:
        kept: list[Any] = []
        t.func.grad(lambda y: (kept.append(y * x), (y * y).sum())[1])(x)
        return kept[0].sum()

    return t.func.grad(f)(X(t))


@cases
def hooks_inside_grad(t: Any) -> Any:
    heard: list[Any] = []

    def f(x: Any) -> Any:
        y = x * 2
        y.register_hook(lambda g: (heard.append(1), g * 10)[1])
        return (y * y).sum()

    return t.func.grad(f)(X(t)), len(heard)


@cases
def a_hook_on_the_input_of_grad(t: Any) -> Any:
    def f(x: Any) -> Any:
        x.register_hook(lambda g: g * 10)
        return (x * x).sum()

    return t.func.grad(f)(X(t))


@cases
def hooks_inside_vmap(t: Any) -> Any:
    x = X(t).requires_grad_()
    heard: list[Any] = []

    def f(r: Any) -> Any:
        y = r * 2
        if y.requires_grad:
            y.register_hook(lambda g: heard.append(list(g.shape)))
        return y.sum()

    t.func.vmap(f)(x).sum().backward()
    return x.grad, heard


@cases
def saved_tensors_hooks_around_grad(t: Any) -> Any:
    hooks = t.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x)
    with hooks:
        return t.func.grad(lambda x: (x * x).sum())(X(t))


@cases
def saved_tensors_hooks_inside_grad(t: Any) -> Any:
    def f(x: Any) -> Any:
        with t.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
            return (x * x).sum()

    return t.func.grad(f)(X(t))


@cases
def saved_tensors_hooks_around_vmap(t: Any) -> Any:
    with t.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
        return t.func.vmap(lambda x: (x * x).sum())(X(t).requires_grad_())


@cases
def saved_tensors_hooks_around_jvp(t: Any) -> Any:
    with t.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
        return t.func.jvp(lambda x: (x * x).sum(), (X(t),), (X(t),))


@cases
def saved_tensors_hooks_around_vjp_and_jacobians(t: Any) -> Any:
    def guarded(fn: Callable[[], Any]) -> Callable[[], Any]:
        def call() -> Any:
            with t.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
                return fn()

        return call

    x = row(t)
    return [
        guarded(lambda: t.func.vjp(t.sin, x)[0]),
        guarded(lambda: t.func.jacrev(t.sin)(x)),
        guarded(lambda: t.func.jacfwd(t.sin)(x)),
        guarded(lambda: t.func.hessian(lambda y: y.sin().sum())(x)),
    ]


# --- writes to captured tensors -------------------------------------------------------------------
@cases
def writing_to_a_captured_tensor(t: Any) -> Any:
    c = t.zeros(3, 2)
    return [
        lambda: t.func.grad(lambda x: (c.copy_(x), x.sum())[1])(X(t)),
        lambda: t.func.grad(lambda x: (c.add_(1), x.sum())[1])(X(t)),
        lambda: t.func.grad(lambda x: (c.mul_(x), x.sum())[1])(X(t)),
        lambda: t.func.grad(lambda x: (c.zero_(), x.sum())[1])(X(t)),
        lambda: t.func.grad(lambda x: (c.fill_(2), x.sum())[1])(X(t)),
        lambda: t.func.grad(lambda x: (c.sin_(), x.sum())[1])(X(t)),
        lambda: t.func.grad(lambda x: (c.clamp_(0, 1), x.sum())[1])(X(t)),
        lambda: t.func.grad(lambda x: (c.__setitem__(0, x[0]), x.sum())[1])(X(t)),
        lambda: t.func.grad(lambda x: (c.__setitem__((0, 0), 1.0), x.sum())[1])(X(t)),
        lambda: t.func.grad(lambda x: (c[0].copy_(x[0]), x.sum())[1])(X(t)),
        lambda: t.func.grad(lambda x: (c.index_add_(0, t.tensor([0]), x[:1]), x.sum())[1])(X(t)),
        lambda: t.func.grad(lambda x: (c.masked_fill_(c > 0, 1.0), x.sum())[1])(X(t)),
        lambda: t.func.grad(lambda x: (c.scatter_(0, t.tensor([[0]]), 1.0), x.sum())[1])(X(t)),
        lambda: t.func.grad(lambda x: (t.add(x, 1, out=c), x.sum())[1])(X(t)),
        lambda: t.func.jvp(lambda x: (c.copy_(x), x.sum())[1], (X(t),), (X(t),)),
        lambda: t.func.vjp(lambda x: (c.add_(1), x.sum())[1], X(t)),
        lambda: t.func.jacrev(lambda x: (c.add_(1), x.sum())[1])(X(t)),
        lambda: t.func.jacfwd(lambda x: (c.add_(1), x.sum())[1])(X(t)),
        lambda: t.func.hessian(lambda x: (c.add_(1), x.sum())[1])(X(t)),
        lambda: t.func.vmap(t.func.grad(lambda x: (c.add_(1), x.sum())[1]))(X(t)),
        lambda: t.func.grad(lambda x: (t.func.vmap(lambda r: c.add_(1) + r)(x)).sum())(X(t)),
        c,
    ]  # fmt: skip


@cases
def writing_to_an_input_of_grad(t: Any) -> Any:
    x = X(t)
    return [
        lambda: t.func.grad(lambda y: y.mul_(2).sum())(x),
        lambda: t.func.grad(lambda y: (y.detach().mul_(2), y.sum())[1])(x),
        lambda: t.func.vjp(lambda y: y.mul_(2), x)[0],
        lambda: t.func.grad(lambda y: (y[0].mul_(2), y.sum())[1])(x),
        x,
    ]


@cases
def writing_to_an_input_of_jvp(t: Any) -> Any:
    x, v = X(t), X(t) + 1
    return t.func.jvp(lambda y: y.mul_(2), (x,), (v,)), x, v, x._version


@cases
def writing_to_an_outer_input(t: Any) -> Any:
    def f(x: Any) -> Any:
        y = x * 1
        return t.func.grad(lambda z: (y.mul_(2), (z * z).sum())[1])(x).sum()

    return t.func.grad(f)(X(t))


@cases
def writing_to_what_the_function_made(t: Any) -> Any:
    def f(x: Any) -> Any:
        b = t.zeros(2)
        b[0] = x[0, 1]
        b[1] = 3
        b.mul_(x[1])
        return (b * b).sum()

    return t.func.grad(f)(X(t)), t.func.jacfwd(f)(X(t)), t.func.hessian(f)(X(t))


# --- modes ----------------------------------------------------------------------------------------
def quiet(t: Any, mode: Any, fn: Callable[[], Any]) -> Any:
    with mode():
        return fn()


several("modes", {
    "no_grad inside grad": lambda t: t.func.grad(
        lambda x: (x * quiet(t, t.no_grad, lambda: x * x)).sum())(X(t)),
    "no_grad around all of it": lambda t: t.func.grad(
        lambda x: quiet(t, t.no_grad, lambda: (x * x).sum()))(X(t)),
    "grad inside no_grad": lambda t: quiet(
        t, t.no_grad, lambda: t.func.grad(lambda x: (x**3).sum())(X(t).requires_grad_())),
    "enable_grad inside no_grad inside grad": lambda t: t.func.grad(lambda x: quiet(
        t, t.no_grad, lambda: quiet(t, t.enable_grad, lambda: (x * x).sum())))(X(t)),
    "inner no_grad, outer grad": lambda t: t.func.grad(lambda x: quiet(
        t, t.no_grad, lambda: t.func.grad(lambda y: (y**3).sum())(x)).sum())(X(t)),
    "inner grad with no_grad value": lambda t: t.func.grad(lambda x: t.func.grad(
        lambda y: (y**3 * quiet(t, t.no_grad, lambda: y * x)).sum())(x).sum())(X(t)),
    "jvp inside no_grad": lambda t: quiet(
        t, t.no_grad, lambda: t.func.jvp(lambda x: x * x, (X(t),), (X(t),))),
    "no_grad inside jvp": lambda t: t.func.jvp(
        lambda x: x * quiet(t, t.no_grad, lambda: x * x), (X(t),), (X(t),)),
    "no_grad inside jacfwd": lambda t: t.func.jacfwd(
        lambda x: x * quiet(t, t.no_grad, lambda: x * x))(row(t)),
    "no_grad inside jacrev": lambda t: t.func.jacrev(
        lambda x: x * quiet(t, t.no_grad, lambda: x * x))(row(t)),
    "no_grad inside hessian": lambda t: t.func.hessian(
        lambda x: (x**2 * quiet(t, t.no_grad, lambda: x * x)).sum())(row(t)),
    "vmap inside no_grad": lambda t: quiet(
        t, t.no_grad, lambda: t.func.vmap(lambda x: x * x)(X(t).requires_grad_())),
    "no_grad inside vmap": lambda t: t.func.vmap(
        lambda x: x * quiet(t, t.no_grad, lambda: x * x))(X(t).requires_grad_()),
    "no_grad inside vmap, backward": lambda t: (lambda x: (t.func.vmap(
        lambda r: r * quiet(t, t.no_grad, lambda: r * r))(x).sum().backward(), x.grad)[1])(
        X(t).requires_grad_()),
    "vmap of grad inside no_grad": lambda t: quiet(t, t.no_grad, lambda: t.func.vmap(
        t.func.grad(lambda x: (x**3).sum()))(X(t).requires_grad_())),
    "vjp inside no_grad": lambda t: quiet(
        t, t.no_grad, lambda: (lambda o: (o[0], o[1](X(t))))(
            t.func.vjp(lambda x: x**3, X(t).requires_grad_()))),
    "vjp function inside no_grad": lambda t: (lambda o: quiet(
        t, t.no_grad, lambda: o[1](X(t))))(t.func.vjp(lambda x: x**3, X(t).requires_grad_())),
    "hessian inside no_grad": lambda t: quiet(
        t, t.no_grad, lambda: t.func.hessian(lambda x: (x**3).sum())(row(t))),
    "jacrev inside no_grad": lambda t: quiet(
        t, t.no_grad, lambda: t.func.jacrev(lambda x: x**3)(row(t).requires_grad_())),
    "is_grad_enabled inside": lambda t: t.func.grad(lambda x: (x.sum(), x.new_tensor(
        float(t.is_grad_enabled()))), has_aux=True)(X(t)),
    "is_grad_enabled inside, in no_grad": lambda t: quiet(t, t.no_grad, lambda: t.func.grad(
        lambda x: (x.sum(), x.new_tensor(float(t.is_grad_enabled()))), has_aux=True)(X(t))),
    "is_grad_enabled in vmap, in no_grad": lambda t: quiet(t, t.no_grad, lambda: t.func.vmap(
        lambda x: x * float(t.is_grad_enabled()))(X(t))),
    "is_grad_enabled in jvp, in no_grad": lambda t: quiet(t, t.no_grad, lambda: t.func.jvp(
        lambda x: x * float(t.is_grad_enabled()), (X(t),), (X(t),))),
    "is_grad_enabled after": lambda t: quiet(t, t.no_grad, lambda: (t.func.grad(
        lambda x: x.sum())(X(t)), t.is_grad_enabled())[1]),
    "vmap inside inference_mode": lambda t: quiet(t, t.inference_mode, lambda: t.func.vmap(
        lambda x: (x * x).sum())(X(t))),
    "jvp inside inference_mode": lambda t: quiet(t, t.inference_mode, lambda: [
        y.tolist() for y in t.func.jvp(lambda x: x * x, (X(t),), (X(t),))]),
})  # fmt: skip


# --- captured tensors that require grad -----------------------------------------------------------
def weights(t: Any) -> Any:
    return t.tensor([0.5, -2.0], requires_grad=True)


@cases
def requires_grad_of_results(t: Any) -> Any:
    w = weights(t)
    x = X(t)
    v = t.func.vmap
    g = t.func.grad
    return [
        v(lambda r: r * w)(x),
        v(lambda r: r * 2)(x),
        v(lambda r: w * 2)(x),
        g(lambda y: (y * w).sum())(x),
        g(lambda y: (y * y).sum() + w.sum())(x),
        g(lambda y: (y * y * w).sum())(x),
        v(g(lambda r: (r * w).sum()))(x),
        v(g(lambda r: (r * r).sum()))(x),
        t.func.grad_and_value(lambda y: (y * y).sum() + w.sum())(x),
        g(lambda y: ((y * y).sum(), (w * 2, y)), has_aux=True)(x),
        t.func.jvp(lambda y: y * w, (x,), (x,)),
        t.func.jvp(lambda y: y + w, (x,), (x,)),
        t.func.jacrev(lambda y: y * w)(x[0]),
        t.func.jacfwd(lambda y: y * w)(x[0]),
        t.func.hessian(lambda y: (y * y * w).sum())(x[0]),
        t.func.vjp(lambda y: y * w, x)[0],
        t.func.vjp(lambda y: y * w, x)[1](x),
        t.func.vjp(lambda y: y * 2, x)[1](x),
        t.func.linearize(lambda y: y * w, x)[0],
        t.func.linearize(lambda y: y * w, x)[1](x),
    ]


@cases
def requires_grad_of_inputs(t: Any) -> Any:
    x = X(t).requires_grad_()
    y = x * 2
    v, g = t.func.vmap, t.func.grad
    return [
        v(lambda r: r * 2)(x),
        g(lambda z: (z * z).sum())(x),
        g(lambda z: z.sum())(x),
        g(lambda z: (z * z).sum())(y),
        t.func.jvp(lambda z: z * z, (x,), (X(t),)),
        t.func.jvp(lambda z: z * 2, (X(t),), (x,)),
        t.func.vjp(lambda z: z * z, x)[0],
        t.func.vjp(lambda z: z * z, x)[1](X(t)),
        t.func.vjp(lambda z: z * 2, x)[1](X(t)),
        t.func.vjp(lambda z: z * 2, X(t))[1](x),
        t.func.jacrev(lambda z: z * z)(x[0]),
        t.func.jacrev(lambda z: z * 2)(x[0]),
        t.func.jacfwd(lambda z: z * z)(x[0]),
        t.func.hessian(lambda z: (z**3).sum())(x[0]),
        t.func.hessian(lambda z: (z**2).sum())(x[0]),
        t.func.grad_and_value(lambda z: (z * z).sum())(x),
        v(g(lambda r: (r * r).sum()))(x),
        v(g(lambda r: r.sum()))(x),
    ]


def after_backward(t: Any, make: Callable[[Any], Any]) -> Any:
    w = weights(t)
    y = make(w)
    y.sum().backward()
    return y, w.grad


several("backward through", {
    "grad": lambda t: after_backward(t, lambda w: t.func.grad(
        lambda x: (x * x * w).sum())(X(t))),
    "value of grad_and_value": lambda t: after_backward(t, lambda w: t.func.grad_and_value(
        lambda x: (x * x * w).sum())(X(t))[1]),
    "aux of grad": lambda t: after_backward(t, lambda w: t.func.grad(
        lambda x: ((x * x).sum(), x * w), has_aux=True)(X(t))[1]),
    "vmap": lambda t: after_backward(t, lambda w: t.func.vmap(lambda x: (x * w).sin())(X(t))),
    "vmap of grad": lambda t: after_backward(t, lambda w: t.func.vmap(
        t.func.grad(lambda x: (x * w).sin().sum()))(X(t))),
    "grad of vmap": lambda t: after_backward(t, lambda w: t.func.grad(
        lambda x: t.func.vmap(lambda r: (r * w).sin())(x).sum())(X(t))),
    "vjp": lambda t: after_backward(t, lambda w: t.func.vjp(
        lambda x: (x * w).sin(), X(t))[1](X(t))[0]),
    "vjp's output": lambda t: after_backward(t, lambda w: t.func.vjp(
        lambda x: (x * w).sin(), X(t))[0]),
    "jvp": lambda t: after_backward(t, lambda w: t.func.jvp(
        lambda x: (x * w).sin(), (X(t),), (X(t),))[1]),
    "jvp's output": lambda t: after_backward(t, lambda w: t.func.jvp(
        lambda x: (x * w).sin(), (X(t),), (X(t),))[0]),
    "jacrev": lambda t: after_backward(t, lambda w: t.func.jacrev(
        lambda x: (x * w).sin())(X(t)[0])),
    "jacrev in chunks": lambda t: after_backward(t, lambda w: t.func.jacrev(
        lambda x: (x * w).sin(), chunk_size=1)(X(t)[0])),
    "jacfwd": lambda t: after_backward(t, lambda w: t.func.jacfwd(
        lambda x: (x * w).sin())(X(t)[0])),
    "hessian": lambda t: after_backward(t, lambda w: t.func.hessian(
        lambda x: (x * w).sin().sum())(X(t)[0])),
    "linearize": lambda t: after_backward(t, lambda w: t.func.linearize(
        lambda x: (x * w).sin(), X(t))[0]),
    "grad of grad": lambda t: after_backward(t, lambda w: t.func.grad(lambda x: t.func.grad(
        lambda y: (y**3 * w).sum())(x).sum())(X(t))),
    "grad where w is the input": lambda t: after_backward(t, lambda w: t.func.grad(
        lambda v: (v**3).sum())(w)),
    "jvp where w is the input": lambda t: after_backward(t, lambda w: t.func.jvp(
        lambda v: v**3, (w,), (t.ones(2),))[1]),
    "jvp where w is the tangent": lambda t: after_backward(t, lambda w: t.func.jvp(
        lambda v: v**3, (X(t)[1],), (w,))[1]),
    "vjp where w is the cotangent": lambda t: after_backward(t, lambda w: t.func.vjp(
        lambda v: v**3, X(t)[1])[1](w)[0]),
    "vmap where w is the batch": lambda t: after_backward(t, lambda w: t.func.vmap(
        lambda v: v**3)(w)),
    "vmap of vmap": lambda t: after_backward(t, lambda w: t.func.vmap(t.func.vmap(
        lambda x: x * w))(X(t))),
    "hessian where w is the input": lambda t: after_backward(t, lambda w: t.func.hessian(
        lambda v: (v**4).sum())(w)),
    "jacrev where w is the input": lambda t: after_backward(t, lambda w: t.func.jacrev(
        lambda v: v**4)(w)),
    "jacfwd where w is the input": lambda t: after_backward(t, lambda w: t.func.jacfwd(
        lambda v: v**4)(w)),
    "captured non-leaf": lambda t: after_backward(t, lambda w: (lambda u: t.func.grad(
        lambda x: (x**2 * u).sum())(X(t)))(w * 3)),
    "captured view": lambda t: after_backward(t, lambda w: (lambda u: t.func.vmap(
        lambda x: x * u)(X(t)))(w[1:])),
    "unrelated": lambda t: after_backward(t, lambda w: t.func.grad(
        lambda x: (x * x).sum())(X(t))),
    "twice": lambda t: after_backward(t, lambda w: (lambda y: (y.sum().backward(
        retain_graph=True), y)[1])(t.func.grad(lambda x: (x * x * w).sum())(X(t)))),
})  # fmt: skip


@cases
def double_backward_through_vmap_of_grad(t: Any) -> Any:
    w = weights(t)
    y = t.func.vmap(t.func.grad(lambda x: (x * w).sin().sum()))(X(t))
    (g,) = t.autograd.grad(y.sum(), w, create_graph=True)
    g.sum().backward()
    return g, w.grad


@cases
def autograd_grad_of_captured_in_the_function(t: Any) -> Any:
    w = weights(t)
    return t.autograd.grad(t.func.vmap(lambda x: (x * w).sum())(X(t)).sum(), w)


# --- vjp ------------------------------------------------------------------------------------------
several("vjp", {
    "value and product": lambda t: (lambda o: (o[0], o[1](X(t))))(t.func.vjp(t.sin, X(t))),
    "several outputs": lambda t: (lambda o: (o[0], o[1]((X(t), X(t)))))(
        t.func.vjp(lambda x: (x * 2, x.sin()), X(t))),
    "a dict": lambda t: (lambda o: (o[0], o[1]({"a": X(t), "b": X(t)})))(
        t.func.vjp(lambda x: {"a": x * 2, "b": x.sin()}, X(t))),
    "a list": lambda t: (lambda o: (o[0], o[1]([X(t)])))(t.func.vjp(lambda x: [x * 2], X(t))),
    "a tuple for a list": lambda t: t.func.vjp(lambda x: [x * 2], X(t))[1]((X(t),)),
    "several inputs": lambda t: t.func.vjp(
        lambda x, y: x * y, X(t), X(t) + 1)[1](X(t)),
    "a tree of inputs": lambda t: t.func.vjp(
        lambda d, y: d["a"] * y[0], {"a": X(t)}, [X(t) + 1])[1](X(t)),
    "aux": lambda t: (lambda o: (o[0], o[1](X(t)), o[2]))(
        t.func.vjp(lambda x: (x * 2, {"k": x + 1}), X(t), has_aux=True)),
    "aux missing": lambda t: t.func.vjp(lambda x: x, X(t), has_aux=True),
    "aux no tensor": lambda t: t.func.vjp(lambda x: (x, "s"), X(t), has_aux=True),
    "wrong structure": lambda t: t.func.vjp(lambda x: (x, x), X(t))[1](X(t)),
    "wrong shape": lambda t: t.func.vjp(lambda x: x * 2, X(t))[1](t.ones(2)),
    "wrong shape that broadcasts": lambda t: t.func.vjp(lambda x: x * 2, X(t))[1](t.ones(1)),
    "wrong dtype": lambda t: t.func.vjp(lambda x: x * 2, X(t))[1](X(t).double()),
    "no tensor": lambda t: t.func.vjp(lambda x: x * 2, X(t))[1](2.0),
    "None": lambda t: t.func.vjp(lambda x: x * 2, X(t))[1](None),
    "output no tensor": lambda t: t.func.vjp(lambda x: 5, X(t)),
    "output None": lambda t: t.func.vjp(lambda x: None, X(t)),
    "output empty": lambda t: t.func.vjp(lambda x: (), X(t)),
    "output with None": lambda t: t.func.vjp(lambda x: (x, None), X(t)),
    "integer output": lambda t: t.func.vjp(lambda x: x.argmax(), X(t)),
    "bool output": lambda t: t.func.vjp(lambda x: x > 1, X(t)),
    "complex output": lambda t: t.func.vjp(lambda x: x + 1j, X(t))[1](
        t.ones(3, 2, dtype=t.complex64)),
    "no primals": lambda t: t.func.vjp(lambda: None),
    "no primals, an output": lambda t: t.func.vjp(lambda: t.ones(2))[0],
    "primal no tensor": lambda t: t.func.vjp(lambda x: x, 2.0),
    "integer primal": lambda t: t.func.vjp(lambda x: x * 2.0, t.arange(3)),
    "output is the input": lambda t: (lambda o: (o[0], o[1](X(t))))(
        t.func.vjp(lambda x: x, X(t))),
    "output a constant": lambda t: t.func.vjp(lambda x: t.ones(2), X(t))[1](t.ones(2)),
    "output of a constant and more": lambda t: t.func.vjp(
        lambda x: (t.ones(2), x * 2), X(t))[1]((t.ones(2), X(t))),
    "called twice": lambda t: (lambda f: (f(X(t)), f(X(t) + 1)))(
        t.func.vjp(lambda x: x**2, X(t))[1]),
    "retain_graph=False": lambda t: (lambda f: (
        f(X(t), retain_graph=False), lambda: f(X(t))))(t.func.vjp(lambda x: x**2, X(t))[1]),
    "create_graph": lambda t: t.func.vjp(lambda x: x**2, X(t))[1](
        X(t).requires_grad_(), create_graph=True),
    "create_graph=False": lambda t: t.func.vjp(lambda x: x**2, X(t))[1](
        X(t).requires_grad_(), create_graph=False),
    "retain_graph and create_graph": lambda t: (lambda f: (
        f(X(t), retain_graph=False, create_graph=False), lambda: f(X(t))))(
        t.func.vjp(lambda x: x**2, X(t))[1]),
    "vmap over it": lambda t: t.func.vmap(t.func.vjp(lambda x: x**2, X(t))[1])(
        t.stack([X(t), X(t) + 1])),
    "grad through it": lambda t: t.func.grad(
        lambda c: (t.func.vjp(lambda x: x**2, X(t))[1](c)[0] ** 2).sum())(X(t)),
    "grad through a vjp made outside": lambda t: (lambda f: t.func.grad(
        lambda c: (f(c)[0] ** 2).sum())(X(t)))(t.func.vjp(lambda x: x**2, X(t))[1]),
    "jvp through a vjp made outside": lambda t: (lambda f: t.func.jvp(
        lambda c: f(c)[0], (X(t),), (X(t) + 1,)))(t.func.vjp(lambda x: x**2, X(t))[1]),
    "grad with its input outside": lambda t: t.func.grad(lambda y: t.func.vjp(
        lambda x: x**3, y)[1](X(t))[0].sum())(X(t)),
    "two vjp of one": lambda t: (lambda o: (o[1](X(t)), t.func.vjp(
        lambda x: x**3, o[0])[1](X(t))))(t.func.vjp(lambda x: x**2, X(t))),
    "kwargs refused": lambda t: t.func.vjp(lambda x, k: x * k, X(t), k=2),
    "view output": lambda t: t.func.vjp(lambda x: x[0], X(t))[1](t.ones(2)),
    "write to the output": lambda t: (lambda o: (o[0].mul_(0), o[1](X(t))))(
        t.func.vjp(lambda x: x * 2, X(t))),
})  # fmt: skip


# --- jvp and linearize ----------------------------------------------------------------------------
several("jvp", {
    "value and tangent": lambda t: t.func.jvp(lambda x: x**2, (X(t),), (X(t),)),
    "several": lambda t: t.func.jvp(lambda x, y: (x * y, y), (X(t), X(t)), (X(t), t.ones(3, 2))),
    "trees": lambda t: t.func.jvp(
        lambda d: {"o": [d["a"] * d["b"]]}, ({"a": X(t), "b": X(t)},), ({"a": X(t), "b": X(t)},)),
    "primals no tuple": lambda t: t.func.jvp(lambda x: x, X(t), (X(t),)),
    "primals a list": lambda t: t.func.jvp(lambda x: x, [X(t)], [X(t)]),
    "tangents no tuple": lambda t: t.func.jvp(lambda x: x, (X(t),), X(t)),
    "one tangent more": lambda t: t.func.jvp(lambda x: x, (X(t),), (X(t), X(t))),
    "another structure": lambda t: t.func.jvp(
        lambda x, y: x, (X(t), X(t)), (X(t), (X(t),))),
    "another shape": lambda t: t.func.jvp(lambda x: x, (X(t),), (t.ones(2),)),
    "another dtype": lambda t: t.func.jvp(lambda x: x * 2, (X(t),), (X(t).double(),)),
    "integer tangent": lambda t: t.func.jvp(lambda x: x * 2, (X(t),), (t.ones(3, 2).long(),)),
    "integer primal": lambda t: t.func.jvp(lambda x: x * 2, (t.arange(3),), (t.arange(3),)),
    "tangent None": lambda t: t.func.jvp(lambda x: x * 2, (X(t),), (None,)),
    "primal None": lambda t: t.func.jvp(lambda x, y: x * 2, (X(t), None), (X(t), None)),
    "primal a number": lambda t: t.func.jvp(lambda x: x * 2, (2.0,), (1.0,)),
    "no primals": lambda t: t.func.jvp(lambda: 1, (), ()),
    "output no tensor": lambda t: t.func.jvp(lambda x: 5, (X(t),), (X(t),)),
    "output None": lambda t: t.func.jvp(lambda x: None, (X(t),), (X(t),)),
    "output empty": lambda t: t.func.jvp(lambda x: (), (X(t),), (X(t),)),
    "output independent": lambda t: t.func.jvp(lambda x: t.ones(2), (X(t),), (X(t),)),
    "output independent, strict": lambda t: t.func.jvp(
        lambda x: t.ones(2), (X(t),), (X(t),), strict=True),
    "output is the input": lambda t: t.func.jvp(lambda x: x, (X(t),), (X(t) + 1,)),
    "integer output": lambda t: t.func.jvp(lambda x: x.argmax(), (X(t),), (X(t),)),
    "bool output": lambda t: t.func.jvp(lambda x: x > 1, (X(t),), (X(t),)),
    "complex output": lambda t: t.func.jvp(lambda x: x * 1j, (X(t),), (X(t),)),
    "aux": lambda t: t.func.jvp(lambda x: (x**2, {"a": x}), (X(t),), (X(t),), has_aux=True),
    "aux missing": lambda t: t.func.jvp(lambda x: x**2, (X(t),), (X(t),), has_aux=True),
    "aux no tensor": lambda t: t.func.jvp(lambda x: (x, "s"), (X(t),), (X(t),), has_aux=True),
    "of jvp": lambda t: t.func.jvp(lambda x: t.func.jvp(
        lambda y: y**3, (x,), (t.ones(3, 2),))[1], (X(t),), (t.ones(3, 2),)),
    "no confusion": lambda t: t.func.jvp(lambda x: x * t.func.jvp(
        lambda y: x + y, (t.tensor(1.0),), (t.tensor(1.0),))[1],
        (t.tensor(1.0),), (t.tensor(1.0),)),
    "no confusion, grad": lambda t: t.func.grad(lambda x: x * t.func.grad(
        lambda y: x + y)(t.tensor(1.0)))(t.tensor(1.0)),
    "no confusion, vjp in jvp": lambda t: t.func.jvp(lambda x: x * t.func.grad(
        lambda y: x * y)(t.tensor(2.0)), (t.tensor(3.0),), (t.tensor(1.0),)),
    "a value that escaped": lambda t: (lambda kept: (t.func.jvp(
        lambda x: (kept.append(x * 2), x)[1], (X(t),), (X(t),)), kept[0] + 1)[1])([]),
    "an escaped value in another jvp": lambda t: (lambda kept: (t.func.jvp(
        lambda x: (kept.append(x * 2), x)[1], (X(t),), (X(t),)), t.func.jvp(
        lambda x: x * kept[0], (X(t),), (X(t),)))[1])([]),
    "an outer dual level": lambda t: quiet(t, t.autograd.forward_ad.dual_level, lambda: list(
        t.autograd.forward_ad.unpack_dual(t.func.grad(lambda x: (x**3).sum())(
            t.autograd.forward_ad.make_dual(X(t), t.ones(3, 2)))))),
})  # fmt: skip

several("linearize", {
    "value and product": lambda t: (lambda o: (o[0], o[1](X(t))))(t.func.linearize(t.sin, X(t))),
    "several": lambda t: (lambda o: (o[0], o[1](X(t), X(t))))(
        t.func.linearize(lambda x, y: (x * y, {"k": y}), X(t), X(t) + 1)),
    "called twice": lambda t: (lambda f: (f(X(t)), f(X(t) + 1)))(
        t.func.linearize(lambda x: x**2, X(t))[1]),
    "a tree": lambda t: t.func.linearize(lambda d: d["a"] ** 2, {"a": X(t)})[1]({"a": X(t)}),
    "wrong shape": lambda t: t.func.linearize(t.sin, X(t))[1](t.ones(2)),
    "wrong dtype": lambda t: t.func.linearize(t.sin, X(t))[1](X(t).double()),
    "wrong structure": lambda t: t.func.linearize(t.sin, X(t))[1](X(t), X(t)),
    "integer primal": lambda t: t.func.linearize(lambda x: x * 2, t.arange(3)),
    "vmap over it": lambda t: t.func.vmap(t.func.linearize(lambda x: x**2, X(t))[1])(
        t.stack([X(t), X(t) + 1])),
    "independent output": lambda t: t.func.linearize(lambda x: t.ones(2), X(t))[1](X(t)),
})  # fmt: skip


# --- Jacobians ------------------------------------------------------------------------------------
def two(x: Any, y: Any) -> Any:
    return (x * 2 + y.sum(), {"k": x * y})


several("jacobians", {
    "jacrev": lambda t: t.func.jacrev(t.sin)(row(t)),
    "jacfwd": lambda t: t.func.jacfwd(t.sin)(row(t)),
    "jacrev of a matrix": lambda t: t.func.jacrev(lambda x: x.sum(0))(X(t)),
    "jacfwd of a matrix": lambda t: t.func.jacfwd(lambda x: x.sum(0))(X(t)),
    "jacrev of a number": lambda t: t.func.jacrev(lambda x: x.sum())(X(t)),
    "jacfwd of a number": lambda t: t.func.jacfwd(lambda x: x.sum())(X(t)),
    "jacrev from a number": lambda t: t.func.jacrev(lambda x: x * row(t))(t.tensor(2.0)),
    "jacfwd from a number": lambda t: t.func.jacfwd(lambda x: x * row(t))(t.tensor(2.0)),
    "jacrev, several": lambda t: t.func.jacrev(two, (0, 1))(row(t), row(t)),
    "jacfwd, several": lambda t: t.func.jacfwd(two, (0, 1))(row(t), row(t)),
    "jacrev, one": lambda t: t.func.jacrev(two, 1)(row(t), row(t)),
    "jacfwd, one": lambda t: t.func.jacfwd(two, 1)(row(t), row(t)),
    "jacrev, one in a tuple": lambda t: t.func.jacrev(two, (1,))(row(t), row(t)),
    "jacfwd, one in a tuple": lambda t: t.func.jacfwd(two, (1,))(row(t), row(t)),
    "jacrev, negative": lambda t: t.func.jacrev(two, -1)(row(t), row(t)),
    "jacrev of a dict": lambda t: t.func.jacrev(
        lambda d: d["a"] * d["b"])({"a": row(t), "b": row(t)}),
    "jacfwd of a dict": lambda t: t.func.jacfwd(
        lambda d: d["a"] * d["b"])({"a": row(t), "b": row(t)}),
    "jacrev of a namedtuple": lambda t: t.func.jacrev(
        lambda p: Pair(p.a * 2, p.b))(Pair(row(t), row(t)[:1])),
    "jacfwd of a namedtuple": lambda t: t.func.jacfwd(
        lambda p: Pair(p.a * 2, p.b))(Pair(row(t), row(t)[:1])),
    "jacrev, aux": lambda t: t.func.jacrev(lambda x: (x.sin(), x * 2), has_aux=True)(row(t)),
    "jacfwd, aux": lambda t: t.func.jacfwd(lambda x: (x.sin(), x * 2), has_aux=True)(row(t)),
    "jacrev, aux a tree": lambda t: t.func.jacrev(
        lambda x: (x.sin(), {"a": [x * 2]}), has_aux=True)(row(t)),
    "jacfwd, aux a tree": lambda t: t.func.jacfwd(
        lambda x: (x.sin(), {"a": [x * 2]}), has_aux=True)(row(t)),
    "jacrev, aux missing": lambda t: t.func.jacrev(t.sin, has_aux=True)(row(t)),
    "jacfwd, aux missing": lambda t: t.func.jacfwd(t.sin, has_aux=True)(row(t)),
    "jacrev, chunk_size 1": lambda t: t.func.jacrev(two, (0, 1), chunk_size=1)(row(t), row(t)),
    "jacrev, chunk_size 2": lambda t: t.func.jacrev(two, (0, 1), chunk_size=2)(row(t), row(t)),
    "jacrev, chunk_size 100": lambda t: t.func.jacrev(t.sin, chunk_size=100)(row(t)),
    "jacrev, chunk_size 0": lambda t: t.func.jacrev(t.sin, chunk_size=0)(row(t)),
    "jacrev, in place": lambda t: t.func.jacrev(
        two, (0, 1), _preallocate_and_copy=True)(row(t), row(t)),
    "jacrev, in place in chunks": lambda t: t.func.jacrev(
        two, (0, 1), chunk_size=2, _preallocate_and_copy=True)(row(t), row(t)),
    "jacrev, no tensor": lambda t: t.func.jacrev(lambda x: 5)(row(t)),
    "jacfwd, no tensor": lambda t: t.func.jacfwd(lambda x: 5)(row(t)),
    "jacrev, None": lambda t: t.func.jacrev(lambda x: None)(row(t)),
    "jacfwd, None": lambda t: t.func.jacfwd(lambda x: None)(row(t)),
    "jacrev of integers": lambda t: t.func.jacrev(lambda x: x * 2)(t.arange(3)),
    "jacfwd of integers": lambda t: t.func.jacfwd(lambda x: x * 2)(t.arange(3)),
    "jacrev to integers": lambda t: t.func.jacrev(lambda x: x.long())(row(t)),
    "jacfwd to integers": lambda t: t.func.jacfwd(lambda x: x.long())(row(t)),
    "jacrev of complex": lambda t: t.func.jacrev(lambda x: x * 2)(t.ones(2, dtype=t.complex64)),
    "jacfwd of complex": lambda t: t.func.jacfwd(lambda x: x * 2)(t.ones(2, dtype=t.complex64)),
    "jacrev to complex": lambda t: t.func.jacrev(lambda x: x + 1j)(row(t)),
    "jacfwd to complex": lambda t: t.func.jacfwd(lambda x: x + 1j)(row(t)),
    "jacrev, independent": lambda t: t.func.jacrev(lambda x: t.ones(2))(row(t)),
    "jacfwd, independent": lambda t: t.func.jacfwd(lambda x: t.ones(2))(row(t)),
    "jacrev, of a number": lambda t: t.func.jacrev(lambda x: x)(2.0),
    "jacrev, argnums too large": lambda t: t.func.jacrev(t.sin, 1)(row(t)),
    "jacfwd, argnums too large": lambda t: t.func.jacfwd(t.sin, 1)(row(t)),
    "jacrev, argnums a list": lambda t: t.func.jacrev(t.sin, [0])(row(t)),
    "jacfwd, argnums a list": lambda t: t.func.jacfwd(t.sin, [0])(row(t)),
    "jacrev, argnums empty": lambda t: t.func.jacrev(t.sin, ())(row(t)),
    "jacfwd, argnums empty": lambda t: t.func.jacfwd(t.sin, ())(row(t)),
    "jacrev, mixed dtypes": lambda t: t.func.jacrev(
        lambda x, y: x.double() * y, (0, 1))(row(t), row(t).double()),
    "jacfwd, mixed dtypes": lambda t: t.func.jacfwd(
        lambda x, y: x.double() * y, (0, 1))(row(t), row(t).double()),
    "jacfwd, random": lambda t: t.func.jacfwd(lambda x: x * t.rand(3))(row(t)),
    "jacfwd, random the same": lambda t: list(t.func.jacfwd(
        lambda x: x * t.rand(3), randomness="same")(row(t)).shape),
    "jacrev, random": lambda t: list(t.func.jacrev(lambda x: x * t.rand(3))(row(t)).shape),
    "jacrev of an empty tensor": lambda t: t.func.jacrev(lambda x: x * 2)(t.ones(0)),
    "jacfwd of an empty tensor": lambda t: t.func.jacfwd(lambda x: x * 2)(t.ones(0)),
    "jacrev to an empty tensor": lambda t: t.func.jacrev(lambda x: x[:0])(row(t)),
    "jacfwd to an empty tensor": lambda t: t.func.jacfwd(lambda x: x[:0])(row(t)),
    "hessian": lambda t: t.func.hessian(lambda x: (x**3).sum())(row(t)),
    "hessian of a dict": lambda t: t.func.hessian(
        lambda d: (d["a"] ** 2 * d["b"]).sum())({"a": row(t), "b": row(t)}),
    "hessian, several": lambda t: t.func.hessian(
        lambda x, y: (x**2 * y).sum(), (0, 1))(row(t), row(t)),
    "hessian of a vector": lambda t: t.func.hessian(lambda x: x**3)(row(t)),
    "hessian, linear": lambda t: t.func.hessian(lambda x: x.sum())(row(t)),
    "hessian by jacrev of jacrev": lambda t: t.func.jacrev(t.func.jacrev(
        lambda x: (x**3).sum()))(row(t)),
    "names": lambda t: [f(X).__name__ for f in (t.func.jacrev, t.func.jacfwd)],
    "vmap of jacrev": lambda t: t.func.vmap(t.func.jacrev(t.sin))(X(t)),
    "vmap of jacrev in chunks": lambda t: t.func.vmap(
        t.func.jacrev(t.sin, chunk_size=1), chunk_size=2)(X(t)),
    "vmap of hessian": lambda t: t.func.vmap(t.func.hessian(lambda x: (x**3).prod()))(X(t) + 1),
})  # fmt: skip


# --- threads, errors, and what is left behind -----------------------------------------------------
@cases
def an_error_leaves_nothing_behind(t: Any) -> Any:
    def fail(x: Any) -> Any:
        raise KeyError("inside")

    found: list[Any] = []
    for transform in (
        lambda: t.func.grad(fail)(X(t)),
        lambda: t.func.vmap(fail)(X(t)),
        lambda: t.func.jvp(fail, (X(t),), (X(t),)),
        lambda: t.func.vjp(fail, X(t)),
        lambda: t.func.jacrev(fail)(X(t)),
        lambda: t.func.jacfwd(fail)(X(t)),
        lambda: t.func.hessian(fail)(X(t)),
        lambda: t.func.vmap(t.func.grad(fail))(X(t)),
        lambda: t.func.linearize(fail, X(t)),
    ):
        found.append(attempt(t, transform))
        x = X(t).requires_grad_()
        (x * x).sum().backward()
        found.append(x.grad)
    return found


@cases
def vmap_of_a_function_with_state(t: Any) -> Any:
    calls: list[int] = []

    def f(x: Any) -> Any:
        calls.append(1)
        return x * len(calls)

    return t.func.vmap(f)(X(t)), len(calls), t.func.vmap(f, chunk_size=1)(X(t)), len(calls)


@cases
def custom_functions_inside(t: Any) -> Any:
    class Twice(t.autograd.Function):  # type: ignore[misc, name-defined]
        generate_vmap_rule = True

        @staticmethod
        def forward(x: Any) -> Any:
            return x * 2

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 5

    def f(x: Any) -> Any:
        return (Twice.apply(x) ** 2).sum()

    return [
        lambda: t.func.grad(f)(X(t)),
        lambda: t.func.vmap(f)(X(t)),
        lambda: t.func.vmap(t.func.grad(f))(X(t)),
        lambda: t.func.grad(lambda x: t.func.vmap(f)(x).sum())(X(t)),
        lambda: t.func.jacrev(lambda x: Twice.apply(x))(row(t)),
        lambda: t.func.jvp(f, (X(t),), (X(t),)),
    ]


@cases
def nested_vmap_in_dims(t: Any) -> Any:
    a, b = t.arange(6.0).reshape(2, 3), t.arange(12.0).reshape(3, 4)
    v = t.func.vmap
    return v(v(t.dot, (None, 1)), (0, None))(a, b), v(v(lambda x, y: x + y, (0, None)), (None, 0))(
        a[0], b[0]
    )


@cases
def grad_of_a_function_of_vmap_of_grad(t: Any) -> Any:
    w = t.tensor([1.0, 2.0])

    def per_sample(w: Any) -> Any:
        return t.func.vmap(t.func.grad(lambda x, w: (x * w).sin().sum()), (0, None))(X(t), w)

    return t.func.jacrev(lambda w: per_sample(w).sum(0))(w), t.func.grad(
        lambda w: (per_sample(w) ** 2).sum()
    )(w)


@cases
def unbatched_writes_of_shared_values(t: Any) -> Any:
    """In `vmap(grad(f), (None, 0))` a buffer may take what all members share."""

    def f(w: Any, x: Any) -> Any:
        b = t.zeros(2)
        b[0] = w[0] * 3
        return (b * x).sum() + w.sum()

    return t.func.vmap(t.func.grad(f), (None, 0))(t.tensor([1.0, 2.0]), X(t))


@cases
def a_captured_weight_written_into_a_batch(t: Any) -> Any:
    w = weights(t)

    def f(x: Any) -> Any:
        y = x.clone()
        head = y[:1]
        y[0] = w[0]
        return (head * 3).sum() + y.sum()

    found = t.func.vmap(f)(X(t))
    found.sum().backward()
    return found, w.grad


results = cases.results
