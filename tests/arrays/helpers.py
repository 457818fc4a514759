"""How far a result is from the exact number."""

from __future__ import annotations

from typing import Any

import numpy as np

import rushlight as torch


def units(found: Any, exact: float) -> float:
    """The largest distance from `exact`, in units of the last place of float32."""
    values = np.asarray(found.detach().to(torch.float64).numpy())
    return float(np.max(abs(values - exact))) / float(np.spacing(np.float32(exact)))
