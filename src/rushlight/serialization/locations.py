"""Where a memory was when it was saved, and where it goes when it is loaded.

A file tags each memory with its location, such as "cpu" or "cuda:0". `map_location` says where
it goes instead; what remains is asked of those who registered, in the order of their priorities.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

from rushlight.arrays.device import cuda_count, device

Tagger = Callable[[Any], str | None]
Restorer = Callable[[Any, str], Any]

_lock: Final = threading.Lock()
_packages: list[tuple[int, Tagger, Restorer]] = []


def register_package(priority: int, tagger: Tagger, deserializer: Restorer) -> None:
    """Register how storages of a kind are tagged, and how they get back to where they were.

    Those of the lowest priority are asked first: rushlight's own are 10 for the CPU, 20 for CUDA.
    `tagger(storage)` gives a location or None, `deserializer(storage, location)` a storage or None.

    >>> def to_host(storage, location):
    ...     return storage if location == "host" else None
    >>> torch.serialization.register_package(5, lambda storage: None, to_host)
    """
    with _lock:
        _packages.append((priority, tagger, deserializer))
        _packages.sort(key=lambda package: package[0])


def _cpu_tag(storage: Any) -> str | None:
    return "cpu" if storage.device.type == "cpu" else None


def _to_cpu(storage: Any, location: str) -> Any:
    return storage.cpu() if location == "cpu" else None


def _cuda_tag(storage: Any) -> str | None:
    where = storage.device
    return f"cuda:{where.index or 0}" if where.type == "cuda" else None


def _to_cuda(storage: Any, location: str) -> Any:
    if not location.startswith("cuda"):
        return None
    return storage.to(device=device("cuda", validate_cuda_device(location)))


def validate_cuda_device(location: str) -> int:
    """The number of the GPU in a location such as "cuda:1", if there is one.

    >>> torch.serialization.validate_cuda_device("cpu")
    Traceback (most recent call last):
    ValueError: Invalid location, expected a CUDA device but got cpu
    """
    where = device(location)
    if where.type != "cuda":
        raise ValueError(f"Invalid location, expected a CUDA device but got {location}")
    count = cuda_count()
    if count == 0:
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is "
            "False. If you are running on a CPU-only machine, please use torch.load with "
            "map_location=torch.device('cpu') to map your storages to the CPU."
        )
    index = where.index or 0
    if index >= count:
        raise RuntimeError(
            f"Attempting to deserialize object on CUDA device {index} but "
            f"torch.cuda.device_count() is {count}. Please use torch.load with map_location to map "
            "your storages to an existing device."
        )
    return index


def _meta_tag(storage: Any) -> str | None:
    return "meta" if storage.device.type == "meta" else None


def _to_meta(storage: Any, location: str) -> Any:
    return storage.to(device=device("meta")) if location == "meta" else None


register_package(22, _meta_tag, _to_meta)
register_package(10, _cpu_tag, _to_cpu)
register_package(20, _cuda_tag, _to_cuda)


def location_tag(storage: Any) -> str:
    """The location that a file says of a storage.

    >>> torch.serialization.location_tag(torch.ones(2).untyped_storage())
    'cpu'
    """
    for _, tagger, _ in list(_packages):
        location = tagger(storage)
        if location:
            return location
    raise RuntimeError(f"don't know how to determine data location of {type(storage).__name__}")


def default_restore_location(storage: Any, location: str) -> Any:
    """A storage, taken to the location it was tagged with.

    >>> storage = torch.ones(2).untyped_storage()
    >>> torch.serialization.default_restore_location(storage, "cpu") is storage
    True
    """
    for _, _, restore in list(_packages):
        found = restore(storage, location)
        if found is not None:
            return found
    raise RuntimeError(
        "don't know how to restore data location of torch.storage.UntypedStorage (tagged with "
        f"{location})"
    )


def restored(storage: Any, location: str, map_location: Any) -> Any:
    """A storage where it goes: `map_location` is None, a device or its name, a dictionary from old
    locations to new ones, or a function of the storage and its location."""
    if map_location is None:
        return default_restore_location(storage, location)
    if isinstance(map_location, dict):
        return default_restore_location(storage, str(map_location.get(location, location)))
    if isinstance(map_location, str | bytes):
        where = map_location.decode("ascii") if isinstance(map_location, bytes) else map_location
        return default_restore_location(storage, where)
    if isinstance(map_location, device):
        return default_restore_location(storage, str(map_location))
    found = map_location(storage, location)
    return default_restore_location(storage, location) if found is None else found
