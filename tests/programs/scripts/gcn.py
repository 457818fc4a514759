"""Graph convolutional network on a small citation-like graph, with a sparse adjacency."""

import argparse
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.nn.modules.module import Module
from torch.nn.parameter import Parameter


class GraphConvolution(Module):
    def __init__(self, in_features, out_features, bias=True):
        super(GraphConvolution, self).__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(torch.FloatTensor(in_features, out_features))
        if bias:
            self.bias = Parameter(torch.FloatTensor(out_features))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        stdv = 1.0 / math.sqrt(self.weight.size(1))
        self.weight.data.uniform_(-stdv, stdv)
        if self.bias is not None:
            self.bias.data.uniform_(-stdv, stdv)

    def forward(self, input, adj):
        support = torch.mm(input, self.weight)
        output = torch.spmm(adj, support)
        return output + self.bias if self.bias is not None else output

    def __repr__(self):
        return f"{self.__class__.__name__} ({self.in_features} -> {self.out_features})"


class GCN(nn.Module):
    def __init__(self, nfeat, nhid, nclass, dropout):
        super(GCN, self).__init__()
        self.gc1 = GraphConvolution(nfeat, nhid)
        self.gc2 = GraphConvolution(nhid, nclass)
        self.dropout = dropout

    def forward(self, x, adj):
        x = F.relu(self.gc1(x, adj))
        x = F.dropout(x, self.dropout, training=self.training)
        return F.log_softmax(self.gc2(x, adj), dim=1)


def load(n=60, classes=3, seed=0):
    rng = np.random.RandomState(seed)
    labels = rng.randint(classes, size=n)
    same = labels[:, None] == labels[None]
    edges = rng.rand(n, n) < np.where(same, 0.15, 0.01)
    adj = np.maximum(edges, edges.T).astype(np.float32) + np.eye(n, dtype=np.float32)
    adj = adj / adj.sum(1, keepdims=True)
    rows, cols = adj.nonzero()
    indices = torch.from_numpy(np.vstack((rows, cols)).astype(np.int64))
    sparse = torch.sparse_coo_tensor(indices, torch.from_numpy(adj[rows, cols]), (n, n))
    features = torch.FloatTensor(
        (rng.rand(n, 20) < 0.1 + 0.2 * (labels[:, None] == np.arange(20) % 3)).astype(np.float32)
    )
    return (
        sparse,
        features,
        torch.LongTensor(labels),
        *map(torch.LongTensor, (range(20), range(20, 35), range(35, n))),
    )


def accuracy(output, labels):
    preds = output.max(1)[1].type_as(labels)
    return preds.eq(labels).double().sum() / len(labels)


parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=30)
parser.add_argument("--lr", type=float, default=0.05)
parser.add_argument("--weight_decay", type=float, default=5e-4)
parser.add_argument("--hidden", type=int, default=16)
parser.add_argument("--no-cuda", action="store_true", default=False)
args = parser.parse_args([])
args.cuda = not args.no_cuda and torch.cuda.is_available()
np.random.seed(42)
torch.manual_seed(42)
adj, features, labels, idx_train, idx_val, idx_test = load()
model = GCN(features.shape[1], args.hidden, labels.max().item() + 1, 0.5)
print(model, adj.shape, adj._nnz())
optimizer = optim.Adam(model.parameters(), lr=args.lr, weight_decay=args.weight_decay)
for epoch in range(args.epochs):
    model.train()
    optimizer.zero_grad()
    output = model(features, adj)
    loss = F.nll_loss(output[idx_train], labels[idx_train])
    loss.backward()
    optimizer.step()
    if epoch % 10 == 9:
        model.eval()
        output = model(features, adj)
        print(
            "Epoch: {:04d}".format(epoch + 1),
            "loss_train: {:.4f}".format(loss.item()),
            "acc_val: {:.4f}".format(accuracy(output[idx_val], labels[idx_val]).item()),
        )
model.eval()
output = model(features, adj)
print(
    "Test set results:",
    "loss= {:.4f}".format(F.nll_loss(output[idx_test], labels[idx_test]).item()),
    "accuracy= {:.4f}".format(accuracy(output[idx_test], labels[idx_test])),
)
