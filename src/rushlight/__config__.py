"""What this installation is: versions, and which modules are compiled, from what.

`setup.py` leaves `_build.json` next to this file: the modules it compiled with a hash of each
source. In a checkout the sources may have been edited since; `stale` finds that out.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from typing import TypedDict

from rushlight._version import __version__

__all__ = ["show"]
__dir__ = __all__.copy

_PACKAGE = os.path.dirname(os.path.abspath(__file__))


class _Record(TypedDict):
    compiled: dict[str, str]
    pure_because: str


def _record() -> _Record:
    import json

    try:
        with open(os.path.join(_PACKAGE, "_build.json"), encoding="utf-8") as file:
            record: _Record = json.load(file)
            return record
    except FileNotFoundError:
        return {"compiled": {}, "pure_because": "run from its sources, never built"}


def _path(module: str) -> str:
    return os.path.join(_PACKAGE, *module.split(".")[1:])


def compiled() -> list[str]:
    """The modules of rushlight that run as machine code, by name.

    >>> from rushlight import __config__
    >>> all(name.startswith("rushlight.") for name in __config__.compiled())
    True
    """
    return sorted(
        name
        for name, module in list(sys.modules.items())
        if name.startswith("rushlight.")
        and name != "rushlight._kernels"  # which has no source that could be interpreted
        and (getattr(module, "__file__", None) or "").endswith(tuple(EXTENSION_SUFFIXES))
    )


def stale() -> list[str]:
    """The compiled modules whose source is no longer what was compiled.

    >>> from rushlight import __config__
    >>> __config__.stale()
    []
    """
    from hashlib import sha256

    recorded = _record()["compiled"]
    changed = []
    for name in compiled():
        try:
            with open(_path(name) + ".py", "rb") as file:
                digest = sha256(file.read()).hexdigest()
        except FileNotFoundError:
            continue  # installed without sources: nothing to have been edited
        if digest != recorded.get(name):
            changed.append(name)
    return changed


def _newer(name: str) -> bool:
    """Whether a module's source was written after it was compiled: a look at two clocks, where
    `stale` reads and compares."""
    built = sys.modules[name].__file__
    source = _path(name) + ".py"
    if built is None or not os.path.exists(source):
        return False
    return os.path.getmtime(source) > os.path.getmtime(built)


def check_fresh() -> None:
    """In a checkout, warn when an edited source is shadowed by what was compiled before the edit.

    `import rushlight` calls this. Elsewhere than in a checkout it costs one look at the disk.

    >>> from rushlight import __config__
    >>> __config__.check_fresh()
    """
    if not os.path.exists(os.path.join(_PACKAGE, os.pardir, os.pardir, "setup.py")):
        return
    edited = [name for name in compiled() if _newer(name)]
    changed = [name for name in stale() if name in edited] if edited else []
    if changed:
        import warnings

        warnings.warn(
            f"the compiled form of {', '.join(changed)} is older than its source, and is what "
            "runs.\nRun `make build` to compile it again, or `make pure` to run the sources.",
            RuntimeWarning,
            stacklevel=3,
        )


def _version_of(*distributions: str) -> str | None:
    """The version of the first of these that is installed, without importing it."""
    from importlib import metadata

    for name in distributions:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None


class _Facts(TypedDict):
    rushlight: str
    python: str
    platform: str
    executable: str
    numpy: str | None
    scipy: str | None
    ml_dtypes: str | None
    cupy: str | None
    installed: str
    compiled: list[str]
    pure_because: str | None
    kernels: int
    stale: list[str]


def facts() -> _Facts:
    """What `show` shows, to be looked up; None stands for what is not installed.

    >>> from rushlight import __config__
    >>> __config__.facts()["rushlight"]
    '0.1.0'
    """
    modules = compiled()
    because = _record()["pure_because"] or "the compiled modules are missing"
    return {
        "rushlight": __version__,
        "python": ".".join(str(part) for part in sys.version_info[:3]),
        "platform": sys.platform,
        "executable": sys.executable,
        "numpy": _version_of("numpy"),
        "scipy": _version_of("scipy"),
        "ml_dtypes": _version_of("ml_dtypes"),
        "cupy": _version_of("cupy-cuda13x", "cupy-cuda12x", "cupy"),
        "installed": _PACKAGE,
        "compiled": modules,
        "pure_because": None if modules else because,
        "kernels": len(getattr(sys.modules.get("rushlight._kernels"), "table", ())),
        "stale": stale(),
    }


def show() -> str:
    """The versions of everything rushlight builds on, and what is compiled, as text.

    >>> from rushlight import __config__
    >>> print(__config__.show())  # doctest: +ELLIPSIS
    rushlight 0.1.0
    ...
    """
    found = facts()
    lines = [
        f"rushlight {__version__}",
        f"  python     {found['python']} on {sys.platform} ({sys.executable})",
        f"  numpy      {found['numpy'] or 'not installed'}",
        f"  scipy      {found['scipy'] or 'not installed'}",
        f"  ml_dtypes  {found['ml_dtypes'] or 'not installed'}",
        f"  cupy       {found['cupy'] or 'not installed'}",
        f"  installed  {_PACKAGE}",
    ]
    if found["compiled"]:
        names = ", ".join(name.removeprefix("rushlight.") for name in found["compiled"])
        lines.append(f"  compiled   yes: {names}")
    else:
        lines.append(f"  compiled   no: {found['pure_because']}")
    count = found["kernels"]
    lines.append(f"  kernels    {count or 'none: every op takes the way over NumPy'}")
    if found["stale"]:
        names = ", ".join(name.removeprefix("rushlight.") for name in found["stale"])
        lines.append(f"  stale      {names}: edited since; run `make build`")
    return "\n".join(lines)
