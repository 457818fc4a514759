"""Benchmarks: ratios to PyTorch, JAX and NumPy, taken in one process run, alternating."""
