"""Special functions that few programs use."""
