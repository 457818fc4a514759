"""`python -m torch.distributed.launch`: the older name of `torch.distributed.run`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rushlight.distributed import run

__all__ = ["main"]
__dir__ = __all__.copy


def main(args: Sequence[str] | None = None) -> None:
    """As `run.main`; `--use-env` is what it always does."""
    given = list(sys.argv[1:] if args is None else args)
    run.main([word for word in given if word not in ("--use-env", "--use_env")])


if __name__ == "__main__":
    main()
