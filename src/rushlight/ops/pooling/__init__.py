"""Pooling: the largest, the mean or a norm of each window, and the way back."""
