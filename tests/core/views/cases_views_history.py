"""Cases of views: detaching, `.data`, leaves, writes through views of every sort."""

from __future__ import annotations

from typing import Any

from tests.core.views.view_cases import ViewCases, leaf, numbers

cases = ViewCases()


# --- detach_ --------------------------------------------------------------------------------------
@cases
def detach_in_place_of_a_view(torch: Any, see: Any) -> None:
    x = leaf(torch, 2, 3)
    y = x * 2
    for t in (y[0], y.view(-1), y.unbind(0)[0], x.view(-1), x.detach()[0], x.detach()):
        see(t.detach_, t)


@cases
def detach_in_place_of_a_view_of_what_asks_nothing(torch: Any, see: Any) -> None:
    x = leaf(torch, 4, asks=False)
    v = x[:2]
    see(v.detach_, v, v._is_view(), x)
    x.mul_(leaf(torch, 4))
    see(v.detach_, v, x)


@cases
def detach_in_place_of_a_base(torch: Any, see: Any) -> None:
    x = leaf(torch, 4)
    y = x * 2
    v = y[:2]
    y.detach_()
    see(y, v, v._base is y)
    see(lambda: v.mul_(2), y, v)
    (v * v).sum().backward()
    see(x)
    with torch.no_grad():
        v.mul_(2)
    see(y, v, [f for f, _ in v.grad_fn.next_functions])


@cases
def detach_in_place_of_a_leaf(torch: Any, see: Any) -> None:
    x = leaf(torch, 3)
    y = x * 2
    x.detach_()
    see(x)
    y.sum().backward()
    see(x)
    x.mul_(3)
    see(x)


@cases
def detach_in_place_of_an_interior_tensor(torch: Any, see: Any) -> None:
    x = leaf(torch, 3)
    y = x * 2
    z = y * 3
    y.retain_grad()
    y.detach_()
    see(y, y.output_nr)
    z.sum().backward()
    see(x, y)
    y.add_(1)
    see(y)


@cases
def detach_in_place_of_views_made_without_recording(torch: Any, see: Any) -> None:
    x = leaf(torch, 4)
    with torch.no_grad():
        v = x[:2]
        see(v.detach_, v)
    with torch.inference_mode():
        w = x[:2]
        see(w.detach_, w)
    see(w.detach_, w)


@cases
def detach_shares_the_version(torch: Any, see: Any) -> None:
    x = leaf(torch, 3)
    y = x * 2
    z = y * y
    d = y.detach()
    d.mul_(3)
    see(d, y, d._is_view(), lambda: z.sum().backward())
    see(x)


@cases
def detach_of_views(torch: Any, see: Any) -> None:
    x = leaf(torch, 2, 3)
    v = x.view(-1)
    d = v.detach()
    see(d._is_view(), d._base is x, d._base is None, d)
    d.requires_grad_()
    see(d, lambda: d.mul_(2))
    e = d[:2]
    see(e._base is d, lambda: e.mul_(2))


# --- .data ----------------------------------------------------------------------------------------
@cases
def data_has_a_version_of_its_own(torch: Any, see: Any) -> None:
    x = leaf(torch, 3)
    y = x * 2
    z = y * y
    y.data.mul_(3)
    see(y, y.data, z)
    z.sum().backward()
    see(x)


@cases
def data_is_replaced(torch: Any, see: Any) -> None:
    x = leaf(torch, 3)
    v = x.view(3, 1)
    x.data = leaf(torch, 2, 2, asks=False)
    see(x, v)
    del v
    y = x * 3
    y.sum().backward()
    see(x)


@cases
def data_of_a_view_is_written(torch: Any, see: Any) -> None:
    x = leaf(torch, 4)
    y = x * 1
    v = y[:2]
    v.data.zero_()
    see(y, v)
    (y * v.sum()).sum().backward()
    see(x)


@cases
def data_replaced_changes_the_version(torch: Any, see: Any) -> None:
    x = leaf(torch, 3, asks=False)
    x.add_(1)
    y = leaf(torch, 3, asks=False)
    y.add_(1)
    y.add_(1)
    x.data = y
    see(x)
    x.add_(1)
    see(x, y)


@cases
def data_of_another_dtype(torch: Any, see: Any) -> None:
    x = leaf(torch, 3)
    see(lambda: setattr(x, "data", torch.tensor([1, 2, 3])))
    y = leaf(torch, 3, asks=False)
    y.data = torch.tensor([1, 2, 3])
    see(y, str(y.dtype))
    see(lambda: setattr(y, "data", 3))


# --- leaves ---------------------------------------------------------------------------------------
@cases
def writing_a_leaf(torch: Any, see: Any) -> None:
    x = leaf(torch, 3)
    see(lambda: x.mul_(2), lambda: x.zero_(), lambda: x.copy_(x.detach()), x)
    with torch.no_grad():
        x.mul_(2)
    see(x)
    see(lambda: x.__setitem__(0, 1.0), lambda: x[0].zero_(), lambda: x.view(-1).add_(1), x)


@cases
def writing_a_leaf_that_was_used(torch: Any, see: Any) -> None:
    x = leaf(torch, 3)
    y = x * x
    z = x + 1
    with torch.no_grad():
        x.add_(1)
    see(lambda: y.sum().backward())
    see(lambda: z.sum().backward(), x)


@cases
def a_leaf_gets_history_from_a_write(torch: Any, see: Any) -> None:
    a = leaf(torch, 3, asks=False)
    x = leaf(torch, 3)
    v = a[1:]
    a.mul_(x)
    see(a, v)
    see(lambda: a.requires_grad_(False), lambda: a.requires_grad_())
    a.sum().backward()
    see(x)


# --- requires_grad_ after the fact ----------------------------------------------------------------
@cases
def requires_grad_on_a_base_with_views(torch: Any, see: Any) -> None:
    x = leaf(torch, 4, asks=False)
    v = x[:2]
    x.requires_grad_()
    see(v, v._is_view(), x)
    see(lambda: v.mul_(2))
    (v * 3).sum().backward()
    see(x, v)


@cases
def requires_grad_on_a_view(torch: Any, see: Any) -> None:
    x = leaf(torch, 4, asks=False)
    v = x[:2]
    v.requires_grad_()
    see(v, x, v._is_view(), lambda: v.mul_(2))
    w = v[:1]
    see(w, w._base is x)
    (v * w).sum().backward()
    see(v, x)
    see(lambda: x.mul_(2), v)
    (v * 3).sum().backward()
    see(v, lambda: v.add_(1))


@cases
def requires_grad_on_a_view_whose_base_gets_history(torch: Any, see: Any) -> None:
    x = leaf(torch, 4, asks=False)
    v = x[:2].requires_grad_()
    y = leaf(torch, 4)
    see(lambda: x.mul_(y), x)
    see(v)
    see(lambda: (v * 2).sum().backward())
    see(v, y)


@cases
def requires_grad_taken_away(torch: Any, see: Any) -> None:
    x = leaf(torch, 4)
    v = x[:2]
    see(lambda: v.requires_grad_(False))
    x.requires_grad_(False)
    see(x, v)
    x.mul_(2)
    see(x, v)
    see(lambda: v.sum().backward(), x)


@cases
def requires_grad_of_a_view_made_without_recording(torch: Any, see: Any) -> None:
    x = leaf(torch, 4)
    with torch.no_grad():
        v = x[:2]
        see(v)
        v.requires_grad_(False)
        see(v)
        v.requires_grad_()
    see(v)
    (v * 2).sum().backward()
    see(v, x)


@cases
def requires_grad_set_in_inference_mode(torch: Any, see: Any) -> None:
    with torch.inference_mode():
        x = torch.ones(2)
        see(lambda: x.requires_grad_(), x)
        x.mul_(2)
    see(lambda: x.requires_grad_(), lambda: x.requires_grad_(False))
    see(lambda: x * 2, lambda: x.clone() * 2)


@cases
def requires_grad_of_integers(torch: Any, see: Any) -> None:
    x = torch.tensor([1, 2])
    see(lambda: x.requires_grad_(), lambda: setattr(x, "requires_grad", True))
    see(lambda: x.requires_grad_(False), lambda: setattr(x, "requires_grad", 1))


# --- writes through views -------------------------------------------------------------------------
@cases
def a_write_through_a_view_rebases_the_base(torch: Any, see: Any) -> None:
    x = leaf(torch, 2, 3)
    y = x * 1
    row, column = y[0], y[:, 1]
    row.mul_(x[1].detach())
    see(y, row, column)
    column.mul_(2)
    see(y, row, column)
    y.sum().backward()
    see(x)


@cases
def nodes_of_a_rebased_chain(torch: Any, see: Any) -> None:
    x = leaf(torch, 2, 3)
    y = x * 1
    v = y.t()[1:].reshape(-1)
    w = y.view(-1)[2:]
    w.exp_()
    fn = y.grad_fn
    see(fn.name(), [[f.name(), n] for f, n in fn.next_functions])
    see(w, [[f.name(), n] for f, n in w.grad_fn.next_functions])
    see(v, y.t(), w.grad_fn.next_functions[0][0] is fn)


@cases
def next_functions_of_a_write_with_another_operand(torch: Any, see: Any) -> None:
    x, z = leaf(torch, 4), leaf(torch, 2)
    y = x * 1
    y[:2].mul_(z)
    see([None if f is None else f.name() for f, _ in y.grad_fn.next_functions])
    y[2:] = z
    see([None if f is None else f.name() for f, _ in y.grad_fn.next_functions])
    y[0] = 3.0
    see([None if f is None else f.name() for f, _ in y.grad_fn.next_functions])
    (y * y.detach()).sum().backward()
    see(x, z)


@cases
def a_base_that_asks_nothing_is_written_through_a_view(torch: Any, see: Any) -> None:
    b, x = leaf(torch, 4, asks=False), leaf(torch, 2)
    v, w = b[:2], b[1:3]
    v.mul_(x)
    see(b, v, w, b.grad_fn.next_functions[0][0] is None)
    (b * b.detach()).sum().backward()
    see(x, b)


@cases
def writing_a_whole_view_gives_no_copy_slices(torch: Any, see: Any) -> None:
    x = leaf(torch, 4)
    y = x * 1
    y[:] = 3.0
    see(y)
    y = x * 1
    y[...] = x
    see(y)
    y = x * 1
    y[0] = x[1]
    see(y)
    y = x * 1
    y[y > 0.6] = 0.0
    see(y)
    y.sum().backward()
    see(x)


@cases
def views_of_views_are_written(torch: Any, see: Any) -> None:
    x = leaf(torch, 2, 2, 3)
    y = x * 1
    a = y[0]
    b = a.t()
    c = b[1]
    c.mul_(3)
    see(y, a, b, c, c._base is y, b._base is y)
    d = c.unsqueeze(0)
    see(d)
    (y * y.detach()).sum().backward()
    see(x)


@cases
def in_place_under_no_grad_makes_views_stale(torch: Any, see: Any) -> None:
    x = leaf(torch, 4)
    y = x * 1
    v, w = y[:2], y[2:]
    with torch.no_grad():
        v.mul_(2)
    see(v, w, y)
    (v.sum() + w.sum() * 2).backward()
    see(x)


@cases
def writes_with_a_broadcast_operand(torch: Any, see: Any) -> None:
    x, z = leaf(torch, 2, 3), leaf(torch, 3)
    y = x * 1
    y[0].add_(z)
    y.t()[1].mul_(z[:2])
    see(lambda: y[0].add_(x))
    see(y)
    y.sum().backward()
    see(x, z)


@cases
def a_view_is_written_with_its_own_base(torch: Any, see: Any) -> None:
    x = leaf(torch, 4)
    y = x * 1
    see(lambda: y[:2].add_(y[2:]))
    see(y)
    see(lambda: y[1:].mul_(y[:-1]))
    see(lambda: y[1:].copy_(y[:-1]))
    see(lambda: y.sum().backward(), x)


@cases
def writing_a_tensor_with_itself(torch: Any, see: Any) -> None:
    x = leaf(torch, 3)
    y = x * 1
    y.mul_(y)
    see(y, lambda: y.sum().backward())
    z = x * 1
    z.add_(z)
    see(z, lambda: z.sum().backward(), x)
    w = x * 1
    w[:] = w
    see(w)


@cases
def saved_values_and_writes(torch: Any, see: Any) -> None:
    x = leaf(torch, 3)
    y = x.exp()
    y.mul_(2)
    see(lambda: y.sum().backward())
    y = x.exp()
    y.add_(2)
    see(lambda: y.sum().backward())
    y = x.sin()
    y.add_(2)
    see(lambda: y.sum().backward(), x)
    y = x * 1
    z = y[1:] * y[1:]
    y[0] = 2
    see(lambda: z.sum().backward())


@cases
def second_derivative_through_a_write(torch: Any, see: Any) -> None:
    x = leaf(torch, 4)
    y = x * 1
    y[1:3].pow_(3)
    (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    see(g)
    (h,) = torch.autograd.grad(g.sum(), x)
    see(h)


@cases
def a_copy_slices_runs_twice_only_if_retained(torch: Any, see: Any) -> None:
    x = leaf(torch, 4)
    y = x * 1
    y[:2].add_(1)
    loss = y.sum()
    loss.backward(retain_graph=True)
    see(x)
    loss.backward()
    see(x, lambda: loss.backward())


@cases
def integers_share_memory_too(torch: Any, see: Any) -> None:
    x = torch.arange(6).view(2, 3)
    x[0].add_(1)
    x.t()[2] = 9
    see(x, x[0]._version, x._base._version)


# --- multi-output views ---------------------------------------------------------------------------
@cases
def multi_output_views_are_written(torch: Any, see: Any) -> None:
    x = leaf(torch, 4, 2)
    y = x * 1
    for make in ("unbind", "chunk", "split", "tensor_split", "hsplit", "vsplit"):
        args = () if make == "unbind" else ([1, 3],) if make == "split" else (2,)
        part = getattr(y, make)(*args)[1]
        see(part, lambda part=part: part.mul_(2), lambda part=part: part[0].mul_(2))


@cases
def multi_output_views_after_a_write_to_the_base(torch: Any, see: Any) -> None:
    x = leaf(torch, 4, 2)
    y = x * 1
    part = y.split(2)[1]
    y.mul_(2)
    see(lambda: part.grad_fn, lambda: part * 2, part.requires_grad, lambda: part.is_leaf)
    see(lambda: part.sum().backward(), lambda: part[0], lambda: part.detach())
    see(y.sum().backward, x)


@cases
def multi_output_views_of_what_asks_nothing(torch: Any, see: Any) -> None:
    x = leaf(torch, 4, 2, asks=False)
    part = x.unbind(0)[1]
    part.mul_(2)
    see(part, x)
    z = leaf(torch, 2)
    see(lambda: part.mul_(z), part)
    x.mul_(z)
    see(lambda: part * 2, lambda: part.grad_fn, lambda: part.requires_grad)


@cases
def multi_output_views_without_recording(torch: Any, see: Any) -> None:
    x = leaf(torch, 4, 2)
    y = x * 1
    with torch.no_grad():
        a, b = y.split(2)
        c = x.unbind(0)[0]
        a.mul_(2)
        see(a, b, c)
    see(lambda: a.mul_(2), lambda: c.mul_(2), lambda: b[0].mul_(2))
    y.mul_(2)
    see(lambda: b * 2, lambda: b.grad_fn, lambda: b.requires_grad)


@cases
def multi_output_views_in_no_grad_of_a_recorded_view(torch: Any, see: Any) -> None:
    x = leaf(torch, 4, 2)
    y = x * 1
    v = y.view(-1)
    with torch.no_grad():
        a = v.split(4)[0]
    b = a[:2]
    see(lambda: a.mul_(2), lambda: b.mul_(2))
    p = y.unbind(0)[0]
    with torch.no_grad():
        q = p[:1]
    r = p[:1]
    see(lambda: q.mul_(2), lambda: r.mul_(2))
    y.zero_()
    see(lambda: r * 2, lambda: q * 2)


@cases
def indexing_an_iterated_tensor(torch: Any, see: Any) -> None:
    x = leaf(torch, 2, 2)
    y = x * 1
    for row in y:
        see(row, lambda row=row: row.mul_(2))
    with torch.no_grad():
        for row in y:
            row.mul_(2)
    see(y)
    for row in x.detach():
        row.mul_(2)
    see(x)


# --- a stale view is used -------------------------------------------------------------------------
@cases
def a_stale_view_gets_one_new_node(torch: Any, see: Any) -> None:
    x = leaf(torch, 2, 3)
    y = x * 1
    v = y.t()[1].unsqueeze(0)
    before = v.grad_fn
    y.mul_(2)
    after = v.grad_fn
    see(before.name(), after.name(), after is v.grad_fn, before is after)
    y[0].add_(1)
    see(v, v.grad_fn is after, v.output_nr)
    v.sum().backward()
    see(x)


@cases
def what_was_computed_before_a_write_keeps_its_history(torch: Any, see: Any) -> None:
    x = leaf(torch, 4)
    y = x * 1
    a = y[:2] + 1
    y[:2].mul_(5)
    b = y[:2] + 1
    (a.sum() + b.sum()).backward()
    see(x)


@cases
def a_view_outlives_its_base(torch: Any, see: Any) -> None:
    x = leaf(torch, 4)
    y = x * 1
    v = y[:2]
    w = y[1:]
    del y
    v.mul_(3)
    see(v, w, w._base)
    w.sum().backward()
    see(x)


@cases
def views_of_a_leaf_under_no_grad_are_written(torch: Any, see: Any) -> None:
    x = leaf(torch, 2, 2)
    v = x[0]
    with torch.no_grad():
        v.mul_(3)
        x[1].zero_()
        x[0, 0] = 7.0
    see(x, v)
    (x * x.detach()).sum().backward()
    see(x)
    (v * 2).sum().backward()
    see(x)


@cases
def out_arguments(torch: Any, see: Any) -> None:
    x = leaf(torch, 3)
    a = leaf(torch, 3, asks=False)
    see(lambda: torch.add(x, 1, out=a), lambda: torch.add(a, 1, out=x), a)
    with torch.no_grad():
        see(lambda: torch.add(x, 1, out=a), lambda: torch.mul(a, 2, out=x))
    v = leaf(torch, 4, asks=False)[:3]
    see(lambda: torch.mul(a, 2, out=v), v._base)
    y = x * 1
    see(lambda: torch.mul(a, 2, out=y))


@cases
def backward_in_the_middle(torch: Any, see: Any) -> None:
    x = leaf(torch, 3)
    y = x * 1
    y.sum().backward()
    y.mul_(2)
    see(lambda: y.sum().backward(), x)
    z = x * 1
    v = z[:2]
    v.exp_()
    v.sum().backward(retain_graph=True)
    z.mul_(3)
    see(lambda: z.sum().backward(), x)


@cases
def gradients_with_respect_to_views(torch: Any, see: Any) -> None:
    x = leaf(torch, 4)
    y = x * 1
    v = y[:2]
    (g,) = torch.autograd.grad((v * 3).sum(), v)
    see(g)
    see(lambda: torch.autograd.grad(y.sum(), v))
    y.mul_(2)
    see(lambda: torch.autograd.grad((y * 2).sum(), v))
    z = v * 2
    see(lambda: torch.autograd.grad(z.sum(), v), lambda: torch.autograd.grad(z.sum(), y))


@cases
def gradients_assigned_and_written(torch: Any, see: Any) -> None:
    x = leaf(torch, 3)
    g = torch.ones(3, dtype=torch.float64)
    x.grad = g
    (x * 2).sum().backward()
    see(x, g, x.grad is g)
    x.grad.zero_()
    (x * 2).sum().backward(create_graph=True)
    see(x, g, x.grad is g)
    x.grad = torch.zeros(6, dtype=torch.float64)[::2]
    (x * 2).sum().backward()
    see(x, x.grad.stride(), x.grad._is_view())


@cases
def copies_across_dtypes(torch: Any, see: Any) -> None:
    x = leaf(torch, 3)
    a = torch.zeros(3, dtype=torch.float32)
    a.copy_(x)
    see(a)
    a.sum().backward()
    see(x)
    i = torch.zeros(3, dtype=torch.int64)
    see(lambda: i.copy_(x), lambda: i.add_(x), lambda: i.mul_(1.5))


@cases
def swapping_tensors(torch: Any, see: Any) -> None:
    a, b = leaf(torch, 2), leaf(torch, 3, asks=False)
    swap = torch.utils.swap_tensors
    see(lambda: swap(a, b), a, b)
    y = a.exp()
    b.sum().backward()
    see(lambda: swap(a, b), a, b, y)
    import weakref

    reference = weakref.ref(a)
    see(lambda: swap(a, b), reference() is a)


@cases
def swapping_tensors_in_a_graph(torch: Any, see: Any) -> None:
    a, b = leaf(torch, 2), leaf(torch, 3)
    y = (a * 2).sum()
    see(lambda: torch.utils.swap_tensors(a, b), a, b)
    see(lambda: y.backward(), a, b)


@cases
def copies_and_pickles_of_views(torch: Any, see: Any) -> None:
    import copy

    x = leaf(torch, 4)
    v = x.detach()[1:3]
    w = copy.deepcopy(v)
    see(numbers(w), w._is_view(), w.storage_offset(), lambda: copy.deepcopy(x * 2))
    see(numbers(copy.deepcopy(x)), copy.deepcopy(x).requires_grad)
    see(lambda: copy.deepcopy(x[1:]))
    c = copy.copy(x)
    see(numbers(c), c is x, c.requires_grad)


@cases
def deep_chains_of_views(torch: Any, see: Any) -> None:
    x = leaf(torch, 2, 3)
    y = x * 1
    v = y
    for _ in range(300):
        v = v.t()
    v.mul_(2)
    see(v, y)
    v.sum().backward()
    see(x)


results = cases.results
