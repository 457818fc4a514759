"""REINFORCE on a bandit, with its log-probabilities written out."""

import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 3))
optimizer = torch.optim.Adam(policy.parameters(), lr=0.05)
pays = torch.tensor([[0.1, 0.5, 0.9], [0.8, 0.4, 0.2]])
for _ in range(6):
    kind = torch.randint(0, 2, (32,))
    logits = policy(nn.functional.one_hot(kind, 2).float())
    actions = torch.multinomial(logits.softmax(-1), 1)
    reward = pays[kind].gather(1, actions).squeeze(1)
    advantage = reward - reward.mean()
    log_p = logits.log_softmax(-1).gather(1, actions).squeeze(1)
    entropy = -(logits.softmax(-1) * logits.log_softmax(-1)).sum(-1).mean()
    loss = -(log_p * advantage).mean() - 0.01 * entropy
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{reward.mean().item():.5f} {loss.item():.6f} {entropy.item():.6f}")
