"""Settings that are accepted are remembered."""

from __future__ import annotations

import pytest

import rushlight as torch


def test_settings_are_remembered() -> None:
    assert not torch.is_deterministic_algorithms_warn_only_enabled()
    assert torch.get_deterministic_debug_mode() == 0
    try:
        torch.use_deterministic_algorithms(True, warn_only=True)
        assert torch.is_deterministic_algorithms_warn_only_enabled()
        assert torch.get_deterministic_debug_mode() == 1
        torch.set_deterministic_debug_mode("error")
        assert torch.are_deterministic_algorithms_enabled()
        assert not torch.is_deterministic_algorithms_warn_only_enabled()
        assert torch.get_deterministic_debug_mode() == 2
        torch.set_warn_always(True)
        assert torch.is_warn_always_enabled()
    finally:
        torch.use_deterministic_algorithms(False)
        torch.set_warn_always(False)
    with pytest.raises(RuntimeError, match="invalid value of debug_mode, expected one of"):
        torch.set_deterministic_debug_mode("loud")


def test_small_numbers_are_kept() -> None:
    assert torch.set_flush_denormal(False) and not torch.set_flush_denormal(True)
    assert (torch.tensor(1e-40) * 1).item() > 0
    with pytest.raises(RuntimeError, match="flush_denormal expects a bool, but got int"):
        torch.set_flush_denormal(1)
