"""Notebooks: `%load_ext rushlight` shows tensors, modules, nodes as pictures; `%%grad` all three.

    heatmap.py      a tensor as a small picture
    modules.py      a module as a table of its parameters
    report.py       what `%%grad` shows of a cell: values, gradients, the graph
    grad_magic.py   `%%grad` itself

Until it is loaded tensors look as ever: nothing here is imported before.
"""

from __future__ import annotations

from typing import Any

import rushlight as torch
from rushlight.core.graph import Node

__all__ = ["load_ipython_extension", "unload_ipython_extension"]
__dir__ = __all__.copy


def load_ipython_extension(ipython: Any) -> None:
    """What `%load_ext rushlight` calls, with IPython's shell."""
    from rushlight.notebook.grad_magic import grad
    from rushlight.notebook.heatmap import tensor_html
    from rushlight.notebook.modules import module_html
    from rushlight.notebook.report import node_html

    html = ipython.display_formatter.formatters["text/html"]
    html.for_type(torch.Tensor, tensor_html)
    html.for_type(torch.nn.Module, module_html)
    html.for_type(Node, node_html)
    ipython.register_magic_function(
        lambda line, cell: grad(ipython, line, cell), magic_kind="cell", magic_name="grad"
    )


def unload_ipython_extension(ipython: Any) -> None:
    """What `%unload_ext rushlight` calls: tensors and modules look as before."""
    html = ipython.display_formatter.formatters["text/html"]
    for kind in (torch.Tensor, torch.nn.Module, Node):
        html.pop(kind, None)
    ipython.magics_manager.magics["cell"].pop("grad", None)
