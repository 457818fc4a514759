"""The sample inputs of PyTorch's own op tests, as cases (cases_ops.py), with its answers.

Needs PyTorch 2.13 and expecttest. Every entry of PyTorch's `op_db` whose function rushlight has is
sampled in several dtypes; cases_ops.py says what is asked about each sample.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import random
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from tests.laws import cases_ops as oc

# dtype: how many samples of an entry
STORED = {"float64": 16, "float32": 4, "int64": 6, "bool": 3, "bfloat16": 4, "complex128": 8}
LIVE = {"float64": 3, "float16": 2, "uint8": 2, "int32": 2, "complex64": 2, "complex128": 2}
SECOND = 2  # samples with second gradients
SMALL = 150  # elements of a sample, where there are so small ones
LARGE = 10_000  # elements of a sample that is not stored

# op_db's own lambdas take these in another order than the public function does
ORDER = {
    "einsum": (1, 0), "polygamma": (1, 0), "special.polygamma": (1, 0), "where": (1, 0, 2),
    "normal.number_mean": (1, 0), "nn.functional.embedding": (1, 0),
    "nn.functional.embedding_bag": (1, 0),
}  # fmt: skip
RENAMED = {"normal.in_place": "Tensor.normal_"}
# of sparse tensors, which samples here cannot hold: see tests/ops/sparse
SPARSE = ("to_sparse", "sparse.mm", "sparse.mm.reduce", "sparse.sampled_addmm")
UNSET = ("empty", "empty_like", "empty_strided", "new_empty", "empty_permuted", "new_empty_strided")


def database() -> list[Any]:
    from torch.testing._internal.common_methods_invocations import op_db

    return list(op_db)


def title(op: Any) -> str:
    return op.name + ("." + op.variant_test_name if op.variant_test_name else "")


def public_name(op: Any) -> str | None:
    """The name under which both libraries have the function of an entry, or None."""
    import torch

    import rushlight

    if op.name in SPARSE:
        return None
    if title(op) in RENAMED:
        return RENAMED[title(op)]
    for name in (op.name, "Tensor." + op.name, "Tensor." + op.name + "_"):
        if op.name.startswith("_") and not op.name.startswith("__"):
            return None
        there, here = oc.lookup(torch, name), oc.lookup(rushlight, name)
        code = getattr(inspect.unwrap(here), "__code__", None) if callable(here) else None
        home = Path(code.co_filename) if code is not None else Path()
        if home.parent.name == "linalg" and not home.stem.endswith("norm"):
            return None  # factors are unique up to signs and phases: compared in their own tests
        if there is not None and here is not None and not isinstance(there, torch.dtype):
            return name
    return None


def reseed(text: str) -> None:
    import torch

    seed = zlib.crc32(text.encode()) % 2**31
    torch.default_generator.manual_seed(seed)  # torch.manual_seed takes long: it logs its caller
    random.seed(seed)
    np.random.seed(seed)


@contextlib.contextmanager
def seeded(text: str) -> Iterator[None]:
    """op_db seeds its generators before each sample: let it be with seeds made from a text.

    It also walks up the stack each time, for the test it is called by; that takes most of the time.
    """
    numbers = itertools.count()
    inside = "torch.testing._internal."
    with (
        mock.patch(
            inside + "common_utils.set_rng_seed",
            lambda seed=None: reseed(f"{text} {next(numbers)}"),
        ),
        mock.patch(inside + "common_utils.extract_test_fn", lambda: None),
        mock.patch(inside + "opinfo.core.extract_test_fn", lambda: None),
    ):
        reseed(text)
        yield


def simplify(x: Any) -> None:
    """Keep 20 bits of each float64, so that inputs compress; towards zero, in the same domain."""
    import torch

    if isinstance(x, (list, tuple)):
        for y in x:
            simplify(y)
    if isinstance(x, torch.Tensor) and x.layout is torch.strided and x.numel():
        with torch.no_grad():
            real = torch.view_as_real(x.resolve_conj()) if x.is_complex() else x
            if real.dtype is torch.float64 and real.untyped_storage().nbytes():
                bits = torch.empty(0, dtype=torch.int64).set_(real.untyped_storage())
                bits &= ~((1 << 32) - 1)


def signature(x: Any) -> Any:
    """What makes two samples differ in kind: shapes and other arguments, not values."""
    import torch

    if isinstance(x, torch.Tensor):
        return (tuple(x.shape), x.dtype, x.is_contiguous())
    if isinstance(x, (list, tuple)):
        return tuple(signature(y) for y in x)
    if isinstance(x, dict):
        return tuple((k, signature(y)) for k, y in x.items())
    return type(x) if isinstance(x, float) else repr(x)


def elements(x: Any) -> int:
    import torch

    if isinstance(x, torch.Tensor):
        return x.numel()
    if isinstance(x, dict):
        return elements(list(x.values()))
    return sum(elements(y) for y in x) if isinstance(x, (list, tuple)) else 0


def deepest(x: Any) -> int:
    import torch

    if isinstance(x, torch.Tensor):
        return x.ndim
    return max(map(deepest, x), default=0) if isinstance(x, (list, tuple)) else 0


def samples(op: Any, dtype: str, count: int, wants: bool, seed: str) -> Iterator[Any]:
    """Some samples of an entry: small ones, of different kinds, from the whole list."""
    import torch

    kinds: dict[Any, list[Any]] = {}
    with seeded(f"{title(op)} {dtype} {seed}"):
        generated = op.sample_inputs("cpu", getattr(torch, dtype), requires_grad=wants)
        for sample in itertools.islice(generated, 300 if seed == "stored" else 40):
            whole = [sample.input, sample.args, sample.kwargs]
            kinds.setdefault(signature(whole), [elements(whole), sample])
    small = [s for n, s in kinds.values() if n <= SMALL]
    if seed == "stored":
        kinds = {key: pair for key, pair in kinds.items() if pair[0] <= LARGE}
    if not small:
        small = [min(kinds.values(), key=lambda pair: pair[0])[1]] if kinds else []
    n = len(small)
    steps = max(1, count - 1)
    for i in range(n) if n <= count else sorted({i * (n - 1) // steps for i in range(count)}):
        yield small[i]


def cases_of(op: Any, name: str, dtype: str, count: int, seed: str, blob: oc.Blob) -> Iterator[Any]:
    """Cases with PyTorch's answers, unpacked."""
    import torch

    entry = title(op)
    exact = dtype in ("float64", "complex128")
    kind = getattr(torch, dtype)
    wants = exact and op.supports_autograd and kind in op.supported_backward_dtypes("cpu")
    for number, sample in enumerate(samples(op, dtype, count, wants, seed)):
        args = [sample.input, *sample.args]
        order = ORDER.get(entry) or ORDER.get(op.name)
        if order:
            args = [args[i] for i in order] + args[len(order) :]
        simplify([args, list(sample.kwargs.values())])
        if sample.kwargs.get("sparse"):
            continue  # asks for gradients that are sparse tensors
        try:
            case = {
                "n": entry, "f": name, "d": dtype,
                "a": [oc.encode(torch, x, blob) for x in args],
                "k": {k: oc.encode(torch, x, blob) for k, x in sample.kwargs.items()},
            }  # fmt: skip
        except ValueError:
            continue
        asks = ["forward"]
        if wants:
            asks += ["nodes", "first"]
            if number < SECOND and dtype == "float64" and op.supports_gradgrad:
                asks.append("second")
        short = name.split(".")[-1]
        free = not name.startswith("Tensor.")
        if isinstance(args[0], torch.Tensor) and not order:
            if free and op.method_variant is not None:
                asks.append("method")
            if hasattr(torch.Tensor, short + "_") and op.inplace_variant is not None:
                asks.append("inplace")
        if op.supports_out and number < 2 and "out=None" in str(oc.lookup(torch, name).__doc__):
            asks.append("out")
        case["asks"] = asks
        if number == 0 and dtype == "float64":
            case["also"] = aliases(op)
        if op.name in UNSET:
            case["values"] = False
        torch.default_generator.manual_seed(7)
        before = torch.get_rng_state()
        want = oc.observe(torch, case, blob)
        if "error" in want["forward"]:
            print("  op_db's sample is refused:", entry, dtype, want["forward"])
            continue
        if not torch.equal(before, torch.get_rng_state()):
            case["seed"] = 1
            want = oc.observe(torch, case, blob)
        for key in ("inplace", "out", "second"):
            if missing(want.get(key)):
                asks.remove(key)
                del want[key]
        if dtype in oc.LOW and op.name not in UNSET:
            exact = oc.rounded(torch, case, blob)
            if exact is not None and list(oc.differences(exact, want["forward"])):
                want["exact"] = exact
        yield case, want


def missing(answer: Any) -> bool:
    """Is this what PyTorch says of a form it does not have?"""
    error = answer.get("error") if isinstance(answer, dict) else None
    return error is not None and (
        "the derivative for 'inplace version" in error[1]
        or "_backward is not implemented" in error[1]
        or "argument 'out'" in error[1]
        or "Expected a proper Tensor but got None" in error[1]
        or "got an unexpected keyword argument 'out'" in error[1]
        or "invalid combination of arguments" in error[1]
    )


def aliases(op: Any) -> list[str]:
    import torch

    import rushlight

    names = [a.name for a in op.aliases]
    return [n for n in names if oc.lookup(torch, n) and oc.lookup(rushlight, n)]


def error_cases(op: Any, name: str, blob: oc.Blob) -> Iterator[Any]:
    """op_db's calls that must fail, and how PyTorch fails."""
    import torch

    if op.error_inputs_func is None:
        return
    with seeded("errors " + title(op)):
        errors = list(op.error_inputs("cpu"))
    for error in errors:
        sample = error.sample_input
        args = [sample.input, *sample.args]
        order = ORDER.get(title(op)) or ORDER.get(op.name)
        if order and len(args) >= len(order):
            args = [args[i] for i in order] + args[len(order) :]
        if name.startswith("Tensor.") and not isinstance(args[0], torch.Tensor):
            continue
        if elements([args, sample.kwargs]) > 100_000 or deepest(args) > 64:
            continue  # NumPy has arrays of up to 64 dimensions
        try:
            case = {
                "n": title(op), "f": name, "d": "", "asks": ["forward"],
                "a": [oc.encode(torch, x, blob) for x in args],
                "k": {k: oc.encode(torch, x, blob) for k, x in sample.kwargs.items()},
            }  # fmt: skip
        except ValueError:
            continue
        want = oc.observe(torch, case, blob)
        text = want["forward"].get("error", ("", ""))[1]
        if text and "not resizable" not in text:  # that is about the buffers the cases live in
            yield case, want


def entries() -> list[tuple[Any, str]]:
    found = []
    for op in database():
        name = public_name(op)
        if name is not None:
            found.append((op, name))
    return found


def shrink(case: dict[str, Any], want: dict[str, Any]) -> None:
    """Leave out answers that repeat the forward one."""
    for key in list(want):
        if key != "forward" and not list(oc.differences(want[key], want["forward"])):
            want[key] = "="
    for key in ("inplace", "out"):
        first = want.get(key, {}).get("list") if isinstance(want.get(key), dict) else None
        if first and not list(oc.differences(first[-1 if key == "out" else 0], want["forward"])):
            first[-1 if key == "out" else 0] = "="
        if key == "inplace" and first and want.get("first"):
            grads = want["first"].get("list")
            if grads and not list(oc.differences({"list": first[1:]}, {"list": grads})):
                want[key] = {"list": [first[0], "first"]}


def drawn(torch: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]], oc.Blob]:
    """All cases and errors to be stored, and the bytes of their tensors."""
    blob = oc.Blob()
    cases, errors = [], []
    for op, name in entries():
        for dtype, count in STORED.items():
            if getattr(torch, dtype) not in op.supported_dtypes("cpu"):
                continue
            for case, want in cases_of(op, name, dtype, count, "stored", blob):
                shrink(case, want)
                cases.append({**case, "want": oc.pack(want, blob)})
        for case, want in error_cases(op, name, blob):
            errors.append({**case, "want": want})
    return cases, errors, blob
