"""`torch.cuda`: whether there is a GPU, which, and how much of it is used.

rushlight reaches GPUs through CuPy. What is drawn at random is drawn on the CPU, so seeds are the
CPU's; all work goes to one stream, in the order of the program.
"""

from __future__ import annotations

import typing as _typing
from types import TracebackType
from typing import Any

from rushlight.absent import stand_in as _stand_in
from rushlight.arrays.device import cuda_count
from rushlight.arrays.device import device as _device
from rushlight.arrays.host import cupy
from rushlight.missing import face as _face
from rushlight.random import get_rng_state as _get_rng_state
from rushlight.random import initial_seed as _initial_seed
from rushlight.random import manual_seed as _manual_seed
from rushlight.random import seed as _seed
from rushlight.random import set_rng_state as _set_rng_state
from rushlight.stand_ins import ONE_QUEUE as _ONE_QUEUE

__all__ = [
    "CUDAGraph",
    "Event",
    "ExternalStream",
    "Stream",
    "StreamContext",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "graph",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "make_graphed_callables",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_max_memory_allocated",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "stream",
    "synchronize",
]  # fmt: skip


def is_available() -> bool:
    """is_available() -> bool

    Whether there is a GPU that rushlight can compute on.

    >>> device = "cuda" if torch.cuda.is_available() else "cpu"
    """
    return cuda_count() > 0


def device_count() -> int:
    """device_count() -> int: the number of GPUs."""
    return cuda_count()


def init() -> None:
    """init(): load CuPy, which otherwise happens on first use."""
    cupy()


def is_initialized() -> bool:
    """is_initialized() -> bool: whether there is a GPU; CuPy needs no further preparation."""
    return is_available()


# --- which ----------------------------------------------------------------------------------------
def current_device() -> int:
    """current_device() -> int: the number of the GPU that is used where none is named."""
    return int(cupy().cuda.Device().id)


def _index(given: Any) -> int:
    """The number of a GPU that is named by number, string or device; None is the current one."""
    if given is None:
        return current_device()
    if isinstance(given, int):
        return given
    where = _device(given)
    if where.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {where}")
    return current_device() if where.index is None else where.index


def set_device(device: Any) -> None:
    """set_device(device): use this GPU where none is named; a negative number changes nothing."""
    index = _index(device)
    if index >= 0:
        cupy().cuda.Device(index).use()


class device:
    """device(device): a context in which another GPU is the current one.

    A negative number or None changes nothing, so that the code also runs without a GPU.

    >>> with torch.cuda.device(None):
    ...     pass
    """

    def __init__(self, device: Any) -> None:
        self.idx = -1 if device is None else _index(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            self.prev_idx = current_device()
            set_device(self.idx)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:  # fmt: skip
        if self.idx >= 0:
            set_device(self.prev_idx)


class device_of(device):
    """device_of(tensor): a context in which the tensor's GPU is current, if it is on one."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.is_cuda else None)


def get_device_name(device: Any = None) -> str:
    """get_device_name(device=None) -> str: the name of a GPU."""
    name = cupy().cuda.runtime.getDeviceProperties(_index(device))["name"]
    return str(name.decode() if isinstance(name, bytes) else name)


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """get_device_capability(device=None) -> (int, int): the version of the GPU's architecture."""
    found = get_device_properties(device)
    return found.major, found.minor


class _Properties:
    """What is known about a GPU."""

    def __init__(self, index: int) -> None:
        known = cupy().cuda.runtime.getDeviceProperties(index)
        self.name = get_device_name(index)
        self.major = int(known["major"])
        self.minor = int(known["minor"])
        self.total_memory = int(known["totalGlobalMem"])
        self.multi_processor_count = int(known["multiProcessorCount"])

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory // (1 << 20)}MB, "
            f"multi_processor_count={self.multi_processor_count})"
        )


def get_device_properties(device: Any = None) -> _Properties:
    """get_device_properties(device=None): name, architecture, memory and size of a GPU."""
    return _Properties(_index(device))


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """is_bf16_supported() -> bool: whether bfloat16 can be computed with."""
    return is_available()


def synchronize(device: Any = None) -> None:
    """synchronize(device=None): wait until the GPU has done what it was given."""
    cupy().cuda.Device(_index(device)).synchronize()


# --- memory ---------------------------------------------------------------------------------------
def _pool(device: Any) -> Any:
    module = cupy()
    with module.cuda.Device(_index(device)):
        return module.get_default_memory_pool()


def empty_cache() -> None:
    """empty_cache(): give memory that is kept for reuse back to the system."""
    if is_available():
        cupy().get_default_memory_pool().free_all_blocks()


def memory_allocated(device: Any = None) -> int:
    """memory_allocated(device=None) -> int: bytes that arrays occupy; 0 without a GPU."""
    return int(_pool(device).used_bytes()) if is_available() else 0


def memory_reserved(device: Any = None) -> int:
    """memory_reserved(device=None) -> int: bytes that were taken from the system, used or not."""
    return int(_pool(device).total_bytes()) if is_available() else 0


def max_memory_allocated(device: Any = None) -> int:
    """max_memory_allocated(device=None) -> int

    No more than this was ever in use: CuPy keeps no record of the peak, but it holds on to what it
    has taken from the system since `reset_peak_memory_stats`.
    """
    return memory_reserved(device)


def max_memory_reserved(device: Any = None) -> int:
    """max_memory_reserved(device=None) -> int: as `memory_reserved`: little is given back."""
    return memory_reserved(device)


def reset_peak_memory_stats(device: Any = None) -> None:
    """reset_peak_memory_stats(device=None): give back what is not in use, so that a peak shows."""
    empty_cache()


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """mem_get_info(device=None) -> (int, int): free and total memory of a GPU, in bytes."""
    module = cupy()
    with module.cuda.Device(_index(device)):
        free, total = module.cuda.runtime.memGetInfo()
    return int(free), int(total)


# --- random numbers -------------------------------------------------------------------------------
def manual_seed(seed: int) -> None:
    """manual_seed(seed): the same as `torch.manual_seed`: one generator serves every device."""
    _manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """manual_seed_all(seed): the same as `torch.manual_seed`."""
    _manual_seed(int(seed))


def seed() -> None:
    """seed(): the same as `torch.seed`."""
    _seed()


def seed_all() -> None:
    """seed_all(): the same as `torch.seed`."""
    _seed()


def initial_seed() -> int:
    """initial_seed() -> int: the same as `torch.initial_seed`."""
    return _initial_seed()


def get_rng_state(device: Any = "cuda") -> Any:
    """get_rng_state(device='cuda') -> Tensor: the same as `torch.get_rng_state`; needs a GPU."""
    _index(device)
    return _get_rng_state()


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """set_rng_state(new_state, device='cuda'): the same as `torch.set_rng_state`; needs a GPU."""
    _index(device)
    _set_rng_state(new_state)


def get_rng_state_all() -> list[Any]:
    """get_rng_state_all() -> list of Tensor: one state a GPU.

    >>> len(torch.cuda.get_rng_state_all()) == torch.cuda.device_count()
    True
    """
    return [_get_rng_state() for _ in range(cuda_count())]


def set_rng_state_all(new_states: Any) -> None:
    """set_rng_state_all(new_states): the states that `get_rng_state_all` gave."""
    for state in new_states:
        _set_rng_state(state)


# --- queues of work -------------------------------------------------------------------------------
Stream = _stand_in("torch.cuda.Stream", _ONE_QUEUE)
ExternalStream = _stand_in("torch.cuda.ExternalStream", _ONE_QUEUE)
Event = _stand_in("torch.cuda.Event", _ONE_QUEUE)
CUDAGraph = _stand_in("torch.cuda.CUDAGraph", _ONE_QUEUE)
graph = _stand_in("torch.cuda.graph", _ONE_QUEUE)
make_graphed_callables = _stand_in("torch.cuda.make_graphed_callables", _ONE_QUEUE)
default_generators: tuple[Any, ...] = ()


class StreamContext:
    """StreamContext(stream): a block on another stream; None, the only one, changes nothing.

    >>> with torch.cuda.stream(None):
    ...     pass
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None


def stream(stream: Any) -> StreamContext:
    """stream(stream): a block on another stream."""
    return StreamContext(stream)


def current_stream(device: Any = None) -> Any:
    """current_stream(device=None): raises: work of a GPU is not cut into streams."""
    cupy()
    return Stream()


def default_stream(device: Any = None) -> Any:
    """default_stream(device=None): raises: work of a GPU is not cut into streams."""
    cupy()
    return Stream()


def is_current_stream_capturing() -> bool:
    """is_current_stream_capturing() -> bool: never."""
    return False


def get_arch_list() -> list[str]:
    """get_arch_list() -> list of str: the architectures that were compiled for: none before."""
    return []


def memory_stats(device: Any = None) -> dict[str, Any]:
    """memory_stats(device=None) -> dict: what is counted of a GPU's memory; empty without one."""
    if not is_available():
        return {}
    return {
        "allocated_bytes.all.current": memory_allocated(device),
        "reserved_bytes.all.current": memory_reserved(device),
    }


def reset_max_memory_allocated(device: Any = None) -> None:
    """reset_max_memory_allocated(device=None): the same as `reset_peak_memory_stats`."""
    reset_peak_memory_stats(device)


def ipc_collect() -> None:
    """ipc_collect(): there is no memory that processes share."""


_LATER = {"amp": "", "nvtx": ""}


def _given(name: str) -> Any:
    """Types by dtype, which programs of older times ask `isinstance` for: `cuda.FloatTensor`."""
    if name == "OutOfMemoryError":
        from rushlight.accelerator import OutOfMemoryError

        return OutOfMemoryError
    if name.endswith("Tensor"):
        from rushlight.tensor_types import cuda_types

        return cuda_types().get(name)
    return None


if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.cuda", globals(), _LATER, given=_given)
