"""Functions made from others: views that copy, and functions of lists of tensors."""
