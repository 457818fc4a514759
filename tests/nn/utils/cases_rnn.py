"""Packed and padded sequences."""

from __future__ import annotations

from typing import Any

from tests.harness import PlainCases, attempt

exact = PlainCases()
close = PlainCases()


def printed(torch: Any) -> Any:
    rnn, ones = torch.nn.utils.rnn, torch.ones
    x = torch.arange(12.0).reshape(3, 4).unsqueeze(2)
    packed = rnn.pack_padded_sequence(x, [2, 3, 1, 3], enforce_sorted=False)
    recorded = rnn.pack_padded_sequence(x.clone().requires_grad_(), [3, 2, 1, 1])
    calls = [
        lambda: packed, lambda: recorded, lambda: rnn.pad_packed_sequence(packed),
        lambda: rnn.pad_packed_sequence(packed, True, -1.0, 5),
        lambda: rnn.pack_padded_sequence(x.transpose(0, 1), torch.tensor([3, 2, 1, 1]), True),
        lambda: rnn.pad_sequence([ones(2), ones(3)]),
        lambda: rnn.pad_sequence([ones(2, 2), ones(3, 2)], True, 9.0, "left"),
        lambda: rnn.pad_sequence(ones(2, 3)), lambda: rnn.pad_sequence([ones(2), ones(3).double()]),
        lambda: rnn.pad_sequence([ones(1, 2), 2 * ones(3, 1)]),
        lambda: rnn.pack_sequence([ones(2), ones(3)], False),
        lambda: rnn.unpack_sequence(rnn.pack_sequence([ones(2), 2 * ones(3)], False)),
        lambda: rnn.unpad_sequence(ones(3, 2), torch.tensor([1, 3])),
        lambda: rnn.invert_permutation(torch.tensor([2, 0, 1])),
        lambda: rnn.invert_permutation(None), lambda: packed.double(),
        lambda: [getattr(packed, kind)().data.dtype for kind in
                 ("double", "float", "half", "long", "int", "short", "char", "byte")],
        lambda: [packed.is_cuda, packed.is_pinned(), packed.cpu() is packed],
        lambda: rnn.PackedSequence(ones(3), torch.tensor([2, 1]), torch.tensor([1, 0])),
        lambda: rnn.PackedSequence((ones(3), torch.tensor([2, 1]))),
        lambda: rnn.PackedSequence(*packed)._fields,
    ]  # fmt: skip
    return [repr(attempt(call)) for call in calls]


def errors(torch: Any) -> Any:
    rnn, ones = torch.nn.utils.rnn, torch.ones
    x = ones(3, 4, 1)
    packed = rnn.pack_padded_sequence(x, [3, 2, 1, 1])
    calls = [
        lambda: rnn.pack_padded_sequence(x, [2, 3, 1]),
        lambda: rnn.pack_padded_sequence(x, [3, 2, 1, 0]),
        lambda: rnn.pack_padded_sequence(x, [1, 2, 3, 1]), lambda: rnn.pad_sequence([]),
        lambda: rnn.pad_packed_sequence(packed, True, 0.0, 2), lambda: rnn.pad_sequence(3),
        lambda: rnn.pad_sequence([ones(2)], padding_side="x"),
        lambda: rnn.pad_sequence([ones(2, 3), ones(3, 2)]),
        lambda: rnn.pack_sequence([ones(2), ones(3)]), lambda: rnn.PackedSequence(ones(3)),
    ]  # fmt: skip
    return [attempt(call) for call in calls]


def gradients(torch: Any) -> Any:
    rnn = torch.nn.utils.rnn
    a, b = torch.ones(2, 2, requires_grad=True), torch.ones(3, 2, requires_grad=True)
    found = []
    for side in ("left", "right"):
        for first in (True, False):
            y = rnn.pad_sequence([a, b], first, 0.0, side)
            weights = torch.arange(12.0).reshape(y.shape)
            grads = torch.autograd.grad((y * weights).sum(), (a, b))
            found.append([g.tolist() for g in grads])
    packed = rnn.pack_sequence([a, b], enforce_sorted=False)
    back, _ = rnn.pad_packed_sequence(packed)
    loss = (packed.data * torch.arange(10.0).reshape(5, 2)).sum() + (back * back).sum()
    found.append([g.tolist() for g in torch.autograd.grad(loss, (a, b))])
    return found


exact["printed"], exact["errors"], close["gradients"] = printed, errors, gradients


def results(torch: Any) -> Any:
    return exact.results(torch) | close.results(torch)
