"""Libraries written for PyTorch work through the alias, unchanged; `make` installs them.

What is expected here is what the same programs print on PyTorch.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

# By library: a program, and what it prints.
PROGRAMS = {
    "einops": (
        """
        import einops
        import torch
        from einops.layers.torch import Rearrange, Reduce
        from torch import nn

        x = torch.arange(24.0).reshape(2, 3, 4).requires_grad_()
        y = einops.rearrange(x, "b c (h w) -> b (c h) w", h=2)
        print(tuple(y.shape), y[1, 0].tolist())
        print(einops.reduce(x, "b c w -> c", "mean").tolist())
        print(einops.repeat(x, "b c w -> b (r c) w", r=2).shape)
        print(einops.einsum(x, x, "b c w, b d w -> b c d")[0].tolist())
        packed, shapes = einops.pack([torch.ones(1, 3), torch.zeros(1, 2, 2)], "b *")
        print(packed.tolist(), shapes)
        flat = Rearrange("b c w -> b (c w)")
        net = nn.Sequential(flat, nn.Linear(12, 2), Reduce("b o -> b", "max"))
        print(net)
        print(net(x).shape)
        einops.rearrange(x, "a b c -> c b a")[1].pow(2).sum().backward()
        print(x.grad[0].tolist())
        try:
            einops.rearrange(x, "a b -> b a")
        except einops.EinopsError as error:
            print(str(error).splitlines()[1])
        """,
        """
        (2, 6, 2) [12.0, 13.0]
        [7.5, 11.5, 15.5]
        torch.Size([2, 6, 4])
        [[14.0, 38.0, 62.0], [38.0, 126.0, 214.0], [62.0, 214.0, 366.0]]
        [[1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]] [torch.Size([3]), torch.Size([2, 2])]
        Sequential(
          (0): Rearrange('b c w -> b (c w)')
          (1): Linear(in_features=12, out_features=2, bias=True)
          (2): Reduce('b o -> b', 'max')
        )
        torch.Size([2])
        [[0.0, 2.0, 0.0, 0.0], [0.0, 10.0, 0.0, 0.0], [0.0, 18.0, 0.0, 0.0]]
         Input tensor shape: torch.Size([2, 3, 4]). Additional info: {}.
        """,
    ),
    "torchinfo": (
        """
        from torch import nn
        from torchinfo import summary

        net = nn.Sequential(
            nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(864, 10)
        )
        net[0].bias.requires_grad_(False)
        print(summary(net, (1, 1, 28, 28), verbose=0))
        """,
        """
        ==========================================================================================
        Layer (type:depth-idx)                   Output Shape              Param #
        ==========================================================================================
        Sequential                               [1, 10]                   --
        ├─Conv2d: 1-1                            [1, 6, 24, 24]            156
        ├─ReLU: 1-2                              [1, 6, 24, 24]            --
        ├─MaxPool2d: 1-3                         [1, 6, 12, 12]            --
        ├─Flatten: 1-4                           [1, 864]                  --
        ├─Linear: 1-5                            [1, 10]                   8,650
        ==========================================================================================
        Total params: 8,806
        Trainable params: 8,800
        Non-trainable params: 6
        Total mult-adds (Units.MEGABYTES): 0.10
        ==========================================================================================
        Input size (MB): 0.00
        Forward/backward pass size (MB): 0.03
        Params size (MB): 0.04
        Estimated Total Size (MB): 0.07
        ==========================================================================================
        """,
    ),
    "lion_pytorch": (
        """
        import torch
        from lion_pytorch import Lion
        from torch import nn

        w = nn.Parameter(torch.tensor([1.0, -2.0, 3.0]))
        optimizer = Lion([w], lr=0.1, weight_decay=0.5)
        for _ in range(3):
            optimizer.zero_grad()
            loss = (w**2).sum()
            loss.backward()
            optimizer.step()
            print([round(v, 4) for v in w.tolist()], round(loss.item(), 4))
        mean = optimizer.state_dict()["state"][0]["exp_avg"]
        print(sorted(optimizer.state[w]), [round(v, 4) for v in mean.tolist()])
        """,
        """
        [0.85, -1.8, 2.75] 14.0
        [0.7075, -1.61, 2.5125] 11.525
        [0.5721, -1.4295, 2.2869] 9.4053
        ['exp_avg'] [0.0506, -0.107, 0.1635]
        """,
    ),
    "torchmetrics": (
        """
        import torch
        from torchmetrics import MeanSquaredError, MetricCollection
        from torchmetrics.classification import (
            BinaryAUROC, MulticlassAccuracy, MulticlassConfusionMatrix, MulticlassF1Score
        )

        scores = torch.tensor([[2.0, 1, 0], [0, 2, 1], [0, 1, 2], [3, 1, 2]])
        kind = torch.tensor([0, 1, 1, 2])
        both = MetricCollection([MulticlassAccuracy(3, average="micro"), MulticlassF1Score(3)])
        both.update(scores, kind)
        both.update(scores[:2], kind[:2])
        print({name: round(value.item(), 4) for name, value in both.compute().items()})
        print(MulticlassConfusionMatrix(3)(scores, kind).tolist())
        chance, truth = torch.tensor([0.1, 0.4, 0.35, 0.8]), torch.tensor([0, 0, 1, 1])
        print(round(BinaryAUROC()(chance, truth).item(), 4))
        error = MeanSquaredError()
        for k in range(3):
            error(torch.tensor([float(k), 1.0]), torch.zeros(2))
        print(error, round(error.compute().item(), 4))
        error.reset()
        print(error.total, error.sum_squared_error)
        """,
        """
        {'MulticlassAccuracy': 0.6667, 'MulticlassF1Score': 0.5333}
        [[1, 0, 0], [0, 1, 1], [1, 0, 0]]
        0.75
        MeanSquaredError() 1.3333
        tensor(0) tensor([0.])
        """,
    ),
}


@pytest.mark.parametrize("library", PROGRAMS)
def test_prints_what_it_prints_on_pytorch(library: str, tmp_path: Path) -> None:
    # Looked for, not imported: here it would import PyTorch, which need not be installed.
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    program, expected = PROGRAMS[library]
    script = tmp_path / "script.py"
    script.write_text(dedent(program), "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "rushlight", "run", str(script)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == dedent(expected).removeprefix("\n")
