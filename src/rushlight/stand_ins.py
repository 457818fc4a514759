"""Classes of PyTorch's compiled core that programs name in annotations and ask `isinstance` for.
Nothing is an instance of them, and to make one raises.

>>> isinstance(torch.ones(1), torch.Stream)
False
"""

from __future__ import annotations

from rushlight.absent import stand_in

__all__ = ["Event", "PyTorchFileReader", "PyTorchFileWriter", "ScriptObject", "Stream"]
__dir__ = __all__.copy

ONE_QUEUE = "rushlight sends all work of a GPU to one stream, in the order of the program"
_ARCHIVES = "rushlight reads and writes archives by torch.load and torch.save alone"
Stream = stand_in("torch.Stream", ONE_QUEUE)
Event = stand_in("torch.Event", ONE_QUEUE)
PyTorchFileReader = stand_in("torch.PyTorchFileReader", _ARCHIVES)
PyTorchFileWriter = stand_in("torch.PyTorchFileWriter", _ARCHIVES)
ScriptObject = stand_in("torch.ScriptObject", "rushlight compiles nothing")
