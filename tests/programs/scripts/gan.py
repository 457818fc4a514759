"""Two networks against each other: one makes points, the other tells them from real ones."""

import torch
from torch import nn

torch.manual_seed(0)
maker = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2), nn.Linear(16, 2), nn.Tanh())
critic = nn.Sequential(
    nn.Linear(2, 16), nn.LeakyReLU(0.2, inplace=True), nn.Linear(16, 1), nn.Sigmoid()
)
for net in (maker, critic):
    for m in net:
        if isinstance(m, nn.Linear):
            nn.init.normal_(m.weight, 0.0, 0.2)
criterion = nn.BCELoss()
opt_c = torch.optim.Adam(critic.parameters(), lr=0.02, betas=(0.5, 0.999))
opt_m = torch.optim.Adam(maker.parameters(), lr=0.02, betas=(0.5, 0.999))
for _ in range(6):
    real = torch.randn(16, 2) * 0.1 + 0.5
    critic.zero_grad()
    label = torch.full((16,), 1.0)
    loss_real = criterion(critic(real).view(-1), label)
    loss_real.backward()
    fake = maker(torch.randn(16, 4))
    label.fill_(0.0)
    loss_fake = criterion(critic(fake.detach()).view(-1), label)
    loss_fake.backward()
    opt_c.step()
    maker.zero_grad()
    label.fill_(1.0)
    loss_m = criterion(critic(fake).view(-1), label)
    loss_m.backward()
    opt_m.step()
    print(f"{(loss_real + loss_fake).item():.6f} {loss_m.item():.6f}")
