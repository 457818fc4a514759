"""Picking elements and putting them back: x[i], gather, scatter, masks."""
