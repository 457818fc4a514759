"""An actor and a critic with one body, on a walk along a line."""

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.distributions import Categorical


class Walk:
    def reset(self):
        self.place, self.left = 2, 12
        return self.seen()

    def seen(self):
        return F.one_hot(torch.tensor(self.place), 5).float()

    def step(self, action):
        self.place = max(0, min(4, self.place + (1 if action == 1 else -1)))
        self.left -= 1
        return self.seen(), 1.0 if self.place == 4 else -0.1, self.place == 4 or self.left == 0


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(5, 16)
        self.action, self.value = nn.Linear(16, 2), nn.Linear(16, 1)

    def forward(self, x):
        h = F.relu(self.body(x))
        return F.softmax(self.action(h), dim=-1), self.value(h).squeeze(-1)


torch.manual_seed(3)
model, env = Policy(), Walk()
optimizer = optim.Adam(model.parameters(), lr=0.03)
for episode in range(12):
    state, done, kept, rewards = env.reset(), False, [], []
    while not done:
        probabilities, value = model(state)
        chosen = Categorical(probabilities)
        action = chosen.sample()
        kept.append((chosen.log_prob(action), value, chosen.entropy()))
        state, reward, done = env.step(action.item())
        rewards.insert(0, reward + 0.9 * (rewards[0] if rewards else 0.0))
    returns = torch.tensor(rewards)
    policy_loss = sum(-lp * (r - v.item()) for (lp, v, _), r in zip(kept, returns))
    value_loss = sum(F.smooth_l1_loss(v, r) for (_, v, _), r in zip(kept, returns))
    loss = policy_loss + value_loss - 0.01 * sum(e for *_, e in kept)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(episode, len(kept), round(loss.item(), 4))
