"""Copies of state dicts, so that training goes on while a checkpoint is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.graph import TensorBase

__all__ = ["AsyncStager", "BlockingAsyncStager", "DefaultStager", "StagingOptions"]
__dir__ = __all__.copy


@runtime_checkable
class AsyncStager(Protocol):
    """Copies a state dict for `async_save`."""

    def stage(self, state_dict: dict[str, Any]) -> Any:
        """A copy that nobody writes to."""
        ...

    def synchronize_staging(self) -> None:
        """Wait until the copy is complete."""
        ...

    def close(self) -> None:
        """The last checkpoint is saved."""
        ...


class BlockingAsyncStager:
    """BlockingAsyncStager(cache_staged_state_dict=False): copies to the CPU, at once.

    With `cache_staged_state_dict` the memory of a copy is used again for the next one.

    >>> from rushlight.distributed.checkpoint.staging import BlockingAsyncStager
    >>> w = torch.ones(2)
    >>> copy = BlockingAsyncStager().stage({"w": w})
    >>> _ = w.zero_()
    >>> copy
    {'w': tensor([1., 1.])}
    """

    _synchronize_after_execute = False

    def __init__(self, cache_staged_state_dict: bool = False) -> None:
        self.cache_staged_state_dict = cache_staged_state_dict
        self.state_dict_cache: dict[str, Any] | None = None

    @property
    def should_synchronize_after_execute(self) -> bool:
        """Whether `synchronize_staging` has to be called: no, the copy is complete."""
        return self._synchronize_after_execute

    def stage(self, state_dict: dict[str, Any]) -> dict[str, Any]:
        """A copy of a state dict on the CPU."""
        with no_grad():
            copy: dict[str, Any] = _copied(state_dict, self.state_dict_cache)
        if self.cache_staged_state_dict:
            self.state_dict_cache = copy
        return copy

    def synchronize_staging(self) -> None:
        """The copy is complete when `stage` returns."""

    def close(self) -> None:
        """Forget the memory kept for the next copy."""
        self.state_dict_cache = None


class StagingOptions:
    """StagingOptions(use_pinned_memory=True, use_shared_memory=True, use_async_staging=True,
    use_non_blocking_copy=True): kinds of memory and of copies; all are one here."""

    def __init__(
        self, use_pinned_memory: bool = True, use_shared_memory: bool = True,
        use_async_staging: bool = True, use_non_blocking_copy: bool = True,
    ) -> None:  # fmt: skip
        self.use_pinned_memory = use_pinned_memory
        self.use_shared_memory = use_shared_memory
        self.use_async_staging = use_async_staging
        self.use_non_blocking_copy = use_non_blocking_copy


class DefaultStager(BlockingAsyncStager):
    """DefaultStager(config=None): copies to the CPU, at once."""

    def __init__(self, config: StagingOptions | None = None) -> None:
        super().__init__()
        self._config = config or StagingOptions()


def _copied(value: Any, older: Any) -> Any:
    """A copy of nested containers and their tensors; into `older` where that has the same form."""
    if isinstance(value, TensorBase):
        tensor: Any = value
        if isinstance(older, TensorBase) and older.shape == tensor.shape:  # type: ignore[attr-defined]
            return older.copy_(tensor.detach())  # type: ignore[attr-defined]
        copy = tensor.detach().cpu()
        return copy.clone() if copy.data_ptr() == tensor.data_ptr() else copy
    if isinstance(value, Mapping):
        known: Any = older if isinstance(older, Mapping) else {}
        return {key: _copied(inner, known.get(key)) for key, inner in value.items()}
    if type(value) in (list, tuple):
        same = type(older) is type(value) and len(older) == len(value)
        known = older if same else [None] * len(value)
        return type(value)(_copied(inner, old) for inner, old in zip(value, known))
    return value
