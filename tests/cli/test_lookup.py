"""Whether a name of torch's is there, without running what uses it."""

from __future__ import annotations

import pytest

from rushlight.cli.lookup import lookup


@pytest.mark.parametrize(
    "name",
    [
        "torch", "torch.ones", "torch.nn.Linear", "torch.nn.functional.relu", "torch.float32",
        "torch.optim.lr_scheduler.StepLR", "torch.utils.data.DataLoader", "torch.linalg.svd",
        "torch.Tensor.view", "torch.nn.Module.anything", "torch.nn.modules.linear.Linear",
        "torch.cuda.amp.GradScaler", "torch.autograd.Function", "torch.float32.itemsize",
    ],
)  # fmt: skip
def test_there(name: str) -> None:
    assert lookup(name) is None


@pytest.mark.parametrize(
    ("name", "lacking", "why", "nearest"),
    [
        ("torch.nested.nested_tensor", "torch.nested", "rushlight has not", "pad_sequence"),
        ("torch.cuda.memory_summary", "torch.cuda.memory_summary", "rushlight has not", "torch."),
        ("torch.Tensor.int_repr", "torch.Tensor.int_repr", "rushlight has not", "torch.Tensor."),
        ("torch.nn.Linaer", "torch.nn.Linaer", "neither PyTorch", "torch.nn.Linear"),
        ("torch.no.such", "torch.no", "neither PyTorch", "torch."),
        ("torch._no", "torch._no", "insides", "torch."),
        ("torch.distributed.rpc.X", "torch.distributed.rpc.X", "has not this part", "nothing"),
        ("torch.ao.quantization", "torch.ao.quantization", "quantised", "bfloat16"),
    ],
)
def test_lacking(name: str, lacking: str, why: str, nearest: str) -> None:
    found = lookup(name)
    assert found is not None
    assert found.name == lacking
    assert why in found.why
    assert nearest in found.nearest
