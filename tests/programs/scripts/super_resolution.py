"""Upscaling by sub-pixel convolution, with orthogonal first weights and PSNR."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.nn.init as init
from torch.utils.data import DataLoader, Dataset


class Patches(Dataset):
    def __init__(self, count, factor):
        torch.manual_seed(5)
        self.images = F.avg_pool2d(torch.rand(count, 1, 18, 18), 3, 1)
        self.factor = factor

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        image = self.images[i]
        small = F.interpolate(
            image[None], scale_factor=1 / self.factor, mode="bicubic", align_corners=False
        )
        return small[0], image


class Net(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.relu = nn.ReLU()
        self.conv1 = nn.Conv2d(1, 8, 5, 1, 2)
        self.conv2 = nn.Conv2d(8, factor**2, 3, 1, 1)
        self.shuffle = nn.PixelShuffle(factor)
        init.orthogonal_(self.conv1.weight, init.calculate_gain("relu"))
        init.orthogonal_(self.conv2.weight)

    def forward(self, x):
        return self.shuffle(self.conv2(self.relu(self.conv1(x))))


torch.manual_seed(123)
model = Net(2)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
loader = DataLoader(Patches(12, 2), batch_size=4, shuffle=True)
for epoch in range(4):
    total = 0.0
    for small, image in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(small), image)
        loss.backward()
        optimizer.step()
        total += loss.item()
    psnr = 10 * torch.log10(1 / torch.tensor(total / len(loader)))
    print(epoch, round(total / len(loader), 5), round(psnr.item(), 3))
