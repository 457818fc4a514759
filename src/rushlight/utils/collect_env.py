"""What this installation is, as text for a report: `python -m rushlight.utils.collect_env`."""

from __future__ import annotations

import platform

from rushlight import __config__
from rushlight.arrays.device import cuda_count

__all__ = ["get_pretty_env_info", "main"]
__dir__ = __all__.copy


def get_pretty_env_info() -> str:
    """get_pretty_env_info() -> str: versions, system and GPUs.

    >>> from rushlight.utils.collect_env import get_pretty_env_info
    >>> "numpy" in get_pretty_env_info()
    True
    """
    return (
        f"{__config__.show()}\n"
        f"  system     {platform.platform()}\n"
        f"  processor  {platform.machine()}\n"
        f"  gpus       {cuda_count()}"
    )


def main() -> None:
    """main(): print it."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
