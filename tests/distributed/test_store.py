"""Stores: one behaviour over a dictionary, over TCP and over a file; as PyTorch's where it is."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rushlight import distributed
from tests.harness import LIBRARIES, pytorch

Make = Callable[[Any, Path], Any]

KINDS: dict[str, Make] = {
    "hash": lambda dist, folder: dist.HashStore(),
    "tcp": lambda dist, folder: dist.TCPStore("127.0.0.1", 0, 1, True),
    "file": lambda dist, folder: dist.FileStore(str(folder / "keys"), 1),
    "prefix": lambda dist, folder: dist.PrefixStore("part", dist.HashStore()),
}


def library(name: str) -> Any:
    return distributed if name == "rushlight" else pytorch().distributed


@pytest.mark.parametrize("lib", LIBRARIES)
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_keys_and_values(lib: str, kind: str, tmp_path: Path) -> None:
    dist = library(lib)
    store = KINDS[kind](dist, tmp_path)
    store.set("text", "value")
    store.set("bytes", b"\x00\xff")
    assert store.get("text") == b"value" and store.get("bytes") == b"\x00\xff"
    assert [store.add("count", 2), store.add("count", -5)] == [2, -3]
    assert store.get("count") == b"-3"
    assert store.compare_set("new", "", "first") == b"first"
    assert store.compare_set("new", "wrong", "second") == b"first"
    assert store.compare_set("new", "first", "second") == b"second"
    assert store.compare_set("absent", "expected", "x") == b"expected"
    assert store.check(["text", "new"]) and not store.check(["text", "nothing"])
    if kind != "file":  # PyTorch's file has none of these
        assert store.delete_key("text") and not store.delete_key("text")
        store.append("grown", "a")
        store.append("grown", "b")
        assert store.multi_get(["grown", "new"]) == [b"ab", b"second"]
        store.multi_set(["m", "n"], ["1", "2"])
        assert store.get("n") == b"2"
    store.set_timeout(timedelta(milliseconds=100))
    assert store.timeout == timedelta(milliseconds=100)
    with pytest.raises(RuntimeError, match="(?i)timeout"):
        store.get("nothing")
    with pytest.raises(RuntimeError, match="(?i)timeout"):
        store.wait(["new", "nothing"], timedelta(milliseconds=50))


@pytest.mark.parametrize("kind", ["hash", "tcp", "prefix"])
@pytest.mark.parametrize("lib", LIBRARIES)
def test_queues(lib: str, kind: str, tmp_path: Path) -> None:
    dist = library(lib)
    store = KINDS[kind](dist, tmp_path)
    store.queue_push("q", "one")
    store.queue_push("q", "two")
    assert store.queue_len("q") == 2
    assert [store.queue_pop("q"), store.queue_pop("q")] == [b"one", b"two"]
    with pytest.raises(dist.QueueEmptyError, match="queue is empty"):
        store.queue_pop("q", False)


def test_many_clients_of_a_server() -> None:
    server = distributed.TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False)
    other = distributed.TCPStore("127.0.0.1", server.port, wait_for_workers=False)
    got: list[bytes] = []
    waiting = threading.Thread(target=lambda: got.append(other.get("late")))
    waiting.start()
    other.set("meanwhile", "1")  # a client that waits in one thread answers in another
    assert server.get("meanwhile") == b"1"
    server.set("late", "come")
    waiting.join(30)
    assert got == [b"come"]
    copied = pickle.loads(pickle.dumps(server))
    assert copied.get("late") == b"come" and copied.port == server.port
    workers = [threading.Thread(target=server.clone().add, args=("n", 1)) for _ in range(20)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert server.add("n", 0) == 20


def test_errors_say_what_to_do() -> None:
    with pytest.raises(distributed.DistNetworkError, match="trying to connect to") as caught:
        distributed.TCPStore("127.0.0.1", 1, timeout=timedelta(milliseconds=200))
    assert "MASTER_ADDR" in str(caught.value)
    taken = distributed.TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False)
    with pytest.raises(distributed.DistNetworkError, match="EADDRINUSE"):
        distributed.TCPStore("127.0.0.1", taken.port, None, True, wait_for_workers=False)
    with pytest.raises(distributed.DistStoreError, match=r"wait timeout after 100ms, keys: /k"):
        taken.wait(["k"], timedelta(milliseconds=100))


def test_a_store_whose_server_has_ended() -> None:
    """An error at once, not a wait."""
    server = distributed.TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False)
    client = distributed.TCPStore(
        "127.0.0.1", server.port, timeout=timedelta(seconds=1), wait_for_workers=False
    )
    import socket

    for connection in client._table._free:
        connection.shutdown(socket.SHUT_RDWR)
    with pytest.raises(distributed.DistNetworkError, match="has ended"):
        client.get("key")


def test_the_file_is_removed_by_the_last(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    first, second = (distributed.FileStore(str(path), 2) for _ in range(2))
    first.set("key", "value")
    assert second.get("key") == b"value"
    del first
    assert path.exists()
    del second
    assert not path.exists()


def test_a_store_of_ones_own() -> None:
    class Mine(distributed.Store):
        def __init__(self) -> None:
            self.kept: dict[str, bytes] = {}

        def set(self, key: str, value: Any) -> None:
            self.kept[key] = value

        def get(self, key: str) -> bytes:
            return self.kept[key]

    store = Mine()
    store.multi_set(["a", "b"], [b"1", b"2"])
    assert store.multi_get(["a", "b"]) == [b"1", b"2"]
    with pytest.raises(NotImplementedError, match=r"Mine\.add"):
        store.add("n", 1)
