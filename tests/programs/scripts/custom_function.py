"""Functions with a backward of their own, checked by differences."""

import torch


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, i):
        result = i.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, grad_output):
        (result,) = ctx.saved_tensors
        return grad_output * result


class Reverse(torch.autograd.Function):
    """The identity, with the gradient turned around: for adversarial training."""

    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return -ctx.scale * g, None


torch.manual_seed(0)
x = torch.randn(3, dtype=torch.float64, requires_grad=True)
print(torch.autograd.gradcheck(Exp.apply, (x,)), torch.autograd.gradgradcheck(Exp.apply, (x,)))
y = Exp.apply(x)
print(y.grad_fn.name(), y)
Reverse.apply(y, 0.5).sum().backward()
print(x.grad)
