"""A small GPT: causal attention, layer norms, and text drawn from it."""

import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.proj = (
            heads,
            nn.Linear(width, 3 * width),
            nn.Linear(width, width),
        )

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (z.view(b, t, self.heads, -1).transpose(1, 2) for z in self.qkv(x).split(c, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = Attention(width, 2)
        self.mlp = nn.Sequential(nn.Linear(width, 32), nn.GELU(), nn.Linear(32, width))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


torch.manual_seed(0)
data = torch.arange(300) ** 2 % 11
model = nn.Sequential(
    nn.Embedding(11, 16), Block(16), Block(16), nn.LayerNorm(16), nn.Linear(16, 11)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for _ in range(6):
    ix = torch.randint(len(data) - 8, (4,))
    x = torch.stack([data[i : i + 8] for i in ix])
    y = torch.stack([data[i + 1 : i + 9] for i in ix])
    loss = F.cross_entropy(model(x).view(-1, 11), y.view(-1))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.6f}")
out = data[:4].unsqueeze(0)
with torch.no_grad():
    for _ in range(8):
        probs = F.softmax(model(out[:, -8:])[:, -1], dim=-1)
        out = torch.cat((out, torch.multinomial(probs, num_samples=1)), dim=1)
print(out.tolist())
