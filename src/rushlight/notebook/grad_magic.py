"""`%%grad`: run a cell, then show the values, the gradients and the graph of what it computed."""

from __future__ import annotations

import ast
from typing import Any

import rushlight as torch
from rushlight.notebook.report import GradReport


def grad(shell: Any, line: str, cell: str) -> GradReport | None:
    """Run a cell and show how its result depends on its tensors.

    `%%grad loss` names the result; without a name it is what the cell's last line gives, or else
    the last tensor that the cell assigned and that has a history. No `.grad` is written.
    """
    ran = shell.run_cell(cell)
    if not ran.success:  # the shell has shown the error
        return None
    names = names_in(cell)
    tensors = {n: t for n in names if isinstance(t := shell.user_ns.get(n), torch.Tensor)}
    name, loss = result_of(line.strip(), ran.result, tensors, shell.user_ns)
    return GradReport(name, loss, tensors)


def names_in(cell: str) -> list[str]:
    """The names that a cell uses or assigns, each once, in their order.

    >>> names_in("y = x * w\\nloss = y.sum()")
    ['y', 'x', 'w', 'loss']
    """
    lines = [line for line in cell.splitlines() if not line.lstrip().startswith(("%", "!"))]
    found = [node for node in ast.walk(ast.parse("\n".join(lines))) if isinstance(node, ast.Name)]
    found.sort(key=lambda node: (node.lineno, node.col_offset))
    return list(dict.fromkeys(node.id for node in found))


def result_of(
    asked: str, last: Any, tensors: dict[str, Any], names: dict[str, Any]
) -> tuple[str, Any]:
    """The tensor whose gradients are shown, and what it is called."""
    if asked:
        loss = names.get(asked)
        if not isinstance(loss, torch.Tensor) or not loss.requires_grad:
            raise ValueError(f"%%grad {asked}: {asked} is no tensor that requires a gradient")
        return asked, loss
    if isinstance(last, torch.Tensor) and last.requires_grad:
        known = [name for name, t in tensors.items() if t is last]
        return (known[0] if known else "result"), last
    made = [(name, t) for name, t in tensors.items() if t.grad_fn is not None]
    if not made:
        raise ValueError(
            "%%grad: nothing in this cell has a gradient. Does a tensor say requires_grad=True?"
        )
    return max(made, key=lambda pair: pair[1].grad_fn._sequence_nr())
