"""Complex numbers: functions and their derivatives, programs, and lines of code.

`cases` are functions of the library and of a number: a function at some points, edges among them,
with its gradients for complex cotangents, second gradients and tangents. The number moves the
points that are not edges; what is stored is at 0. `programs` are functions of the library alone:
what users do. `CALLS` are lines of code, of which the dtype or the error counts.
"""

from __future__ import annotations

import importlib
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from tests.harness import Cases

INF, NAN = math.inf, math.nan


class ComplexCases(Cases):
    """Cases of the library, and of whatever else `run` is given."""

    def run(self, lib: Any, name: str, *args: Any) -> Any:
        return outcome(self[name], lib, *args)


class AtPoints(ComplexCases):
    """Cases of the library and a number."""

    def run(self, lib: Any, name: str, shift: float = 0.0) -> Any:
        return super().run(lib, name, shift)


cases = AtPoints()
programs = ComplexCases()


# --- results --------------------------------------------------------------------------------------
def outcome(case: Callable[..., Any], *args: Any) -> Any:
    """What a case gives, or how it fails, as JSON can hold it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return plain(case(*args))
        except Exception as error:  # whatever it is, both libraries must raise it
            text = str(error).splitlines()[0].replace("rushlight", "torch")
            return f"{type(error).__name__}: {text}"


def plain(x: Any) -> Any:
    if isinstance(x, dict):
        return {k: plain(y) for k, y in x.items()}
    if isinstance(x, (tuple, list)):
        return [plain(y) for y in x]
    if isinstance(x, complex):
        return ["complex", x.real, x.imag]
    if hasattr(x, "grad_fn"):
        flat = x.detach().resolve_conj().resolve_neg().reshape(-1)
        nothing = getattr(flat, "_is_zerotensor", bool)()  # PyTorch's, for tangents that are zero
        numbers = [0.0] * flat.numel() if nothing else flat.tolist()
        if flat.is_complex():
            numbers = [part for w in map(complex, numbers) for part in (w.real, w.imag)]
        told = [float(f"{n:.12g}") if isinstance(n, float) else n for n in numbers]
        return {"shape": list(x.shape), "dtype": str(x.dtype), "numbers": told}
    return x


# --- inputs ---------------------------------------------------------------------------------------
Maker = Callable[[Any, float], Any]


def wave(shape: tuple[int, ...], phase: float) -> list[complex]:
    """Numbers of both signs in both parts, no two alike."""
    return [
        complex(round(1.5 * math.cos(n * 1.3 + phase), 4), round(math.sin(n * 0.9 + phase), 4))
        for n in range(math.prod(shape))
    ]


def z(*shape: int, phase: float = 0.4, kind: str = "complex128") -> Maker:
    """A complex tensor that asks for a gradient."""

    def make(torch: Any, shift: float) -> Any:
        dtype = getattr(torch, kind)
        return torch.tensor(wave(shape, phase + shift), dtype=dtype).reshape(shape).requires_grad_()

    return make


def r(*shape: int, phase: float = 0.4, kind: str = "float64") -> Maker:
    """A real tensor that asks for a gradient."""

    def make(torch: Any, shift: float) -> Any:
        numbers = [w.real for w in wave(shape, phase + shift)]
        return torch.tensor(numbers, dtype=getattr(torch, kind)).reshape(shape).requires_grad_()

    return make


def at(*points: Any) -> Maker:
    """A tensor of given numbers that asks for a gradient."""
    whole = any(isinstance(p, complex) for p in points)

    def make(torch: Any, shift: float) -> Any:
        dtype = torch.complex128 if whole else torch.float64
        return torch.tensor(points, dtype=dtype, requires_grad=True)

    return make


def ints(*points: int) -> Maker:
    return lambda torch, shift: torch.tensor(points)


def matrix(n: int, phase: float = 0.4) -> Maker:
    """A complex matrix, well-conditioned, with eigenvalues apart."""

    def make(torch: Any, shift: float) -> Any:
        x = torch.tensor(wave((n, n), phase + shift), dtype=torch.complex128).reshape(n, n) * 0.3
        ones = torch.arange(1, n + 1).to(torch.complex128)
        return (x + torch.diag(ones)).requires_grad_()

    return make


def cotangent(torch: Any, y: Any, phase: float) -> Any:
    """Fixed numbers of a tensor's shape and dtype."""
    numbers = wave(tuple(y.shape), phase)
    if not y.dtype.is_complex:
        numbers = [w.real for w in numbers]  # type: ignore[misc]
    return torch.tensor(numbers, dtype=y.dtype).reshape(tuple(y.shape))


# --- derivatives ----------------------------------------------------------------------------------
def observed(
    torch: Any, fn: Callable[..., Any], makers: tuple[Any, ...], shift: float, skip: str
) -> dict[str, Any]:
    """Values, gradients, second gradients and tangents of a function; `skip` names what not to ask:
    "s" second gradients, "t" tangents, "v" values."""
    xs = [m(torch, shift) if callable(m) else m for m in makers]
    asked = [x for x in xs if isinstance(x, torch.Tensor) and x.requires_grad]
    found = fn(torch, *xs)
    ys = [y for y in (found if isinstance(found, (tuple, list)) else [found]) if y.requires_grad]
    gs = [cotangent(torch, y, 1.0 + i) for i, y in enumerate(ys)]
    first = torch.autograd.grad(ys, asked, gs, create_graph="s" not in skip, allow_unused=True)
    told: dict[str, Any] = {"first": first}
    if "v" not in skip:
        told["values"] = ys
    if "s" not in skip:
        live = [g for g in first if g is not None and g.requires_grad]
        if live:
            starts = [cotangent(torch, g, 2.0 + i) for i, g in enumerate(live)]
            second = torch.autograd.grad(live, asked, starts, allow_unused=True)
            zeros = [torch.zeros_like(x) if g is None else g for x, g in zip(asked, second)]
            told["second"] = zeros
        else:
            told["second"] = [torch.zeros_like(x) for x in asked]
    if "t" not in skip:
        forward = torch.autograd.forward_ad
        with forward.dual_level():
            duals = []
            for i, x in enumerate(xs):
                if isinstance(x, torch.Tensor) and x.requires_grad:
                    x = forward.make_dual(x.detach(), cotangent(torch, x, 3.0 + i))
                duals.append(x)
            moved = fn(torch, *duals)
            moved = moved if isinstance(moved, (tuple, list)) else [moved]
            slopes = [forward.unpack_dual(y).tangent for y in moved]
            told["tangents"] = [t for t in slopes if t is not None]
    return told


def case(title: str, fn: Callable[..., Any], *makers: Any, skip: str = "") -> None:
    cases.enter(title, lambda torch, shift: observed(torch, fn, makers, shift, skip))


def named(name: str) -> Callable[..., Any]:
    """The function of that name, in whichever library."""

    def call(torch: Any, *args: Any, **kwargs: Any) -> Any:
        found = torch
        for part in name.split("."):
            found = getattr(found, part)
        return found(*args, **kwargs)

    return call


# --- functions of one number ----------------------------------------------------------------------
MINUS = complex(-2.0, -0.0)  # on the lower side of a branch cut
EDGES = (
    0j, 1 + 0j, -1 + 0j, 1j, -1j, 0.5 + 0j, -0.5 + 0j, 2 + 0j, -2 + 0j, MINUS, complex(0.5, -0.0),
    2j, -2j, 0.5j, complex(-0.0, 1.0), complex(-0.0, -2.0), 0.001 + 0.001j, 30 - 30j,
)  # fmt: skip
SMOOTH = (
    "acos acosh asin asinh atan atanh cos cosh exp exp2 expm1 log log10 log1p log2 reciprocal "
    "rsqrt sigmoid sin sinc sinh sqrt square tan tanh neg positive nn.functional.tanhshrink "
    "nn.functional.softsign conj conj_physical"
).split()
ROUGH = "abs angle sgn real imag view_as_real".split()


def of_one(name: str) -> None:
    f = named(name)
    case(f"{name} (2, 3)", f, z(2, 3))
    case(f"{name} 0-d", f, z())
    case(f"{name} empty", f, z(0, 2))
    case(f"{name} single", f, z(3, kind="complex64"))
    case(f"{name} edges", f, at(*EDGES), skip="s" if name in ("sgn", "abs") else "")
    case(f"{name} transposed", lambda torch, x: f(torch, x.mT), z(2, 3))
    if name != "view_as_real":  # PyTorch has no memory of it to look at
        case(f"{name} of conj", lambda torch, x: f(torch, x.conj()), z(3))
    case(f"{name} of parts", lambda torch, x: f(torch, torch.complex(x.imag, x.real)), z(3))


for _name in (*SMOOTH, *ROUGH):
    of_one(_name)
for _name in ("abs", "angle", "sgn"):
    case(f"{_name} real edges", named(_name), at(0.0, -0.0, 1.0, -2.0))
case("log of a real cast", lambda torch, x: torch.log(x.to(torch.complex128)), at(-2.0, -0.5, 3.0))
case("sqrt of a real cast", lambda torch, x: torch.sqrt(x.to(torch.complex128)), at(-2.0, 3.0))
case("to float", lambda torch, x: x.to(torch.float64), z(3))
case("to single", lambda torch, x: x.to(torch.complex64), z(3))
case("view_as_complex", named("view_as_complex"), r(3, 2))
case("complex", named("complex"), r(3), r(3, phase=1.0))
case("complex broadcast", named("complex"), r(3), r(2, 1, phase=1.0))
case("polar", named("polar"), at(1.0, 2.0, 0.5), r(3))

# --- functions of two -----------------------------------------------------------------------------
POINTS = tuple(complex(a, b) for a in (0.0, 1.0, -1.0, 2.0) for b in (0.0, -0.0, 1.0, -0.5))
AWAY = tuple(p for p in POINTS if p != 0)
for _name in ("add", "sub", "mul", "div", "pow", "float_power"):
    case(f"{_name} complex complex", named(_name), z(2, 3), z(3, phase=1.1))
    # PyTorch's tangents of powers of mixed operands lose their imaginary part
    mixed = "t" if _name == "pow" else ""
    case(f"{_name} complex real", named(_name), z(2, 3), r(2, 1, phase=1.1), skip=mixed)
    case(f"{_name} real complex", named(_name), r(2, 3), z(3, phase=1.1), skip=mixed)
    case(f"{_name} single and real", named(_name), z(3, kind="complex64"),
         r(3, phase=1.1, kind="float32"), skip=mixed)  # fmt: skip
    for _number in (2, -1, 0.5, 1.5 - 1j):
        case(f"{_name} by {_number}", named(_name), z(3), _number)
        if _name in ("pow", "float_power"):
            case(f"{_name} of {_number}", named(_name), _number, z(3))
        elif _name == "sub":
            case(f"rsub {_number}", named("rsub"), z(3), _number)
    for _other in (at(*AWAY[:6]), at(*AWAY[6:12])):
        case(f"{_name} edges {len(cases)}", named(_name), at(*AWAY[3:9]), _other)
case("pow real to a complex number", named("pow"), r(3), 1.5 - 1j, skip="t")
case("pow real to 0j", named("pow"), r(3), 0j, skip="t")
case("pow of a complex number to real", named("pow"), 1.5 - 1j, r(3), skip="t")
case("pow of a complex number to single", named("pow"), 2j, r(3, kind="float32"), skip="t")
case("pow of zero", named("pow"), at(0j, 0j, 1 + 0j), at(2 + 0j, 3 + 0j, 0j))
case("pow of the number 0", named("pow"), 0, at(2 + 0j, 1 + 0j, 0.5 + 0j))
case("pow of zero to 2", named("pow"), at(0j, 1j), 2)
case("pow of zero to 0", named("pow"), at(0j, 1j), 0)
case("div by the number 0", named("div"), z(3), 0)
case("div by zero", named("div"), z(3), at(0j, 1j, -1 + 0j), skip="st")
case("mul real by 1j", lambda torch, x: x * 1j, r(3))
case("1j minus real", lambda torch, x: 1j - x, r(3), skip="t")
case("add alpha", lambda torch, x, y: torch.add(x, y, alpha=2 - 1j), z(3), r(3))
case("sub alpha", lambda torch, x, y: torch.sub(x, y, alpha=2 - 1j), z(3), z(3, phase=1.0))
case("ldexp", named("ldexp"), z(3), z(3, phase=1.0))
case("logaddexp", named("logaddexp"), z(3), z(3, phase=1.0))
case("addcmul", lambda torch, *xs: torch.addcmul(*xs, value=1 + 1j), z(3), z(3, phase=1.0),
     z(2, 1, phase=2.0))  # fmt: skip
case("addcdiv", lambda torch, *xs: torch.addcdiv(*xs, value=1j), z(3), z(3, phase=1.0),
     z(2, 1, phase=2.0))  # fmt: skip
case("lerp", named("lerp"), z(3), z(3, phase=1.0), z(3, phase=2.0))
case("lerp by a number", named("lerp"), z(3), z(3, phase=1.0), 0.3 + 1j)
case("where", lambda torch, x, y: torch.where(x.real > 0, x, y), z(5), z(5, phase=1.0))
case("dist", named("dist"), z(3), z(3, phase=1.0))
case("l1_loss", named("nn.functional.l1_loss"), z(3), z(3, phase=1.0))
case("normalize", named("nn.functional.normalize"), z(2, 3))


# --- over dimensions ------------------------------------------------------------------------------
def over(name: str, *args: Any, **kwargs: Any) -> Callable[..., Any]:
    return lambda torch, x: named(name)(torch, x, *args, **kwargs)


ONE_ZERO, TWO_ZEROS = at(1 + 1j, 0j, 2 - 1j, 0.5j), at(1 + 1j, 0j, 2 - 1j, 0j)
for _name, _args in (
    ("sum", ()), ("sum", (1,)), ("mean", ()), ("mean", (0, True)), ("prod", ()), ("prod", (1,)),
    ("cumsum", (1,)), ("cumprod", (1,)), ("logsumexp", (1,)), ("logcumsumexp", (1,)), ("var", ()),
    ("std", (1,)), ("norm", ()), ("linalg.vector_norm", (1,)), ("linalg.vector_norm", (3,)),
    ("linalg.vector_norm", (INF,)), ("linalg.vector_norm", (-INF,)), ("linalg.vector_norm", (0.5,)),
    ("linalg.norm", ("fro",)), ("linalg.norm", ("nuc",)), ("linalg.norm", (2,)),
    ("renorm", (2, 0, 1.0)), ("diff", ()), ("trace", ()), ("roll", (1,)), ("flip", ((0,),)),
    ("tril", ()), ("triu", ()), ("diagonal", ()), ("rot90", ()), ("unfold", (1, 2, 1)),
    ("repeat", (2, 1)), ("nn.functional.pad", ((1, 1),)),
    ("nn.functional.pad", ((1, 1), "circular")), ("nn.functional.pad", ((1, 1), "reflect")),
    ("nn.functional.pad", ((2, 0), "replicate")),
):  # fmt: skip
    _title = f"{_name} {_args}"
    _fn = over(_name, *_args) if _name not in ("unfold", "repeat") else (
        lambda torch, x, name=_name, args=_args: getattr(x, name)(*args)
    )  # fmt: skip
    case(_title, _fn, z(3, 3))
for _name in ("prod", "norm", "var", "std", "sum"):
    for _what, _maker in (("one zero", ONE_ZERO), ("two zeros", TWO_ZEROS), ("empty", z(0))):
        skip = "st" if (_name, _what) in (("var", "empty"), ("std", "empty")) else ""
        case(f"{_name} {_what}", named(_name), _maker, skip=skip)
for _name in ("cumprod", "cumsum"):
    case(f"{_name} one zero", over(_name, 0), ONE_ZERO)
    case(f"{_name} two zeros", over(_name, 0), TWO_ZEROS)
case("norm of zeros", named("norm"), at(0j, 0j), skip="s")
case("inf-norm with ties", over("linalg.vector_norm", INF), at(1 + 1j, 1 - 1j, -1 + 1j, 0.5 + 0j))
case("var of one", named("var"), at(1 + 2j), skip="s")
case("var_mean", lambda torch, x: torch.var_mean(x, 0), z(3, 2))
case("std_mean", lambda torch, x: torch.std_mean(x, 0), z(3, 2))
case("cumsum of reals in complex", lambda torch, x: x.cumsum(0, dtype=torch.complex128), r(3))


# --- products -------------------------------------------------------------------------------------
def weighted(name: str) -> Callable[..., Any]:
    return lambda torch, *xs: named(name)(torch, *xs, beta=1j, alpha=2 - 1j)


for _name, _a, _b in (
    ("dot", (3,), (3,)), ("vdot", (3,), (3,)), ("inner", (2, 3), (4, 3)), ("outer", (2,), (3,)),
    ("mv", (2, 3), (3,)), ("mm", (2, 3), (3, 2)), ("bmm", (2, 2, 3), (2, 3, 1)),
    ("matmul", (2, 2, 3), (3, 2)), ("matmul", (3,), (2, 3, 2)), ("linalg.cross", (2, 3), (2, 3)),
    ("tensordot", (3, 2), (3, 2)), ("kron", (2,), (3,)),
):  # fmt: skip
    case(f"{_name} {_a} {_b}", named(_name), z(*_a), z(*_b, phase=1.2))
for _name, _x, _a, _b in (
    ("addmm", (3,), (2, 2), (2, 3)), ("addmv", (2,), (2, 3), (3,)), ("addr", (3,), (2,), (3,)),
    ("addbmm", (2, 3), (2, 2, 2), (2, 2, 3)), ("baddbmm", (3,), (2, 2, 2), (2, 2, 3)),
):  # fmt: skip
    case(_name, weighted(_name), z(*_x), z(*_a, phase=1.2), z(*_b, phase=2.1))
case("einsum", lambda torch, x, y: torch.einsum("ij,jk->ki", x, y), z(2, 3), z(3, 2, phase=1.0))
case("linear", named("nn.functional.linear"), z(2, 3), z(2, 3, phase=1.0), z(2, phase=2.0))
case("cosine", lambda torch, x: (x.conj() * x).real.sum().sqrt() / x.abs().sum(), z(3))

# --- places ---------------------------------------------------------------------------------------
INDEX, ROWS = ints(2, 0, 2), ints(1, 0)
case("index", lambda torch, x, i: x[i], z(3, 2), INDEX)
case("slice", lambda torch, x: x[1:, ::2], z(3, 3))
case("mask", lambda torch, x: x[x.real > 0], z(5))
case("masked_fill", lambda torch, x: x.masked_fill(x.real > 0, 1j), z(5))
case("masked_fill of a tensor", lambda torch, x, y: x.masked_fill(x.real > 0, y), z(5), z())
case("masked_scatter", lambda torch, x, y: x.masked_scatter(x.real > 0, y), z(5), z(5, phase=1.0))
case("gather", lambda torch, x, i: x.gather(0, i), z(3), INDEX)
case("take", lambda torch, x, i: x.take(i), z(3, 2), INDEX)
case("index_select", lambda torch, x, i: x.index_select(0, i), z(3, 2), INDEX)
case("index_add", lambda torch, x, i, y: x.index_add(0, i, y, alpha=2.5), z(3), INDEX,
     z(3, phase=1.0))  # fmt: skip
case("index_copy", lambda torch, x, i, y: x.index_copy(0, i, y), z(3), ROWS, z(2, phase=1.0))
case("index_fill", lambda torch, x, i: x.index_fill(0, i, 1j), z(3), ROWS)
case("index_fill of a tensor", lambda torch, x, i, y: x.index_fill(0, i, y), z(3), ROWS, z())
case("index_put", lambda torch, x, i, y: x.index_put((i,), y, accumulate=True), z(3), INDEX,
     z(3, phase=1.0))  # fmt: skip
case("put", lambda torch, x, i, y: x.put(i, y, accumulate=True), z(3), INDEX, z(3, phase=1.0))
case("scatter", lambda torch, x, i, y: x.scatter(0, i, y), z(3), ROWS, z(2, phase=1.0))
case("scatter of a number", lambda torch, x, i: x.scatter(0, i, 1j), z(3), ROWS)
case("scatter_add", lambda torch, x, i, y: x.scatter_add(0, i, y), z(3), INDEX, z(3, phase=1.0))
case("cat", lambda torch, *xs: torch.cat(xs), z(2), r(3), z(1, phase=1.0))
case("stack", lambda torch, *xs: torch.stack(xs), z(2), r(2), z(2, phase=1.0))
case("block_diag", lambda torch, *xs: torch.block_diag(*xs), z(2, 2), z(1, 2, phase=1.0))
case("split", lambda torch, x: x.split(2), z(5))
case("unbind", lambda torch, x: x.unbind(1), z(2, 3))
case("expand", lambda torch, x: x.expand(2, 3), z(3))
case("as_strided", lambda torch, x: x.as_strided((2, 2), (1, 2), 1), z(6))
case("mH", lambda torch, x: x.mH @ x, z(2, 3))
case("diag_embed", named("diag_embed"), z(2, 2))
case("diagonal_scatter", lambda torch, x, y: x.diagonal_scatter(y), z(2, 2), z(2, phase=1.0))
case("write real", lambda torch, x, y: written(x, "real", y), z(3), r(3, phase=1.0))
case("write imag", lambda torch, x, y: written(x, "imag", y), z(3), r(3, phase=1.0))
case("write a slice", lambda torch, x, y: sliced(x, y), z(3), r(2, phase=1.0))


def written(x: Any, part: str, value: Any) -> Any:
    y = x * 1
    getattr(y, part).copy_(value)
    return y * y


def sliced(x: Any, value: Any) -> Any:
    y = x * 1
    y[1:] = value
    return y * y


# --- matrices -------------------------------------------------------------------------------------
for _name in ("linalg.det", "logdet", "linalg.inv", "linalg.pinv", "linalg.qr", "linalg.lu"):
    case(_name, named(_name), matrix(3), skip="v")
case("matrix_power", over("linalg.matrix_power", 3), matrix(3))
case("matrix_power -2", over("linalg.matrix_power", -2), matrix(3))
case("slogdet", lambda torch, x: tuple(torch.linalg.slogdet(x)), matrix(3))
case("multi_dot", lambda torch, *xs: torch.linalg.multi_dot(xs), z(2, 3), z(3, 2, phase=1.0), z(2))
case("solve", named("linalg.solve"), matrix(3), z(3, 2))
case("solve_triangular", lambda torch, a, b: torch.linalg.solve_triangular(a.triu(), b, upper=True),
     matrix(3), z(3, 2))  # fmt: skip
case("lstsq", lambda torch, a, b: torch.linalg.lstsq(a, b).solution, z(3, 2), z(3, 1, phase=1.0))
case("cholesky", lambda torch, x: torch.linalg.cholesky(x @ x.mH), matrix(3))
case("cholesky_solve", lambda torch, x, b: torch.cholesky_solve(b, torch.linalg.cholesky(x @ x.mH)),
     matrix(3), z(3, 1), skip="s")  # fmt: skip
case("eigvalsh", lambda torch, x: torch.linalg.eigvalsh(x @ x.mH), matrix(3))
case("eigvals", lambda torch, x: torch.linalg.eigvals(x).abs().sum(), matrix(3))
case("svdvals", named("linalg.svdvals"), z(3, 2))
case("cond", named("linalg.cond"), matrix(3))
# vectors are known up to a phase: functions that do not depend on it
case("eigh", lambda torch, x: turned(torch.linalg.eigh(x @ x.mH)[1]), matrix(3))
case("eig", lambda torch, x: projector(torch, torch.linalg.eig(x)), matrix(3))
case("svd", lambda torch, x: polar_factor(torch.linalg.svd(x, full_matrices=False)), z(3, 2))


def turned(v: Any) -> Any:
    """Vectors without their phase."""
    return v * v[:1].conj()


def projector(torch: Any, found: Any) -> Any:
    values, vectors = found
    return (vectors * values.sin()) @ torch.linalg.inv(vectors)


def polar_factor(found: Any) -> Any:
    u, _, vh = found
    return u @ vh


# --- programs -------------------------------------------------------------------------------------
def program(fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return programs(fn)


def some(torch: Any, asks: bool = True, kind: str = "complex128") -> Any:
    numbers = [1 + 2j, -0.5 + 1j, 0.3 - 2j]
    return torch.tensor(numbers, dtype=getattr(torch, kind), requires_grad=asks)


def reals(torch: Any, asks: bool = True, kind: str = "float64") -> Any:
    return torch.tensor([1.0, -0.5, 0.3], dtype=getattr(torch, kind), requires_grad=asks)


def lines(name: str, *bodies: Callable[[Any], Any]) -> None:
    for i, body in enumerate(bodies):
        programs.enter(f"{name} {i}", body)


lines(
    "implicit gradients are real",
    lambda torch: some(torch, kind="complex64").sum().backward(),
    lambda torch: some(torch).sum().backward(),
    lambda torch: (some(torch) * 2).backward(),
    lambda torch: torch.autograd.grad(some(torch).prod(), some(torch)),
    lambda torch: torch.func.grad(lambda x: x.sum())(some(torch, False)),
)
lines(
    "cotangents fit outputs",
    lambda torch: torch.autograd.grad(x := some(torch), x, torch.ones(3, dtype=torch.float64)),
    lambda torch: (x := some(torch), torch.autograd.grad(x.abs(), x, some(torch, False)))[1],
    lambda torch: (
        x := some(torch),
        torch.autograd.grad(x * 2, x, some(torch, False, "complex64")),
    )[1],
    lambda torch: (x := some(torch), (x * 2).backward(some(torch, False)), x.grad)[2],
    lambda torch: torch.func.vjp(lambda x: x**2, some(torch, False))[1](some(torch, False)),
    lambda torch: torch.func.vjp(lambda x: x**2, some(torch, False))[1](reals(torch, False)),
)
lines(
    "grad holds the dtype of its tensor",
    lambda torch: setattr(some(torch), "grad", torch.ones(3, dtype=torch.float64)),
    lambda torch: (x := some(torch), setattr(x, "grad", some(torch, False)), x.grad)[2],
    lambda torch: (x := reals(torch), (x * some(torch, False)).abs().sum().backward(), x.grad)[2],
    lambda torch: (x := reals(torch), (x + 1j).abs().sum().backward(), x.grad)[2],
    lambda torch: (x := some(torch), x.abs().sum().backward(), (x * x.conj()).real.sum().backward(),
                   x.grad)[3],
    lambda torch: (x := some(torch), y := x * 1j, y.retain_grad(), y.abs().sum().backward(),
                   y.grad, x.grad)[4:],
    lambda torch: torch.tensor([1, 2], requires_grad=True),
    lambda torch: torch.tensor([1j], requires_grad=True).requires_grad,
)  # fmt: skip
lines(
    "writes",
    lambda torch: (reals(torch) * 1).add_(some(torch)),
    lambda torch: (reals(torch) * 1).mul_(1j),
    lambda torch: (reals(torch) * 1).fill_(1j),
    lambda torch: (reals(torch) * 1).__setitem__(0, 1j),
    lambda torch: (x := some(torch), y := reals(torch) * 1, y.copy_(x),
                   torch.autograd.grad(y, x, reals(torch, False)))[3],
    lambda torch: (x := reals(torch), y := some(torch) * 1, y.copy_(x),
                   torch.autograd.grad(y, x, some(torch, False)))[3],
    lambda torch: (x := some(torch), y := x * 1, y.imag.mul_(3),
                   torch.autograd.grad(y, x, some(torch, False)))[1::2],
    lambda torch: (x := some(torch), r := reals(torch), y := x * 1, setattr(y, "real", r),
                   torch.autograd.grad(y, [x, r], some(torch, False)))[2::2],
    lambda torch: (x := some(torch), y := x * 1, torch.view_as_real(y)[:, 0].mul_(2),
                   torch.autograd.grad(y, x, some(torch, False)))[1::2],
    lambda torch: some(torch).imag.mul_(2),
    lambda torch: (some(torch) * 1).abs_(),
    lambda torch: (x := some(torch), y := (x * 1).sgn_(), y,
                   torch.autograd.grad(y, x, some(torch, False)))[2:],
)  # fmt: skip
lines(
    "names of nodes",
    *[
        lambda torch, f=f: f(torch).grad_fn.name()
        for f in (
            lambda torch: some(torch).conj(), lambda torch: some(torch).real,
            lambda torch: some(torch).abs(), lambda torch: some(torch).angle(),
            lambda torch: some(torch).sgn(), lambda torch: torch.view_as_real(some(torch)),
            lambda torch: some(torch) * 1j, lambda torch: some(torch) ** 2,
            lambda torch: reals(torch) ** 1j, lambda torch: 1j ** reals(torch),
            lambda torch: torch.polar(reals(torch), reals(torch)),
            lambda torch: torch.complex(reals(torch), reals(torch)),
            lambda torch: some(torch).conj_physical(),
            lambda torch: torch.vdot(some(torch), some(torch)),
        )
    ],
)  # fmt: skip
_FUNCTIONS: tuple[tuple[Callable[..., Any], Callable[..., Any]], ...] = (
    (lambda torch, x: x**2, some),
    (lambda torch, x: x * x.conj(), some),
    (lambda torch, x: x.abs(), some),
    (lambda torch, x: torch.view_as_real(x), some),
    (lambda torch, x: x * (1 + 2j), reals),
    (lambda torch, x: torch.polar(x.exp(), x), reals),
)
for _i, (_f, _of) in enumerate(_FUNCTIONS):
    lines(
        f"transforms of function {_i}",
        lambda torch, f=_f, of=_of: torch.autograd.functional.jacobian(
            lambda x: f(torch, x), of(torch, False)
        ),
        lambda torch, f=_f, of=_of: torch.autograd.functional.jacobian(
            lambda x: f(torch, x), of(torch, False), vectorize=True
        ),
        lambda torch, f=_f, of=_of: torch.autograd.functional.jvp(
            lambda x: f(torch, x), of(torch, False), of(torch, False)
        ),
        lambda torch, f=_f, of=_of: torch.func.jacrev(lambda x: f(torch, x))(of(torch, False)),
        lambda torch, f=_f, of=_of: torch.func.jacfwd(lambda x: f(torch, x))(of(torch, False)),
        lambda torch, f=_f, of=_of: torch.func.jvp(
            lambda x: f(torch, x), (of(torch, False),), (of(torch, False),)
        ),
        lambda torch, f=_f, of=_of: torch.autograd.gradcheck(
            lambda x: f(torch, x), of(torch), check_forward_ad=True, check_batched_grad=True
        ),
        lambda torch, f=_f, of=_of: torch.autograd.gradgradcheck(lambda x: f(torch, x), of(torch)),
        lambda torch, f=_f, of=_of: torch.autograd.gradcheck(
            lambda x: f(torch, x), of(torch), fast_mode=True
        ),
    )


def cubes(torch: Any, x: Any) -> Any:
    return (x.abs() ** 3).sum()


lines(
    "second order",
    lambda torch: torch.autograd.functional.hessian(lambda x: cubes(torch, x), some(torch, False)),
    lambda torch: torch.autograd.functional.hvp(
        lambda x: cubes(torch, x), some(torch, False), some(torch, False)
    ),
    lambda torch: torch.autograd.functional.vhp(
        lambda x: cubes(torch, x), some(torch, False), some(torch, False)
    ),
    lambda torch: torch.func.hessian(lambda x: cubes(torch, x))(some(torch, False)),
    lambda torch: torch.func.vmap(torch.func.grad(lambda x: x.abs() ** 3))(some(torch, False)),
    lambda torch: torch.func.linearize(lambda x: x**2, some(torch, False))[1](some(torch, False)),
)


@program
def a_wrong_backward_is_found(torch: Any) -> Any:
    class Square(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * g * ctx.saved_tensors[0]  # not conjugated

    return torch.autograd.gradcheck(Square.apply, some(torch))


@program
def a_real_gradient_for_a_complex_input(torch: Any) -> Any:
    class Twice(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g.abs()

    x = some(torch)
    return torch.autograd.grad(Twice.apply(x), x, some(torch, False))


@program
def a_complex_gradient_for_a_real_input(torch: Any) -> Any:
    class Twice(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * (1 + 1j)

    x = reals(torch)
    return torch.autograd.grad(Twice.apply(x), x, reals(torch, False))


@program
def hooks(torch: Any) -> Any:
    found = []
    for x, hook in (
        (some(torch), lambda g: g.conj()), (some(torch), lambda g: g * 1j),
        (some(torch), lambda g: g.abs()), (reals(torch), lambda g: g * 2),
    ):  # fmt: skip
        y = x * 2
        y.register_hook(hook)
        found.append(torch.autograd.grad(y, x, torch.ones_like(y)))
    return found


@program
def a_layer(torch: Any) -> Any:
    layer = torch.nn.Linear(3, 2, dtype=torch.complex64)
    with torch.no_grad():
        for p in layer.parameters():
            p.copy_(torch.arange(p.numel()).reshape(p.shape) * (1 - 1j) / 7)
    y = layer(some(torch, False, "complex64").reshape(1, 3))
    y.abs().sum().backward()
    return y, layer.weight.grad, layer.bias.grad


def trained(name: str, **kwargs: Any) -> Callable[[Any], Any]:
    def run(torch: Any) -> Any:
        x = some(torch)
        optimizer = getattr(torch.optim, name)([x], **kwargs)
        for _ in range(3):
            optimizer.zero_grad()
            (x - (1 + 1j)).abs().pow(2).sum().backward()
            optimizer.step()
        return x

    return run


lines(
    "optimizers",
    trained("SGD", lr=0.1, momentum=0.9), trained("Adam", lr=0.1), trained("AdamW", lr=0.1),
    trained("RMSprop", lr=0.1), trained("Adagrad", lr=0.1),
)  # fmt: skip


@program
def clipping(torch: Any) -> Any:
    x = some(torch)
    (x.abs() ** 2).sum().backward()
    return torch.nn.utils.clip_grad_norm_([x], 1.0), x.grad


@program
def checkpoint(torch: Any) -> Any:
    tool = importlib.import_module(torch.__name__ + ".utils.checkpoint")
    x = some(torch)
    y = tool.checkpoint(lambda t: t * t.conj(), x, use_reentrant=False)
    return torch.autograd.grad(y, x, some(torch, False))


def loss_of_phase(torch: Any, name: str) -> Any:
    x = matrix(3)(torch, 0.0)
    found = getattr(torch.linalg, name)(x @ x.mH)
    (found[0] if name == "svd" else found[1]).sum().abs().backward()


lines(
    "phases of vectors",
    *[lambda torch, n=n: loss_of_phase(torch, n) for n in ("eigh", "eig", "svd")],
)

# --- which dtypes are taken -----------------------------------------------------------------------
CALLS = """
r.index_fill(0, i, 1j) | r.index_fill(0, i, torch.tensor(1j)) | r.scatter(0, i, 1j)
r.masked_fill(r == 0, 1j) | r.masked_fill(r == 0, torch.tensor(1j)) | r.fill_(1j)
r.index_put((i,), torch.tensor(1j)) | r.index_copy(0, i, torch.tensor([1j]))
r.index_add(0, i, torch.tensor([1j])) | r.scatter(0, i, torch.tensor([1j]))
r.scatter_add(0, i, torch.tensor([1j])) | torch.where(r == 0, r, 1j) | torch.full_like(r, 1j)
r.masked_scatter(r == 0, torch.tensor([1j] * 3)) | r.put(i, torch.tensor([1j]))
torch.nn.functional.pad(r, (1, 1), value=1j) | torch.addcmul(r, r, r, value=1j)
torch.addcdiv(r, r, r, value=1j) | torch.addcmul(z, r, r, value=1j) | torch.lerp(r, r, 1j)
torch.lerp(z, r, 0.5) | torch.lerp(z, z, 0.5) | r.index_add(0, i, torch.tensor([1.0]), alpha=1j)
torch.addmm(m, m, m, alpha=1j) | torch.addmv(r[:2], m, r[:2], alpha=1j)
torch.addr(m, r[:2], r[:2], beta=1j) | torch.sub(r, r, alpha=1j) | torch.rsub(r, r, alpha=1j)
torch.add(z, r, alpha=1j) | torch.clamp(r, 1j) | torch.pow(r, 1j) | torch.pow(1j, r)
torch.pow(r.int(), 1j) | torch.pow(1j, r.int()) | r.pow_(1j) | r.mul_(1j) | r.sub_(z) | r.div_(z)
z.add_(r) | r.float_power(1j) | torch.isclose(r, z) | r.eq(1j) | r.lt(1j) | z.lt(1)
torch.dot(r, z) | torch.vdot(r, z) | torch.mv(m, z[:2]) | torch.linspace(0, 1j, 3)
torch.arange(0, 1j, 1) | torch.complex(r, r.double()) | torch.complex(r.int(), r.int())
torch.polar(r, r.double()) | torch.heaviside(z, z) | torch.nansum(z) | torch.quantile(z, 0.5)
z.sign() | z.floor() | z.round() | torch.signbit(z) | torch.trunc(z) | torch.frac(z) | z % 2
z // 2 | torch.topk(z, 1) | torch.sort(z) | torch.cummax(z, 0) | torch.median(z) | torch.mode(z)
torch.kthvalue(z, 1) | torch.bincount(z) | torch.amax(z) | torch.max(z) | torch.max(z, 0)
torch.argmax(z) | torch.aminmax(z) | torch.maximum(z, z) | torch.fmax(z, z) | torch.hypot(z, z)
torch.erf(z) | torch.lgamma(z) | torch.logit(z) | torch.xlogy(z, z) | torch.special.entr(z)
torch.i0(z) | torch.nn.functional.elu(z) | torch.nn.functional.gelu(z)
torch.nn.functional.relu(z) | torch.nn.functional.leaky_relu(z) | torch.nn.functional.hardtanh(z)
torch.nn.functional.logsigmoid(z) | torch.nn.functional.threshold(z, 0, 0)
torch.nn.functional.softshrink(z) | torch.softmax(z, 0) | torch.log_softmax(z, 0)
torch.nn.functional.layer_norm(z, (3,)) | torch.nn.functional.mse_loss(z, z)
torch.nn.functional.smooth_l1_loss(z, z) | torch.nn.functional.huber_loss(z, z)
torch.nn.functional.kl_div(z, z) | torch.nn.functional.binary_cross_entropy_with_logits(z, z)
torch.nn.functional.gaussian_nll_loss(z, z, z) | torch.bitwise_and(z, z) | torch.logical_and(z, r)
torch.cdist(c, c) | torch.unique(z) | torch.unique_consecutive(z) | torch.isin(z, z)
torch.searchsorted(z, z) | torch.bucketize(z, r) | torch.deg2rad(z) | torch.atan2(z, z)
torch.copysign(z, z) | torch.copysign(r, 1j) | torch.fmod(z, z) | torch.remainder(z, r)
torch.div(z, z, rounding_mode="floor") | torch.div(z, z, rounding_mode="trunc")
torch.floor_divide(z, 2) | torch.imag(r) | torch.view_as_real(r) | torch.view_as_complex(z)
torch.view_as_complex(r) | torch.isposinf(z) | torch.isreal(z) | torch.logaddexp2(z, z)
torch.frexp(z) | torch.linalg.cross(z, r)
torch.linalg.lu_solve(*torch.linalg.lu_factor(m + torch.eye(2)), c) | torch.linalg.solve(m, c)
torch.linalg.vector_norm(r, dtype=torch.complex64)
torch.linalg.vector_norm(z, dtype=torch.float32) | torch.einsum("i,i", r, z) | torch.inner(r, z)
torch.outer(r, z) | torch.kron(r, z) | torch.cat([r, z]) | torch.stack([r, z])
torch.result_type(r, z) | z.to(torch.float32) | z.double() | z.long() | r.to(torch.complex64)
r.cdouble() | z.type_as(r) | z.view(torch.float32) | float(z[0]) | int(z[0]) | complex(z[0])
bool(z[0]) | torch.equal(r, z) | r.scatter_reduce(0, i, r[:1], "amax")
z.scatter_reduce(0, i, z[:1], "amax") | z.index_reduce(0, i, z[:1], "prod")
torch.polygamma(2, z) | torch.special.i1e(z)
"""


def calls() -> Iterator[str]:
    for line in CALLS.strip().splitlines():
        yield from (text.strip() for text in line.split(" | "))


def told(torch: Any, text: str) -> str:
    """The dtypes of what a line of code gives, or its error."""
    given = {
        "torch": torch, "r": torch.tensor([0.0, 1.0, 2.0]), "i": torch.tensor([0]),
        "z": torch.tensor([1 + 1j, 2 - 1j, -1 + 0.5j]), "m": torch.ones(2, 2),
        "c": torch.ones(2, 2) * 1j,
    }  # fmt: skip

    def of(x: Any) -> str:
        if isinstance(x, torch.Tensor):
            return f"{x.dtype}{list(x.shape)}"
        if isinstance(x, (tuple, list)):
            return " ".join(of(y) for y in x)
        return repr(x)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return of(eval(text, given))  # a line that stands above
        except Exception as error:  # whatever it is, both libraries must raise it
            return f"{type(error).__name__}: {str(error).splitlines()[0]}"[:70]


def results(lib: Any) -> Any:
    return {
        "cases": cases.results(lib),
        "programs": programs.results(lib),
        "calls": {text: told(lib, text) for text in calls()},
    }
