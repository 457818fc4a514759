"""PixelCNN: masked convolutions as a subclass of Conv2d, sampling pixel by pixel."""

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils import data


class MaskedConv2d(nn.Conv2d):
    def __init__(self, mask_type, *args, **kwargs):
        super(MaskedConv2d, self).__init__(*args, **kwargs)
        assert mask_type in {"A", "B"}
        self.register_buffer("mask", self.weight.data.clone())
        _, _, kH, kW = self.weight.size()
        self.mask.fill_(1)
        self.mask[:, :, kH // 2, kW // 2 + (mask_type == "B") :] = 0
        self.mask[:, :, kH // 2 + 1 :] = 0

    def forward(self, x):
        self.weight.data *= self.mask
        return super(MaskedConv2d, self).forward(x)


fm, levels, size = 8, 4, 6
net = nn.Sequential()
torch.manual_seed(0)
for i in range(3):
    net.append(
        MaskedConv2d(
            "A" if i == 0 else "B",
            1 if i == 0 else fm,
            fm,
            5 if i == 0 else 3,
            1,
            2 if i == 0 else 1,
            bias=False,
        )
    )
    net.append(nn.BatchNorm2d(fm))
    net.append(nn.ReLU(True))
net.append(nn.Conv2d(fm, levels, 1))
grid = torch.arange(size)
images = ((grid[:, None] + grid[None] + torch.randint(0, levels, (32, 1, 1))) % levels).unsqueeze(
    1
).float() / (levels - 1)
loader = data.DataLoader(images, batch_size=8, shuffle=True, num_workers=0, pin_memory=False)
optimizer = optim.Adamax(net.parameters(), lr=2e-2)
for epoch in range(3):
    errors = []
    net.train(True)
    for input in loader:
        target = (input[:, 0] * (levels - 1)).round().long()
        loss = F.cross_entropy(net(input), target)
        errors.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("epoch={}; nll_tr={:.5f}".format(epoch, sum(errors) / len(errors)))
sample = torch.zeros(4, 1, size, size)
net.train(False)
with torch.no_grad():
    for i in range(size):
        for j in range(size):
            probs = F.softmax(net(sample)[:, :, i, j], dim=1)
            sample[:, :, i, j] = torch.multinomial(probs, 1).float() / (levels - 1)
print((sample[0, 0] * (levels - 1)).round().int().tolist()[:3])
print(
    net[0],
    net[0].mask.sum().item(),
    sum(m.weight.abs().sum() for m in net if isinstance(m, nn.Conv2d)),
)
