"""Small programs inside autocast: dtypes of results, nesting, settings, gradients."""

from __future__ import annotations

import warnings
from typing import Any

from tests.harness import PlainCases

exact = PlainCases()  # to the last letter
close = PlainCases()  # to the rounding of bfloat16


def kind(t: Any) -> str:
    return str(t.dtype).split(".")[-1]


def kinds(torch: Any) -> Any:
    """The dtypes that functions give: of float32, of bfloat16, of both, of doubles."""
    torch.manual_seed(0)
    a, b = torch.randn(3, 3), torch.randn(3, 3)
    h, d, f = a.bfloat16(), a.double(), torch.nn.functional
    target, net = torch.tensor([0, 1, 2]), torch.nn.Linear(3, 2)
    far = h + 9 * torch.eye(3).bfloat16()
    found = {}
    for device in ("cpu",):
        with torch.autocast(device):
            made = {
                "net": net(a), "@": a @ b, "mixed @": a @ h, "matmul": torch.matmul(h, a),
                "mm": a.mm(b), "bmm": torch.bmm(a[None], b[None]), "addmm": torch.addmm(a, b, h),
                "baddbmm": torch.baddbmm(a[None], b[None], h[None]), "mv": torch.mv(a, b[0]),
                "@ vector": a @ b[0], "vectors": a[0] @ b[0], "doubles": d @ d, "add": a + h,
                "exp": h.exp(), "softmax": f.softmax(h, -1), "sum": h.sum(), "prod": h.prod(),
                "cross_entropy": f.cross_entropy(h, target), "mse": f.mse_loss(h, h),
                "module": torch.nn.MSELoss()(h, a), "cat": torch.cat([h, a]),
                "cat low": torch.cat([h, h]), "stack": torch.stack([h, h]),
                "cat doubles": torch.cat([h, d]), "einsum": torch.einsum("ij,jk->ik", a, b),
                "nll": f.nll_loss(f.log_softmax(h, -1), target),
                "layer_norm": f.layer_norm(h, (3,)), "prelu": f.prelu(a, torch.ones(1)),
                "inv": torch.linalg.inv(far), "qr": torch.linalg.qr(h)[0],
                "linear": f.linear(h, a, b[0]), "bce": f.binary_cross_entropy_with_logits(h, h),
                "l1": f.l1_loss(h, a), "trace": h.trace(), "complex": torch.view_as_complex(
                    torch.ones(2, 2).bfloat16()
                ), "quantile": h.quantile(0.5), "integers": torch.ones(2, 2).long() @
                torch.ones(2, 2).long(), "similarity": f.cosine_similarity(h, h),
            }  # fmt: skip
            for layer in (torch.nn.LSTM(3, 2), torch.nn.RNN(3, 2), torch.nn.GRU(3, 2)):
                for x in (a[None], h[None]):
                    made[f"{type(layer).__name__} {kind(x)}"] = layer(x)[0]
            convolution = torch.nn.Conv2d(1, 2, 1)
            made["conv"] = convolution(a[None, None])
            made["conv mixed"] = convolution(h[None, None])
            made["out"] = torch.mm(a, b, out=torch.empty(3, 3))
            made["in place"] = a.clone().addmm_(a, b)
        found[device] = {name: kind(t) for name, t in made.items()}
    return found


def nested(torch: Any) -> Any:
    a = torch.ones(2, 2)
    log: list[Any] = []

    def tell() -> None:
        log.append([kind(a @ a), torch.is_autocast_enabled("cpu"),
                    str(torch.get_autocast_dtype("cpu")).split(".")[-1],
                    torch.is_autocast_cache_enabled(), torch.is_autocast_enabled()])  # fmt: skip

    tell()
    with torch.autocast("cpu"):
        tell()
        with torch.autocast("cpu", enabled=False):
            tell()
            with torch.autocast("cpu", dtype=torch.float16, cache_enabled=False):
                tell()
        tell()
        try:
            with torch.autocast("cpu", dtype=torch.float16):
                raise KeyError
        except KeyError:
            tell()
    tell()

    @torch.autocast("cpu", dtype=torch.float16)
    def inside() -> None:
        tell()

    inside()
    tell()
    torch.set_autocast_enabled("cpu", True)
    tell()
    torch.set_autocast_dtype("cpu", torch.float16)
    tell()
    torch.set_autocast_enabled("cpu", False)
    torch.set_autocast_dtype("cpu", torch.bfloat16)
    tell()
    return log


def refused(torch: Any) -> Any:
    found = []
    for make in (
        lambda: torch.autocast(3),
        lambda: torch.autocast("nothing"),
        lambda: torch.autocast("cpu", dtype=torch.float64)._enabled,
        lambda: torch.amp.is_autocast_available("cpu"),
        lambda: torch.amp.custom_fwd(max, device_type=3),
    ):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                answer = repr(make())
            except Exception as error:
                answer = f"{type(error).__name__}: {str(error)[:20]}"
        found.append([answer, [str(w.message).splitlines()[0] for w in said]])
    return found


def own_functions(torch: Any) -> Any:
    """`custom_fwd` and `custom_bwd`: in which dtype, and with autocast on or off."""
    log: list[Any] = []

    def made(cast_inputs: Any) -> Any:
        class Product(torch.autograd.Function):
            @staticmethod
            @torch.amp.custom_fwd(device_type="cpu", cast_inputs=cast_inputs)
            def forward(ctx: Any, a: Any, b: Any) -> Any:
                log.append([kind(a), torch.is_autocast_enabled("cpu")])
                ctx.save_for_backward(a, b)
                return a @ b

            @staticmethod
            @torch.amp.custom_bwd(device_type="cpu")
            def backward(ctx: Any, g: Any) -> Any:
                a, b = ctx.saved_tensors
                log.append([kind(g @ b), torch.is_autocast_enabled("cpu")])
                return g.to(a.dtype) @ b.to(a.dtype).T, a.T @ g.to(a.dtype)

        return Product

    for cast_inputs in (None, torch.float32, torch.float16):
        for on in (True, False):
            a = torch.ones(2, 2, requires_grad=True)
            with torch.autocast("cpu", enabled=on):
                y = made(cast_inputs).apply(a, a)
            y.sum().backward()
            log.append([kind(y), kind(a.grad)])
    return log


def training(torch: Any) -> Any:
    torch.manual_seed(2)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x = torch.randn(8, 3)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = torch.nn.functional.mse_loss(net(x) + net(x), torch.ones(8, 1))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return [losses, [p.grad.tolist() for p in net.parameters()]]


def computed_again(torch: Any) -> Any:
    """A checkpoint runs again as it ran: in the dtypes of its own autocast."""
    from importlib import import_module

    checkpoint = import_module(f"{torch.__name__}.utils.checkpoint").checkpoint
    log: list[Any] = []

    def part(x: Any) -> Any:
        y = x @ x
        log.append(kind(y))
        return y.float().sin()

    for reentrant in (False, True):
        for on, later in ((True, False), (False, True)):
            x = torch.ones(2, 2, requires_grad=True)
            with torch.autocast("cpu", enabled=on):
                y = checkpoint(part, x, use_reentrant=reentrant)
            with torch.autocast("cpu", enabled=later):
                y.sum().backward()
                log.append([kind(torch.ones(2, 2) @ torch.ones(2, 2)), kind(x.grad)])
    return log


exact["kinds"] = kinds
exact["computed again"] = computed_again
exact["nested"] = nested
exact["errors and warnings"] = refused
exact["own functions"] = own_functions
close["training"] = training


def results(lib: Any) -> Any:
    return exact.results(lib) | close.results(lib)
