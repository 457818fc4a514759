"""Training runs of fifty steps: one seed, and the losses of each step.

First values, shuffles, dropout masks and noise are all drawn from the one stream of random numbers,
so that a run is PyTorch's only if each of them is drawn as PyTorch draws it, in the same order.
"""

from __future__ import annotations

import math
from typing import Any

from tests.harness import PlainCases

STEPS = 50
curves = PlainCases()


def train(torch: Any, model: Any, optimiser: Any, loss_of: Any) -> list[float]:
    losses = []
    for step in range(STEPS):
        optimiser.zero_grad()
        loss = loss_of(step)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


@curves
def mlp(torch: Any) -> list[float]:
    torch.manual_seed(1)
    nn = torch.nn
    x = torch.randn(64, 10)
    y = torch.randint(0, 4, (64,))
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 4))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    return train(torch, model, optimiser, lambda step: nn.functional.cross_entropy(model(x), y))


@curves
def lenet(torch: Any) -> list[float]:
    torch.manual_seed(2)
    nn = torch.nn
    x = torch.randn(16, 1, 20, 20)
    y = torch.randint(0, 10, (16,))
    model = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
        nn.BatchNorm2d(16), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * 9, 32), nn.ReLU(),
        nn.Linear(32, 10),
    )  # fmt: skip
    optimiser = torch.optim.SGD(model.parameters(), lr=0.002, momentum=0.9, weight_decay=1e-3)
    return train(torch, model, optimiser, lambda step: nn.functional.cross_entropy(model(x), y))


@curves
def lstm_language_model(torch: Any) -> list[float]:
    torch.manual_seed(3)
    nn = torch.nn
    text = torch.randint(0, 20, (4, 13))

    class Model(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(20, 16)
            self.lstm = nn.LSTM(16, 24, num_layers=2, dropout=0.2, batch_first=True)
            self.out = nn.Linear(24, 20)

        def forward(self, x: Any) -> Any:
            return self.out(self.lstm(self.embed(x))[0])

    model = Model()
    optimiser = torch.optim.RMSprop(model.parameters(), lr=0.005)

    def loss_of(step: int) -> Any:
        said = model(text[:, :-1])
        loss = nn.functional.cross_entropy(said.reshape(-1, 20), text[:, 1:].reshape(-1))
        return loss

    return train(torch, model, optimiser, loss_of)


@curves
def transformer(torch: Any) -> list[float]:
    torch.manual_seed(4)
    nn = torch.nn
    text = torch.randint(0, 16, (4, 9))

    class Model(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(16, 32)
            self.place = nn.Parameter(torch.randn(8, 32) * 0.02)
            layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True)
            self.layers = nn.TransformerEncoder(layer, 2)
            self.out = nn.Linear(32, 16)

        def forward(self, x: Any) -> Any:
            mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
            y = self.embed(x) * math.sqrt(32) + self.place
            return self.out(self.layers(y, mask=mask, is_causal=True))

    model = Model()
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.003)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, STEPS)

    def loss_of(step: int) -> Any:
        if step:
            schedule.step()
        said = model(text[:, :-1])
        return nn.functional.cross_entropy(said.reshape(-1, 16), text[:, 1:].reshape(-1))

    return train(torch, model, optimiser, loss_of)


@curves
def vae(torch: Any) -> list[float]:
    torch.manual_seed(5)
    nn = torch.nn
    x = torch.rand(32, 12)

    class Model(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.encode = nn.Sequential(nn.Linear(12, 24), nn.GELU())
            self.mean, self.log_var = nn.Linear(24, 4), nn.Linear(24, 4)
            self.decode = nn.Sequential(nn.Linear(4, 24), nn.SiLU(), nn.Linear(24, 12))

        def forward(self, x: Any) -> Any:
            h = self.encode(x)
            mean, log_var = self.mean(h), self.log_var(h)
            z = mean + torch.randn_like(mean) * (0.5 * log_var).exp()
            return torch.sigmoid(self.decode(z)), mean, log_var

    model = Model()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)

    def loss_of(step: int) -> Any:
        again, mean, log_var = model(x)
        seen = nn.functional.binary_cross_entropy(again, x, reduction="sum")
        return (seen - 0.5 * (1 + log_var - mean.pow(2) - log_var.exp()).sum()) / len(x)

    return train(torch, model, optimiser, loss_of)


@curves
def shuffled_batches(torch: Any) -> list[float]:
    from importlib import import_module

    data = import_module(f"{torch.__name__}.utils.data")
    torch.manual_seed(6)
    nn = torch.nn
    x = torch.randn(40, 6)
    rows = data.TensorDataset(x, (x**2).sum(1, keepdim=True))
    train_rows, _ = data.random_split(rows, [32, 8])
    loader = data.DataLoader(train_rows, batch_size=8, shuffle=True, drop_last=True)
    model = nn.Sequential(nn.Linear(6, 16), nn.LayerNorm(16), nn.ELU(), nn.Linear(16, 1))
    optimiser = torch.optim.NAdam(model.parameters(), lr=0.01)
    epochs = (batch for _ in iter(int, 1) for batch in loader)

    def loss_of(step: int) -> Any:
        a, b = next(epochs)
        return nn.functional.smooth_l1_loss(model(a), b)

    return train(torch, model, optimiser, loss_of)


def results(torch: Any) -> dict[str, Any]:
    return curves.results(torch)
