"""Which storage a place of a checkpoint means."""

from __future__ import annotations

import os
from typing import Any

from rushlight.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter

__all__: list[str] = []
__dir__ = __all__.copy


def _storage_setup(
    storage: Any, checkpoint_id: str | os.PathLike[str] | None, reader: bool = False
) -> Any:
    """The storage that was given, told where; or one that fits the place."""
    if storage:
        if checkpoint_id is not None:
            storage.reset(checkpoint_id)
        return storage
    if not checkpoint_id:
        raise RuntimeError(
            "`checkpoint_id` must be specified if storage_reader/storage_writer is None."
        )
    kind = FileSystemReader if reader else FileSystemWriter
    if not kind.validate_checkpoint_id(checkpoint_id):
        raise RuntimeError(
            "Cannot detect which StorageReader or StorageWriter to use. Please specify the "
            "storage_reader/storage_writer."
        )
    return kind(checkpoint_id)
