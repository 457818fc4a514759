"""Flags of backends are remembered; devices that are not there say so."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.arrays.device import cuda_count


def test_flags_are_remembered() -> None:
    cudnn = torch.backends.cudnn
    assert cudnn.enabled and not cudnn.benchmark and not cudnn.deterministic
    cudnn.benchmark = True
    assert torch.backends.cudnn.benchmark
    cudnn.benchmark = False
    with cudnn.flags(enabled=False, deterministic=True):
        assert not cudnn.enabled and cudnn.deterministic
    assert cudnn.enabled and not cudnn.deterministic
    before = cudnn.set_flags(_benchmark=True)
    assert before[1] is False and cudnn.benchmark
    cudnn.set_flags(*before)
    assert not cudnn.benchmark


def test_tf32_is_the_precision_of_products() -> None:
    matmul = torch.backends.cuda.matmul
    assert matmul.allow_tf32 is False
    matmul.allow_tf32 = True
    assert torch.get_float32_matmul_precision() == "high" and matmul.allow_tf32
    matmul.allow_tf32 = False
    assert torch.get_float32_matmul_precision() == "highest"
    assert matmul.allow_fp16_reduced_precision_reduction is True
    with pytest.raises(AttributeError, match="Unknown attribute no_such"):
        matmul.no_such = 1
    with pytest.raises(AttributeError, match="Unknown attribute no_such"):
        matmul.no_such


def test_attention() -> None:
    cuda = torch.backends.cuda
    with cuda.sdp_kernel(enable_flash=False):
        assert not cuda.flash_sdp_enabled() and cuda.math_sdp_enabled()
    assert cuda.flash_sdp_enabled()
    cuda.enable_flash_sdp(False)
    assert not cuda.flash_sdp_enabled()
    cuda.enable_flash_sdp(True)


def test_what_is_there() -> None:
    b = torch.backends
    absent = [b.cudnn, b.mkl, b.mkldnn, b.openmp, b.mps, b.opt_einsum, b.nnpack, b.cusparselt]
    assert not any(module.is_available() for module in absent)
    assert b.cpu.get_cpu_capability() in ("DEFAULT", "AVX2", "AVX512")
    assert b.mha.get_fastpath_enabled()
    assert all(isinstance(x, bool) for x in torch.cpu.get_capabilities().values())


def test_other_devices() -> None:
    for device in (torch.mps, torch.xpu, torch.mtia):
        assert not device.is_available() and device.device_count() == 0
        device.manual_seed(3)
    assert torch.xpu.memory_allocated() == 0
    assert torch.cpu.is_available() and torch.cpu.device_count() == 1
    assert torch.cpu.current_device() == "cpu"
    with torch.cpu.stream(torch.cpu.current_stream()):
        torch.cpu.synchronize()


def test_absent_devices_say_so() -> None:
    with pytest.raises(RuntimeError, match=r"Cannot execute deviceSynchronize\(\) without MPS"):
        torch.mps.synchronize()
    with pytest.raises(AssertionError, match="Torch not compiled with XPU enabled"):
        torch.xpu.synchronize()
    with pytest.raises(RuntimeError, match=r"Cannot execute getCurrentDevice\(\) without MTIA"):
        torch.mtia.current_device()


@pytest.mark.skipif(cuda_count() > 0, reason="there is an accelerator")
def test_no_accelerator() -> None:
    assert not torch.accelerator.is_available() and torch.accelerator.device_count() == 0
    assert torch.accelerator.current_accelerator() is None
    for fn in (torch.accelerator.synchronize, torch.accelerator.current_device_index,
               torch.accelerator.memory_allocated, torch.accelerator.empty_cache):  # fmt: skip
        with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is"):
            fn()
