"""Stand-ins for what rushlight has not: they can be imported and asked for, and not used."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight import absent
from tests.running import run


def test_a_module_of_stand_ins() -> None:
    stages = absent.module("torch.distributed.pipelining")
    cls = stages.PipelineStage
    assert cls is stages.PipelineStage and stages is absent.module("torch.distributed.pipelining")
    assert not isinstance(torch.nn.Linear(1, 1), cls)
    with pytest.raises(RuntimeError, match=r"PipelineStage cannot work: rushlight has not"):
        cls(torch.nn.Linear(1, 1))
    with pytest.raises(AttributeError, match="rushlight has not this part"):
        _ = stages.Schedule1F1B.step
    with pytest.raises(AttributeError):
        _ = stages.__wrapped__


def test_functions_raise_but_decorate() -> None:
    rpc = absent.module("torch.distributed.rpc")

    def main() -> int:
        return 3

    assert rpc.record(main) is main and rpc.api.record(main)() == 3
    with pytest.raises(RuntimeError, match=r"torch\.distributed\.rpc\.init_rpc cannot work"):
        rpc.init_rpc("worker")
    assert rpc.is_available() is False
    assert absent.module("torch.utils.cpp_extension").CUDA_HOME is None


def test_which_modules() -> None:
    assert absent.why("torch.distributed.tensor.parallel") == absent._NOT_HERE
    assert absent.why("torch.nn.quantized.dynamic") is not None
    assert absent.why("torch") is absent.why("torch.nn") is absent.why("torch.nonsense") is None


PROGRAM = """
import torch, torch.nn
from torch.distributed.tensor import DTensor
from torch.distributed.pipelining import PipelineStage
from torch.distributed import nn as distributed_nn, ReduceOp
from torch.utils.cpp_extension import load
import torch.distributed.nn.functional, torch.ao.quantization, torch._inductor.codecache
print(isinstance(torch.ones(1), DTensor), ReduceOp.SUM.name, torch.distributed.nn is distributed_nn)
for use in (lambda: PipelineStage(torch.nn.ReLU()), lambda: load("x", ["x.cpp"]),
            lambda: torch.ao.quantization.QuantStub(), lambda: torch.ops.load_library("x.so")):
    try:
        use()
    except (RuntimeError, OSError) as error:
        print(type(error).__name__, error)
for name in ("torch.distributed.nn", "torch.distributed.nonsense"):
    try:
        __import__(name)
    except ModuleNotFoundError as error:
        print(str(error)[:50])
"""


def test_libraries_import_them() -> None:
    status, out, errors = run("-c", PROGRAM)
    assert (status, errors) == (0, "")
    assert out.splitlines() == [
        "False SUM True",
        "RuntimeError torch.distributed.pipelining.PipelineStage cannot work: rushlight has not "
        "this part of torch.distributed",
        "RuntimeError torch.utils.cpp_extension.load cannot work: rushlight compiles no C++ and no "
        "CUDA, and does not count multiplications",
        "RuntimeError torch.ao.quantization.QuantStub cannot work: rushlight has neither quantised "
        "tensors nor these insides of PyTorch's",
        "OSError Could not load this library: x.so: its operators are compiled for PyTorch",
        "No module named 'torch.distributed.nonsense': rush",
    ]
