"""Cases of views: memory that is shared, set and resized; kinds of views; regressions."""

from __future__ import annotations

from typing import Any

from tests.core.views.view_cases import ViewCases, leaf, numbers

cases = ViewCases()


# --- expanded tensors -----------------------------------------------------------------------------
@cases
def writing_expanded_tensors(torch: Any, see: Any) -> None:
    x = leaf(torch, 3, asks=False)
    e = x.expand(2, 3)
    see(lambda: e.add_(1), lambda: e.mul_(e), lambda: e.copy_(torch.ones(3)), e)
    see(lambda: e.zero_(), lambda: e.fill_(2), x)
    see(lambda: e[0].add_(1), lambda: e.__setitem__(0, 3.0), x)
    see(lambda: e.sin_(), lambda: e.t_(), lambda: e.clamp_(0), lambda: e.uniform_())


@cases
def writing_expanded_tensors_that_are_recorded(torch: Any, see: Any) -> None:
    x = leaf(torch, 3)
    y = x * 1
    e = y.expand(2, 3)
    see(lambda: e.add_(1), lambda: e.mul_(x), y)
    e.zero_()
    see(y, e)
    y.mul_(2)
    see(y, e)


@cases
def writing_what_only_looks_expanded(torch: Any, see: Any) -> None:
    one = leaf(torch, 1, asks=False).expand(1, 1)
    see(lambda: one.add_(1))
    none = leaf(torch, 1, asks=False).expand(0)
    see(lambda: none.add_(1))
    y = leaf(torch, 1, asks=False)
    see(lambda: y.add_(leaf(torch, 3, asks=False)))


@cases
def masks_and_indices_on_expanded_tensors(torch: Any, see: Any) -> None:
    x = leaf(torch, 3, asks=False)
    e = x.expand(2, 3)
    i = torch.tensor([0])
    see(lambda: e.masked_fill_(e > 0.3, 0.0), lambda: e.index_fill_(0, i, 1.0))
    see(lambda: e.index_add_(0, i, torch.ones(1, 3, dtype=e.dtype)))
    see(lambda: e.scatter_(0, torch.zeros(1, 3, dtype=torch.int64), 2.0))
    see(lambda: e.index_copy_(0, i, torch.ones(1, 3, dtype=e.dtype)))
    see(lambda: e.index_put_((i,), torch.ones(3, dtype=e.dtype)))
    see(x)


# --- set_ and resize_ -----------------------------------------------------------------------------
@cases
def resizing(torch: Any, see: Any) -> None:
    x = leaf(torch, 6, asks=False)
    see(x.resize_(2, 2), x.resize_(2, 3), x.resize_(6), x.resize_([3]), x.resize_(()))
    v = x.resize_(6)[2:4]
    see(v.resize_(2, 2), v.storage_offset())
    x.resize_(8)
    see(list(x.shape), numbers(x[:6]), v.storage_offset())
    x.fill_(3)
    see(v)
    see(lambda: leaf(torch, 2, asks=False).resize_(2.0), lambda: x.resize_())
    see(lambda: x.resize_(4, 0).stride(), lambda: x.resize_(()).stride(), x)


@cases
def resizing_to_negative_sizes(torch: Any, see: Any) -> None:
    for sizes in ((-1,), (2, -3)):
        x = leaf(torch, 6, asks=False)
        see(lambda x=x, sizes=sizes: list(x.resize_(*sizes).shape))
    see(lambda: leaf(torch, 6, asks=False).resize_as_(3))


@cases
def resizing_in_channels_last(torch: Any, see: Any) -> None:
    x = torch.arange(16.0).view(2, 2, 2, 2).clone()
    see(x.resize_(1, 2, 3, 2, memory_format=torch.channels_last), x.stride())
    y = torch.zeros(1, 2, 3, 2).contiguous(memory_format=torch.channels_last)
    z = torch.arange(24.0)
    see(z.resize_as_(y).stride(), z.resize_as_(y, memory_format=torch.preserve_format).stride())
    see(lambda: z.resize_(2, 2, memory_format=torch.channels_last).stride())


@cases
def resizing_what_asks(torch: Any, see: Any) -> None:
    x = leaf(torch, 6)
    y = x * 1
    v = y[:3]
    for t in (x, y, v, x.view(2, 3)):
        see(lambda t=t: t.resize_(2), lambda t=t: t.resize_as_(t[:1]), lambda t=t: t.resize_(6))
    with torch.no_grad():
        see(lambda: y.resize_(2), lambda: x.resize_(2), lambda: v.resize_(2))
    see(x.detach().resize_(2), x)


@cases
def resizing_like_another(torch: Any, see: Any) -> None:
    x = leaf(torch, 6, asks=False)
    see(x.resize_as_(leaf(torch, 2, 2)), x.resize_as_(torch.zeros(3, 2)))
    see(
        x.stride(),
        x.resize_as_(torch.zeros(3, 2).t(), memory_format=torch.preserve_format).stride(),
    )
    see(x.resize_(2, 2).stride())


@cases
def resizing_views_of_a_base_that_asks_nothing(torch: Any, see: Any) -> None:
    x = leaf(torch, 6, asks=False)
    v = x[:2]
    v.resize_(2, 2)
    see(v, v._is_view(), v._base is x)
    v.mul_(2)
    see(x)
    w = x[4:]
    w.resize_(4)
    see(w.storage_offset(), w.untyped_storage().nbytes(), x.untyped_storage().nbytes())
    w.fill_(1.0)
    see(x, w)


@cases
def resizing_shares_memory(torch: Any, see: Any) -> None:
    x = leaf(torch, 4, asks=False)
    v = x.view(2, 2)
    d = x.detach()
    x.resize_(10)
    x.fill_(7.0)
    see(v, d, x.untyped_storage().nbytes(), v.untyped_storage().nbytes())
    see(x.data_ptr() == v.data_ptr())


@cases
def resizing_what_numpy_owns(torch: Any, see: Any) -> None:
    import numpy

    a = numpy.arange(4.0)
    x = torch.from_numpy(a)
    see(x.resize_(2), lambda: x.resize_(8), lambda: x.untyped_storage().resizable())
    see(lambda: torch.ones(2).untyped_storage().resizable())
    see(lambda: torch.from_numpy(a).untyped_storage().resize_(100))


@cases
def setting(torch: Any, see: Any) -> None:
    x = leaf(torch, 6, asks=False)
    y = leaf(torch, 2, 3, asks=False)
    x.set_(y)
    see(x, y, x._is_view(), x.is_set_to(y))
    x.mul_(2)
    see(x, y)
    x.set_(y.untyped_storage(), 1, (2, 2), (2, 1))
    see(x, x.stride(), x.storage_offset())
    x.set_()
    see(x)
    see(lambda: x.set_(torch.ones(2)), lambda: x.set_(y.untyped_storage(), -1, (1,)))
    see(lambda: x.set_(y, 1, (2,), (1,)), lambda: x.set_(3))


@cases
def setting_what_asks(torch: Any, see: Any) -> None:
    x, y = leaf(torch, 3), leaf(torch, 2, asks=False)
    see(lambda: x.set_(y), x)
    with torch.no_grad():
        see(lambda: x.set_(y), x)
    z = leaf(torch, 3) * 2
    see(lambda: z.set_(y), z)
    a = leaf(torch, 3, asks=False)
    see(lambda: a.set_(leaf(torch, 2)), a)
    b = leaf(torch, 3, asks=False)
    see(lambda: b.set_(leaf(torch, 2) * 2), b)
    see(lambda: leaf(torch, 3).set_(), lambda: (leaf(torch, 3) * 2).set_())
    see(lambda: leaf(torch, 3).set_(y.untyped_storage(), 0, (1,), (1,)))


@cases
def setting_views(torch: Any, see: Any) -> None:
    x = leaf(torch, 6, asks=False)
    v = x[:2]
    y = leaf(torch, 3, asks=False)
    see(lambda: v.set_(y), v, v._is_view(), x)
    z = leaf(torch, 6) * 1
    w = z[:2]
    see(lambda: w.set_(y), lambda: z.set_(y), w)


@cases
def setting_versions(torch: Any, see: Any) -> None:
    x, y = leaf(torch, 3, asks=False), leaf(torch, 3, asks=False)
    y.add_(1)
    y.add_(1)
    x.set_(y)
    see(x._version, y._version)
    x.add_(1)
    see(x._version, y._version, y)
    z = leaf(torch, 3)
    w = (z * 2) * x
    x.set_(leaf(torch, 3, asks=False))
    see(lambda: w.sum().backward())


@cases
def setting_expands_the_storage(torch: Any, see: Any) -> None:
    x = leaf(torch, 2, asks=False)
    s = x.untyped_storage()
    see(lambda: torch.empty(0, dtype=torch.float64).set_(s, 0, (4,), (1,)).shape[0])
    see(x.untyped_storage().nbytes(), x)
    see(lambda: torch.empty(0, dtype=torch.float64).set_(x, 1, (4,), (1,)).shape[0])
    see(x.untyped_storage().nbytes(), x)


@cases
def storages(torch: Any, see: Any) -> None:
    x = leaf(torch, 4, asks=False)
    s = x.untyped_storage()
    see(s.nbytes(), x._version)
    s.fill_(0)
    see(x)
    s.resize_(64)
    see(s.nbytes(), x.untyped_storage().nbytes(), x)
    s.resize_(0)
    see(s.nbytes(), list(x.shape), s.resizable())


@cases
def shape_methods_in_place(torch: Any, see: Any) -> None:
    x = leaf(torch, 2, 3)
    y = x * 1
    v = y[0]
    see(y.t_(), y.unsqueeze_(0), y.squeeze_(0), y.transpose_(0, 1), v)
    see(lambda: y.as_strided_((2, 2), (3, 1), 1), lambda: x.t_(), lambda: v.unsqueeze_(0), v, y)
    (y.sum() + v.sum()).backward()
    see(x)


@cases
def shape_methods_in_place_of_views(torch: Any, see: Any) -> None:
    x = leaf(torch, 2, 3)
    y = x * 1
    v = y[:, 1:]
    v.t_()
    see(v, y, v._base is y)
    v.mul_(2)
    see(v, y)
    y.sum().backward()
    see(x)
    a = leaf(torch, 2, 3, asks=False)
    b = a[0]
    b.unsqueeze_(0)
    b.mul_(leaf(torch, 3))
    see(a, b)
    see(lambda: x.view(-1).unsqueeze_(0), lambda: y.unbind(0)[0].unsqueeze_(0))


# --- kinds of views -------------------------------------------------------------------------------
@cases
def every_view_is_a_view_of_the_root(torch: Any, see: Any) -> None:
    x = leaf(torch, 2, 1, 3)
    y = x * 1
    makers = (
        lambda t: t.view(-1),
        lambda t: t.reshape(3, 2),
        lambda t: t.transpose(0, 2),
        lambda t: t.permute(1, 0, 2),
        lambda t: t.squeeze(1),
        lambda t: t.squeeze(),
        lambda t: t.unsqueeze(0),
        lambda t: t.expand(2, 4, 3),
        lambda t: t.narrow(2, 1, 2),
        lambda t: t.select(2, 1),
        lambda t: t[0],
        lambda t: t[:, :, 1:],
        lambda t: t[..., None],
        lambda t: t.diagonal(0, 0, 2),
        lambda t: t.unfold(2, 2, 1),
        lambda t: t.as_strided((2, 2), (3, 1), 1),
        lambda t: t.movedim(0, 2),
        lambda t: t.flatten(),
        lambda t: t.unflatten(2, (3, 1)),
        lambda t: t.view_as(t),
        lambda t: t.expand_as(t),
        lambda t: t.swapaxes(0, 2),
        lambda t: t.mT,
        lambda t: t.real,
        lambda t: t.detach(),
        lambda t: t.contiguous(),
        lambda t: t.ravel(),
        lambda t: t.positive(),
        lambda t: t.broadcast_to((2, 1, 3)),
        lambda t: t.adjoint(),
        lambda t: t.resolve_conj(),
        lambda t: t.view(torch.int64),
        lambda t: t.T if t.dim() == 2 else t.mT,
        lambda t: t[()],
        lambda t: t.squeeze(0),
        lambda t: t.to(torch.float64),
        lambda t: t.alias() if hasattr(t, "alias") else t,
        lambda t: t[True],
        lambda t: t.unsafe_split(1)[0],
        lambda t: t.unsafe_chunk(2)[0],
        lambda t: t.tile(1),
        lambda t: t.repeat(1, 1, 1),
        lambda t: t.type_as(t),
        lambda t: t.double(),
        lambda t: t.cpu(),
    )
    for k, make in enumerate(makers):
        v = make(y)
        see(k, v is y, v._is_view(), v._base is y, v)


@cases
def writes_through_every_kind_of_view(torch: Any, see: Any) -> None:
    makers = (
        lambda t: t.view(-1),
        lambda t: t.transpose(0, 2),
        lambda t: t.permute(1, 0, 2),
        lambda t: t.squeeze(1),
        lambda t: t.unsqueeze(0),
        lambda t: t.narrow(2, 1, 2),
        lambda t: t.select(2, 1),
        lambda t: t[..., ::2],
        lambda t: t.diagonal(0, 0, 2),
        lambda t: t.as_strided((2, 2), (3, 1), 1),
        lambda t: t.movedim(0, 2),
        lambda t: t.unflatten(2, (3, 1)),
        lambda t: t.view_as(t),
        lambda t: t.mT,
        lambda t: t.expand(2, 1, 3),
        lambda t: t.unfold(2, 1, 2),
        lambda t: t.flatten(1),
        lambda t: t.reshape(-1),
    )
    for k, make in enumerate(makers):
        x = leaf(torch, 2, 1, 3)
        y = x * 1
        other = y.view(-1)
        v = make(y)
        v.mul_(v.detach().clone())
        see(k, v, y, other)
        (y * y.detach()).sum().backward()
        see(x)


@cases
def views_of_complex_numbers_are_written(torch: Any, see: Any) -> None:
    x = leaf(torch, 2, 3)
    y = torch.complex(x, x * 2)
    r = torch.view_as_real(y)
    r[..., 0].mul_(3)
    see(y, r, y.real, y.imag)
    y.imag.add_(1)
    see(y, r)
    torch.view_as_real(y).pow(2).sum().backward()
    see(x)


@cases
def views_of_pairs_as_complex_numbers_are_written(torch: Any, see: Any) -> None:
    x = leaf(torch, 3, 2)
    y = x * 1
    c = torch.view_as_complex(y)
    c.mul_(1j)
    see(c, y, c._base is y)
    (y * y.detach()).sum().backward()
    see(x)


@cases
def conjugates_are_conjugates(torch: Any, see: Any) -> None:
    x = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex128, requires_grad=True)
    y = x * 1
    c = y.conj()
    see(numbers(c), c.grad_fn.name(), c.resolve_conj().is_conj(), (c * 2).is_conj())
    (c.real * 2 + c.imag * 3).sum().backward()
    see(x)


@cases
def conjugates_of_real_numbers(torch: Any, see: Any) -> None:
    x = leaf(torch, 2)
    see(x.conj() is x, x.conj().is_conj(), x.resolve_conj() is x, torch.is_conj(x))


# --- found by random programs ---------------------------------------------------------------------
@cases
def a_number_is_written_through_a_view(torch: Any, see: Any) -> None:
    x = leaf(torch, 2)
    s = x.sum()
    v = s.squeeze(0)
    v.fill_(0.5)
    s.sin_()
    (s * s + v * v).backward()
    see(s, v, x)


@cases
def second_derivative_through_a_kept_result(torch: Any, see: Any) -> None:
    for write in ("tanh_", "sigmoid_", "exp_", "sqrt_", "reciprocal_"):
        x = leaf(torch, 4)
        y = x * 1
        v = y[1:3]
        v.retain_grad()
        getattr(v, write)()
        (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
        (g * g).sum().backward()
        see(write, g, x, v)


@cases
def second_derivative_through_a_complex_view(torch: Any, see: Any) -> None:
    x = leaf(torch, 2, 2)
    y = x * 1
    c = torch.view_as_complex(y)
    c.tanh_()
    (g,) = torch.autograd.grad((c * c).real.sum(), x, create_graph=True)
    (g * g).sum().backward()
    see(numbers(g), x)


@cases
def a_base_that_was_turned(torch: Any, see: Any) -> None:
    x = leaf(torch, 2, 3)
    y = x * 1
    v, w = y[0], y.view(-1)
    y.t_()
    see(y, v, w)
    v.mul_(2)
    see(y, v, w)
    (v.sum() + (w * w).sum()).backward()
    see(x)


@cases
def a_resized_view_of_a_base_that_gets_history(torch: Any, see: Any) -> None:
    a, x = leaf(torch, 6, asks=False), leaf(torch, 6)
    v, w = a[1:3], a[2:]
    v.resize_(3)
    w.resize_(2)
    u = w[1:]
    a.mul_(x)
    see(v, w, u)
    (v.sum() + (w * 3).sum() + (u * 5).sum()).backward()
    see(x)


@cases
def a_leaf_that_stopped_asking(torch: Any, see: Any) -> None:
    x = leaf(torch, 3)
    y = x * 2
    seen_by: list[Any] = []
    x.register_hook(lambda g: seen_by.append(numbers(g)))
    x.requires_grad_(False)
    y.sum().backward()
    see(x, seen_by)


@cases
def a_leaf_that_was_moved_into_the_graph(torch: Any, see: Any) -> None:
    x, z = leaf(torch, 3), leaf(torch, 3)
    y = x * 2
    x.requires_grad_(False)
    x.mul_(z)
    see(x, lambda: y.sum().backward())
    x.sum().backward()
    see(z)


@cases
def nothing_is_kept_for_a_view_that_was_not_recorded(torch: Any, see: Any) -> None:
    x = leaf(torch, 3)
    with torch.no_grad():
        v = x[:2]
    y, z, w = v * v, v * 2, v.exp()
    with torch.no_grad():
        x.add_(1)
    see(lambda: y.sum().backward(), lambda: y.sum().backward())
    see(lambda: z.sum().backward(), lambda: z.sum().backward(), lambda: w.sum().backward(), x)


@cases
def stale_views_are_asked_to_keep_gradients(torch: Any, see: Any) -> None:
    x = leaf(torch, 4)
    y = x * 1
    a, b = y.split(2)
    a.retain_grad()
    with torch.no_grad():
        c = y[:2]
    y.mul_(2)
    see(lambda: a.retain_grad(), lambda: b.retain_grad(), lambda: c.retain_grad())
    see(lambda: c.requires_grad_(), lambda: a.requires_grad_(), lambda: a.requires_grad_(False))


@cases
def views_of_views_made_in_inference_mode(torch: Any, see: Any) -> None:
    x = leaf(torch, 4)
    y = x * 1
    with torch.inference_mode():
        v = y[:3]
    with torch.no_grad():
        u = v[1:]
    w = v[1:]
    see(lambda: v.mul_(2), lambda: u.mul_(2), lambda: w.mul_(2), w)
    y.mul_(2)
    see(lambda: u * 2, lambda: w * 2)


@cases
def data_in_inference_mode(torch: Any, see: Any) -> None:
    x = leaf(torch, 3)
    with torch.inference_mode():
        d, e = x.data, x.detach()
        see(d, d.is_inference(), e, e.is_inference())
    d.mul_(2)
    see(x, d)


@cases
def complex_views_of_a_base_that_is_written(torch: Any, see: Any) -> None:
    x = leaf(torch, 3, 2)
    y = x * 1
    c = torch.view_as_complex(y)
    part = c[1:]
    pairs = torch.view_as_real(c[1:])
    y.mul_(2)
    for t in (c, part, pairs):
        see(t, [[f.name(), n] for f, n in t.grad_fn.next_functions])
    (c.real.sum() + part.imag.sum() + pairs.sum()).backward()
    see(x)


@cases
def storages_of_permuted_results(torch: Any, see: Any) -> None:
    x = leaf(torch, 2, 3, 4, asks=False).permute(2, 0, 1)
    y = x + 1
    see(y.stride(), y.untyped_storage().nbytes(), y.resize_(2))


@cases
def saved_hooks_and_writes_through_views(torch: Any, see: Any) -> None:
    packed: list[Any] = []

    def pack(t: Any) -> Any:
        packed.append([list(t.shape), None if t.grad_fn is None else t.grad_fn.name()])
        return t.detach().clone()

    x = leaf(torch, 4)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y = x * 1
        v = y[1:3]
        v.mul_(x[:2])
        v.exp_()
        y.sum().backward()
    see([shape for shape, _ in packed], x)


@cases
def tuples_of_gradients_for_written_tensors(torch: Any, see: Any) -> None:
    x = leaf(torch, 4)
    y = x * 1
    v = y[:2]
    v.mul_(3)
    found = torch.autograd.grad(y.sum() + v.sum(), [x, y, v], retain_graph=True)
    see([numbers(g) for g in found], [numbers(g) for g in torch.autograd.grad(v.sum(), [y, v])])


@cases
def writes_inside_backward_hooks(torch: Any, see: Any) -> None:
    x = leaf(torch, 4)
    y = x * 1
    y.register_hook(lambda g: g.clone().mul_(2))
    v = y[:2]
    v.register_hook(lambda g: g.clone().zero_())
    (y.sum() + v.sum()).backward()
    see(x)


results = cases.results
