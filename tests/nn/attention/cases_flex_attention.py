"""Small programs of `nn.attention.flex_attention`: masks of blocks, and attention by functions."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

from tests.harness import PlainCases, attempt

exact = PlainCases()  # to the last bit and letter
close = PlainCases()  # to rounding


def flex(torch: Any) -> Any:
    return import_module(f"{torch.__name__}.nn.attention.flex_attention")


def causal(b: Any, h: Any, q: Any, k: Any) -> Any:
    return q >= k


def window(b: Any, h: Any, q: Any, k: Any) -> Any:
    return (q - k).abs() < 3 + h


def of_batch(b: Any, h: Any, q: Any, k: Any) -> Any:
    return (q >= k) & ((k + b) % 3 != 0)


def told(x: Any) -> Any:
    return None if x is None else [str(x.dtype), list(x.shape), x.tolist()]


BLOCKS = """
    create_block_mask(causal, 1, 1, 300, 300, device="cpu")
    create_block_mask(causal, None, None, 64, 64, device="cpu", BLOCK_SIZE=16)
    create_block_mask(window, 2, 3, 32, 64, device="cpu", BLOCK_SIZE=(8, 16))
    create_block_mask(of_batch, 2, None, 20, 24, device="cpu", BLOCK_SIZE=4)
    create_block_mask(causal, None, None, 32, 32, "cpu", 8, separate_full_blocks=False)
    create_block_mask(noop_mask, None, None, 32, 16, device="cpu", BLOCK_SIZE=8)
    create_block_mask(causal, 1, 1, 512, 512, device="cpu", BLOCK_SIZE=8)
    create_block_mask(causal, 1, 1, 64, 64, device="cpu", BLOCK_SIZE=8)._adjust(32, 40)
    create_block_mask(window, 2, 3, 32, 64, device="cpu", BLOCK_SIZE=(8, 16))[1]
    create_block_mask(window, 2, 3, 32, 64, device="cpu", BLOCK_SIZE=(8, 16))[1, 2]
    create_block_mask(window, 2, 3, 32, 64, device="cpu", BLOCK_SIZE=(8, 16))[:, :, -1]
    create_block_mask(window, 2, 3, 32, 64, device="cpu", BLOCK_SIZE=(8, 16)).to("cpu")
    BlockMask.from_kv_blocks(count, order)
    BlockMask.from_kv_blocks(count, order, count, order, BLOCK_SIZE=(32, 64), mask_mod=causal)
"""


def names(torch: Any) -> dict[str, Any]:
    count = torch.tensor([[[1, 2]]], dtype=torch.int32)
    order = torch.tensor([[[[0, 1], [1, 0]]]], dtype=torch.int32)
    return {
        **{name: getattr(flex(torch), name) for name in flex(torch).__all__},
        "torch": torch, "causal": causal, "window": window, "of_batch": of_batch, "count": count,
        "order": order,
    }  # fmt: skip


@exact
def masks_of_blocks(torch: Any) -> Any:
    found = {}
    for text in BLOCKS.strip().splitlines():
        mask = eval(text.strip(), names(torch))
        shown = [str(mask), repr(mask), mask.to_string(5, 2), mask.shape, mask.numel()]
        shown += [mask.sparsity(), mask.BLOCK_SIZE, mask.seq_lengths, mask.mask_mod.__name__]
        tensors = [
            mask.kv_num_blocks, mask.kv_indices, mask.full_kv_num_blocks, mask.full_kv_indices,
            mask.q_num_blocks, mask.q_indices, mask.full_q_num_blocks, mask.full_q_indices,
            mask.to_dense(),
        ]  # fmt: skip
        small = mask.kv_indices.numel() < 200
        found[text.strip()] = [shown, [told(x) for x in tensors] if small else len(mask.as_tuple())]
    return found


@exact
def masks(torch: Any) -> Any:
    f = flex(torch)

    def hidden(score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
        return torch.where(q >= k, score, -float("inf"))

    joined = f.and_masks(causal, window), f.or_masks(causal, window), f.and_masks(), f.or_masks()
    return [
        *[told(f.create_mask(m, 2, 2, 4, 5, device="cpu")) for m in (causal, window, *joined[:2])],
        told(f.create_mask(hidden, 1, 1, 3, 3, device="cpu")),
        *[told(f.create_mask(m, None, None, 2, 2, device="cpu")) for m in joined[2:]],
        [m.__name__ for m in joined], repr(f.AuxRequest()), repr(f.AuxOutput()),
    ]  # fmt: skip


ERRORS = """
    and_masks(causal, 3)
    or_masks(3)
    create_mask(lambda *a: a[0], 1, 1, 2, 2, device="cpu")
    create_block_mask(lambda b, h, q, k: q * 0 + 1, None, None, 8, 8, device="cpu")
    BlockMask.from_kv_blocks(count[0, 0], order[0, 0, 0])
    BlockMask.from_kv_blocks(count, order, count)
    flex_attention(x[0], x[0], x[0])
    flex_attention(x, x[:, :1], x[:, :1])
    flex_attention(x[:, [0, 1, 0]], x, x, enable_gqa=True)
    flex_attention(x, x[..., :3], x)
    flex_attention(x[:1], x, x)
    flex_attention(x, x[:1], x[:1])
    flex_attention(x, x, x, return_lse=True, return_aux=AuxRequest())
    flex_attention(x, x, x, block_mask=create_block_mask(causal, None, None, 9, 9, device="cpu"))
    flex_attention(x, x, x, block_mask=create_block_mask(causal, None, None, 4, 9, device="cpu"))
"""


@exact
def errors(torch: Any) -> Any:
    x = torch.ones(2, 2, 8, 4)
    lines = [line.strip() for line in ERRORS.strip().splitlines()]
    spaces = {**names(torch), "x": x}
    told = {line: attempt(lambda line=line: eval(line, dict(spaces))) for line in lines}
    return {line: text.split(" at 0x")[0] for line, text in told.items()}


CALLS = """
    flex_attention(q, k, v)
    flex_attention(q, k, v, scale=0.3, kernel_options={"BLOCK_M": 64})
    flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s + (j - i) * 0.1)
    flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s + bias[h, i, j])
    flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: 2 * torch.tanh(s / 2))
    flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: torch.where(i - j < 3, s, -1e9))
    flex_attention(q, k, v, block_mask=block(causal))
    flex_attention(q, k, v, block_mask=block(window))
    flex_attention(q, k, v, lambda s, b, h, i, j: s * (1 + h), block(of_batch))
    flex_attention(q, k, v, block_mask=block(blind))
    flex_attention(q, k, v, block_mask=block(documents))
    flex_attention(q[:, :, :3], k, v)
    flex_attention(q, k[:, :1], v[:, :1], enable_gqa=True)
    flex_attention(q, k, v[..., :2])
    flex_attention(q, k, v, return_aux=AuxRequest())
    flex_attention(q, k, v, block_mask=block(blind), return_aux=AuxRequest(lse=True))
    flex_attention(q, k, v, return_lse=True)
"""


@close
def attention_in_float64(torch: Any) -> Any:
    torch.manual_seed(5)
    q, k, v = (torch.randn(2, 2, 8, 4, dtype=torch.float64) for _ in range(3))
    document = torch.tensor([0, 0, 0, 1, 1, 2, 2, 2])
    spaces = {
        **names(torch), "q": q, "k": k, "v": v,
        "bias": torch.randn(2, 8, 8, dtype=torch.float64),
        "blind": lambda b, h, i, j: (i > 2) & (i >= j),
        "documents": lambda b, h, i, j: document[i] == document[j],
        "block": lambda m: flex(torch).create_block_mask(m, 2, 2, 8, 8, device="cpu"),
    }  # fmt: skip
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for line in CALLS.strip().splitlines():
            y = eval(line.strip(), dict(spaces))
            if isinstance(y, tuple):
                y = (y[0], *y[1]) if isinstance(y[1], tuple) else y
            found[line.strip()] = [told(t) for t in (y if isinstance(y, tuple) else (y,))]
    return found


def results(torch: Any) -> dict[str, Any]:
    return {**exact.results(torch), **close.results(torch)}
