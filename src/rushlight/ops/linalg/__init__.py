"""Linear algebra: factorizations, solvers, spectra, norms of matrices."""
