"""The random generator: PyTorch's Mersenne Twister, its seed and its 5056-byte state.

It knows nothing of distributions: it seeds, hands out 32- and 64-bit words, and saves and loads its
state. The twister itself is `codegen.draws`' where that is compiled, which also fills whole arrays;
else NumPy's (`random.plain`).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.locks import lock, renew
from rushlight.random.plain import PlainTwister

if TYPE_CHECKING:
    import numpy.typing as npt

    from rushlight.random.exact import Raw

DEFAULT_SEED = 67280421310721  # what PyTorch's generators start from
WORDS = 624  # words of the twister's state

Twister: Any = PlainTwister  # what generators draw with, until `draw_with` says otherwise

MASK32 = (1 << 32) - 1
MASK64 = (1 << 64) - 1

STATE = np.dtype(
    {
        "names": ["seed", "left", "seeded", "next", "words", "normal", "has_normal"],
        "formats": ["<u8", "<i4", "<i4", "<u8", ("<u8", WORDS), "<f8", "<i4"],
        "offsets": [0, 8, 12, 16, 24, 5024, 5040],
        "itemsize": 5056,
    }
)

DEVICE_TYPES = (
    "cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, "
    "mps, meta, hpu, mtia, privateuseone"
)


class Generator:
    """Generator(device='cpu'): a stream of random numbers, PyTorch's own for the same seed.

    A generator of device 'cuda' draws on the CPU too, and its numbers are copied to the device: one
    seed gives the same numbers everywhere. (PyTorch's CUDA generator is another algorithm, with
    other numbers.)

    >>> g = torch.Generator().manual_seed(2147483647)
    >>> g.initial_seed()
    2147483647
    """

    def __init__(self, device: object = "cpu") -> None:
        self._device = "cpu" if type(device) is str and device == "cpu" else device_name(device)
        self.lock = lock()  # a draw is many steps; threads take turns
        self._seed = DEFAULT_SEED

    def _reseed(self, seed: int) -> None:
        with self.lock:
            self._seed = seed & MASK64
            if "bits" in self.__dict__:
                self.bits.seed(self._seed & MASK32)

    @functools.cached_property
    def bits(self) -> Any:
        """The twister itself, made when it is first used. It also keeps a normal that was drawn but
        not used, and whether anything was drawn since the seed was given."""
        return Twister(self._seed & MASK32)

    @property
    def device(self) -> Any:
        """The device this generator's numbers are meant for."""
        return _outside.device(self._device)

    def manual_seed(self, seed: int) -> Generator:
        """manual_seed(seed) -> Generator: start over from `seed`; returns the generator."""
        kind: type[Any] = type(seed)
        if kind is int:
            self._reseed(checked_seed(seed))
            return self
        if issubclass(kind, np.integer):
            raise TypeError("an integer is required")
        if not issubclass(kind, int) or kind is bool:
            name = f"numpy.{kind.__name__}" if kind.__module__ == "numpy" else kind.__name__
            raise RuntimeError(f"manual_seed expected a long, but got {name}")
        self._reseed(checked_seed(seed))
        return self

    def seed(self) -> int:
        """seed() -> int: start over from a seed taken from the operating system, and return it."""
        seed = int.from_bytes(os.urandom(8), "little")
        self._reseed(seed)
        return seed

    def initial_seed(self) -> int:
        """initial_seed() -> int: the seed this generator was last given."""
        return self._seed

    # -- state ---------------------------------------------------------------------------------

    def get_state(self) -> Any:
        """get_state() -> Tensor: the state, 5056 bytes laid out as PyTorch lays them out."""
        return _outside.state(self.raw_state())

    def set_state(self, new_state: Any) -> Generator:
        """set_state(new_state) -> Generator: go on from a state that `get_state` gave."""
        return self.load(_outside.array(new_state))

    def raw_state(self) -> npt.NDArray[np.uint8]:
        """`get_state` as a NumPy array."""
        record = np.zeros((), STATE)
        with self.lock:
            key, pos, drawn, normal = self.bits.get()
            record["seed"] = self._seed
            record["left"] = WORDS + 1 - pos
            record["seeded"] = 1
            record["next"] = pos if drawn else 0
            record["words"] = key
            if normal is not None:
                record["normal"] = normal
                record["has_normal"] = 1
        return np.frombuffer(record.tobytes(), np.uint8).copy()

    def load(self, state: Any) -> Generator:
        """`set_state` from a NumPy array."""
        record = check_state(state)
        left, following = int(record["left"]), int(record["next"])
        with self.lock:
            pos = WORDS if left == 1 else following
            normal = float(record["normal"]) if record["has_normal"] else None
            self.bits.set(record["words"].astype(np.uint32), pos, following != 0, normal)
            self._seed = int(record["seed"])
        return self

    def clone_state(self) -> Generator:
        """clone_state() -> Generator: another generator at the same point of the same stream."""
        return type(self)(self._device).load(self.raw_state())

    def __reduce__(self) -> tuple[Any, ...]:
        # A lock can't be pickled: send device and state.
        return _rebuild, (type(self), self._device, self.raw_state().tobytes())

    # -- words ---------------------------------------------------------------------------------

    def take32(self, n: int) -> Raw:
        """The next n words, as uint64 or uint32 (whichever is cheaper to make)."""
        words: Raw = self.bits.take32(n)
        return words

    def take64(self, n: int) -> npt.NDArray[np.uint64]:
        """The next n pairs of words as uint64, the first of a pair on top."""
        pairs: npt.NDArray[np.uint64] = self.bits.take64(n)
        return pairs

    def unit24(self, n: int, out: Raw | None = None) -> npt.NDArray[np.float32]:
        """n multiples of 2^-24 in [0, 1), a word each."""
        words = self.take32(n)
        np.bitwise_and(words, MASK24[words.itemsize], words)
        unit = np.empty(n, np.float32) if out is None else out
        unit[...] = words.view(SIGNED[words.itemsize])
        return np.multiply(unit, TWO_M24, unit)

    def unit53(self, n: int, out: Raw | None = None) -> npt.NDArray[np.float64]:
        """n multiples of 2^-53 in [0, 1), two words each."""
        words = self.take64(n)
        np.bitwise_and(words, MASK53, words)
        unit = np.empty(n, np.float64) if out is None else out
        unit[...] = words.view(np.int64)
        return np.multiply(unit, TWO_M53, unit)


if hasattr(Generator.bits, "lock"):  # before Python 3.12, held while the value is made
    renew(Generator.bits.lock)


# Note [Constants as 0-d arrays]
# NumPy converts a Python number on every call (0.2 us) but takes a 0-d array as it is; a draw of a
# thousand numbers is mostly such overhead.
MASK53 = np.array((1 << 53) - 1, np.uint64)
TWO_M24 = np.array(2.0**-24, np.float32)
TWO_M53 = np.array(2.0**-53, np.float64)
MASK24: dict[int, Raw] = {4: np.array(0xFFFFFF, np.uint32), 8: np.array(0xFFFFFF, np.uint64)}
SIGNED: dict[int, type[Any]] = {4: np.int32, 8: np.int64}  # signed integers convert to float faster


def _rebuild(kind: type[Generator], device: object, state: bytes) -> Generator:
    return kind(device).load(np.frombuffer(state, np.uint8))


def checked_seed(seed: int) -> int:
    """`seed` if it fits 64 bits, signed or not."""
    if not -(1 << 63) <= seed < 1 << 64:
        raise ValueError("Overflow when unpacking long long")
    return seed


def check_state(state: Any) -> Any:
    """The fields of a saved state, or PyTorch's complaint about it."""
    if not isinstance(state, np.ndarray):
        raise TypeError(f"expected a torch.ByteTensor, but got {type(state).__name__}")
    if state.dtype != np.uint8:
        raise TypeError("RNG state must be a torch.ByteTensor")
    if not state.flags.c_contiguous:
        raise RuntimeError("RNG state must be contiguous")
    if state.size != STATE.itemsize:
        raise RuntimeError(
            f"Expected a CPUGeneratorImplState of size {STATE.itemsize} but found the input RNG "
            f"state size to be {state.size}"
        )
    record = np.frombuffer(state.tobytes(), STATE)[0]
    valid = record["seeded"] != 0 and 0 < record["left"] <= WORDS and record["next"] <= WORDS
    if not valid:
        raise RuntimeError("Invalid mt19937 state")
    return record


def device_name(device: object) -> str:
    """'cpu' or 'cuda:N' for a device given as a string, a number or an object with a type."""
    if isinstance(device, int):
        device = f"cuda:{device}"
    name = str(device)
    kind, _, index = name.partition(":")
    if kind == "cpu":
        return "cpu"
    if kind != "cuda":
        if kind in DEVICE_TYPES.split(", "):
            raise RuntimeError(f"{kind.upper()} device type not an accelerator.")
        raise RuntimeError(
            f"Expected one of {DEVICE_TYPES} device type at start of device string: {name}"
        )
    import importlib.util  # wanted here alone

    if importlib.util.find_spec("cupy") is None:
        raise RuntimeError(
            "Cannot get CUDA generator without CuPy, which holds rushlight's arrays on the GPU. "
            "Install it: `pip install cupy-cuda12x`."
        )
    return f"cuda:{index or 0}"


class _Outside:
    """How states and devices look to users: as here until the tensor layer says otherwise."""

    state: Callable[[Raw], Any] = staticmethod(lambda raw: raw)
    array: Callable[[Any], Any] = staticmethod(lambda state: state)
    device: Callable[[str], Any] = staticmethod(lambda name: name)


_outside = _Outside()


def present(
    state: Callable[[Raw], Any], array: Callable[[Any], Any], device: Callable[[str], Any]
) -> None:
    """Called once by the tensor layer: a state's array to a tensor, back, and a device's name.

    `array` gets whatever the user passed to `set_state`, and returns what is no tensor unchanged.
    """
    _outside.state, _outside.array, _outside.device = state, array, device


def draw_with(kind: Any) -> None:
    """Called once by the array layer, if there is a compiled twister."""
    global Twister
    Twister = kind


default_generator = Generator()
