"""Masked-language modelling with a small BERT: a tied head, groups of decay, warm-up."""

import json
import math
import random
from typing import Dict, List, Optional, Tuple

import torch
import torch.nn as nn
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, RandomSampler

MASK, PAD, CLS, SEP = 3, 0, 1, 2


class Corpus(Dataset):
    def __init__(self, sentences: int, length: int, vocab: int) -> None:
        rng = random.Random(0)
        self.rows = [
            [CLS]
            + [
                4 + (rng.randrange(3) + 3 * i) % (vocab - 4)
                for i in range(rng.randint(5, length - 2))
            ]
            + [SEP]
            for _ in range(sentences)
        ]
        self.length = length

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: int) -> Dict[str, Tensor]:
        row = self.rows[i] + [PAD] * (self.length - len(self.rows[i]))
        ids = torch.tensor(row)
        return {
            "input_ids": ids,
            "attention_mask": (ids != PAD).long(),
            "token_type_ids": torch.zeros_like(ids),
        }


def mask_tokens(inputs: Tensor, probability: float, vocab: int) -> Tuple[Tensor, Tensor]:
    labels = inputs.clone()
    matrix = torch.full(labels.shape, probability)
    special = (inputs == CLS) | (inputs == SEP) | (inputs == PAD)
    matrix.masked_fill_(special, value=0.0)
    masked = torch.bernoulli(matrix).bool()
    labels[~masked] = -100
    replaced = torch.bernoulli(torch.full(labels.shape, 0.8)).bool() & masked
    inputs = inputs.clone()
    inputs[replaced] = MASK
    randomly = torch.bernoulli(torch.full(labels.shape, 0.5)).bool() & masked & ~replaced
    words = torch.randint(4, vocab, labels.shape, dtype=torch.long)
    inputs[randomly] = words[randomly]
    return inputs, labels


class BertEmbeddings(nn.Module):
    def __init__(self, vocab: int, hidden: int, positions: int) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(vocab, hidden, padding_idx=PAD)
        self.position_embeddings = nn.Embedding(positions, hidden)
        self.token_type_embeddings = nn.Embedding(2, hidden)
        self.LayerNorm = nn.LayerNorm(hidden, eps=1e-12)
        self.dropout = nn.Dropout(0.1)
        self.register_buffer(
            "position_ids", torch.arange(positions).expand((1, -1)), persistent=False
        )

    def forward(self, input_ids: Tensor, token_type_ids: Optional[Tensor] = None) -> Tensor:
        x = self.word_embeddings(input_ids) + self.token_type_embeddings(token_type_ids)
        x += self.position_embeddings(self.position_ids[:, : input_ids.size(1)])
        return self.dropout(self.LayerNorm(x))


class Bert(nn.Module):
    def __init__(self, vocab: int, hidden: int = 32, layers: int = 2, heads: int = 4) -> None:
        super().__init__()
        self.embeddings = BertEmbeddings(vocab, hidden, 16)
        layer = nn.TransformerEncoderLayer(
            hidden, heads, 64, 0.1, activation="gelu", batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.transform = nn.Sequential(nn.Linear(hidden, hidden), nn.GELU(), nn.LayerNorm(hidden))
        self.decoder = nn.Linear(hidden, vocab, bias=False)
        self.bias = nn.Parameter(torch.zeros(vocab))
        self.apply(self._init_weights)
        self.decoder.weight = self.embeddings.word_embeddings.weight

    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, (nn.Linear, nn.Embedding)):
            module.weight.data.normal_(mean=0.0, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            module.bias.data.zero_()

    def forward(self, input_ids, attention_mask, token_type_ids, labels=None):
        x = self.encoder(
            self.embeddings(input_ids, token_type_ids), src_key_padding_mask=attention_mask == 0
        )
        logits = self.decoder(self.transform(x)) + self.bias
        loss = None
        if labels is not None:
            loss = nn.CrossEntropyLoss()(logits.view(-1, logits.size(-1)), labels.view(-1))
        return loss, logits


def linear_warmup(optimizer, warmup: int, total: int):
    def factor(step: int) -> float:
        if step < warmup:
            return float(step) / float(max(1, warmup))
        return max(0.0, float(total - step) / float(max(1, total - warmup)))

    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


def main() -> None:
    torch.manual_seed(0)
    data = Corpus(48, 12, 24)
    loader = DataLoader(data, sampler=RandomSampler(data), batch_size=8)
    model = Bert(24)
    no_decay = ["bias", "LayerNorm.weight"]
    groups: List[Dict] = [
        {
            "params": [
                p for n, p in model.named_parameters() if not any(nd in n for nd in no_decay)
            ],
            "weight_decay": 0.01,
        },
        {
            "params": [p for n, p in model.named_parameters() if any(nd in n for nd in no_decay)],
            "weight_decay": 0.0,
        },
    ]
    optimizer = torch.optim.AdamW(groups, lr=5e-3, eps=1e-8)
    scheduler = linear_warmup(optimizer, 4, 18)
    model.train()
    for epoch in range(3):
        total, count = 0.0, 0
        for batch in loader:
            batch["input_ids"], labels = mask_tokens(batch["input_ids"], 0.25, 24)
            loss, logits = model(**batch, labels=labels)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            model.zero_grad()
            total, count = total + loss.item(), count + 1
        print(
            f"epoch {epoch}: loss {total / count:.4f} perplexity {math.exp(total / count):.3f}",
            f"lr {scheduler.get_last_lr()[0]:.2e}",
        )
    model.eval()
    with torch.no_grad():
        batch = {k: v.unsqueeze(0) for k, v in data[0].items()}
        _, logits = model(**batch)
    print(
        json.dumps([round(v, 3) for v in logits[0, 1].topk(3).values.tolist()]),
        len(model.state_dict()),
    )


if __name__ == "__main__":
    main()
