"""How many threads the linear algebra under NumPy and SciPy uses, and the kernels.

They bring libraries of their own (OpenBLAS in the wheels), which are loaded with them. Those that
are loaded are found by name in the process's map of memory, and told through their C functions.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from typing import Any, Final

from rushlight.arrays.kernels import use_threads

_LIBRARY: Final = re.compile(r"/[^/]*(openblas|libblis|mkl_rt|libmkl)[^/]*\.(so|dylib)[^/]*$")
# `scipy_` and `64_` are how the wheels of NumPy and SciPy rename what they bring.
_SETTERS: Final = [
    "scipy_openblas_set_num_threads64_", "scipy_openblas_set_num_threads",
    "openblas_set_num_threads64_", "openblas_set_num_threads", "MKL_Set_Num_Threads",
    "bli_thread_set_num_threads",
]  # fmt: skip
_GETTERS: Final = [
    "scipy_openblas_get_num_threads64_", "scipy_openblas_get_num_threads",
    "openblas_get_num_threads64_", "openblas_get_num_threads", "MKL_Get_Max_Threads",
    "bli_thread_get_num_threads",
]  # fmt: skip


def _loaded() -> list[str]:
    """The paths of the libraries that are loaded."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
            paths = {line.split(maxsplit=5)[5].strip() for line in file if "/" in line}
    except OSError:  # not Linux: where the wheels of NumPy put theirs
        folder = os.path.dirname(os.path.dirname(sys.modules["numpy"].__file__ or ""))
        folders = [os.path.join(folder, "numpy.libs"), os.path.join(folder, "numpy", ".dylibs")]
        paths = {os.path.join(d, n) for d in folders if os.path.isdir(d) for n in os.listdir(d)}
    return sorted(path for path in paths if _LIBRARY.search(path))


def _functions(names: list[str]) -> list[Any]:
    """The first of these functions that each library has."""
    found = []
    for path in _loaded():
        try:
            library = ctypes.CDLL(path)
        except OSError:  # mapped, but no library, or deleted since
            continue
        name = next((n for n in names if hasattr(library, n)), None)
        if name is not None:
            found.append(getattr(library, name))
    return found


def set_threads(count: int) -> bool:
    """Have linear algebra and kernels use so many threads; whether there was a library to tell."""
    use_threads(count)
    setters = _functions(_SETTERS)
    for setter in setters:
        setter(ctypes.c_int(count))
    return bool(setters)


def get_threads() -> list[int]:
    """How many threads each library that is loaded uses."""
    return [int(getter()) for getter in _functions(_GETTERS)]
