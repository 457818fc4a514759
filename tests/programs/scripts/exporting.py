"""Tracing, scripting and exporting a model; a profile of it; hooks that measure it; a summary."""

import io
from collections import OrderedDict

import torch
import torch.nn as nn
from torch.profiler import ProfilerActivity, profile, record_function


class Gate(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            return x * 2
        return -x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            OrderedDict(
                [
                    ("conv", nn.Conv2d(1, 4, 3)),
                    ("act", nn.Hardswish()),
                    ("pool", nn.AdaptiveMaxPool2d(2)),
                ]
            )
        )
        self.gate, self.head = Gate(), nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.gate(self.features(x)).flatten(1))


def summary(model, x):
    rows = []

    def hook(module, args, output):
        rows.append(
            (
                type(module).__name__,
                tuple(output.shape),
                sum(p.numel() for p in module.parameters(recurse=False)),
            )
        )

    handles = [m.register_forward_hook(hook) for m in model.modules() if not list(m.children())]
    model(x)
    for handle in handles:
        handle.remove()
    return rows


torch.manual_seed(0)
model = Net().eval()
x = torch.randn(2, 1, 6, 6)
for row in summary(model, x):
    print(*row)
expected = model(x)
scripted = torch.jit.script(model)
traced = torch.jit.trace(model, x, check_trace=False)
print(torch.allclose(scripted(x), expected), torch.allclose(traced(x), expected))
with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
    with record_function("model_inference"):
        model(x)
names = {event.key for event in prof.key_averages()}
print({"model_inference", "aten::convolution", "aten::addmm"} <= names)
buffer = io.BytesIO()
torch.save(model.state_dict(), buffer)
buffer.seek(0)
again = Net()
print(again.load_state_dict(torch.load(buffer)), torch.equal(again(x), expected))
compiled = torch.compile(model)
print(torch.allclose(compiled(x), expected), f"{expected.abs().sum().item():.5f}")
with torch.inference_mode():
    out = model(x)
print(
    out.is_inference(),
    out.requires_grad,
    torch.is_grad_enabled(),
    model.features.conv.weight.grad is None,
)
try:
    again.load_state_dict({"head.weight": torch.zeros(3, 16), "extra": torch.zeros(1)})
except RuntimeError as error:
    print(*str(error).splitlines()[:2])
