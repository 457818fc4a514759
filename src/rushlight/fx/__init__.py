"""Programs as graphs: record what a module does, read it, rewrite it, run it again.

>>> from rushlight import fx
>>> net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
>>> traced = fx.symbolic_trace(net)
>>> for node in traced.graph.nodes:
...     print(node.op, node.target)
placeholder input
call_module 0
call_module 1
output output
"""

import typing as _typing

from rushlight.fx._symbolic_trace import PH as PH
from rushlight.fx._symbolic_trace import ProxyableClassMeta as ProxyableClassMeta
from rushlight.fx._symbolic_trace import Tracer, symbolic_trace, wrap
from rushlight.fx.graph import CodeGen as CodeGen
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.interpreter import Interpreter, Transformer
from rushlight.fx.node import Node, has_side_effect, map_arg
from rushlight.fx.proxy import Proxy
from rushlight.fx.subgraph_rewriter import replace_pattern
from rushlight.missing import face as _face

__all__ = [
    "Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer",
    "has_side_effect", "map_arg", "replace_pattern", "symbolic_trace", "wrap",
]  # fmt: skip

_LATER = {"experimental": "", "passes": ""}

if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face(
        "torch.fx", globals(), _LATER, ("PH", "CodeGen", "ProxyableClassMeta")
    )
