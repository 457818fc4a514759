"""`torch.distributed.checkpoint`: state dicts of many processes, saved together and loaded by any
number of them.

>>> import tempfile
>>> import rushlight.distributed.checkpoint as dcp
>>> folder = tempfile.TemporaryDirectory()
>>> model = torch.nn.Linear(2, 1)
>>> _ = dcp.save({"model": model}, checkpoint_id=folder.name, no_dist=True)
>>> dcp.load({"model": model}, checkpoint_id=folder.name, no_dist=True)
"""

import typing as _typing

from rushlight.distributed.checkpoint.api import CheckpointException as CheckpointException
from rushlight.distributed.checkpoint.default_planner import (
    DefaultLoadPlanner as DefaultLoadPlanner,
)
from rushlight.distributed.checkpoint.default_planner import (
    DefaultSavePlanner as DefaultSavePlanner,
)
from rushlight.distributed.checkpoint.filesystem import FileSystemReader as FileSystemReader
from rushlight.distributed.checkpoint.filesystem import FileSystemWriter as FileSystemWriter
from rushlight.distributed.checkpoint.metadata import BytesStorageMetadata as BytesStorageMetadata
from rushlight.distributed.checkpoint.metadata import ChunkStorageMetadata as ChunkStorageMetadata
from rushlight.distributed.checkpoint.metadata import Metadata as Metadata
from rushlight.distributed.checkpoint.metadata import (
    TensorStorageMetadata as TensorStorageMetadata,
)
from rushlight.distributed.checkpoint.planner import LoadPlan as LoadPlan
from rushlight.distributed.checkpoint.planner import LoadPlanner as LoadPlanner
from rushlight.distributed.checkpoint.planner import ReadItem as ReadItem
from rushlight.distributed.checkpoint.planner import SavePlan as SavePlan
from rushlight.distributed.checkpoint.planner import SavePlanner as SavePlanner
from rushlight.distributed.checkpoint.planner import WriteItem as WriteItem
from rushlight.distributed.checkpoint.state_dict_loader import load as load
from rushlight.distributed.checkpoint.state_dict_loader import load_state_dict as load_state_dict
from rushlight.distributed.checkpoint.state_dict_saver import async_save as async_save
from rushlight.distributed.checkpoint.state_dict_saver import save as save
from rushlight.distributed.checkpoint.state_dict_saver import save_state_dict as save_state_dict
from rushlight.distributed.checkpoint.storage import StorageReader as StorageReader
from rushlight.distributed.checkpoint.storage import StorageWriter as StorageWriter
from rushlight.missing import face as _face

__all__ = [
    "BytesStorageMetadata", "CheckpointException", "ChunkStorageMetadata", "DefaultLoadPlanner",
    "DefaultSavePlanner", "FileSystemReader", "FileSystemWriter", "LoadPlan", "LoadPlanner",
    "Metadata", "ReadItem", "SavePlan", "SavePlanner", "StorageReader", "StorageWriter",
    "TensorStorageMetadata", "WriteItem", "async_save", "load", "load_state_dict", "save",
    "save_state_dict",
]  # fmt: skip

if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face(
        "torch.distributed.checkpoint", globals(), {"state_dict": "", "format_utils": ""}
    )
