"""Which line of the user's program made a node, raised a version or called backward.

Note [Where]
    Reading the caller's code object and instruction offset costs some tens of nanoseconds, and
    keeps no frame alive. File, line and source text are worked out only when someone asks.
"""

from __future__ import annotations

import linecache
import os
from types import CodeType
from typing import Any


class Where:
    """A place in the user's program: the code object and the offset of the instruction."""

    def __init__(self, code: CodeType | None, offset: int) -> None:
        self.code = code
        self.offset = offset

    @property
    def file(self) -> str:
        """Path of the source file, as Python knows it ('' if unknown)."""
        return "" if self.code is None else self.code.co_filename

    @property
    def line(self) -> int:
        """Line number in that file (0 if unknown)."""
        return 0 if self.code is None else line_of(self.code, self.offset)

    @property
    def function(self) -> str:
        """Name of the function the line is in ('<module>' at the top level)."""
        return "" if self.code is None else self.code.co_qualname

    @property
    def source(self) -> str:
        """The line's text, stripped ('' where the source cannot be read)."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        if self.code is None:
            return "an unknown line"
        name = self.file if self.file.startswith("<") else os.path.basename(self.file)
        text = self.source
        return f"{name}:{self.line}" + (f"     {text}" if text else "")

    def __repr__(self) -> str:
        return f"<{self}>"


class WhereMade:
    """`node.where`, the line of your program that made a node. It has no setter, so that a user's
    attribute of that name on a custom function's context takes its place."""

    def __get__(self, node: Any, owner: Any) -> Any:
        return self if node is None else Where(node._code, node._code_offset)


def line_of(code: CodeType, offset: int) -> int:
    """The source line of the instruction at `offset` of `code`."""
    for start, end, line in code.co_lines():
        if start <= offset < end and line is not None:
            return line
    return code.co_firstlineno
