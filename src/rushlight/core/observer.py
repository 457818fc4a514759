"""Who watches ops: a profiler, or whoever answers for ops in its place (`utils.around`).

The core calls what is set here, and knows nothing else of it. Ops look only while a mode is active
(`state.active` is not 0), and so whoever sets it enters one.
"""

from __future__ import annotations

from typing import Any, Final


class Observer:
    """Called around every op, from any thread, while it is set.

    `profile(op, raws)` gives what `op.forward(*raws)` would, or `action(*raws)` if it is given a
    third argument; `timed` is what a profiler put there, or would have where `utils.around` stands
    before it and hands on. Read `profile` once and test that: it may end meanwhile.

    `applied` is a list while a public function is asked what it does (`core.recall`): each op that
    is applied adds itself, its inputs and its result. No mode is needed for that.
    """

    def __init__(self) -> None:
        self.profile: Any = None
        self.timed: Any = None
        self.applied: list[Any] | None = None

    def keep_nothing(self) -> None:
        """What is being done depends on more than the arguments' signature."""
        if self.applied is not None:
            self.applied.append(None)


observer: Final = Observer()
