"""Attendance: which processes are there, told to all of them.

Each process keeps a connection to a small server in the process with rank 0. When one ends without
having said goodbye, the server learns it at once, and tells the others; when rank 0 ends, the
others see their own connection close. Who waits for a collective looks here (`gone`), so a process
that has died is an error within seconds, and not a hang.

A process that is there but does not come is a matter of `timeout`. To say who kept whom waiting,
the late ones are asked what they are doing: the thread that follows the news answers for them.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Final

from rushlight.distributed.errors import DistNetworkError
from rushlight.distributed.tcp_store import Client, Server, read_message, send_message

__all__ = ["Attendance"]
__dir__ = __all__.copy

_ANSWER: Final = 3.0  # seconds a process has to say what it is doing
KEEPER: Final = 0  # the rank whose process keeps the server


class Attendance:
    """The processes of a world, as one of them sees them.

    `doing` tells what this process is doing, for others who ask.
    """

    def __init__(
        self, rank: int, host: str, port: int, doing: Callable[[], str], server: Server | None
    ) -> None:
        self.rank = rank
        self.gone: dict[int, float] = {}  # whose connection is closed, and when that was seen
        self.ending: dict[int, float] = {}  # whose program is over, and when that was told
        self.changed = threading.Event()  # something is in one of them
        self._doing = doing
        self._server = server
        self._client = Client(host, port, timedelta(seconds=60))
        self._presence = self._client.connect()
        self._client.timeout = timedelta(seconds=1)  # once met, a server that is away is gone
        self._say(b"attend", str(rank).encode())
        self._leaving = False
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)
        news = {"gone": self._note_gone, "ending": self._note_end, "asked": self._tell_doing}
        for key, told in news.items():
            threading.Thread(
                target=self._follow, args=(key, told), name="rushlight attendance", daemon=True
            ).start()

    def _forget(self) -> None:
        """In a forked child, a worker of a DataLoader say: it is not this process, and must not
        keep its connection open when this one has died."""
        self._leaving = True
        self._presence.close()  # the descriptor alone: the connection goes on in the parent

    def _say(self, *message: bytes) -> None:
        send_message(self._presence, *message)
        read_message(self._presence)

    def _follow(self, key: str, told: Callable[[str], None]) -> None:
        """Wait for lines behind a key, and hand each on."""
        seen = 0
        while True:
            try:
                value = self._client.longer(key, seen, -1.0)
            except (DistNetworkError, OSError):
                if not self._leaving and self.rank != KEEPER:
                    self._note_gone(str(KEEPER))
                return
            if value is not None:
                for line in value[seen:].decode().splitlines():
                    told(line)
                seen = len(value)

    def _note_gone(self, line: str) -> None:
        rank = int(line)
        if rank != self.rank:
            self.gone.setdefault(rank, time.monotonic())
            self.changed.set()

    def _note_end(self, line: str) -> None:
        rank = int(line)
        if rank != self.rank:
            self.ending.setdefault(rank, time.monotonic())
            self.changed.set()

    def lost(self, ranks: Sequence[int], since: float) -> list[int]:
        """Those of some processes that will not come any more, for longer than since a time."""
        seen = {**self.ending, **self.gone}
        return [rank for rank in ranks if rank in seen and seen[rank] < since]

    def _tell_doing(self, question: str) -> None:
        state = {"rank": self.rank, "doing": self._doing()}
        with contextlib.suppress(DistNetworkError, OSError):  # then nobody is there to be told
            self._client.set(f"{question}/{self.rank}", json.dumps(state).encode())

    def what_others_do(self, ranks: list[int]) -> dict[int, str]:
        """What each of some processes is doing; those that do not answer are not in it."""
        question = f"doing/{self.rank}/{time.monotonic_ns()}"
        answers: dict[int, str] = {}
        try:
            self._client.append("asked", question.encode() + b"\n")
            self._client.wait([f"{question}/{rank}" for rank in ranks], _ANSWER)
            for rank in ranks:
                if (found := self._client.get(f"{question}/{rank}")) is not None:
                    answers[rank] = json.loads(found)["doing"]
        except (DistNetworkError, OSError):
            self._note_gone(str(KEEPER))
        return answers

    def announce_end(self) -> None:
        """Tell the others that the program of this process is over: it calls no collective more."""
        with contextlib.suppress(DistNetworkError, OSError):  # then they know of worse
            self._client.append("ending", f"{self.rank}\n".encode())

    def leave(self) -> None:
        """Say goodbye: from here on this process is not missed before it is waited for."""
        self._leaving = True
        with contextlib.suppress(OSError):
            self._presence.shutdown(socket.SHUT_RDWR)
        self._presence.close()


def start(
    rank: int, host: str, publish: Callable[[int], None], look_up: Callable[[], int],
    doing: Callable[[], str],
) -> Any:  # fmt: skip
    """Attend: rank 0 opens the server and publishes its port, the others look it up."""
    server = None
    if rank == KEEPER:
        server = Server("", 0)
        publish(server.port)
        return Attendance(rank, "127.0.0.1", server.port, doing, server)
    return Attendance(rank, host, look_up(), doing, None)
