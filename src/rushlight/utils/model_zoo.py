"""The old name of `torch.hub.load_state_dict_from_url`, and what else programs import from here."""

from typing import Any
from urllib.parse import urlparse as urlparse

from rushlight.hub import HASH_REGEX as HASH_REGEX
from rushlight.hub import download_url_to_file as _download_url_to_file  # noqa: F401
from rushlight.hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]
__dir__ = __all__.copy


def __getattr__(name: str) -> Any:
    if name != "tqdm":
        raise AttributeError(f"module 'torch.utils.model_zoo' has no attribute {name!r}")
    from rushlight.hub import progress_bar

    return progress_bar()
