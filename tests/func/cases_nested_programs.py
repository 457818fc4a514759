"""Random programs of nested transforms, with views, in-place writes, captured tensors and modes.

`run(lib, seed)` writes the program of that seed, runs it with a library that has PyTorch's names,
and returns what one can observe: values, structure, the gradients that captured leaves get, or the
kind of error. The same seed gives the same program for every library.

A program is a `Body`: steps on numbers, vectors of 3 and 3x3 matrices ("s", "v", "m"), some of
which are transforms of bodies inside, which see the values outside. `text(seed)` shows a program.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple

from tests.func.cases_transforms import attempt, significant

__all__ = ["results", "run", "sound", "text"]

SEEDS = range(400)

DEPTH = 4  # of bodies inside bodies

# A step's result kind and the kinds of its operands; `lib` and operands in, a tensor out.
Rule = Callable[..., Any]
OPS: dict[str, tuple[str, str, Rule]] = {
    "add": ("v", "vv", lambda lib, a, b: a + b),
    "add number": ("v", "vs", lambda lib, a, b: a + b),
    "sub": ("v", "vv", lambda lib, a, b: a - b * 0.5),
    "mul": ("v", "vv", lambda lib, a, b: a * b),
    "scale": ("v", "vs", lambda lib, a, b: a * b),
    "div": ("v", "vv", lambda lib, a, b: a / (1 + b * b)),
    "sin": ("v", "v", lambda lib, a: a.sin()),
    "tanh": ("v", "v", lambda lib, a: lib.tanh(a)),
    "exp": ("v", "v", lambda lib, a: (-a * a).exp()),
    "square": ("v", "v", lambda lib, a: a**2),
    "softmax": ("v", "v", lambda lib, a: a.softmax(-1)),
    "cumsum": ("v", "v", lambda lib, a: a.cumsum(0)),
    "where": ("v", "vvv", lambda lib, a, b, c: lib.where(a > 0.1, b, c * 2)),
    "choose": ("v", "svv", lambda lib, a, b, c: lib.where(a > 0, b, c)),
    "clamp": ("v", "v", lambda lib, a: a.clamp(-0.7, 0.8)),
    "gather": ("v", "v", lambda lib, a: a[[2, 0, 0]]),
    "roll": ("v", "v", lambda lib, a: a.roll(1) * 0.5),
    "flip": ("v", "v", lambda lib, a: a.flip(0)),
    "sorted": ("v", "v", lambda lib, a: a.sort()[0]),
    "index": ("v", "vv", lambda lib, a, b: a[(b * 1000).round().argmax()] * b),
    "one hot": ("v", "v", lambda lib, a: a * lib.nn.functional.one_hot(a.argmin(), 3)),
    "stack": ("v", "sss", lambda lib, a, b, c: lib.stack([a, b, c])),
    "cat": ("v", "vv", lambda lib, a, b: lib.cat([a[:1], b[1:]])),
    "mv": ("v", "mv", lambda lib, a, b: a @ b),
    "vm": ("v", "vm", lambda lib, a, b: (a @ b).tanh()),
    "detach": ("v", "v", lambda lib, a: a.detach() * a),
    "clone": ("v", "v", lambda lib, a: a.clone()),
    "copy": ("v", "v", lambda lib, a: a * 1),
    "like zeros": ("v", "v", lambda lib, a: lib.zeros_like(a)),
    "new zeros": ("v", "v", lambda lib, a: a.new_zeros(3)),
    "new ones": ("v", "s", lambda lib, a: a.new_ones(3)),
    "zeros": ("v", "", lambda lib: lib.zeros(3, dtype=lib.float64)),
    "integers": ("v", "v", lambda lib, a: (a * 4).long().double() + a),
    "float32": ("v", "v", lambda lib, a: (a.float() * 2).double()),
    "row": ("v", "m", lambda lib, a: a[1]),
    "column": ("v", "m", lambda lib, a: a[:, 2]),
    "diagonal": ("v", "m", lambda lib, a: a.diagonal()),
    "sum rows": ("v", "m", lambda lib, a: a.sum(0) * 0.3),
    "max rows": ("v", "m", lambda lib, a: a.max(1)[0]),
    "sum": ("s", "v", lambda lib, a: a.sum()),
    "mean": ("s", "v", lambda lib, a: (a * a).mean()),
    "max": ("s", "v", lambda lib, a: a.max()),
    "prod": ("s", "v", lambda lib, a: a.tanh().prod()),
    "dot": ("s", "vv", lambda lib, a, b: a @ b),
    "norm": ("s", "v", lambda lib, a: (a * a + 1).sum().sqrt()),
    "logsumexp": ("s", "v", lambda lib, a: a.logsumexp(0)),
    "first": ("s", "v", lambda lib, a: a[0]),
    "last": ("s", "v", lambda lib, a: a[-1]),
    "number sin": ("s", "s", lambda lib, a: a.sin()),
    "number mul": ("s", "ss", lambda lib, a, b: a * b),
    "number add": ("s", "ss", lambda lib, a, b: a + b * 0.5),
    "number clone": ("s", "s", lambda lib, a: a.clone()),
    "trace": ("s", "m", lambda lib, a: a.trace()),
    "outer": ("m", "vv", lambda lib, a, b: lib.outer(a, b.sin())),
    "matmul": ("m", "mm", lambda lib, a, b: (a @ b).tanh()),
    "transpose": ("m", "m", lambda lib, a: a.t()),
    "matrix scale": ("m", "mv", lambda lib, a, b: a * b),
    "matrix sin": ("m", "m", lambda lib, a: a.sin()),
    "matrix zeros": ("m", "v", lambda lib, a: a.new_zeros(3, 3)),
    "matrix clone": ("m", "m", lambda lib, a: a.clone()),
    "diag": ("m", "v", lambda lib, a: lib.diag(a)),
    "stack rows": ("m", "vvv", lambda lib, a, b, c: lib.stack([a, b, c], 1)),
    "expand": ("m", "v", lambda lib, a: a.expand(3, 3) * 0.5),
}  # fmt: skip

# Writes: the first operand is written, never with itself (PyTorch's tangent is wrong then).
WRITES: dict[str, tuple[str, Rule]] = {
    "mul_": ("vv", lambda lib, a, b: a.mul_(b * 1)),
    "add_": ("vv", lambda lib, a, b: a.add_(b * 1)),
    "sin_": ("v", lambda lib, a: a.sin_()),
    "copy_": ("vv", lambda lib, a, b: a.copy_(b * 1)),
    "set first": ("vs", lambda lib, a, b: a.__setitem__(0, b)),
    "set rest": ("vv", lambda lib, a, b: a.__setitem__(slice(1, None), b[:2] * 1)),
    "set number": ("v", lambda lib, a: a.__setitem__(2, 0.25)),
    "rest sin_": ("v", lambda lib, a: a[1:].sin_()),
    "zero_": ("v", lambda lib, a: a[:1].zero_()),
    "fill_": ("vs", lambda lib, a, b: a[1:].fill_(b)),
    "iadd": ("vs", lambda lib, a, b: a.__iadd__(b)),
    "number mul_": ("ss", lambda lib, a, b: a.mul_(b * 1)),
    "number tanh_": ("s", lambda lib, a: a.tanh_()),
    "set row": ("mv", lambda lib, a, b: a.__setitem__(1, b)),
    "set column": ("mv", lambda lib, a, b: a.__setitem__((slice(None), 0), b)),
    "row mul_": ("mv", lambda lib, a, b: a[2].mul_(b)),
    "diagonal add_": ("mv", lambda lib, a, b: a.diagonal().add_(b)),
    "matrix mul_": ("mm", lambda lib, a, b: a.mul_(b * 1)),
    "matrix masked_fill_": ("m", lambda lib, a: a.masked_fill_(a > 0.4, 0.1)),
}  # fmt: skip

TRANSFORMS = ["grad", "vmap", "jvp", "vjp", "jacrev", "jacfwd", "hessian", "value"]
ENDS = ["one", "one", "one", "tuple", "dict"]
VIEWS = {"row", "column", "diagonal", "first", "last", "transpose"}
OWNED = {"clone", "copy", "like zeros", "new zeros", "new ones", "zeros", "matrix zeros", "add",
         "matrix clone", "number clone", "mul", "sin", "stack", "outer", "matmul"}  # fmt: skip


class Step(NamedTuple):
    """One line of a body: an op, a write, or a transform of an inner body (`how` says which)."""

    how: str
    name: str
    operands: tuple[int, ...]
    body: Any = None
    quiet: bool = False  # inside no_grad
    choice: int = 0


class Body(NamedTuple):
    """A function of one tensor: value 0 is its argument, then come the values of the bodies around
    it, then those of its steps."""

    argument: str
    around: int
    steps: list[Step]
    ends: tuple[int, ...]
    end: str  # how they are returned
    kinds: list[str]


# --- writing programs -----------------------------------------------------------------------------
class Writer:
    """Writes the program of a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.left = 34  # steps, in all bodies together
        # how programs differ: many transforms, many writes, long chains
        self.nests = self.rng.choice([0.15, 0.22, 0.35])
        self.writes = self.rng.choice([0.2, 0.3, 0.45])
        self.chains = self.rng.choice([0.4, 0.6, 0.75])

    def body(self, argument: str, around: list[str], depth: int, end: str = "") -> Body:
        """A function of a tensor of kind `argument` that returns one of kind `end`, if that is
        said."""
        rng = self.rng
        kinds = [argument, *around]
        owned: list[int] = []
        steps: list[Step] = []
        for _ in range(rng.randint(2, 6)):
            self.left -= 1
            dice = rng.random()
            step: Step | None = None
            kind = ""
            if dice < self.nests and depth < DEPTH and self.left > 0:
                step, kind = self.transform(kinds, depth)
            elif dice < self.nests + self.writes and owned:
                step = self.write(kinds, owned)
            if step is None:
                step, kind = self.op(kinds)
            steps.append(step)
            kinds.append(kind)
            if step.how == "op" and step.name in OWNED:
                owned.append(len(kinds) - 1)
        how = rng.choice(ENDS)
        if end:
            how = "one"
            while kinds[-1] != end:
                step, kind = self.op(kinds, end)
                steps.append(step)
                kinds.append(kind)
            ends = [len(kinds) - 1]
        else:
            late = [i for i in range(len(kinds)) if i == 0 or i > len(around)]
            ends = [len(kinds) - 1] + [rng.choice(late) for _ in range(2 if how != "one" else 0)]
        if any(not kinds[i] for i in ends):  # a write has no value
            ends = [i if kinds[i] else 0 for i in ends]
        return Body(argument, len(around), steps, tuple(ends), how, kinds)

    def pick(self, kinds: list[str], kind: str, among: list[int] | None = None) -> int | None:
        """A value of a kind; late ones and the argument more often."""
        found = [i for i in (range(len(kinds)) if among is None else among) if kinds[i] == kind]
        if not found:
            return None
        dice = self.rng.random()
        if dice < self.chains:
            return found[-1]
        if dice < self.chains + 0.12 and kinds[0] == kind and among is None:
            return 0
        return self.rng.choice(found[-4:] if dice < 0.93 else found)

    def op(self, kinds: list[str], end: str = "") -> tuple[Step, str]:
        rng = self.rng
        while True:
            name = rng.choice(list(OPS))
            kind, wanted, _ = OPS[name]
            if end and kind != end:
                continue
            operands = [self.pick(kinds, k) for k in wanted]
            if None not in operands:
                quiet = rng.random() < 0.05 and name not in VIEWS
                given = tuple(i for i in operands if i is not None)
                return Step("op", name, given, None, quiet), kind

    def write(self, kinds: list[str], owned: list[int]) -> Step | None:
        rng = self.rng
        name = rng.choice(list(WRITES))
        wanted, _ = WRITES[name]
        among = None if rng.random() < 0.06 else owned
        first = self.pick(kinds, wanted[0], among)
        others = [self.pick(kinds, k) for k in wanted[1:]]
        if first is None or None in others:
            return None
        quiet = rng.random() < 0.04
        operands = (first, *[i for i in others if i is not None])
        return Step("write", name, operands, None, quiet)

    def transform(self, kinds: list[str], depth: int) -> tuple[Step | None, str]:
        rng = self.rng
        name = rng.choice(TRANSFORMS)
        if name == "vmap":
            kind = rng.choice("vm")
            at = self.pick(kinds, kind)
            if at is None:
                return None, ""
            end = rng.choice("sv")
            inner = self.body("s" if kind == "v" else "v", kinds, depth + 1, end)
            step = Step("vmap", name, (at,), inner, False, rng.randrange(6))
            if kind == "v" or end == "s":
                return step, "v" if end == "s" else "m"
            return step, "m"
        argument = "v" if name == "hessian" else rng.choice("ssv")
        at = self.pick(kinds, argument)
        if at is None:
            return None, ""
        end = "s" if name in ("grad", "hessian", "value") else rng.choice("sv")
        inner = self.body(argument, kinds, depth + 1, end)
        along = self.pick(kinds, end if name == "vjp" else argument)
        operands = (at, at if along is None else along)
        quiet = rng.random() < 0.04
        step = Step(name, name, operands, inner, quiet, rng.randrange(4))
        if name in ("grad", "value", "vjp"):
            return step, argument
        if name == "jvp":
            return step, end
        if name == "hessian" or (argument == "v" and end == "v"):
            return step, "m"
        return step, "v" if "v" in (argument, end) else "s"


def program(seed: int) -> tuple[Body, list[str]]:
    """The outermost body, a function of a matrix, and the transforms around it."""
    writer = Writer(seed)
    body = writer.body("m", ["v", "v", "m", "s"], 0)
    return body, [writer.rng.choice(["plain", "vmap", "grad", "jvp", "plain"])]


# --- running programs -----------------------------------------------------------------------------
def run(lib: Any, seed: int) -> Any:
    """What the program of `seed` does, as plain Python values."""
    body, outer = program(seed)
    return without_flags(attempt(lib, lambda: performed(lib, body, outer[0])))


def without_flags(notes: Any) -> Any:
    """Whether a tensor requires grad depends, where its derivative is zero, on the formula; what
    captured leaves get does not."""
    if not isinstance(notes, list):
        return notes
    if notes and notes[0] == "tensor":
        return notes[:-1]
    return [without_flags(part) for part in notes]


def performed(lib: Any, body: Body, outer: str) -> Any:
    def numbers(*values: float) -> Any:
        return lib.tensor(values, dtype=lib.float64)

    w = numbers(0.4, -0.8, 0.3).requires_grad_()
    c = numbers(-0.2, 0.9, 0.5)
    m = (numbers(*[(i * 7 % 9) / 9 - 0.4 for i in range(9)])).reshape(3, 3).requires_grad_()
    x = (numbers(*[(i * 5 % 9) / 7 - 0.5 for i in range(9)])).reshape(3, 3)
    around = [w, c, m * 0.5, w[1] * 2]

    def f(t: Any) -> Any:
        return call(lib, body, t, around)

    if outer == "vmap":
        found = lib.func.vmap(f)(lib.stack([x, x.t() + 0.1]))
    elif outer == "grad":
        found = lib.func.grad_and_value(lambda t: total(f(t)))(x)
    elif outer == "jvp":
        found = lib.func.jvp(f, (x,), (x.cos(),))
    else:
        found = f(x)
    end = total(found)
    if end.requires_grad:
        end.backward()
    return found, *[lib.zeros_like(t) if t.grad is None else t.grad for t in (w, m)]


def total(found: Any) -> Any:
    """The sum of everything in a tree of tensors."""
    if isinstance(found, dict):
        found = list(found.values())
    if isinstance(found, (tuple, list)):
        parts = [total(part) for part in found]
        return sum(parts[1:], parts[0])
    return found.sum()


def call(lib: Any, body: Body, argument: Any, around: list[Any]) -> Any:
    """Run a body on its argument."""
    values = [argument, *around]
    for step in body.steps:
        operands = [values[i] for i in step.operands]
        with lib.no_grad() if step.quiet else nullcontext():
            values.append(one(lib, step, operands, values))
    found = [values[i] for i in body.ends]
    if body.end == "one":
        return found[0]
    return tuple(found) if body.end == "tuple" else {"b": found[0], "a": found[1:]}


def one(lib: Any, step: Step, operands: list[Any], values: list[Any]) -> Any:
    """The value of a step."""
    if step.how == "op":
        return OPS[step.name][2](lib, *operands)
    if step.how == "write":
        WRITES[step.name][1](lib, *operands)
        return None
    F = lib.func
    around = list(values)

    def f(x: Any) -> Any:
        return call(lib, step.body, x, around)

    x, other = operands[0], operands[-1]
    if step.how == "vmap":
        dim = 1 if step.choice == 1 and x.dim() == 2 else 0
        if step.choice == 2 and x.dim() == 2 and step.body.kinds[step.body.ends[0]] == "v":
            # what all members share, PyTorch puts in the wrong place
            return F.vmap(lambda r: f(r) + r.sum() * 0, 0, 1)(x)
        return F.vmap(f, dim, chunk_size=2 if step.choice == 3 else None)(x)
    if step.how == "grad":
        return F.grad(f)(x)
    if step.how == "value":
        gradient, value = F.grad_and_value(f)(x)
        return gradient * value
    if step.how == "jvp":
        return F.jvp(f, (x,), (lib.ones_like(x) if step.choice == 0 else other * 1,))[1]
    if step.how == "vjp":
        y, pull = F.vjp(f, x)
        return pull(y if step.choice == 0 or y.shape != other.shape else other)[0]
    if step.how == "jacrev":
        return F.jacrev(f, chunk_size=2 if step.choice == 1 else None)(x)
    return getattr(F, step.how)(f)(x)


# What PyTorch says where it trips over itself, or refuses what could be done.
TRIPS = (
    "INTERNAL ASSERT", "ZeroTensors are", "unallocated storage", "written-to tensor refers",
    "is not possible because there exists", "calling .item() on a Tensor or",
    "A view was created in no_grad mode", "is a view and is being modified inplace. This",
    "nan", "inf",
)  # fmt: skip


def sound(result: Any) -> bool:
    """Whether PyTorch went through the program in good order."""
    said = repr(result)
    return not any(words in said for words in TRIPS)


# --- reading programs -----------------------------------------------------------------------------
def text(seed: int) -> str:
    """The program of a seed, a line a step."""
    body, outer = program(seed)
    return f"# around: {outer[0]}; 1 w, 2 c, 3 m, 4 number\n" + "\n".join(lines(body, ""))


def lines(body: Body, indent: str) -> list[str]:
    found = [f"{indent}def f(x{0}: {body.argument}):  # {body.around} around"]
    indent += "    "
    at = body.around
    for step in body.steps:
        at += 1
        names = ", ".join(f"x{i}" for i in step.operands)
        mark = "  # no_grad" if step.quiet else ""
        if step.body is not None:
            found += lines(step.body, indent)
            mark += f"  # choice {step.choice}"
        found.append(f"{indent}x{at} = {step.name}({names}){mark}")
    ends = ", ".join(f"x{i}" for i in body.ends)
    return [*found, f"{indent}return {body.end}: {ends}"]


# --- results --------------------------------------------------------------------------------------
def results(lib: Any) -> Any:
    """By seed; programs that trip PyTorch are left out."""
    found = {str(seed): run(lib, seed) for seed in SEEDS}
    return significant({seed: result for seed, result in found.items() if sound(result)})
