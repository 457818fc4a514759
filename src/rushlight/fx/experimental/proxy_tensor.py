"""`torch.fx.experimental.proxy_tensor`: tracing of operators, which rushlight does not do."""

from rushlight.absent import lacking

__all__ = ["get_proxy_mode", "make_fx"]
__dir__ = __all__.copy

make_fx = lacking(
    "make_fx", "torch.fx.experimental.proxy_tensor.make_fx cannot work: rushlight traces Python "
    "(torch.fx.symbolic_trace), and not operators"
)  # fmt: skip


def get_proxy_mode() -> None:
    """The trace under way: none."""


def is_sym_node(node: object) -> bool:
    """Whether a number is symbolic: never."""
    return False
