"""Many elements into few: sums, extremes, variance, norms, sorting, counting, running sums."""
