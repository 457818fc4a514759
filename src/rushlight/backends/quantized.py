"""Which library quantised tensors would use; rushlight has none."""

__all__: list[str] = []
__dir__ = __all__.copy

engine = "none"
supported_engines = ["none"]
