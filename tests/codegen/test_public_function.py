"""Public functions that ask compiled code first are functions in everything else."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import subprocess
import sys
import weakref
from typing import Any

import pytest

import rushlight as torch
from rushlight.arrays.kernels import PublicFunction
from rushlight.core.graph import TensorBase

pytestmark = pytest.mark.skipif(PublicFunction is None, reason="there are no kernels")


def made(ask: Any, kind: int = 3, blame: Any = None) -> Any:
    def fn(*args: Any, **kwargs: Any) -> Any:
        """What it says."""
        return "fn", args, kwargs

    return PublicFunction(fn, kind, ask, "what", blame or (lambda *_: NotImplemented), TensorBase)


def test_it_is_its_function() -> None:
    f = torch.exp
    assert type(f) is PublicFunction and callable(f)
    assert f.__name__ == f.__qualname__ == "exp" and f.__module__ == "rushlight"
    assert "e to the power" in f.__doc__ and "exp" in repr(f)
    assert list(inspect.signature(f).parameters) == ["input", "out"]
    assert list(inspect.signature(torch.ones(1).sum).parameters)[:2] == ["dim", "keepdim"]
    assert pickle.loads(pickle.dumps(f)) is f and copy.deepcopy(f) is f and copy.copy(f) is f
    f.a_mark = 3
    assert f.a_mark == f.__dict__.pop("a_mark") == 3 and not hasattr(f, "a_mark")
    assert {f: 1}[torch.exp] == 1 and weakref.ref(f)() is f
    assert inspect.isroutine(f) and inspect.unwrap(f).__name__ == "exp"
    assert inspect.getsource(torch.relu).endswith("return unary(RELU, input)\n")


def test_what_is_asked() -> None:
    f = made(lambda what, args, kwargs: (what, args, kwargs))
    assert f(1, 2, a=3) == ("what", (1, 2), {"a": 3}) and f() == ("what", (), {})
    assert made(lambda *_: None)(1, b=2) == ("fn", (1,), {"b": 2})
    x = torch.ones(2)
    one = made(lambda what, a: (what, a), 1)
    assert one(x) == ("what", x) and one(1) == ("fn", (1,), {}) and one(x, 1)[0] == "fn"
    assert one(x, out=None) == ("fn", (x,), {"out": None}) and one()[0] == "fn"
    two = made(lambda what, a, b: None if a is b else (what, a, b), 2)
    y = torch.ones(2)
    assert two(x, y) == ("what", x, y)
    assert [two(*args)[0] for args in ((x, x), (x, 1), (1, x), (x,), ())] == ["fn"] * 5
    with pytest.raises(ValueError, match="there is no kind"):
        made(None, 4)


def test_errors() -> None:
    """Of what is asked: they stand, become others, or a result."""

    def fail(what: Any, args: Any, kwargs: Any) -> Any:
        raise args[0]

    seen: list[Any] = []

    def blame(error: Any, args: Any, kwargs: Any) -> Any:
        seen.append((error, args, kwargs))
        if isinstance(error, KeyError):
            raise IndexError("better") from None
        return NotImplemented if isinstance(error, TypeError) else "instead"

    f = made(fail, blame=blame)
    error = TypeError("as it is")
    with pytest.raises(TypeError, match="as it is") as told:
        f(error, a=1)
    assert told.value is error and seen[-1] == (error, (error,), {"a": 1})
    with pytest.raises(IndexError, match="better"):
        f(KeyError("k"))
    assert f(ValueError("v")) == "instead"
    with pytest.raises(KeyboardInterrupt):
        f(KeyboardInterrupt())
    assert len(seen) == 3


def test_other_code_takes_over() -> None:
    f = made(lambda *_: "asked")
    old = f.__code__
    f.__code__ = (lambda *args, **kwargs: "other").__code__
    assert f(1) == "other"
    f.__code__ = old
    assert f(1) == "asked"


def test_it_is_bound_as_a_method() -> None:
    class Home:
        f = made(lambda what, args, kwargs: (args, kwargs))

    home = Home()
    assert home.f(2, c=3) == ((home, 2), {"c": 3}) and Home.f(2) == ((2,), {})
    bound = home.f
    assert bound(4) == ((home, 4), {}) and bound.__self__ is home and bound.__name__ == "fn"


def test_cycles_are_collected() -> None:
    f = made(None)
    gone = weakref.ref(f)
    f.itself = f
    del f
    gc.collect()
    assert gone() is None


# In a process of its own: a class with `__torch_function__` in another test makes every function
# look for overrides, for good.
FRAMES = """
import sys
import rushlight as torch
import rushlight.nn.functional as F

x, y = torch.randn(8, 16), torch.randn(8, 16)
w = torch.randn(8, 16, requires_grad=True)
idx, mask, classes = torch.tensor([0, 3, 5]), x > 0, torch.arange(8)
images, mean, var = torch.randn(2, 4, 5, 5), torch.zeros(4), torch.ones(4)
chance = torch.rand(8, 16)
gain, shift, table, places = y[0].clone(), y[1].clone(), y.clone(), torch.zeros(4, 4).long()
calls = {calls!r}
for text in calls:
    call = eval("lambda: " + text)
    for _ in range(3):
        call()
    entered = []
    sys.setprofile(lambda frame, event, _: entered.append(frame.f_code.co_qualname)
                   if event == "call" else None)
    call()
    sys.setprofile(None)
    inside = entered[1:]
    if inside:
        print(text, inside)
"""

CALLS = [
    "x + y", "x * 2.0", "-x", "x @ y.t()", "x.exp()", "torch.exp(x)", "torch.mul(x, y)",
    "x.sigmoid()", "x.tanh()", "torch.maximum(x, y)", "x.sum()", "x.sum(1)", "x.sum(dim=1)",
    "x.mean(1, keepdim=True)", "x.amax(1)", "x.var()", "torch.softmax(x, 1)", "F.softmax(x, dim=1)",
    "F.log_softmax(x, 1)", "x.logsumexp(1)", "x.cumsum(1)", "x.clamp(-1, 1)", "torch.cat([x, y])",
    "torch.stack([x, y])", "F.pad(x, (1, 1))", "x.flip(1)", "x.clone()", "F.gelu(x)", "F.silu(x)",
    "F.mse_loss(x, y)", "F.linear(x, y)", "x.view(-1)", "x.reshape(4, -1)",
    "torch.reshape(x, (4, 32))", "x.t()", "x.transpose(0, 1)", "x.permute(1, 0)", "x.unsqueeze(0)",
    "x[None].squeeze(0)", "x > y", "x == 0", "x ** 2", "x.detach()", "F.relu(x)", "torch.relu(x)",
    "x.shape", "x.dtype", "w.requires_grad", "w.grad",
    "x.squeeze()", "x.expand(2, 8, 16)", "x.select(0, 1)", "x.narrow(0, 1, 3)", "x.flatten()",
    "x[2]", "x[-1]", "x[1:5]", "x[:, 3]", "x[..., None]", "x[2, 1:3]", "w * y", "w.exp()",
    "w.sum(1)", "w.view(-1)", "w.t()", "w[2]", "w[1:3]", "w[:, 3]", "w.select(0, 1)",
    "w.unsqueeze(0)",
    "x + 1", "1 - x", "2 / x", "x ** 3", "x.add(1)", "torch.mul(x, 2.0)", "x.eq(0)", "x.gt(y)",
    "x.std()", "x.var(1)", "x.norm()", "x.norm(dim=1)", "x.max()", "x.max(1)", "x.min(0)",
    "x.argmax()", "x.argmax(1)", "x.prod(1)", "x.cumprod(1)", "x.any()", "x.all()", "x.topk(3)",
    "x.sort(1)", "x.argsort(1)", "torch.where(mask, x, y)", "x.masked_fill(mask, 0.)",
    "x.masked_select(mask)", "F.embedding(idx, table)", "x.gather(1, places)",
    "x.index_select(0, idx)", "x[idx]", "w[idx]", "F.cross_entropy(x, classes)",
    "F.nll_loss(x, classes)", "F.layer_norm(x, (16,))", "F.layer_norm(x, (16,), gain, shift)",
    "F.l1_loss(x, y)", "F.smooth_l1_loss(x, y)", "F.huber_loss(x, y)",
    "F.binary_cross_entropy_with_logits(x, y)", "torch.randn(8, 16)", "torch.rand(8)",
    "torch.zeros(3, 4)", "torch.ones(3)", "torch.arange(10)", "torch.zeros_like(x)",
    "F.softplus(x)", "F.mish(x)", "F.elu(x)", "F.leaky_relu(x)", "F.hardswish(x)", "table.add_(1)",
    "table.mul_(y)", "table.copy_(y)", "table.fill_(1)", "table.zero_()", "x.tril()",
    "x.repeat(2, 1)", "torch.einsum('ij,kj->ik', x, y)", "torch.outer(x[0], y[0])",
    "torch.bmm(x[None], y.t()[None])", "torch.mm(x, y.t())", "torch.dot(x[0], y[0])",
    "x.chunk(2)", "x.split(2)", "torch.lerp(x, y, 0.3)", "torch.addcmul(x, x, y)",
    "F.linear(x, y, y[:, 0])", "F.normalize(x)", "x.float()", "x.double()", "x.contiguous()",
    "x.numel()", "x.size()", "x.size(-1)", "x.dim()", "len(x)", "F.dropout(x, 0.5)",
    "F.dropout(w, p=0.3, training=True)", "F.rms_norm(x, (16,))", "F.rms_norm(w, (16,), gain)",
    "F.group_norm(x, 4)", "F.group_norm(x, 4, gain, shift)", "F.batch_norm(x, gain, shift)",
    "F.batch_norm(images, mean, var, mean, var)",
    "F.batch_norm(images, mean, var, mean, var, True)", "F.binary_cross_entropy(chance, chance)",
    "F.kl_div(x, y, reduction='sum')", "torch.randperm(10)", "torch.bernoulli(chance)",
    "table.bernoulli_(0.3)", "table.exponential_()", "table.normal_()", "table.uniform_(-1, 1)",
    "torch.randint(0, 10, (3,))", "torch.randn_like(x)", "torch.rand_like(x)",
    "torch.tensor([1., 2.], requires_grad=True)", "torch.tensor(1.0)", "torch.full((2, 3), 1.0)",
    "torch.empty(3, 4)", "torch.empty_like(x)",
]  # fmt: skip


def test_common_calls_enter_no_interpreted_frame() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FRAMES.format(calls=CALLS)],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert done.stdout == ""
