"""`FileStore`: a store in a file that all processes see.

The file is a journal: each change is a line of JSON put behind the others, under a lock of the
file. A process reads what was written since it last looked, and applies it to a table of its own.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from rushlight.distributed.store import Table, TableStore

__all__ = ["FileStore"]
__dir__ = __all__.copy

_PAUSE = 0.01  # seconds between two looks at the file


class _Journal:
    """A table that is written to a file, and read from it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.table = Table()
        self.read = 0  # bytes of the file that are in the table
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def _open(self) -> Iterator[Any]:
        """The file, locked, with the table up to date."""
        import fcntl

        with self._lock, open(self.path, "a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(self.read)
            for line in file:
                name, *given = json.loads(line)
                getattr(self.table, name)(*(_plain(x) for x in given))
            self.read = file.tell()
            yield file  # closing it gives the lock back

    def _change(self, name: str, *given: Any) -> Any:
        with self._open() as file:
            result = getattr(self.table, name)(*given)
            line = json.dumps([name, *(_packed(x) for x in given)]).encode() + b"\n"
            file.write(line)
            file.flush()
            self.read += len(line)
            return result

    def set(self, key: str, value: bytes) -> None:
        self._change("set", key, value)

    def append(self, key: str, value: bytes) -> None:
        self._change("append", key, value)

    def add(self, key: str, amount: int) -> int:
        return int(self._change("add", key, amount))

    def compare_set(self, key: str, expected: bytes, desired: bytes) -> bytes:
        have: bytes = self._change("compare_set", key, expected, desired)
        return have

    def delete(self, key: str) -> bool:
        return bool(self._change("delete", key))

    def push(self, key: str, value: bytes) -> None:
        self._change("push", key, value)

    def pop(self, key: str, seconds: float) -> bytes | None:
        deadline = time.monotonic() + seconds
        while True:
            with self._open():
                filled = self.table.queue_len(key) > 0
            if filled and (value := self._change("pop", key, 0.0)) is not None:
                return bytes(value)
            if time.monotonic() >= deadline:
                return None
            time.sleep(_PAUSE)

    def queue_len(self, key: str) -> int:
        with self._open():
            return self.table.queue_len(key)

    def get(self, key: str) -> bytes | None:
        with self._open():
            return self.table.get(key)

    def keys(self) -> list[str]:
        with self._open():
            return self.table.keys()

    def check(self, keys: Sequence[str]) -> bool:
        with self._open():
            return self.table.check(keys)

    def wait(self, keys: Sequence[str], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not self.check(keys):
            if time.monotonic() >= deadline:
                return False
            time.sleep(_PAUSE)
        return True


def _packed(value: Any) -> Any:
    return {"b": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def _plain(value: Any) -> Any:
    return base64.b64decode(value["b"]) if isinstance(value, dict) else value


class FileStore(TableStore):
    """FileStore(file_name, world_size=-1): a store in a file, for processes that share a disk.

    The last of `world_size` processes to end removes the file.

    >>> import tempfile, os
    >>> store = torch.distributed.FileStore(os.path.join(tempfile.mkdtemp(), "keys"), 1)
    >>> store.add("count", 1)
    1
    """

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        self._path = os.fspath(file_name)
        self._world_size = world_size
        self._table = _Journal(self._path)
        self._table.add("users/", 1)

    @property
    def path(self) -> str:
        """The file."""
        return self._path

    def clone(self) -> FileStore:
        """Another store over the same file."""
        other = FileStore.__new__(FileStore)
        other._path, other._world_size, other._table = self._path, 0, _Journal(self._path)
        return other

    def __del__(self) -> None:
        if getattr(self, "_world_size", 0) > 0 and os.path.exists(self._path):
            with contextlib.suppress(OSError):  # another process was quicker
                if self._table.add("gone/", 1) >= self._world_size:
                    os.remove(self._path)
