"""Conjugate and negated views: what PyTorch shows of them, line by line and program by program.

`x` is a complex matrix, `y` its conjugate view, `z` the imaginary part of that, which is a negated
view, and `w` a leaf. Whether a gradient of a leaf is a conjugate view is not compared.
"""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

from tests.harness import Cases, attempt, rounded

LINES = """
y, y.conj(), y.data, y.detach(), y.conj().conj(), y.conj()._base is x, y._base is x, z._base is x
y[0], y[0, 1], y[None], y[...], y[:, 1:], y.t(), y.T, y.mT, y.mH, y.H, x.H, x.mH, x.adjoint()
y.view(4), y.reshape(-1), y.t().reshape(-1), y.flatten(), y.unflatten(0, (1, 2)), y.view_as(x)
y.expand(3, 2, 2), y.unsqueeze(0), y.squeeze(), y.permute(1, 0), y.movedim(0, 1), y.swapaxes(0, 1)
y.select(0, 1), y.narrow(0, 0, 1), y.diagonal(), y.unfold(0, 1, 1), y.as_strided((2,), (1,))
y.unbind(), y.split(1), y.chunk(2, 1), y.broadcast_to((1, 2, 2)), y.expand_as(x), list(y)
y.real, y.imag, x.imag, x.real, z[0], z.t(), z.view_as(z), z + 1, -z, z.neg(), z.conj() is z
y.clone(), y.contiguous() is y, y.t().contiguous(), y.contiguous(), y.resolve_conj()
z.resolve_neg()
y.resolve_neg() is y, x.resolve_conj() is x, z.resolve_conj() is z, z.contiguous()
y.conj_physical(), torch.conj_physical(y), torch._conj_physical(y), torch._conj(y)
torch.conj(z) is z
torch.view_as_real(y)
torch.view_as_real(torch._neg_view(x)), torch._neg_view(x), torch._neg_view(x).conj()
torch._neg_view(x).real, torch._neg_view(x).imag, torch._neg_view(y).imag, torch._neg_view(y).real
torch._neg_view(torch._neg_view(x)), torch._neg_view(torch.ones(2)), -torch._neg_view(torch.ones(2))
y.view(torch.float32)
y.view(torch.complex64)
z.view(torch.int32)
y.numpy()
z.numpy()
y.detach().numpy(force=True).tolist(), z.numpy(force=True).tolist()
y.tolist(), z.tolist(), y[0, 0].item(), complex(y[0, 1]), float(z[0, 0]), int(z[0, 1])
bool(z[0, 1])
y == x, y.equal(x), torch.equal(y, y), torch.allclose(y, x.conj()), y != x, z > 0
torch.zeros_like(y), torch.empty_like(y).is_conj(), torch.ones_like(z), y.new_zeros(2)
z.new_ones(2)
y.to(torch.complex128), y.to(torch.complex64) is y, y.to(torch.complex64, copy=True), y.cpu() is y
y.to(torch.float32), y.bool(), z.int(), z.double(), z.float() is z, y.cfloat() is y, y.type(x.dtype)
y + 1, y * 1j, 2 - y, y / x, y ** 2, y @ y, y @ x, x @ y.mH, y.sum(), y.sum(0), y.abs(), y.angle()
y.exp(), y.mean(), y.prod(), y.cumsum(0), y.cumprod(1), z.max(), z.min(0), z.sort(), z.argmax(1)
z.softmax(0), z.std(), z.norm(), y.norm(), z.topk(1), z.unique(), z.nonzero(), z.median(), z.sign()
z.gather(0, i), z.tril(), z.roll(1, 0), z.repeat(1, 2), z.clamp(-1, 0.5), z.cumsum(0)
torch.signbit(z)
F.relu(z + 0.25), F.linear(z, z), F.pad(z, (1, 1)), F.layer_norm(z, (2,))
y.index_select(0, j), y[j], y[m], y.masked_select(m), torch.take(y, j), y.flip(0)
torch.where(m, y, x)
torch.stack([y, y]), torch.cat([y, x]), torch.complex(y.real, y.imag), torch.addcmul(x, y, y)
torch.lerp(x, y, 0.5), torch.dot(y[0], x[0]), torch.vdot(y[0], x[0]), torch.outer(y[0], y[0])
torch.einsum("ij,jk->ik", y, y.mH).tolist(), torch.fft.fft(y), torch.linalg.inv(y), y.mv(y[0])
torch.linalg.solve(y, x), torch.linalg.svdvals(y), torch.linalg.det(y), torch.kron(y, y), y.trace()
copy.deepcopy(y), copy.deepcopy(z), kept(copy.copy(y)), kept(pickle.loads(pickle.dumps(y)))
kept(pickle.loads(pickle.dumps(z))), torch.asarray(y), torch.as_tensor(y) is y
repr(y), repr(z), repr(w.conj()), str(w.conj().imag), repr(torch._neg_view(torch.ones(2)))
torch.is_conj(y), torch.is_neg(y), torch.is_conj(x), torch.is_neg(z), x.is_neg()
torch.ones(2).is_conj()
y.__dlpack__()
torch.from_dlpack(y)
y.__array__()
y.data_ptr() == x.data_ptr(), z.data_ptr() - x.data_ptr(), y.storage_offset(), z.storage_offset()
y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
y.storage().data_ptr() == x.data_ptr()
y.stride(), z.stride(), y.is_contiguous(), y.t().is_contiguous(), y.is_complex(), len(y), y.numel()
x.clone().set_(y), torch.empty(0, dtype=torch.complex64).set_(y), x.conj().set_(x.clone())
w.conj(), w.conj().conj(), w.mH, w.H, w.adjoint(), w.conj()[0], w.conj().t(), torch.conj(w)
w.conj().real
w.conj().imag, w.conj().resolve_conj(), w.conj().detach(), w.conj().clone(), w.conj().sum()
w.conj() * 2
torch._neg_view(w), torch.conj_physical(w), w.conj().conj_physical(), w.conj().imag.resolve_neg()
chain(w.conj().imag), chain(w.conj().real), chain(w.conj().imag[0].view(1, 2).t()), chain(w.mH)
torch.autograd.grad(w.conj().imag[0].view(1, 2).t(), w, torch.ones(2, 1))[0].tolist()
torch.ones(2).conj_physical(), torch.ones(2, 2).mH, torch.ones(2, 2).H, torch.ones(2).resolve_conj()
torch.ones(2, 2, dtype=torch.complex64, device="meta").conj().is_conj()
torch.ones(2, 2, dtype=torch.complex64, device="meta").conj().imag.is_neg()
torch.ones(2, 2, dtype=torch.complex64, device="meta").mH.stride(), (meta.conj() + 1).is_conj()
(meta.conj() @ meta.mH).shape, meta.conj().sum().shape, meta.conj().clone().is_conj()
str(meta.conj())
x.to_sparse().conj().is_conj(), x.to_sparse().conj().to_dense(), y.to_sparse().to_dense()
torch.sparse.mm(x.to_sparse(), y), y.to_sparse_csr().values().is_conj()
y.share_memory_() is y, y.is_shared(), torch.nn.Parameter(y), torch.nn.Parameter(z)
deep.conj().contiguous(memory_format=torch.channels_last).is_conj()
deep.conj().to(memory_format=torch.channels_last).is_conj()
deep.conj().to(memory_format=fmt).is_conj()
""".strip().splitlines()  # fmt: skip

programs = Cases()


def matrix(torch: Any) -> Any:
    return torch.tensor([[1 + 2j, 3 - 1j], [0.5j, 2 + 0j]])


def leaf(torch: Any) -> Any:
    return matrix(torch).requires_grad_()


def chain(t: Any) -> list[str]:
    """The names of the nodes behind a tensor, along the first edge of each."""
    node, found = t.grad_fn, []
    while node is not None:
        found.append(node.name())
        node = node.next_functions[0][0] if node.next_functions else None
    return found


def kept(t: Any) -> Any:
    """A tensor without its version, which counts what PyTorch did to it in making it."""
    return t.is_conj(), t.is_neg(), t._is_view(), t.stride(), t.tolist()


def values(t: Any) -> Any:
    return None if t is None else t.tolist()


# --- writes ---------------------------------------------------------------------------------------
@programs
def writing_a_conjugate(torch: Any) -> Any:
    x = matrix(torch)
    y = x.conj()
    y.mul_(1j)
    y += 1
    y -= x
    y[0] = 1 + 1j
    y[1, 1] = torch.tensor(3j)
    return x, y


@programs
def writing_what_is_conjugated(torch: Any) -> Any:
    x = matrix(torch)
    y = x.conj()
    x.add_(1j)
    return x, y, y.conj(), y.imag


@programs
def writing_by_indices(torch: Any) -> Any:
    x = matrix(torch)
    y = x.conj()
    other, i = matrix(torch), torch.tensor([0, 0])
    y[torch.tensor([0])] = torch.tensor([1 + 1j, 2j])
    y[torch.tensor([[False, False], [True, False]])] = 7j
    y.index_add_(0, i, other)
    y.index_fill_(1, torch.tensor([1]), 9j)
    y.masked_fill_(torch.tensor([[True, False], [False, False]]), 1j)
    y.scatter_(0, torch.tensor([[0, 1]]), other)
    y.scatter_add_(0, torch.tensor([[0, 1]]), other)
    y.index_put_((i,), other, accumulate=True)
    y.index_copy_(0, torch.tensor([1]), other[:1])
    y.masked_scatter_(torch.tensor([[False, True], [False, True]]), other)
    return x, y


@programs
def filling(torch: Any) -> Any:
    x, other = matrix(torch), matrix(torch)
    x.conj().fill_(1 + 1j)
    part = other.conj().imag
    part.add_(10)
    part[0] = 5
    part[1].zero_()
    return x, other, part


@programs
def copying(torch: Any) -> Any:
    x, back = matrix(torch), torch.zeros(2, 2, dtype=torch.complex64)
    y, again = x.conj(), matrix(torch).conj()
    y.copy_(torch.ones(2, 2) * (1 + 1j))
    back.copy_(y)
    again.copy_(y * 2)
    y.imag.copy_(torch.ones(2))
    x.imag = y.imag
    return x, y, back, again, torch.zeros(2, 2).copy_(y)


@programs
def drawing(torch: Any) -> Any:
    torch.manual_seed(0)
    x, other = matrix(torch), matrix(torch)
    x.conj().normal_()
    other.conj().imag.uniform_()
    torch.nn.init.normal_(other.conj().real)
    return x, other


@programs
def functions_in_place(torch: Any) -> Any:
    names = "exp_ sin_ conj_physical_ neg_ square_ sqrt_ reciprocal_ sigmoid_ tanh_ sgn_ cumsum_"
    found = []
    for name in names.split():
        x = matrix(torch)
        args = (0,) if name == "cumsum_" else ()
        y = x.conj()
        found.append([getattr(y, name)(*args) is y, x])
    for name in "abs_ neg_ relu_ clamp_ round_ tril_ t_".split():
        x = matrix(torch)
        args = (-1, 1) if name == "clamp_" else ()
        found.append([getattr(x.conj().imag, name)(*args), x])
    return found


@programs
def turning_in_place(torch: Any) -> Any:
    x = matrix(torch)
    y = x.conj()
    y.t_()
    y.unsqueeze_(0)
    return x, y


@programs
def writing_out(torch: Any) -> Any:
    x, made = matrix(torch), torch.empty(2, 2, dtype=torch.complex64)
    y = x.conj()
    torch.add(matrix(torch), 1j, out=y)
    torch.mul(y, y, out=made)
    torch.mm(matrix(torch), y, out=y)
    part = matrix(torch).conj().imag
    torch.add(torch.ones(2, 2), 1, out=part)
    wide = matrix(torch).conj()
    torch.add(torch.ones(3, dtype=torch.complex64), 1j, out=wide)
    return x, y, made, part, kept(wide)


@programs
def operands_over_one_memory(torch: Any) -> Any:
    found = []
    for word in ("add_", "mul_", "sub_", "copy_"):
        x = matrix(torch)
        getattr(x, word)(x.conj())
        y = matrix(torch)
        getattr(y.conj(), word)(y)
        found += [x, y]
    return found


@programs
def versions(torch: Any) -> Any:
    x = matrix(torch)
    y = x.conj()
    z, d, e = y.imag, y.detach(), y.data
    z.add_(1), d.add_(1), e.add_(1)
    return [t._version for t in (x, y, z, d, e)], x


@programs
def memory_moves(torch: Any) -> Any:
    x, y = matrix(torch), matrix(torch).conj()
    x.data = y
    z = matrix(torch).conj()
    z.data = matrix(torch)
    r = matrix(torch).conj()
    r.resize_(3)
    base = matrix(torch)
    view = base.conj()
    base.resize_(3, 2)
    base[:2].mul_(2)
    a, b = matrix(torch), matrix(torch).conj()
    torch.utils.swap_tensors(a, b)
    return kept(x), kept(z), kept(r), kept(view), kept(a), kept(b)


@programs
def saving(torch: Any) -> Any:
    x = matrix(torch)
    found = []
    for things in ({"x": x, "y": x.conj()}, {"z": x.conj().imag}, [torch.nn.Parameter(x.conj())]):
        file = io.BytesIO()
        torch.save(things, file)
        for safe in (True, False):
            file.seek(0)
            got = torch.load(file, weights_only=safe)
            tensors = list(got.values() if isinstance(got, dict) else got)
            shared = tensors[0].untyped_storage().data_ptr()
            found.append([[kept(t) for t in tensors], tensors[-1].data_ptr() - shared])
    return found


@programs
def inference(torch: Any) -> Any:
    with torch.inference_mode():
        x = matrix(torch)
        y = x.conj()
        y.mul_(1j)
    return x.tolist(), y.is_conj(), y._is_view(), y.is_inference()


# --- reverse mode ---------------------------------------------------------------------------------
@programs
def gradients(torch: Any) -> Any:
    found = []
    for f in (
        lambda w: (w.conj() * matrix(torch)).sum().abs(), lambda w: (w.conj().imag ** 2).sum(),
        lambda w: (w.mH @ w).real.sum(), lambda w: (w.conj() * w * w).sum().abs(),
        lambda w: torch._neg_view(w).exp().sum().abs(), lambda w: w.conj().real.exp().sum(),
        lambda w: torch.linalg.inv(w.mH).abs().sum(), lambda w: w.H[0].conj().angle().sum(),
    ):  # fmt: skip
        w = leaf(torch)
        f(w).backward()
        first = w.grad
        f(w).backward()
        (again,) = torch.autograd.grad(f(w), w, create_graph=True)
        (second,) = torch.autograd.grad(again.abs().sum(), w)
        found.append([values(g) for g in (first, w.grad, again, second)])
    return found


@programs
def gradients_given(torch: Any) -> Any:
    w, g = leaf(torch), matrix(torch).conj()
    (w + 0).backward(g)
    kept_apart = w.grad.tolist()
    g.mul_(5)
    seeds = matrix(torch).requires_grad_()
    (r,) = torch.autograd.grad(w.conj(), w, seeds, create_graph=True)
    (back,) = torch.autograd.grad(r, seeds, matrix(torch))
    return kept_apart, values(w.grad), r, chain(r), values(back)


@programs
def a_gradient_that_is_conjugated_is_added_to(torch: Any) -> Any:
    w = leaf(torch)
    w.grad = matrix(torch).conj()
    (w * w).sum().backward(torch.tensor(1 + 0j))
    return w.grad


@programs
def leaves_that_are_conjugated(torch: Any) -> Any:
    found = []
    for y in (matrix(torch).conj(), matrix(torch).conj().detach(), matrix(torch).conj().imag):
        y.requires_grad_()
        (y * y).sum().abs().backward()
        found += [y, y.is_leaf, values(y.grad), y.grad.stride()]
    return found


@programs
def history_of_a_written_conjugate(torch: Any) -> Any:
    w = leaf(torch)
    x = w * 2
    y = x.conj()
    y.mul_(matrix(torch))
    return x, chain(x), y, chain(y), values(torch.autograd.grad(x, w, matrix(torch))[0])


@programs
def history_of_a_stale_conjugate(torch: Any) -> Any:
    found = []
    for view in (
        lambda x: x.conj(), lambda x: x.conj()[0], lambda x: x.conj().imag, lambda x: x.mH,
        lambda x: x.t().conj().t()[0], lambda x: x.conj().conj(), torch._neg_view,
    ):  # fmt: skip
        w = leaf(torch)
        x = w * 2
        y = view(x)
        x.mul_(matrix(torch))
        found.append([y, chain(y), values(torch.autograd.grad(y.abs().sum(), w)[0])])
    return found


@programs
def history_of_written_parts(torch: Any) -> Any:
    found = []
    for view in (
        lambda x: x.conj().imag, lambda x: x.conj().t()[0], lambda x: x.mH[:, 1].real,
        lambda x: x.conj().conj()[1], lambda x: torch._neg_view(x)[0],
    ):  # fmt: skip
        w = leaf(torch)
        x = w * 2
        y = view(x)
        y.mul_(y.detach() + 3)
        g = values(torch.autograd.grad(x, w, matrix(torch), retain_graph=True)[0])
        found.append([x, chain(x), y, chain(y), g])
        other = torch.ones(y.shape, dtype=y.dtype, requires_grad=True)
        y.copy_(other)
        ends = torch.autograd.grad(x, (w, other), matrix(torch))
        found.append([x, [values(e) for e in ends]])
    return found


@programs
def refused_writes(torch: Any) -> Any:
    w = leaf(torch)
    with torch.no_grad():
        hidden = w.conj()
        free = w.conj().mul_(2j)
    x = w * 1
    y = x.conj()
    z = y * y
    x.add_(1)
    return [
        attempt(lambda: w.conj().mul_(2)), attempt(lambda: hidden.mul_(2)), hidden.requires_grad,
        hidden.is_leaf, attempt(lambda: free.grad_fn), "version" in attempt(z.abs().sum().backward),
    ]  # fmt: skip


@programs
def hooks(torch: Any) -> Any:
    w = leaf(torch)
    y = w.conj()
    y.retain_grad()
    seen: list[Any] = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    w.register_hook(lambda g: seen.append(g.tolist()) or g.conj())
    with torch.autograd.graph.saved_tensors_hooks(lambda t: seen.append(kept(t)) or t, lambda t: t):
        z = (y * y).sum().abs()
    z.backward()
    return seen, values(y.grad), values(w.grad)


@programs
def custom_functions(torch: Any) -> Any:
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return (g * x).conj()

    w = leaf(torch)
    y = Scaled.apply(w.conj())
    y.sum().abs().backward()
    return y, values(w.grad)


@programs
def steps_of_an_optimiser(torch: Any) -> Any:
    p, q = torch.nn.Parameter(matrix(torch).conj()), torch.nn.Parameter(matrix(torch).conj().imag)
    first = torch.optim.SGD([p, q], lr=0.1, momentum=0.9)
    second = torch.optim.Adam([q], lr=0.1)
    for _ in range(2):
        first.zero_grad()
        ((p * p.conj()).real.sum() + (q * q).sum()).backward()
        first.step(), second.step()
    return p.is_conj(), p.tolist(), q.is_neg(), q.tolist()


@programs
def checks(torch: Any) -> Any:
    w = matrix(torch).to(torch.complex128)
    a, b = w.clone().requires_grad_(), w.conj().requires_grad_()
    return [
        torch.autograd.gradcheck(lambda z: z.conj() * z, (a,), check_forward_ad=True),
        torch.autograd.gradgradcheck(lambda z: z.conj().imag ** 2 * z.mH.real, (a,)),
        torch.autograd.gradcheck(lambda z: z * z, (b,), check_forward_ad=True),
        torch.autograd.gradcheck(lambda z: torch._neg_view(z).exp(), (a,), check_forward_ad=True),
    ]


# --- forward mode and transforms ------------------------------------------------------------------
@programs
def tangents(torch: Any) -> Any:
    from importlib import import_module

    ad = import_module(f"{torch.__name__}.autograd.forward_ad")
    found = []
    with ad.dual_level():
        x = matrix(torch)
        d = ad.make_dual(x, matrix(torch) * 1j)
        y = d.conj()
        found += [*ad.unpack_dual(y), ad.unpack_dual(y.imag * 2).tangent.tolist()]
        y.mul_(2j)
        found += [*ad.unpack_dual(d), *ad.unpack_dual(y)]
        e = ad.make_dual(matrix(torch).conj(), matrix(torch))
        found += [*ad.unpack_dual(e.conj()), ad.unpack_dual(e * e).tangent]
        o = ad.make_dual(matrix(torch), matrix(torch).conj())
        found += [ad.unpack_dual(o).tangent, ad.unpack_dual(o * o).tangent]
    return [kept(t) if hasattr(t, "is_conj") else t for t in found]


@programs
def batches(torch: Any) -> Any:
    vmap, x = torch.func.vmap, matrix(torch)
    seen: list[Any] = []

    def f(r: Any) -> Any:
        seen.append([r.is_conj(), r.conj().is_conj(), r.conj().shape == r.shape])
        return r.conj() * 2

    def write(r: Any) -> Any:
        r.conj().mul_(1j)
        return r.conj()

    shared = matrix(torch)[0].conj()
    made = [
        vmap(lambda r: r.conj())(x), vmap(f)(x), vmap(f)(x.conj()), vmap(lambda r: r)(x.conj()),
        vmap(lambda r: r.conj())(x.conj()), vmap(lambda r: r * shared)(x), vmap(write)(x), x,
        vmap(lambda r: (r.conj() * shared).sum())(x), vmap(lambda r: r.conj().real)(x),
        vmap(lambda r: r.mH @ r)(matrix(torch)[None]), vmap(lambda r: r + 1, 1, 1)(x.conj()),
    ]  # fmt: skip
    return seen, [[t.is_conj(), t.tolist()] for t in made]


@programs
def transforms(torch: Any) -> Any:
    func, x = torch.func, matrix(torch)
    y, pull = func.vjp(lambda z: z.conj(), x)
    _, along = func.jvp(lambda z: z * z.conj(), (x.conj(),), (x.conj(),))
    return [
        y.is_conj(), y.tolist(), values(pull(x)[0]), along.tolist(),
        values(func.grad(lambda z: (z.conj() * x).sum().abs())(x)),
        values(func.grad(lambda z: z.conj().imag.sum())(x)),
        values(func.grad(lambda z: (z * z).sum().real)(x.conj())),
        values(func.vmap(func.grad(lambda r: (r.conj() * r).sum().real))(x)),
        values(func.vmap(func.grad(lambda r: (r.conj() * r * r).sum().abs()))(x.conj())),
    ]  # fmt: skip


@programs
def checkpoints(torch: Any) -> Any:
    from importlib import import_module

    tool = import_module(f"{torch.__name__}.utils.checkpoint")
    w = leaf(torch)
    tool.checkpoint(lambda z: (z.conj() * z).real.sum(), w, use_reentrant=False).backward()
    return values(w.grad)


# --- running --------------------------------------------------------------------------------------
def seen(lib: Any, x: Any) -> Any:
    """All one can see of a result, as JSON can hold it."""
    if isinstance(x, lib.Tensor):
        name = None if x.grad_fn is None else x.grad_fn.name()
        bits = [x.is_conj(), x.is_neg(), x._is_view(), x.requires_grad, name, str(x.dtype)]
        strides = None if x.layout is not lib.strided else list(x.stride())
        return [*bits, strides, x._version, seen(lib, x.detach().tolist())]
    if isinstance(x, (list, tuple)):
        return [seen(lib, y) for y in x]
    if isinstance(x, complex):
        return [seen(lib, x.real), seen(lib, x.imag)]
    return rounded(x) if isinstance(x, float) else x if isinstance(x, (bool, int, str)) else repr(x)


def run_line(lib: Any, line: str) -> Any:
    x = matrix(lib)
    space = {
        "torch": lib, "F": lib.nn.functional, "x": x, "y": x.conj(), "z": x.conj().imag,
        "w": leaf(lib), "i": lib.tensor([[0, 1]]), "j": lib.tensor([1]), "copy": copy,
        "m": lib.tensor([[True, False], [False, True]]), "pickle": pickle, "kept": kept,
        "chain": chain, "meta": lib.ones(2, 2, dtype=lib.complex64, device="meta"),
        "deep": lib.ones(1, 2, 3, 4, dtype=lib.complex64), "fmt": lib.contiguous_format,
    }  # fmt: skip
    return seen(lib, attempt(lambda: eval(line, space)))


def run_program(lib: Any, name: str) -> Any:
    return seen(lib, attempt(lambda: programs[name](lib)))


def results(lib: Any) -> dict[str, Any]:
    found = {line: run_line(lib, line) for line in LINES}
    return found | {name: run_program(lib, name) for name in programs}
