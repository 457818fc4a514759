"""A residual network; batch norms folded into convolutions by a pass over its fx graph."""

import copy

import torch
import torch.fx as fx
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.fusion import fuse_conv_bn_eval
from torch.utils.data import DataLoader, TensorDataset


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, in_planes, planes, stride=1):
        super(BasicBlock, self).__init__()
        self.conv1 = nn.Conv2d(
            in_planes, planes, kernel_size=3, stride=stride, padding=1, bias=False
        )
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, kernel_size=3, stride=1, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.shortcut = nn.Sequential()
        if stride != 1 or in_planes != self.expansion * planes:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_planes, planes, kernel_size=1, stride=stride, bias=False),
                nn.BatchNorm2d(planes),
            )

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.shortcut(x)
        return F.relu(out)


class ResNet(nn.Module):
    def __init__(self, block, num_blocks, num_classes=10):
        super(ResNet, self).__init__()
        self.in_planes = 8
        self.conv1, self.bn1 = (
            nn.Conv2d(3, 8, 3, stride=1, padding=1, bias=False),
            nn.BatchNorm2d(8),
        )
        self.layer1 = self._make_layer(block, 8, num_blocks[0], stride=1)
        self.layer2 = self._make_layer(block, 16, num_blocks[1], stride=2)
        self.linear = nn.Linear(16, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")

    def _make_layer(self, block, planes, num_blocks, stride):
        layers = []
        for stride in [stride] + [1] * (num_blocks - 1):
            layers.append(block(self.in_planes, planes, stride))
            self.in_planes = planes * block.expansion
        return nn.Sequential(*layers)

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.layer2(self.layer1(out))
        out = F.avg_pool2d(out, 4)
        return self.linear(out.view(out.size(0), -1))


def fuse(model):
    model = copy.deepcopy(model)
    traced = fx.symbolic_trace(model)
    modules = dict(traced.named_modules())
    count = 0
    for node in traced.graph.nodes:
        if node.op != "call_module" or node.args[0].op != "call_module":
            continue
        if (
            type(modules[node.target]) is nn.BatchNorm2d
            and type(modules[node.args[0].target]) is nn.Conv2d
        ):
            if len(node.args[0].users) > 1:
                continue
            fused = fuse_conv_bn_eval(modules[node.args[0].target], modules[node.target])
            *parent, name = node.args[0].target.rsplit(".", 1)
            setattr(modules[parent[0]] if parent else traced, name, fused)
            node.replace_all_uses_with(node.args[0])
            traced.graph.erase_node(node)
            count += 1
    traced.graph.lint()
    traced.recompile()
    return traced, count


def train(epoch):
    net.train()
    train_loss = correct = total = 0
    for batch_idx, (inputs, targets) in enumerate(trainloader):
        optimizer.zero_grad()
        outputs = net(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
        train_loss += loss.item()
        _, predicted = outputs.max(1)
        total += targets.size(0)
        correct += predicted.eq(targets).sum().item()
    print(
        epoch,
        "Loss: %.3f | Acc: %.3f%% (%d/%d)"
        % (train_loss / (batch_idx + 1), 100.0 * correct / total, correct, total),
    )


torch.manual_seed(0)
images, labels = torch.randn(48, 3, 8, 8), torch.arange(48) % 4
images[torch.arange(48), labels % 3] += labels.view(-1, 1, 1).float()
trainloader = DataLoader(TensorDataset(images, labels), batch_size=16, shuffle=True, num_workers=0)
net = ResNet(BasicBlock, [1, 1], 4)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=3)
for epoch in range(3):
    train(epoch)
    scheduler.step()
net.eval()
fused, count = fuse(net)
with torch.no_grad():
    print(
        count,
        torch.allclose(net(images), fused(images), atol=1e-4),
        [n.op for n in fused.graph.nodes].count("call_module"),
    )
print(
    fused.code.strip().splitlines()[-1].strip(),
    sorted({str(n.target) for n in fused.graph.nodes if n.op == "call_module"})[:4],
)
