"""`spectral_norm` by a hook: the older form of `parametrizations.spectral_norm`."""

from __future__ import annotations

from typing import Any

from rushlight.autograd.grad_mode import no_grad
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.ops.registry import functions, namespaces

__all__ = [
    "SpectralNorm",
    "SpectralNormLoadStateDictPreHook",
    "SpectralNormStateDictHook",
    "remove_spectral_norm",
    "spectral_norm",
]  # fmt: skip
__dir__ = __all__.copy


class SpectralNorm:
    """SpectralNorm(name="weight", n_power_iterations=1, dim=0, eps=1e-12): the hook that divides a
    weight by its largest singular value."""

    _version: int = 1  # since 1 the vector v is saved

    def __init__(
        self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        self.name = name
        self.dim = dim
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got n_power_iterations="
                f"{n_power_iterations}"
            )
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight: Any) -> Any:
        """The weight with `dim` first and the others as one."""
        if self.dim != 0:
            others = [d for d in range(weight.ndim) if d != self.dim]
            weight = weight.permute(self.dim, *others)
        return weight.reshape(weight.shape[0], -1)

    def _unit(self, x: Any) -> Any:
        return namespaces["nn.functional"]["normalize"](x, dim=0, eps=self.eps)

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Any:
        """The weight divided by its largest singular value, after some steps that follow it."""
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(self._unit(functions["mv"](matrix.t(), u)))
                    u.copy_(self._unit(functions["mv"](matrix, v)))
                if self.n_power_iterations > 0:  # they are written again before a late backward
                    u, v = u.clone(), v.clone()
        sigma = functions["dot"](u, functions["mv"](matrix, v))
        return weight / sigma

    def remove(self, module: Module) -> None:
        """Make the weight an ordinary parameter again."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        delattr(module, self.name)
        for suffix in ("_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        value = self.compute_weight(module, do_power_iteration=module.training)
        setattr(module, self.name, value)

    def _solve_v_and_rescale(self, weight_mat: Any, u: Any, target_sigma: Any) -> Any:
        """The v that goes with u in files of old, which do not have it."""
        product = weight_mat.t() @ weight_mat
        v = namespaces["linalg"]["multi_dot"](
            [product.pinverse(), weight_mat.t(), u.unsqueeze(1)]
        ).squeeze(1)
        return v.mul_(target_sigma / functions["dot"](u, functions["mv"](weight_mat, v)))

    @staticmethod
    def apply(
        module: Module, name: str, n_power_iterations: int, dim: int, eps: float
    ) -> SpectralNorm:
        """Put the hook on a module."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(
                    f"Cannot register two spectral_norm hooks on the same parameter {name}"
                )
        made = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        with no_grad():
            h, w = made.reshape_weight_to_matrix(weight).shape
            u = made._unit(weight.new_empty(h).normal_(0, 1))
            v = made._unit(weight.new_empty(w).normal_(0, 1))
        delattr(module, made.name)
        module.register_parameter(made.name + "_orig", weight)
        setattr(module, made.name, weight.data)
        module.register_buffer(made.name + "_u", u)
        module.register_buffer(made.name + "_v", v)
        module.register_forward_pre_hook(made)
        module._register_state_dict_hook(SpectralNormStateDictHook(made))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(made))
        return made


class SpectralNormLoadStateDictPreHook:
    """SpectralNormLoadStateDictPreHook(fn): reads values that were saved before v was."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: Any,
        unexpected_keys: Any, error_msgs: Any,
    ) -> None:  # fmt: skip
        fn = self.fn
        saved = local_metadata.get("spectral_norm", {})
        version = saved.get(fn.name + ".version", None)
        if version is not None and version >= 1:
            return
        key = prefix + fn.name
        own = all(key + suffix in state_dict for suffix in ("_orig", "_u", "_v"))
        if version is None and own and key not in state_dict:
            return
        there = True
        for suffix in ("_orig", "", "_u"):
            if key + suffix not in state_dict:
                there = False
                if strict:
                    missing_keys.append(key + suffix)
        if not there:
            return
        with no_grad():
            original = state_dict[key + "_orig"]
            value = state_dict.pop(key)
            sigma = (original / value).mean()
            matrix = fn.reshape_weight_to_matrix(original)
            u = state_dict[key + "_u"]
            state_dict[key + "_v"] = fn._solve_v_and_rescale(matrix, u, sigma)


class SpectralNormStateDictHook:
    """SpectralNormStateDictHook(fn): notes the version in what is saved."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(self, module: Module, state_dict: Any, prefix: str, local_metadata: Any) -> None:
        noted = local_metadata.setdefault("spectral_norm", {})
        key = self.fn.name + ".version"
        if key in noted:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        noted[key] = self.fn._version


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
    dim: int | None = None,
) -> Any:  # fmt: skip
    """Divide a weight by its largest singular value, before each call.

    >>> m = torch.nn.utils.spectral_norm(torch.nn.Linear(20, 40))
    >>> m.weight_u.shape
    torch.Size([40])
    """
    if dim is None:
        turned = any(cls.__name__.startswith("ConvTranspose") for cls in type(module).__mro__)
        dim = 1 if turned else 0
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Take `spectral_norm` from a module.

    >>> m = torch.nn.utils.spectral_norm(torch.nn.Linear(20, 40))
    >>> torch.nn.utils.remove_spectral_norm(m)
    Linear(in_features=20, out_features=40, bias=True)
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            break
    else:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    for hooks, kind in (
        (module._state_dict_hooks, SpectralNormStateDictHook),
        (module._load_state_dict_pre_hooks, SpectralNormLoadStateDictPreHook),
    ):
        for key, hook in list(hooks.items()):
            if isinstance(hook, kind) and hook.fn.name == name:
                del hooks[key]
    return module
