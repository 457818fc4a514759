"""Levels of `func` transforms, batches and tangents."""
