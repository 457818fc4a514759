"""Sparse tensors: making them, their parts, and what is computed with them alone."""
