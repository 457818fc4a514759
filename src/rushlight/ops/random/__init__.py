"""Random tensors, as PyTorch draws them."""
