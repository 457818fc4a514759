"""A Wasserstein GAN with gradient penalty: the gradient's norm is differentiated."""

import argparse

import numpy as np
import torch
import torch.autograd as autograd
import torch.nn as nn
from torch.autograd import Variable
from torch.nn.utils import spectral_norm

parser = argparse.ArgumentParser()
parser.add_argument("--n_critic", type=int, default=3)
parser.add_argument("--latent_dim", type=int, default=6)
parser.add_argument("--b1", type=float, default=0.5)
opt = parser.parse_args([])
cuda = True if torch.cuda.is_available() else False
Tensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor
img_shape = (1, 6, 6)


class Generator(nn.Module):
    def __init__(self):
        super(Generator, self).__init__()

        def block(in_feat, out_feat, normalize=True):
            layers = [nn.Linear(in_feat, out_feat)]
            if normalize:
                layers.append(nn.BatchNorm1d(out_feat, 0.8))
            layers.append(nn.LeakyReLU(0.2, inplace=True))
            return layers

        self.model = nn.Sequential(
            *block(opt.latent_dim, 16, normalize=False),
            *block(16, 24),
            nn.Linear(24, int(np.prod(img_shape))),
            nn.Tanh(),
        )

    def forward(self, z):
        return self.model(z).view(z.shape[0], *img_shape)


class Discriminator(nn.Module):
    def __init__(self):
        super(Discriminator, self).__init__()
        self.model = nn.Sequential(
            spectral_norm(nn.Linear(int(np.prod(img_shape)), 24)),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Linear(24, 16),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Linear(16, 1),
        )

    def forward(self, img):
        return self.model(img.view(img.shape[0], -1))


def compute_gradient_penalty(D, real, fake):
    alpha = Tensor(np.random.random((real.size(0), 1, 1, 1)))
    interpolates = (alpha * real + ((1 - alpha) * fake)).requires_grad_(True)
    d_interpolates = D(interpolates)
    ones = Variable(Tensor(real.shape[0], 1).fill_(1.0), requires_grad=False)
    gradients = autograd.grad(
        outputs=d_interpolates,
        inputs=interpolates,
        grad_outputs=ones,
        create_graph=True,
        retain_graph=True,
        only_inputs=True,
    )[0]
    gradients = gradients.view(gradients.size(0), -1)
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean()


np.random.seed(0)
torch.manual_seed(0)
generator, discriminator = Generator(), Discriminator()
optimizer_G = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(opt.b1, 0.999))
optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=2e-3, betas=(opt.b1, 0.999))
for i in range(12):
    real = Variable(
        torch.sin(torch.arange(36.0)).view(1, *img_shape) + 0.1 * torch.randn(8, *img_shape)
    ).type(Tensor)
    optimizer_D.zero_grad()
    z = Variable(Tensor(np.random.normal(0, 1, (8, opt.latent_dim))))
    fake = generator(z)
    penalty = compute_gradient_penalty(discriminator, real.data, fake.data)
    d_loss = -torch.mean(discriminator(real)) + torch.mean(discriminator(fake)) + 10 * penalty
    d_loss.backward()
    optimizer_D.step()
    optimizer_G.zero_grad()
    if i % opt.n_critic == 0:
        g_loss = -torch.mean(discriminator(generator(z)))
        g_loss.backward()
        optimizer_G.step()
        print(
            "[Batch %d] [D loss: %.5f] [G loss: %.5f] [penalty %.5f]"
            % (i, d_loss.item(), g_loss.item(), penalty.item())
        )
print([name for name, _ in discriminator.named_buffers()], sorted(discriminator.state_dict())[:3])
