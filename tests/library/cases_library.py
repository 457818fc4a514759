"""What `torch.library` does, case by case: see `harness`.

Without `from __future__ import annotations`: the functions are annotated with each library's own
Tensor, which is known only while the case runs.
"""
# ruff: noqa: UP006, UP007, UP035, UP045  # the old spellings of types are cases too

import functools
import itertools
import re
import typing
import warnings
from collections.abc import Callable, Sequence
from typing import Any, List, Optional, Tuple, Union

import numpy as np

from tests.harness import Case, Cases, attempt, grads, leaf, look
from tests.harness import plain as as_plain

_numbers = itertools.count()


class OperatorCases(Cases):
    """Operators have other names each time, so their numbers do not count."""

    def enter(self, name: str, fn: Case) -> Case:
        @functools.wraps(fn)
        def run(lib: Any) -> Any:
            return without_numbers(as_plain(lib, attempt(lambda: fn(lib))))

        return super().enter(name, run)


cases = OperatorCases()


def without_numbers(x: Any) -> Any:
    if isinstance(x, list):
        return [without_numbers(y) for y in x]
    if isinstance(x, dict):
        return {k: without_numbers(y) for k, y in x.items()}
    return re.sub(r"\bop\d+|(?<=_)op\d+(?=_)", "op", x) if isinstance(x, str) else x


def fresh() -> str:
    """A name that no operator has."""
    return f"compared::op{next(_numbers)}"


def made(lib: Any, fn: Any, **kwargs: Any) -> Any:
    kwargs.setdefault("mutates_args", ())
    return lib.library.custom_op(fresh(), fn, **kwargs)


def hidden(text: Any) -> Any:
    """A text without PyTorch's list of all types there are."""
    return str(text).replace("rushlight.tensor.Tensor", "torch.Tensor").split(" The valid types")[0]


def tried(fn: Callable[[], Any]) -> Any:
    found = attempt(fn)
    return hidden(found) if isinstance(found, str) else found


def scaled(lib: Any, **kwargs: Any) -> Any:
    def scale(x: lib.Tensor, by: float = 2.0) -> lib.Tensor:
        return x * by

    return made(lib, scale, **kwargs)


def squared(lib: Any) -> Any:
    """x * x with its derivative."""

    def square(x: lib.Tensor) -> lib.Tensor:
        return x * x

    op = made(lib, square)

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    op.register_autograd(lambda ctx, g: 2 * ctx.saved_tensors[0] * g, setup_context=setup)
    return op


# --- schemas --------------------------------------------------------------------------------------
def signatures(lib: Any) -> list[Any]:
    T = lib.Tensor

    def everything(
        a: int, b: float, c: bool, d: str, e: lib.dtype, f: lib.device, g: List[int],
        h: Sequence[float], i: Optional[List[bool]], j: List[Optional[T]],
        k: Union[int, float, bool], ll: int | None = 3, m: str = "hi",
        n: lib.dtype = lib.float32, o: lib.device = lib.device("cpu"), p: bool = True,  # noqa: B008
        q: float = 1e-3, r: float = 1e10,
    ) -> Tuple[T, List[T], int, float, bool]: ...  # fmt: skip

    def keywords(x: T, *, y: int = 3, z: float) -> T: ...
    def positional(x: T, /) -> T: ...
    def varied(*x: T) -> T: ...
    def bare(x) -> T: ...
    def silent(x: T): ...
    def mapped(x: dict) -> T: ...
    def paired(x: Tuple[int, int]) -> T: ...
    def texts(x: List[str]) -> T: ...
    def plain(x: list) -> T: ...
    def number(x: complex) -> T: ...
    def maybe_list(x: Optional[List[T]]) -> T: ...
    def either(x: int | float) -> T: ...
    def nothing() -> T: ...
    def returns_text(x: T) -> str: ...
    def returns_texts(x: T) -> Tuple[str]: ...
    def returns_one(x: T) -> Tuple[T]: ...
    def returns_none(x: T) -> None: ...
    def returns_maybe(x: T) -> Optional[T]: ...
    def returns_list(x: T) -> list[T]: ...
    def default_list(x: List[int] = [1]) -> T: ...  # noqa: B006
    def default_none(x: Optional[T] = None) -> T: ...
    def unknown(x: "Nope") -> T: ...  # noqa: F821
    def nonsense(x: "1 +") -> T: ...  # noqa: F722
    def quoted(x: "typing.Sequence[int]") -> T: ...

    return [
        everything, keywords, positional, varied, bare, silent, mapped, paired, texts, plain,
        number, maybe_list, either, nothing, returns_text, returns_texts, returns_one, returns_none,
        returns_maybe, returns_list, default_list, default_none, unknown, nonsense, quoted,
    ]  # fmt: skip


@cases
def inferred(lib: Any) -> Any:
    infer = lib.library.infer_schema
    return [tried(lambda fn=fn: infer(fn, mutates_args=())) for fn in signatures(lib)]


@cases
def inferred_with_a_name(lib: Any) -> Any:
    return lib.library.infer_schema(signatures(lib)[1], mutates_args=(), op_name="named")


@cases
def inferred_mutations(lib: Any) -> Any:
    T = lib.Tensor

    def write(x: T, ys: List[T], z: Optional[T], n: int) -> None: ...

    ways: list[Any] = [("x",), ("ys", "z"), {"x"}, [], "unknown", "x", ("n",), ("q",)]
    infer = lib.library.infer_schema
    return [tried(lambda way=way: infer(write, mutates_args=way)) for way in ways]


@cases
def schemas_as_they_print(lib: Any) -> Any:
    texts = [
        "(Tensor x, float y=2, float z=0.001, float w=1e10, float v=-1.5, int i=-3) -> Tensor",
        "(Tensor x, bool b=False, str s=\"hi\", str t='x') -> ()",
        "(Tensor x, int[] a=[1, 2], int[2] b=1, float[] c=[]) -> (Tensor a, Tensor[] b)",
        "(Tensor?[] x, Tensor[]? e=None, float[]? h=None) -> Tensor",
        "(Tensor(a) x) -> Tensor(a)",
        "(Tensor x, SymInt n=3, SymInt[] m=[1], Scalar s=1, Scalar t=1.5) -> (Tensor, SymInt)",
        "(Tensor x) -> ((Tensor))",
        "(Tensor x, *, int k=1, float? f=None) -> Tensor",
        '(int? x=0, float? y=0.5, str? z="a", bool? w=True)->int',
        "(Tensor x, int y = 3 ) -> (Tensor)",
    ]

    def shown(text: str) -> Any:
        op = made(lib, lambda *args: None, schema=text)
        schema = op._opoverload._schema
        return [hidden(schema), [a.name for a in schema.arguments], schema.is_mutable,
                [str(a.type) for a in schema.arguments], [str(r.type) for r in schema.returns],
                [a.has_default_value() for a in schema.arguments],
                [a.kwarg_only for a in schema.arguments]]  # fmt: skip

    return [tried(lambda text=text: shown(text)) for text in texts]


@cases
def schemas_that_are_wrong(lib: Any) -> Any:
    texts = ["(Tensor x y) -> Tensor", "(Tensor) -> Tensor", "(Tensor x) -> ", "(Tensor x, float y",
             "(Tensor x=3)->int", "(Foo x) -> Tensor"]  # fmt: skip
    return [tried(lambda text=text: made(lib, print, schema=text)) for text in texts]


@cases
def schema_and_mutates_args(lib: Any) -> Any:
    def write(x: lib.Tensor) -> None: ...

    one = tried(lambda: made(lib, write, schema="(Tensor x) -> ()", mutates_args=("x",)))
    two = tried(lambda: made(lib, write, schema="(Tensor(a!) x) -> ()"))
    three = made(lib, write, schema="(Tensor(a!) x) -> ()", mutates_args=("x",))
    return [one, two, three._opoverload._schema.is_mutable]


# --- calls ----------------------------------------------------------------------------------------
@cases
def names(lib: Any) -> Any:
    op = scaled(lib)
    over = op._opoverload
    packet = getattr(lib.ops.compared, over.name().split("::")[1])
    texts = [op, over, packet, packet.default, lib.ops.compared, over.name(), over.__name__,
             packet.__name__, over._schema, over.namespace]  # fmt: skip
    found = [hidden(t) for t in texts] + [hidden(repr(t)) for t in texts]
    return [found, packet.overloads(), packet.default is over]


@cases
def names_that_are_wrong(lib: Any) -> Any:
    def f(x: lib.Tensor) -> lib.Tensor: ...

    custom_op = lib.library.custom_op
    return [
        tried(lambda: custom_op("noname", f, mutates_args=())),
        tried(lambda: custom_op("a::b::c", f, mutates_args=())),
        tried(lambda: custom_op("a::b c", f, mutates_args=())),
        tried(lambda: custom_op("a::b", f)),
        tried(lambda: lib.ops.compared.nothing),
        tried(lambda: scaled(lib)._opoverload.overloadpacket.Tensor),
    ]


@cases
def called_in_many_ways(lib: Any) -> Any:
    op = scaled(lib)
    x = lib.ones(2)
    return [
        tried(lambda: op(x)), tried(lambda: op(x, 3)), tried(lambda: op(x, by=4)),
        tried(lambda: op(x=x, by=True)), tried(lambda: op(x, lib.tensor(5.0))),
        tried(lambda: op()), tried(lambda: op(x, 1, 2)), tried(lambda: op(x, w=2)),
        tried(lambda: op(x, x=x)), tried(lambda: op(3)), tried(lambda: op([x])),
        tried(lambda: op(x, "a")), tried(lambda: op(x, 1j)), tried(lambda: op(x, None)),
    ]  # fmt: skip


@cases
def converted_arguments(lib: Any) -> Any:
    """What each type makes of each value."""
    t = lib.tensor
    values = [3, 3.5, 4.0, True, "a", None, 1j, t(3), t(3.5), t(True), [1, 2], (1, 2),
              [1.5], [], [True], [t(1.0)], (t(1.0),), [None, t(1.0)], lib.device("cpu"), "cpu",
              np.float32(2), np.int64(3), [1, 1.5], object, [t(3)], lib.Size([2, 3]), range(2),
              lib.float64]  # fmt: skip
    kinds = ["Tensor", "Tensor?", "SymInt", "float", "bool", "str", "Device", "int[2]",
             "float[]", "bool[]", "Tensor[]", "Tensor?[]", "SymInt?", "float[]?",
             "complex"]  # fmt: skip
    found = []
    for kind in kinds:
        got: list[Any] = []
        op = made(lib, lambda a, got=got: got.append(a), schema=f"({kind} a) -> ()")
        for value in values:
            got.clear()
            answer = tried(lambda op=op, value=value: op(value))
            shown = repr(got[0]) if got else "nothing"
            found.append(shown if answer is None else answer)
    return found


@cases
def converted_results(lib: Any) -> Any:
    T = lib.Tensor

    def f1(x: T) -> float:
        return 3

    def f2(x: T) -> bool:
        return True

    def f3(x: T) -> Tuple[T, int]:
        return [x * 2, 3]

    def f4(x: T) -> List[T]:
        return (x * 2, x * 3)

    def f5(x: T) -> None:
        pass

    def f6(x: T) -> Tuple[T]:
        return (x * 2,)

    def f7(x: T) -> T:
        return 3

    def f8(x: T) -> Tuple[T, T]:
        return x * 2

    def f9(x: T) -> T:
        return (x * 2,)

    def f10(x: T) -> None:
        return x * 2

    def f11(x: T) -> int:
        return 2.5

    def f12(x: T) -> T:
        return None

    def f13(x: T) -> Union[int, float, bool]:
        return 2.5

    fns = [f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13]
    found = []
    for fn in fns:
        for x in (lib.ones(2), leaf(lib, 2)):
            answer = tried(lambda fn=fn, x=x: made(lib, fn)(x))
            shown = hidden(repr(answer)).split(" (#define")[0].split(" (the schema")[0]
            found.append([type(answer).__name__, shown])
    return found


@cases
def defaults_are_the_kernels(lib: Any) -> Any:
    """Values equal to the default are not passed on."""
    seen = []

    def f(x: lib.Tensor, a: int = 5, b: float = 2.0) -> lib.Tensor:
        return x * 1

    op = made(lib, f)
    op.register_kernel("cpu", lambda *args: (seen.append(len(args)), args[0] * 1)[1])
    x = lib.ones(2)
    for args in ((x,), (x, 5), (x, 6), (x, 5, 2.0), (x, 5, 3.0)):
        op(*args)
    return seen


@cases
def keyword_only(lib: Any) -> Any:
    seen: list[Any] = []

    def f(x: lib.Tensor, a: int = 5, *, y: float = 2.0, z: int) -> lib.Tensor:
        return x * y * z

    def setup(ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Any) -> None:
        seen.append([len(inputs), inputs[1], keyword_only_inputs])
        ctx.by = keyword_only_inputs["y"] * keyword_only_inputs["z"]

    op = made(lib, f)
    op.register_autograd(lambda ctx, g: (g * ctx.by, None), setup_context=setup)
    x = leaf(lib, 2)
    return [tried(lambda: op(x)), grads(lib, op(x, z=3).sum(), x), seen]


@cases
def keyword_only_tensors(lib: Any) -> Any:
    def f(x: lib.Tensor, *, y: lib.Tensor) -> lib.Tensor: ...

    return tried(lambda: made(lib, f))


@cases
def redefined(lib: Any) -> Any:
    name = fresh()

    def one(x: lib.Tensor) -> lib.Tensor:
        return x * 1

    def two(x: lib.Tensor) -> lib.Tensor:
        return x * 2

    lib.library.custom_op(name, one, mutates_args=())
    op = lib.library.custom_op(name, two, mutates_args=())
    return [op(lib.ones(2)), getattr(lib.ops.compared, name.split("::")[1])(lib.ones(2))]


@cases
def decorated(lib: Any) -> Any:
    @lib.library.custom_op(fresh(), mutates_args=())
    def f(x: lib.Tensor) -> lib.Tensor:
        return x * 2

    @f.register_kernel("cpu")
    def g(x: Any) -> Any:
        return x * 3

    return [type(f).__name__, callable(g), f(lib.ones(2)), g(lib.ones(2))]


# --- memory ---------------------------------------------------------------------------------------
@cases
def results_that_share_memory(lib: Any) -> Any:
    T = lib.Tensor

    def same(x: T) -> T:
        return x

    def view(x: T) -> T:
        return x.view(-1)

    def two(x: T) -> Tuple[T, T]:
        y = x * 2
        return y, y

    def parts(x: T) -> Tuple[T, T]:
        y = x * 2
        return y, y.view(-1)

    def listed(x: T) -> List[T]:
        return [x]

    fns = [same, view, two, parts, listed]
    found = [tried(lambda fn=fn: made(lib, fn)(lib.ones(2))) for fn in fns]
    return [text.split(": ")[0] + text.split("): ")[-1] for text in found]


@cases
def mutated(lib: Any) -> Any:
    def write(x: lib.Tensor, y: lib.Tensor) -> lib.Tensor:
        x.add_(y)
        return y * 2

    op = made(lib, write, mutates_args=("x",))
    x, y, h = lib.ones(2), leaf(lib, 2), leaf(lib, 2) * 1
    view = lib.ones(2, 2)
    result = op(x, y)
    op(view[0], lib.ones(2))
    op(h, lib.ones(2))
    return [
        look(x), look(result), look(view), look(h), tried(lambda: result.sum().backward()),
        tried(lambda: op.register_autograd(lambda ctx, g: g)),
        tried(lambda: look(op(leaf(lib, 2), lib.ones(2)))),
    ]  # fmt: skip


@cases
def mutated_without_saying_so(lib: Any) -> Any:
    def write(x: lib.Tensor) -> None:
        x.add_(1)

    x = lib.ones(2)
    made(lib, write)(x)
    return look(x)


@cases
def mutated_by_numpy(lib: Any) -> Any:
    def write(x: lib.Tensor) -> None:
        x.detach().numpy()[...] = 7

    x, z = leaf(lib, 2) * 1, leaf(lib, 2)
    y = x * z
    made(lib, write, mutates_args=("x",))(x)
    return [look(x), tried(lambda: y.sum().backward())]


@cases
def tagged_in_place(lib: Any) -> Any:
    def write(x: lib.Tensor, by: float) -> lib.Tensor:
        return x.mul_(by)

    def wrong(x: lib.Tensor) -> lib.Tensor:
        return x * 2

    tag = lib.Tag.inplace
    op = made(lib, write, mutates_args=("x",), tags=tag)
    x = lib.ones(2)
    return [
        op(x, 3.0) is x, look(x), hidden(op._opoverload._schema),
        tried(lambda: made(lib, wrong, mutates_args=("x",), tags=tag)(x)).split("): ")[-1],
        tried(lambda: made(lib, wrong, tags=tag)),
    ]  # fmt: skip


@cases
def tagged_out(lib: Any) -> Any:
    def write(x: lib.Tensor, *, out: lib.Tensor) -> lib.Tensor:
        return out.copy_(x * 2)

    def wrong(x: lib.Tensor, out: lib.Tensor) -> lib.Tensor: ...

    tag = lib.Tag.out
    op = made(lib, write, mutates_args=("out",), tags=tag)
    x, out = lib.ones(2), lib.zeros(2)
    return [
        op(x, out=out) is out, look(out), hidden(op._opoverload._schema),
        tried(lambda: op(leaf(lib, 2), out=out)),
        tried(lambda: op.register_autograd(lambda ctx, g: g)),
        tried(lambda: made(lib, wrong, mutates_args=("out",), tags=tag)),
    ]  # fmt: skip


# --- derivatives ----------------------------------------------------------------------------------
@cases
def no_formula(lib: Any) -> Any:
    op = scaled(lib)
    x = leaf(lib, 2)
    y = op(x)
    with lib.no_grad():
        z = op(x)
    return [hidden(repr(y)), y.requires_grad, tried(lambda: y.sum().backward()), look(z)]


@cases
def with_a_formula(lib: Any) -> Any:
    op = squared(lib)
    x = leaf(lib, 2)
    y = op(x)
    (g,) = lib.autograd.grad(y.sum(), x, create_graph=True)
    return [hidden(y.grad_fn.name()), len(y.grad_fn.next_functions), g.tolist(),
            grads(lib, g.sum(), x)]  # fmt: skip


@cases
def formula_sees(lib: Any) -> Any:
    seen: list[Any] = []
    op = scaled(lib)

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        seen.append([type(inputs).__name__, len(inputs), inputs[1], output.requires_grad,
                     inputs[0].requires_grad, lib.is_grad_enabled()])  # fmt: skip

    def backward(ctx: Any, g: Any) -> Any:
        seen.append([list(ctx.needs_input_grad), g.tolist(), lib.is_grad_enabled()])
        return g, None

    op.register_autograd(backward, setup_context=setup)
    op(leaf(lib, 2), 3).sum().backward()
    op(leaf(lib, 2)).sum().backward()
    return seen


@cases
def formula_of_several(lib: Any) -> Any:
    T = lib.Tensor

    def f(a: T, b: T, n: int) -> Tuple[T, int, T]:
        return a * n, n, b * n

    op = made(lib, f)
    seen: list[Any] = []

    def backward(ctx: Any, *gs: Any) -> Any:
        seen.append([None if g is None else g.tolist() for g in gs])
        return gs[0] * 3, gs[2] * 3, None

    op.register_autograd(backward)
    a, b = leaf(lib, 2), leaf(lib, 2)
    out = op(a, b, 3)
    return [look(out[0]), out[1], look(out[2]), grads(lib, out[0].sum(), a, b), seen]


@cases
def formula_with_lists(lib: Any) -> Any:
    T = lib.Tensor
    seen: list[Any] = []

    def f(xs: List[T], n: int) -> List[T]:
        return [x * n for x in xs]

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        seen.append([type(inputs[0]).__name__, type(output).__name__])
        ctx.n = inputs[1]

    def backward(ctx: Any, gs: Any) -> Any:
        seen.append([type(gs).__name__, [g.tolist() for g in gs], list(ctx.needs_input_grad)])
        return [g * ctx.n for g in gs], None

    op = made(lib, f)
    op.register_autograd(backward, setup_context=setup)
    a, b = leaf(lib, 2), leaf(lib, 3)
    out = op([a, lib.ones(1), b], 4)
    found = [type(out).__name__, [look(t) for t in out], grads(lib, out[0].sum(), a, b)]
    op.register_autograd(lambda ctx, gs: (gs[0], None))
    again = op((a, b), 2)
    return [*found, seen, tried(lambda: again[0].sum().backward()).split(" Got")[0], op([], 3)]


@cases
def formulas_that_are_wrong(lib: Any) -> Any:
    op = scaled(lib)
    x = leaf(lib, 2)
    found = []
    for answer in (lambda g: g, lambda g: (g,), lambda g: (g, None, None), lambda g: (g, g),
                   lambda g: (lib.ones(5), None), lambda g: (g.numpy(), None)):  # fmt: skip
        op.register_autograd(lambda ctx, g, answer=answer: answer(g))
        text = tried(lambda: grads(lib, op(x, 3.0).sum(), x))
        found.append(text.split(" (expected")[0] if isinstance(text, str) else text)
    op.register_autograd(lambda ctx, g: g, setup_context=lambda c, i, o: None)
    found.append(tried(lambda: op(x)))
    found.append(tried(lambda: op.register_autograd(print, print)))
    return found


@cases
def formula_for_what_was_left_out(lib: Any) -> Any:
    """An argument that has its default value needs no gradient."""
    op = scaled(lib)
    x = leaf(lib, 2)
    op.register_autograd(lambda ctx, g: g * 3)
    return [grads(lib, op(x).sum(), x), grads(lib, op(x, 2.0).sum(), x)]


@cases
def formula_by_name(lib: Any) -> Any:
    op = scaled(lib)
    register = lib.library.register_autograd
    x = leaf(lib, 2)
    found = []
    for target, by in ((op, 3), (op._opoverload, 4), (op._opoverload.name(), 5)):
        register(target, lambda ctx, g, by=by: (g * by, None))
        found.append(grads(lib, op(x).sum(), x))
    return [found, tried(lambda: register("compared::nothing", print)),
            tried(lambda: register(3, print)),
            tried(lambda: register("nothing", print))]  # fmt: skip


@cases
def formula_changed_after_the_call(lib: Any) -> Any:
    op = scaled(lib)
    x = leaf(lib, 2)
    y = op(x)
    op.register_autograd(lambda ctx, g: (g * 7, None))
    return grads(lib, y.sum(), x)


@cases
def checked_gradients(lib: Any) -> Any:
    x = lib.tensor([1.0, 2.0], dtype=lib.float64, requires_grad=True)
    op = squared(lib)
    return [lib.autograd.gradcheck(op, (x,)), lib.autograd.gradgradcheck(op, (x,))]


@cases
def forward_mode(lib: Any) -> Any:
    """Of a leaf: without `requires_grad` PyTorch loses the tangent, and rushlight refuses."""
    fw = lib.autograd.forward_ad
    op = squared(lib)
    with fw.dual_level():
        e = fw.make_dual(leaf(lib, 2), lib.ones(2))
        return tried(lambda: op(e))


@cases
def inference(lib: Any) -> Any:
    with lib.inference_mode():
        y = squared(lib)(leaf(lib, 2))
        return [y.is_inference(), y.requires_grad]


@cases
def numpy_inside(lib: Any) -> Any:
    """The kernel may leave the library: autograd sees one op."""

    def sine(x: lib.Tensor) -> lib.Tensor:
        return lib.from_numpy(np.sin(x.numpy(force=True)))

    op = made(lib, sine)

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    op.register_autograd(lambda ctx, g: g * ctx.saved_tensors[0].cos(), setup_context=setup)
    x = leaf(lib, 3)
    return [op(x).tolist(), grads(lib, (op(x) * op(x)).sum(), x)]


@cases
def view_schema(lib: Any) -> Any:
    def flat(x: Any) -> Any:
        return x.view(-1)

    op = made(lib, flat, schema="(Tensor(a) x) -> Tensor(a)")
    op.register_autograd(lambda ctx, g: g.view(2, 2) * 3)
    x = leaf(lib, 2, 2)
    y = op(x)
    return [y.tolist(), y.requires_grad, grads(lib, y.sum(), x)]


# --- kernels --------------------------------------------------------------------------------------
@cases
def kernels(lib: Any) -> Any:
    x = lib.ones(2)
    elsewhere = scaled(lib, device_types="cuda")
    found = [tried(lambda: elsewhere(x, 2.0)).split(" backend")[0]]
    elsewhere.register_kernel("cpu")(lambda x, by=2.0: x * 10)
    found.append(elsewhere(x))
    op = scaled(lib)
    op.register_kernel("cpu", lambda x, by=2.0: x * 100)
    found.append(op(x))
    with op.set_kernel_enabled("cpu", enabled=False):
        found.append(op(x))
    found.append(op(x))
    lib.library.register_kernel(op, ["cpu", "cuda"])(lambda x, by=2.0: x * 1000)
    found.append(op(x))
    lib.library.register_kernel(op._opoverload.name(), "cpu", lambda x, by=2.0: x * 5)
    return [*found, op(x), tried(lambda: op.register_kernel("nowhere", print))]


@cases
def kernels_without_tensors(lib: Any) -> Any:
    def ones(n: int) -> lib.Tensor:
        return lib.ones(n)

    def ones_on(n: int, device: lib.device) -> lib.Tensor:
        return lib.ones(n)

    op = made(lib, ones_on, device_types="cpu")
    return [
        made(lib, ones)(3), tried(lambda: made(lib, ones, device_types="cpu")),
        op(3, lib.device("cpu")), op(3, "cpu"), tried(lambda: op(3, lib.device("cuda"))),
    ]  # fmt: skip


@cases
def registered_to_what_is_not_there(lib: Any) -> Any:
    return [
        tried(lambda: lib.library.register_fake("compared::nothing")(print)),
        tried(lambda: lib.library.register_vmap("compared::nothing", print)),
        tried(lambda: lib.library.register_fake(3, print)),
        tried(lambda: lib.library.register_kernel(3, "cpu", print)),
    ]


# --- Library --------------------------------------------------------------------------------------
def within(lib: Any, fn: Callable[[Any], Any]) -> Any:
    """`fn` of a library that is gone afterwards."""
    with lib.library._scoped_library("within", "FRAGMENT") as library:
        return fn(library)


@cases
def library_kinds(lib: Any) -> Any:
    Library = lib.library.Library
    first = Library("kinds", "DEF")
    other = Library("kinds", "IMPL", "CPU")
    found = [
        repr(first), first.ns, first.kind, first.dispatch_key, repr(other),
        tried(lambda: Library("kinds", "FOO")), tried(lambda: Library("prim", "DEF")),
        tried(lambda: Library("kinds", "DEF")).split("  Previous")[0],
        tried(lambda: other.define("f(Tensor x) -> Tensor")).split("  (Error")[0],
        first.define("f(Tensor x) -> Tensor"),
        tried(lambda: other.impl("f", print, "CUDA")).split("  (Error")[0],
    ]  # fmt: skip
    other.impl("f", lambda x: x * 4)
    found.append(lib.ops.kinds.f(lib.ones(2)))
    first._destroy()
    other._destroy()
    return [*found, tried(lambda: lib.ops.kinds.f), tried(lambda: first.define("g() -> ()"))]


@cases
def library_definitions(lib: Any) -> Any:
    def run(library: Any) -> Any:
        x = lib.ones(2)
        names = [library.define("f(Tensor x, float a=2) -> Tensor"),
                 library.define("f.other(Tensor x, Tensor y) -> Tensor")]  # fmt: skip
        found = [
            names, tried(lambda: library.define("f(Tensor x) -> Tensor")).split(" Duplicate")[0],
            tried(lambda: library.define("nonsense")),
            tried(lambda: library.define("g(Tensor x) -> Tensor", "PURE_FUNCTION")),
            tried(lambda: lib.ops.within.f(x)).split(" backend")[0],
        ]  # fmt: skip
        library.impl("f", lambda x, a=2.0: x * a, "CPU")
        library.impl("f.other", lambda x, y: x * y, "CompositeExplicitAutograd")
        packet = lib.ops.within.f
        return [*found, packet.overloads(), packet(x), packet(x, 3), packet.default(x, a=5),
                packet(x, x * 7), packet.other(x, x * 8), tried(lambda: packet(x, "a")),
                str(packet.other._schema), packet.other.name(), repr(packet.other)]  # fmt: skip

    return [within(lib, run), tried(lambda: lib.ops.within.f)]


@cases
def library_kernels(lib: Any) -> Any:
    def run(library: Any) -> Any:
        x = lib.ones(2)
        library.define("f(Tensor x) -> Tensor")
        library.impl("f", lambda x: x * 2, "CPU")
        found = [
            tried(lambda: library.impl("f", lambda x: x * 3, "CPU", allow_override=False)),
            tried(lambda: library.impl("f", 3, "CPU")),
            tried(lambda: library.impl("f", print, "NoSuchKey")),
            tried(lambda: library.impl(3, print, "CPU")),
            tried(lambda: library.impl("nothing", print, "CPU")),
            tried(lambda: lib.ops.within.nothing),
        ]  # fmt: skip
        library.impl(lib.ops.within.f.default, lambda x: x * 5, "CPU")
        return [*found, lib.ops.within.f(x)]

    return within(lib, run)


@cases
def library_and_autograd(lib: Any) -> Any:
    def run(library: Any) -> Any:
        found: list[Any] = []
        for key in ("CPU", "CompositeExplicitAutograd", "CompositeImplicitAutograd", ""):
            name = library.define(f"f{len(found)}(Tensor x) -> Tensor")
            library.impl(name, lambda x: x * x * 3, key)
            x = leaf(lib, 2)
            y = getattr(lib.ops.within, name)(x)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                y.sum().backward()
            said = [str(w.message).split(":")[0] for w in caught if w.category is UserWarning]
            found.append([look(y), x.grad.tolist(), said])
        return found

    return within(lib, run)


@cases
def library_without_history(lib: Any) -> Any:
    def run(library: Any) -> Any:
        library.define("f(Tensor x) -> Tensor")
        library.impl("f", lambda x: x.detach() * 3, "CPU")
        x = leaf(lib, 2)
        y = lib.ops.within.f(x)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            (y * x).sum().backward()
        said = [str(w.message).split(":")[0] for w in caught if w.category is UserWarning]
        return [y.requires_grad, y.grad_fn.name(), y.tolist(), x.grad.tolist(), said]

    return within(lib, run)


@cases
def library_autograd_kernel(lib: Any) -> Any:
    seen: list[Any] = []

    class F(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 100

    def kernel(x: Any) -> Any:
        seen.append(x.requires_grad)
        return F.apply(x)

    def run(library: Any) -> Any:
        library.define("f(Tensor x) -> Tensor")
        library.impl("f", lambda x: x * 7, "CPU")
        library.impl("f", kernel, "Autograd")
        x = leaf(lib, 2)
        y = lib.ops.within.f(x)
        found = [look(y), look(lib.ops.within.f(lib.ones(2))), grads(lib, y.sum(), x)]
        with lib.inference_mode():
            found.append(lib.ops.within.f(lib.ones(2)).tolist())
        return [*found, seen]

    return within(lib, run)


@cases
def library_functions(lib: Any) -> Any:
    define, impl = lib.library.define, lib.library.impl
    name = fresh()
    short = name.split("::")[1]
    x = leaf(lib, 2)
    found = [define(name, "(Tensor x) -> Tensor"), impl(name, "cpu")(lambda x: x * 5)]
    op = getattr(lib.ops.compared, short)
    found.append(op(x.detach()))
    found.append(impl(name, "default", lambda x: x * 6))
    found.append(op(x.detach()))
    lib.library.register_autograd(name, lambda ctx, g: g * 7)
    found += [hidden(repr(op(x))), grads(lib, op(x).sum(), x)]
    lib.library.register_kernel(name, "cpu", lambda x: x * 9)
    return [
        *found, op(x.detach()), tried(lambda: define(name, "f(Tensor x) -> Tensor")),
        tried(lambda: define("nothing", "(Tensor x) -> Tensor")),
        tried(lambda: define(3, "() -> ()")),
    ]  # fmt: skip


@cases
def library_old_forms(lib: Any) -> Any:
    def run(library: Any) -> Any:
        @lib.library.define(library, "f(Tensor x) -> Tensor")
        def f(x: Any) -> Any:
            return x * 11

        library.define("g(Tensor x) -> Tensor")

        @lib.library.impl(library, "g", "CPU")
        def g(x: Any) -> Any:
            return x * 12

        return [
            lib.ops.within.f(lib.ones(2)),
            lib.ops.within.g(lib.ones(2)),
            callable(f),
            callable(g),
        ]

    return within(lib, run)


@cases
def library_memory(lib: Any) -> Any:
    """An operator that is no custom_op may return its argument, and counts its own writes."""

    def run(library: Any) -> Any:
        library.define("write(Tensor(a!) x) -> ()")
        library.define("same(Tensor x) -> Tensor")
        library.define("two(Tensor x) -> (Tensor a, Tensor b)")
        library.impl("write", lambda x: [x.mul_(2), None][1], "CPU")
        library.impl("same", lambda x: x, "CPU")
        library.impl("two", lambda x: (x * 1, x * 2), "CPU")
        x = lib.ones(2)
        lib.ops.within.write(x)
        return [look(x), lib.ops.within.same(x) is x, list(lib.ops.within.two(x)),
                str(lib.ops.within.two.default._schema)]  # fmt: skip

    return within(lib, run)


# --- opcheck --------------------------------------------------------------------------------------
def checked(lib: Any, op: Any, args: Any, name: str, **kwargs: Any) -> Any:
    found = tried(lambda: lib.library.opcheck(op, args, test_utils=name, **kwargs))
    return found.split(" (scroll up")[0].split(" (mismatched")[0] if isinstance(found, str) else (
        {k: hidden(v) for k, v in found.items()}
    )  # fmt: skip


@cases
def checked_schema(lib: Any) -> Any:
    T = lib.Tensor

    def sneaky(x: T) -> T:
        x.mul_(2)
        return x * 1

    def lazy(x: T) -> T:
        return x * 1

    x = lib.ones(2)
    found = [
        checked(lib, made(lib, sneaky), (x.clone(),), "test_schema"),
        checked(lib, made(lib, sneaky), (x.clone(),), "test_schema", raise_exception=False),
        checked(lib, made(lib, lazy, mutates_args=("x",)), (x.clone(),), "test_schema"),
        checked(lib, scaled(lib), (x, 2.0), "test_schema"),
        checked(lib, scaled(lib), (leaf(lib, 2),), ("test_schema",)),
        checked(lib, scaled(lib), (), "test_schema"),
    ]

    def run(library: Any) -> Any:
        library.define("same(Tensor x) -> Tensor")
        library.impl("same", lambda x: x, "CPU")
        library.define("view(Tensor x) -> Tensor")
        library.impl("view", lambda x: x.view(-1), "CPU")
        library.define("two(Tensor x) -> (Tensor, Tensor)")
        library.impl("two", lambda x: [x * 2] * 2, "CPU")
        library.define("over(Tensor x) -> Tensor")
        library.define("over.int(int x) -> Tensor")
        ops = lib.ops.within
        return [
            checked(lib, op, (x,), "test_schema") for op in (ops.same, ops.view, ops.two, ops.over)
        ]

    return [*found, *within(lib, run)]


@cases
def checked_registration(lib: Any) -> Any:
    def run(library: Any) -> Any:
        found = []
        for key in ("CPU", "CompositeImplicitAutograd"):
            name = library.define(f"f{len(found)}(Tensor x) -> Tensor")
            library.impl(name, lambda x: x * 2, key)
            op = getattr(lib.ops.within, name)
            found.append(checked(lib, op, (leaf(lib, 2),), "test_autograd_registration"))
        return found

    custom = checked(lib, squared(lib), (leaf(lib, 2),), "test_autograd_registration")
    return [*within(lib, run), custom]


@cases
def checked_fakes(lib: Any) -> Any:
    x = lib.ones(2, 3)
    fakes = [
        lambda x, by=2.0: lib.empty_like(x),
        lambda x, by=2.0: x.new_empty(3),
        lambda x, by=2.0: lib.empty_like(x).double(),
        lambda x, by=2.0: lib.empty(3, 2).t(),
    ]
    found = []
    for fake in fakes:
        op = scaled(lib)
        op.register_fake(fake)
        found.append(checked(lib, op, (x, 3.0), "test_faketensor"))
    missing = checked(lib, scaled(lib), (x, 3.0), "test_faketensor")
    return [*found, missing.split(" Please use")[0]]


@cases
def checked_wrongly(lib: Any) -> Any:
    op = scaled(lib)
    return [
        checked(lib, op, (lib.ones(2),), "nothing").split(" of (")[0],
        checked(lib, 3, (), "test_schema"),
        tried(lambda: lib.library.opcheck(op, (lib.ones(2),), atol=1.0)),
    ]


results = cases.results
