"""Convolution: of one to three dimensions, transposed, and its derivatives."""
