"""Errors that teach: PyTorch's type and first words, then the cure; tracebacks of the user's lines.

`CASES` hold a wrong call each, what PyTorch 2.13 says, and words of the cure. Where PyTorch is
installed the same calls are made there, so that the texts are not a matter of belief.
"""

# ruff: noqa: E501  # texts of PyTorch's, whole
from __future__ import annotations

import os
import re
import subprocess
import sys
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rushlight
from rushlight import errors
from rushlight.ops import overriding
from rushlight.ops.registry import functions, methods, namespaces

ROOT = Path(__file__).resolve().parents[1]
AT_MOST = 4  # frames of rushlight in a traceback


# --- texts ----------------------------------------------------------------------------------------
def data(t: Any) -> Any:
    return types.SimpleNamespace(
        x=t.arange(6.0).reshape(2, 3),
        w=t.ones(2, 3, requires_grad=True),
        logits=t.zeros(2, 3),
        nn=t.nn,
        F=t.nn.functional,
    )


def saved_and_overwritten(t: Any, d: Any) -> None:
    h = d.w * 2
    y = (h * h).sum()
    h.add_(1)
    y.backward()


def twice(t: Any, d: Any) -> None:
    y = (d.w * d.w).sum()
    y.backward()
    y.backward()


# name: the call, the type, PyTorch's words, words of the cure
CASES: dict[str, tuple[Callable[[Any, Any], Any], type[Exception], str, str]] = {
    "dtype of data": (
        lambda t, d: d.nn.Linear(3, 4)(d.x.double()), RuntimeError,
        "mat1 and mat2 must have the same dtype, but got Double and Float",
        "`x.float()`",
    ),
    "dtype in a product": (
        lambda t, d: d.x.double() @ d.x.T, RuntimeError,
        "expected m1 and m2 to have the same dtype, but got: double != float",
        "`model.double()`",
    ),
    "dtype in a batch": (
        lambda t, d: t.bmm(t.ones(1, 2, 2), t.ones(1, 2, 2).double()), RuntimeError,
        "expected scalar type Float but found Double",
        "`x.float()`",
    ),
    "float classes": (
        lambda t, d: d.F.cross_entropy(d.logits, t.tensor([0.0, 1.0])), RuntimeError,
        "expected target dtype to be Long or Byte, but got Float",
        "`target.long()`",
    ),
    "int32 classes": (
        lambda t, d: d.F.nll_loss(d.logits, t.tensor([0, 1], dtype=t.int32)), RuntimeError,
        "expected target dtype to be Long or Byte, but got Int",
        "`target.long()`",
    ),
    "class out of range": (
        lambda t, d: d.F.cross_entropy(d.logits, t.tensor([0, 3])), IndexError,
        "Target 3 is out of bounds.",
        "the input has 3 classes, so targets are 0 to 2",
    ),
    "classes in a column": (
        lambda t, d: d.F.nll_loss(d.logits, t.tensor([[0], [1]])), RuntimeError,
        "0D or 1D target tensor expected, multi-target not supported",
        "`target.squeeze(1)`",
    ),
    "dtype of bce": (
        lambda t, d: d.F.binary_cross_entropy(t.full((2,), 0.5), t.ones(2).double()), RuntimeError,
        "Found dtype Double but expected Float",
        "`target.to(input.dtype)`",
    ),
    "if tensor": (
        lambda t, d: bool(d.x == d.x), RuntimeError,
        "Boolean value of Tensor with more than one value is ambiguous",
        "`if x.any():` or `if x.all():`",
    ),
    "if nothing": (
        lambda t, d: bool(t.ones(0)), RuntimeError,
        "Boolean value of Tensor with no values is ambiguous",
        "`if x.numel():`",
    ),
    "leaf, a part": (
        lambda t, d: d.w.__setitem__(0, 5), RuntimeError,
        "a view of a leaf Variable that requires grad is being used in an in-place operation.",
        "`with torch.no_grad():`",
    ),
    "leaf": (
        lambda t, d: d.w.add_(1), RuntimeError,
        "a leaf Variable that requires grad is being used in an in-place operation.",
        "`with torch.no_grad():`",
    ),
    "saved": (
        saved_and_overwritten, RuntimeError,
        "one of the variables needed for gradient computation has been modified by an inplace "
        "operation: [torch.FloatTensor [2, 3]]",
        "overwritten at test_errors.py",
    ),
    "numpy": (
        lambda t, d: d.w.numpy(), RuntimeError,
        "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
        "",
    ),
    "broadcast": (
        lambda t, d: d.x + t.ones(4), RuntimeError,
        "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1",
        "a has the shape [2, 3], b has [4]",
    ),
    "broadcast in place": (
        lambda t, d: t.ones(3).add_(d.x), RuntimeError,
        "output with shape [3] doesn't match the broadcast shape [2, 3]",
        "write out of place",
    ),
    "cast in place": (
        lambda t, d: t.tensor([1, 2]).add_(1.5), RuntimeError,
        "result type Float can't be cast to the desired output type Long",
        "`x.to(torch.float32)`",
    ),
    "cat": (
        lambda t, d: t.cat([d.x, t.ones(2, 4)]), RuntimeError,
        "Sizes of tensors must match except in dimension 0. Expected size 3 but got size 4 for "
        "tensor number 1 in the list.",
        "the first has the shape [2, 3], number 1 has [2, 4]",
    ),
    "stack": (
        lambda t, d: t.stack([d.x, t.ones(2, 4)]), RuntimeError,
        "stack expects each tensor to be equal size, but got [2, 3] at entry 0 and [2, 4] at entry 1",
        "",
    ),
    "view": (
        lambda t, d: d.x.view(4), RuntimeError,
        "shape '[4]' is invalid for input of size 6",
        "asks for 4 elements, and there are 6",
    ),
    "reshape": (
        lambda t, d: d.x.reshape(-1, 4), RuntimeError,
        "shape '[-1, 4]' is invalid for input of size 6",
        "asks for a multiple of 4 elements",
    ),
    "view of strides": (
        lambda t, d: d.x.T.view(6), RuntimeError,
        "view size is not compatible with input tensor's size and stride (at least one dimension "
        "spans across two contiguous subspaces). Use .reshape(...) instead.",
        "",
    ),
    "product": (
        lambda t, d: d.x @ d.x, RuntimeError,
        "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)",
        "`b.T`",
    ),
    "layer": (
        lambda t, d: d.nn.Linear(4, 5)(d.x), RuntimeError,
        "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)",
        "The data has 3 features in its last dimension, and the weight takes 4.",
    ),
    "load_state_dict": (
        lambda t, d: d.nn.Linear(3, 4).load_state_dict(d.nn.Linear(3, 2).state_dict()), RuntimeError,
        "Error(s) in loading state_dict for Linear:\n\tsize mismatch for weight: copying a param "
        "with shape torch.Size([2, 3]) from checkpoint, the shape in current model is "
        "torch.Size([4, 3]).",
        "",
    ),
    "embedding": (
        lambda t, d: d.nn.Embedding(3, 2)(t.tensor([1, 7])), IndexError,
        "index out of range in self",
        "index 7, and the table has 3 rows: 0 to 2",
    ),
    "embedding of floats": (
        lambda t, d: d.nn.Embedding(3, 2)(t.tensor([1.0])), RuntimeError,
        "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, "
        "Int; but got torch.FloatTensor instead (while checking arguments for embedding)",
        "`input.long()`",
    ),
    "gather": (
        lambda t, d: t.gather(d.x, 1, t.tensor([[3]])), RuntimeError,
        "index 3 is out of bounds for dimension 1 with size 3",
        "",
    ),
    "index": (
        lambda t, d: d.x[0, 3], IndexError,
        "index 3 is out of bounds for dimension 1 with size 3",
        "",
    ),
    "index behind dots": (
        lambda t, d: d.x[..., 3], IndexError,
        "index 3 is out of bounds for dimension 1 with size 3",
        "",
    ),
    "index of floats": (
        lambda t, d: d.x[t.tensor([1.0])], IndexError,
        "tensors used as indices must be long, int, byte or bool tensors",
        "`index.long()`",
    ),
    "item": (
        lambda t, d: d.x.item(), RuntimeError,
        "a Tensor with 6 elements cannot be converted to Scalar",
        "`x.tolist()`",
    ),
    "float": (
        lambda t, d: float(d.x), ValueError,
        "only one element tensors can be converted to Python scalars",
        "`float(x.mean())`",
    ),
    "optimizer of nothing": (
        lambda t, d: t.optim.SGD([], lr=0.1), ValueError,
        "optimizer got an empty parameter list",
        "`nn.ModuleList`",
    ),
    "optimizer of a result": (
        lambda t, d: t.optim.SGD([d.w * 2], lr=0.1), ValueError,
        "can't optimize a non-leaf Tensor",
        "the result of MulBackward0",
    ),
    "backward of many": (
        lambda t, d: (d.w * 2).backward(), RuntimeError,
        "grad can be implicitly created only for scalar outputs",
        "`y.sum().backward()`",
    ),
    "backward of nothing": (
        lambda t, d: d.x.sum().backward(), RuntimeError,
        "element 0 of tensors does not require grad and does not have a grad_fn",
        "`requires_grad=True`",
    ),
    "backward twice": (
        twice, RuntimeError,
        "Trying to backward through the graph a second time",
        "retain_graph=True",
    ),
    "gradients of integers": (
        lambda t, d: t.tensor([1, 2], requires_grad=True), RuntimeError,
        "Only Tensors of floating point and complex dtype can require gradients",
        "write `1.` for `1`",
    ),
    "mean of integers": (
        lambda t, d: t.tensor([1, 2]).mean(), RuntimeError,
        "mean(): could not infer output dtype. Input dtype must be either a floating point or "
        "complex dtype. Got: Long",
        "`x.float().mean()`",
    ),
    "channels of a picture": (
        lambda t, d: d.nn.Conv2d(3, 8, 3)(t.zeros(2, 1, 8, 8)), RuntimeError,
        "Given groups=1, weight of size [8, 3, 3, 3], expected input[2, 1, 8, 8] to have 3 "
        "channels, but got 1 channels instead",
        "the layer's `in_channels` is 3, and the input has 1",
    ),
    "channels behind": (
        lambda t, d: d.nn.Conv2d(3, 8, 3)(t.zeros(2, 8, 8, 3)), RuntimeError,
        "Given groups=1, weight of size [8, 3, 3, 3], expected input[2, 8, 8, 3] to have 3 "
        "channels, but got 8 channels instead",
        "`x.permute(0, 3, 1, 2)`",
    ),
    "channels of a transposed convolution": (
        lambda t, d: d.nn.ConvTranspose1d(3, 4, 3)(t.zeros(1, 4, 5)), RuntimeError,
        "Given transposed=1, weight of size [3, 4, 3], expected input[1, 4, 5] to have 3 channels, "
        "but got 4 channels instead",
        "in the dimension behind the batch",
    ),
    "a picture without channels": (
        lambda t, d: d.nn.Conv2d(1, 8, 3)(t.zeros(8, 8)), RuntimeError,
        "Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [8, 8]",
        "[batch, channels, height, width], or one of the batch. `x.unsqueeze(0)`",
    ),
    "dtype in a convolution": (
        lambda t, d: d.nn.Conv2d(1, 2, 3)(t.zeros(1, 1, 8, 8).double()), RuntimeError,
        "Input type (double) and bias type (float) should be the same",
        "`x.to(torch.float32)`, or the model: `model.to(torch.float64)`",
    ),
    "dtype in a convolution without bias": (
        lambda t, d: d.nn.Conv1d(1, 2, 3, bias=False)(t.zeros(1, 1, 8).double()), RuntimeError,
        "expected scalar type Double but found Float",
        "`x.to(torch.float32)`",
    ),
    "bfloat16 in a convolution": (
        lambda t, d: d.nn.Conv1d(1, 2, 3, bias=False)(t.zeros(1, 1, 8).bfloat16()), RuntimeError,
        "Input type (CPUBFloat16Type) and weight type (torch.FloatTensor) should be the same or "
        "input should be a MKLDNN tensor and weight is a dense tensor",
        "`model.to(torch.bfloat16)`",
    ),
    "a picture of bytes": (
        lambda t, d: d.nn.Conv2d(1, 2, 3)(t.zeros(1, 1, 8, 8).byte()), RuntimeError,
        "Input type (unsigned char) and bias type (float) should be the same",
        "pictures of bytes `/ 255`",
    ),
    "a kernel larger than the picture": (
        lambda t, d: d.nn.Conv2d(1, 2, 5)(t.zeros(1, 1, 3, 3)), RuntimeError,
        "Calculated padded input size per channel: (3 x 3). Kernel size: (5 x 5). Kernel size "
        "can't be greater than actual input size",
        "(`padding=`)",
    ),
    "a window larger than the picture": (
        lambda t, d: d.nn.MaxPool2d(5)(t.zeros(1, 1, 3, 3)), RuntimeError,
        "Given input size: (1x3x3). Calculated output size: (1x0x0). Output size is too small",
        "pool less before",
    ),
    "features of a step": (
        lambda t, d: d.nn.LSTM(4, 8)(t.zeros(3, 2, 5)), RuntimeError,
        "input.size(-1) must be equal to input_size. Expected 4, got 5",
        "the input is [3, 2, 5]",
    ),
    "the state of an LSTM": (
        lambda t, d: d.nn.LSTM(4, 8)(t.zeros(3, 2, 4), (t.zeros(1, 2, 7), t.zeros(1, 2, 7))),
        RuntimeError,
        "Expected hidden[0] size (1, 2, 8), got [1, 2, 7]",
        "(layers * directions, batch, width)",
    ),
    "one state for an LSTM": (
        lambda t, d: d.nn.LSTM(4, 8)(t.zeros(3, 2, 4), t.zeros(1, 2, 8)), IndexError,
        "index 1 is out of bounds for dimension 0 with size 1",
        "pass `(h, c)`, not `h`",
    ),
    "one state for an LSTM of two layers": (
        lambda t, d: d.nn.LSTM(4, 8, 2)(t.zeros(3, 2, 4), t.zeros(2, 2, 8)), RuntimeError,
        "For batched 3-D input, hx and cx should also be 3-D but got (2-D, 2-D) tensors",
        "pass `(h, c)`, each",
    ),
    "the state of a GRU": (
        lambda t, d: d.nn.GRU(4, 8, batch_first=True)(t.zeros(2, 3, 4), t.zeros(2, 1, 8)),
        RuntimeError,
        "Expected hidden size (1, 2, 8), got [2, 1, 8]",
        "also with `batch_first`",
    ),
    "heads": (
        lambda t, d: d.nn.MultiheadAttention(10, 3), AssertionError,
        "embed_dim must be divisible by num_heads",
        "3 heads takes an equal part of the width, which is 10",
    ),
    "a batch of one": (
        lambda t, d: d.nn.BatchNorm1d(3)(t.zeros(1, 3)), ValueError,
        "Expected more than 1 value per channel when training, got input size torch.Size([1, 3])",
        "`model.eval()`",
    ),
    "scores for probabilities": (
        lambda t, d: d.F.binary_cross_entropy(t.tensor([2.0]), t.tensor([1.0])), RuntimeError,
        "all elements of input should be between 0 and 1",
        "`binary_cross_entropy_with_logits`",
    ),
    "a column of scores": (
        lambda t, d: d.nn.BCEWithLogitsLoss()(t.zeros(2, 1), t.zeros(2)), ValueError,
        "Target size (torch.Size([2])) must be the same as input size (torch.Size([2, 1]))",
        "`target.unsqueeze(1)`",
    ),
    "keys of another model": (
        lambda t, d: d.nn.Linear(1, 1).load_state_dict({"weight": t.zeros(1, 1)}), RuntimeError,
        'Error(s) in loading state_dict for Linear:\n\tMissing key(s) in state_dict: "bias".',
        "`strict=False`",
    ),
    "keys of a wrapped model": (
        lambda t, d: d.nn.Linear(1, 1, bias=False).load_state_dict({"module.weight": t.zeros(1, 1)}),
        RuntimeError,
        'Error(s) in loading state_dict for Linear:\n\tMissing key(s) in state_dict: "weight". \n\t'
        'Unexpected key(s) in state_dict: "module.weight".',
        "k.removeprefix('module.')",
    ),
    "the state of another optimiser": (
        lambda t, d: t.optim.SGD([t.zeros(1)]).load_state_dict(
            t.optim.SGD([t.zeros(1), t.zeros(1)]).state_dict()
        ),
        ValueError,
        "loaded state dict contains a parameter group that doesn't match the size of optimizer's "
        "group",
        "those of the model it was saved with",
    ),
}  # fmt: skip


def raised(t: Any, call: Callable[[Any, Any], Any]) -> Exception:
    try:
        call(t, data(t))
    except Exception as error:
        return error
    raise AssertionError("it raised nothing")


@pytest.mark.parametrize("case", CASES)
def test_says_what_pytorch_says_and_the_cure(case: str) -> None:
    call, kind, said, cure = CASES[case]
    error = raised(rushlight, call)
    assert type(error) is kind
    assert str(error).startswith(said)
    assert cure in str(error)
    assert "\t " not in str(error)


@pytest.mark.parametrize("case", CASES)
def test_pytorch_says_so(case: str) -> None:
    torch = pytest.importorskip("torch")
    call, kind, said, _ = CASES[case]
    error = raised(torch, call)
    assert type(error) is kind
    assert str(error).startswith(said)


def test_gradient_of_a_result_warns() -> None:
    w = rushlight.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match=r"The \.grad attribute of a Tensor that is not a leaf"):
        assert (w * 2).grad is None


@pytest.mark.parametrize("case", CASES)
def test_bad_input_changes_nothing(case: str) -> None:
    t, d = rushlight, data(rushlight)
    before = [x.tolist() for x in (d.x, d.w, d.logits)]
    with pytest.raises(CASES[case][1]):
        CASES[case][0](t, d)
    assert [x.tolist() for x in (d.x, d.w, d.logits)] == before


# --- tracebacks -----------------------------------------------------------------------------------
def shown(error: BaseException) -> tuple[list[str], str]:
    """The files of a traceback that are not this one's, and the traceback as it is printed."""
    text = "".join(traceback.format_exception(error))
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    return [file for file in files if file != __file__], text


def is_readable(error: BaseException, at_most: int = AT_MOST) -> None:
    files, text = shown(error)
    assert "During handling of the above exception" not in text, text
    assert "direct cause" not in text, text
    assert "/numpy/" not in text and "/scipy/" not in text, text
    assert sum("rushlight" in file for file in files) <= at_most, text


@pytest.mark.parametrize("case", CASES)
def test_tracebacks_end_at_the_users_line(case: str) -> None:
    error = raised(rushlight, CASES[case][0])
    is_readable(error)


def wrong_calls() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every function of the table, called with shapes, dtypes and types that few of them take."""
    t = rushlight
    wrongs: list[tuple[Any, ...]] = [
        (t.ones(2, 3), t.ones(4)),
        (t.ones(2, 3), t.ones(4, 5), t.ones(6)),
        (t.ones(2, 3), 7),
        (t.ones(2, 3), "a"),
        (t.ones(3), t.ones(3, dtype=t.complex64), 2),
        (t.ones(2, 2, dtype=t.int64), t.ones(2, 2)),
        (t.ones(2, 3, dtype=t.bool), t.ones(2, 3, dtype=t.bool)),
        (t.tensor(1.0), t.tensor([5, -9])),
        (np.ones(3), t.ones(3)),
        ([t.ones(2), t.ones(3)],),
        (None,),
        (),
    ]
    tables = {"torch": functions, "Tensor": methods, **namespaces}
    for space, table in tables.items():
        for name, fn in table.items():
            if isinstance(fn, property) or name == "cuda":
                continue
            for args in wrongs:
                if space != "Tensor" or (args and isinstance(args[0], t.Tensor)):
                    shown_as = ", ".join(type(x).__name__ for x in args)
                    copies = [x.clone() if isinstance(x, t.Tensor) else x for x in args]
                    yield f"{space}.{name}({shown_as})", lambda fn=fn, xs=copies: fn(*xs)


def test_no_function_shows_its_insides() -> None:
    failed, wrong = 0, []
    # where a test has defined classes that take over functions, each call goes through two more
    most = AT_MOST + 2 * bool(overriding._switched)
    for what, call in wrong_calls():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                call()
            except Exception as error:
                failed += 1
                files, text = shown(error)
                insides = [f for f in files if "rushlight" in f]
                if len(insides) > most or "During handling" in text or "/numpy/" in text:
                    wrong.append(f"{what}: {len(insides)} frames\n{text}")
    assert failed > 3000
    assert not wrong, f"{len(wrong)} of {failed}\n" + "\n".join(wrong[:5])


def test_operators_show_nothing() -> None:
    t = rushlight
    a, b = t.ones(2, 3), t.ones(4)
    for call in (
        lambda: a + b, lambda: a - b, lambda: a * b, lambda: a / b, lambda: a @ a, lambda: a @ b,
        lambda: a < b, lambda: a == b, lambda: a**b, lambda: a // b, lambda: a % b,
        lambda: a.__iadd__(b), lambda: a[9], lambda: a[b], lambda: a[:, t.tensor([7])],
        lambda: a.__setitem__(0, b), lambda: t.where(a > 0, a, b), lambda: t.where(a, "a", b),
    ):  # fmt: skip
        with pytest.raises((RuntimeError, IndexError, TypeError)) as caught:
            call()
        files, _ = shown(caught.value)
        assert sum("rushlight" in file for file in files) <= 1, files


class Fails(rushlight.nn.Module):
    def forward(self, x: Any) -> Any:
        return self.deeper(x)

    def deeper(self, x: Any) -> Any:
        raise KeyError("mine")


def users_function(x: Any) -> Any:
    return users_helper(x)


def users_helper(x: Any) -> Any:
    raise ZeroDivisionError("mine")


class FailsBackward(rushlight.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 1

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:  # type: ignore[override]
        return users_helper(g)


def names_of(error: BaseException) -> list[str]:
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def test_the_users_frames_stay() -> None:
    t = rushlight
    w = t.ones(2, requires_grad=True)
    y = w * 2
    y.register_hook(users_function)
    calls: dict[str, tuple[Callable[[], Any], list[str]]] = {
        "module": (lambda: t.nn.Sequential(Fails())(w), ["forward", "deeper"]),
        "vmap": (lambda: t.func.vmap(users_function)(w), ["users_function", "users_helper"]),
        "grad": (lambda: t.func.grad(users_function)(w), ["users_function", "users_helper"]),
        "jvp": (lambda: t.func.jvp(users_function, (w,), (w,)), ["users_function", "users_helper"]),
        "jacobian": (
            lambda: t.autograd.functional.jacobian(users_function, w),
            ["users_function", "users_helper"],
        ),
        "function": (lambda: FailsBackward.apply(w).sum().backward(), ["backward", "users_helper"]),
        "hook": (lambda: y.sum().backward(), ["users_function", "users_helper"]),
        "apply_": (lambda: t.ones(2).apply_(users_function), ["users_function", "users_helper"]),
        "closure": (
            lambda: t.optim.SGD([w], lr=0.1).step(lambda: users_function(w)),
            ["users_function", "users_helper"],
        ),
        "checkpoint": (
            lambda: t.utils.checkpoint.checkpoint(users_function, w, use_reentrant=False),
            ["users_function", "users_helper"],
        ),
    }
    for name, (call, frames) in calls.items():
        with pytest.raises((KeyError, ZeroDivisionError), match="mine") as caught:
            call()
        assert names_of(caught.value)[-2:] == frames, name
        files, text = shown(caught.value)
        assert sum("rushlight" in file for file in files) <= AT_MOST, text


def test_a_library_that_the_user_called_is_shown() -> None:
    def solve(x: Any) -> Any:
        return np.linalg.inv(np.zeros((2, 2)))

    with pytest.raises(np.linalg.LinAlgError) as caught:
        rushlight.func.vmap(solve)(rushlight.ones(2))
    assert "inv" in names_of(caught.value)


def test_the_users_own_context_stays() -> None:
    """An error raised while the user handles another shows that other."""
    with pytest.raises(RuntimeError) as caught:
        try:
            users_function(0)
        except ZeroDivisionError:
            rushlight.ones(2) + rushlight.ones(3)
    assert isinstance(caught.value.__context__, ZeroDivisionError)
    assert not caught.value.__suppress_context__


def test_all_frames_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    call = CASES["view"][0]
    short, _ = shown(raised(rushlight, call))
    monkeypatch.setattr(errors.tracebacks, "full", True)
    full, _ = shown(raised(rushlight, call))
    assert len(short) < len(full)
    assert any(file.endswith("reshape.py") for file in full)


def test_frames_of_the_core_name_file_and_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled or not: where rushlight is shown, it is shown as it is written."""
    monkeypatch.setattr(errors.tracebacks, "full", True)
    error = raised(rushlight, lambda t, d: d.x + t.ones(4))
    frames = traceback.extract_tb(error.__traceback__)
    core = [frame for frame in frames if "rushlight/core/" in Path(frame.filename).as_posix()]
    assert [frame.name for frame in core] == [
        "__add__",
        "_both",
        "pair",
        "compute_binary",
        "rescue",
    ]
    source = Path(str(rushlight.__file__)).parent / "core" / "operators.py"
    line = source.read_text("utf-8").splitlines()[int(str(core[0].lineno)) - 1]
    assert line.strip() == 'return _both(table.add, self, other, "__add__")'
    is_readable(error, at_most=len(core))  # all were asked for


def test_all_frames_by_the_environment() -> None:
    program = "import rushlight as torch\ntorch.ones(2, 3).view(4)\n"
    for value, there in (("1", True), ("0", False)):
        done = subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "RUSHLIGHT_FULL_TRACEBACK": value},
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert "shape '[4]' is invalid for input of size 6" in done.stderr
        assert ("reshape.py" in done.stderr) is there, done.stderr


def test_a_fault_of_rushlights_keeps_its_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody meant to raise is to be reported, with the place."""
    from rushlight.ops.view import reshape

    monkeypatch.setattr(reshape, "sentence", None)  # a fault
    with pytest.raises(TypeError, match="'NoneType' object is not callable") as caught:
        rushlight.ones(2, 3).view(4)
    assert any(file.endswith("reshape.py") for file in shown(caught.value)[0])


def test_alone_stands_for_from_none() -> None:
    with pytest.raises(ValueError, match="better") as caught:
        try:
            users_helper(0)
        except ZeroDivisionError:
            raise errors.alone(ValueError("better"))  # noqa: B904
    assert "During handling" not in shown(caught.value)[1]


# --- modules --------------------------------------------------------------------------------------
class Block(rushlight.nn.Module):
    def __init__(self, n: int) -> None:
        super().__init__()
        self.linear = rushlight.nn.Linear(n, 4)

    def forward(self, x: Any) -> Any:
        return self.linear(x)


class Net(rushlight.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        blocks = [Block(3), Block(4), Block(3)]
        self.encoder = rushlight.nn.ModuleDict({"layers": rushlight.nn.ModuleList(blocks)})

    def forward(self, x: Any) -> Any:
        for layer in self.encoder["layers"]:
            x = layer(x)
        return x


def notes_of(error: BaseException) -> list[str]:
    return list(getattr(error, "__notes__", []))


def test_the_module_is_named() -> None:
    with pytest.raises(RuntimeError) as caught:
        Net()(rushlight.ones(5, 3))
    assert str(caught.value).startswith("mat1 and mat2 shapes cannot be multiplied (5x4 and 3x4)\n")
    assert notes_of(caught.value) == [
        "in model.encoder.layers[2].linear, where model is a Net\n"
        "  Linear(in_features=3, out_features=4, bias=True)\n"
        "  called with: float32 [5, 4]\n"
        "  parameters: weight float32 [4, 3], bias float32 [4]"
    ]
    assert names_of(caught.value)[1:] == ["forward", "forward"]


def test_one_module_alone() -> None:
    with pytest.raises(RuntimeError) as caught:
        rushlight.nn.Linear(3, 2, bias=False)(rushlight.ones(4))
    (note,) = notes_of(caught.value)
    assert note.startswith("in a Linear\n  Linear(in_features=3, out_features=2, bias=False)\n")


def test_hooks_and_keywords_are_named_too() -> None:
    layer = rushlight.nn.Linear(3, 2)
    model = rushlight.nn.Sequential(layer)
    layer.register_forward_hook(lambda module, args, output: None)
    with pytest.raises(RuntimeError) as caught:
        model(rushlight.ones(4))
    assert notes_of(caught.value)[0].startswith("in model[0], where model is a Sequential\n")
    with pytest.raises(RuntimeError) as caught:
        layer(input=rushlight.ones(4))
    assert "called with: input=float32 [4]" in notes_of(caught.value)[0]


def test_a_model_within_a_function_of_a_model() -> None:
    """A module that is no part of the outer one: the note speaks of the one it is part of."""

    class Outer(rushlight.nn.Module):
        def forward(self, x: Any) -> Any:
            return inner(x)

    inner = rushlight.nn.Sequential(rushlight.nn.Linear(3, 2))
    with pytest.raises(RuntimeError) as caught:
        Outer()(rushlight.ones(4))
    assert notes_of(caught.value)[0].startswith("in model[0], where model is a Sequential\n")


class Signal(Exception):
    """Of the user's."""


def test_signals_of_the_user_are_left_alone() -> None:
    class Stops(rushlight.nn.Module):
        def forward(self, x: Any) -> Any:
            raise Signal

    with pytest.raises(Signal) as caught:
        Stops()(1)
    assert not notes_of(caught.value)


def test_a_repr_that_fails_does_not_hide_the_error() -> None:
    class Strange(rushlight.nn.Module):
        def extra_repr(self) -> str:
            raise ValueError("another matter")

        def forward(self, x: Any) -> Any:
            raise RuntimeError("the matter")

    with pytest.raises(RuntimeError, match="the matter") as caught:
        Strange()([rushlight.ones(2), 3])
    (note,) = notes_of(caught.value)
    assert "Strange(...)" in note and "list of (float32 [2], int)" in note


# --- signatures -----------------------------------------------------------------------------------
SIGNATURES = [
    ("torch.sum(x, foo=1)",
     "sum() received an invalid combination of arguments - got (Tensor, foo=int), but expected one "
     "of:\n * (Tensor input, *, torch.dtype dtype = None)\n * (Tensor input, tuple of ints dim, bool "
     "keepdim = False, *, torch.dtype dtype = None, Tensor out = None)\n"),
    ("x.sum(foo=1)",
     "sum() received an invalid combination of arguments - got (foo=int, ), but expected one of:\n"
     " * (*, torch.dtype dtype = None)\n * (tuple of ints dim, bool keepdim = False, *, torch.dtype "
     "dtype = None)\n"),
    ("x.sum('a')",
     "sum() received an invalid combination of arguments - got (str), but expected one of:\n"),
    ("x.max(1, 2, 3)",
     "max() received an invalid combination of arguments - got (int, int, int), but expected one "
     "of:\n * ()\n * (Tensor other)\n * (int dim, bool keepdim = False)\n"),
    ("x.max('a')",
     "max() received an invalid combination of arguments - got (str), but expected one of:\n * ()\n"
     "      didn't match because some of the arguments have invalid types: (!str!)\n"
     " * (Tensor other)\n"
     "      didn't match because some of the arguments have invalid types: (!str!)\n"
     " * (int dim, bool keepdim = False)\n"),
    ("x.max(dim='a')",
     "max() received an invalid combination of arguments - got (dim=str, ), but expected one of:\n"
     " * ()\n      didn't match because some of the keywords were incorrect: dim\n"),
    ("x.max(0, foo=True)", "max() got an unexpected keyword argument 'foo'"),
    ("x.masked_fill(x, 'a')",
     "masked_fill() received an invalid combination of arguments - got (Tensor, str), but expected "
     "one of:\n * (Tensor mask, Tensor value)\n"
     "      didn't match because some of the arguments have invalid types: (Tensor, !str!)\n"),
    ("x.fill_((1, 2))",
     "fill_() received an invalid combination of arguments - got (tuple), but expected one of:\n"
     " * (Tensor value)\n"
     "      didn't match because some of the arguments have invalid types: (!tuple of (int, int)!)\n"),
    ("torch.clamp(x, 'a')",
     "clamp() received an invalid combination of arguments - got (Tensor, str), but expected one "
     "of:\n * (Tensor input, Tensor min = None, Tensor max = None, *, Tensor out = None)\n"),
    ("torch.add(x)",
     "add() received an invalid combination of arguments - got (Tensor), but expected (Tensor input, "
     "Tensor other, *, Number alpha = 1, Tensor out = None)"),
    ("torch.addmv(x, foo=1)",
     "addmv() received an invalid combination of arguments - got unrecognized keyword arguments: foo"),
    ("torch.where(x, 1, 'a')",
     "where() received an invalid combination of arguments - got (Tensor, int, str), but expected "
     "one of:\n * (Tensor condition)\n"),
    ("torch.arange()",
     "arange() received an invalid combination of arguments - got (), but expected one of:\n"
     " * (Number end, *, Tensor out = None, torch.dtype dtype = None, torch.layout layout = None, "
     "torch.device device = None, bool pin_memory = False, bool requires_grad = False)\n"),
    ("torch.linalg.pinv(x, atol='a')",
     "linalg_pinv() received an invalid combination of arguments - got (Tensor, atol=str), but "
     "expected one of:\n"),
    ("torch.sin(x, foo=1)", "sin() got an unexpected keyword argument 'foo'"),
    ("torch.sin(x, x, x)", "sin() takes 1 positional argument but 3 were given"),
    ("x.sin(1)", "TensorBase.sin() takes no arguments (1 given)"),
    ("x.sin(foo=1)", "TensorBase.sin() takes no keyword arguments"),
    ("torch.fix('a')", "fix(): argument 'input' (position 1) must be Tensor, not str"),
    ("torch.cumsum(x)", 'cumsum() missing 1 required positional arguments: "dim"'),
    ("torch.cumsum()", 'cumsum() missing 2 required positional argument: "input", "dim"'),
    ("torch.cumsum(x, 0, dim=3)", "cumsum() got multiple values for argument 'dim'"),
    ("x.add('a')", "add(): argument 'other' (position 1) must be Tensor, not str"),
    ("torch.add(x, 'a')", "add(): argument 'other' (position 2) must be Tensor, not str"),
    ("x.mm(1)", "mm(): argument 'mat2' (position 1) must be Tensor, not int"),
    ("x.clone(1)", "clone() takes 0 positional arguments but 1 was given"),
    ("x.logit_(0.1, 2)", "logit_() takes from 0 to 1 positional arguments but 2 were given"),
    ("torch.i0('a')", "i0(): argument 'input' (position 1) must be Tensor, not str"),
    ("torch.special.i0('a')", "special_i0(): argument 'input' (position 1) must be Tensor, not str"),
    ("torch.nn.functional.cross_entropy(x)",
     "cross_entropy() missing 1 required positional argument: 'target'"),
    ("torch.nn.functional.mse_loss()",
     "mse_loss() missing 2 required positional arguments: 'input' and 'target'"),
    ("torch.nn.functional.cross_entropy(x, x, foo=1)",
     "cross_entropy() got an unexpected keyword argument 'foo'"),
    ("torch.nn.functional.relu(x, foo=1)", "relu() got an unexpected keyword argument 'foo'"),
    ("x.greater_('a')",
     "greater_() received an invalid combination of arguments - got (str), but expected one of:\n"),
]  # fmt: skip


def told_by(t: Any, source: str, tmp_path: Path) -> Exception:
    """What a call says in a program of its own: errors of calls look at how they are written."""
    file = tmp_path / "program.py"
    file.write_text(source + "\n", "utf-8")
    try:
        exec(compile(source, str(file), "exec"), {"torch": t, "x": t.ones(2, 3)})
    except Exception as error:
        return error
    raise AssertionError("it raised nothing")


@pytest.mark.parametrize(("source", "text"), SIGNATURES)
def test_signatures(source: str, text: str, tmp_path: Path) -> None:
    error = told_by(rushlight, source, tmp_path)
    assert type(error) is TypeError
    assert str(error).startswith(text)
    is_readable(error)


@pytest.mark.parametrize(("source", "text"), SIGNATURES)
def test_signatures_are_pytorchs(source: str, text: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    error = told_by(torch, source, tmp_path)
    assert type(error) is TypeError
    assert str(error).startswith(text)


def test_without_source_a_call_is_told_as_a_function() -> None:
    space = {"torch": rushlight, "x": rushlight.ones(2, 3)}
    with pytest.raises(TypeError, match=re.escape("max() received an invalid combination")):
        exec(compile("x.max(1, 2, 3, 4)", "<nowhere>", "exec"), space)


def test_the_list_of_signatures_is_current() -> None:
    pytest.importorskip("torch")
    import importlib.util

    spec = importlib.util.spec_from_file_location("tool", ROOT / "tools" / "make_signatures.py")
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.TARGET.read_text("utf-8") == tool.text(), "run tools/make_signatures.py"
