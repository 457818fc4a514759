"""Element by element: arithmetic, comparison, logic, rounding, powers, special functions."""
