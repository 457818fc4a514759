"""`TCPStore`: a table of keys that one process serves and others ask over TCP.

A message is a row of byte strings, each behind its length. The first is the request; the answer of
a request has its results. Each connection has a thread at the server, so that one that waits for a
key keeps nobody else waiting. A client takes a free connection for a request, or makes one.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Final

from rushlight.distributed.errors import DistNetworkError
from rushlight.distributed.store import PATIENCE, Table, TableStore, remaining

__all__ = ["TCPStore"]
__dir__ = __all__.copy

_NUMBER: Final = struct.Struct("!I")
_LIMIT: Final = 1 << 30  # a longer message is not ours
_MISSING: Final = (b"",)  # an answer that begins so has no value


def send_message(connection: socket.socket, *fields: bytes) -> None:
    """Write a message."""
    parts = [_NUMBER.pack(len(fields))]
    for field in fields:
        parts += (_NUMBER.pack(len(field)), field)
    connection.sendall(b"".join(parts))


def read_message(connection: socket.socket) -> list[bytes] | None:
    """Read a message; None if the other side closed the connection."""
    head = _read(connection, _NUMBER.size)
    if head is None:
        return None
    fields = []
    for _ in range(_NUMBER.unpack(head)[0]):
        size = _read(connection, _NUMBER.size)
        if size is None or _NUMBER.unpack(size)[0] > _LIMIT:
            return None
        field = _read(connection, _NUMBER.unpack(size)[0])
        if field is None:
            return None
        fields.append(field)
    return fields


def _read(connection: socket.socket, count: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < count:
        try:
            part = connection.recv(min(count - len(parts), 1 << 20))
        except ConnectionError:
            return None
        if not part:
            return None
        parts += part
    return bytes(parts)


class Server:
    """Answers the requests of clients from a table, in threads.

    A connection that has said `attend NAME` stands for a process: when it ends without `leave`,
    the name is put behind the value of the key `gone`, and whoever follows that key is told.
    """

    def __init__(self, host: str, port: int, listening: int | None = None) -> None:
        self.table = Table()
        if listening is not None:
            self.socket = socket.socket(fileno=listening)
        else:
            self.socket = socket.create_server(("", port), backlog=4096)
        self.port = int(self.socket.getsockname()[1])
        threading.Thread(target=self._accept, name="rushlight store", daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:  # closed
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(
                target=self._serve, args=(connection,), name="rushlight store", daemon=True
            ).start()

    def _serve(self, connection: socket.socket) -> None:
        attending: bytes | None = None
        with connection:
            while (message := read_message(connection)) is not None:
                if message[0] == b"attend":
                    attending = message[1]
                elif message[0] == b"leave":
                    attending = None
                try:
                    send_message(connection, *self._answer(message))
                except OSError:
                    break
        if attending is not None:
            self.table.append("gone", attending + b"\n")

    def _answer(self, message: list[bytes]) -> Sequence[bytes]:
        name, *given = message
        table = self.table
        key = given[0].decode() if given else ""
        match name:
            case b"set":
                table.set(key, given[1])
            case b"append":
                table.append(key, given[1])
            case b"get":
                return _optional(table.get(key))
            case b"add":
                return [str(table.add(key, int(given[1]))).encode()]
            case b"compare_set":
                return [table.compare_set(key, given[1], given[2])]
            case b"wait":
                names = [name.decode() for name in given[1:]]
                return [b"1" if table.wait(names, float(given[0])) else b"0"]
            case b"check":
                return [b"1" if table.check([name.decode() for name in given]) else b"0"]
            case b"delete":
                return [b"1" if table.delete(key) else b"0"]
            case b"keys":
                return [name.encode() for name in table.keys()]  # noqa: SIM118  # no dictionary
            case b"push":
                table.push(key, given[1])
            case b"pop":
                return _optional(table.pop(key, float(given[1])))
            case b"queue_len":
                return [str(table.queue_len(key)).encode()]
            case b"longer":
                return _optional(table.longer(key, int(given[1]), float(given[2])))
        return []

    def close(self) -> None:
        """Take no more connections; those that are there go on."""
        self.socket.close()


def _optional(value: bytes | None) -> Sequence[bytes]:
    return _MISSING if value is None else (b"1", value)


class Client:
    """The table of a server, as if it were here."""

    def __init__(self, host: str, port: int, timeout: timedelta) -> None:
        self.host, self.port, self.timeout = host, port, timeout
        self._free: list[socket.socket] = []
        self._lock = threading.Lock()
        self._free.append(self.connect())

    def connect(self) -> socket.socket:
        """A new connection. The server may be a moment late."""
        deadline = time.monotonic() + self.timeout.total_seconds()
        pause = 0.01
        while True:
            try:
                connection = socket.create_connection(
                    (self.host, self.port), max(0.1, remaining(deadline))
                )
                break
            except OSError as error:
                if time.monotonic() + pause >= deadline:
                    raise DistNetworkError(
                        f"The client socket has timed out after "
                        f"{self.timeout.total_seconds() * 1000:.0f}ms while trying to connect to "
                        f"({self.host}, {self.port}).\nIs the process with rank 0 running, and "
                        "does it serve this port (MASTER_ADDR and MASTER_PORT are the same everywhere)?"
                    ) from error
                time.sleep(pause)
                pause = min(2 * pause, 0.5)
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def ask(self, *message: bytes) -> list[bytes]:
        """Send a request, and return the answer."""
        with self._lock:
            connection = self._free.pop() if self._free else None
        connection = connection or self.connect()
        try:
            send_message(connection, *message)
            answer = read_message(connection)
        except OSError:
            answer = None
        if answer is None:
            connection.close()
            raise DistNetworkError(
                f"Connection closed by the store at ({self.host}, {self.port}): the process that "
                "keeps it has ended."
            )
        with self._lock:
            self._free.append(connection)
        return answer

    def set(self, key: str, value: bytes) -> None:
        self.ask(b"set", key.encode(), value)

    def append(self, key: str, value: bytes) -> None:
        self.ask(b"append", key.encode(), value)

    def get(self, key: str) -> bytes | None:
        return _value(self.ask(b"get", key.encode()))

    def add(self, key: str, amount: int) -> int:
        return int(self.ask(b"add", key.encode(), str(amount).encode())[0])

    def compare_set(self, key: str, expected: bytes, desired: bytes) -> bytes:
        return self.ask(b"compare_set", key.encode(), expected, desired)[0]

    def wait(self, keys: Sequence[str], seconds: float) -> bool:
        names = [key.encode() for key in keys]
        return self.ask(b"wait", str(seconds).encode(), *names) == [b"1"]

    def check(self, keys: Sequence[str]) -> bool:
        return self.ask(b"check", *(key.encode() for key in keys)) == [b"1"]

    def delete(self, key: str) -> bool:
        return self.ask(b"delete", key.encode()) == [b"1"]

    def keys(self) -> list[str]:
        return [key.decode() for key in self.ask(b"keys")]

    def push(self, key: str, value: bytes) -> None:
        self.ask(b"push", key.encode(), value)

    def pop(self, key: str, seconds: float) -> bytes | None:
        return _value(self.ask(b"pop", key.encode(), str(seconds).encode()))

    def queue_len(self, key: str) -> int:
        return int(self.ask(b"queue_len", key.encode())[0])

    def longer(self, key: str, than: int, seconds: float) -> bytes | None:
        return _value(self.ask(b"longer", key.encode(), str(than).encode(), str(seconds).encode()))

    def close(self) -> None:
        """Close the connections that nobody uses."""
        with self._lock:
            while self._free:
                self._free.pop().close()


def _value(answer: list[bytes]) -> bytes | None:
    return answer[1] if answer[0] else None


class TCPStore(TableStore):
    """TCPStore(host_name, port, world_size=None, is_master=False, timeout=timedelta(seconds=300),
    wait_for_workers=True, multi_tenant=False, master_listen_fd=None, use_libuv=True)

    A store that one process serves, the one with `is_master`, and others ask. Port 0 takes a free
    one, which `port` tells.

    >>> store = torch.distributed.TCPStore("127.0.0.1", 0, 1, is_master=True)
    >>> other = torch.distributed.TCPStore("127.0.0.1", store.port)
    >>> other.set("first", "1")
    >>> store.get("first")
    b'1'
    """

    def __init__(
        self, host_name: str, port: int, world_size: int | None = None, is_master: bool = False,
        timeout: timedelta = PATIENCE, wait_for_workers: bool = True, multi_tenant: bool = False,
        master_listen_fd: int | None = None, use_libuv: bool = True,
    ) -> None:  # fmt: skip
        self._timeout = timeout
        self._server: Server | None = None
        if is_master:
            self._server = self._start(host_name, port, multi_tenant, master_listen_fd)
            port = self._server.port
        self._table = Client(host_name, port, timeout)
        self._world_size = world_size
        if wait_for_workers and world_size:
            if self._table.add("init/", 1) == world_size:
                self._table.set("init/all", b"1")
            self.wait(["init/all"], timeout)

    @staticmethod
    def _start(host: str, port: int, shared: bool, listening: int | None) -> Server:
        with _serving_lock:
            if shared and (known := _serving.get(port)) is not None:
                return known
            try:
                server = Server(host, port, listening)
            except OSError as error:
                raise DistNetworkError(
                    f"The server socket has failed to listen on any local network address. "
                    f"port: {port}, useIpv6: false, code: {error.errno}, name: "
                    f"{_name(error)}, message: {(error.strerror or '').lower()}"
                ) from error
            if shared:
                _serving[server.port] = server
            return server

    @property
    def host(self) -> str:
        """The name of the host that serves it."""
        return str(self._table.host)

    @property
    def port(self) -> int:
        """The port at which it is served."""
        return int(self._table.port)

    @property
    def libuvBackend(self) -> bool:
        """Whether libuv serves it: it does not, Python's threads do."""
        return False

    def _late(self, keys: Sequence[str], limit: timedelta) -> str:
        names = ", ".join(f"/{key}" for key in keys)
        return f"wait timeout after {limit.total_seconds() * 1000:.0f}ms, keys: {names}"

    def clone(self) -> TCPStore:
        """Another client of the same server."""
        return TCPStore(self.host, self.port, timeout=self._timeout, wait_for_workers=False)

    def __del__(self) -> None:
        close: Callable[[], None] | None = getattr(getattr(self, "_table", None), "close", None)
        if close is not None:
            close()
        if (server := getattr(self, "_server", None)) is not None and server not in (
            *_serving.values(),
        ):
            with contextlib.suppress(OSError):  # the interpreter may have closed it
                server.close()

    def __getstate__(self) -> dict[str, Any]:
        return {"host": self.host, "port": self.port, "timeout": self._timeout}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(  # type: ignore[misc]  # a client, wherever it is unpickled
            state["host"], state["port"], timeout=state["timeout"], wait_for_workers=False
        )


def _name(error: OSError) -> str:
    import errno

    return errno.errorcode.get(error.errno or 0, "")


_serving: dict[int, Server] = {}  # by port: those that several stores of this process may share
_serving_lock = threading.Lock()
