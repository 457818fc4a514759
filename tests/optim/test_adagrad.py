"""What `Adagrad` has beyond the rule, which tests/optim/test_rules.py sees to."""

from __future__ import annotations

import rushlight as torch


def test_sums_are_shared_between_processes() -> None:
    first, second = torch.ones(2, requires_grad=True), torch.ones(1, requires_grad=True)
    optimizer = torch.optim.Adagrad([{"params": [first]}, {"params": [second]}])
    sums = [optimizer.state[p]["sum"] for p in (first, second)]
    assert not any(s.is_shared() for s in sums)
    optimizer.share_memory()
    assert all(s.is_shared() for s in sums)
    assert all(optimizer.state[p]["sum"] is s for p, s in zip((first, second), sums))
    first.sum().backward()
    optimizer.step()
    assert sums[0].is_shared() and sums[0].tolist() == [1.0, 1.0]
