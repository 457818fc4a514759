"""Small names that programs and other people's test helpers touch."""

from __future__ import annotations

import pytest

import rushlight as torch


# --- small names that programs and test helpers touch ---------------------------------------------
def test_levels_of_forward_mode_are_shown() -> None:
    forward_ad = torch.autograd.forward_ad
    assert forward_ad._current_level == -1
    with forward_ad.dual_level():
        assert forward_ad._current_level == 0
    assert forward_ad._current_level == -1
    assert not hasattr(forward_ad, "_no_such_name")


def test_types_and_version() -> None:
    assert isinstance(1.5, torch.types.Number) and isinstance("cpu", torch.types.Device)
    assert isinstance(torch.Size([1]), torch.types._size)
    assert torch.types._int is int and torch.types._dtype is torch.dtype
    assert torch.types.Storage is torch.TypedStorage
    assert torch.version.__version__ == torch.__version__
    assert torch.version.cuda is None and torch.version.hip is None and not torch.version.debug
    with torch.utils._mode_utils.no_dispatch():
        assert torch.utils._mode_utils.all_same_mode([1, 1])


def test_all_modules_are_listed() -> None:
    modules, module = torch.nn.modules, torch.nn.Module
    there = {n for n, x in vars(modules).items() if isinstance(x, type) and issubclass(x, module)}
    there.add("LinearCrossEntropyOptions")  # the one that is no module
    assert set(modules.__all__) == there and len(modules.__all__) == len(there)


def test_broadcast_shapes() -> None:
    assert torch.broadcast_shapes() == torch.Size([])
    assert torch.broadcast_shapes((1, 3), (0, 1, 1), torch.Size([])) == torch.Size([0, 1, 3])
    assert torch.broadcast_shapes(2, [1, 2]) == torch.Size([1, 2])
    with pytest.raises(RuntimeError) as error:
        torch.broadcast_shapes((2, 3), (2,))
    assert str(error.value) == (
        "Attempting to broadcast a dimension of length 2 at -1! Mismatching argument at index 1 "
        "had (2,); but expected shape should be broadcastable to [2, 3]"
    )
    with pytest.raises(ValueError, match="Attempting to broadcast a dimension with negative"):
        torch.broadcast_shapes((-1,))
