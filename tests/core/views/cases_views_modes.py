"""Cases of views: made in modes and custom functions; hooks and versions of what is written."""

from __future__ import annotations

from typing import Any

from tests.core.views.view_cases import ViewCases, leaf, numbers

cases = ViewCases()


# --- views made under no_grad ---------------------------------------------------------------------
@cases
def views_made_without_recording(torch: Any, see: Any) -> None:
    x = leaf(torch, 4)
    y = x * 1
    with torch.no_grad():
        v, w = y[:2], x[:2]
    see(v, w, v._base is y, lambda: v.mul_(2), lambda: w.mul_(2))
    with torch.no_grad():
        v.mul_(2)
    see(v, y)
    see(lambda: v * 2, lambda: (v * 2).sum().backward(), x, v, w)


@cases
def views_made_without_recording_of_what_asks_nothing(torch: Any, see: Any) -> None:
    a, z = leaf(torch, 4, asks=False), leaf(torch, 2)
    with torch.no_grad():
        v = a[:2]
    v.mul_(2)
    see(v, a, lambda: v.mul_(z))
    a[2:].mul_(z)
    see(a, lambda: v.grad_fn, lambda: v.requires_grad, lambda: v + 1)


@cases
def views_of_views_made_without_recording(torch: Any, see: Any) -> None:
    x = leaf(torch, 4)
    y = x * 1
    with torch.no_grad():
        v = y[:3]
    w = v[1:]
    see(w, lambda: w.mul_(2), w._base is y)
    (w * 2).sum().backward()
    see(x, v)
    y.mul_(2)
    see(lambda: w * 2)


@cases
def a_base_is_written_under_no_grad_views_outside(torch: Any, see: Any) -> None:
    x = leaf(torch, 4)
    with torch.no_grad():
        v = x[:2]
        x.mul_(2)
    see(lambda: v * 2, v)
    w = x[:2]
    with torch.no_grad():
        w.mul_(2)
    see(w, x, v)
    (w * w.detach()).sum().backward()
    see(x)


# --- inference mode -------------------------------------------------------------------------------
@cases
def views_in_inference_mode_of_normal_tensors(torch: Any, see: Any) -> None:
    x = leaf(torch, 4)
    y = x * 1
    with torch.inference_mode():
        v, w = y[:2], x[:2]
        see(v, v.is_inference(), v._is_view(), w, w.is_inference())
        v.mul_(2)
        see(v)
    see(v, y, v._is_view(), lambda: v.mul_(2), lambda: w.mul_(2), lambda: v[0].mul_(2))
    see(lambda: v * 2, lambda: (w * 2).sum().backward(), x)
    y.add_(1)
    see(lambda: v * 2, lambda: v.grad_fn)


@cases
def views_in_inference_mode_of_what_asks_nothing(torch: Any, see: Any) -> None:
    a, z = leaf(torch, 4, asks=False), leaf(torch, 2)
    with torch.inference_mode():
        v = a[:2]
        p = a.unbind(0)[0]
        see(v, v.is_inference(), v._is_view(), p, p.is_inference())
    v.mul_(2)
    see(v, a, lambda: v.mul_(z), lambda: p.mul_(z.sum()))
    a.mul_(a.detach().clone().requires_grad_())
    see(a, lambda: v * 2, lambda: v.grad_fn, lambda: v.requires_grad)


@cases
def inference_tensors_outside(torch: Any, see: Any) -> None:
    with torch.inference_mode():
        x = torch.ones(4, dtype=torch.float64)
        x.mul_(2)
        see(x)
    z = leaf(torch, 4)
    see(x, lambda: x.add(z), lambda: x * z, lambda: z * x, lambda: z + x)
    v = x[:2]
    see(v, v.is_inference(), v._is_view(), lambda: x.view(2, 2).is_inference())
    see(lambda: x.detach().is_inference(), lambda: x.data.is_inference())
    c = x.clone()
    c.mul_(z)
    see(numbers(c), c.requires_grad, c.is_inference())
    # PyTorch refuses these too, but only after it has written
    see(lambda: x.mul_(2), lambda: v.mul_(2), lambda: x.zero_(), lambda: x.copy_(z))
    see(lambda: x.__setitem__(0, 1.0), lambda: x.resize_(2), lambda: x.detach_().is_inference())


@cases
def inference_tensors_and_versions(torch: Any, see: Any) -> None:
    with torch.inference_mode():
        x = torch.ones(2)
        see(lambda: x._version)
        y = x.view(1, 2)
        see(lambda: y._version, y._is_view())
    see(lambda: x._version, lambda: torch.autograd.graph.increment_version(x))
    with torch.inference_mode():
        see(lambda: torch.autograd.graph.increment_version(x))


@cases
def normal_tensors_written_in_inference_mode(torch: Any, see: Any) -> None:
    x = leaf(torch, 3)
    y = x * 1
    z = y * y
    with torch.inference_mode():
        y.mul_(2)
        see(y)
        x.mul_(2)
        see(x)
    see(y, lambda: z.sum().backward(), x)
    y.sum().backward()
    see(x)


@cases
def inference_tensors_are_written_inside(torch: Any, see: Any) -> None:
    z = leaf(torch, 3)
    with torch.inference_mode():
        x = torch.ones(3, dtype=torch.float64)
        x[0] = 3.0
        x[1:].mul_(z[1:])
        see(x)
        with torch.inference_mode(False):
            see(lambda: x * 2, lambda: (x * 2).is_inference())
            see(lambda: z * 2, (z * 2).is_inference(), lambda: x.mul_(2))


@cases
def saving_inference_tensors(torch: Any, see: Any) -> None:
    with torch.inference_mode():
        x = torch.ones(3, dtype=torch.float64)
    z = leaf(torch, 3)
    y = z * 1
    see(lambda: y.mul_(x), y, lambda: y.add_(x), lambda: y.copy_(x))
    y.sum().backward()
    see(z)


# --- custom functions -----------------------------------------------------------------------------
def functions(torch: Any) -> dict[str, Any]:
    """Custom functions that return views, inputs, and what they wrote."""

    class Narrow(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x[1:]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return torch.cat([g[:1] * 0, g * 10])

    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x[1:], x[:1]

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            return torch.cat([h, g * 10])

    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 10

    class Alias(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.view_as(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 10

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    class Detached(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.detach()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 10

    class DoubleAndMore(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2), y + 1

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            return g * 2, h

    class Forgets(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2) + 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    return {c.__name__: c.apply for c in locals().values() if isinstance(c, type)}


@cases
def a_view_made_in_a_custom_function(torch: Any, see: Any) -> None:
    fn = functions(torch)["Narrow"]
    x = leaf(torch, 3)
    y = x * 1
    v = fn(y)
    see(v, v._is_view(), v._base is y, lambda: v.mul_(2), lambda: v[0].mul_(2))
    v.sum().backward(retain_graph=True)
    see(x)
    y.add_(1)
    see(lambda: v * 2, lambda: v.grad_fn)


@cases
def two_views_made_in_a_custom_function(torch: Any, see: Any) -> None:
    fn = functions(torch)["Two"]
    x = leaf(torch, 3)
    y = x * 1
    v, w = fn(y)
    see(v, w, v._is_view(), lambda: v.mul_(2), lambda: w.mul_(2))
    (v.sum() + w.sum()).backward()
    see(x)


@cases
def a_custom_function_returns_its_input(torch: Any, see: Any) -> None:
    found = functions(torch)
    for name in ("Same", "Alias", "Detached"):
        x = leaf(torch, 3)
        for y in (x, x * 1, (x * 1)[1:]):
            v = found[name](y)
            see(name, v, v is y, v._is_view(), v._base is y, lambda v=v: v.mul_(2))
            see(lambda v=v: v.sum().backward(), x)


@cases
def a_custom_function_under_no_grad_returns_views(torch: Any, see: Any) -> None:
    found = functions(torch)
    x = leaf(torch, 3)
    y = x * 1
    for name in ("Same", "Alias", "Detached", "Narrow"):
        with torch.no_grad():
            v = found[name](y)
        see(name, v, v is y, v._is_view(), lambda v=v: v.mul_(2), v)


@cases
def a_custom_function_of_what_asks_nothing_returns_views(torch: Any, see: Any) -> None:
    found = functions(torch)
    z = leaf(torch, 2)
    for name in ("Same", "Alias", "Detached", "Narrow"):
        x = leaf(torch, 3, asks=False)
        v = found[name](x)
        see(name, v, v is x, v._is_view(), lambda v=v: v[:2].mul_(z), v, x)


@cases
def a_custom_function_marks_its_input_dirty(torch: Any, see: Any) -> None:
    fn = functions(torch)["Double"]
    x = leaf(torch, 3)
    see(lambda: fn(x), x)
    y = x * 1
    z = fn(y)
    see(z is y, y)
    y.sum().backward()
    see(x)


@cases
def a_custom_function_writes_a_view(torch: Any, see: Any) -> None:
    fn = functions(torch)["Double"]
    x = leaf(torch, 4)
    y = x * 1
    v, w = y[1:3], y[2:]
    out = fn(v)
    see(out is v, v, y, w)
    y.sum().backward()
    see(x)
    see(lambda: fn(x[1:]), lambda: fn(y.unbind(0)[0]))
    with torch.no_grad():
        u = y[:1]
    see(lambda: fn(u))


@cases
def a_custom_function_writes_one_of_two(torch: Any, see: Any) -> None:
    fn = functions(torch)["DoubleAndMore"]
    x, z = leaf(torch, 4), leaf(torch, 2)
    y = x * 1
    a, b = fn(y, z)
    see(a is y, a, b)
    (a.sum() + b.sum() * 3).backward()
    see(x, z)
    y = x * 1
    see(lambda: fn(y[:2], z))


@cases
def a_custom_function_forgets_what_it_wrote(torch: Any, see: Any) -> None:
    fn = functions(torch)["Forgets"]
    y = leaf(torch, 3) * 1
    see(lambda: fn(y), y)


@cases
def a_custom_function_writes_what_asks_nothing(torch: Any, see: Any) -> None:
    found = functions(torch)
    a = leaf(torch, 3, asks=False)
    out = found["Double"](a)
    see(out is a, out)
    z = leaf(torch, 3)
    x, y = found["DoubleAndMore"](a, z)
    see(x is a, x, y)
    v = leaf(torch, 6, asks=False)[:3]
    see(lambda: found["DoubleAndMore"](v, z), v)


# --- hooks and kept gradients ---------------------------------------------------------------------
@cases
def hooks_stay_on_the_old_value(torch: Any, see: Any) -> None:
    x = leaf(torch, 3)
    y = x * 1
    seen_by: list[Any] = []
    y.register_hook(lambda g: seen_by.append(numbers(g)))
    y.mul_(3)
    y.register_hook(lambda g: seen_by.append(numbers(g)))
    y.sum().backward()
    see(seen_by, x)


@cases
def kept_gradients_follow_the_new_value(torch: Any, see: Any) -> None:
    x = leaf(torch, 3)
    y = x * 1
    y.retain_grad()
    y.mul_(3)
    see(y.retains_grad)
    y.sum().backward()
    see(x, y)


@cases
def hooks_and_kept_gradients_of_a_base(torch: Any, see: Any) -> None:
    x = leaf(torch, 4)
    y = x * 1
    v = y[:2]
    seen_by: list[Any] = []
    for t in (y, v):
        t.retain_grad()
        t.register_hook(lambda g: seen_by.append(numbers(g)))
    v.mul_(3)
    for t in (y, v):
        t.register_hook(lambda g: seen_by.append(numbers(g)))
    (y.sum() + v.sum()).backward()
    see(seen_by, x, y, v, y.retains_grad, v.retains_grad)


@cases
def kept_gradient_of_a_view_whose_base_is_written(torch: Any, see: Any) -> None:
    x = leaf(torch, 4)
    y = x * 1
    v = y[:2]
    v.retain_grad()
    z = v * 3
    y.mul_(2)
    (z.sum() + v.sum()).backward()
    see(x, v)


@cases
def hooks_of_leaves_that_get_history(torch: Any, see: Any) -> None:
    a = leaf(torch, 3)
    b = leaf(torch, 3, asks=False)
    seen_by: list[Any] = []
    a.register_hook(lambda g: seen_by.append(numbers(g)))
    see(lambda: b.register_hook(seen_by.append), lambda: b.retain_grad())
    b.mul_(a)
    b.retain_grad()
    b.register_hook(lambda g: seen_by.append(numbers(g)))
    b.sum().backward()
    see(seen_by, a, b)


@cases
def hooks_replace_gradients_of_written_tensors(torch: Any, see: Any) -> None:
    x = leaf(torch, 4)
    y = x * 1
    y.register_hook(lambda g: g * 10)
    y[:2].mul_(2)
    y.register_hook(lambda g: g * 3)
    y.sum().backward()
    see(x)


@cases
def hooks_are_removed_after_a_write(torch: Any, see: Any) -> None:
    x = leaf(torch, 3)
    y = x * 1
    handle = y.register_hook(lambda g: g * 10)
    y.add_(1)
    handle.remove()
    y.sum().backward()
    see(x)


@cases
def hooks_of_a_tensor_that_is_detached_in_place(torch: Any, see: Any) -> None:
    x = leaf(torch, 3)
    y = x * 1
    seen_by: list[Any] = []
    y.register_hook(lambda g: seen_by.append(numbers(g)))
    y.retain_grad()
    z = y * 2
    y.detach_()
    see(y.retains_grad)
    z.sum().backward()
    see(seen_by, x, y)


@cases
def post_accumulate_hooks_that_write(torch: Any, see: Any) -> None:
    x = leaf(torch, 3)

    def descend(p: Any) -> None:
        with torch.no_grad():
            p.add_(p.grad, alpha=-0.5)
        p.grad = None

    x.register_post_accumulate_grad_hook(descend)
    (x * 2).sum().backward()
    see(x)


# --- versions -------------------------------------------------------------------------------------
@cases
def increment_version(torch: Any, see: Any) -> None:
    graph = torch.autograd.graph
    x = leaf(torch, 3)
    y = x * 1
    z = y * y
    graph.increment_version(y)
    see(y, lambda: z.sum().backward())
    graph.increment_version(x)
    graph.increment_version([x, y])
    see(x, y, y[1:]._version)
    see(lambda: graph.increment_version(3), lambda: graph.increment_version([3]))
    v = y[1:]
    graph.increment_version(v)
    see(v, y)


@cases
def versions_of_many_writes(torch: Any, see: Any) -> None:
    x = leaf(torch, 2, 3, asks=False)
    see(x._version)
    for write in (
        lambda: x.add_(1),
        lambda: x[0].mul_(2),
        lambda: x.__setitem__(0, 1.0),
        lambda: x.zero_(),
        lambda: x.fill_(2),
        lambda: x.copy_(x.clone()),
        lambda: x.t_(),
        lambda: x.unsqueeze_(0),
        lambda: x.squeeze_(0),
        lambda: x.transpose_(0, 1),
        lambda: x.detach_(),
        lambda: x.requires_grad_(False),
        lambda: x.resize_(2, 3),
        lambda: x.resize_(1, 2),
        lambda: x.set_(leaf(torch, 2, asks=False)),
        lambda: x.normal_(),
        lambda: x.clamp_(0, 1),
        lambda: x.data.add_(1),
        lambda: x.detach().add_(1),
        lambda: x.masked_fill_(x > 0, 1.0),
        lambda: torch.add(x, 1, out=x),
        lambda: x.sub_(x),
        lambda: x.index_fill_(0, torch.tensor([0]), 1.0),
        lambda: x.cumsum_(0),
        lambda: x.sigmoid_(),
        lambda: x.__iadd__(1),
        lambda: x.abs_(),
    ):
        write()
        see(x._version)


# --- allow_mutation_on_saved_tensors --------------------------------------------------------------
@cases
def mutation_of_saved_tensors(torch: Any, see: Any) -> None:
    graph = torch.autograd.graph
    with graph.allow_mutation_on_saved_tensors() as ctx:
        x = leaf(torch, 4)
        y = x * 1
        z = y * y
        w = y[1:3].exp()
        see(len(ctx.original), len(ctx.cloned))
        y.sin_()
        see(len(ctx.original), len(ctx.cloned))
        (z.sum() + w.sum() + y.sum()).backward()
        see(x)
    see(len(ctx.original), len(ctx.cloned))


@cases
def mutation_of_saved_views(torch: Any, see: Any) -> None:
    graph = torch.autograd.graph
    with graph.allow_mutation_on_saved_tensors():
        x = leaf(torch, 2, 2)
        y = x * 1
        z = y.t() * y.view(2, 2)
        y[0].mul_(3)
        y.t().add_(1)
        (z.sum() + y.sum()).backward()
        see(x, y)


@cases
def mutation_of_saved_tensors_misused(torch: Any, see: Any) -> None:
    graph = torch.autograd.graph
    with graph.allow_mutation_on_saved_tensors():
        x = leaf(torch, 2)
        y = x.exp()
        see(lambda: graph.allow_mutation_on_saved_tensors().__enter__())
    see(lambda: y.sum().backward())
    with graph.allow_mutation_on_saved_tensors():
        see(lambda: x.mul_(2))
        a = leaf(torch, 2)
        b = a * a
        with torch.no_grad():
            a.mul_(5)
        b.sum().backward()
        see(a)


results = cases.results
