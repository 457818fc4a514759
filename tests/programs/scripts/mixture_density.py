"""A mixture density network: a mixture of normals as output, and in the loss."""

import torch
import torch.nn as nn
import torch.optim as optim
from torch.distributions import Categorical, Independent, MixtureSameFamily, Normal


class MDN(nn.Module):
    def __init__(self, hidden, mixtures):
        super().__init__()
        self.z_h = nn.Sequential(nn.Linear(1, hidden), nn.Tanh())
        self.z_pi, self.z_mu, self.z_sigma = (nn.Linear(hidden, mixtures) for _ in range(3))

    def forward(self, x):
        h = self.z_h(x)
        return Categorical(logits=self.z_pi(h)), Normal(self.z_mu(h), torch.exp(self.z_sigma(h)))

    def mixture(self, x):
        return MixtureSameFamily(*self(x))


def by_hand(pi, normal, y):
    return -torch.logsumexp(
        normal.log_prob(y.expand_as(normal.loc)) + torch.log_softmax(pi.logits, -1), dim=-1
    ).mean()


torch.manual_seed(4)
n = 150
t = torch.linspace(-1, 1, n).view(-1, 1)
x = t + 0.3 * torch.sin(2 * torch.pi * t) + torch.empty(n, 1).uniform_(-0.05, 0.05)
model = MDN(16, 4)
optimizer = optim.Adam(model.parameters(), lr=2e-2)
for epoch in range(60):
    mixture = model.mixture(x)
    loss = -mixture.log_prob(t.squeeze(1)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 20 == 19:
        print(epoch, f"{loss.item():.5f} {by_hand(*model(x), t).item():.5f}")
with torch.no_grad():
    mixture = model.mixture(torch.tensor([[0.0], [0.5]]))
    print(mixture.mean, mixture.variance, mixture.sample((3,)).shape)
    print(mixture.component_distribution, mixture.mixture_distribution.entropy())
    print(Independent(Normal(torch.zeros(2), torch.ones(2)), 1).log_prob(torch.ones(2)))
