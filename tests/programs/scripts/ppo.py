"""Proximal policy optimisation on a toy corridor: advantages, clipped ratios, entropy."""

import random

import numpy as np
import torch
import torch.nn as nn
from torch.distributions.categorical import Categorical


class Corridor:
    def __init__(self, n=6):
        self.n = n

    def reset(self):
        self.at, self.t = self.n // 2, 0
        return self.obs()

    def obs(self):
        return np.array([self.at / self.n, self.t / 20, 1.0], dtype=np.float32)

    def step(self, action):
        self.at = int(np.clip(self.at + (1 if action == 1 else -1), 0, self.n))
        self.t += 1
        done = self.at in (0, self.n) or self.t >= 20
        return self.obs(), float(self.at == self.n) - 0.05, done


def layer_init(layer, std=np.sqrt(2), bias_const=0.0):
    torch.nn.init.orthogonal_(layer.weight, std)
    torch.nn.init.constant_(layer.bias, bias_const)
    return layer


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = nn.Sequential(
            layer_init(nn.Linear(3, 16)), nn.Tanh(), layer_init(nn.Linear(16, 1), std=1.0)
        )
        self.actor = nn.Sequential(
            layer_init(nn.Linear(3, 16)), nn.Tanh(), layer_init(nn.Linear(16, 2), std=0.01)
        )

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action=None):
        probs = Categorical(logits=self.actor(x))
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)


random.seed(1)
np.random.seed(1)
torch.manual_seed(1)
torch.backends.cudnn.deterministic = True
env, agent = Corridor(), Agent()
optimizer = torch.optim.Adam(agent.parameters(), lr=2.5e-3, eps=1e-5)
num_steps, gamma, lam = 48, 0.99, 0.95
obs, actions = torch.zeros((num_steps, 3)), torch.zeros(num_steps, dtype=torch.long)
logprobs, rewards, dones, values = (torch.zeros(num_steps) for _ in range(4))
next_obs, next_done = torch.Tensor(env.reset()), torch.zeros(())
for update in range(1, 5):
    optimizer.param_groups[0]["lr"] = (1.0 - (update - 1.0) / 4) * 2.5e-3
    for step in range(num_steps):
        obs[step], dones[step] = next_obs, next_done
        with torch.no_grad():
            action, logprob, _, value = agent.get_action_and_value(next_obs)
            values[step] = value.flatten()
        actions[step], logprobs[step] = action, logprob
        state, reward, done = env.step(action.cpu().numpy())
        rewards[step] = torch.tensor(reward).view(-1)
        next_obs, next_done = (
            torch.Tensor(env.reset() if done else state),
            torch.tensor(float(done)),
        )
    with torch.no_grad():
        next_value = agent.get_value(next_obs).reshape(1, -1)
        advantages, last = torch.zeros_like(rewards), 0
        for t in reversed(range(num_steps)):
            alive = 1.0 - (next_done if t == num_steps - 1 else dones[t + 1])
            after = next_value if t == num_steps - 1 else values[t + 1]
            delta = rewards[t] + gamma * after * alive - values[t]
            advantages[t] = last = delta + gamma * lam * alive * last
        returns = advantages + values
    inds, clipfracs = np.arange(num_steps), []
    for epoch in range(2):
        np.random.shuffle(inds)
        for start in range(0, num_steps, 16):
            mb = inds[start : start + 16]
            _, newlogprob, entropy, newvalue = agent.get_action_and_value(
                obs[mb], actions.long()[mb]
            )
            ratio = (newlogprob - logprobs[mb]).exp()
            with torch.no_grad():
                approx_kl = ((ratio - 1) - ratio.log()).mean()
                clipfracs += [((ratio - 1.0).abs() > 0.2).float().mean().item()]
            adv = advantages[mb]
            adv = (adv - adv.mean()) / (adv.std() + 1e-8)
            pg_loss = torch.max(-adv * ratio, -adv * torch.clamp(ratio, 0.8, 1.2)).mean()
            newvalue = newvalue.view(-1)
            clipped = values[mb] + torch.clamp(newvalue - values[mb], -0.2, 0.2)
            v_loss = (
                0.5 * torch.max((newvalue - returns[mb]) ** 2, (clipped - returns[mb]) ** 2).mean()
            )
            loss = pg_loss - 0.01 * entropy.mean() + v_loss * 0.5
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
    y_pred, y_true = values.cpu().numpy(), returns.cpu().numpy()
    variance = 1 - np.var(y_true - y_pred) / np.var(y_true)
    print(update, f"pg {pg_loss.item():.5f} v {v_loss.item():.5f} kl {approx_kl.item():.6f}")
    print(f"  clip {np.mean(clipfracs):.4f} var {variance:.4f} reward {rewards.sum():.3f}")
