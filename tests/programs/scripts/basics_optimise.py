"""The basics: a loop that trains, and one that tests."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(96, 6)
y = (x @ torch.randn(6, 3)).argmax(1)
train = DataLoader(TensorDataset(x[:64], y[:64]), batch_size=16, shuffle=True)
test = DataLoader(TensorDataset(x[64:], y[64:]), batch_size=16)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)


def train_loop():
    model.train()
    for batch, (xs, ys) in enumerate(train):
        loss = loss_fn(model(xs), ys)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if batch % 2 == 0:
            print(f"loss: {loss.item():>7f}  [{batch * 16 + len(xs):>5d}/{len(train.dataset):>5d}]")


def test_loop():
    model.eval()
    loss, correct = 0.0, 0.0
    with torch.no_grad():
        for xs, ys in test:
            out = model(xs)
            loss += loss_fn(out, ys).item()
            correct += (out.argmax(1) == ys).type(torch.float).sum().item()
    print(f"accuracy {100 * correct / len(test.dataset):>0.1f}%, loss {loss / len(test):>8f}")


for epoch in range(4):
    print("epoch", epoch + 1)
    train_loop()
    test_loop()
