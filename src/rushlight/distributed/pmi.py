"""How MPICH's processes find each other when nobody ran `mpiexec`.

MPICH asks a process manager for its rank, for the number of processes and for the addresses of the
others, in lines of text over a connection (the wire protocol PMI-1). `mpiexec` is one such manager.
`Manager` is another: the process with rank 0 starts it, so that processes started by
`torch.multiprocessing.spawn`, by a scheduler or by hand make one MPI world.

It is a process of its own, and this file its program: mpi4py holds the interpreter's lock while MPI
is initialised, so that no thread of rank 0 could answer. It imports the standard library alone.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import uuid
from typing import Any, Final

__all__ = ["Manager", "join", "start"]
__dir__ = __all__.copy

_ENDED: Final = "cmd=barrier_out rc=-1 msg=a_process_has_ended"


class Manager:
    """Serves the world of `size` processes at a port that is free."""

    def __init__(self, size: int) -> None:
        self.size = size
        # MPICH names its shared memory after the space: two worlds on a host must differ
        self.name = f"rushlight_{uuid.uuid4().hex[:16]}"
        self.values: dict[str, str] = {}
        self._at_barrier: list[Any] = []
        self._lost = False  # a process ended before MPI was initialised in it
        self._lock = threading.Lock()
        self._socket = socket.create_server(("", 0), backlog=max(size, 128))
        self.port = int(self._socket.getsockname()[1])
        threading.Thread(target=self._accept, name="rushlight pmi", daemon=True).start()

    def _accept(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(
                target=self._serve, args=(connection,), name="rushlight pmi", daemon=True
            ).start()

    def _serve(self, connection: socket.socket) -> None:
        member = False
        with connection, connection.makefile("rw", newline="\n") as lines:
            try:
                for line in lines:
                    member = member or line.startswith("cmd=initack")
                    for answer in self._answer(line.rstrip("\n"), lines):
                        _say(lines, answer)
            except OSError:  # the process has died
                pass
        if member:
            self._lose()

    def _lose(self) -> None:
        """A process has ended: who waits for it at the barrier is not left waiting."""
        with self._lock:
            self._lost = True
            waiting, self._at_barrier = self._at_barrier, []
        for other in waiting:
            with contextlib.suppress(OSError):
                _say(other, _ENDED)

    def _answer(self, line: str, lines: Any) -> list[str]:
        """What is said to a line; nothing yet to who waits at the barrier."""
        fields = dict(word.split("=", 1) for word in line.split() if "=" in word)
        match fields.get("cmd"):
            case "here":  # not of PMI: see `join`
                self._arrive(lines)
                return []
            case "initack":
                return [
                    "cmd=initack rc=0", f"cmd=set size={self.size}",
                    f"cmd=set rank={fields['pmiid']}", "cmd=set debug=0",
                ]  # fmt: skip
            case "init":
                return ["cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"]
            case "get_maxes":
                return ["cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=4096"]
            case "get_appnum":
                return ["cmd=appnum rc=0 appnum=0"]
            case "get_my_kvsname":
                return [f"cmd=my_kvsname rc=0 kvsname={self.name}"]
            case "get_universe_size":
                return [f"cmd=universe_size rc=0 size={self.size}"]
            case "put":
                with self._lock:
                    self.values[fields["key"]] = line.split("value=", 1)[1]
                return ["cmd=put_result rc=0 msg=success"]
            case "get":
                with self._lock:
                    value = self.values.get(fields["key"])
                if value is None:
                    return ["cmd=get_result rc=-1 msg=key_not_found"]
                return [f"cmd=get_result rc=0 msg=success value={value}"]
            case "barrier_in":
                self._arrive(lines)
                return []
            case "finalize":
                return ["cmd=finalize_ack rc=0"]
            case other:
                return [f"cmd={other}_result rc=-1 msg=unknown_command"]

    def _arrive(self, lines: Any) -> None:
        """Count who has come to the barrier; the last one opens it."""
        with self._lock:
            self._at_barrier.append(lines)
            if len(self._at_barrier) < self.size and not self._lost:
                return
            waiting, self._at_barrier = self._at_barrier, []
        for other in waiting:
            _say(other, _ENDED if self._lost else "cmd=barrier_out rc=0")


def _say(lines: Any, text: str) -> None:
    lines.write(text + "\n")
    lines.flush()


def join(host: str, port: int, rank: int, seconds: float) -> bool:
    """Tell MPICH, which is not yet initialised, where its manager is and which rank it has.

    First wait at the manager for the others, since MPICH would wait without end; False if they do
    not come in time. The address is a number, since MPICH looks names up in its own way.
    """
    address = socket.gethostbyname(host)
    with socket.create_connection((address, port), seconds) as connection:
        connection.settimeout(seconds)
        connection.sendall(b"cmd=here\n")
        try:
            if not connection.recv(64):
                return False
        except TimeoutError:
            return False
    for name in ("PMI_FD", "PMI_RANK", "PMI_SIZE"):  # those of a manager further up
        os.environ.pop(name, None)
    os.environ["PMI_PORT"] = f"{address}:{port}"
    os.environ["PMI_ID"] = str(rank)
    return True


def start(size: int) -> tuple[int, Any]:
    """Start a manager; its port, and its process, which ends with this one."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, str(size)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    return int(process.stdout.readline()), process


if __name__ == "__main__":
    print(Manager(int(sys.argv[1])).port, flush=True)
    sys.stdin.read()  # until the process that started this one has ended
