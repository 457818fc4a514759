"""Calls of public functions on tensors that lie in memory in other ways than row by row.

The calls are those of `cases_ops`, and expressions of `strides_written`; each is made several
times, with its tensors laid out anew: permuted, sliced with a step, expanded. `observe` says in
either library how the results lie in memory, whose memory it is, and how the gradients lie.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.laws import cases_ops as oc
from tests.laws import strides_written as sw

PER_ENTRY = 6  # cases of an entry, float64 first
UNSEEN = ("linalg.",)  # entries whose strides are LAPACK's

# Differences that stand, each with its reason: `entry:aspect`, or an expression. A test says so if
# one is there no longer.
_STEPS = "PyTorch makes the gradient that `autograd.grad` hands out in other steps"
_OVERLAP = "PyTorch writes into an expanded tensor, whose elements share memory"
KNOWN: dict[str, str] = {
    "addbmm:inplace": "PyTorch resizes the tensor that is written",
    "addmv:inplace": _OVERLAP,
    "tril:inplace": _OVERLAP,
    "triu:inplace": _OVERLAP,
    "as_strided_scatter:forward": "PyTorch copies all the memory that a contiguous part is of",
    "kron:out": "PyTorch's `out` lies row by row, the result itself does not",
    "m.complex(x, y).angle()": "the angle of complex numbers lies row by row in PyTorch",
    **{
        f"{entry}:first": _STEPS
        for entry in """
        angle as_strided as_strided.partial_views cdist cdouble clamp clamp_max
        clamp_min dist erf erfinv index_reduce.amax index_reduce.amin index_reduce.prod istft
        masked_select max.binary max.reduction_no_dim maximum min.binary min.reduction_no_dim
        minimum nextafter nn.functional.batch_norm nn.functional.binary_cross_entropy
        nn.functional.binary_cross_entropy_with_logits nn.functional.hinge_embedding_loss
        nn.functional.huber_loss nn.functional.leaky_relu
        nn.functional.mse_loss nn.functional.pad.replicate_negative nn.functional.relu
        nn.functional.smooth_l1_loss nn.functional.soft_margin_loss nn.functional.threshold
        nn.functional.triplet_margin_loss polar prod scatter_reduce.amax scatter_reduce.amin
        scatter_reduce.prod stft take tensordot
        """.split()
    },
}

# Gradients that `autograd.grad` hands out otherwise than PyTorch, by the reason. What `backward`
# leaves in `grad` lies as there.
_FIRST = {
    "PyTorch's is the real part of complex numbers, every second number of their memory": """
        fft.fftn fft.hfft fft.hfft2 fft.hfftn fft.ifft fft.ifftn fft.ihfft fft.ihfftn fft.irfft
        fft.irfft2 fft.irfftn
    """,
    "row by row: the rule is not told that the input lay channels last": """
        native_batch_norm nn.functional.adaptive_avg_pool2d nn.functional.adaptive_max_pool2d
        nn.functional.avg_pool2d nn.functional.conv2d nn.functional.conv_transpose2d
        nn.functional.interpolate.area nn.functional.max_pool2d nn.functional.max_pool3d
    """,
    "PyTorch chooses by a mask that lies otherwise than the input, and the gradient lies so": """
        masked.cumprod masked.cumsum masked.log_softmax masked.logaddexp masked.median masked.norm
        masked.prod masked.softmax masked.softmin masked.std masked.var
        nn.functional.multilabel_soft_margin_loss
    """,
    _STEPS: "as_strided_copy nn.functional.pdist",
}
KNOWN["fft.ihfftn:out"] = "PyTorch leaves `out` as it was"
KNOWN["nn.functional.max_unpool2d.grad:forward"] = (
    "the stride of an axis of size 1 is lost in `expand`"
)
KNOWN.update(
    (f"{entry}:first", reason) for reason, entries in _FIRST.items() for entry in entries.split()
)


# -- layouts --------------------------------------------------------------------------------------


def turned(m: Any, x: Any, order: list[int]) -> Any:
    """A copy whose axes lie in memory in `order`, the widest stride first."""
    room = m.empty([x.shape[d] for d in order], dtype=x.dtype)
    back = sorted(range(len(order)), key=lambda d: order[d])
    return room.permute(back).copy_(x)


def permuted(m: Any, x: Any) -> Any:
    return turned(m, x, list(range(x.ndim))[::-1])


def rolled(m: Any, x: Any) -> Any:
    """Channels last, or the first axis innermost where there are fewer than four."""
    order = list(range(x.ndim))
    if x.ndim > 3:
        return turned(m, x, [0, *order[2:], 1])
    return turned(m, x, order[1:] + order[:1])


def sliced(m: Any, x: Any) -> Any:
    if x.ndim == 0:
        return m.empty([3], dtype=x.dtype)[1].copy_(x)
    return m.empty([*x.shape[:-1], 2 * x.shape[-1] + 1], dtype=x.dtype)[..., 1::2].copy_(x)


def cut(m: Any, x: Any) -> Any:
    """Columns of a wider matrix, transposed."""
    if x.ndim == 0:
        return x
    room = m.empty([2 * n for n in x.shape[::-1]], dtype=x.dtype)
    for d, n in enumerate(x.shape[::-1]):
        room = room.narrow(d, 0, n)
    return room.permute(list(range(x.ndim))[::-1]).copy_(x)


def expanded(m: Any, x: Any) -> Any:
    """The first entry along the first axis, seen again and again."""
    return x[:1].clone().expand(x.shape) if x.ndim and x.shape[0] else x


def expanded_last(m: Any, x: Any) -> Any:
    if x.ndim < 2 or not x.shape[-1]:
        return x
    return permuted(m, x[..., :1]).expand(x.shape)


def plain(m: Any, x: Any) -> Any:
    return x


# what is done to the first tensor, and to the others
LAYOUTS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "plain": (plain, plain),
    "permuted": (permuted, permuted),
    "first": (permuted, plain),
    "others": (plain, permuted),
    "rolled": (rolled, rolled),
    "sliced": (sliced, sliced),
    "cut": (cut, cut),
    "expanded": (expanded, plain),
    "expanded last": (expanded_last, rolled),
}


def relaid(m: Any, x: Any, how: str, seen: list[Any], made: list[Any]) -> Any:
    """The argument again with its tensors laid out anew; `made` gets those that want gradients."""
    if isinstance(x, m.Tensor):
        first, others = LAYOUTS[how]
        with m.no_grad():
            y = (others if seen else first)(m, x.detach())
        y = y.detach()
        seen.append(y)
        if x.requires_grad:
            y.requires_grad_()
            made.append(y)
        return y
    if type(x) in (list, tuple):
        return type(x)(relaid(m, y, how, seen, made) for y in x)
    return x


# -- answers --------------------------------------------------------------------------------------


def told(m: Any, x: Any, inputs: list[Any]) -> Any:
    """How a tensor lies in memory: strides of axes that have any length, where it begins, and the
    number of the input whose memory it shares."""
    if x is None or x.layout is not m.strided:
        return None
    if 0 in x.shape:
        return [list(x.shape), x.is_contiguous()]
    strides = [s if n > 1 else -1 for n, s in zip(x.shape, x.stride())]
    where = x.untyped_storage().data_ptr()
    shared = [i for i, y in enumerate(inputs) if y.untyped_storage().data_ptr() == where]
    return [list(x.shape), strides, x.storage_offset(), shared[0] if shared else -1]


def of_gradient(m: Any, x: Any) -> Any:
    """The same of a gradient, which may or may not be a part of another's memory."""
    found = told(m, x, [])
    return found if found is None else found[:2]


def guarded(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except oc.ERRORS:
        return "error"


def observe(m: Any, case: dict[str, Any], blob: oc.Blob, how: str) -> dict[str, Any]:
    """The layouts of the results of a call, of its gradients, of its in-place and `out` forms."""

    def fresh() -> tuple[list[Any], dict[str, Any], list[Any], list[Any]]:
        args = [oc.decode(m, x, blob, []) for x in case["a"]]
        kwargs = {k: oc.decode(m, x, blob, []) for k, x in case["k"].items()}
        seen: list[Any] = []
        made: list[Any] = []
        args = [relaid(m, x, how, seen, made) for x in args]
        kwargs = {k: relaid(m, x, how, seen, made) for k, x in kwargs.items()}
        if case.get("seed"):
            m.manual_seed(42)
        return args, kwargs, seen, made

    found: dict[str, Any] = {}
    args, kwargs, seen, made = fresh()
    outputs: list[Any] = []

    def forward() -> Any:
        outputs.extend(oc.leaves(m, oc.called(m, case["f"], args, kwargs)))
        return [told(m, y, seen) for y in outputs]

    found["forward"] = guarded(forward)
    if found["forward"] == "error":
        return found
    if made and "first" in case["asks"]:
        found["first"] = guarded(
            lambda: [of_gradient(m, g) for g in oc.pulled(m, outputs, made, 0.5, False)]
        )
        args, kwargs, seen, made = fresh()

        def backward() -> Any:
            ys = oc.leaves(m, oc.called(m, case["f"], args, kwargs))
            roots = [y for y in ys if y.requires_grad]
            m.autograd.backward(roots, [oc.weights(m, y, 0.5) for y in roots])
            return [of_gradient(m, x.grad) for x in made]

        found["grad"] = guarded(backward)
    if "inplace" in case["asks"]:
        args, kwargs, seen, made = fresh()
        args[0] = args[0].detach()

        def inplace() -> Any:
            member = getattr(args[0], case["f"].split(".")[-1] + "_")
            return [told(m, member(*args[1:], **kwargs), seen)]

        with m.no_grad():
            found["inplace"] = guarded(inplace)
    if "out" in case["asks"]:
        args, kwargs, seen, made = fresh()

        def out() -> Any:
            room = [m.empty([0], dtype=y.dtype) for y in outputs]
            one = len(room) == 1
            given = {**kwargs, "out": room[0] if one else tuple(room)}
            return [told(m, y, seen) for y in oc.leaves(m, oc.called(m, case["f"], args, given))]

        with m.no_grad():
            found["out"] = guarded(out)
    return found


def differences(have: dict[str, Any], want: dict[str, Any]) -> dict[str, str]:
    """Where two observations differ, by aspect. What PyTorch refuses may work here."""
    wrong = {}
    for aspect, answer in want.items():
        if answer != "error" and have.get(aspect) != answer:
            wrong[aspect] = f"{aspect}: {have.get(aspect)} instead of {answer}"
    return wrong


# -- written expressions --------------------------------------------------------------------------

SHAPES = {"2": (3, 4), "3": (2, 3, 4), "4": (2, 2, 3, 3)}
# the layout of x and i, and that of y and b
PAIRS = [
    (plain, plain), (permuted, permuted), (permuted, plain), (plain, permuted), (rolled, rolled),
    (rolled, permuted), (sliced, sliced), (cut, plain), (cut, rolled), (expanded, plain),
    (expanded, rolled), (expanded_last, expanded), (plain, expanded_last),
]  # fmt: skip


def operands(m: Any, shape: tuple[int, ...], one: Any, other: Any) -> dict[str, Any]:
    """What an expression of `strides_written` names, each tensor laid out in its way."""
    n = np.arange(math.prod(shape))
    return {
        "m": m,
        "x": one(m, m.as_tensor(np.cos(n * 1.7).round(3).reshape(shape))),
        "y": other(m, m.as_tensor(np.sin(n * 2.3).round(3).reshape(shape))),
        "i": one(m, m.as_tensor((n * 7 % 5 % 2).reshape(shape))),
        "b": other(m, m.as_tensor((n % 3 == 0).reshape(shape))),
        "v": m.as_tensor(np.cos(np.arange(shape[-1])).round(3)),
    }


def evaluated(m: Any, text: str, shape: tuple[int, ...], one: Any, other: Any) -> Any:
    """The layout of each tensor that an expression gives."""
    names = operands(m, shape, one, other)
    m.manual_seed(3)
    inputs = [names[k] for k in "xyibv"]
    return guarded(lambda: [told(m, t, inputs) for t in oc.leaves(m, eval(text, dict(names)))])


def expressions() -> Iterator[tuple[str, str]]:
    """Each expression with the number of axes that its operands have."""
    for rank in SHAPES:
        for text in sw.ANY_RANK + (sw.RANK_FOUR if rank == "4" else []):
            yield rank, text


# -- files ----------------------------------------------------------------------------------------


def chosen() -> tuple[dict[str, list[dict[str, Any]]], oc.Blob]:
    """The cases, by entry, and the bytes of their tensors."""
    cases, _, blob = oc.load()
    by_entry: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for case in cases:
        if not case["f"].startswith(UNSEEN):
            by_entry[case["n"]].append(case)
    for entry, found in by_entry.items():
        wide = [c for c in found if c["d"] == "float64"]
        by_entry[entry] = (wide or found)[:PER_ENTRY]
    return dict(by_entry), blob


def results(m: Any) -> dict[str, Any]:
    """What a library says of all cases and expressions."""
    found: dict[str, Any] = oc.quietly(lambda: observed(m))
    return found


def observed(m: Any) -> dict[str, Any]:
    by_entry, blob = chosen()
    calls = {
        entry: [{how: observe(m, case, blob, how) for how in LAYOUTS} for case in cases]
        for entry, cases in by_entry.items()
    }
    written: dict[str, dict[str, Any]] = defaultdict(dict)
    for rank, text in expressions():
        written[text][rank] = [evaluated(m, text, SHAPES[rank], a, b) for a, b in PAIRS]
    return {"calls": calls, "written": written}
