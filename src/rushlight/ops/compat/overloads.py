"""PyTorch's names for ops, as programs compare with them: `aten.mm.default`, `aten.add.Tensor`.

Imported by `ops.aten`, which users see as `torch.ops.aten`, and by what shows ops to users.
"""

from __future__ import annotations

from typing import Any, Final

from rushlight.core.graph import Op
from rushlight.ops.registry import functions, namespaces, table


class Named:
    """What there is one of for each name: copies are the object itself, a pickle holds the name."""

    def __copy__(self) -> Named:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Named:
        return self


class OpOverload(Named):
    """One form of an op, such as `aten.add.Tensor`; there is one object for each."""

    def __init__(self, overloadpacket: OpOverloadPacket, overload: str) -> None:
        self.overloadpacket = overloadpacket
        self._overloadname = overload
        self.namespace = "aten"
        self.__name__ = f"{overloadpacket.__name__}.{overload}"

    def name(self) -> str:
        """The name with PyTorch's colons: 'aten::add.Tensor', 'aten::mm'."""
        end = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"aten::{self.overloadpacket.__name__}{end}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.overloadpacket(*args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (self.overloadpacket, self._overloadname)

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.overloadpacket}', overload='{self._overloadname}')>"


class OpOverloadPacket(Named):
    """All forms of an op: `aten.add`, of which `aten.add.Tensor` is one."""

    def __init__(self, name: str) -> None:
        self.__name__ = name
        self._made: dict[str, OpOverload] = {}

    def __getattr__(self, overload: str) -> OpOverload:
        if overload.startswith("_"):
            # its name is asked of the dict: one that is still empty would ask here again
            name = self.__dict__.get("__name__", "")
            raise AttributeError(
                f"The underlying op of 'aten.{name}' has no overload name '{overload}'"
            )
        return self._made.setdefault(overload, OpOverload(self, overload))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = self.__name__.lstrip("_")
        for names in (functions, *namespaces.values()):
            if name in names:
                return names[name](*args, **kwargs)
        raise NotImplementedError(f"rushlight has no function for aten.{self.__name__}")

    def __reduce__(self) -> tuple[Any, ...]:
        return packet, (self.__name__,)

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"


_packets: Final[dict[str, OpOverloadPacket]] = {}

# The form that an op of the table is, where it is not `name.default`.
_FORMS: Final[dict[str, str]] = {
    "add": "add.Tensor",
    "batch_norm_eval": "native_batch_norm.default", "clamp": "clamp.Tensor",
    "clamp_max": "clamp_max.Tensor", "clamp_min": "clamp_min.Tensor",
    "clamp_numbers": "clamp.default", "copysign": "copysign.Tensor", "div": "div.Tensor",
    "div_floor": "div.Tensor_mode", "div_trunc": "div.Tensor_mode", "fill": "fill.Scalar",
    "fill_tensor": "fill.Tensor", "fmod": "fmod.Tensor", "fmod_number": "fmod.Scalar",
    "frexp": "frexp.Tensor", "index": "index.Tensor", "index_fill": "index_fill.int_Scalar",
    "index_fill_tensor": "index_fill.int_Tensor", "laid_out": "clone.default",
    "ldexp": "ldexp.Tensor", "lerp": "lerp.Tensor", "lerp_number": "lerp.Scalar",
    "log_sigmoid": "log_sigmoid_forward.default", "log_softmax": "_log_softmax.default",
    "masked_fill": "masked_fill.Scalar", "masked_fill_tensor": "masked_fill.Tensor",
    "max_dim": "max.dim", "mean_dim": "mean.dim", "median_dim": "median.dim",
    "min_dim": "min.dim", "mul": "mul.Tensor", "nanmedian_dim": "nanmedian.dim",
    "nll_loss": "nll_loss_forward.default", "nll_loss2d": "nll_loss2d_forward.default",
    "pow": "pow.Tensor_Tensor", "pow_number": "pow.Tensor_Scalar", "pow_of_number": "pow.Scalar",
    "pow_of_complex": "pow.Scalar", "pow_to_complex": "pow.Tensor_Scalar",
    "prelu_kernel": "_prelu_kernel.default", "prod_dim": "prod.dim_int",
    "remainder": "remainder.Tensor", "remainder_number": "remainder.Scalar",
    "reshape_alias": "_reshape_alias.default", "round_decimals": "round.decimals",
    "rrelu_eval": "rrelu_with_noise.default", "rsub": "rsub.Scalar", "scatter": "scatter.src",
    "scatter_reduce": "scatter_reduce.two", "scatter_value": "scatter.value",
    "searchsorted": "searchsorted.Tensor", "select": "select.int", "slice": "slice.Tensor",
    "softmax": "_softmax.default", "sort_stable": "sort.stable", "split": "split.Tensor",
    "squeeze_dim": "squeeze.dim", "squeeze_dims": "squeeze.dims", "std": "std.correction",
    "std_mean": "std_mean.correction", "sub": "sub.Tensor", "sum_dim": "sum.dim_IntList",
    "transpose": "transpose.int", "trilinear": "_trilinear.default", "unbind": "unbind.int",
    "unique": "_unique2.default", "unsafe_split": "unsafe_split.Tensor",
    "unsafe_view": "_unsafe_view.default", "var": "var.correction",
    "var_mean": "var_mean.correction", "where": "where.self", "xlogy": "xlogy.Tensor",
}  # fmt: skip
# These have a form for tensors and one for a tensor and a number.
_BY_OPERAND: Final = frozenset(
    "bitwise_and bitwise_or bitwise_xor eq ge gt le lt ne".split()
)  # fmt: skip
# These have a form for all elements, one along a dimension and one along several.
_BY_DIM: Final = frozenset(("all", "any"))


# What PyTorch has and rushlight lacks, among the ops that programs list because they are costly.
_LACKING: Final = frozenset(
    {
        "_efficient_attention_forward", "_flash_attention_forward", "_scaled_mm",
        "_scaled_dot_product_attention_math_for_mps", "_scaled_dot_product_cudnn_attention",
        "_scaled_dot_product_efficient_attention", "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_fused_attention_overrideable", "convolution", "detach", "lift_fresh",
        "max_pool2d_with_indices", "native_dropout", "native_group_norm",
    }
)  # fmt: skip


def packet(name: str) -> OpOverloadPacket:
    """All forms of the op `name`. Some that rushlight lacks have names too: a program may list them
    beside others."""
    found = _packets.get(name)
    if found is None:
        if not _known(name):
            raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'")
        found = _packets.setdefault(name, OpOverloadPacket(name))
    return found


def _known(name: str) -> bool:
    plain = name.removesuffix("_")
    if name in _LACKING or plain in table or plain in functions:
        return True
    if any(plain in names for names in namespaces.values()):
        return True
    return any(form.partition(".")[0] == name for form in _FORMS.values())


def overload_of(op: Op, raws: tuple[Any, ...]) -> OpOverload:
    """What PyTorch calls an op of the table, applied to these raw inputs."""
    name = op.name
    form = _FORMS.get(name)
    if form is None:
        form = f"{name}.default"
        if name in _BY_OPERAND:
            number = any(isinstance(x, (bool, int, float, complex)) for x in raws)
            form = f"{name}.{'Scalar' if number else 'Tensor'}"
        elif name in _BY_DIM:
            dims = op.dims  # type: ignore[attr-defined]
            if dims is not None:
                form = f"{name}.{'dim' if len(dims) == 1 else 'dims'}"
    start, _, end = form.partition(".")
    found: OpOverload = getattr(packet(start), end)
    return found
