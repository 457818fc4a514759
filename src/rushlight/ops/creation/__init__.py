"""Tensors from data, sizes and ranges, and filling them."""
