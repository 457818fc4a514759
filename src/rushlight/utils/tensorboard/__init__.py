"""TensorBoard: logs of a training run, written by the `tensorboard` package."""

from rushlight.utils.tensorboard.writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
__dir__ = __all__.copy
