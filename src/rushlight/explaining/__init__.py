"""The backward pass told in words: `rushlight.explain`."""

from rushlight.explaining.table import Explanation as Explanation
from rushlight.explaining.table import explain as explain

__all__ = ["Explanation", "explain"]
__dir__ = __all__.copy
