"""Formulas come from the ops' own rules, and read well. `test_rules` computes with them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from xml.dom.minidom import parseString

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.viz.formula import boxes_of, formula, mathml
from rushlight.viz.rules import rule_of

F = nn.functional


def matrix(rows: int = 3, columns: int = 4, seed: int = 0) -> Any:
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(rows, columns, generator=generator) + 0.25).requires_grad_()


X, B, W = matrix(), matrix(seed=1), matrix(4, 2, seed=2)
MASK = torch.tensor([[True, False, True, False]] * 3)

# an op, and what its node's formula is
FORMULAS: dict[str, tuple[Callable[[], Any], str]] = {
    "add": (lambda: X + B, "dx = g, d other = g"),
    "add row": (lambda: X + B[0], "dx = g, d other = ∑_broadcast g"),
    "add alpha": (lambda: torch.add(X, B, alpha=3), "dx = g, d other = g · 3"),
    "sub": (lambda: X - B, "dx = g, d other = −g"),
    "mul": (lambda: X * B, "dx = g · other, d other = g · x"),
    "mul 3": (lambda: X * 3, "dx = g · 3"),
    "div": (lambda: X / B, "dx = g / other, d other = (−g / other) · x / other"),
    "neg": (lambda: -X, "dx = −g"),
    "square": (lambda: X**2, "dx = g · 2 · x"),
    "cube": (lambda: X**3, "dx = g · 3 · x²"),
    "sqrt": (lambda: X.sqrt(), "dx = g / (2 · y)"),
    "exp": (lambda: X.exp(), "dx = g · y"),
    "log": (lambda: X.log(), "dx = g / x"),
    "sin": (lambda: X.sin(), "dx = g · cos(x)"),
    "cos": (lambda: X.cos(), "dx = g · (−sin(x))"),
    "tanh": (lambda: X.tanh(), "dx = g · (1 − y²)"),
    "sigmoid": (lambda: X.sigmoid(), "dx = g · y · (1 − y)"),
    "atan": (lambda: X.atan(), "dx = g / (x² + 1)"),
    "erf": (lambda: X.erf(), "dx = g · 2/√π · e^(−x²)"),
    "relu": (lambda: X.relu(), "dx = 0 if y ≤ 0 else g"),
    "leaky_relu": (lambda: F.leaky_relu(X), "dx = g if x > 0 else g · 0.01"),
    "silu": (lambda: F.silu(X), "dx = g · σ(x) · (1 + x · (1 − σ(x)))"),
    "softplus": (lambda: F.softplus(X), "dx = g if x > 20 else g · σ(x)"),
    "where": (lambda: torch.where(MASK, X, B),
              "dx = g if condition else 0, d other = 0 if condition else g"),
    "clamp": (lambda: X.clamp(0, 1), "dx = g if (x ≥ 0) ∧ (x ≤ 1) else 0"),
    "sum": (lambda: X.sum(), "dx = expand(g)"),
    "sum dim": (lambda: X.sum(0), "dx = expand(g)"),
    "mean": (lambda: X.mean(), "dx = g / 12"),
    "mean dim": (lambda: X.mean(1), "dx = g / 4"),
    "mm": (lambda: X @ W, "dx = g @ mat2ᵀ, d mat2 = xᵀ @ g"),
    "addmm": (lambda: torch.addmm(torch.ones(2, requires_grad=True), X, W),
              "dx = ∑_broadcast g, d mat1 = g @ mat2ᵀ, d mat2 = mat1ᵀ @ g"),
    "bmm": (lambda: torch.bmm(X[None], W[None]), "dx = g @ mat2ᵀ, d mat2 = xᵀ @ g"),
    "dot": (lambda: X[0] @ B[0], "dx = g · tensor, d tensor = g · x"),
    "t": (lambda: X.t(), "dx = gᵀ"),
    "view": (lambda: X.view(-1), "dx = reshape(g)"),
    "clone": (lambda: X.clone(), "dx = g"),
    "select": (lambda: X[1], "dx = g at […, 1, :], elsewhere 0"),
    "slice": (lambda: X[:, 1:3], "dx = g at […, 1:3], elsewhere 0"),
    "cat": (lambda: torch.cat([X, B]), "d x1 = g[…, 0:3, :], d x2 = g[…, 3:6, :]"),
    "softmax": (lambda: X.softmax(1), "dx = g · y − y · ∑_dim−1 g · y"),
    "log_softmax": (lambda: X.log_softmax(1), "dx = g − e^y · ∑_dim−1 g"),
    "logsumexp": (lambda: X.logsumexp(1), "dx = g · e^(x − y)"),
    "mse": (lambda: F.mse_loss(X, B.detach()), "dx = g / 12 · 2 · (x − target)"),
    "expand": (lambda: X[:1].expand(3, 4), "dx = ∑_dim0 g"),
    "lerp": (lambda: torch.lerp(X, B, 0.5), "dx = g · 0.5, d end = g · 0.5"),
    "conj": (lambda: torch.complex(X, B).conj(), "dx = conj(g)"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMULAS)
def test_formula(name: str) -> None:
    make, expected = FORMULAS[name]
    assert formula(make().grad_fn) == expected


# --- how it is written ----------------------------------------------------------------------------
@pytest.mark.parametrize("name", FORMULAS)
def test_mathml_is_well_formed(name: str) -> None:
    for box in boxes_of(rule_of(FORMULAS[name][0]().grad_fn)):
        text = mathml(box)
        parseString(text)
        assert text.startswith("<math")


def test_mathml_has_fractions_roots_powers_and_cases() -> None:
    def written(y: Any) -> str:
        return "".join(mathml(box) for box in boxes_of(rule_of(y.grad_fn)))

    assert "<mfrac>" in written(X.log())
    assert "<msup>" in written(X**3)
    assert "<mtable" in written(X.relu())
    assert "<munder>" in written(X.softmax(1))


def test_a_custom_function_shows_its_source() -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    node = Double.apply(X).grad_fn
    assert formula(node) == ""
    assert "return g * 2" in rule_of(node).source


def test_a_rule_too_long_for_a_formula_shows_its_source() -> None:
    node = torch.linalg.svd(X)[1].grad_fn
    assert boxes_of(rule_of(node)) == []
    assert re.search(r"def \w+\(", rule_of(node).source)


def test_a_rule_can_be_read_after_the_graph_was_freed() -> None:
    y = X.sin()
    y.sum().backward()
    assert formula(y.grad_fn) == "dx = g · cos(x)"
