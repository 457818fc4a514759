"""An autoencoder that takes noise away, with convolutions and their transposes."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(1, 4, 3, stride=2, padding=1), nn.ReLU(),
    nn.Conv2d(4, 8, 3, stride=2, padding=1), nn.ReLU(),
    nn.ConvTranspose2d(8, 4, 2, stride=2), nn.ReLU(),
    nn.ConvTranspose2d(4, 1, 2, stride=2), nn.Sigmoid(),
)  # fmt: skip
clean = torch.zeros(8, 1, 8, 8)
clean[:, :, 2:6, 2:6] = 1
optimizer = torch.optim.RMSprop(model.parameters(), lr=0.01, momentum=0.5)
for _ in range(6):
    noisy = (clean + 0.3 * torch.randn_like(clean)).clamp(0, 1)
    loss = nn.functional.mse_loss(model(noisy), clean)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.6f}")
