"""An image with the content of one picture and the style of another: Gram matrices, LBFGS."""

import torch
import torch.nn.functional as F
from torch import nn, optim


def gram_matrix(y):
    b, c, h, w = y.size()
    features = y.view(b, c, w * h)
    return features.bmm(features.transpose(1, 2)) / (c * h * w)


class ContentLoss(nn.Module):
    def __init__(self, target):
        super().__init__()
        self.target = target.detach()

    def forward(self, input):
        self.loss = F.mse_loss(input, self.target)
        return input


class StyleLoss(nn.Module):
    def __init__(self, target):
        super().__init__()
        self.target = gram_matrix(target).detach()

    def forward(self, input):
        self.loss = F.mse_loss(gram_matrix(input), self.target)
        return input


class Normalization(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean).view(-1, 1, 1))
        self.register_buffer("std", torch.tensor(std).view(-1, 1, 1))

    def forward(self, image):
        return (image - self.mean) / self.std


torch.manual_seed(2)
content, style = torch.rand(1, 3, 12, 12), torch.rand(1, 3, 12, 12).sort(-1)[0]
cnn = nn.Sequential(
    nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 8, 3, padding=1)
).eval()
model, losses = nn.Sequential(Normalization([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])), []
for i, layer in enumerate(cnn.children()):
    model.add_module(f"layer_{i}", nn.ReLU(inplace=False) if isinstance(layer, nn.ReLU) else layer)
    if isinstance(layer, nn.Conv2d):
        model.add_module(f"style_{i}", StyleLoss(model(style)))
        losses.append((1e3, model[-1]))
        if i:
            model.add_module(f"content_{i}", ContentLoss(model(content)))
            losses.append((1.0, model[-1]))
print([name for name, _ in model.named_children()])
image = content.clone().requires_grad_(True)
model.requires_grad_(False)
optimizer = optim.LBFGS([image], max_iter=5)


def closure():
    with torch.no_grad():
        image.clamp_(0, 1)
    optimizer.zero_grad()
    model(image)
    loss = sum(weight * part.loss for weight, part in losses)
    loss.backward()
    return loss


for step in range(3):
    print(step, round(optimizer.step(closure).item(), 4))
image.data.clamp_(0, 1)
print(round(image.mean().item(), 4), round(image.std().item(), 4))
