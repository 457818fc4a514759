"""Q-learning with a replay memory and a target network, on a walk along a line."""

import random
from collections import deque, namedtuple

import torch
from torch import nn

Step = namedtuple("Step", ("state", "action", "next_state", "reward"))
torch.manual_seed(0)
random.seed(0)
memory = deque(maxlen=200)
policy = nn.Sequential(nn.Linear(1, 16), nn.ReLU(), nn.Linear(16, 2))
target = nn.Sequential(nn.Linear(1, 16), nn.ReLU(), nn.Linear(16, 2))
target.load_state_dict(policy.state_dict())
optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-2, amsgrad=True)


def learn():
    batch = Step(*zip(*random.sample(memory, 16)))
    going = torch.tensor([s is not None for s in batch.next_state], dtype=torch.bool)
    values = policy(torch.cat(batch.state)).gather(1, torch.cat(batch.action))
    ahead = torch.zeros(16)
    with torch.no_grad():
        ahead[going] = (
            target(torch.cat([s for s in batch.next_state if s is not None])).max(1).values
        )
    loss = nn.SmoothL1Loss()(values, (ahead * 0.9 + torch.cat(batch.reward)).unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(policy.parameters(), 100)
    optimizer.step()
    return loss.item()


place = 0
for t in range(60):
    state = torch.tensor([[place / 5]])
    action = (
        policy(state).max(1).indices.view(1, 1)
        if random.random() > 0.5
        else torch.tensor([[random.randrange(2)]])
    )
    place = max(0, place + (1 if action.item() else -1))
    done = place == 5
    after = None if done else torch.tensor([[place / 5]])
    memory.append(Step(state, action, after, torch.tensor([1.0 if done else -0.1])))
    place = 0 if done else place
    if len(memory) >= 16:
        loss = learn()
        theirs = target.state_dict()
        for key, value in policy.state_dict().items():
            theirs[key] = value * 0.1 + theirs[key] * 0.9
        target.load_state_dict(theirs)
        if t % 10 == 0:
            print(f"{t} {loss:.6f}")
