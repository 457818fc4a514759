"""From a checkpoint to a file of `torch.save`, and back."""

from __future__ import annotations

import os
from typing import Any

from rushlight.distributed.checkpoint.default_planner import _EmptyStateDictLoadPlanner
from rushlight.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from rushlight.distributed.checkpoint.state_dict_loader import _load_state_dict
from rushlight.distributed.checkpoint.state_dict_saver import _save_state_dict
from rushlight.serialization.save_load import load, save

__all__ = ["dcp_to_torch_save", "torch_save_to_dcp"]
__dir__ = __all__.copy

PathLike = str | os.PathLike[str]


def dcp_to_torch_save(dcp_checkpoint_dir: PathLike, torch_save_path: PathLike) -> None:
    """Write all that a checkpoint holds to one file, for `torch.load`. For one process: it holds
    all of it in memory.

    >>> import os, tempfile
    >>> import rushlight.distributed.checkpoint as dcp
    >>> from rushlight.distributed.checkpoint.format_utils import dcp_to_torch_save
    >>> folder = tempfile.TemporaryDirectory()
    >>> checkpoint, file = os.path.join(folder.name, "dcp"), os.path.join(folder.name, "file.pt")
    >>> _ = dcp.save({"model": {"w": torch.ones(2)}}, checkpoint_id=checkpoint, no_dist=True)
    >>> dcp_to_torch_save(checkpoint, file)
    >>> torch.load(file)
    {'model': {'w': tensor([1., 1.])}}
    """
    state: dict[str, Any] = {}
    reader = FileSystemReader(dcp_checkpoint_dir)
    _load_state_dict(state, reader, no_dist=True, planner=_EmptyStateDictLoadPlanner())
    save(state, torch_save_path)


def torch_save_to_dcp(torch_save_path: PathLike, dcp_checkpoint_dir: PathLike) -> None:
    """Write what `torch.save` wrote as a checkpoint. The file may run code: only for files you
    trust."""
    state = load(torch_save_path, weights_only=False)
    _save_state_dict(state, FileSystemWriter(dcp_checkpoint_dir), no_dist=True)
