"""New tensors with other shapes: cat, stack, pad, flip, repeat, meshgrid, tril, clone."""
