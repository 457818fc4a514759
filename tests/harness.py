"""The harness of all cases: how one is entered, run on a library, stored and compared.

A case is a small program, a function of a library: of PyTorch, or of rushlight under that name. It
returns anything, or raises. Cases stand in `tests/<folder>/cases_<name>.py`, and `results` of that
file runs all of them. `python tests/reference/make.py` stores what they give on PyTorch, as
`tests/reference/<folder>/<name>.json.gz`; tests read that by `stored("<folder>/<name>")`, and run
the same cases on rushlight. Where PyTorch is installed (`LIVE`) they ask it too.
"""

from __future__ import annotations

import gzip
import importlib
import importlib.util
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pytest

Case = Callable[..., Any]

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
REFERENCE = TESTS / "reference"
LIVE = importlib.util.find_spec("torch") is not None


# --- libraries ------------------------------------------------------------------------------------
LIBRARIES = ["rushlight", *(["torch"] if LIVE else [])]


def pytorch() -> Any:
    """PyTorch itself, imported when it is first asked for: that takes seconds."""
    return importlib.import_module("torch")


# --- stored results -------------------------------------------------------------------------------
def names() -> list[str]:
    """All files of cases: `autograd/graph` is tests/autograd/cases_graph.py."""
    found = (path.relative_to(TESTS) for path in TESTS.rglob("cases_*.py"))
    return sorted(str(path.with_name(path.stem.removeprefix("cases_"))) for path in found)


def cases_of(name: str) -> Any:
    """The module of a file of cases."""
    *folders, last = name.split("/")
    return importlib.import_module(".".join(["tests", *folders, f"cases_{last}"]))


def path_of(name: str, suffix: str = ".json.gz") -> Path:
    return REFERENCE / (name + suffix)


def stored(name: str) -> Any:
    """What PyTorch gave for the cases of a file."""
    return json.loads(gzip.decompress(path_of(name).read_bytes()))


def store(name: str, data: bytes, suffix: str = ".json.gz") -> None:
    """Write a file of results, unless it holds these already: another zlib packs them otherwise."""
    path = path_of(name, suffix)
    if path.exists() and same(gzip.decompress(path.read_bytes()), data, suffix):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data, mtime=0))


def same(old: bytes, new: bytes, suffix: str) -> bool:
    return packed(json.loads(old)) == new if suffix == ".json.gz" else old == new


def packed(results: Any) -> bytes:
    return json.dumps(results, separators=(",", ":")).encode()


def as_stored(result: Any) -> Any:
    """A result as it comes back from a file: tuples are lists there, and keys are texts."""
    return json.loads(json.dumps(result))


# --- cases ----------------------------------------------------------------------------------------
class Cases(dict[str, Case]):
    """Cases by name. Use it as a decorator to enter one."""

    def __call__(self, fn: Case) -> Case:
        return self.enter(fn.__name__, fn)

    def enter(self, name: str, fn: Case) -> Case:
        assert name not in self, name
        self[name] = fn
        return fn

    def run(self, lib: Any, name: str) -> Any:
        """What one case gives on a library, or how it fails, as JSON can hold it."""
        return outcome(lib, self[name])

    def results(self, lib: Any) -> dict[str, Any]:
        """What all of them give."""
        return {name: self.run(lib, name) for name in self}

    def only(self, names: Any) -> Self:
        return type(self)({name: self[name] for name in names})


# --- cases that return plain data -----------------------------------------------------------------
class PlainCases(Cases):
    """Cases that return what JSON can hold: those of nn and optim."""

    def run(self, lib: Any, name: str) -> Any:
        return as_stored(self[name](lib))


def compare(got: Any, want: Any, exact: bool, where: str) -> None:
    """Equal, or for floats of a case that is only close, equal to rounding."""
    if isinstance(want, dict):
        assert isinstance(got, dict) and got.keys() == want.keys(), where
        for key in want:
            compare(got[key], want[key], exact, f"{where} > {key}")
    elif isinstance(want, list):
        assert isinstance(got, list) and len(got) == len(want), where
        for i, (a, b) in enumerate(zip(got, want, strict=True)):
            compare(a, b, exact, f"{where} > {i}")
    elif isinstance(want, float) and not exact:
        double = "float64" in where
        rel, abs_ = (1e-12, 1e-13) if double else (1e-5, 2e-6)
        assert got == pytest.approx(want, rel=rel, abs=abs_, nan_ok=True), where
    elif where.startswith("errors") and isinstance(want, str):  # a cure may stand below
        assert isinstance(got, str) and f"{got}\n".startswith(f"{want}\n"), where
    else:
        assert type(got) is type(want) and got == want, where


def plain_tests(stored_as: str, exact: Cases, close: Cases, *others: Cases) -> dict[str, Any]:
    """The tests of a file of such cases, for its `globals().update`: that all are stored (`others`
    too, which the file itself compares), that rushlight gives what is stored, and, where PyTorch is
    installed, what PyTorch gives now. What `close` holds is compared to rounding."""
    known = stored(stored_as)
    rushlight = importlib.import_module("rushlight")

    def test_every_case_is_stored() -> None:
        assert known.keys() == {name for cases in (exact, close, *others) for name in cases}

    @pytest.mark.parametrize("name", sorted(exact))
    def test_equals_what_is_stored(name: str) -> None:
        compare(exact.run(rushlight, name), known[name], True, name)

    @pytest.mark.parametrize("name", sorted(close))
    def test_is_close_to_what_is_stored(name: str) -> None:
        compare(close.run(rushlight, name), known[name], False, name)

    @pytest.mark.parametrize("name", sorted(exact))
    def test_equals_pytorch(name: str) -> None:
        compare(exact.run(rushlight, name), exact.run(pytorch(), name), True, name)

    @pytest.mark.parametrize("name", sorted(close))
    def test_is_close_to_pytorch(name: str) -> None:
        compare(close.run(rushlight, name), close.run(pytorch(), name), False, name)

    made = [test_every_case_is_stored, test_equals_what_is_stored, test_is_close_to_what_is_stored]
    if LIVE:
        made += [test_equals_pytorch, test_is_close_to_pytorch]
    return {test.__name__: test for test in made}


def leaf(lib: Any, *shape: int) -> Any:
    """1, 2, 3 and so on, asking for gradients."""
    n = 1
    for s in shape:
        n *= s
    return lib.arange(1.0, n + 1).reshape(shape).clone().requires_grad_()


def look(t: Any) -> Any:
    """All one can see of a tensor."""
    return {
        "value": t.detach().tolist(),
        "requires_grad": t.requires_grad,
        "is_leaf": t.is_leaf,
        "grad_fn": None if t.grad_fn is None else type(t.grad_fn).__name__,
        "output_nr": t.output_nr,
        "version": t._version,
        "is_view": t._is_view(),
    }


def attempt(fn: Callable[[], Any]) -> Any:
    """What `fn` returns, or how it fails."""
    try:
        return fn()
    except Exception as error:  # whatever it is, both libraries must raise it
        lines = str(error).strip().splitlines()
        return f"{type(error).__name__}: {lines[0] if lines else ''}"


def rounded(x: Any) -> Any:
    """Numbers in lists, to four digits behind the point."""
    if isinstance(x, list):
        return [rounded(y) for y in x]
    return round(x, 4) + 0.0 if isinstance(x, float) else x


def grads(lib: Any, y: Any, *xs: Any, **kwargs: Any) -> Any:
    """The gradients of `y`, as lists; None for those it does not depend on."""
    kwargs.setdefault("allow_unused", True)
    return [None if g is None else g.tolist() for g in lib.autograd.grad(y, xs, **kwargs)]


def plain(lib: Any, x: Any) -> Any:
    """A result as JSON can hold it."""
    if isinstance(x, dict):
        return {str(k): plain(lib, v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [plain(lib, y) for y in x]
    if isinstance(x, lib.Tensor):
        return plain(lib, look(x))
    if isinstance(x, float):
        return round(x, 4) + 0.0
    if isinstance(x, complex):
        return [plain(lib, x.real), plain(lib, x.imag)]
    return x if x is None or isinstance(x, (bool, int, str)) else repr(x)


def outcome(lib: Any, case: Case) -> Any:
    """What a case gives, or how it fails."""
    enabled = lib.is_grad_enabled()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return plain(lib, attempt(lambda: case(lib)))
        finally:
            lib.set_grad_enabled(enabled)


def agree(theirs: Any, ours: Any) -> bool:
    """Equal, but that an error may say more than PyTorch's first line does. PyTorch's hints about
    itself do not count."""
    if isinstance(theirs, str) and isinstance(ours, str):
        if "Error: " not in theirs:
            return theirs == ours
        said = theirs.split(" Hint: ")[0].split(".  (Could this error message")[0]
        return ours.startswith(said)
    if type(theirs) is not type(ours):
        return False
    if isinstance(theirs, list):
        return len(theirs) == len(ours) and all(map(agree, theirs, ours))
    if isinstance(theirs, dict):
        return theirs.keys() == ours.keys() and all(agree(theirs[k], ours[k]) for k in theirs)
    return bool(theirs == ours)


# --- cases that tell what happens, in order -------------------------------------------------------
class Log:
    """What a case tells: each call is an event."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def __call__(self, *what: Any) -> None:
        self.events.append([in_short(x) for x in what])

    def attempt(self, what: str, fn: Callable[[], Any]) -> None:
        """Log what a call gives, or what it raises."""
        try:
            self(what, fn())
        except Exception as error:
            self(what, "raised", first_line(error))


class LoggedCases(Cases):
    """Cases of a library and a `Log`. What counts are the events, and the error at the end."""

    def run(self, lib: Any, name: str) -> list[Any]:
        log = Log()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                self[name](lib, log)
            except Exception as error:
                log.events.append(["raised", first_line(error)])
        return log.events

    def differing(self, lib: Any, stored: dict[str, Any]) -> list[str]:
        """The cases in which a library does something else than what is stored."""
        found: list[str] = []
        for name in self:
            got, want = self.run(lib, name), stored.get(name) or []
            if got != want:
                at = next((i for i, pair in enumerate(zip(got, want)) if pair[0] != pair[1]), -1)
                found.append(f"{name}, event {at}\n  got    {got[at:]}\n  stored {want[at:]}")
        return found


def in_short(x: Any) -> Any:
    """A value of an event; of a tensor its numbers."""
    if x is None or isinstance(x, (bool, int, str)):
        return x
    if isinstance(x, float):
        return round(x, 6)
    if isinstance(x, (tuple, list)):
        return [in_short(y) for y in x]
    if isinstance(x, dict):
        return {str(k): in_short(v) for k, v in x.items()}
    if hasattr(x, "tolist"):
        return in_short(x.detach().tolist())
    return type(x).__name__


def first_line(error: BaseException) -> str:
    text = str(error).splitlines()[0] if str(error) else ""
    return f"{type(error).__name__}: {text}"[:160]


def vector(torch: Any, *values: float) -> Any:
    """A leaf of these numbers."""
    return torch.tensor(list(values), requires_grad=True)


def tensor_hook(log: Log, name: str, result: Callable[[Any], Any] | None = None) -> Any:
    """A hook that logs the gradient, and may give another."""

    def hook(g: Any) -> Any:
        log(name, g)
        return None if result is None else result(g)

    return hook
