"""Programs with tensors of the device `meta`: what they print, or how they fail."""

from __future__ import annotations

import copy
import io
import warnings
from typing import Any

from tests.harness import attempt

LINES = """
x
x.device, x.is_meta, x.shape, x.stride(), x.dtype, x.storage_offset(), x.is_contiguous()
x.numel(), x.nbytes, x.element_size(), x.data_ptr(), torch.ones(2).is_meta
torch.empty((), device="meta").item()
bool(torch.empty((), device="meta"))
float(torch.empty((), device="meta"))
x.tolist()
x.numpy()
x.cpu()
x.to("cpu")
torch.ones(2, 3).copy_(x)
x + torch.ones(2, 3)
x + torch.tensor(1.0)
torch.zeros(2, device="meta"), torch.ones(2, device="meta", dtype=torch.int64)
torch.full((2,), 3.0, device="meta"), torch.eye(2, device="meta"), torch.arange(5, device="meta")
torch.tensor([1.0, 2.0], device="meta"), torch.linspace(0, 1, 3, device="meta")
torch.randn(2, device="meta"), torch.rand_like(x), torch.randint(5, (2,), device="meta")
torch.randperm(3, device="meta"), torch.bernoulli(x), torch.multinomial(x, 2)
torch.empty_strided((2, 3), (1, 2), device="meta").stride(), x.new_zeros(2), torch.zeros_like(x)
torch.ones(2, 3).t().to("meta").stride(), torch.empty_like(x.t()).stride()
x + x, x * 2, 2 - x, x / 3, x ** 2, -x, x > 0, x == x, x.int() // 2, x.int() / 2
(x.t() + 1).stride(), (x.t() + x.t()).stride(), x.t().exp().stride(), x.t().clone().stride()
x @ x.t(), x.mv(x[0]), torch.einsum("ij,kj->ik", x, x), torch.bmm(x[None], x.t()[None])
x.sum(0), x.mean(), x.sum(0, keepdim=True), x.amax(1), x.any(), x.argmax(1), x.norm(), x.var(1)
x.int().sum(), x.bool().sum(), x.half().sum(), x.max(1), x.sort(), x.topk(2), x.cumsum(0)
x.t().stride(), x.view(3, 2), x.t().reshape(6), x[0, 1:], x[:, None].expand(2, 5, 3).stride()
x[:, torch.tensor([0, 1], device="meta")], x[1:, ::2].storage_offset(), x.as_strided((2,), (2,), 1)
torch.cat([x, x]), torch.stack([x, x], 1), [c.shape for c in x.chunk(2, 1)], x.flip(0), x.roll(1)
torch.where(x > 0, x, x), torch.where(x > 0, x, 1), x.tril(), x.diagonal(), x.unfold(1, 2, 1)
x.softmax(1), torch.relu(x), F.gelu(x), F.layer_norm(x, (3,)), F.dropout(x, 0.5), F.pad(x, (1, 1))
F.cross_entropy(x, torch.zeros(2, dtype=torch.long, device="meta")), F.mse_loss(x, x)
torch.empty(2, 3, 4, device="meta").permute(2, 0, 1).contiguous().stride()
x.add_(1), x.fill_(1), x.normal_(), x.uniform_(), x.copy_(torch.ones(2, 3)), x.zero_()
x.half().dtype, x.to(torch.complex64).real, x.to(torch.complex64).imag.stride(), x.view(torch.int16)
copy.deepcopy(x), torch.nn.Parameter(x), x.detach().requires_grad_(), len({x})
x.gather(1, torch.zeros(2, 2, dtype=torch.long, device="meta"))
x.index_select(0, i), x.scatter(0, i[None], 1.0), x.index_add(0, i, x), x.masked_fill(x > 0, 1.0)
torch.linalg.inv(torch.empty(2, 2, device="meta")), torch.linalg.svd(x), torch.linalg.qr(x)
torch.empty(100000, 100000, device="meta") @ torch.empty(100000, 100000, device="meta")
torch.empty(10 ** 7, 10 ** 7, device="meta").t().exp().sum(0)
torch.randn(10 ** 6, 10 ** 7, device="meta")
x.untyped_storage(), x[1:].untyped_storage().nbytes(), x.untyped_storage().device
torch.nn.init.kaiming_uniform_(x), torch.nn.init.zeros_(x)
grads(torch)
module(torch)
torch.nn.Linear(2, 3, device="meta").to("cpu")
torch.nn.Linear(2, 3, device="meta").to_empty(device="cpu").weight.shape
torch.nn.Linear(2, 3).to("meta").weight, torch.nn.Linear(2, 3).to_empty(device="meta").bias
torch.nn.utils.skip_init(torch.nn.Linear, 2, 3).weight.device
torch.nn.utils.skip_init(torch.nn.ReLU)
assigned(torch)
warned(torch)
inside(torch)
saved(torch)
steps(torch)
""".strip().splitlines()  # fmt: skip


def grads(torch: Any) -> Any:
    x = torch.empty(2, 3, device="meta")
    w = torch.ones(3, 2, device="meta", requires_grad=True)
    y = (x @ w).relu().sum()
    y.backward()
    second = torch.autograd.grad((w**3).sum(), w, create_graph=True)[0].sum()
    return w.grad, y, torch.autograd.grad(second, w)[0]


def module(torch: Any) -> Any:
    made = torch.nn.Sequential(
        torch.nn.Linear(3, 4, device="meta"), torch.nn.ReLU(),
        torch.nn.BatchNorm1d(4, device="meta"), torch.nn.LayerNorm(4, device="meta"),
    )  # fmt: skip
    y = made(torch.empty(2, 3, device="meta"))
    y.sum().backward()
    embedding = torch.nn.Embedding(5, 2, device="meta")
    z = embedding(torch.zeros(2, 3, dtype=torch.long, device="meta"))
    return y, made[0].weight, made[0].weight.grad, made[2].running_mean, z


def assigned(torch: Any) -> Any:
    made = torch.nn.Linear(2, 3, device="meta")
    result = made.load_state_dict(torch.nn.Linear(2, 3).state_dict(), assign=True)
    return result, made.weight.device, made.weight.requires_grad, type(made.weight).__name__


def warned(torch: Any) -> Any:
    made = torch.nn.Linear(2, 3, device="meta")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        made.load_state_dict(torch.nn.Linear(2, 3).state_dict())
    return made.weight.device, [str(w.message) for w in told]


def inside(torch: Any) -> Any:
    with torch.device("meta"):
        made = torch.nn.Linear(2, 3), torch.rand(2), torch.tensor(1.0), torch.arange(3)
    return made[0].weight.device, *made[1:], torch.ones(1).device


def saved(torch: Any) -> Any:
    file = io.BytesIO()
    torch.save([torch.empty(2, 3, device="meta").t(), torch.ones(2)], file)
    found = []
    for options in ({}, {"weights_only": False}, {"map_location": "meta"}):
        file.seek(0)
        a, b = torch.load(file, **options)
        found.append([a, a.stride(), b])
    return found


def steps(torch: Any) -> Any:
    w = torch.ones(2, device="meta", requires_grad=True)
    opt = torch.optim.SGD([w], lr=0.1, momentum=0.9)
    (w * w).sum().backward()
    opt.step()
    return w, opt.state[w]["momentum_buffer"]


def results(lib: Any) -> dict[str, Any]:
    found = {}
    for line in LINES:
        space = {
            "torch": lib, "F": lib.nn.functional, "x": lib.empty(2, 3, device="meta"),
            "i": lib.zeros(2, dtype=lib.long, device="meta"), "copy": copy, "grads": grads,
            "module": module, "assigned": assigned, "warned": warned, "inside": inside,
            "saved": saved, "steps": steps,
        }  # fmt: skip
        found[line] = str(attempt(lambda line=line, space=space: eval(line, space)))  # type: ignore[misc]
    return found
