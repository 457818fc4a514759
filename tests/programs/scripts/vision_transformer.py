"""A small vision transformer: patches by einops-like reshaping, a class token, label smoothing."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = nn.MultiheadAttention(dim, heads, dropout=0.1, batch_first=True)
        self.mlp = nn.Sequential(
            nn.Linear(dim, 2 * dim), nn.GELU(), nn.Dropout(0.1), nn.Linear(2 * dim, dim)
        )

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    def __init__(self, size=8, patch=4, dim=16, depth=2, heads=2, classes=3):
        super().__init__()
        self.patch = patch
        self.embed = nn.Linear(patch * patch, dim)
        self.token = nn.Parameter(torch.zeros(1, 1, dim))
        self.place = nn.Parameter(
            nn.init.trunc_normal_(torch.empty(1, (size // patch) ** 2 + 1, dim), std=0.02)
        )
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(depth))
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, classes))

    def forward(self, x):
        p = self.patch
        x = x.unfold(2, p, p).unfold(3, p, p).flatten(4).flatten(1, 3)
        x = torch.cat([self.token.expand(len(x), -1, -1), self.embed(x)], 1) + self.place
        for block in self.blocks:
            x = block(x)
        return self.head(x[:, 0])


torch.manual_seed(7)
images, labels = torch.randn(12, 1, 8, 8), torch.arange(12) % 3
model = ViT()
decay = [p for p in model.parameters() if p.ndim > 1]
rest = [p for p in model.parameters() if p.ndim <= 1]
optimizer = torch.optim.AdamW([{"params": decay}, {"params": rest, "weight_decay": 0.0}], lr=3e-3)
warm = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=3)
cool = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=7)
scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, [warm, cool], milestones=[3])
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
for step in range(10):
    optimizer.zero_grad(set_to_none=True)
    loss = criterion(model(images), labels)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    print(step, round(loss.item(), 4), round(norm.item(), 3), f"{scheduler.get_last_lr()[0]:.2e}")
print(
    sum(p.numel() for p in model.parameters()),
    (model.eval()(images).argmax(1) == labels).sum().item(),
)
