"""Seeds for the worker processes of a `DataLoader`: Python's, NumPy's and rushlight's own."""

from __future__ import annotations

import random

import numpy as np

from rushlight.random.generator import default_generator


def numpy_state(base_seed: int, worker_id: int) -> list[int]:
    """Four words to seed NumPy with, unlike for each worker and each pass over the data."""
    words = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return [int(word) for word in np.random.SeedSequence(words).generate_state(4)]


def seed_worker(base_seed: int, worker_id: int) -> None:
    """Give a worker process its own streams of random numbers, PyTorch's for the same seed."""
    random.seed(base_seed + worker_id)
    default_generator.manual_seed(base_seed + worker_id)
    np.random.seed(numpy_state(base_seed, worker_id))
