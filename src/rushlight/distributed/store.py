"""Stores: a few keys and values that the processes of a group share while they find each other.

`Table` is the content; a `HashStore` keeps one for the threads of a process, the server of a
`TCPStore` one for many processes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from rushlight.distributed.errors import DistStoreError, QueueEmptyError

__all__ = ["HashStore", "PrefixStore", "Store"]
__dir__ = __all__.copy

PATIENCE: Final = timedelta(seconds=300)


def as_bytes(value: Any) -> bytes:
    """A value as a store keeps it."""
    if isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else bytes(value)


class Table:
    """Keys with values, and queues; who waits for a key is woken when it comes."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.queues: dict[str, list[bytes]] = {}
        self.changed = threading.Condition()

    def set(self, key: str, value: bytes) -> None:
        with self.changed:
            self.values[key] = value
            self.changed.notify_all()

    def append(self, key: str, value: bytes) -> None:
        with self.changed:
            self.values[key] = self.values.get(key, b"") + value
            self.changed.notify_all()

    def add(self, key: str, amount: int) -> int:
        with self.changed:
            total = int(self.values.get(key, b"0")) + amount
            self.values[key] = str(total).encode()
            self.changed.notify_all()
            return total

    def compare_set(self, key: str, expected: bytes, desired: bytes) -> bytes:
        with self.changed:
            have = self.values.get(key)
            if have is None and expected:
                return expected
            if have is None or have == expected:
                self.values[key] = desired
                self.changed.notify_all()
                return desired
            return have

    def wait(self, keys: Sequence[str], seconds: float) -> bool:
        """Whether all keys are there, at once or after some time."""
        with self.changed:
            return self.changed.wait_for(lambda: self.check(keys), seconds)

    def check(self, keys: Sequence[str]) -> bool:
        return all(key in self.values for key in keys)

    def get(self, key: str) -> bytes | None:
        with self.changed:
            return self.values.get(key)

    def delete(self, key: str) -> bool:
        with self.changed:
            return self.values.pop(key, None) is not None

    def keys(self) -> list[str]:
        with self.changed:
            return sorted(self.values)

    def push(self, key: str, value: bytes) -> None:
        with self.changed:
            self.queues.setdefault(key, []).append(value)
            self.changed.notify_all()

    def pop(self, key: str, seconds: float) -> bytes | None:
        """The oldest value of a queue; None if none comes in time."""
        with self.changed:
            if not self.changed.wait_for(lambda: bool(self.queues.get(key)), seconds):
                return None
            return self.queues[key].pop(0)

    def queue_len(self, key: str) -> int:
        with self.changed:
            return len(self.queues.get(key, ()))

    def longer(self, key: str, than: int, seconds: float) -> bytes | None:
        """A value once it is longer than so many bytes; None if it does not grow in time."""
        with self.changed:
            grown = self.changed.wait_for(
                lambda: len(self.values.get(key, b"")) > than, None if seconds < 0 else seconds
            )
            return self.values[key] if grown else None


class Store:
    """What all stores can do. A class of one's own overrides what it needs.

    >>> isinstance(torch.distributed.HashStore(), torch.distributed.Store)
    True
    """

    _timeout = PATIENCE

    def set(self, key: str, value: Any) -> None:
        """Keep a value under a key."""
        raise NotImplementedError(f"{type(self).__name__}.set")

    def get(self, key: str) -> bytes:
        """The value of a key; waits for it."""
        raise NotImplementedError(f"{type(self).__name__}.get")

    def add(self, key: str, amount: int) -> int:
        """Add to a counter, which starts at 0; the result is its value."""
        raise NotImplementedError(f"{type(self).__name__}.add")

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys are there."""
        raise NotImplementedError(f"{type(self).__name__}.wait")

    @property
    def timeout(self) -> timedelta:
        """How long `get` and `wait` wait."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Say how long `get` and `wait` wait."""
        self._timeout = timeout

    def has_extended_api(self) -> bool:
        """Whether `append`, `multi_get` and `multi_set` work."""
        return False

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of several keys."""
        return [self.get(key) for key in keys]

    def multi_set(self, keys: Sequence[str], values: Sequence[Any]) -> None:
        """Keep several values."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def barrier(self, key: str, world_size: int, timeout: timedelta | None = None) -> None:
        """Wait until `world_size` callers have come here."""
        if self.add(f"{key}/count", 1) == world_size:
            self.set(f"{key}/all", b"1")
        self.wait([f"{key}/all"], timeout or self._timeout)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class TableStore(Store):
    """A store over a table that `_table` gives: here itself, or a connection to one far away."""

    _table: Any
    _out_of_time = "Wait timeout"

    def set(self, key: str, value: Any) -> None:
        self._table.set(key, as_bytes(value))

    def get(self, key: str) -> bytes:
        self.wait([key])
        value: bytes = self._table.get(key)
        return value

    def append(self, key: str, value: Any) -> None:
        """Put a value behind the one that is there."""
        self._table.append(key, as_bytes(value))

    def add(self, key: str, amount: int) -> int:
        total: int = self._table.add(key, int(amount))
        return total

    def compare_set(self, key: str, expected_value: Any, desired_value: Any) -> bytes:
        """Keep a value if the one that is there is as expected; the result is what is there."""
        have: bytes = self._table.compare_set(
            key, as_bytes(expected_value), as_bytes(desired_value)
        )
        return have

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        limit = self._timeout if timeout is None else timeout
        if not self._table.wait(list(keys), limit.total_seconds()):
            raise DistStoreError(self._late(keys, limit))

    def _late(self, keys: Sequence[str], limit: timedelta) -> str:
        return self._out_of_time

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys are there now."""
        return bool(self._table.check(list(keys)))

    def delete_key(self, key: str) -> bool:
        """Remove a key; whether it was there."""
        return bool(self._table.delete(key))

    def num_keys(self) -> int:
        """How many keys there are."""
        return len(self._table.keys())

    def list_keys(self) -> list[str]:
        """The keys."""
        return list(self._table.keys())

    def has_extended_api(self) -> bool:
        return True

    def queue_push(self, key: str, value: Any) -> None:
        """Put a value at the end of a queue."""
        self._table.push(key, as_bytes(value))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take the oldest value of a queue."""
        value: bytes | None = self._table.pop(key, self._timeout.total_seconds() if block else 0.0)
        if value is None:
            raise QueueEmptyError("queue is empty") if not block else DistStoreError("Wait timeout")
        return value

    def queue_len(self, key: str) -> int:
        """How many values a queue has."""
        return int(self._table.queue_len(key))


class HashStore(TableStore):
    """HashStore(): a store for the threads of one process.

    >>> store = torch.distributed.HashStore()
    >>> store.set("first", "1")
    >>> store.get("first"), store.add("count", 2)
    (b'1', 2)
    """

    def __init__(self) -> None:
        self._table = Table()

    def clone(self) -> HashStore:
        """Another store over the same keys."""
        other = HashStore()
        other._table = self._table
        return other


class PrefixStore(Store):
    """PrefixStore(prefix, store): a part of another store, whose keys begin with a prefix.

    >>> store = torch.distributed.HashStore()
    >>> torch.distributed.PrefixStore("group", store).set("key", "value")
    >>> store.get("group/key")
    b'value'
    """

    def __init__(self, prefix: str, store: Any) -> None:
        self._prefix = prefix
        self._store = store

    @property
    def underlying_store(self) -> Any:
        """The store that this is a part of."""
        return self._store

    @property
    def _underlying_non_prefix_store(self) -> Any:
        below = self._store
        while isinstance(below, PrefixStore):
            below = below._store
        return below

    def _key(self, key: str) -> str:
        return f"{self._prefix}/{key}"

    def set(self, key: str, value: Any) -> None:
        self._store.set(self._key(key), value)

    def get(self, key: str) -> bytes:
        value: bytes = self._store.get(self._key(key))
        return value

    def append(self, key: str, value: Any) -> None:
        self._store.append(self._key(key), value)

    def add(self, key: str, amount: int) -> int:
        total: int = self._store.add(self._key(key), amount)
        return total

    def compare_set(self, key: str, expected_value: Any, desired_value: Any) -> bytes:
        have: bytes = self._store.compare_set(self._key(key), expected_value, desired_value)
        return have

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        names = [self._key(key) for key in keys]
        self._store.wait(names) if timeout is None else self._store.wait(names, timeout)

    def check(self, keys: Sequence[str]) -> bool:
        return bool(self._store.check([self._key(key) for key in keys]))

    def delete_key(self, key: str) -> bool:
        return bool(self._store.delete_key(self._key(key)))

    def num_keys(self) -> int:
        return int(self._store.num_keys())

    def list_keys(self) -> list[str]:
        start = self._key("")
        return [key[len(start) :] for key in self._store.list_keys() if key.startswith(start)]

    @property
    def timeout(self) -> timedelta:
        limit: timedelta = self._store.timeout
        return limit

    def set_timeout(self, timeout: timedelta) -> None:
        self._store.set_timeout(timeout)

    def has_extended_api(self) -> bool:
        return bool(self._store.has_extended_api())

    def queue_push(self, key: str, value: Any) -> None:
        self._store.queue_push(self._key(key), value)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        value: bytes = self._store.queue_pop(self._key(key), block)
        return value

    def queue_len(self, key: str) -> int:
        return int(self._store.queue_len(self._key(key)))

    def clone(self) -> PrefixStore:
        return PrefixStore(self._prefix, self._store.clone())


def remaining(deadline: float) -> float:
    """The seconds until a time, at least 0."""
    return max(0.0, deadline - time.monotonic())
