"""Corners of views and in-place writes: all the cases, by name. How they are written stands in
view_notes.py."""

from __future__ import annotations

import view_cases_history
import view_cases_memory
import view_cases_modes
from view_notes import CASES, run

__all__ = ["CASES", "run", "view_cases_history", "view_cases_memory", "view_cases_modes"]
