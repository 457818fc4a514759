"""Speech recognition in small: stft, convolution and BiGRU, CTC loss, greedy decoding."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

ALPHABET = "_abc"


def utterance(text, generator):
    tones = {"a": 200.0, "b": 500.0, "c": 900.0}
    t = torch.arange(0, 0.05, 1 / 4000)
    wave = torch.cat([torch.sin(2 * math.pi * tones[ch] * t) for ch in text])
    return wave + 0.05 * torch.randn(wave.shape, generator=generator)


def spectrogram(wave):
    spec = torch.stft(
        wave,
        n_fft=64,
        hop_length=32,
        win_length=64,
        window=torch.hann_window(64),
        return_complex=True,
    )
    return torch.log1p(spec.abs().pow(2)).transpose(0, 1)


def collate(batch):
    waves, texts = zip(*batch)
    specs = [spectrogram(w) for w in waves]
    labels = [torch.tensor([ALPHABET.index(c) for c in t]) for t in texts]
    input_lengths, label_lengths = [s.shape[0] // 2 for s in specs], [len(x) for x in labels]
    specs = nn.utils.rnn.pad_sequence(specs, batch_first=True).unsqueeze(1).transpose(2, 3)
    return specs, nn.utils.rnn.pad_sequence(labels, batch_first=True), input_lengths, label_lengths


class CNNLayerNorm(nn.Module):
    def __init__(self, n_feats):
        super().__init__()
        self.layer_norm = nn.LayerNorm(n_feats)

    def forward(self, x):
        return self.layer_norm(x.transpose(2, 3).contiguous()).transpose(2, 3).contiguous()


class Model(nn.Module):
    def __init__(self, features, hidden=16):
        super().__init__()
        self.cnn = nn.Conv2d(1, 4, 3, stride=2, padding=3 // 2)
        self.norm = CNNLayerNorm((features + 1) // 2)
        self.fully_connected = nn.Linear(4 * ((features + 1) // 2), hidden)
        self.gru = nn.GRU(
            hidden, hidden, num_layers=2, batch_first=True, bidirectional=True, dropout=0.1
        )
        self.classifier = nn.Sequential(
            nn.Linear(2 * hidden, hidden), nn.GELU(), nn.Linear(hidden, len(ALPHABET))
        )

    def forward(self, x):
        x = F.gelu(self.norm(self.cnn(x)))
        sizes = x.size()
        x = x.view(sizes[0], sizes[1] * sizes[2], sizes[3]).transpose(1, 2)
        x, _ = self.gru(self.fully_connected(x))
        return self.classifier(x)


def greedy(output):
    found = []
    for args in torch.argmax(output, dim=2):
        kept = [i for j, i in enumerate(args.tolist()) if i and (j == 0 or i != args[j - 1])]
        found.append("".join(ALPHABET[i] for i in kept))
    return found


torch.manual_seed(7)
generator = torch.Generator().manual_seed(3)
data = [
    (utterance(text, generator), text)
    for text in ("abc", "cab", "bca", "aab", "cb", "acb", "bb", "ca")
]
loader = DataLoader(data, batch_size=4, shuffle=True, collate_fn=collate)
model = Model(33)
print("Num Model Parameters", sum([param.nelement() for param in model.parameters()]))
optimizer = torch.optim.AdamW(model.parameters(), 5e-3)
criterion = nn.CTCLoss(blank=0, zero_infinity=True)
scheduler = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, max_lr=2e-2, steps_per_epoch=len(loader), epochs=8, anneal_strategy="linear"
)
for epoch in range(8):
    model.train()
    for spectrograms, labels, input_lengths, label_lengths in loader:
        optimizer.zero_grad()
        output = F.log_softmax(model(spectrograms), dim=2).transpose(0, 1)
        loss = criterion(output, labels, input_lengths, label_lengths)
        loss.backward()
        optimizer.step()
        scheduler.step()
    if epoch % 2:
        print(f"Train Epoch: {epoch} Loss: {loss.item():.6f} LR {scheduler.get_last_lr()[0]:.6f}")
model.eval()
with torch.no_grad():
    print(greedy(model(collate(data[:3])[0])), torch.hann_window(4), spectrogram(data[4][0]).shape)
