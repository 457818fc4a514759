"""Settings of the compiler that rushlight has not: remembered."""

__all__: list[str] = []
__dir__ = __all__.copy

job_id: str | None = None
dynamic_shapes = True
assume_static_by_default = True
force_disable_caches = False
cache_key_tag = ""
