"""The basics: datasets of one's own, and loaders that give batches of them."""

import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset, random_split


class Shapes(Dataset):
    """Small pictures of bars, lying or standing."""

    def __init__(self, count, transform=None, target_transform=None):
        self.count, self.transform, self.target_transform = count, transform, target_transform

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        picture = torch.zeros(1, 4, 4)
        label = i % 2
        if label:
            picture[0, i % 4] = 1
        else:
            picture[0, :, i % 4] = 1
        if self.transform:
            picture = self.transform(picture)
        if self.target_transform:
            label = self.target_transform(label)
        return picture, label


torch.manual_seed(0)
loader = DataLoader(Shapes(20), batch_size=8, shuffle=True)
for pictures, labels in loader:
    print(pictures.shape, labels, pictures.sum().item())
pictures, labels = next(iter(loader))
print(pictures[0].squeeze(), labels[0])
train, test = random_split(Shapes(10), [7, 3], generator=torch.Generator().manual_seed(1))
print(len(train), len(test), train.indices, test.indices)
pairs = TensorDataset(torch.arange(5), torch.arange(5.0) ** 2)
print([tuple(b) for b in DataLoader(pairs, batch_size=2, drop_last=True)])
