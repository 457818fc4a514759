"""Names in graphs: of nodes, and of the functions that they call, as PyTorch spells them."""

from __future__ import annotations

import builtins
import keyword
import re
from types import ModuleType
from typing import Any, Final

from rushlight.ops import overriding

# What PyTorch writes in Python, and calls with each argument spelled out when it is traced.
SPELLED_OUT: Final = frozenset("""
    adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d
    adaptive_max_pool3d affine_grid alpha_dropout batch_norm binary_cross_entropy
    binary_cross_entropy_with_logits celu cosine_embedding_loss cross_entropy ctc_loss dropout
    dropout1d dropout2d dropout3d elu embedding embedding_bag feature_alpha_dropout fold
    fractional_max_pool2d fractional_max_pool3d gaussian_nll_loss glu grid_sample group_norm
    gumbel_softmax hardsigmoid hardswish hardtanh hinge_embedding_loss huber_loss instance_norm
    interpolate kl_div l1_loss layer_norm leaky_relu local_response_norm log_softmax lp_pool1d
    lp_pool2d lp_pool3d margin_ranking_loss max_pool1d max_pool2d max_pool3d max_unpool1d
    max_unpool2d max_unpool3d mish mse_loss multi_head_attention_forward multi_margin_loss
    multilabel_margin_loss multilabel_soft_margin_loss nll_loss normalize pad poisson_nll_loss relu
    relu6 rms_norm rrelu selu silu smooth_l1_loss soft_margin_loss softmax softmin softsign
    tanhshrink threshold triplet_margin_loss triplet_margin_with_distance_loss unfold upsample
""".split())  # fmt: skip

# Functions of `torch` that stand in its module `functional`; spelled out too.
IN_FUNCTIONAL: Final = frozenset("""
    atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod
    cdist chain_matmul einsum istft lu meshgrid norm pca_lowrank split stft svd_lowrank tensordot
    unique unique_consecutive unravel_index
""".split())  # fmt: skip

# Functions of `nn.functional` that PyTorch writes in C++.
_IN_C: Final = frozenset("""
    avg_pool2d avg_pool3d elu_ gelu hardtanh_ leaky_relu_ linear logsigmoid one_hot
    scaled_dot_product_attention softplus softshrink
""".split())  # fmt: skip

_known: Final[dict[Any, str]] = {}  # names found before


def qualified_name(fn: Any) -> str:
    """The name by which code that is generated calls a function.

    >>> import rushlight as torch
    >>> qualified_name(torch.relu), qualified_name(torch.nn.functional.gelu), qualified_name(len)
    ('torch.relu', 'torch._C._nn.gelu', 'len')
    """
    name = getattr(fn, "__name__", "")
    if vars(builtins).get(name) is fn:
        return str(name)
    found = _known.get(fn)
    if found is None:
        found = _known[fn] = _name_of(fn)
    return found


def _name_of(fn: Any) -> str:
    ours = overriding.public_name(fn)
    if ours.startswith("torch."):
        home, _, name = ours.rpartition(".")
        if home == "torch" and name in IN_FUNCTIONAL:
            return f"torch.functional.{name}"
        if home == "torch.nn.functional" and name in _IN_C:
            return f"torch._C._nn.{name}"
        if home in ("torch.linalg", "torch.special", "torch.fft"):
            space = home.removeprefix("torch.")
            return f"torch._C._{space}.{space}_{name}"
        return ours
    module = getattr(fn, "__module__", None) or ""
    name = getattr(fn, "__qualname__", None) or fn.__name__
    if name == "<lambda>":
        return "<lambda>"
    module = module.replace("_operator", "operator")
    if module.partition(".")[0] == "rushlight":
        module = "torch" + module.removeprefix("rushlight")
    return f"{module}.{getattr(fn, '__name__', name)}"


def annotation_name(kind: Any) -> str:
    """A type, as an annotation spells it."""
    if isinstance(kind, str):
        return repr(kind)
    if isinstance(kind, type) and not hasattr(kind, "__origin__"):
        if kind.__module__ == "builtins":
            return kind.__name__
        name = f"{kind.__module__}.{kind.__qualname__}"
        if name == "rushlight.tensor.Tensor":
            return "torch.Tensor"
        return "torch" + name.removeprefix("rushlight") if name.startswith("rushlight.") else name
    return _our_names_as_theirs(str(kind))


def _our_names_as_theirs(text: str) -> str:
    text = text.replace("rushlight.tensor.Tensor", "torch.Tensor")
    return re.sub(r"\brushlight\.", "torch.", text)


def snake_case(text: str) -> str:
    """`cD` is `c_d`, and `B` is `b`."""
    made: list[str] = []
    for i, c in enumerate(text):
        if c.isupper() and i and text[i - 1].islower():
            made.append("_")
        made.append(c.lower())
    return "".join(made)


_ILLEGAL: Final = re.compile("[^0-9a-zA-Z_]+")
_NUMBERED: Final = re.compile(r"(.*)_(\d+)$")

# Names that generated code gives a meaning to.
RESERVED: Final = frozenset({"inf", "nan", "NoneType", "torch", "device", "fx_pytree", "pytree"})


class Namespace:
    """Gives names that differ: `add`, `add_1`."""

    def __init__(self) -> None:
        self.used: set[str] = set()
        self.counts: dict[str, int] = {}
        self.holder: dict[Any, str] = {}

    def create_name(self, candidate: str, obj: Any) -> str:
        """A name for `obj`, as near to `candidate` as it may be."""
        if obj is not None and obj in self.holder:
            return self.holder[obj]
        candidate = _ILLEGAL.sub("_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        numbered = _NUMBERED.match(candidate)
        base, number = candidate, 0
        if numbered is not None:
            base, number = numbered.group(1), int(numbered.group(2))
        if candidate in self.used and not number:
            number = self.counts.get(base, 0)
        while candidate in self.used or self._is_taken(candidate, obj):
            number += 1
            candidate = f"{base}_{number}"
        self.used.add(candidate)
        self.counts[base] = number
        if obj is not None:
            self.holder[obj] = candidate
        return candidate

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Note that `obj` has this name."""
        self.holder[obj] = name

    def rename(self, obj: Any, name: str) -> None:
        self.holder[obj] = name
        self.used.add(name)

    @staticmethod
    def _is_taken(name: str, obj: Any) -> bool:
        if name in keyword.kwlist:
            return True
        if name in vars(builtins):
            return vars(builtins)[name] is not obj
        return name in RESERVED and not isinstance(obj, ModuleType)
