"""The CPU and its vector instructions."""

__all__ = ["get_cpu_capability"]
__dir__ = __all__.copy


def get_cpu_capability() -> str:
    """get_cpu_capability() -> str: the widest vector instructions: "DEFAULT", "AVX2", "AVX512".

    >>> torch.backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2", "AVX512")
    True
    """
    from rushlight.cpu import get_capabilities

    known = get_capabilities()
    if known.get("avx512_f") and known.get("avx512_bw"):
        return "AVX512"
    return "AVX2" if known.get("avx2") else "DEFAULT"
