"""`Timer`: runs a statement often enough to say how long it takes."""

from __future__ import annotations

import timeit
from collections.abc import Callable
from typing import Any

from rushlight.settings import get_num_threads, set_num_threads
from rushlight.utils.benchmark.measurement import Measurement, TaskSpec

__all__ = ["Timer", "timer"]
__dir__ = __all__.copy


def timer() -> float:
    """timer() -> float: a clock, in seconds."""
    return timeit.default_timer()


class Timer:
    """Timer(stmt='pass', setup='pass', global_setup='', timer=timer, globals=None, label=None,
    sub_label=None, description=None, env=None, num_threads=1, language='python')

    Measures a statement, given as text. `label`, `sub_label` and `description` name it in tables.

    >>> from rushlight.utils.benchmark import Timer
    >>> Timer("x @ x", globals={"x": torch.ones(2, 2)}, label="matmul").timeit(3).title
    'matmul'
    """

    def __init__(
        self, stmt: str = "pass", setup: str = "pass", global_setup: str = "",
        timer: Callable[[], float] = timer, globals: dict[str, Any] | None = None,
        label: str | None = None, sub_label: str | None = None, description: str | None = None,
        env: str | None = None, num_threads: int = 1, language: Any = "python",
    ) -> None:  # fmt: skip
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if str(language).lower() in ("c++", "cpp", "language.cpp"):
            raise ValueError("rushlight measures Python only: language='c++' needs a compiler")
        stmt, setup = _dedented(stmt), _dedented(setup)
        self._globals = dict(globals or {})
        if "torch" not in self._globals:
            import importlib

            self._globals["torch"] = importlib.import_module("rushlight")
        self._task_spec = TaskSpec(
            stmt, setup, global_setup, label, sub_label, description, env, num_threads
        )
        self._timer = timeit.Timer(stmt, setup, timer, self._globals)

    def _timeit(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number: int = 1000000) -> Measurement:
        """Run it `number` times, after a tenth as many to warm up."""
        with _Threads(self._task_spec.num_threads):
            self._timeit(max(number // 100, 2))
            return Measurement(number, [self._timeit(number)], self._task_spec)

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Any = None) -> None:
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _estimate_block_size(self, min_run_time: float) -> int:
        """How often to run it between looks at the clock, so that these cost next to nothing."""
        overhead = sorted(self._timeit(0) for _ in range(5))[2]
        number = 1
        while True:
            taken = self._timeit(number)
            if overhead / taken <= 1e-4 and taken >= min_run_time / 1000:
                return number
            if taken > min_run_time:
                return number
            number *= 10

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Run it in blocks, for `min_run_time` seconds at least."""
        return self._loop(min_run_time, min_run_time, callback, lambda times: True)

    def adaptive_autorange(
        self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:  # fmt: skip
        """Run it in blocks, until they differ by less than `threshold` of their median."""

        def settled(times: list[float]) -> bool:
            enough = Measurement(1, times, self._task_spec)
            return len(times) > 3 and enough.meets_confidence(threshold)

        return self._loop(min_run_time, max_run_time, callback, settled)

    def _loop(
        self, least: float, most: float, callback: Callable[[int, float], Any] | None,
        settled: Callable[[list[float]], bool],
    ) -> Measurement:  # fmt: skip
        with _Threads(self._task_spec.num_threads):
            number = self._estimate_block_size(least)
            times: list[float] = []
            total = 0.0
            while total < least or (total < most and not settled(times)):
                taken = self._timeit(number)
                if callback is not None:
                    callback(number, taken)
                times.append(taken)
                total += taken
        return Measurement(number, times, self._task_spec)

    def collect_callgrind(self, number: int = 100, **options: Any) -> Any:
        """Raises: there is no C++ to count the instructions of."""
        raise RuntimeError("rushlight does not run valgrind; use `Timer.blocked_autorange`")


class _Threads:
    """So many threads within a `with` block."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __enter__(self) -> None:
        self.before = get_num_threads()
        set_num_threads(self.count)

    def __exit__(self, *error: object) -> None:
        set_num_threads(self.before)


def _dedented(code: str) -> str:
    import textwrap

    return textwrap.dedent(code).strip()
