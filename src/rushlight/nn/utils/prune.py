"""`nn.utils.prune`: weights of which some elements are held at 0.

A pruned parameter `weight` becomes `weight_orig`, with a buffer `weight_mask`; a hook computes
`weight` from both before each call. Methods can follow one another: each prunes what the others
left.
"""

from __future__ import annotations

import numbers
import typing as _typing
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from rushlight.missing import face as _face
from rushlight.nn.modules.module import Module
from rushlight.ops.registry import functions

__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured",
    "PruningContainer", "RandomStructured", "RandomUnstructured", "custom_from_mask",
    "global_unstructured", "identity", "is_pruned", "l1_unstructured", "ln_structured",
    "random_structured", "random_unstructured", "remove",
]  # fmt: skip


class BasePruningMethod(ABC):
    """A way of pruning. A method of your own gives `compute_mask(t, default_mask)`, and says what
    it prunes by `PRUNING_TYPE`: "unstructured" (elements), "structured" (channels) or "global".
    """

    _tensor_name: str
    PRUNING_TYPE: str

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask for a tensor of which `default_mask` has pruned some elements already."""

    def apply_mask(self, module: Module) -> Any:
        """The pruned tensor, from the original and its mask."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        mask = getattr(module, self._tensor_name + "_mask")
        original = getattr(module, self._tensor_name + "_orig")
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any
    ) -> Any:
        """Prune a parameter of a module: compute the mask, and put the hook on the module."""
        before = [
            (key, hook)
            for key, hook in module._forward_pre_hooks.items()
            if isinstance(hook, BasePruningMethod) and hook._tensor_name == name
        ]
        if len(before) > 1:
            raise AssertionError(
                f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}."
                " Use a PruningContainer."
            )
        for key, _ in before:
            del module._forward_pre_hooks[key]
        method: Any = cls(*args, **kwargs)
        method._tensor_name = name
        if before:
            found = before[0][1]
            held = found if isinstance(found, PruningContainer) else PruningContainer(found)
            held.add_pruning_method(method)
            method = held
        original = getattr(module, name)
        if importance_scores is None:
            importance_scores = original
        elif importance_scores.shape != original.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}"
            )
        if not isinstance(method, PruningContainer):
            module.register_parameter(name + "_orig", module._parameters[name])
            del module._parameters[name]
            default = functions["ones_like"](original)
        else:
            default = getattr(module, name + "_mask").detach().clone(memory_format=_rows())
        try:
            mask = method.compute_mask(importance_scores, default_mask=default)
            module.register_buffer(name + "_mask", mask)
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if not isinstance(method, PruningContainer):
                module.register_parameter(name, getattr(module, name + "_orig"))
                del module._parameters[name + "_orig"]
            raise
        return method

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """A pruned tensor, as a new one."""
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError(
                "importance_scores should have the same shape as tensor t, got "
                f"{importance_scores.shape} vs {t.shape}"
            )
        if default_mask is None:
            default_mask = functions["ones_like"](t)
        return t * self.compute_mask(importance_scores, default_mask=default_mask)

    def remove(self, module: Module) -> None:
        """Leave the parameter pruned for good: the mask and the original go."""
        name = self._tensor_name
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters[name + "_orig"]
        original.data = weight.data
        del module._parameters[name + "_orig"]
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


def _rows() -> Any:
    """The memory format of masks."""
    from rushlight.dtypes import contiguous_format

    return contiguous_format


class PruningContainer(BasePruningMethod):
    """PruningContainer(*methods): several methods on one parameter, one after the other."""

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[Any, ...] = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
            self.add_pruning_method(args[0])
        else:
            for method in args:
                self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Add a method on the same parameter."""
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found "
                f"'{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask of the newest method, on what the others have left."""
        method: Any = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        kind = method.PRUNING_TYPE
        if kind == "unstructured":
            left: Any = mask == 1
        elif kind == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError(
                    "Pruning methods of PRUNING_TYPE 'structured' need to have the attribute "
                    "`dim` defined."
                )
            dim = method.dim % t.ndim
            others = [d for d in range(t.ndim) if d != dim]
            some = mask.sum(dim=others) != 0
            left = (*(slice(None),) * dim, some)
        elif kind == "global":
            left = (slice(None),) * t.ndim
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {kind}")
        found = mask.clone()
        found[left] = method.compute_mask(t[left], default_mask=mask[left]).to(mask.dtype)
        return found


# --- how much -------------------------------------------------------------------------------------
def _validate_pruning_amount_init(amount: Any) -> None:
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    whole = isinstance(amount, numbers.Integral)
    size = float(amount)
    if size < 0 or (not whole and size > 1):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0, 1] or a non-negative "
            "integer"
        )


def _validate_pruning_amount(amount: Any, tensor_size: int) -> None:
    if isinstance(amount, int) and amount > tensor_size:
        raise ValueError(
            f"amount={amount} should be smaller than the number of parameters to prune="
            f"{tensor_size}"
        )


def _validate_structured_pruning(t: Any) -> None:
    if t.ndim <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. Found tensor of "
            f"shape {t.shape} with {t.ndim} dims"
        )


def _compute_nparams_toprune(amount: Any, tensor_size: int) -> Any:
    return amount if isinstance(amount, numbers.Integral) else round(amount * tensor_size)


def _validate_pruning_dim(t: Any, dim: int) -> None:
    if dim >= t.ndim:
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _compute_norm(t: Any, n: Any, dim: int) -> Any:
    dims = list(range(t.ndim))
    if dim < 0:
        dim = dims[dim]
    dims.remove(dim)
    return functions["norm"](t, p=n, dim=dims)


# --- methods --------------------------------------------------------------------------------------
class Identity(BasePruningMethod):
    """Prunes nothing: a mask of ones."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return default_mask

    @classmethod
    def apply(cls, module: Module, name: str) -> Any:  # type: ignore[override]
        return super().apply(module, name)


class _ByAmount(BasePruningMethod):
    """What methods share that prune a number or a share of elements."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: Any) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        size = t.nelement()
        count = _compute_nparams_toprune(self.amount, size)
        _validate_pruning_amount(count, size)
        mask = default_mask.clone(memory_format=_rows())
        if count != 0:
            mask.view(-1)[self.chosen(t, count)] = 0
        return mask

    def chosen(self, t: Any, count: int) -> Any:
        """The places of the elements to prune."""
        raise NotImplementedError


class RandomUnstructured(_ByAmount):
    """RandomUnstructured(amount): elements at random."""

    def chosen(self, t: Any, count: int) -> Any:
        chances = functions["rand_like"](t)
        return functions["topk"](chances.view(-1), k=count).indices

    @classmethod
    def apply(cls, module: Module, name: str, amount: Any) -> Any:  # type: ignore[override]
        return super().apply(module, name, amount=amount)


class L1Unstructured(_ByAmount):
    """L1Unstructured(amount): the elements of least magnitude."""

    def chosen(self, t: Any, count: int) -> Any:
        sizes = functions["abs"](t).view(-1)
        return functions["topk"](sizes, k=count, largest=False).indices

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, amount: Any, importance_scores: Any = None
    ) -> Any:
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


def _channels_mask(t: Any, dim: int, kept: Any) -> Any:
    """Ones in the channels along `dim` whose numbers are given."""
    mask = functions["zeros_like"](t)
    mask[(*(slice(None),) * (dim % t.ndim), kept)] = 1
    return mask


class RandomStructured(BasePruningMethod):
    """RandomStructured(amount, dim=-1): channels along `dim`, at random."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount
        self.dim = dim

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        size = t.shape[self.dim]
        count = _compute_nparams_toprune(self.amount, size)
        _validate_pruning_amount(count, size)
        if count == 0:
            return default_mask
        chances = functions["rand"](size)
        threshold = functions["kthvalue"](chances, k=count).values
        kept = (chances > threshold).nonzero().reshape(-1)
        return _channels_mask(t, self.dim, kept) * default_mask.to(dtype=t.dtype)

    @classmethod
    def apply(cls, module: Module, name: str, amount: Any, dim: int = -1) -> Any:  # type: ignore[override]
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(BasePruningMethod):
    """LnStructured(amount, n, dim=-1): the channels along `dim` of least norm of order `n`."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount
        self.n = n
        self.dim = dim

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        size = t.shape[self.dim]
        count = _compute_nparams_toprune(self.amount, size)
        left = size - count
        _validate_pruning_amount(count, size)
        if count == 0:
            return default_mask
        norms = _compute_norm(t, self.n, self.dim)
        kept = functions["topk"](norms, k=left, largest=True).indices
        return _channels_mask(t, self.dim, kept) * default_mask.to(dtype=t.dtype)

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None
    ) -> Any:
        return super().apply(
            module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores
        )


class CustomFromMask(BasePruningMethod):
    """CustomFromMask(mask): what a mask says."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Any) -> None:
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        if default_mask.shape != self.mask.shape:
            raise AssertionError("mask shape does not match default_mask shape")
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module: Module, name: str, mask: Any) -> Any:  # type: ignore[override]
        return super().apply(module, name, mask=mask)


# --- as functions ---------------------------------------------------------------------------------
def identity(module: Any, name: str) -> Any:
    """Make a parameter ready for pruning, without pruning any of it.

    >>> from rushlight.nn.utils import prune
    >>> prune.identity(torch.nn.Linear(2, 1), "bias").bias_mask
    tensor([1.])
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: Any) -> Any:
    """Prune elements at random: `amount` of them, or if it is a float that share.

    >>> from rushlight.nn.utils import prune
    >>> m = prune.random_unstructured(torch.nn.Linear(2, 3), name="weight", amount=1)
    >>> int((m.weight_mask == 0).sum())
    1
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Any, name: str, amount: Any, importance_scores: Any = None) -> Any:
    """Prune the elements of least magnitude, or of least `importance_scores`.

    >>> from rushlight.nn.utils import prune
    >>> m = prune.l1_unstructured(torch.nn.Linear(2, 3), "weight", amount=0.5)
    >>> sorted(m.state_dict())
    ['bias', 'weight_mask', 'weight_orig']
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: Any, dim: int) -> Any:
    """Prune whole channels along `dim`, at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None
) -> Any:
    """Prune the channels along `dim` of least norm of order `n`."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(
    parameters: Any, pruning_method: Any, importance_scores: Any = None, **kwargs: Any
) -> None:
    """Prune several parameters, pairs of a module and a name, as if they were one.

    >>> from rushlight.nn.utils import prune
    >>> net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1))
    >>> which = [(net[0], "weight"), (net[1], "weight")]
    >>> prune.global_unstructured(which, pruning_method=prune.L1Unstructured, amount=4)
    >>> sum(int((m.weight == 0).sum()) for m, _ in which)
    4
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    pairs = list(parameters)
    flat = [scores.get((m, name), getattr(m, name)) for m, name in pairs]
    relevance = _joined(flat)
    default = _joined(
        [getattr(m, name + "_mask", functions["ones_like"](getattr(m, name))) for m, name in pairs]
    )
    held = PruningContainer()
    held._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    held.add_pruning_method(method)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    mask = held.compute_mask(relevance, default)
    at = 0
    for module, name in pairs:
        param = getattr(module, name)
        size = param.numel()
        custom_from_mask(module, name, mask=mask[at : at + size].view_as(param))
        at += size


def _joined(tensors: list[Any]) -> Any:
    return functions["cat"]([t.reshape(-1) for t in tensors])


def custom_from_mask(module: Any, name: str, mask: Any) -> Any:
    """Prune what a mask of zeros and ones says.

    >>> from rushlight.nn.utils import prune
    >>> m = prune.custom_from_mask(torch.nn.Linear(1, 2), "bias", torch.tensor([0, 1]))
    >>> float(m.bias[0])
    0.0
    """
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module: Any, name: str) -> Any:
    """Leave a parameter pruned for good: an ordinary parameter again.

    >>> from rushlight.nn.utils import prune
    >>> m = prune.random_unstructured(torch.nn.Linear(5, 7), name="weight", amount=0.2)
    >>> list(prune.remove(m, "weight").state_dict())
    ['bias', 'weight']
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(
        f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
    )


def is_pruned(module: Any) -> bool:
    """Whether a module, or one in it, is pruned.

    >>> from rushlight.nn.utils import prune
    >>> prune.is_pruned(torch.nn.Linear(5, 7))
    False
    """
    return any(
        isinstance(hook, BasePruningMethod)
        for _, inner in module.named_modules()
        for hook in inner._forward_pre_hooks.values()
    )


if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.nn.utils.prune", globals())
