"""A neural ODE on a spiral: Runge-Kutta steps, gradients by the adjoint method in a Function."""

import argparse
import time

import torch
import torch.nn as nn
import torch.optim as optim

parser = argparse.ArgumentParser("ODE demo")
parser.add_argument("--method", type=str, choices=["rk4", "euler"], default="rk4")
parser.add_argument("--data_size", type=int, default=40)
parser.add_argument("--batch_time", type=int, default=5)
parser.add_argument("--batch_size", type=int, default=8)
parser.add_argument("--niters", type=int, default=12)
parser.add_argument("--test_freq", type=int, default=4)
parser.add_argument("--adjoint", action="store_true")
args = parser.parse_args(["--adjoint"])
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
torch.manual_seed(11)


def step(func, t, dt, y):
    if args.method == "euler":
        return y + dt * func(t, y)
    k1 = func(t, y)
    k2 = func(t + dt / 2, y + dt * k1 / 2)
    k3 = func(t + dt / 2, y + dt * k2 / 2)
    k4 = func(t + dt, y + dt * k3)
    return y + dt * (k1 + 2 * k2 + 2 * k3 + k4) / 6


def integrate(func, y0, t):
    ys = [y0]
    for a, b in zip(t[:-1], t[1:]):
        ys.append(step(func, a, b - a, ys[-1]))
    return torch.stack(ys)


class Adjoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, func, t, y0, flat):
        ctx.func = func
        with torch.no_grad():
            ys = integrate(func, y0, t)
        ctx.save_for_backward(t, ys, flat)
        return ys

    @staticmethod
    def backward(ctx, grad_ys):
        t, ys, flat = ctx.saved_tensors
        func, params = ctx.func, tuple(ctx.func.parameters())
        a, grad = grad_ys[-1], torch.zeros_like(flat)
        for i in range(len(t) - 1, 0, -1):
            with torch.enable_grad():
                y = ys[i - 1].detach().requires_grad_(True)
                after = step(func, t[i - 1], t[i] - t[i - 1], y)
                gy, *gp = torch.autograd.grad(after, (y,) + params, a, allow_unused=True)
            grad += torch.cat(
                [
                    g.contiguous().view(-1) if g is not None else torch.zeros(p.numel())
                    for g, p in zip(gp, params)
                ]
            )
            a = gy + grad_ys[i - 1]
        return None, None, a, grad


def odeint(func, y0, t):
    if not args.adjoint:
        return integrate(func, y0, t)
    return Adjoint.apply(
        func, t, y0, torch.cat([p.contiguous().view(-1) for p in func.parameters()])
    )


class Lambda(nn.Module):
    def forward(self, t, y):
        return torch.mm(y**3, true_A)


class ODEFunc(nn.Module):
    def __init__(self):
        super(ODEFunc, self).__init__()
        self.net = nn.Sequential(nn.Linear(2, 20), nn.Tanh(), nn.Linear(20, 2))
        for m in self.net.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, mean=0, std=0.1)
                nn.init.constant_(m.bias, val=0)
        self.nfe = 0

    def forward(self, t, y):
        self.nfe += 1
        return self.net(y**3)


true_y0 = torch.tensor([[2.0, 0.0]]).to(device)
t = torch.linspace(0.0, 4.0, args.data_size).to(device)
true_A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]]).to(device)
with torch.no_grad():
    true_y = integrate(Lambda(), true_y0, t)


def get_batch():
    s = torch.randperm(args.data_size - args.batch_time)[: args.batch_size]
    return (
        true_y[s],
        t[: args.batch_time],
        torch.stack([true_y[s + i] for i in range(args.batch_time)], dim=0),
    )


class RunningAverageMeter(object):
    def __init__(self, momentum=0.99):
        self.momentum, self.val, self.avg = momentum, None, 0

    def update(self, val):
        self.avg = val if self.val is None else self.avg * self.momentum + val * (1 - self.momentum)
        self.val = val


func = ODEFunc().to(device)
optimizer = optim.RMSprop(func.parameters(), lr=1e-2)
end, meter = time.time(), RunningAverageMeter(0.97)
for itr in range(1, args.niters + 1):
    optimizer.zero_grad()
    y0, bt, by = get_batch()
    pred = odeint(func, y0, bt)
    loss = torch.mean(torch.abs(pred - by))
    loss.backward()
    optimizer.step()
    meter.update(loss.item())
    if itr % args.test_freq == 0:
        with torch.no_grad():
            pred = odeint(func, true_y0, t)
            print(
                "Iter {:04d} | Total Loss {:.6f} | {:.5f} | {}".format(
                    itr, torch.mean(torch.abs(pred - true_y)).item(), meter.avg, func.nfe
                )
            )
args.adjoint = False
y0, bt, by = get_batch()
direct = torch.autograd.grad(odeint(func, y0, bt).pow(2).sum(), list(func.parameters()))
args.adjoint = True
by_adjoint = torch.autograd.grad(odeint(func, y0, bt).pow(2).sum(), list(func.parameters()))
print(all(torch.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in zip(direct, by_adjoint)))
