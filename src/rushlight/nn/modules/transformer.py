"""The Transformer: encoder and decoder, made of layers of attention and two linear maps."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

from rushlight.autograd.grad_mode import is_grad_enabled
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.modules.activation import MultiheadAttention
from rushlight.nn.modules.container import ModuleList
from rushlight.nn.modules.dropout import Dropout
from rushlight.nn.modules.linear import Linear
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.normalization import LayerNorm
from rushlight.nn.modules.utils import explain
from rushlight.ops.attention.multi_head import canonical_mask
from rushlight.ops.registry import functions

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]
__dir__ = __all__.copy

Activation = str | Callable[[Any], Any]


def _generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Any:
    full = functions["full"]((sz, sz), float("-inf"), dtype=dtype, device=device)
    return functions["triu"](full, diagonal=1)


def _get_activation_fn(activation: str) -> Any:
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return getattr(F, activation)


def _get_clones(module: Module, n: int) -> ModuleList:
    clones = ModuleList()
    for _ in range(n):
        clones.append(copy.deepcopy(module))  # the first says whether it is a module
    return clones


def _detect_is_causal_mask(mask: Any, is_causal: bool | None, size: int | None) -> bool:
    """Whether a mask hides what is later, and nothing else; `is_causal` may say so."""
    if is_causal is not None or mask is None:
        return bool(is_causal)
    n = mask.shape[-2] if size is None else size
    causal = _generate_square_subsequent_mask(
        n, mask.device, mask.dtype if mask.is_floating_point() else None
    )
    return bool(mask.shape == causal.shape and (mask == causal).all())


class Layer(Module):
    """What layers of encoder and decoder share: attention, and two linear maps with an activation
    between, each with dropout, normalised before or after."""

    activation: Any

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int, dropout: float,
        activation: Activation, layer_norm_eps: float, batch_first: bool, norm_first: bool,
        bias: bool, device: Any, dtype: Any, crosses: bool,
    ) -> None:  # fmt: skip
        super().__init__()
        where = {"device": device, "dtype": dtype}
        for name in ("self_attn", "multihead_attn") if crosses else ("self_attn",):
            attention = MultiheadAttention(
                d_model, nhead, dropout=dropout, batch_first=batch_first, bias=bias, **where
            )
            setattr(self, name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **where)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **where)
        self.norm_first = norm_first
        blocks = (1, 2, 3) if crosses else (1, 2)
        for i in blocks:
            setattr(self, f"norm{i}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where))
        for i in blocks:
            setattr(self, f"dropout{i}", Dropout(dropout))

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "activation" not in self.__dict__ and "activation" not in self._modules:
            self.activation = F.relu

    def _attend(self, attention: Any, drop: Any, x: Any, memory: Any, masks: Any) -> Any:
        mask, padding, is_causal = masks
        y = attention(
            x, memory, memory, attn_mask=mask, key_padding_mask=padding, is_causal=is_causal,
            need_weights=False,
        )[0]  # fmt: skip
        return drop(y)

    def _feed(self, drop: Any, x: Any) -> Any:
        return drop(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoderLayer(Layer):
    """TransformerEncoderLayer(d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=relu,
    layer_norm_eps=1e-05, batch_first=False, norm_first=False, bias=True): attention of a sequence
    to itself, then a map of each position.

    >>> layer = torch.nn.TransformerEncoderLayer(d_model=8, nhead=2, batch_first=True)
    >>> layer(torch.ones(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    __constants__ = ("norm_first",)

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: Activation = F.relu, layer_norm_eps: float = 1e-5, batch_first: bool = False,
        norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
            norm_first, bias, device, dtype, False,
        )  # fmt: skip
        found = _get_activation_fn(activation) if isinstance(activation, str) else activation
        kind = type(found).__name__ if isinstance(found, Module) else ""
        self.activation_relu_or_gelu = (
            1
            if found is F.relu or kind == "ReLU"
            else 2
            if found is F.gelu or kind == "GELU"
            else 0
        )
        self.activation = found

    def forward(
        self, src: Any, src_mask: Any = None, src_key_padding_mask: Any = None,
        is_causal: bool = False,
    ) -> Any:  # fmt: skip
        padding = canonical_mask(
            src_key_padding_mask, "src_key_padding_mask", src.dtype, src_mask, "src_mask"
        )
        mask = canonical_mask(src_mask, "src_mask", src.dtype, warn=False)
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), mask, padding, is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, mask, padding, is_causal))
        return self.norm2(x + self._ff_block(x))

    def _sa_block(self, x: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool) -> Any:
        masks = (attn_mask, key_padding_mask, is_causal)
        return self._attend(self.self_attn, self.dropout1, x, x, masks)

    def _ff_block(self, x: Any) -> Any:
        return self._feed(self.dropout2, x)


class TransformerDecoderLayer(Layer):
    """TransformerDecoderLayer(d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=relu,
    layer_norm_eps=1e-05, batch_first=False, norm_first=False, bias=True): attention of a sequence
    to itself, then to another (`memory`), then a map of each position.

    >>> layer = torch.nn.TransformerDecoderLayer(d_model=8, nhead=2, batch_first=True)
    >>> layer(torch.ones(3, 5, 8), torch.ones(3, 7, 8)).shape
    torch.Size([3, 5, 8])
    """

    __constants__ = ("norm_first",)

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: Activation = F.relu, layer_norm_eps: float = 1e-5, batch_first: bool = False,
        norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
            norm_first, bias, device, dtype, True,
        )  # fmt: skip
        named = isinstance(activation, str)
        self.activation = _get_activation_fn(str(activation)) if named else activation

    def forward(
        self, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None,
        tgt_key_padding_mask: Any = None, memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False, memory_is_causal: bool = False,
    ) -> Any:  # fmt: skip
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory_mask, memory_key_padding_mask, memory_is_causal)
        x = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), memory, *other)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, memory, *other))
        return self.norm3(x + self._ff_block(x))

    def _sa_block(self, x: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool) -> Any:
        masks = (attn_mask, key_padding_mask, is_causal)
        return self._attend(self.self_attn, self.dropout1, x, x, masks)

    def _mha_block(
        self, x: Any, mem: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool
    ) -> Any:
        masks = (attn_mask, key_padding_mask, is_causal)
        return self._attend(self.multihead_attn, self.dropout2, x, mem, masks)

    def _ff_block(self, x: Any) -> Any:
        return self._feed(self.dropout3, x)


class TransformerEncoder(Module):
    """TransformerEncoder(encoder_layer, num_layers, norm=None, enable_nested_tensor=True,
    mask_check=True): a stack of copies of a layer.

    In evaluation, without gradients, positions that `src_key_padding_mask` hides come out as 0
    before the last `norm`, where PyTorch would leave them out (`use_nested_tensor` says whether).

    >>> layer = torch.nn.TransformerEncoderLayer(d_model=8, nhead=2, batch_first=True)
    >>> torch.nn.TransformerEncoder(layer, num_layers=2)(torch.ones(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    __constants__ = ("norm",)

    def __init__(
        self, encoder_layer: Any, num_layers: int, norm: Any = None,
        enable_nested_tensor: bool = True, mask_check: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        reason = _why_not_nested(encoder_layer)
        self.use_nested_tensor = enable_nested_tensor and not reason
        self.mask_check = mask_check
        if enable_nested_tensor and reason:
            warnings.warn(
                "enable_nested_tensor is True, but self.use_nested_tensor is False because "
                f"{reason}",
                stacklevel=2,
            )

    def forward(
        self, src: Any, mask: Any = None, src_key_padding_mask: Any = None,
        is_causal: bool | None = None,
    ) -> Any:  # fmt: skip
        padding = canonical_mask(
            src_key_padding_mask, "src_key_padding_mask", src.dtype, mask, "mask"
        )
        mask = canonical_mask(mask, "mask", src.dtype, warn=False)
        first = self.layers[0]
        length = (
            src.shape[1 if first.self_attn.batch_first else 0] if src.ndim == 3 else src.shape[0]
        )
        is_causal = _detect_is_causal_mask(mask, is_causal, length)
        x = src
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=is_causal, src_key_padding_mask=padding)
        if src_key_padding_mask is not None and self._leaves_out(src, src_key_padding_mask, mask):
            x = x.masked_fill(padding.unsqueeze(-1) != 0, 0.0)
        return x if self.norm is None else self.norm(x)

    def _leaves_out(self, src: Any, padding: Any, mask: Any) -> bool:
        """Whether PyTorch would compute without the hidden positions."""
        if not self.use_nested_tensor or self.training or src.ndim != 3 or mask is not None:
            return False
        if is_grad_enabled() and any(p.requires_grad for p in (src, *self.parameters())):
            return False
        if padding.is_floating_point():
            return False
        ends = padding.to(functions["zeros"](()).dtype).diff(dim=1)
        return not self.mask_check or bool((ends >= 0).all())  # what is hidden is at the end


def _why_not_nested(layer: Any) -> str:
    """Why PyTorch would not leave out hidden positions with such layers; "" if it would."""
    if not isinstance(layer, TransformerEncoderLayer):
        return "encoder_layer is not a TransformerEncoderLayer"
    attention = layer.self_attn
    if layer.norm_first:
        return "encoder_layer.norm_first was True"
    if not attention.batch_first:
        return (
            "encoder_layer.self_attn.batch_first was not True"
            "(use batch_first for better inference performance)"
        )
    if not attention._qkv_same_embed_dim:
        return "encoder_layer.self_attn._qkv_same_embed_dim was not True"
    if attention.in_proj_bias is None:
        return "encoder_layer.self_attn was passed bias=False"
    if not layer.activation_relu_or_gelu:
        return "encoder_layer.activation_relu_or_gelu was not True"
    if layer.norm1.eps != layer.norm2.eps:
        return "encoder_layer.norm1.eps was not equal to encoder_layer.norm2.eps"
    if attention.num_heads % 2:
        return "encoder_layer.self_attn.num_heads is odd"
    return ""


class TransformerDecoder(Module):
    """TransformerDecoder(decoder_layer, num_layers, norm=None): a stack of copies of a layer.

    >>> layer = torch.nn.TransformerDecoderLayer(d_model=8, nhead=2, batch_first=True)
    >>> torch.nn.TransformerDecoder(layer, 2)(torch.ones(3, 5, 8), torch.ones(3, 7, 8)).shape
    torch.Size([3, 5, 8])
    """

    __constants__ = ("norm",)

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Any = None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None,
        tgt_key_padding_mask: Any = None, memory_key_padding_mask: Any = None,
        tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Any:  # fmt: skip
        first = self.layers[0]
        length = (
            tgt.shape[1 if first.self_attn.batch_first else 0] if tgt.ndim == 3 else tgt.shape[0]
        )
        tgt_is_causal = _detect_is_causal_mask(tgt_mask, tgt_is_causal, length)
        x = tgt
        for layer in self.layers:
            x = layer(
                x, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
                memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return x if self.norm is None else self.norm(x)


class Transformer(Module):
    """Transformer(d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6,
    dim_feedforward=2048, dropout=0.1, activation=relu, custom_encoder=None, custom_decoder=None,
    layer_norm_eps=1e-05, batch_first=False, norm_first=False, bias=True): an encoder of the source,
    and a decoder of the target that attends to it.

    >>> net = torch.nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
    >>> net(torch.ones(3, 7, 8), torch.ones(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6,
        num_decoder_layers: int = 6, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: Activation = F.relu, custom_encoder: Any = None, custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False,
        bias: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        where = {"device": device, "dtype": dtype}
        made = {"eps": layer_norm_eps, "bias": bias, **where}
        sizes = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
            norm_first, bias,
        )  # fmt: skip
        if custom_encoder is None:
            encoder_layer = TransformerEncoderLayer(*sizes, **where)
            custom_encoder = TransformerEncoder(
                encoder_layer, num_encoder_layers, LayerNorm(d_model, **made)
            )
        self.encoder = custom_encoder
        if custom_decoder is None:
            decoder_layer = TransformerDecoderLayer(*sizes, **where)
            custom_decoder = TransformerDecoder(
                decoder_layer, num_decoder_layers, LayerNorm(d_model, **made)
            )
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self, src: Any, tgt: Any, src_mask: Any = None, tgt_mask: Any = None,
        memory_mask: Any = None, src_key_padding_mask: Any = None,
        tgt_key_padding_mask: Any = None, memory_key_padding_mask: Any = None,
        src_is_causal: bool | None = None, tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:  # fmt: skip
        if src.ndim == 3:
            axis = 0 if self.batch_first else 1
            if src.shape[axis] != tgt.shape[axis]:
                raise RuntimeError("the batch number of src and tgt must be equal")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Any:
        """A mask, to be added, that hides what is later: -inf above the diagonal, else 0.

        >>> torch.nn.Transformer.generate_square_subsequent_mask(2)
        tensor([[0., -inf],
                [0., 0.]])
        """
        return _generate_square_subsequent_mask(sz, device, dtype)

    def _reset_parameters(self) -> None:
        for p in self.parameters():
            if p.ndim > 1:
                init.xavier_uniform_(p)


_LAYER = """
d_model: features of each position.
nhead: heads of the attention; `d_model` is a multiple of it.
dim_feedforward: features inside the map of each position.
dropout: the share that is dropped while training.
activation: 'relu', 'gelu' or a function, between the two products of that map.
layer_norm_eps: `eps` of the norms.
batch_first: whether tensors are [batch, length, features], instead of [length, batch, features].
norm_first: whether to norm what a part takes, instead of what it gives.
bias: whether linear maps and norms have one.
"""
explain(_LAYER, TransformerEncoderLayer, TransformerDecoderLayer)
explain(
    _LAYER
    + """num_encoder_layers, num_decoder_layers: how many layers there are.
custom_encoder, custom_decoder: modules to use instead.
""",
    Transformer,
)
