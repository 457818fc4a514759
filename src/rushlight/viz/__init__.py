"""Pictures of what autograd does: `rushlight.viz`.

>>> from rushlight import viz
>>> x = torch.tensor([1., 2.], requires_grad=True)
>>> y = (x * x).sum()
>>> print(viz.graph(y))
graph of y: 2 nodes, 1 leaf
>>> viz.graph(y).save("graph.html")  # doctest: +SKIP
"""

import sys as _sys
import types as _types
import typing as _typing

from rushlight.missing import face as _face

__all__ = [
    "GraphPicture", "Recording", "flame", "formula", "gradient_flow", "graph", "memory", "record",
    "training",
]  # fmt: skip

if _typing.TYPE_CHECKING:
    from rushlight.viz.formula import formula as formula
    from rushlight.viz.graph import graph as graph
    from rushlight.viz.picture import GraphPicture as GraphPicture
    from rushlight.viz.record import Recording as Recording
    from rushlight.viz.record import record as record
else:
    _later = {name: name for name in __all__} | {"GraphPicture": "picture", "Recording": "record"}
    __getattr__, __dir__ = _face("rushlight.viz", globals(), _later)

    class _Package(_types.ModuleType):
        """`viz.graph` is the function, also when the module of that name is imported."""

        def __setattr__(self, name, value):
            if isinstance(value, _types.ModuleType) and name in _later:
                value = getattr(value, name)
            super().__setattr__(name, value)

    _sys.modules[__name__].__class__ = _Package
