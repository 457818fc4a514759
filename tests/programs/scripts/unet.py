"""A U-Net: down by pooling, up by transposed convolution, with connections across."""

import torch
from torch import nn


def twice(a, b):
    return nn.Sequential(
        nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(2, b), nn.ReLU(),
        nn.Conv2d(b, b, 3, padding=1), nn.GroupNorm(2, b), nn.ReLU(),
    )  # fmt: skip


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2, self.bottom = twice(1, 4), twice(4, 8), twice(8, 8)
        self.pool = nn.MaxPool2d(2)
        self.up2, self.conv2 = nn.ConvTranspose2d(8, 8, 2, 2), twice(16, 4)
        self.up1, self.conv1 = nn.Upsample(scale_factor=2, mode="bilinear"), twice(8, 4)
        self.out = nn.Conv2d(4, 1, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(self.pool(a))
        c = self.bottom(self.pool(b))
        d = self.conv2(torch.cat([self.up2(c), b], 1))
        return self.out(self.conv1(torch.cat([self.up1(d), a], 1)))


torch.manual_seed(0)
model = UNet()
x = torch.randn(2, 1, 8, 8)
y = (x > 0.3).float()
optimizer = torch.optim.NAdam(model.parameters(), lr=0.01)
for _ in range(4):
    out = model(x)
    dice = 1 - 2 * (out.sigmoid() * y).sum() / (out.sigmoid().sum() + y.sum())
    loss = nn.functional.binary_cross_entropy_with_logits(out, y) + dice
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.5f}")
