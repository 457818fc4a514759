"""Digits in reverse, in words: a GRU encoder, a decoder with additive attention."""

import argparse
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

SOS, EOS, PAD = 0, 1, 2
WORDS = "zero one two three four five six seven eight nine".split()


class Pairs(Dataset):
    def __init__(self, count, seed):
        rng = random.Random(seed)
        self.items = [[rng.randrange(10) for _ in range(rng.randint(2, 5))] for _ in range(count)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        digits = self.items[index]
        return torch.tensor([3 + d for d in digits]), torch.tensor(
            [3 + d for d in digits[::-1]] + [EOS]
        )


def collate(batch):
    batch.sort(key=lambda pair: len(pair[0]), reverse=True)
    sources, targets = zip(*batch)
    lengths = torch.tensor([len(s) for s in sources])
    return (
        pad_sequence(sources, padding_value=PAD),
        lengths,
        pad_sequence(targets, padding_value=PAD),
    )


class Encoder(nn.Module):
    def __init__(self, vocab, hidden, dropout):
        super().__init__()
        self.embedding = nn.Embedding(vocab, hidden, padding_idx=PAD)
        self.gru = nn.GRU(hidden, hidden, bidirectional=True)
        self.fc = nn.Linear(hidden * 2, hidden)
        self.dropout = nn.Dropout(dropout)

    def forward(self, src, lengths):
        packed = pack_padded_sequence(self.dropout(self.embedding(src)), lengths)
        outputs, hidden = self.gru(packed)
        outputs, _ = pad_packed_sequence(outputs)
        return outputs, torch.tanh(self.fc(torch.cat((hidden[-2], hidden[-1]), dim=1)))


class Attention(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.attn = nn.Linear(hidden * 3, hidden)
        self.v = nn.Parameter(torch.rand(hidden))

    def forward(self, hidden, outputs, mask):
        length = outputs.size(0)
        hidden = hidden.unsqueeze(1).repeat(1, length, 1)
        outputs = outputs.permute(1, 0, 2)
        energy = torch.tanh(self.attn(torch.cat((hidden, outputs), dim=2))).permute(0, 2, 1)
        v = self.v.repeat(outputs.size(0), 1).unsqueeze(1)
        scores = torch.bmm(v, energy).squeeze(1).masked_fill(mask == 0, -1e10)
        return F.softmax(scores, dim=1)


class Decoder(nn.Module):
    def __init__(self, vocab, hidden, dropout):
        super().__init__()
        self.vocab, self.attention = vocab, Attention(hidden)
        self.embedding = nn.Embedding(vocab, hidden)
        self.gru = nn.GRU(hidden * 3, hidden)
        self.out = nn.Linear(hidden * 4, vocab)
        self.dropout = nn.Dropout(dropout)

    def forward(self, token, hidden, outputs, mask):
        embedded = self.dropout(self.embedding(token.unsqueeze(0)))
        weights = self.attention(hidden, outputs, mask).unsqueeze(1)
        weighted = torch.bmm(weights, outputs.permute(1, 0, 2)).permute(1, 0, 2)
        output, hidden = self.gru(torch.cat((embedded, weighted), dim=2), hidden.unsqueeze(0))
        joined = torch.cat((output.squeeze(0), weighted.squeeze(0), embedded.squeeze(0)), dim=1)
        return self.out(joined), hidden.squeeze(0), weights.squeeze(1)


class Seq2Seq(nn.Module):
    def __init__(self, encoder, decoder):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def forward(self, src, lengths, trg, teacher_forcing):
        outputs = torch.zeros(trg.size(0), src.size(1), self.decoder.vocab)
        states, hidden = self.encoder(src, lengths)
        mask = (src != PAD).permute(1, 0)
        token = torch.full((src.size(1),), SOS, dtype=torch.long)
        for t in range(trg.size(0)):
            outputs[t], hidden, _ = self.decoder(token, hidden, states, mask)
            token = trg[t] if random.random() < teacher_forcing else outputs[t].argmax(1)
        return outputs


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--hidden", type=int, default=24)
    parser.add_argument("--clip", type=float, default=1.0)
    args = parser.parse_args([])
    random.seed(1)
    torch.manual_seed(1)
    train = DataLoader(Pairs(64, 0), batch_size=16, shuffle=True, collate_fn=collate)
    model = Seq2Seq(Encoder(13, args.hidden, 0.1), Decoder(13, args.hidden, 0.1))

    def init_weights(m):
        for name, param in m.named_parameters():
            if "weight" in name:
                nn.init.normal_(param.data, mean=0, std=0.1)
            else:
                nn.init.constant_(param.data, 0)

    model.apply(init_weights)
    print(f"{sum(p.numel() for p in model.parameters() if p.requires_grad):,} parameters")
    optimizer = optim.Adam(model.parameters(), lr=5e-3)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD)
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for src, lengths, trg in train:
            optimizer.zero_grad()
            output = model(src, lengths, trg, 0.5)
            loss = criterion(output.view(-1, output.shape[-1]), trg.view(-1))
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch + 1:02} | loss {total / len(train):.4f} | last norm {norm:.4f}")
    model.eval()
    with torch.no_grad():
        src, lengths, trg = collate([Pairs(1, 5)[0]])
        guess = model(src, lengths, trg, 0.0).argmax(2).squeeze(1)
    print(
        [WORDS[i - 3] if i > 2 else i for i in guess.tolist()],
        [WORDS[i - 3] for i in trg[:-1, 0].tolist()],
    )


if __name__ == "__main__":
    main()
