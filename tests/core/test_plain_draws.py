"""Calls that draw without an interpreted frame give what the public functions give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight as torch

F = torch.nn.functional

# With the default generator named, or options that say nothing new, the public function is run.
PAIRS = [
    ("x.uniform_()", "x.uniform_(generator=g)"),
    ("x.uniform_(-1, 2.5)", "x.uniform_(-1, 2.5, generator=g)"),
    ("x.normal_()", "x.normal_(generator=g)"),
    ("x.normal_(3, 0.5)", "x.normal_(3, 0.5, generator=g)"),
    ("x.normal_(1, 0)", "x.normal_(1, 0, generator=g)"),
    ("x.exponential_()", "x.exponential_(generator=g)"),
    ("x.exponential_(2.5)", "x.exponential_(2.5, generator=g)"),
    ("x.bernoulli_()", "x.bernoulli_(generator=g)"),
    ("x.bernoulli_(0.2)", "x.bernoulli_(0.2, generator=g)"),
    ("x.bernoulli_(1)", "x.bernoulli_(1, generator=g)"),
    ("t.bernoulli(p)", "t.bernoulli(p, generator=g)"),
    ("t.rand_like(x)", "t.rand_like(x, generator=g)"),
    ("t.randn_like(x)", "t.randn_like(x, generator=g)"),
    ("t.randperm(50)", "t.randperm(50, generator=g)"),
    ("t.randperm(0)", "t.randperm(0, generator=g)"),
    ("t.randint(7, (3, 4))", "t.randint(7, (3, 4), generator=g)"),
    ("t.randint(-3, 9, (5,))", "t.randint(-3, 9, (5,), generator=g)"),
    ("t.rand(3, 4)", "t.rand(3, 4, generator=g)"),
    ("t.randn((2, 9))", "t.randn((2, 9), generator=g)"),
    ("F.dropout(x, 0.3)", "t.dropout(x, 0.3, True)"),
    ("F.dropout(x, p=0.3, training=True)", "t.dropout(x, 0.3, True)"),
    ("F.dropout(x)", "t.dropout(x, 0.5, True)"),
    ("F.dropout(x, 0.3, False)", "x"),
    ("F.dropout(x, 0.3, inplace=True)", "t.dropout_(x, 0.3, True)"),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", [(5, 7), (3,), (0,), (), (200, 150)])
@pytest.mark.parametrize(("quick", "public"), PAIRS)
def test_they_give_what_the_public_functions_give(
    quick: str, public: str, shape: Any, dtype: Any
) -> None:
    def run(text: str) -> list[Any]:
        torch.manual_seed(3)
        x = torch.full(shape, -1.0).to(dtype)
        p = torch.full(shape, 0.3).to(dtype)
        given = {"t": torch, "F": F, "x": x, "p": p, "g": torch.default_generator}
        y = eval(text, given)
        return [y.dtype, y.shape, y.stride(), y._version, y is x, y.double(), torch.rand(3)]

    for a, b in zip(run(quick), run(public), strict=True):
        assert torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


@pytest.mark.parametrize("text", ["x.uniform_()", "x.normal_(1, 2)", "x.bernoulli_(0.4)"])
def test_what_does_not_lie_in_rows(text: str) -> None:
    def run(x: Any) -> Any:
        torch.manual_seed(0)
        return eval(text, {"x": x}).clone()

    assert torch.equal(run(torch.zeros(4, 6)[:, ::2]), run(torch.zeros(4, 3)))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("x.uniform_(2, 1)", r"uniform_ expects to return a \[from, to\) range"),
        ("x.uniform_(0, 1e39)", "to is out of bounds for float"),
        ("x.normal_(0, -1)", "normal expects std >= 0.0"),
        ("x.exponential_(0)", "exponential_ expects lambda > 0.0"),
        ("x.bernoulli_(1.5)", r"bernoulli_ expects p to be in \[0, 1\]"),
        ("t.bernoulli(x + 2)", "Expected p_in >= 0 && p_in <= 1"),
        ("t.randperm(-1)", "negative dimension -1"),
        ("w.uniform_()", "a leaf Variable that requires grad is being used in an in-place"),
        ("F.dropout(x, 1.5)", "dropout probability has to be between 0 and 1"),
    ],
)
def test_errors_are_those_of_the_public_functions(text: str, error: str) -> None:
    torch.manual_seed(0)
    x, w = torch.zeros(3), torch.zeros(3, requires_grad=True)
    with pytest.raises((RuntimeError, ValueError), match=error):
        eval(text, {"t": torch, "F": F, "x": x, "w": w})
    assert x._version == w._version == 0
    assert torch.equal(torch.rand(2), torch.rand(2, generator=torch.Generator().manual_seed(0)))


def test_what_is_recorded() -> None:
    w = torch.ones(4, requires_grad=True)
    y = F.dropout(w, 0.5)
    assert y.grad_fn.name() == "MulBackward0"
    y.sum().backward()
    assert torch.equal(w.grad, y.detach())
    drawn = torch.bernoulli(w * 0.5)
    assert drawn.grad_fn.name() == "BernoulliBackward0"
    z = (w * 2).uniform_()
    assert z.grad_fn.name() == "UniformBackward0"


def test_modes_and_transforms() -> None:
    with torch.device("meta"):
        assert torch.randperm(3).device.type == torch.randint(3, (2,)).device.type == "meta"
    with pytest.raises(RuntimeError, match="randomness"):
        torch.func.vmap(lambda x: F.dropout(x, 0.5))(torch.ones(3, 4))
    different = torch.func.vmap(lambda x: torch.rand_like(x), randomness="different")
    y = different(torch.ones(3, 4))
    assert not torch.equal(y[0], y[1])
    with torch.inference_mode():
        assert F.dropout(torch.ones(3), 0.5).is_inference() and torch.randperm(3).is_inference()
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.rand(2).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_probabilities_that_lie_where_the_result_goes() -> None:
    """What is written must not be read as a probability."""
    x = torch.rand(64)
    torch.manual_seed(1)
    wanted = torch.zeros(64).bernoulli_(x.clone())
    torch.manual_seed(1)
    assert torch.equal(x.bernoulli_(x), wanted)
    a = np.random.default_rng(0).random(100).astype(np.float32)
    base = torch.from_numpy(a)
    torch.manual_seed(1)
    wanted = torch.zeros(64).bernoulli_(base[:64].clone())
    torch.manual_seed(1)
    assert torch.equal(torch.empty(64).bernoulli_(base[:64]), wanted)
