"""Sobol's sequence, plain and scrambled: sums and single points say whether all agree."""

from __future__ import annotations

from typing import Any

from tests.harness import Cases, attempt

cases = Cases()
results = cases.results


def engine(lib: Any, *args: Any, **kwargs: Any) -> Any:
    return lib.quasirandom.SobolEngine(*args, **kwargs)


def draws(lib: Any, e: Any) -> list[Any]:
    found = [e.draw(n).tolist() for n in (1, 3, 4)]
    found.append(e.fast_forward(7).draw(2, dtype=lib.float64).tolist())
    found.append([e.num_generated, e.quasi.tolist(), repr(e)])
    found.append(e.reset().draw_base2(2).tolist())
    return found


for _args in ((1,), (2,), (5,), (3, True, 5), (4, True, 123), (2, True)):

    def _case(lib: Any, args: Any = _args) -> Any:
        lib.manual_seed(3)
        return draws(lib, engine(lib, *args))

    cases.enter(f"SobolEngine{_args}", _case)


@cases
def every_direction_number(lib: Any) -> Any:
    state = engine(lib, 21201).sobolstate
    weights = lib.arange(1, 31) * 7919 % 101
    return [list(state.shape), (state * weights).sum().item(), state[::3000].tolist()]


@cases
def scrambled_state(lib: Any) -> Any:
    e = engine(lib, 50, scramble=True, seed=9)
    return [e.sobolstate.sum().item(), e.shift.tolist(), e.draw(8)[5].tolist()]


@cases
def out_and_dtype(lib: Any) -> Any:
    out = lib.empty(0, dtype=lib.float64)
    return [engine(lib, 2).draw(3, out=out, dtype=lib.float64) is out, out.tolist()]


@cases
def mistakes(lib: Any) -> Any:
    used = engine(lib, 2)
    used.draw(1)
    return [
        attempt(lambda: engine(lib, 0)),
        attempt(lambda: engine(lib, 30000)),
        attempt(lambda: engine(lib, 2).draw(0)),
        attempt(lambda: engine(lib, 2).draw(-1)),
        attempt(lambda: used.draw_base2(2)),
        [lib.quasirandom.SobolEngine.MAXDIM, lib.quasirandom.SobolEngine.MAXBIT],
    ]
