"""A child process that makes calls of linear algebra and tells what came of them.

`python -m attack._linalg_worker rushlight` (or `torch`) reads pickled calls from its standard input
and answers each on its standard output. Whoever asks may kill it: a call that never returns ends
there and not in the process that counts. Left alone with such a call it ends itself.
"""

from __future__ import annotations

import faulthandler
import importlib
import os
import pickle
import struct
import sys
import warnings
from typing import IO, Any

import numpy as np

__all__ = ["receive", "send"]

_LENGTH = struct.Struct("<q")
_ALONE = 300.0  # seconds of one call after which nobody can be waiting any more


def send(stream: IO[bytes], value: Any) -> None:
    """Write one value, its length first."""
    data = pickle.dumps(value)
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Read one value; EOFError where there is no more."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    return pickle.loads(stream.read(_LENGTH.unpack(head)[0]))


def tensors(found: Any, torch: Any) -> list[Any]:
    """The tensors of a result, in order."""
    if isinstance(found, torch.Tensor):
        return [found]
    return [y for y in found if isinstance(y, torch.Tensor)]


def numbers(y: Any) -> Any:
    """The numbers of a tensor, which NumPy may not know the dtype of."""
    y = y.detach().resolve_conj()
    return (y.float() if str(y.dtype) == "torch.bfloat16" else y).numpy()


def loss(ys: list[Any]) -> Any:
    """A number that every result moves, and no phase of a complex one does."""
    parts = [y.abs().sum() for y in ys if y.requires_grad]
    return sum(parts[1:], parts[0]) if parts else None


def answer(torch: Any, call: dict[str, Any]) -> dict[str, Any]:
    """Make one call: its values, their strides and its gradients, or its error."""
    told: dict[str, Any] = {"error": None, "values": [], "strides": [], "grads": []}
    dtype = getattr(torch, call["dtype"])
    names = {}
    for name, value in call["arrays"].items():
        x = torch.tensor(value, dtype=dtype)
        names[name] = eval(call["views"].get(name, "x"), {"x": x})
        if call["backward"]:
            names[name] = names[name].detach().requires_grad_()
    try:
        ys = tensors(eval(call["code"], {"torch": torch, **names}), torch)
        told["values"] = [numbers(y) for y in ys]
        told["strides"] = [tuple(y.stride()) for y in ys]
        value = loss(ys) if call["backward"] else None
        if value is not None:
            grads = torch.autograd.grad(value, list(names.values()), allow_unused=True)
            told["grads"] = [None if g is None else numbers(g) for g in grads]
    except Exception as error:
        told["error"] = (type(error).__module__ + "." + type(error).__name__, str(error))
    return told


def main() -> None:
    torch = importlib.import_module(sys.argv[1])
    warnings.simplefilter("ignore")
    # what C libraries print to the standard output must not fall between the answers
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    np.seterr(all="ignore")
    send(sink, "ready")
    while True:
        try:
            call = receive(source)
        except EOFError:
            return
        faulthandler.dump_traceback_later(_ALONE, exit=True)
        told = answer(torch, call)
        faulthandler.cancel_dump_traceback_later()
        send(sink, told)


if __name__ == "__main__":
    main()
