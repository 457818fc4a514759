"""Statistics, sums along curves, histograms, and numbers drawn by rejection."""
