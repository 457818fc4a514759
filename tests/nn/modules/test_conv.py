"""Modules that slide windows give what PyTorch gives: stored, and live where it is installed."""

from __future__ import annotations

import inspect
import pickle

import rushlight as torch
from tests.harness import LIVE, plain_tests, pytorch
from tests.nn.modules.cases_conv import MODULES, build, close, exact, numbers

globals().update(plain_tests("nn/modules/conv", exact, close))


if LIVE:

    def test_signatures_are_pytorchs() -> None:
        for name in {text.partition("(")[0] for text in MODULES}:
            ours, theirs = (
                [(p.name, p.default) for p in inspect.signature(c.__init__).parameters.values()]
                for c in (getattr(torch.nn, name), getattr(pytorch().nn, name))
            )
            assert ours == theirs, name


def test_modules_are_pickled() -> None:
    for text in MODULES:
        module = build(torch, text)
        again = pickle.loads(pickle.dumps(module))
        assert repr(again) == repr(module)
        for key, value in module.state_dict().items():
            assert torch.equal(again.state_dict()[key], value)


def test_names_that_other_libraries_import() -> None:
    from rushlight.nn.modules.conv import _ConvNd, _ConvTransposeNd
    from rushlight.nn.modules.utils import _ntuple, _pair, _reverse_repeat_tuple, _single, _triple

    assert _pair(3) == (3, 3) and _single([1]) == (1,) and _triple((1, 2, 3)) == (1, 2, 3)
    assert _ntuple(4)(0) == (0, 0, 0, 0) and _reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1)
    assert isinstance(torch.nn.Conv1d(1, 1, 1), _ConvNd)
    assert isinstance(torch.nn.ConvTranspose1d(1, 1, 1), _ConvTransposeNd)


def test_a_weight_may_be_given_in_place_of_the_own() -> None:
    """`_conv_forward` is what wrappers of weights call."""
    conv = torch.nn.Conv2d(2, 3, 3, padding=1, padding_mode="reflect")
    x = numbers(torch, 1, 2, 4, 4)
    doubled = conv._conv_forward(x, conv.weight * 2, None)
    assert torch.allclose(doubled, 2 * (conv(x) - conv.bias.reshape(-1, 1, 1)), atol=1e-5)
