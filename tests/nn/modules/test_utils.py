"""What `help` says of modules, optimisers, loaders and files: what each argument is."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

import rushlight as torch
from rushlight import nn, optim
from rushlight.nn.modules.utils import explain
from rushlight.utils.data import DataLoader

EXPLAINED: list[Any] = [
    nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d,
    nn.RNN, nn.LSTM, nn.GRU, nn.RNNCell, nn.LSTMCell, nn.GRUCell,
    nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d,
    nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool3d,
    nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.MultiheadAttention,
    nn.TransformerEncoderLayer, nn.TransformerDecoderLayer, nn.Transformer,
    nn.CrossEntropyLoss, nn.CTCLoss, DataLoader, optim.SGD, optim.Adam, optim.AdamW, optim.LBFGS,
    torch.save, torch.load,
]  # fmt: skip


def arguments(thing: Any) -> list[str]:
    """The names in a signature; that of recurrent layers stands in the docstring."""
    text = inspect.getdoc(thing) or ""
    names = [p.name for p in inspect.signature(thing).parameters.values() if p.name[0] != "_"]
    if names == ["args", "kwargs"]:
        (signature,) = re.findall(rf"^{thing.__name__}\((.*?)\)", text, re.DOTALL)
        names = [word.split("=")[0] for word in re.split(r",\s+", signature)]
    return [name for name in names if name not in ("device", "dtype")]


@pytest.mark.parametrize("thing", EXPLAINED, ids=lambda thing: thing.__name__)
def test_every_argument_is_explained(thing: Any) -> None:
    text = inspect.getdoc(thing) or ""
    explained = re.findall(r"^    ((?:\w+, )*\w+): ", text.partition("Args:\n")[2], re.MULTILINE)
    words = {word for line in explained for word in line.split(", ")}
    assert words - {"device", "dtype"} == set(arguments(thing))


def test_explain_without_docstrings() -> None:
    class Bare:
        pass

    explain("x: nothing.", Bare)
    assert Bare.__doc__ is None
