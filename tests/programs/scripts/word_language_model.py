"""A word model, recurrent or a transformer: batchify, repackaged states, clipping, perplexity."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class RNNModel(nn.Module):
    def __init__(self, kind, ntoken, ninp, nhid, nlayers, tie_weights=False):
        super().__init__()
        self.drop, self.encoder = nn.Dropout(0.1), nn.Embedding(ntoken, ninp)
        self.rnn = getattr(nn, kind)(ninp, nhid, nlayers, dropout=0.1)
        self.decoder = nn.Linear(nhid, ntoken)
        if tie_weights:
            self.decoder.weight = self.encoder.weight
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)

    def forward(self, input, hidden):
        output, hidden = self.rnn(self.drop(self.encoder(input)), hidden)
        decoded = self.decoder(self.drop(output))
        return F.log_softmax(decoded.view(-1, decoded.size(-1)), dim=1), hidden


class TransformerModel(nn.Transformer):
    def __init__(self, ntoken, ninp, nhead, nhid, nlayers):
        super().__init__(ninp, nhead, num_encoder_layers=nlayers, dim_feedforward=nhid, dropout=0.1)
        self.input_emb, self.ninp = nn.Embedding(ntoken, ninp), ninp
        self.decoder = nn.Linear(ninp, ntoken)

    def forward(self, src):
        mask = torch.log(torch.tril(torch.ones(len(src), len(src))))
        place = torch.sin(torch.arange(len(src)).float()[:, None, None] / 3)
        output = self.encoder(self.input_emb(src) * math.sqrt(self.ninp) + place, mask=mask)
        return F.log_softmax(self.decoder(output), dim=-1).view(-1, self.decoder.out_features)


def repackage(h):
    return h.detach() if isinstance(h, torch.Tensor) else tuple(repackage(v) for v in h)


torch.manual_seed(1111)
text = "the cat sat on the mat and the dog sat on the log and " * 6
words = sorted(set(text.split()))
ids = torch.tensor([words.index(w) for w in text.split()], dtype=torch.int64)
data = ids.narrow(0, 0, len(ids) // 3 * 3).view(3, -1).t().contiguous()
for kind in ("LSTM", "GRU", "Transformer"):
    torch.manual_seed(1)
    n = len(words)
    model = (
        TransformerModel(n, 8, 2, 16, 1)
        if kind == "Transformer"
        else RNNModel(kind, n, 8, 8, 2, True)
    )
    hidden, total = None, 0.0
    for i in range(0, data.size(0) - 1, 5):
        size = min(5, len(data) - 1 - i)
        source, target = data[i : i + size], data[i + 1 : i + 1 + size].view(-1)
        model.zero_grad()
        if kind == "Transformer":
            output = model(source)
        else:
            output, hidden = model(source, None if hidden is None else repackage(hidden))
        loss = F.nll_loss(output, target)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        for p in model.parameters():
            if p.grad is not None:
                p.data.add_(p.grad, alpha=-2.0)
        total += loss.item() * len(target)
    print(f"{kind} | loss {total / (data.size(0) - 1) / 3:5.3f} | ppl {math.exp(loss.item()):8.3f}")
