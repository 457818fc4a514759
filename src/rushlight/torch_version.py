"""`torch.torch_version`: a version that can be compared with other versions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from rushlight._version import __version__ as _ours

__all__ = ["TorchVersion"]
__dir__ = __all__.copy

# What a number is followed by in a version that is not out yet; a final one comes after all these.
_STAGES: Final = {"dev": -4, "a": -3, "alpha": -3, "b": -2, "beta": -2, "c": -1, "rc": -1}
_PARTS: Final = re.compile(r"v?(\d+(?:\.\d+)*)[-_.]?([a-z]+)?[-_.]?(\d*)")


def _key(version: Any) -> tuple[Any, ...]:
    if isinstance(version, Iterable) and not isinstance(version, str):
        version = ".".join(str(part) for part in version)
    public, _, local = str(version).partition("+")
    found = _PARTS.match(public.strip().lower())
    if found is None:
        raise ValueError(f"Invalid version: {str(version)!r}")
    release = [int(n) for n in found[1].split(".")]
    while release and release[-1] == 0:  # 2.13 is 2.13.0
        release.pop()
    word = found[2] or ""
    stage = 1 if word == "post" else _STAGES.get(word, 0) if word else 0
    named = tuple((1, int(n), "") if n.isdigit() else (0, 0, n) for n in re.split("[-_.]", local))
    return tuple(release), stage, int(found[3] or 0), named if local else ()


class TorchVersion(str):
    """A version: text that compares with texts and tuples as versions do, part by part.

    >>> from rushlight.torch_version import TorchVersion
    >>> TorchVersion("1.10.0") > "1.9", TorchVersion("1.10.0") >= (1, 10)
    (True, True)
    """

    def __eq__(self, other: object) -> bool:
        return self._compared(other, str.__eq__, lambda a, b: bool(a == b))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: Any) -> bool:
        return self._compared(other, str.__lt__, lambda a, b: bool(a < b))

    def __le__(self, other: Any) -> bool:
        return self._compared(other, str.__le__, lambda a, b: bool(a <= b))

    def __gt__(self, other: Any) -> bool:
        return self._compared(other, str.__gt__, lambda a, b: bool(a > b))

    def __ge__(self, other: Any) -> bool:
        return self._compared(other, str.__ge__, lambda a, b: bool(a >= b))

    __hash__ = str.__hash__

    def _compared(self, other: Any, as_text: Any, as_versions: Any) -> bool:
        try:
            theirs = _key(other)
        except ValueError:  # no version: text is text
            return bool(as_text(self, other))
        return bool(as_versions(_key(str(self)), theirs))


# Programs that take us for PyTorch read this: whom we follow, and who we are.
__version__: Final = TorchVersion(f"2.13.0+rushlight{_ours}")
