"""Python's `multiprocessing`, and tensors that processes share.

A tensor that goes to another process, through a queue, a pipe or as an argument, moves to shared
memory: what one process writes into it, the others see.

>>> import rushlight.multiprocessing as mp
>>> queue = mp.SimpleQueue()
>>> x = torch.zeros(2)
>>> queue.put(x)
>>> queue.get().fill_(7)
tensor([7., 7.])
>>> x
tensor([7., 7.])
"""

import multiprocessing as _multiprocessing
import typing as _typing
from multiprocessing import *  # noqa: F403

from rushlight.missing import face as _face
from rushlight.multiprocessing import reductions as reductions
from rushlight.multiprocessing.reductions import init_reductions as init_reductions
from rushlight.multiprocessing.spawn import ProcessContext as ProcessContext
from rushlight.multiprocessing.spawn import ProcessExitedException as ProcessExitedException
from rushlight.multiprocessing.spawn import ProcessRaisedException as ProcessRaisedException
from rushlight.multiprocessing.spawn import SpawnContext as SpawnContext
from rushlight.multiprocessing.spawn import spawn as spawn
from rushlight.multiprocessing.spawn import start_processes as start_processes

__all__ = [
    "get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy",
    *_multiprocessing.__all__,
]  # fmt: skip

_strategies = {"file_descriptor", "file_system"}
_chosen = ["file_descriptor"]


def set_sharing_strategy(new_strategy: str) -> None:
    """set_sharing_strategy(new_strategy): remembered, for `get_sharing_strategy`.

    Memory always goes by file descriptor, and leaves nothing behind.

    >>> torch.multiprocessing.set_sharing_strategy("file_descriptor")
    """
    if new_strategy not in _strategies:
        raise AssertionError(
            f"invalid sharing strategy {new_strategy!r}, expected one of {_strategies}"
        )
    _chosen[0] = new_strategy


def get_sharing_strategy() -> str:
    """get_sharing_strategy() -> str: what was set.

    >>> torch.multiprocessing.get_sharing_strategy()
    'file_descriptor'
    """
    return _chosen[0]


def get_all_sharing_strategies() -> set[str]:
    """get_all_sharing_strategies() -> set of str

    >>> sorted(torch.multiprocessing.get_all_sharing_strategies())
    ['file_descriptor', 'file_system']
    """
    return _strategies


init_reductions()

_MORE = [
    "ProcessContext", "ProcessExitedException", "ProcessRaisedException", "SpawnContext",
    "init_reductions", "reductions", "spawn", "start_processes",
]  # fmt: skip

if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.multiprocessing", globals(), unlisted=_MORE)
