"""The child process of `attack.garbage`: makes calls, says what each came to, may crash.

Reads seeds, a line each, and answers each with "end" and how the call went wrong, if it did. What
it was about to call it says before, on a line "begin": whoever reads and finds no end knows which
call was the last.
"""

from __future__ import annotations

import contextvars
import functools
import inspect
import io
import random
import re
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import rushlight as torch
from rushlight.core import grad_mode as modes
from rushlight.core import graph, node, record
from rushlight.core.engine import engine, ordered
from rushlight.core.saved import packed
from rushlight.core.transforms import stack as levels
from rushlight.ops.registry import functions, methods, namespaces

# Names that leave the process, wait, print, or change what later calls do.
LEFT_OUT = frozenset(
    "set_printoptions set_default_dtype set_default_device set_default_tensor_type manual_seed "
    "set_num_threads derivative_along dual_at give tangent_at __deepcopy__ set_grad_enabled "
    "set_num_interop_threads set_anomaly_enabled save load "
    "from_file set_rng_state use_deterministic_algorithms set_flush_denormal seed "
    "set_deterministic_debug_mode set_float32_matmul_precision set_warn_always "
    "set_checkpoint_early_stop set_checkpoint_debug_enabled __init__ __new__ __class__ __dict__ "
    "__init_subclass__ __subclasshook__ __getattribute__ __setattr__ __delattr__ __sizeof__ "
    "__reduce__ __reduce_ex__ share_memory_ set_multithreading_enabled "
    "force_original_view_tracking __getstate__ __setstate__ __weakref__ __mypyc_attrs__ "
    # a million layers, if that is wished; in PyTorch too
    "TransformerDecoder TransformerEncoder "
    "Tag".split()  # an `enum.Enum`, whose errors are Python's own
)
CLEAR = (
    TypeError, ValueError, RuntimeError, IndexError, NotImplementedError, OverflowError,
    StopIteration, ImportError, BufferError,
)  # fmt: skip
# Of `torch` itself, beside the functions of the op table.
_ALSO = (
    "Tensor", "FloatTensor", "Generator", "Size", "UntypedStorage", "device", "finfo", "iinfo",
    "is_tensor", "is_storage", "promote_types", "can_cast", "result_type", "to_dlpack", "typename",
    "is_floating_point", "is_inference", "no_grad", "enable_grad", "inference_mode",
)  # fmt: skip


class Odd:
    """An object of no use."""

    def __repr__(self) -> str:
        return "Odd()"


def values() -> list[Any]:
    """Things to pass, good and bad."""
    f = torch.tensor([[1.0, -2.0, 0.5], [3.0, 0.25, -1.0]])
    return [
        f, f.clone().requires_grad_(), torch.tensor([1, 0, 1]), torch.tensor(2.5), torch.tensor(3),
        torch.tensor([True, False]), torch.zeros(0), torch.zeros(2, 0, 3), torch.tensor([1j, 2.0]),
        torch.ones(3, 3), torch.ones(2, dtype=torch.float16), torch.zeros(1, 1, 1, 1, 1),
        0, 1, -1, 2, 3, 100, 5000, 2**70, 0.5, -0.5, float("nan"), float("inf"), 1j, True, None,
        "", "sum", "mean", "ij,jk", "x" * 50, b"ab", [], [1, 2], [1.5], ["a"], (), (2, 3), (-1,),
        (0, 1), ((1,), (2,)), [f, f], (f,), [None], {}, {"a": 1}, {1, 2}, range(3), slice(1, 2),
        ..., Odd(), Odd, int, len, np.ones(2), np.float32(2), np.int64(1), np.array(None),
        np.array(["a"]), torch.float32, torch.int64, torch.complex64, torch.strided,
        torch.device("cpu"), "cpu", "cuda:7", torch.Generator(), torch.Size([2]), iter([1]),
        lambda *a: None, io.BytesIO(b"1"), object(), NotImplemented, torch.nn.Linear(3, 2),
        torch.preserve_format, f[0], f.t(), f.expand(2, 2, 3),
    ]  # fmt: skip


def public() -> list[tuple[str, Callable[..., Any]]]:
    """Everything that can be called: functions, methods, classes of nn and optim, autograd, func,
    and the methods of the compiled classes."""
    found: dict[str, Callable[..., Any]] = {}
    for prefix, names in (("torch.", functions), ("Tensor.", methods)):
        found.update({prefix + n: f for n, f in names.items() if callable(f)})
    for space, names in namespaces.items():
        found.update({f"{space}.{n}": f for n, f in names.items()})
    spaces = {
        "nn": torch.nn, "nn.init": torch.nn.init, "nn.utils": torch.nn.utils, "optim": torch.optim,
        "lr_scheduler": torch.optim.lr_scheduler, "autograd": torch.autograd, "func": torch.func,
        "autograd.functional": torch.autograd.functional, "autograd.graph": torch.autograd.graph,
        "forward_ad": torch.autograd.forward_ad, "utils.checkpoint": torch.utils.checkpoint,
        "testing": torch.testing, "torch": torch, "library": torch.library,
    }  # fmt: skip
    for space, module in spaces.items():
        for n in getattr(module, "__all__", _ALSO if module is torch else ()):
            value = getattr(module, n)
            if callable(value) and not n.startswith("_") and not isinstance(value, type(sys)):
                home = str(getattr(value, "__module__", ""))
                if home.startswith("rushlight") and not _is_error(value):
                    found.setdefault(f"{space}.{n}", value)
    for module in (engine, graph, levels, modes, node, ordered, packed, record):
        for n, value in vars(module).items():
            if inspect.isclass(value) and value.__module__.startswith("rushlight"):
                if _is_error(value):
                    continue
                for m in dir(value):
                    if callable(getattr(value, m, None)) and not hasattr(object, m):
                        found[f"core.{n}.{m}"] = getattr(value, m)
    return sorted(
        (n, f) for n, f in found.items() if n.rpartition(".")[2] not in LEFT_OUT
    )  # fmt: skip


def _is_error(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, BaseException)


@functools.cache
def _public() -> list[tuple[str, Callable[..., Any]]]:
    return public()


def drawn(seed: int) -> tuple[str, str, Callable[..., Any], list[Any], dict[str, Any]]:
    """The call of a seed: as text, then name, function, arguments."""
    rng = random.Random(seed)
    name, fn = rng.choice(_public())
    pool = values()
    args = [rng.choice(pool) for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4)))]
    if name.startswith("Tensor."):
        args = args or [None]
    if args and (rng.random() < 0.5 or name.startswith("Tensor.")):
        args[0] = pool[rng.randrange(12)]
    named: dict[str, Any] = {}
    if rng.random() < 0.25:
        try:
            names = [p for p in inspect.signature(fn).parameters if p not in ("self", "args")]
        except (ValueError, TypeError):
            names = []
        for key in rng.sample(names, min(len(names), 2)):
            named[key] = rng.choice(pool)
    shown = [short(a) for a in args] + [f"{k}={short(x)}" for k, x in named.items()]
    return f"{name}({', '.join(shown)})", name, fn, args, named


def attempt(seed: int) -> tuple[str, str]:
    """One call: what was called with what, and "" or how it went wrong."""
    text, name, fn, args, named = drawn(seed)
    # in a context of its own, so that no mode which it enters outlives it
    return text, contextvars.copy_context().run(_made, name, fn, args, named)


def short(x: Any) -> str:
    if isinstance(x, torch.Tensor):
        return f"Tensor{list(x.shape)}:{str(x.dtype).removeprefix('torch.')}"
    return " ".join(repr(x).split())[:40]


def _made(name: str, fn: Callable[..., Any], args: list[Any], named: dict[str, Any]) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = fn(*args, **named)
            if isinstance(found, torch.Tensor) and found.numel() < 1000:
                repr(found)
    except CLEAR as error:
        return unclear(name, error)
    except BaseException as error:
        return "" if expected(name, error) else f"{type(error).__name__}: {error}"
    return ""


def expected(name: str, error: BaseException) -> bool:
    """Whether an error of another type is meant: raised by a statement, as PyTorch raises it."""
    text = str(error)
    if name.startswith(("core.", "library.")):  # internals, which have no arguments to check
        # uncompiled, inside functions may take a list for an int, and repeat it without end
        return isinstance(error, (AttributeError, AssertionError, KeyError, MemoryError))
    if isinstance(error, AssertionError):
        return bool(text)
    if isinstance(error, AttributeError) and name.startswith(_DUCKS):
        # what these do with an object they do in Python, in PyTorch too: a method is missing
        return error.name not in _INTERNAL
    if isinstance(error, KeyError) and name.startswith("nn.utils."):
        return True  # of the name of a parameter that a module has not; there too
    if isinstance(error, (AttributeError, KeyError)):
        return raised(error)
    return isinstance(error, (MemoryError, torch.linalg.LinAlgError, UserWarning))


_DUCKS = (
    "nn.",
    "optim.",
    "lr_scheduler.",
    "autograd.",
    "func.",
    "forward_ad.",
    "utils.",
    "testing.",
)
_INTERNAL = frozenset(
    "array node memory as_view leaf dims extra held alive owners number base sized plan".split()
)


def raised(error: BaseException) -> bool:
    """Whether a `raise` of rushlight's, or the user's own object, is where it came from."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    if at is None:
        return False
    lines = inspect.getsourcelines(at.tb_frame.f_code)
    return "raise" in lines[0][max(at.tb_lineno - lines[1], 0)]


_LEAKS = (
    "numpy", "ufunc", "ndarray' object", "_PyFloatDType", "has no attribute 'array'",
    "object of type 'NoneType' has no len", "cannot unpack non-iterable", "unhashable type",
    "operands could not be broadcast", "setting an array element", "not subscriptable",
)  # fmt: skip


def unclear(name: str, error: BaseException) -> str:
    """How an error's text tells of rushlight's insides; "" if it does not."""
    text = re.sub(rf"\b{re.escape(name.rpartition('.')[2])}\b", "", str(error))
    if name.startswith(("core.", "library.", *_DUCKS)) and not name.startswith("nn.functional."):
        return ""
    if isinstance(error, torch.linalg.LinAlgError):
        return ""
    if name == "torch.sym_sum":  # Python's `sum`, in PyTorch too: what is added may be NumPy's
        return ""
    if type(error).__module__.startswith("numpy"):
        return f"{type(error).__name__}: {text}"
    for leak in _LEAKS:
        if (
            leak in text
            and "not numpy" not in text
            and "a numpy" not in text
            and "got " not in text
            and "got: " not in text
            and "can't convert np.ndarray" not in text
            and "passed in a" not in text
            # of the user's own objects, in PyTorch's words
            and "object is not callable" not in text
            and "tried to construct a storage from a sequence (numpy" not in text
            and "must be torch.dtype, not <class" not in text
            and "Argument type not recognized: <class" not in text
            and not (name.endswith("Size") and "object is not iterable" in text)
            and "(item " not in text
        ):
            return f"{type(error).__name__}: {text}"
    return ""


def main() -> None:
    out = sys.stdout
    sys.stdout = io.StringIO()  # what calls print is not for the parent
    _public()  # imported before anything can go wrong
    for line in sys.stdin:
        seed = int(line)
        out.write(f"begin {drawn(seed)[0]}\n")
        out.flush()
        text, wrong = attempt(seed)
        shown = " ".join(f"{text} -> {wrong}".split()) if wrong else ""
        out.write(f"end {shown}\n")
        out.flush()


if __name__ == "__main__":
    main()
