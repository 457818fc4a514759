"""What `rushlight run` tells about a run: the graph of a backward pass, its steps, memory, time.

A graph is freed by its pass, and an optimiser overwrites what it kept. So a pass is looked at just
before it starts, at `backward` and `grad` themselves, which know the tensors it starts from; which
pass will have been the last nobody knows yet, so several are looked at, ever more rarely, and the
latest look is what is shown. A fault in looking never disturbs the program: it is told at the end.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import sys
from collections.abc import Callable
from typing import Any

import rushlight as torch
from rushlight.cli.options import Options
from rushlight.core.graph import here
from rushlight.errors import hide_insides

EVERY = 16  # so many passes are looked at one by one, later ones when their number is 2 to the n


class Watch:
    """Follows one program. `start` before it, `report` when it is over, however it ended."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.started = False
        self.passes = 0  # how many have started
        self.seen: tuple[int, str] | None = None  # the latest pass looked at, and its line
        self.texts: dict[str, str] = {}  # what that look found, by the name of the option
        self.troubles: dict[str, str] = {}
        self.looking = False
        self.profiler: Any = None
        self._before: list[tuple[Any, str, Any]] = []  # what was replaced

    def start(self) -> None:
        """Put ourselves where passes start, and begin to profile."""
        self.started = True
        if self.options.looks_at_passes:
            self._replace(torch.Tensor, "backward", "gradient")
            self._replace(torch.autograd, "backward", "grad_tensors")
            self._replace(torch.autograd, "grad", "grad_outputs")
        if self.options.profile:
            from rushlight.profiler import profile

            self.profiler = profile()
            self.profiler.start()

    def _replace(self, owner: Any, name: str, weights: str) -> None:
        """Have a function, whose first argument is what a pass starts from, tell us of it."""
        original = getattr(owner, name)
        at = 2 if name == "grad" else 1  # where it takes the gradients of what the pass starts from

        @functools.wraps(original)
        def watched(*args: Any, **words: Any) -> Any:
            outputs = args[0] if args else words.get("tensors", words.get("outputs"))
            self.look(outputs, args[at] if len(args) > at else words.get(weights))
            try:
                return original(*args, **words)
            except Exception as error:
                hide_insides(error)
                raise

        self._before.append((owner, name, original))
        setattr(owner, name, watched)

    def look(self, outputs: Any, weights: Any) -> None:
        """A pass is about to start from these tensors, with these gradients or None."""
        if self.looking:  # what we do to look may run passes itself
            return
        self.passes += 1
        if not self._wanted(self.passes):
            return
        self.looking = True
        try:
            self.seen = (self.passes, str(here()))
            for name, make in self._looks().items():
                self.texts.pop(name, None)
                self.troubles.pop(name, None)
                try:
                    self.texts[name] = make(outputs, weights)
                except Exception as error:  # of ours, or of a pass that fails in the program too
                    self.troubles[name] = f"{type(error).__name__}: {error}"
        finally:
            self.looking = False

    def _wanted(self, number: int) -> bool:
        if self.options.which is not None:
            return number == self.options.which
        return number <= EVERY or number & (number - 1) == 0

    def _looks(self) -> dict[str, Callable[[Any, Any], str]]:
        """What was asked for, and how it is found."""
        looks: dict[str, Callable[[Any, Any], str]] = {}
        if self.options.explain:
            looks["explain"] = explained
        if self.options.memory:
            looks["memory"] = remembered
        if self.options.graph is not None:
            looks["graph"] = self._drawn
        return looks

    def _drawn(self, outputs: Any, weights: Any) -> str:
        path = str(self.options.graph)
        flow: Any = False  # only the page shows what flows through the edges
        if path.endswith(".html"):
            flow = True if weights is None else weights
        viz().graph(outputs, backward=flow).save(path)
        return f"see {path}"

    def report(self) -> bool:
        """Tell what was found, on standard error; whether all that was asked for is there."""
        for owner, name, original in self._before:
            setattr(owner, name, original)
        out = sys.stderr
        if self.options.looks_at_passes:
            if self.seen is None:
                self.troubles["passes"] = self._none_seen()
            else:
                number, line = self.seen
                print(f"\n== backward pass {number} of {self.passes}: {line}", file=out)
            for name, text in self.texts.items():
                print(f"\n== {name}\n{text.rstrip()}", file=out)
        if self.profiler is not None:
            try:
                self._report_profile()
            except Exception as error:  # as above: the program itself has run
                self.troubles["profile"] = f"{type(error).__name__}: {error}"
        for name, trouble in self.troubles.items():
            print(f"\nrushlight: {name}: {trouble}", file=out)
        return not self.troubles

    def _none_seen(self) -> str:
        if self.options.which is None:
            return "the program called neither backward() nor autograd.grad()"
        return f"there was no backward pass {self.options.which}, only {self.passes}"

    def _report_profile(self) -> None:
        self.profiler.stop()
        path = self.options.profile_file
        if path is None:
            table = self.profiler.key_averages().table("self_cpu_time_total", row_limit=20)
            print(f"\n== profile\n{table.rstrip()}", file=sys.stderr)
        else:
            if path.endswith(".html"):
                viz().flame(self.profiler).save(path)
            else:
                self.profiler.export_chrome_trace(path)
            print(f"\n== profile\nsee {path}", file=sys.stderr)


def viz() -> Any:
    """The pictures, imported when one is drawn."""
    return importlib.import_module("rushlight.viz")


def explained(outputs: Any, weights: Any) -> str:
    """The steps of a backward pass as text; no `.grad` is touched."""
    return str(torch.explain(outputs, weights, show=False))


def remembered(outputs: Any, weights: Any) -> str:
    """What the graph keeps in memory, as text."""
    with contextlib.redirect_stdout(io.StringIO()):
        return str(viz().memory(outputs))
