"""Lazy modules: what they print before and after the first call, save, load and refuse."""

from __future__ import annotations

import copy
import pickle
from typing import Any

from tests.harness import PlainCases, attempt

exact = PlainCases()
close = PlainCases()

LAYERS = {
    "LazyLinear(3)": (2, 4), "LazyLinear(3, bias=False)": (4,), "LazyBatchNorm1d()": (5, 3),
    "LazyBatchNorm2d(affine=False)": (2, 3, 2, 2), "LazyBatchNorm3d()": (2, 3, 2, 2, 2),
    "LazyBatchNorm3d(track_running_stats=False)": (2, 3, 2, 2, 2), "LazyConv1d(4, 3)": (1, 2, 5),
    "LazyConv2d(4, 3, groups=2)": (1, 2, 5, 5), "LazyConv3d(4, 3, 2, bias=False)": (2, 5, 5, 5),
    "LazyConvTranspose1d(4, 3)": (1, 2, 5), "LazyConvTranspose2d(4, 3, groups=2)": (1, 2, 5, 5),
    "LazyConvTranspose3d(4, 3)": (2, 2, 2, 2), "LazyInstanceNorm1d()": (1, 2, 5),
    "LazyInstanceNorm2d(affine=False)": (1, 2, 5, 5), "LazyInstanceNorm3d()": (1, 2, 2, 5, 5),
}  # fmt: skip


def called(torch: Any) -> Any:
    found = {}
    for text, shape in LAYERS.items():
        torch.manual_seed(0)
        m = eval(f"nn.{text}", {"nn": torch.nn})
        before = [repr(m), repr(m.state_dict()), m.has_uninitialized_params()]
        copied = eval(f"nn.{text}", {"nn": torch.nn})
        y = m(torch.arange(float(torch.Size(shape).numel())).reshape(shape))
        after = [repr(m), type(m).__name__, list(y.shape), len(m._forward_pre_hooks)]
        values = {name: value.tolist() for name, value in m.state_dict().items()}
        copied.load_state_dict(m.state_dict())
        found[text] = [before, after, values, copied.has_uninitialized_params()]
    return found


def parameters(torch: Any) -> Any:
    nn = torch.nn
    p, b = nn.UninitializedParameter(), nn.UninitializedBuffer()
    found = [repr(p), repr(b), p.requires_grad, p.is_leaf, isinstance(p, nn.Parameter)]
    found += [nn.parameter.is_lazy(p), nn.parameter.is_lazy(torch.ones(1)), repr(copy.deepcopy(p))]
    found += [repr(pickle.loads(pickle.dumps(p))), repr(nn.LazyLinear(2).double().weight.dtype)]
    p.materialize((2, 3), dtype=torch.float64)
    b.materialize((1,))
    return [*found, type(p).__name__, list(p.shape), repr(p.dtype), isinstance(b, torch.Tensor)]


def errors(torch: Any) -> Any:
    nn, ones = torch.nn, torch.ones
    Mixin = nn.modules.lazy.LazyModuleMixin

    class Forgetful(Mixin, nn.Module):  # type: ignore[misc,valid-type,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.UninitializedParameter()

        def initialize_parameters(self, x: Any) -> None:
            pass

    calls = [
        lambda: nn.UninitializedParameter().shape, lambda: nn.UninitializedParameter().numel(),
        lambda: nn.UninitializedParameter().share_memory_(),
        lambda: nn.Linear(2, 3).load_state_dict(nn.LazyLinear(3).state_dict()),
        lambda: repr(nn.LazyLinear(3).load_state_dict(nn.LazyLinear(3).state_dict())),
        lambda: Forgetful()(ones(1)), lambda: Mixin.initialize_parameters(Forgetful(), 1),
        lambda: nn.LazyConv2d(4, 3)(ones(2)),
        lambda: nn.LazyConv2d(4, 3, groups=2)(ones(1, 3, 5, 5)),
        lambda: nn.LazyBatchNorm2d()(ones(2, 3)),
        lambda: nn.LazyLinear(3)._replicate_for_data_parallel(),
    ]  # fmt: skip
    return [attempt(call) for call in calls]


close["called"] = called
exact["parameters"], exact["errors"] = parameters, errors


def results(torch: Any) -> Any:
    return exact.results(torch) | close.results(torch)
