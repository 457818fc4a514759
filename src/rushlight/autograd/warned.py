"""Warnings that point at the user's line: see `ops.warned`."""

from __future__ import annotations

from rushlight.ops.warned import warn_caller

__all__ = ["warn_caller"]
