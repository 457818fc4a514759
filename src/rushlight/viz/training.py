"""`viz.training`: curves of a loss and of gradients over the steps of a training run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rushlight.explaining import number
from rushlight.viz.missing_extra import need


class TrainingLog:
    """Series of numbers, one a step: fill it with `add`, or from a log you have. `str()` is a short
    summary, `.figure()` the curves."""

    def __init__(self, log: Any = None) -> None:
        self.series: dict[str, list[float]] = {}
        if log is None:
            return
        if isinstance(log, TrainingLog):
            self.series = {name: list(values) for name, values in log.series.items()}
        elif isinstance(log, Mapping):
            for name, values in log.items():
                self.series[str(name)] = [plain(x) for x in values]
        else:
            for row in log:
                self.add(**row) if isinstance(row, Mapping) else self.add(loss=row)

    def __len__(self) -> int:
        return max(map(len, self.series.values()), default=0)

    def __repr__(self) -> str:
        return f"<training log: {', '.join(self.series) or 'nothing'}; {len(self)} steps>"

    def add(self, model: Any = None, **values: Any) -> None:
        """Note one step: numbers or tensors by name, `log.add(loss=loss)`. With a model also the
        norm of its gradient, as `grad norm`, so call it between backward() and zero_grad()."""
        if model is not None:
            values["grad norm"] = grad_norm(model)
        n = len(self)
        for name, value in values.items():
            series = self.series.setdefault(name, [])
            series.extend([math.nan] * (n - len(series)))
            series.append(plain(value))

    def __str__(self) -> str:
        wide = max([4, *map(len, self.series)])
        lines = [f"{'':{wide}}  {'first':>10}  {'last':>10}  {'least':>10}  {'largest':>10}"]
        for name, values in self.series.items():
            known = [x for x in values if math.isfinite(x)]
            odd = first_bad(values)
            numbers = [known[0], known[-1], min(known), max(known)] if known else [math.nan] * 4
            lines.append(
                f"{name:{wide}}  " + "  ".join(f"{number(x):>10}" for x in numbers)
                + (f"  not finite from step {odd}" if odd is not None else "")
            )  # fmt: skip
        return "\n".join(lines)

    def figure(self) -> Any:
        """The curves, with matplotlib: gradients (series whose name begins with "grad") below, on a
        logarithmic scale, everything else above. The first number that is not finite is marked."""
        if not self.series:
            raise ValueError("the log is empty")
        above = [name for name in self.series if not is_gradient(name)]
        below = [name for name in self.series if is_gradient(name)]
        panels = [names for names in (above, below) if names]
        figure = need("matplotlib.figure").Figure(figsize=(7, 2.4 + 2.2 * (len(panels) - 1) + 0.6))
        made = figure.subplots(len(panels), 1, sharex=True, squeeze=False)
        for (axes,), names in zip(made, panels, strict=True):
            for i, name in enumerate(names):
                draw(axes, name, self.series[name], f"C{i}")
            if is_gradient(names[0]) and any(x > 0 for n in names for x in self.series[n]):
                axes.set_yscale("log")
            axes.legend(fontsize=8)
            axes.grid(alpha=0.3)
            axes.set_ylabel("gradients" if is_gradient(names[0]) else ", ".join(names)[:40])
        made[-1][0].set_xlabel("step")
        figure.set_layout_engine("tight")
        return figure

    def save(self, path: Any, **options: Any) -> None:
        """Write the curves: `training.png`, `training.svg`."""
        self.figure().savefig(path, **{"dpi": 120, **options})

    def _repr_png_(self) -> bytes:
        from io import BytesIO

        file = BytesIO()
        self.figure().savefig(file, format="png", dpi=96)
        return file.getvalue()


def draw(axes: Any, name: str, values: Sequence[float], colour: str) -> None:
    """One curve; a long one faint, with its running mean on top."""
    steps = range(1, len(values) + 1)
    long = len(values) >= 50
    shown = [x if math.isfinite(x) else math.nan for x in values]
    axes.plot(steps, shown, color=colour, alpha=0.3 if long else 1.0, label=None if long else name)
    if long:
        axes.plot(steps, smooth(values, len(values) // 25), color=colour, label=name)
    odd = first_bad(values)
    if odd is not None:
        axes.axvline(odd, color="#d6336c", linestyle=":", label=f"{name}: not finite from {odd}")


def smooth(values: Sequence[float], width: int) -> list[float]:
    """The mean of the last `width` finite numbers, at each step."""
    found, window, total = [], [], 0.0
    for x in values:
        if math.isfinite(x):
            window.append(x)
            total += x
            if len(window) > max(width, 1):
                total -= window.pop(0)
        found.append(total / len(window) if window else math.nan)
    return found


def first_bad(values: Sequence[float]) -> int | None:
    """The step, from 1, of the first number that is infinite, or NaN with numbers before it."""
    begun = False
    for i, x in enumerate(values, 1):
        begun = begun or math.isfinite(x)
        if math.isinf(x) or (begun and math.isnan(x)):
            return i
    return None


def is_gradient(name: str) -> bool:
    return name.lower().startswith("grad")


def plain(x: Any) -> float:
    """A number, or a tensor of one, as a float."""
    return float(x.detach().item() if hasattr(x, "detach") else x)


def grad_norm(model: Any) -> float:
    """The norm of all gradients of a model together."""
    ps: Iterable[Any] = model.parameters() if hasattr(model, "parameters") else model
    total = 0.0
    for p in ps:
        if p.grad is not None:
            total += float(p.grad.detach().abs().double().norm().item()) ** 2
    return math.sqrt(total)


def training(log: Any = None) -> TrainingLog:
    """Curves of a training run. `log` is a dict of lists, a list of dicts, or a list of losses;
    without it you get an empty log to fill: `log.add(loss=loss, model=model)` after each
    `backward()`. Print what is returned, or `.save("training.png")` it (matplotlib).

    >>> log = torch.viz.training([1.0, 0.5, 0.25])
    >>> log
    <training log: loss; 3 steps>
    >>> log.series["loss"][-1]
    0.25
    """
    return TrainingLog(log)
