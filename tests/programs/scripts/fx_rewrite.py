"""A traced model is read, rewritten and run again."""

import torch
from torch import fx, nn
from torch.fx.passes.shape_prop import ShapeProp


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, x):
        h = torch.relu(self.linear(x)) * self.scale
        return nn.functional.dropout(h, 0.5, self.training) + h.shape[0]


torch.manual_seed(0)
traced = fx.symbolic_trace(Net())
print(traced.code)
print(traced.graph)
for node in traced.graph.nodes:
    if node.op == "call_function" and node.target is torch.relu:
        with traced.graph.inserting_after(node):
            new = traced.graph.call_function(torch.sigmoid, node.args, node.kwargs)
            node.replace_all_uses_with(new)
        traced.graph.erase_node(node)
traced.recompile()
traced.eval()
print(traced.code)
x = torch.randn(2, 4)
print(traced(x))
ShapeProp(traced).propagate(x)
print(
    [
        (n.name, tuple(n.meta["tensor_meta"].shape))
        for n in traced.graph.nodes
        if "tensor_meta" in n.meta
    ]
)
fx.replace_pattern(traced, lambda x: torch.sigmoid(x), lambda x: torch.tanh(x) * 2)
print(traced.code)
