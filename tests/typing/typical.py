"""Lines of ordinary programs with the types that a checker must see in them.

Checked, not run, by mypy and by pyright in their strictest settings: see `make types` and
`tests/typing/test_typing.py`.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, assert_type

import numpy as np

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import Tensor, nn, optim
from rushlight.autograd import Function
from rushlight.autograd.function import FunctionCtx
from rushlight.utils.checkpoint import checkpoint

# --- making tensors -------------------------------------------------------------------------------
x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
assert_type(x, Tensor)
assert_type(torch.zeros(2, 3), Tensor)
assert_type(torch.zeros((2, 3), dtype=torch.float64), Tensor)
assert_type(torch.ones(2, 3, device="cpu"), Tensor)
assert_type(torch.empty(0), Tensor)
assert_type(torch.full((2,), 7), Tensor)
assert_type(torch.arange(5), Tensor)
assert_type(torch.arange(0, 5, 0.5), Tensor)
assert_type(torch.linspace(0, 1, 5), Tensor)
assert_type(torch.eye(3), Tensor)
assert_type(torch.rand(2, 2), Tensor)
assert_type(torch.randn([2, 2], generator=torch.Generator().manual_seed(0)), Tensor)
assert_type(torch.randint(0, 10, (3,)), Tensor)
assert_type(torch.randint(10, (3,)), Tensor)
assert_type(torch.randperm(4), Tensor)
assert_type(torch.zeros_like(x), Tensor)
assert_type(torch.as_tensor([1, 2]), Tensor)
assert_type(torch.manual_seed(0), torch.Generator)

# --- what a tensor is -----------------------------------------------------------------------------
assert_type(x.shape, torch.Size)
assert_type(x.shape[0], int)
assert_type(x.size(), torch.Size)
assert_type(x.size(0), int)
assert_type(x.stride(), tuple[int, ...])
assert_type(x.stride(0), int)
assert_type(x.dim(), int)
assert_type(x.ndim, int)
assert_type(x.numel(), int)
assert_type(x.dtype, torch.dtype)
assert_type(x.device, torch.device)
assert_type(x.device.type, str)
assert_type(x.is_leaf, bool)
assert_type(x.requires_grad, bool)
assert_type(x.is_contiguous(), bool)
assert_type(x.grad, Tensor | None)
assert_type(x.data, Tensor)
assert_type(x.T, Tensor)
assert_type(x.item(), int | float | bool)
assert_type(x.tolist(), Any)
assert_type(float(x[0, 0]), float)
assert_type(len(x), int)
assert_type(list(x), list[Tensor])
assert_type(torch.float32, torch.dtype)
assert_type(torch.float, torch.dtype)
assert_type(torch.long, torch.dtype)
assert_type(torch.device("cpu"), torch.device)
assert_type(torch.is_tensor(x), bool)
assert_type(torch.pi, float)
assert_type(torch.finfo(torch.float32).eps, float)

# --- operators and indices ------------------------------------------------------------------------
assert_type(x + 1, Tensor)
assert_type(1 - x, Tensor)
assert_type(2.0 * x / 3, Tensor)
assert_type(x**2, Tensor)
assert_type(x @ x, Tensor)
assert_type(-x, Tensor)
assert_type(x == 1, Tensor)
assert_type(x != x, Tensor)
assert_type(x > 0, Tensor)
assert_type((x > 0) & (x < 3), Tensor)
assert_type(~(x > 0), Tensor)
assert_type(x[0], Tensor)
assert_type(x[:, 1:], Tensor)
assert_type(x[x > 0], Tensor)
assert_type(x[..., None], Tensor)
assert_type(abs(x), Tensor)
x[0] = 1.0
y = x
y += 1
assert_type(y, Tensor)

# --- methods --------------------------------------------------------------------------------------
assert_type(x.float().view(-1), Tensor)
assert_type(x.view(2, 2), Tensor)
assert_type(x.view(torch.int32), Tensor)
assert_type(x.reshape((4,)), Tensor)
assert_type(x.reshape(-1, 2), Tensor)
assert_type(x.permute(1, 0), Tensor)
assert_type(x.t().contiguous(), Tensor)
assert_type(x.to(torch.float64), Tensor)
assert_type(x.to("cpu"), Tensor)
assert_type(x.to(x.device, torch.float16), Tensor)
assert_type(x.detach().clone(), Tensor)
assert_type(x.cpu().numpy(), np.ndarray[Any, Any])
assert_type(x.sum(), Tensor)
assert_type(x.sum(dim=(0, 1), keepdim=True), Tensor)
assert_type(x.mean(0), Tensor)
assert_type(x.add_(1), Tensor)
assert_type(x.zero_(), Tensor)
assert_type(x.copy_(x), Tensor)
assert_type(x.masked_fill(x > 0, 0), Tensor)
assert_type(x.unsqueeze(0).squeeze(0), Tensor)
assert_type(x.expand(3, 2, 2), Tensor)
assert_type(x.requires_grad_(), Tensor)
assert_type(x.type(), str)
assert_type(x.argmax(dim=1), Tensor)
assert_type(x.split(1), tuple[Tensor, ...])
assert_type(x.chunk(2, dim=1), tuple[Tensor, ...])
assert_type(x.unbind(), tuple[Tensor, ...])
assert_type(x.retain_grad(), None)
assert_type(x.backward(), None)

# --- functions, and results with names ------------------------------------------------------------
assert_type(torch.sum(x), Tensor)
assert_type(torch.exp(x), Tensor)
assert_type(torch.matmul(x, x), Tensor)
assert_type(torch.cat([x, x], dim=0), Tensor)
assert_type(torch.stack((x, x)), Tensor)
assert_type(torch.where(x > 0, x, 0.0), Tensor)
assert_type(torch.where(x > 0), tuple[Tensor, ...])
assert_type(torch.einsum("ij,jk->ik", x, x), Tensor)
assert_type(torch.clamp(x, min=0), Tensor)
assert_type(torch.allclose(x, x), bool)
assert_type(torch.sort(x).values, Tensor)
assert_type(torch.sort(x), torch.return_types.sort)
assert_type(torch.max(x), Tensor)
assert_type(torch.max(x, 0), torch.return_types.max)
assert_type(torch.max(x, 0).indices + 1, Tensor)
assert_type(torch.max(x, x), Tensor)
assert_type(x.min(dim=1).values, Tensor)
assert_type(torch.median(x), Tensor)
assert_type(x.median(0).indices, Tensor)
assert_type(torch.topk(x, 1).indices, Tensor)
assert_type(torch.mode(x).values, Tensor)
assert_type(torch.kthvalue(x, 1).values, Tensor)
assert_type(torch.cummax(x, 0).values, Tensor)
values, indices = torch.topk(x, 1)
assert_type(values, Tensor)
assert_type(indices, Tensor)
assert_type(torch.unique(x), Tensor)
assert_type(torch.unique(x, return_counts=True), tuple[Tensor, Tensor])
assert_type(torch.nonzero(x), Tensor)
assert_type(torch.nonzero(x, as_tuple=True), tuple[Tensor, ...])
assert_type(torch.var_mean(x), tuple[Tensor, Tensor])
assert_type(torch.linalg.qr(x).Q, Tensor)
assert_type(torch.linalg.svd(x).S, Tensor)
assert_type(torch.linalg.eigh(x).eigenvalues, Tensor)
assert_type(torch.linalg.slogdet(x).logabsdet, Tensor)
assert_type(torch.linalg.norm(x), Tensor)
assert_type(torch.linalg.solve(x, x), Tensor)
assert_type(torch.special.expit(x), Tensor)

# --- modules --------------------------------------------------------------------------------------
layer = nn.Linear(2, 2)
assert_type(layer, nn.Linear)
assert_type(layer.weight, nn.Parameter)
assert_type(layer.bias, nn.Parameter)
assert_type(layer.in_features, int)
assert_type(layer(x), Any)
assert_type(nn.Parameter(torch.zeros(2)), nn.Parameter)
assert_type(F.relu(x), Tensor)
assert_type(F.softmax(x, dim=-1), Tensor)
assert_type(F.cross_entropy(x, torch.tensor([0, 1])), Tensor)
assert_type(F.mse_loss(x, x, reduction="sum"), Tensor)
assert_type(F.dropout(x, p=0.5, training=True), Tensor)
assert_type(nn.init.zeros_(layer.weight), Tensor)


class Net(nn.Module):
    def __init__(self, hidden: int = 8) -> None:
        super().__init__()
        self.first = nn.Linear(2, hidden)
        self.second = nn.Linear(hidden, 1)
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(self.first(x))
        out: Tensor = self.second(h) * self.scale
        return out


model = Net()
assert_type(model.first, nn.Linear)
assert_type(model.scale, nn.Parameter)
assert_type(model.parameters(), Iterator[nn.Parameter])
assert_type(next(model.named_parameters()), tuple[str, nn.Parameter])
assert_type(next(model.buffers()), Tensor)
assert_type(model.train(), Net)
assert_type(model.eval(), Net)
assert_type(model.to("cpu"), Net)
assert_type(model.state_dict(), dict[str, Any])
assert_type(model.zero_grad(), None)
assert_type(sum(p.numel() for p in model.parameters()), int)
stack = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
assert_type(stack[0], nn.Module)
assert_type(stack[:1], nn.Sequential)
assert_type(list(stack), list[nn.Module])
assert_type(nn.ModuleList([layer])[0], nn.Module)
assert_type(list(model.modules()), list[nn.Module])
assert_type(nn.utils.clip_grad_norm_(model.parameters(), 1.0), Tensor)
assert_type(nn.MSELoss()(x, x), Any)

# --- optimizers -----------------------------------------------------------------------------------
optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
assert_type(optimizer, optim.SGD)
assert_type(optimizer.zero_grad(), None)
assert_type(optimizer.step(), None)
assert_type(optimizer.param_groups, list[dict[str, Any]])


def closure() -> float:
    loss = F.mse_loss(x, x)
    loss.backward()
    return float(loss)


assert_type(optimizer.step(closure), float)
assert_type(optim.Adam([{"params": model.parameters(), "lr": 1e-3}]), optim.Adam)
scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=10)
assert_type(scheduler.step(), None)
assert_type(scheduler.get_last_lr(), list[float])


# --- modes ----------------------------------------------------------------------------------------
@torch.no_grad()
def evaluate(net: nn.Module, batch: Tensor, *, count: int = 1) -> float:
    return float(net(batch).sum()) * count


assert_type(evaluate(model, x, count=2), float)


@torch.enable_grad()
def enabled(a: int) -> str:
    return str(a)


assert_type(enabled(1), str)


@torch.inference_mode()
def inferring(t: Tensor) -> list[Tensor]:
    return [t]


assert_type(inferring(x), list[Tensor])


@torch.set_grad_enabled(False)
def switched(t: Tensor) -> tuple[Tensor, int]:
    return t, 1


assert_type(switched(x), tuple[Tensor, int])
with torch.no_grad(), torch.autograd.set_detect_anomaly(True):
    if x.grad is not None:
        x -= 0.1 * x.grad
assert_type(torch.is_grad_enabled(), bool)

# --- autograd -------------------------------------------------------------------------------------
assert_type(torch.autograd.grad(x.sum(), x), tuple[Tensor, ...])
assert_type(torch.autograd.grad(x.sum(), [x], create_graph=True)[0], Tensor)
assert_type(torch.autograd.backward(x.sum()), None)
assert_type(torch.autograd.gradcheck(torch.sin, (x,)), bool)


class Double(Function):
    @staticmethod
    def forward(ctx: FunctionCtx, t: Tensor) -> Tensor:
        ctx.save_for_backward(t)
        return t * 2

    @staticmethod
    def backward(ctx: FunctionCtx, grad_output: Tensor) -> Tensor:
        return grad_output * 2


assert_type(Double.apply(x), Any)


def hook(grad: Tensor) -> Tensor:
    return grad * 2


handle = x.register_hook(hook)
assert_type(handle.remove(), None)
assert_type(checkpoint(torch.sin, x, use_reentrant=False), Any)


# --- functions of functions -----------------------------------------------------------------------
def f(t: Tensor) -> Tensor:
    return (t * t).sum()


assert_type(torch.func.grad(f)(x), Any)
assert_type(torch.func.grad_and_value(f)(x), tuple[Any, Any])
assert_type(torch.func.vmap(f)(x), Tensor)
assert_type(torch.vmap(torch.func.grad(f))(x), Any)
assert_type(torch.func.jacrev(f)(x), Any)
assert_type(torch.func.functional_call(model, dict(model.named_parameters()), (x,)), Any)

# --- files, seeds, hooks --------------------------------------------------------------------------
file = io.BytesIO()
assert_type(torch.save(model.state_dict(), file), None)
assert_type(torch.load(file), Any)
assert_type(torch.get_default_dtype(), torch.dtype)
assert_type(torch.set_printoptions(precision=3), None)
assert_type(torch.testing.assert_close(x, x), None)

# --- pictures -------------------------------------------------------------------------------------
assert_type(torch.viz.graph(f(x), params=model), torch.viz.GraphPicture)
assert_type(torch.viz.graph(f(x), backward=True).unfold().html(), str)
with torch.viz.record() as recording:
    assert_type(recording, torch.viz.Recording)
