"""A Bayesian network: weights drawn from learned normals, KL to a prior."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical, MixtureSameFamily, Normal, kl_divergence


class BayesianLinear(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight_mu = nn.Parameter(torch.Tensor(out_features, in_features).uniform_(-0.2, 0.2))
        self.weight_rho = nn.Parameter(torch.Tensor(out_features, in_features).uniform_(-5, -4))
        self.bias_mu = nn.Parameter(torch.Tensor(out_features).uniform_(-0.2, 0.2))
        self.bias_rho = nn.Parameter(torch.Tensor(out_features).uniform_(-5, -4))
        self.prior = MixtureSameFamily(
            Categorical(torch.tensor([0.5, 0.5])), Normal(torch.zeros(2), torch.tensor([1.0, 0.1]))
        )

    def forward(self, input, sample=True):
        weight, bias = (
            Normal(self.weight_mu, F.softplus(self.weight_rho)),
            Normal(self.bias_mu, F.softplus(self.bias_rho)),
        )
        if not (self.training or sample):
            return F.linear(input, self.weight_mu, self.bias_mu)
        w, b = weight.rsample(), bias.rsample()
        self.log_prior = self.prior.log_prob(w).sum() + self.prior.log_prob(b).sum()
        self.log_posterior = weight.log_prob(w).sum() + bias.log_prob(b).sum()
        self.kl = kl_divergence(weight, Normal(0.0, 1.0)).sum()
        return F.linear(input, w, b)


class Net(nn.Sequential):
    def elbo(self, x, y, batches, samples=2):
        outs, priors, posteriors = [], [], []
        for _ in range(samples):
            outs.append(self(x))
            priors.append(sum(m.log_prior for m in self if isinstance(m, BayesianLinear)))
            posteriors.append(sum(m.log_posterior for m in self if isinstance(m, BayesianLinear)))
        nll = F.gaussian_nll_loss(
            torch.stack(outs).mean(0), y, torch.full_like(y, 0.1), reduction="sum"
        )
        return (torch.stack(posteriors).mean() - torch.stack(priors).mean()) / batches + nll


torch.manual_seed(0)
net = Net(BayesianLinear(1, 16), nn.ReLU(), BayesianLinear(16, 1))
x = torch.linspace(-1, 1, 40).unsqueeze(-1)
y = x.pow(3) + 0.05 * torch.randn_like(x)
optimizer = torch.optim.RAdam(net.parameters(), lr=1e-2)
for step in range(40):
    net.zero_grad()
    loss = net.elbo(x, y, batches=4)
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        print(f"{loss.item():.4f} {sum(m.kl.item() for m in net if hasattr(m, 'kl')):.4f}")
with torch.no_grad():
    predictions = torch.stack([net(torch.tensor([[0.0], [2.0]])) for _ in range(10)])
print(predictions.mean(0).squeeze(), predictions.std(0).squeeze())
net.eval()
print(net[0](x[:2], sample=False)[:, :3])
