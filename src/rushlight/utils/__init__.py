"""Helpers for training scripts: `utils.hooks`.

Imported by users; in the package by `nn` and `optim`.
"""

from rushlight.utils import hooks as hooks

__all__ = ["hooks"]
