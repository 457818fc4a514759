"""Activations as modules: each calls the function of its name in `nn.functional`. And attention."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.modules.linear import NonDynamicallyQuantizableLinear, new_parameter
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.ops.attention.multi_head import canonical_mask
from rushlight.ops.registry import functions

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "MultiheadAttention",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]  # fmt: skip
__dir__ = __all__.copy


class Plain(Module):
    """An activation without arguments."""

    def __init__(self) -> None:
        super().__init__()


class Showing(Module):
    """An activation whose printed form shows the attributes named in `_shown`."""

    _shown: ClassVar[tuple[str, ...]] = ()

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)}" for name in self._shown)


class Inplace(Showing):
    """An activation that may overwrite its input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        text = super().extra_repr()
        if not self.inplace:
            return text
        return f"{text}, inplace=True" if text else "inplace=True"


class Along(Showing):
    """An activation along one dimension; None: PyTorch's old guess."""

    _shown = ("dim",)

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim


class Threshold(Inplace):
    """Threshold(threshold, value, inplace=False): x where x > threshold, else `value`."""

    _shown = ("threshold", "value")

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.threshold = threshold
        self.value = value

    def forward(self, input: Any) -> Any:
        return F.threshold(input, self.threshold, self.value, self.inplace)


class ReLU(Inplace):
    """ReLU(inplace=False): max(x, 0).

    >>> torch.nn.ReLU()(torch.tensor([-1., 2.]))
    tensor([0., 2.])
    """

    def forward(self, input: Any) -> Any:
        return F.relu(input, inplace=self.inplace)


class RReLU(Inplace):
    """RReLU(lower=1/8, upper=1/3, inplace=False): leaky ReLU with a random slope in training."""

    _shown = ("lower", "upper")

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__(inplace)
        self.lower = lower
        self.upper = upper

    def forward(self, input: Any) -> Any:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class Hardtanh(Inplace):
    """Hardtanh(min_val=-1.0, max_val=1.0, inplace=False): x, cut off at both values."""

    _shown: ClassVar[tuple[str, ...]] = ("min_val", "max_val")

    def __init__(
        self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False,
        min_value: float | None = None, max_value: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(inplace)
        for old, new, value in (
            ("min_value", "min_val", min_value),
            ("max_value", "max_val", max_value),
        ):
            if value is not None:
                warnings.warn(
                    f"keyword argument `{old}` is deprecated and rename to `{new}`",
                    FutureWarning,
                    stacklevel=2,
                )
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        if self.max_val <= self.min_val:
            raise AssertionError(
                f"max_val ({self.max_val}) must be greater than min_val ({self.min_val})"
            )

    def forward(self, input: Any) -> Any:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class ReLU6(Hardtanh):
    """ReLU6(inplace=False): min(max(x, 0), 6)."""

    _shown = ()

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def forward(self, input: Any) -> Any:
        return F.relu6(input, self.inplace)


class Sigmoid(Plain):
    """Sigmoid(): 1 / (1 + exp(-x)).

    >>> torch.nn.Sigmoid()(torch.zeros(1))
    tensor([0.5000])
    """

    def forward(self, input: Any) -> Any:
        return F.sigmoid(input)


class Hardsigmoid(Inplace):
    """Hardsigmoid(inplace=False): min(max(x + 3, 0), 6) / 6."""

    def forward(self, input: Any) -> Any:
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Tanh(Plain):
    """Tanh(): hyperbolic tangent.

    >>> torch.nn.Tanh()(torch.zeros(1))
    tensor([0.])
    """

    def forward(self, input: Any) -> Any:
        return F.tanh(input)


class SiLU(Inplace):
    """SiLU(inplace=False): x times its sigmoid."""

    def forward(self, input: Any) -> Any:
        return F.silu(input, inplace=self.inplace)


class Mish(Inplace):
    """Mish(inplace=False): x tanh(softplus(x))."""

    def forward(self, input: Any) -> Any:
        return F.mish(input, inplace=self.inplace)


class Hardswish(Inplace):
    """Hardswish(inplace=False): x times its hardsigmoid."""

    def forward(self, input: Any) -> Any:
        return F.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class ELU(Inplace):
    """ELU(alpha=1.0, inplace=False): x above 0, alpha (exp(x) - 1) below."""

    _shown = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Any) -> Any:
        return F.elu(input, self.alpha, self.inplace)


class CELU(Inplace):
    """CELU(alpha=1.0, inplace=False): ELU whose slope is continuous for every alpha."""

    _shown = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Any) -> Any:
        return F.celu(input, self.alpha, self.inplace)


class SELU(Inplace):
    """SELU(inplace=False): ELU, scaled so that layers keep mean 0 and variance 1."""

    def forward(self, input: Any) -> Any:
        return F.selu(input, self.inplace)


class GLU(Showing):
    """GLU(dim=-1): the first half times the sigmoid of the second."""

    _shown = ("dim",)

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Any:
        return F.glu(input, self.dim)


class GELU(Module):
    """GELU(approximate='none'): x times the normal distribution's integral up to x."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Any) -> Any:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Hardshrink(Module):
    """Hardshrink(lambd=0.5): x, but 0 within `lambd` of 0."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Any) -> Any:
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class LeakyReLU(Inplace):
    """LeakyReLU(negative_slope=0.01, inplace=False): x above 0, negative_slope x below."""

    _shown = ("negative_slope",)

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input: Any) -> Any:
        return F.leaky_relu(input, self.negative_slope, self.inplace)


class LogSigmoid(Plain):
    """LogSigmoid(): the logarithm of the sigmoid."""

    def forward(self, input: Any) -> Any:
        return F.logsigmoid(input)


class Softplus(Showing):
    """Softplus(beta=1.0, threshold=20.0): log(1 + exp(beta x)) / beta; x above the threshold."""

    _shown = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Any) -> Any:
        return F.softplus(input, self.beta, self.threshold)


class Softshrink(Module):
    """Softshrink(lambd=0.5): x moved towards 0 by `lambd`."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Any) -> Any:
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class PReLU(Showing):
    """PReLU(num_parameters=1, init=0.25): leaky ReLU whose slope is learned."""

    _shown = ("num_parameters",)

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(functions["empty"](num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the first values."""
        self.weight.data.fill_(self.init)

    def forward(self, input: Any) -> Any:
        return F.prelu(input, self.weight)


class Softsign(Plain):
    """Softsign(): x / (1 + |x|)."""

    def forward(self, input: Any) -> Any:
        return F.softsign(input)


class Tanhshrink(Plain):
    """Tanhshrink(): x - tanh(x)."""

    def forward(self, input: Any) -> Any:
        return F.tanhshrink(input)


class Softmin(Along):
    """Softmin(dim=None): softmax of -x."""

    def forward(self, input: Any) -> Any:
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax(Along):
    """Softmax(dim=None): exp(x), divided by its sum along `dim`.

    >>> torch.nn.Softmax(dim=0)(torch.zeros(2))
    tensor([0.5000, 0.5000])
    """

    def forward(self, input: Any) -> Any:
        return F.softmax(input, self.dim, _stacklevel=5)


class Softmax2d(Plain):
    """Softmax2d(): softmax over the channels of images."""

    def forward(self, input: Any) -> Any:
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead")
        return F.softmax(input, -3, _stacklevel=5)


class LogSoftmax(Along):
    """LogSoftmax(dim=None): the logarithm of the softmax."""

    def forward(self, input: Any) -> Any:
        return F.log_softmax(input, self.dim, _stacklevel=5)


class MultiheadAttention(Module):
    """MultiheadAttention(embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False,
    add_zero_attn=False, kdim=None, vdim=None, batch_first=False): each query's mean of the values,
    weighed by how much their keys are like it; by several heads, each on its part of the width.

    Called with query, key and value, (length, batch, width) each, it gives the result and the
    weights. `key_padding_mask` and `attn_mask` say with True which keys count for nothing.

    Args:
        embed_dim: the width of queries and results.
        num_heads: how many heads; `embed_dim` is a multiple of it.
        dropout: the share of the weights that is dropped while training.
        bias: whether the linear maps have one.
        add_bias_kv: whether to learn one key and value more.
        add_zero_attn: whether to put a key and value of zeros behind the others.
        kdim, vdim: the widths of keys and of values, if others.
        batch_first: whether tensors are (batch, length, width).

    >>> m = torch.nn.MultiheadAttention(4, num_heads=2, batch_first=True)
    >>> x = torch.ones(3, 5, 4)
    >>> y, weights = m(x, x, x)
    >>> y.shape, weights.shape
    (torch.Size([3, 5, 4]), torch.Size([3, 5, 5]))
    """

    __constants__ = ("batch_first",)
    bias_k: Any
    bias_v: Any

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True,
        add_bias_kv: bool = False, add_zero_attn: bool = False, kdim: int | None = None,
        vdim: int | None = None, batch_first: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and "
                f"num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError(
                "embed_dim must be divisible by num_heads\n"
                f"Each of {num_heads} heads takes an equal part of the width, which is {embed_dim}."
            )
        where = {"device": device, "dtype": dtype}
        apart = {"q": embed_dim, "k": self.kdim, "v": self.vdim}
        if self._qkv_same_embed_dim:
            self.in_proj_weight = new_parameter(3 * embed_dim, embed_dim, **where)
            for letter in apart:
                self.register_parameter(f"{letter}_proj_weight", None)
        else:
            for letter, size in apart.items():
                setattr(self, f"{letter}_proj_weight", new_parameter(embed_dim, size, **where))
            self.register_parameter("in_proj_weight", None)
        if bias:
            self.in_proj_bias = new_parameter(3 * embed_dim, **where)
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **where)
        self.bias_k = new_parameter(1, 1, embed_dim, **where) if add_bias_kv else None
        self.bias_v = new_parameter(1, 1, embed_dim, **where) if add_bias_kv else None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        if self._qkv_same_embed_dim:
            init.xavier_uniform_(self.in_proj_weight)
        else:
            for letter in "qkv":
                init.xavier_uniform_(getattr(self, f"{letter}_proj_weight"))
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("_qkv_same_embed_dim", True)  # states of old have no such entry
        super().__setstate__(state)

    def forward(
        self, query: Any, key: Any, value: Any, key_padding_mask: Any = None,
        need_weights: bool = True, attn_mask: Any = None, average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> Any:  # fmt: skip
        swaps = self.batch_first and query.ndim == 3
        padding = canonical_mask(
            key_padding_mask, "key_padding_mask", query.dtype, attn_mask, "attn_mask"
        )
        mask = canonical_mask(attn_mask, "attn_mask", query.dtype, warn=False)
        if swaps:  # one tensor stays one: its projections are then one product
            first, second = query, key
            query = query.transpose(1, 0)
            key = query if key is first else key.transpose(1, 0)
            value = key if value is second else value.transpose(1, 0)
        apart = {} if self._qkv_same_embed_dim else {
            "use_separate_proj_weight": True, "q_proj_weight": self.q_proj_weight,
            "k_proj_weight": self.k_proj_weight, "v_proj_weight": self.v_proj_weight,
        }  # fmt: skip
        y, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight,
            self.in_proj_bias, self.bias_k, self.bias_v, self.add_zero_attn, self.dropout,
            self.out_proj.weight, self.out_proj.bias, training=self.training,
            key_padding_mask=padding, need_weights=need_weights, attn_mask=mask,
            average_attn_weights=average_attn_weights, is_causal=is_causal, **apart,
        )  # fmt: skip
        return (y.transpose(1, 0) if swaps else y), weights

    def merge_masks(
        self, attn_mask: Any, key_padding_mask: Any, query: Any
    ) -> tuple[Any, int | None]:
        """Both masks as one, and which it is: 0 for attention, 1 for padding, 2 for both."""
        merged, which = key_padding_mask, None if key_padding_mask is None else 1
        if attn_mask is not None:
            batch, length, _ = query.shape
            which = 2
            if attn_mask.ndim == 3:
                mask = attn_mask.view(batch, -1, length, length)
            else:
                mask = attn_mask.view(1, 1, length, length).expand(batch, self.num_heads, -1, -1)
            merged = mask
            if key_padding_mask is not None:
                wide = key_padding_mask.view(batch, 1, 1, length)
                merged = mask + wide.expand(-1, self.num_heads, -1, -1)
        return merged, which
