"""Checkpoints as folders of files, in PyTorch's format.

    .metadata        a pickle of `Metadata`: what there is, and where it lies
    __0_0.distcp     what rank 0 wrote: pieces one behind the other, each as `torch.save` writes it
    __1_0.distcp     what rank 1 wrote

Note [Old or new checkpoint]
    A file is written under a name that ends in `.tmp`, brought to the disk, and renamed. Files with
    numbers come first; `.metadata` is replaced last, in one step. Where a folder has a checkpoint
    already, the new one takes numbers that the old one does not use, and the old one's files go
    when the new `.metadata` stands. So a save that fails or is killed, at whatever moment, leaves
    the old checkpoint as it was; where there was none, it leaves a folder without `.metadata`,
    which `load` refuses.
"""

from __future__ import annotations

import io
import os
import pickle
import re
import uuid
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import IO, Any, Final

from rushlight.autograd.grad_mode import no_grad
from rushlight.distributed.checkpoint.metadata import Metadata, MetadataIndex, StorageMeta
from rushlight.distributed.checkpoint.planner import (
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
    WriteItemType,
)
from rushlight.distributed.checkpoint.planner_helpers import narrow_tensor_by_index
from rushlight.distributed.checkpoint.staging import BlockingAsyncStager
from rushlight.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult
from rushlight.distributed.checkpoint.utils import read_exactly
from rushlight.futures import Future
from rushlight.serialization.save_load import _pickled, _Unpickler, load, save

__all__ = [
    "FileSystem", "FileSystemBase", "FileSystemReader", "FileSystemWriter", "SerializationFormat",
]  # fmt: skip
__dir__ = __all__.copy

PathLike = str | os.PathLike[str]
CURRENT_DCP_VERSION: Final = "1.0.0"
DEFAULT_SUFFIX: Final = ".distcp"
_metadata_fn: Final = ".metadata"
_NUMBERED: Final = re.compile(r"__(\d+)_(\d+)\.distcp")


@dataclass
class _StorageInfo:
    """Where a piece lies."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: Sequence[str] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if value is not None}


@dataclass
class _StoragePrefix:
    """How the names of a rank's files begin."""

    prefix: str


class SerializationFormat(Enum):
    """How pieces are written."""

    TORCH_SAVE = "torch_save"
    SAFETENSORS = "safetensors"


class FileSystemBase(ABC):
    """What a reader and a writer need of a file system."""

    @abstractmethod
    def create_stream(self, path: PathLike, mode: str) -> Any:
        """A file, open within a `with`."""

    @abstractmethod
    def concat_path(self, path: PathLike, suffix: str) -> PathLike:
        """A name in a folder."""

    @abstractmethod
    def rename(self, path: PathLike, new_path: PathLike) -> None:
        """Give a file another name; what had that name is gone."""

    @abstractmethod
    def init_path(self, path: PathLike) -> PathLike:
        """A path as the other methods take it."""

    @abstractmethod
    def mkdir(self, path: PathLike) -> None:
        """Make a folder, and those around it."""

    @classmethod
    @abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: PathLike) -> bool:
        """Whether a checkpoint can be there."""

    @abstractmethod
    def exists(self, path: PathLike) -> bool:
        """Whether something is there."""

    @abstractmethod
    def rm_file(self, path: PathLike) -> None:
        """Remove a file."""


class FileSystem(FileSystemBase):
    """The file system of this machine.

    >>> from rushlight.distributed.checkpoint.filesystem import FileSystem
    >>> FileSystem().concat_path("/runs/1", ".metadata").name
    '.metadata'
    """

    @contextmanager
    def create_stream(self, path: PathLike, mode: str) -> Iterator[IO[Any]]:
        with Path(path).open(mode) as stream:
            yield stream

    def concat_path(self, path: PathLike, suffix: str) -> Path:
        return Path(path) / suffix

    def init_path(self, path: PathLike) -> Path:
        return Path(path)

    def rename(self, path: PathLike, new_path: PathLike) -> None:
        Path(path).replace(new_path)

    def mkdir(self, path: PathLike) -> None:
        Path(path).mkdir(parents=True, exist_ok=True)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: PathLike) -> bool:
        if isinstance(checkpoint_id, Path):
            return True
        if "://" in str(checkpoint_id):
            return False
        above = Path(checkpoint_id).parents
        return any(folder.exists() and os.access(folder, os.W_OK) for folder in above)

    def exists(self, path: PathLike) -> bool:
        return Path(path).exists()

    def rm_file(self, path: PathLike) -> None:
        Path(path).unlink()

    def ls(self, path: PathLike) -> list[str]:
        """What is in a folder."""
        return [str(inner) for inner in Path(path).iterdir()]


# --- writing --------------------------------------------------------------------------------------
class FileSystemWriter(BlockingAsyncStager, StorageWriter):
    """FileSystemWriter(path, single_file_per_rank=True, sync_files=True, thread_count=1,
    per_thread_copy_ahead=10000000, cache_staged_state_dict=False, overwrite=True)

    Writes a checkpoint into a folder. See Note [Old or new checkpoint].

    Args:
        path: the folder; made if it is not there.
        single_file_per_rank: one file for each rank and thread, or one for each piece.
        sync_files: whether files are brought to the disk before the next step: without it a
            checkpoint may be lost or broken when the machine fails.
        thread_count: how many threads write, each its own files.
        cache_staged_state_dict: whether `async_save` keeps its copy for the next time.
        overwrite: whether a checkpoint that is already there may be replaced.
        per_thread_copy_ahead: of no effect here.

    >>> import tempfile
    >>> import rushlight.distributed.checkpoint as dcp
    >>> folder = tempfile.TemporaryDirectory()
    >>> writer = dcp.FileSystemWriter(folder.name)
    >>> _ = dcp.save({"w": torch.ones(2)}, storage_writer=writer, no_dist=True)
    >>> sorted(os.listdir(folder.name))
    ['.metadata', '__0_0.distcp']
    """

    def __init__(
        self, path: PathLike, single_file_per_rank: bool = True, sync_files: bool = True,
        thread_count: int = 1, per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False, overwrite: bool = True,
        _extensions: Sequence[Any] | None = None,
        serialization_format: SerializationFormat = SerializationFormat.TORCH_SAVE,
    ) -> None:  # fmt: skip
        super().__init__(cache_staged_state_dict=cache_staged_state_dict)
        if _extensions:
            raise ValueError("rushlight writes checkpoints without stream extensions")
        if serialization_format is not SerializationFormat.TORCH_SAVE:
            raise ValueError(
                f"rushlight writes checkpoints as {SerializationFormat.TORCH_SAVE}, not as "
                f"{serialization_format}"
            )
        self.fs = FileSystem()
        self.path = self.fs.init_path(path)
        self.single_file_per_rank = single_file_per_rank
        self.sync_files = sync_files
        self.thread_count = thread_count
        self.per_thread_copy_ahead = per_thread_copy_ahead
        self.overwrite = overwrite
        self.serialization_format = serialization_format
        self.save_id = str(uuid.uuid4())
        self.rank: int | None = None
        self.use_collectives = True

    def reset(self, checkpoint_id: PathLike | None = None) -> None:
        if checkpoint_id:
            self.path = self.fs.init_path(checkpoint_id)
        self.save_id = str(uuid.uuid4())

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        self.rank = kwargs.get("rank")
        self.use_collectives = kwargs.get("use_collectives", True)

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        self.fs.mkdir(self.path)
        if self.fs.exists(self._get_metadata_path(None if self.use_collectives else 0)):
            if not self.overwrite:
                raise RuntimeError(f"Checkpoint already exists and {self.overwrite=}.")
            warnings.warn(
                f"Detected an existing checkpoint in {self.path}, overwriting since "
                f"{self.overwrite=}. Set it to False to raise an error instead.",
                stacklevel=2,
            )
        if self.rank is not None and not self.use_collectives:
            plan = replace(plan, storage_data=_StoragePrefix(f"__{self.rank}_"))
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        return [
            replace(plan, storage_data=_StoragePrefix(f"__{rank}_"))
            if plan.storage_data is None
            else plan
            for rank, plan in enumerate(plans)
        ]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        if self.single_file_per_rank:
            shares = _split_by_size_and_type(self.thread_count, plan.items)
        else:
            shares = [[item] for item in plan.items]
        names = self._free_names(plan.storage_data.prefix)
        jobs = [(next(names), share, planner) for share in shares]
        results: list[WriteResult] = []
        if self.thread_count == 1:
            for job in jobs:
                results += self._write_file(*job)
        else:
            with ThreadPoolExecutor(self.thread_count) as threads:
                for found in threads.map(lambda job: self._write_file(*job), jobs):
                    results += found
        written: Future[list[WriteResult]] = Future()
        written.set_result(results)
        return written

    def _free_names(self, prefix: str) -> Iterator[str]:
        """Names for files, of which no file of an older checkpoint is called so."""
        number = 0
        while True:
            name = f"{prefix}{number}{DEFAULT_SUFFIX}"
            if not self.fs.exists(self.fs.concat_path(self.path, name)):
                yield name
            number += 1

    def _write_file(
        self, name: str, items: list[WriteItem], planner: SavePlanner
    ) -> list[WriteResult]:
        results = []
        with self._replacing(self.fs.concat_path(self.path, name)) as file:
            # objects first, as PyTorch has them
            for item in sorted(items, key=lambda item: item.type is not WriteItemType.BYTE_IO):
                offset = file.tell()
                data = planner.resolve_data(item)
                if item.type is not WriteItemType.BYTE_IO:
                    data = _as_bytes(data)
                file.write(data.getbuffer())
                length = file.tell() - offset
                place = _StorageInfo(name, offset, length)
                results.append(WriteResult(item.index, length, place))
        return results

    @contextmanager
    def _replacing(self, path: Path) -> Iterator[IO[bytes]]:
        """A file that gets its name when it is whole."""
        part = path.with_name(path.name + ".tmp")
        with self.fs.create_stream(part, "wb") as file:
            yield file
            file.flush()
            if self.sync_files:
                os.fsync(file.fileno())
        self.fs.rename(part, path)

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        metadata.version = CURRENT_DCP_VERSION
        metadata.storage_data = {
            result.index: result.storage_data for found in results for result in found
        }
        metadata.storage_meta = self.storage_meta()
        if self.sync_files:
            _sync_folder(self.path)  # the names of the files with numbers
        alone = not self.use_collectives and self.rank is not None
        data, _ = _pickled(metadata, pickle, 2, False)
        with self._replacing(self._get_metadata_path(self.rank if alone else None)) as file:
            file.write(data)
        if self.sync_files:
            _sync_folder(self.path)
        self._remove_old(metadata, str(self.rank) if alone else None)

    def _remove_old(self, metadata: Metadata, rank: str | None) -> None:
        """Remove what an older checkpoint left, of one rank or of all."""
        used = {place.relative_path for place in metadata.storage_data.values()}
        for path in map(Path, self.fs.ls(self.path)):
            found = _NUMBERED.fullmatch(path.name)
            if found and path.name not in used and rank in (None, found[1]):
                self.fs.rm_file(path)

    def storage_meta(self) -> StorageMeta | None:
        return StorageMeta(checkpoint_id=self.checkpoint_id, save_id=self.save_id)

    def _get_metadata_path(self, rank: int | None = None) -> Path:
        return self.fs.concat_path(self.path, _metadata_name(rank))

    @property
    def checkpoint_id(self) -> PathLike:
        """The folder."""
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: PathLike) -> bool:
        return FileSystem.validate_checkpoint_id(checkpoint_id)


def _metadata_name(rank: int | None) -> str:
    return _metadata_fn if rank is None else f"__{rank}{_metadata_fn}"


def _sync_folder(path: Path) -> None:
    """Bring the names of a folder's files to the disk, where the system can."""
    if os.name == "posix":
        folder = os.open(path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _as_bytes(tensor: Any) -> io.BytesIO:
    """A tensor as `torch.save` writes it, without the memory around a view."""
    tensor = tensor.detach().cpu()
    if tensor.untyped_storage().nbytes() != tensor.nbytes:
        tensor = tensor.clone()
    data = io.BytesIO()
    save(tensor, data)
    return data


def _split_by_size_and_type(bins: int, items: list[WriteItem]) -> list[list[WriteItem]]:
    """Items shared out over files: objects in turn, tensors to the file that is shortest."""
    if bins == 1:
        return [items]
    shares: list[list[WriteItem]] = [[] for _ in range(bins)]
    sizes = [0] * bins
    objects = [item for item in items if item.type is WriteItemType.BYTE_IO]
    tensors = [item for item in items if item.type is not WriteItemType.BYTE_IO]
    for n, item in enumerate(objects):
        shares[n % bins].append(item)
    for item in sorted(tensors, key=lambda item: item.tensor_storage_size() or 0, reverse=True):
        shortest = sizes.index(min(sizes))
        shares[shortest].append(item)
        sizes[shortest] += item.tensor_storage_size() or 0
    return shares


# --- reading --------------------------------------------------------------------------------------
class FileSystemReader(StorageReader):
    """FileSystemReader(path): reads a checkpoint from a folder, PyTorch's or rushlight's.

    `.metadata` and the objects of a checkpoint are pickles, and pickles can run code: read only
    checkpoints that you trust. Tensors are read as `torch.load(weights_only=True)` reads them.

    >>> import tempfile
    >>> import rushlight.distributed.checkpoint as dcp
    >>> folder = tempfile.TemporaryDirectory()
    >>> _ = dcp.save({"w": torch.ones(2)}, checkpoint_id=folder.name, no_dist=True)
    >>> reader = dcp.FileSystemReader(folder.name)
    >>> reader.read_metadata().state_dict_metadata["w"].size
    torch.Size([2])
    """

    def __init__(self, path: PathLike, _extension_registry: Any = None) -> None:
        self.fs = FileSystem()
        self.path = self.fs.init_path(path)
        self.storage_data: dict[MetadataIndex, _StorageInfo] = {}
        self.load_id = str(uuid.uuid4())
        self.rank: int | None = None
        self.use_collectives = True

    def reset(self, checkpoint_id: PathLike | None = None) -> None:
        self.storage_data = {}
        if checkpoint_id:
            self.path = self.fs.init_path(checkpoint_id)
        self.load_id = str(uuid.uuid4())

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        path = self.fs.concat_path(self.path, _metadata_name(kwargs.get("rank")))
        with self.fs.create_stream(path, "rb") as file:
            data = file.read()
        try:
            metadata = _Unpickler(io.BytesIO(data)).load()
        except Exception as error:
            raise RuntimeError(f"{path} is damaged: {error or type(error).__name__}") from error
        if not isinstance(metadata, Metadata):
            raise RuntimeError(f"{path} holds no metadata of a checkpoint, but a {type(metadata)}")
        if getattr(metadata, "storage_meta", None) is None:
            metadata.storage_meta = StorageMeta()
        assert metadata.storage_meta is not None
        metadata.storage_meta.load_id = self.load_id
        return metadata

    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        if metadata.storage_data is None:
            raise AssertionError("storage_data must not be None in metadata")
        self.storage_data = metadata.storage_data
        self.rank = kwargs.get("rank")
        self.use_collectives = kwargs.get("use_collectives", True)

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        by_file: dict[str, list[ReadItem]] = {}
        for item in plan.items:
            by_file.setdefault(self._place(item).relative_path, []).append(item)
        for name, items in by_file.items():
            path = self.fs.concat_path(self.path, name)
            items.sort(key=lambda item: self._place(item).offset)  # files are read from the front
            with self.fs.create_stream(path, "rb") as file, no_grad():
                self._read_file(file, path, items, planner)
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def _place(self, item: ReadItem) -> _StorageInfo:
        if item.storage_index not in self.storage_data:
            raise RuntimeError(
                f"{self.path / _metadata_fn} does not say where {item.storage_index} lies"
            )
        return self.storage_data[item.storage_index]

    def _read_file(
        self, file: Any, path: Path, items: list[ReadItem], planner: LoadPlanner
    ) -> None:
        tensor: Any = None
        last: _StorageInfo | None = None
        for item in items:
            place = self._place(item)
            if getattr(place, "transform_descriptors", None):
                raise RuntimeError(
                    f"{path} was written through stream extensions "
                    f"{place.transform_descriptors}, which rushlight has not"
                )
            if item.type is LoadItemType.BYTE_IO:
                data = read_exactly(file, place.offset, place.length, path)
                with _naming(path, item):
                    planner.load_bytes(item, data)
                continue
            if place is not last:  # several boxes may come from one piece
                data = read_exactly(file, place.offset, place.length, path)
                with _naming(path, item):
                    tensor = load(data, map_location="cpu", weights_only=True)
                last = place
            part = narrow_tensor_by_index(tensor, item.storage_offsets, item.lengths)
            target = planner.resolve_tensor(item).detach()
            if target.size() != part.size():
                raise AssertionError(
                    f"req {item.storage_index} mismatch sizes {target.size()} vs {part.size()}"
                )
            target.copy_(part)
            planner.commit_tensor(item, target)

    @property
    def checkpoint_id(self) -> PathLike:
        """The folder."""
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: PathLike) -> bool:
        return FileSystem.validate_checkpoint_id(checkpoint_id)


@contextmanager
def _naming(path: Path, item: ReadItem) -> Iterator[None]:
    """Let an error of a damaged piece say which file it lies in, and what it is."""
    try:
        yield
    except Exception as error:
        raise RuntimeError(
            f"{path} is damaged: cannot read {item.storage_index.fqn!r}: {error}"
        ) from error
