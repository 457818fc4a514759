"""Rendezvous: how a process learns its rank, how many there are, and the store they share.

`env://` reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT; `tcp://host:port` and `file:///path`
take rank and size from the address or from the arguments. Under `mpiexec` MPI knows both.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, Final, NamedTuple
from urllib.parse import ParseResult, parse_qsl, urlparse

from rushlight.distributed.constants import default_pg_timeout
from rushlight.distributed.file_store import FileStore
from rushlight.distributed.tcp_store import TCPStore

__all__ = ["register_rendezvous_handler", "rendezvous"]
__dir__ = __all__.copy

# What process managers say to the processes they start: rank, size, and rank and size on the host.
_MANAGERS: Final = (
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),  # MPICH, Intel MPI
    (
        "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
    ),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK", ""),
)  # fmt: skip


class Place(NamedTuple):
    """What `mpiexec` told this process."""

    rank: int
    size: int
    local_rank: int
    local_size: int


def place_by_mpi() -> Place | None:
    """The place of this process, if a process manager of MPI started it."""
    for rank, size, local, local_size in _MANAGERS:
        if rank in os.environ and size in os.environ:
            here = int(os.environ[rank])
            count = int(os.environ[size])
            return Place(
                here, count, int(os.environ.get(local, here)),
                int(os.environ.get(local_size, count)),
            )  # fmt: skip
    return None


def tell_environment(place: Place) -> None:
    """Set RANK and the others, which programs for `torchrun` read, as far as nobody set them."""
    told = {
        "RANK": place.rank, "WORLD_SIZE": place.size, "LOCAL_RANK": place.local_rank,
        "LOCAL_WORLD_SIZE": place.local_size,
        "GROUP_RANK": place.rank // max(place.local_size, 1),
    }  # fmt: skip
    for name, value in told.items():
        os.environ.setdefault(name, str(value))


Handler = Callable[..., Iterator[tuple[Any, int, int]]]
_handlers: dict[str, Handler] = {}


def register_rendezvous_handler(scheme: str, handler: Handler) -> None:
    """Let a function answer addresses that begin with `scheme`.

    It gets the address and keyword arguments, and yields store, rank and size.
    """
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> Any:
    """An iterator over (store, rank, size): what this process finds at an address.

    >>> import tempfile
    >>> path = tempfile.mkdtemp()
    >>> store, rank, size = next(torch.distributed.rendezvous(f"file://{path}/keys", 0, 1))
    >>> rank, size
    (0, 1)
    """
    if not isinstance(url, str):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    parts = urlparse(url)
    if parts.scheme not in _handlers:
        raise RuntimeError(f"No rendezvous handler for {parts.scheme}://")
    return _handlers[parts.scheme](_with_query(parts, rank, world_size), **kwargs)


def _with_query(parts: ParseResult, rank: int, world_size: int) -> str:
    query = dict(parse_qsl(parts.query))
    if rank != -1:
        query["rank"] = str(rank)
    if world_size != -1:
        query["world_size"] = str(world_size)
    return parts._replace(query="&".join(f"{k}={v}" for k, v in query.items())).geturl()


def _wrong(scheme: str, what: str) -> ValueError:
    return ValueError(f"Error initializing torch.distributed using {scheme} rendezvous: {what}")


def _by_tcp(
    url: str, timeout: timedelta = default_pg_timeout, **kwargs: Any
) -> Iterator[tuple[Any, int, int]]:
    parts = urlparse(url)
    query = dict(parse_qsl(parts.query))
    if not parts.port:
        raise _wrong("tcp://", "port number missing")
    for name, text in (("rank", "rank"), ("world_size", "world size")):
        if name not in query:
            raise _wrong("tcp://", f"{text} parameter missing")
    rank, size = int(query["rank"]), int(query["world_size"])
    host = parts.hostname or "127.0.0.1"
    store = TCPStore(
        host, parts.port, size, rank == 0, timeout, multi_tenant=True, wait_for_workers=False
    )
    yield store, rank, size
    raise RuntimeError("Unable to perform re-rendezvous using tcp:// method")


def _by_file(url: str, **kwargs: Any) -> Iterator[tuple[Any, int, int]]:
    parts = urlparse(url)
    query = dict(parse_qsl(parts.query))
    if not parts.path:
        raise _wrong("file://", "path missing")
    for name, text in (("rank", "rank"), ("world_size", "world size")):
        if name not in query:
            raise _wrong("file://", f"{text} parameter missing")
    rank, size = int(query["rank"]), int(query["world_size"])
    yield FileStore(parts.path, size), rank, size
    raise RuntimeError("Unable to perform rerendezvous using file:// method")


def _by_environment(
    url: str, timeout: timedelta = default_pg_timeout, **kwargs: Any
) -> Iterator[tuple[Any, int, int]]:
    query = dict(parse_qsl(urlparse(url).query))

    def told(name: str) -> str:
        value = os.environ.get(name)
        if value is None:
            raise _wrong(
                "env://",
                f"environment variable {name} expected, but not set\n"
                "Start the program with `rushlight launch -n 2 script.py` or `mpiexec -n 2`, or "
                "set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT for each process.",
            )
        return value

    rank = int(query["rank"] if "rank" in query else told("RANK"))
    size = int(query["world_size"] if "world_size" in query else told("WORLD_SIZE"))
    host, port = told("MASTER_ADDR"), int(told("MASTER_PORT"))
    store = TCPStore(
        host, port, size, rank == 0, timeout, multi_tenant=True, wait_for_workers=False
    )
    yield store, rank, size
    raise RuntimeError("Unable to perform re-rendezvous using env:// method")


register_rendezvous_handler("tcp", _by_tcp)
register_rendezvous_handler("file", _by_file)
register_rendezvous_handler("env", _by_environment)
