"""What nodes keep for the backward pass."""
