"""Where raw arrays live: which device an array is on, and how it gets to another.

CuPy is imported only when a CUDA array is asked for or met.
"""

from __future__ import annotations

import mmap
import os
import sys
from typing import Any, Final

import numpy as np

from rushlight.arrays.device import CPU, cuda_count, device

_NO_CUPY: Final = (
    "Torch not compiled with CUDA enabled\n"
    "rushlight computes on NVIDIA GPUs through CuPy, which is not installed.\n"
    "Install it with `pip install 'rushlight[cuda12]'` or `pip install 'rushlight[cuda13]'`, by "
    "the version of CUDA that `nvidia-smi` shows."
)
_NO_GPU: Final = (
    "Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed "
    "a driver from http://www.nvidia.com/Download/index.aspx"
)


# The C library gives freed memory back to the system above a limit, and takes it anew page by page,
# at a cost beyond that of the arithmetic on it. Its limit follows the largest block it has seen
# freed, so let that be as large as it may count: a training step then runs a fifth faster. No page
# of this block is ever touched.
np.empty(31 << 20, np.uint8)


# The classes of raw arrays and their elements, for tables that go by class.
ARRAY: Final = np.ndarray
SCALARS: Final = (np.bool_, np.number, np.object_)


def cupy() -> Any:
    """The CuPy module; the error says what to install."""
    try:
        import cupy as module
    except ImportError:
        raise AssertionError(_NO_CUPY) from None
    if cuda_count() == 0:
        raise RuntimeError(_NO_GPU)
    from rushlight.arrays import cuda

    cuda.use_cupy(module)
    return module


def cpu_features() -> dict[str, bool]:
    """The vector instructions that NumPy looks for, in PyTorch's words, and whether the CPU has
    them."""
    inside = sys.modules["numpy._core._multiarray_umath"]
    found: dict[str, bool] = getattr(inside, "__cpu_features__", {})
    renamed = {"sse41": "sse4_1", "sse42": "sse4_2"}
    lower = {name.lower().replace("avx512", "avx512_"): has for name, has in found.items()}
    return {renamed.get(name, name): has for name, has in lower.items()}


def asarray(value: Any, dtype: Any = None) -> Any:
    """A NumPy array from Python or NumPy values."""
    return np.asarray(value, dtype)


def is_array(x: Any) -> bool:
    """Whether `x` is a raw NumPy array."""
    return isinstance(x, np.ndarray)


def has_values(x: Any) -> bool:
    """Whether `x` is a raw array, on any device: neither the record of one, nor a batch."""
    if isinstance(x, np.ndarray):
        return True
    if put_off(x):
        return has_values(x.plain)
    return not hasattr(x, "has_batch_dim") and device_of(x).type == "cuda"


def is_sparse(x: Any) -> bool:
    """Whether `x` is a sparse array; see `arrays.sparse`."""
    return not isinstance(x, np.ndarray) and hasattr(x, "layout")


def put_off(x: Any) -> int:
    """What is put off of an array: 1 for conjugation, 2 for negation, 3 for both; see
    `arrays.deferred`."""
    bits: int = 0 if isinstance(x, np.ndarray) else getattr(x, "put_off", 0)
    return bits


def in_memory(x: Any) -> Any:
    """An array as it lies in memory, whatever is put off of it."""
    return x.plain if put_off(x) else x


def settled(x: Any) -> Any:
    """An array with nothing put off: a copy, if something is."""
    return x.settled() if put_off(x) else x


def put_off_as(x: Any, like: Any) -> Any:
    """A view of an array with as much put off of it as of another."""
    return with_put_off(x, put_off(like))


def with_put_off(x: Any, bits: int) -> Any:
    """A view of an array with this put off of it; see `put_off`."""
    if bits == 0:
        return x
    from rushlight.arrays import deferred

    return deferred.Deferred(x, bits)


def is_scalar(x: Any) -> bool:
    """Whether `x` is one of NumPy's scalars."""
    return isinstance(x, np.generic)


def make_array(shape: tuple[int, ...], dtype: Any, where: device) -> Any:
    """An array whose values do not matter, on a device."""
    if where.type == "cpu":
        return np.empty(shape, dtype)
    require(where)
    if where.type == "meta":
        return meta().Meta(shape, dtype)
    module = cupy()
    with module.cuda.Device(where.index or 0):
        return module.empty(shape, dtype)


def map_file(name: str, shared: bool, nbytes: int) -> Any:
    """The first bytes of a file as a flat array over it: written through to the file if `shared`,
    which then grows to `nbytes`; else for this process alone."""
    with open(name, "r+b" if shared else "rb") as file:
        have = os.fstat(file.fileno()).st_size
        if have < nbytes:
            if not shared:
                raise RuntimeError(
                    f"file <{name}> size <{have}> is smaller than the required mapping size "
                    f"<{nbytes}>"
                )
            file.truncate(nbytes)
        if nbytes == 0:
            return np.empty(0, np.uint8)
        return part_of(map_open(file.fileno(), nbytes, shared), 0, nbytes)


def map_open(file: int, nbytes: int, shared: bool) -> Any:
    """An open file as memory that is read when it is used. `shared`: what is written into it goes
    into the file."""
    return mmap.mmap(file, nbytes, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)


def part_of(mapped: Any, start: int, nbytes: int) -> Any:
    """A part of what `map_open` gave as a flat array."""
    return np.frombuffer(mapped, np.uint8, nbytes, start) if nbytes else np.empty(0, np.uint8)


def require(where: device) -> None:
    """Refuse a device that rushlight does not compute on."""
    if where.type not in ("cpu", "cuda", "meta"):
        raise NotImplementedError(
            f"Could not run on the device {str(where)!r}: rushlight computes on 'cpu' and 'cuda'."
        )


NO_DATA: Final = "Cannot copy out of meta tensor; no data!"


def meta_array(shape: tuple[int, ...], dtype: Any, strides: Any) -> Any:
    """An array of the device `meta`; strides in bytes."""
    return meta().Meta(shape, dtype, None, strides)


def meta() -> Any:
    """The module of arrays without numbers, imported when one is first made."""
    from rushlight.arrays import meta as module

    return module


def device_of(array: Any) -> device:
    """The device a raw array is on."""
    if isinstance(array, np.ndarray):
        return CPU
    where = getattr(array, "device", None)
    if where is not None and hasattr(where, "id"):
        return device("cuda", where.id)
    return where if isinstance(where, device) else CPU


def move(array: Any, where: device) -> Any:
    """The array on another device (itself if it is there)."""
    here = device_of(array)
    if here.type == where.type and (where.index is None or here.index == where.index):
        return array
    require(where)
    array = settled(array)
    if where.type == "meta":
        return meta().Meta(array.shape, array.dtype, None, array.strides if array.size else None)
    if where.type == "cpu" or here.type == "meta":
        return array.get(order="A")
    module = cupy()
    with module.cuda.Device(where.index or 0):
        return module.asarray(array)


def to_host(array: Any) -> Any:
    """The array as NumPy's, copied only if it is elsewhere."""
    return array if isinstance(array, np.ndarray) else array.get(order="A")


def from_host(array: Any, like: Any) -> Any:
    """A NumPy array on the device of `like`."""
    if isinstance(like, np.ndarray):
        return array
    return move(array, device_of(like))


def check_same_device(arrays: list[Any]) -> None:
    """PyTorch's error for operands on two devices; 0-d arrays on the CPU go with any."""
    found: list[device] = []
    for a in arrays:
        where = device_of(a)
        if a.ndim == 0 and where.type == "cpu":
            continue
        if where not in found:
            found.append(where)
    if len(found) > 1:
        first, second = found[0], found[1]
        if "meta" in (first.type, second.type):
            other = second if first.type == "meta" else first
            raise RuntimeError(f"Tensor on device {other} is not on the expected device meta!")
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"{first} and {second}!\n"
            "Move the data to where the model is, or the model to the data: `x.to(device)`."
        )


def address(array: Any) -> int:
    """The address of the first element."""
    if isinstance(array, np.ndarray):
        return int(array.ctypes.data)
    if put_off(array):
        return address(array.plain)
    return int(array.data.ptr)


def root_of(array: Any) -> Any:
    """The array that owns the memory behind a view."""
    root = in_memory(array)
    while isinstance(root.base, type(root)):
        root = root.base
    return root


def shares_root(a: Any, b: Any) -> bool:
    """Whether one allocation is behind two arrays. CuPy's arrays over a part of another's memory
    have a base of their own, and the allocation in common."""
    a, b = in_memory(a), in_memory(b)
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return root_of(a) is root_of(b)
    return a.data.mem is b.data.mem


class ByteBounds:
    """The memory behind an array: where it starts, how long it is, and where the array begins."""

    def __init__(self, array: Any) -> None:
        array = in_memory(array)
        root = root_of(array)
        self.root = root
        if isinstance(root, np.ndarray):
            low, high = np.lib.array_utils.byte_bounds(root)
        else:
            from rushlight.arrays import cuda

            low, length = cuda.memory_of(array)
            high = low + length
        self.start: int = int(low)
        self.nbytes: int = int(high - low) if root.size else 0
        self.offset: int = (address(array) - int(low)) if array.size and root.size else 0


class Sampler:
    """Random raw arrays for tests: float64 unless said otherwise, away from kinks and poles."""

    def __init__(self, seed: int = 0) -> None:
        self.random = np.random.default_rng(seed)

    def real(self, *shape: int) -> Any:
        """Both signs, magnitudes between 0.1 and 2, no two alike."""
        size = self.random.uniform(0.1, 2.0, shape)
        return np.asarray(size * self.random.choice([-1.0, 1.0], shape))

    def positive(self, *shape: int) -> Any:
        """Between 0.2 and 3."""
        return np.asarray(self.random.uniform(0.2, 3.0, shape))

    def above_one(self, *shape: int) -> Any:
        """Between 1.2 and 4."""
        return np.asarray(self.random.uniform(1.2, 4.0, shape))

    def unit(self, *shape: int) -> Any:
        """Between -0.9 and 0.9."""
        return np.asarray(self.random.uniform(-0.9, 0.9, shape))

    def probability(self, *shape: int) -> Any:
        """Between 0.05 and 0.95."""
        return np.asarray(self.random.uniform(0.05, 0.95, shape))

    def complex(self, *shape: int) -> Any:
        """complex128, both parts of both signs."""
        return np.asarray(self.real(*shape) + 1j * self.real(*shape))

    def square(self, *shape: int) -> Any:
        """Square matrices with an inverse, and eigenvalues well apart."""
        return self._dominated(self.real(*shape))

    def complex_square(self, *shape: int) -> Any:
        """The same, complex."""
        return self._dominated(self.complex(*shape))

    def _dominated(self, x: Any) -> Any:
        at = np.arange(x.shape[-1])
        x = x * 0.3
        x[..., at, at] += 1 + at
        return x

    def ints(self, low: int, high: int, *shape: int) -> Any:
        """int64 in [low, high)."""
        return np.asarray(self.random.integers(low, high, shape))

    def mask(self, *shape: int) -> Any:
        """bool, half of them true."""
        return np.asarray(self.random.random(shape) < 0.5)

    def permutation(self, n: int) -> Any:
        """0 … n-1 in random order."""
        return np.asarray(self.random.permutation(n))
