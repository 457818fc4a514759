"""Settings of the compiler that rushlight has not: whatever is set is remembered."""

__all__: list[str] = []
__dir__ = __all__.copy

debug = False
max_autotune = False
coordinate_descent_tuning = False
fx_graph_cache = True
epilogue_fusion = True
freezing = False
