"""What `%%grad` shows of a cell: each tensor with its value and its gradient, then the graph."""

from __future__ import annotations

import html
from typing import Any

import rushlight as torch
from rushlight.notebook.heatmap import tensor_html


class GradReport:
    """The tensors that a loss was computed from, by name, with their gradients.

    Nothing is changed: gradients are computed aside, no `.grad` is written and the graph stays as
    it is. If the graph was freed, by a `backward()` in the cell, the leaves' `.grad` are shown.

    >>> w = torch.tensor([1., 2.], requires_grad=True)
    >>> h = w * 3
    >>> print(GradReport("loss", h.sum(), {"w": w, "h": h}))
    loss = tensor(9., grad_fn=<SumBackward0>)
    w = tensor([1., 2.], requires_grad=True)
        gradient: tensor([3., 3.])
    h = tensor([3., 6.], grad_fn=<MulBackward0>)
        gradient: tensor([1., 1.])
    >>> w.grad
    """

    def __init__(self, name: str, loss: Any, tensors: dict[str, Any]) -> None:
        self.name = name
        self.loss = loss
        named = {n: t for n, t in tensors.items() if t is not loss}
        self.tensors = dict(sorted(named.items(), key=lambda item: age(item[1])))
        self.gradients, self.trouble = gradients_of(loss, self.tensors)

    def __repr__(self) -> str:
        lines = [f"{self.name} = {self.loss!s}"]
        for name, tensor in self.tensors.items():
            lines += [f"{name} = {tensor!s}", f"    gradient: {self.words(name)}"]
        return "\n".join([*lines, self.trouble] if self.trouble else lines)

    def words(self, name: str) -> str:
        """The gradient of one tensor as text, or why there is none."""
        gradient = self.gradients.get(name)
        if gradient is not None:
            return str(gradient)
        if not self.tensors[name].requires_grad:
            return "none: it does not require one"
        return "none: the loss does not depend on it" if not self.trouble else "unknown"

    def _repr_html_(self) -> str:
        rows = [self.row(self.name, self.loss, "")]
        for name, tensor in self.tensors.items():
            gradient = self.gradients.get(name)
            told = self.words(name) if gradient is None else tensor_html(gradient)
            rows.append(self.row(name, tensor, told))
        head = "<tr><th></th><th>value</th><th>gradient</th></tr>"
        note = f"<p>{html.escape(self.trouble)}</p>" if self.trouble else ""
        return f"<table>{head}{''.join(rows)}</table>{note}{self.drawn()}"

    def row(self, name: str, tensor: Any, gradient: str) -> str:
        left = 'style="text-align:left"'
        return (
            f"<tr><td><b>{html.escape(name)}</b></td><td {left}>{tensor_html(tensor)}</td>"
            f"<td {left}>{gradient}</td></tr>"
        )

    def drawn(self) -> str:
        """The graph, with the names of the cell."""
        named = {**self.tensors, self.name: self.loss}
        leaves = {name: t for name, t in named.items() if t.is_leaf and t.requires_grad}
        return graph_html(self.loss, leaves)


def node_html(node: Any) -> str:
    """A node (`loss.grad_fn`) as the graph that it is the end of."""
    return graph_html(node, None)


def graph_html(root: Any, leaves: dict[str, Any] | None) -> str:
    """The graph of a tensor or a node; or what to install to see it."""
    try:
        return torch.viz.graph(root, params=leaves)._repr_html_()
    except ImportError as error:
        return f"<p>{html.escape(str(error))}</p>"


def age(t: Any) -> int:
    """Leaves come first, then results in the order in which they were computed."""
    return -1 if t.grad_fn is None else int(t.grad_fn._sequence_nr())


def gradients_of(loss: Any, tensors: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The gradients of a loss by tensors, those that there are, and what is to be said about it."""
    wanted = {name: t for name, t in tensors.items() if t.requires_grad}
    if not wanted:
        return {}, ""
    start = None if loss.numel() == 1 else torch.ones_like(loss)
    try:
        found = torch.autograd.grad(
            loss, list(wanted.values()), start, retain_graph=True, allow_unused=True
        )
    except RuntimeError as error:
        if "second time" not in str(error):
            raise
        stored = {name: t.grad for name, t in wanted.items() if t.is_leaf and t.grad is not None}
        return stored, "The cell has called backward(): shown is what it left in .grad."
    return {n: g for n, g in zip(wanted, found, strict=True) if g is not None}, ""
