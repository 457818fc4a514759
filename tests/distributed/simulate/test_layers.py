"""Models, and their buckets: those of PyTorch."""

from __future__ import annotations

import pytest

from rushlight.distributed.simulate.layers import MIB, Layer, buckets, gpt, mlp


def test_buckets_as_in_pytorch() -> None:
    torch = pytest.importorskip("torch")
    compute = torch._C._distributed_c10d  # where PyTorch assigns parameters to buckets
    sizes = [300_000, 20, 4_000_000, 1_000, 700_000, 2_000_000, 10, 900_000, 50_000]
    tensors = [torch.empty(size) for size in sizes]
    for cap in (1, 4, 25):
        limits = [MIB, cap * MIB]
        expected, _ = compute._compute_bucket_assignment_by_size(tensors[::-1], limits)
        layers = [Layer(str(i), 4.0 * size, 0.0, 0.0) for i, size in enumerate(sizes)]
        ours = [bucket.size for bucket in buckets(layers, cap)]
        assert ours == [sum(4 * sizes[::-1][i] for i in bucket) for bucket in expected]


def test_a_bucket_is_complete_with_its_first_layer() -> None:
    layers = [Layer(str(i), float(MIB), 0.0, 0.0) for i in range(5)]
    assert [bucket.last for bucket in buckets(layers, 2)] == [4, 2, 0]
    with pytest.raises(ValueError, match="must be above 0"):
        buckets(layers, 0)


def test_models_have_their_sizes() -> None:
    assert mlp([10, 20, 5], batch=1, flops=1e9).size == 4 * (10 * 20 + 20 + 20 * 5 + 5)
    # GPT-2, small and medium
    assert gpt(12, 768, 1, 1e9).size == 4 * 124_439_808
    assert gpt(24, 1024, 1, 1e9).size == 4 * 354_823_168
