"""Parametrizations, and the hooks of old for the same ends: what they print, save, compute."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

from tests.harness import PlainCases, attempt

exact = PlainCases()
close = PlainCases()


def kinds(torch: Any) -> Any:
    """Parametrizations of our own: with an inverse, of two tensors, and three that will not do."""
    Module = torch.nn.Module

    class Symmetric(Module):  # type: ignore[misc,valid-type]
        def forward(self, X: Any) -> Any:
            return X.triu() + X.triu(1).T

        def right_inverse(self, A: Any) -> Any:
            return A.triu()

    class Two(Module):  # type: ignore[misc,valid-type]
        def forward(self, a: Any, b: Any) -> Any:
            return a + b

        def right_inverse(self, A: Any) -> Any:
            return A / 2, A / 2

    def bad(fn: Any) -> Any:
        return type("Bad", (Module,), {"forward": lambda self, x: fn(x)})

    return Symmetric, Two, [bad(lambda x: x[:1]), bad(lambda x: x.double()), bad(lambda x: 3)]


def life(torch: Any) -> Any:
    """Registered, read, cached, assigned to, copied, transferred, removed."""
    nn, p = torch.nn, torch.nn.utils.parametrize
    Symmetric, Two, _ = kinds(torch)
    m = nn.Linear(2, 2)
    p.register_parametrization(m, "weight", Symmetric())
    p.register_parametrization(m, "weight", nn.Tanh(), unsafe=True)
    found = [repr(m), p.is_parametrized(m), p.is_parametrized(m, "bias"), list(m.state_dict())]
    found += [p.type_before_parametrizations(m).__name__, [n for n, _ in m.named_parameters()]]
    with p.cached():
        found.append(m.weight is m.weight)
    found.append(m.weight is m.weight)
    p.remove_parametrizations(m, "weight")
    found += [repr(m), type(m).__name__, [n for n, _ in m.named_parameters()]]
    m = p.register_parametrization(nn.Linear(2, 2), "weight", Two())
    found.append(list(m.state_dict()))
    m.weight = torch.ones(2, 2)
    found += [m.weight.tolist(), m.parametrizations.weight.original0.tolist()]
    found.append(copy.deepcopy(m).weight.tolist())
    other = p.transfer_parametrizations_and_params(m, nn.Linear(2, 2))
    found += [other.weight.tolist(), repr(other)]
    found.append(attempt(lambda: p.remove_parametrizations(m, "weight", False)))
    found.append(repr(p.remove_parametrizations(m, "weight").weight))
    return found


def errors(torch: Any) -> Any:
    nn, p = torch.nn, torch.nn.utils.parametrize
    z, n = torch.nn.utils.parametrizations, torch.nn.utils
    Symmetric, _, bad = kinds(torch)

    def new() -> Any:
        return nn.Linear(2, 2)

    def again(kind: Any) -> Any:
        m = p.register_parametrization(new(), "weight", Symmetric())
        return p.register_parametrization(m, "weight", kind())

    def assigned() -> None:
        m = p.register_parametrization(new(), "weight", nn.Tanh())
        m.weight = torch.ones(2, 2)

    calls = [
        *[lambda k=k: p.register_parametrization(new(), "weight", k()) for k in bad],
        *[lambda k=k: again(k) for k in bad], assigned,
        lambda: p.register_parametrization(new(), "foo", Symmetric()),
        lambda: p.remove_parametrizations(new(), "weight"),
        lambda: pickle.dumps(p.register_parametrization(new(), "weight", nn.Tanh())),
        lambda: z.orthogonal(new(), "bias"), lambda: z.orthogonal(new(), "foo"),
        lambda: z.orthogonal(new(), orthogonal_map="foo"), lambda: z.spectral_norm(new(), "foo"),
        lambda: n.remove_weight_norm(new()), lambda: n.remove_spectral_norm(new()),
        lambda: n.spectral_norm(new(), n_power_iterations=0),
        lambda: n.spectral_norm(n.spectral_norm(new())),
        lambda: n.fuse_linear_bn_eval(new(), nn.BatchNorm1d(2)), lambda: n.skip_init(nn.ReLU),
    ]  # fmt: skip
    return [attempt(call) for call in calls]


def trained(torch: Any, m: Any) -> Any:
    """Its names, its weight, and the gradients of a sum."""
    m(torch.ones(3)).sum().backward()
    found = {name: p.grad.tolist() for name, p in m.named_parameters()}
    return [list(m.state_dict()), found, m.eval().weight.tolist()]


def norms(torch: Any) -> Any:
    nn, u = torch.nn, torch.nn.utils
    found = {}
    makers = {
        "weight_norm": u.parametrizations.weight_norm, "old weight_norm": u.weight_norm,
        "spectral_norm": u.parametrizations.spectral_norm, "old spectral_norm": u.spectral_norm,
        "weight_norm of all": lambda m: u.parametrizations.weight_norm(m, dim=None),
        "weight_norm 1": lambda m: u.parametrizations.weight_norm(m, dim=1),
    }  # fmt: skip
    for name, make in makers.items():
        torch.manual_seed(0)
        found[name] = trained(torch, make(nn.Linear(3, 2)))
    torch.manual_seed(1)
    m = u.parametrizations.weight_norm(nn.Linear(3, 2))
    old = {"bias": torch.ones(2), "weight_g": torch.ones(2, 1), "weight_v": torch.ones(2, 3)}
    m.load_state_dict(old)
    found["from old names"] = m.weight.tolist()
    a, b = u.spectral_norm(nn.Linear(3, 2)), u.spectral_norm(nn.Linear(3, 2))
    found["loaded"] = [repr(b.load_state_dict(a.state_dict())), b.weight_u.tolist()]
    found["removed"] = [list(u.remove_spectral_norm(a).state_dict()), len(a._state_dict_hooks)]
    found["removed too"] = list(u.remove_weight_norm(u.weight_norm(nn.Linear(3, 2))).state_dict())
    return found


def orthogonal(torch: Any) -> Any:
    found = {}
    for how in ("cayley", "householder", "matrix_exp"):
        for trivial in (True, False):
            for shape in ((3, 3), (2, 4), (4, 2)):
                torch.manual_seed(0)
                m = torch.nn.utils.parametrizations.orthogonal(
                    torch.nn.Linear(*shape), orthogonal_map=how, use_trivialization=trivial
                )
                weight = m.weight
                (weight * torch.arange(weight.numel()).reshape(weight.shape)).sum().backward()
                grad = m.parametrizations.weight.original.grad
                found[f"{how} {trivial} {shape}"] = [weight.tolist(), grad.tolist()]
    return found


def fused(torch: Any) -> Any:
    nn, u = torch.nn, torch.nn.utils
    torch.manual_seed(0)
    found = []
    for layer, norm, x, fuse in (
        (nn.Linear(3, 2), nn.BatchNorm1d(2), torch.randn(5, 3), u.fuse_linear_bn_eval),
        (nn.Conv2d(3, 2, 2), nn.BatchNorm2d(2), torch.randn(5, 3, 4, 4), u.fuse_conv_bn_eval),
    ):
        norm(layer(x))
        layer.eval()
        norm.eval()
        one = fuse(layer, norm)
        found.append(
            [repr(one), one.bias.tolist(), float((one(x) - norm(layer(x))).abs().max()) < 1e-5]
        )
    found.append(repr(u.skip_init(nn.Linear, 2, 3)))
    found.append(torch.rand(1).item())
    return found


def quiet(case: Any) -> Any:
    def run(torch: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return case(torch)

    return run


for _case in (life, errors):
    exact.enter(_case.__name__, quiet(_case))
for _case in (norms, orthogonal, fused):
    close.enter(_case.__name__, quiet(_case))


def results(torch: Any) -> Any:
    return exact.results(torch) | close.results(torch)
