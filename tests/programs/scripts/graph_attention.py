"""Graph convolution with a sparse matrix, and graph attention with index_add, on two rings."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
n = 12
ring = [(i, (i + 1) % 6) for i in range(6)] + [(6 + i, 6 + (i + 1) % 6) for i in range(6)]
edges = torch.tensor(
    ring + [(b, a) for a, b in ring] + [(i, i) for i in range(n)] + [(0, 6), (6, 0)]
).t()
x, label = torch.randn(n, 4), torch.arange(n) // 6
degree = torch.zeros(n).index_add_(0, edges[1], torch.ones(edges.size(1)))
weight = (degree[edges[0]] * degree[edges[1]]).rsqrt()
adjacency = torch.sparse_coo_tensor(edges.flip(0), weight, (n, n)).coalesce()
print(adjacency.shape, adjacency._nnz(), adjacency.is_coalesced())


class GraphConvolution(nn.Module):
    def __init__(self, fan_in, fan_out):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(fan_in, fan_out))
        self.bias = nn.Parameter(torch.zeros(fan_out))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x):
        return torch.sparse.mm(adjacency, x @ self.weight) + self.bias


class GraphAttention(nn.Module):
    def __init__(self, fan_in, fan_out):
        super().__init__()
        self.lin = nn.Linear(fan_in, fan_out, bias=False)
        self.source, self.target = (nn.Parameter(torch.randn(fan_out) * 0.1) for _ in range(2))

    def forward(self, x):
        h = self.lin(x)
        src, dst = edges
        score = F.leaky_relu((h @ self.source)[src] + (h @ self.target)[dst], 0.2)
        top = torch.full((n,), float("-inf")).scatter_reduce(0, dst, score, "amax")
        power = (score - top[dst]).exp()
        share = power / torch.zeros(n).index_add(0, dst, power)[dst]
        return torch.zeros_like(h).index_add(0, dst, share.unsqueeze(1) * h[src])


for layer in (GraphConvolution, GraphAttention):
    torch.manual_seed(1)
    first, second = layer(4, 8), layer(8, 2)
    optimizer = torch.optim.Adam(
        [*first.parameters(), *second.parameters()], lr=0.05, weight_decay=5e-4
    )
    for _ in range(15):
        optimizer.zero_grad()
        out = second(F.elu(first(x)))
        loss = F.nll_loss(F.log_softmax(out, 1)[::2], label[::2])
        loss.backward()
        optimizer.step()
    hits = (out.argmax(1) == label).float().mean()
    print(layer.__name__, round(loss.item(), 4), round(hits.item(), 4))
