"""Views of tensors, and writing in place."""
