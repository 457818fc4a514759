"""Settings of the compiler that rushlight has not: whatever is set is remembered."""

__all__: list[str] = []
__dir__ = __all__.copy

suppress_errors = False
verbose = False
cache_size_limit = 8
recompile_limit = 8
accumulated_cache_size_limit = 256
dynamic_shapes = True
assume_static_by_default = True
automatic_dynamic_shapes = True
optimize_ddp = True
capture_scalar_outputs = False
capture_dynamic_output_shape_ops = False
disable = False
