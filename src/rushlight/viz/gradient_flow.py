"""`viz.gradient_flow`: how large the gradients of a model's layers are."""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

from rushlight.core.grad_mode import within
from rushlight.explaining import number
from rushlight.viz.missing_extra import need

_KINDS: Final = {"fine": "#4c8dd6", "none": "#9aa3af", "zero": "#d9822b", "not finite": "#d6336c"}


class LayerFlow(NamedTuple):
    """Numbers about the gradient of one parameter; NaN where there is none."""

    name: str
    shape: tuple[int, ...]
    mean: float  # of the absolute values
    biggest: float
    norm: float
    ratio: float  # norm of the gradient by norm of the parameter
    zeros: float  # the part of the elements that is 0
    bad: int  # elements that are not finite
    state: str  # 'fine', 'none', 'zero' or 'not finite'


def flow_of(name: str, p: Any) -> LayerFlow:
    """The numbers of one parameter."""
    shape, g, nan = tuple(p.shape), p.grad, math.nan
    if g is None:
        return LayerFlow(name, shape, nan, nan, nan, nan, nan, 0, "none")
    with within(False, False):
        x = g.detach()
        x = x.to_dense() if x.is_sparse else x
        x = x.abs().double().flatten()
        bad = int((~x.isfinite()).sum().item())
        norm, weight = float(x.norm().item()), float(p.detach().abs().double().norm().item())
        zeros = float((x == 0).double().mean().item()) if x.numel() else 1.0
        state = "not finite" if bad else "zero" if zeros == 1.0 else "fine"
        biggest = float(x.max().item()) if x.numel() else 0.0
        return LayerFlow(
            name, shape, float(x.mean().item()) if x.numel() else 0.0, biggest, norm,
            norm / weight if weight else nan, zeros, bad, state,
        )  # fmt: skip


class GradientFlow:
    """The gradients of a model, layer by layer: `str()` is a table, `.figure()` a plot."""

    def __init__(self, layers: list[LayerFlow]) -> None:
        self.layers = layers

    def __repr__(self) -> str:
        return f"<gradient flow of {len(self.layers)} parameters>"

    def __str__(self) -> str:
        wide = max([9, *(len(x.name) for x in self.layers)])
        lines = [
            f"{'parameter':<{wide}}  {'mean |g|':>10}  {'max |g|':>10}  {'norm':>10}  "
            f"{'g / weight':>10}  {'zeros':>6}"
        ]
        for x in self.layers:
            if x.state == "none":
                lines.append(f"{x.name:<{wide}}  {'None':>10}")
                continue
            ratio = "-" if math.isnan(x.ratio) else number(x.ratio)
            odd = "" if x.state == "fine" else f"  {x.state}"
            lines.append(
                f"{x.name:<{wide}}  {number(x.mean):>10}  {number(x.biggest):>10}  "
                f"{number(x.norm):>10}  {ratio:>10}  {100 * x.zeros:>5.0f}%{odd}"
            )
        return "\n".join(lines)

    def figure(self, axes: Any = None) -> Any:
        """The plot, with matplotlib: a bar for the mean, a line for the largest element, on a
        logarithmic scale, in the order of the model. Returns its figure; `axes` draws into yours.
        """
        if axes is None:
            figure_class = need("matplotlib.figure").Figure  # no window, and no state of pyplot
            figure = figure_class(figsize=(max(5.0, 0.32 * len(self.layers) + 2), 4.2))
            axes = figure.subplots()
        at = range(len(self.layers))
        seen = [x.mean for x in self.layers if x.state == "fine" and x.mean > 0]
        low = min(seen, default=1e-3) / 10
        heights = [x.mean if x.state == "fine" else low for x in self.layers]
        axes.bar(at, heights, color=[_KINDS[x.state] for x in self.layers], width=0.7)
        for i, x in enumerate(self.layers):
            if x.state == "fine":
                axes.plot([i - 0.35, i + 0.35], [x.biggest] * 2, color="#1d2433", linewidth=1.5)
            else:
                word = {"none": "None", "zero": "0"}.get(x.state, "NaN/inf")
                axes.annotate(word, (i, low * 1.3), ha="center", rotation=90, fontsize=8)
        axes.set_yscale("log")
        axes.set_ylim(bottom=low / 2)
        axes.set_xticks(list(at), [x.name for x in self.layers], rotation=60, ha="right")
        axes.tick_params(axis="x", labelsize=8)
        axes.set_ylabel("|gradient|: mean (bar), largest (line)")
        axes.set_title("Gradients by layer, from the input on")
        axes.grid(axis="y", alpha=0.3)
        axes.figure.set_layout_engine("tight")
        return axes.figure

    def save(self, path: Any, **options: Any) -> None:
        """Write the plot: `flow.png`, `flow.svg`, `flow.pdf`."""
        self.figure().savefig(path, **{"dpi": 120, **options})

    def _repr_png_(self) -> bytes:
        from io import BytesIO

        file = BytesIO()
        self.figure().savefig(file, format="png", dpi=96)
        return file.getvalue()


def gradient_flow(model: Any) -> GradientFlow:
    """How large the gradients of a model's parameters are, layer by layer, after `backward()`.
    `model` is a module, a dict of tensors, or pairs of a name and a tensor. Print what is returned,
    or `.save("flow.png")` it (matplotlib).

    >>> model = torch.nn.Linear(2, 1, bias=False)
    >>> model(torch.ones(1, 2)).sum().backward()
    >>> flow = torch.viz.gradient_flow(model)
    >>> [(x.name, x.mean, x.state) for x in flow.layers]
    [('weight', 1.0, 'fine')]
    """
    if hasattr(model, "named_parameters"):
        pairs = list(model.named_parameters())
    else:
        pairs = list(model.items() if hasattr(model, "items") else model)
    if not pairs:
        raise ValueError("the model has no parameters")
    return GradientFlow([flow_of(str(name), p) for name, p in pairs])
