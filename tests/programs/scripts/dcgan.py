"""Deep convolutional GAN: first weights by class name, transposed convolutions."""

import torch
from torch import nn, optim

nz, nf = 6, 4
generator = nn.Sequential(
    nn.ConvTranspose2d(nz, nf * 2, 4, 1, 0, bias=False), nn.BatchNorm2d(nf * 2), nn.ReLU(True),
    nn.ConvTranspose2d(nf * 2, nf, 4, 2, 1, bias=False), nn.BatchNorm2d(nf), nn.ReLU(True),
    nn.ConvTranspose2d(nf, 1, 4, 2, 1, bias=False), nn.Tanh(),
)  # fmt: skip
discriminator = nn.Sequential(
    nn.Conv2d(1, nf, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True),
    nn.Conv2d(nf, nf * 2, 4, 2, 1, bias=False), nn.BatchNorm2d(nf * 2),
    nn.LeakyReLU(0.2, inplace=True),
    nn.Conv2d(nf * 2, 1, 4, 1, 0, bias=False), nn.Sigmoid(), nn.Flatten(0),
)  # fmt: skip


def weights_init(m):
    name = m.__class__.__name__
    if name.find("Conv") != -1:
        torch.nn.init.normal_(m.weight, 0.0, 0.02)
    elif name.find("BatchNorm") != -1:
        torch.nn.init.normal_(m.weight, 1.0, 0.02)
        torch.nn.init.zeros_(m.bias)


torch.manual_seed(999)
generator.apply(weights_init)
discriminator.apply(weights_init)
criterion, fixed = nn.BCELoss(), torch.randn(4, nz, 1, 1)
optim_d = optim.Adam(discriminator.parameters(), lr=2e-3, betas=(0.5, 0.999))
optim_g = optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999))
for i in range(4):
    real = torch.tanh(torch.randn(8, 1, 1, 1) + torch.linspace(-1, 1, 16).view(1, 1, 1, 16)).expand(
        8, 1, 16, 16
    )
    discriminator.zero_grad()
    label = torch.full((8,), 1.0)
    err_real = criterion(discriminator(real), label)
    err_real.backward()
    fake = generator(torch.randn(8, nz, 1, 1))
    err_fake = criterion(discriminator(fake.detach()), label.fill_(0.0))
    err_fake.backward()
    optim_d.step()
    generator.zero_grad()
    output = discriminator(fake)
    err_g = criterion(output, label.fill_(1.0))
    err_g.backward()
    optim_g.step()
    err_d = err_real + err_fake
    print(f"[{i}] {err_d.item():.4f} {err_g.item():.4f} {output.mean().item():.4f}")
print(generator(fixed).detach().shape, generator[0].weight.std().item())
