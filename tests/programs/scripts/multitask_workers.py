"""Two heads, a DataLoader with worker processes, an iterable dataset, loss weights."""

import itertools
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info


class Waves(Dataset):
    def __len__(self):
        return 48

    def __getitem__(self, index):
        g = torch.Generator().manual_seed(index)
        phase = torch.rand(1, generator=g).item() * math.tau
        x = torch.sin(torch.linspace(0, 6, 16) + phase) + 0.1 * torch.randn(16, generator=g)
        return {
            "x": x,
            "phase": torch.tensor([math.sin(phase), math.cos(phase)]),
            "sign": int(phase > math.pi),
            "name": f"wave{index}",
        }


class Stream(IterableDataset):
    def __init__(self, stop):
        self.stop = stop

    def __iter__(self):
        info = get_worker_info()
        start, step = (0, 1) if info is None else (info.id, info.num_workers)
        return itertools.islice(iter(torch.arange(self.stop).float()), start, None, step)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Unflatten(1, (1, 16)),
            nn.Conv1d(1, 6, 5, padding=2),
            nn.ELU(),
            nn.AvgPool1d(2),
            nn.Flatten(),
            nn.Linear(48, 16),
            nn.ELU(),
        )
        self.phase, self.sign = nn.Linear(16, 2), nn.Linear(16, 1)
        self.log_vars = nn.Parameter(torch.zeros(2))

    def forward(self, x):
        h = self.body(x)
        return self.phase(h), self.sign(h).squeeze(1)

    def loss(self, batch):
        phase, sign = self(batch["x"])
        parts = torch.stack(
            [
                nn.functional.mse_loss(phase, batch["phase"]),
                nn.functional.binary_cross_entropy_with_logits(sign, batch["sign"].float()),
            ]
        )
        return (torch.exp(-self.log_vars) * parts + self.log_vars).sum(), parts


def main():
    torch.manual_seed(0)
    loader = DataLoader(
        Waves(), batch_size=12, shuffle=True, num_workers=2, persistent_workers=True
    )
    net = Net()
    optimizer = torch.optim.Adagrad(net.parameters(), lr=5e-2)
    scheduler = torch.optim.lr_scheduler.CyclicLR(
        optimizer, 1e-2, 6e-2, step_size_up=3, cycle_momentum=False
    )
    for epoch in range(2):
        for batch in loader:
            optimizer.zero_grad()
            loss, parts = net.loss(batch)
            loss.backward()
            optimizer.step()
            scheduler.step()
        print(
            epoch,
            f"{loss.item():.5f}",
            [round(v, 5) for v in parts.tolist()],
            batch["name"][:2],
            batch["sign"].dtype,
        )
    print(
        net.log_vars.detach(),
        sorted(
            v
            for chunk in DataLoader(Stream(7), batch_size=2, num_workers=2)
            for v in chunk.tolist()
        ),
    )


if __name__ == "__main__":
    main()
