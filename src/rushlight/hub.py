"""`torch.hub`: models from a folder with a `hubconf.py`, and files from the net.

Repositories are not fetched from GitHub: their code is written for PyTorch and the libraries around
it.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import re
import sys
import tempfile
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

__all__ = [
    "download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url",
    "set_dir",
]  # fmt: skip
__dir__ = __all__.copy

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # the checksum in the name of a file
urlparse = urllib.parse.urlparse

_chosen: dict[str, str] = {}


def get_dir() -> str:
    """get_dir() -> str: where downloads are kept: `hub` in $TORCH_HOME, or in ~/.cache/torch.

    >>> torch.hub.get_dir().endswith("hub")
    True
    """
    if "dir" in _chosen:
        return _chosen["dir"]
    return os.path.join(_get_torch_home(), "hub")


def _get_torch_home() -> str:
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))


def set_dir(d: str | os.PathLike[str]) -> None:
    """set_dir(d): keep downloads there."""
    _chosen["dir"] = os.path.expanduser(os.fspath(d))


def _hubconf(folder: Any, source: str) -> Any:
    """The module `hubconf.py` of a folder."""
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "github":
        raise RuntimeError(
            f"rushlight does not fetch {folder!r} from GitHub; clone it, and give its folder with "
            "source='local'."
        )
    path = os.path.join(os.fspath(folder), "hubconf.py")
    spec = importlib.util.spec_from_file_location("hubconf", path)
    if spec is None or spec.loader is None or not os.path.exists(path):
        raise FileNotFoundError(f"[Errno 2] No such file or directory: {path!r}")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.fspath(folder))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(os.fspath(folder))
    return module


def _entry(module: Any, model: str) -> Any:
    found = getattr(module, model, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return found


def load(
    repo_or_dir: Any, model: str, *args: Any, source: str = "github", trust_repo: Any = "check",
    force_reload: bool = False, verbose: bool = True, skip_validation: bool = False, **kwargs: Any,
) -> Any:  # fmt: skip
    """load(repo_or_dir, model, *args, source='github', **kwargs)

    What the function `model` of `hubconf.py` in a folder gives; say `source="local"`.
    """
    return _entry(_hubconf(repo_or_dir, source), model)(*args, **kwargs)


def list(
    github: Any, force_reload: bool = False, skip_validation: bool = False,
    trust_repo: Any = "check", verbose: bool = True,
) -> Any:  # fmt: skip
    """list(github): the models of a repository; raises: rushlight fetches none."""
    return _hubconf(github, "github")


def help(
    github: Any, model: str, force_reload: bool = False, skip_validation: bool = False,
    trust_repo: Any = "check",
) -> Any:  # fmt: skip
    """help(github, model): the docstring of a model; raises: rushlight fetches none."""
    return _hubconf(github, "github")


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """download_url_to_file(url, dst, hash_prefix=None, progress=True)

    Fetch a file. `hash_prefix` is how its SHA-256 must begin. The file appears when it is whole.
    """
    target = Path(os.path.expanduser(dst))
    digest = hashlib.sha256()
    handle, part = tempfile.mkstemp(dir=target.parent, prefix=target.name + ".")
    try:
        with os.fdopen(handle, "wb") as file, urllib.request.urlopen(url) as source:
            while block := source.read(1 << 17):
                file.write(block)
                digest.update(block)
        found = digest.hexdigest()
        if hash_prefix is not None and not found.startswith(hash_prefix):
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{found}")')
        os.replace(part, target)
    finally:
        if os.path.exists(part):
            os.remove(part)


def load_state_dict_from_url(
    url: str, model_dir: str | None = None, map_location: Any = None, progress: bool = True,
    check_hash: bool = False, file_name: str | None = None, weights_only: bool = False,
) -> Any:  # fmt: skip
    """load_state_dict_from_url(url, model_dir=None, map_location=None, ...)

    What `torch.load` reads from a file of the net; the file is kept and fetched once.
    """
    from rushlight.serialization import load as read

    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(folder, exist_ok=True)
    name = file_name or os.path.basename(urllib.parse.urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        prefix = name.rpartition("-")[2].partition(".")[0] if check_hash else None
        download_url_to_file(url, path, prefix, progress=progress)
    return read(path, map_location=map_location, weights_only=weights_only)


class _Silent:
    """What counts steps where tqdm is not installed, and shows nothing."""

    def __init__(self, iterable: Any = None, *args: Any, **kwargs: Any) -> None:
        self.iterable = iterable
        self.n = 0

    def __iter__(self) -> Any:
        return iter(self.iterable)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def update(self, n: int = 1) -> None:
        self.n += n

    def close(self) -> None:
        return None


def progress_bar() -> Any:
    """The class `tqdm`, or one that shows nothing."""
    try:
        module = importlib.import_module("tqdm")
    except ImportError:
        return _Silent
    return module.tqdm


def __getattr__(name: str) -> Any:
    if name == "tqdm":
        return progress_bar()
    raise AttributeError(f"module 'torch.hub' has no attribute {name!r}")
