"""Anomaly mode: stop the backward pass at the first NaN, and say which forward line it is from.

Nodes know their line always (`node.where`), so the mode costs nothing in the forward pass, and a
graph that was built before the mode was switched on is explained as well as any other.
"""

from __future__ import annotations

import warnings
from typing import Any

from rushlight.arrays.batched import bottom
from rushlight.core.call_site import Where
from rushlight.core.engine.observers import PassObserver, observe, stop_observing
from rushlight.core.grad_mode import Mode, ModeBlock, Undo
from rushlight.core.graph import Node, TensorBase, caller, hooks_of, next_number
from rushlight.errors import sentence

__all__ = ["detect_anomaly", "set_detect_anomaly"]
__dir__ = __all__.copy


class Check(PassObserver):
    """What the engine tells of each node while the mode is on."""

    def __init__(self, check_nan: bool) -> None:
        self.check_nan = check_nan
        self.mark = next_number()

    def after_node(self, node: Any, outs: Any) -> None:
        """After a node's rule: no NaN may leave it; what it recorded remembers it as parent."""
        mark, self.mark = self.mark, next_number()
        for i, out in enumerate(outs):
            if out is None or node._next_edges[i] is None:
                continue
            recorded = isinstance(out, TensorBase)
            if recorded and out._node is not None:
                note_parent(out._node, node, mark)
            x = out._array if recorded else out
            if self.check_nan and has_nan(x):
                self.failed(node)
                raise RuntimeError(
                    sentence(
                        f"Function '{node.name()}' returned nan values in its {i}th output.",
                        f"{type(node).__name__} was made at "
                        f"{Where(node._code, node._code_offset)}\n"
                        f"its output {i} has the shape {list(x.shape)}{first_nan(x)}",
                    )
                )

    def failed(self, node: Any) -> None:
        """PyTorch's warnings about a node whose rule raised: its forward line, then, if it was
        itself recorded by a backward pass, the lines that led to it."""
        if node._code is None:
            warn(
                f"Error detected in {node.name()}. No forward pass information available. Enable "
                "detect anomaly during forward pass for more information."
            )
        else:
            warn(
                f"Error detected in {node.name()}. Traceback of forward call that caused the "
                f"error:\n{as_traceback(node)}"
            )
        parent = parent_of(node)
        while parent is not None:
            warn(
                f"\n\nPrevious calculation was induced by {parent.name()}. Traceback of forward "
                f"call that induced the previous calculation:\n{as_traceback(parent)}"
            )
            parent = parent_of(parent)


def has_nan(x: Any) -> bool:
    """Whether a raw gradient has a NaN, in any member if it is a batch."""
    x = bottom(x)
    return bool((x != x).any())


def note_parent(node: Node, parent: Any, mark: int) -> None:
    """Note `parent` in the nodes its rule has just recorded: `node`, and those before it."""
    stack: list[Any] = [node]
    while stack:
        n = stack.pop()
        if not isinstance(n, Node) or n._seq_nr <= mark or parent_of(n) is not None:
            continue
        hooks = hooks_of(n)
        if hooks.metadata is None:
            hooks.metadata = {}
        hooks.metadata["parent_"] = parent
        stack.extend(n._next_edges)


def parent_of(node: Any) -> Any:
    """The node whose backward recorded this one, if that was seen."""
    hooks = node._hooks
    return None if hooks is None or hooks.metadata is None else hooks.metadata.get("parent_")


def as_traceback(node: Any) -> str:
    """A node's line in the form of Python's tracebacks."""
    where = Where(node._code, node._code_offset)
    text = where.source
    line = f'  File "{where.file}", line {where.line}, in {where.function}\n'
    return line + (f"    {text}\n" if text else "")


def first_nan(x: Any) -> str:
    """Where the first NaN of an array stands, for the error's text."""
    x = bottom(x)
    place = [int(i[0]) for i in (x != x).nonzero()] if x.ndim else []
    return f"; the first nan stands at {place}" if place else ""


def warn(text: str) -> None:
    """A UserWarning on the user's line that called backward, however deep that lies."""
    frame = caller()
    if frame is None:
        warnings.warn(text, UserWarning, stacklevel=2)
        return
    names = frame.f_globals
    warnings.warn_explicit(
        text, UserWarning, frame.f_code.co_filename, frame.f_lineno,
        module=names.get("__name__", "<unknown>"),
        registry=names.setdefault("__warningregistry__", {}),
    )  # fmt: skip


class Setting:
    """The mode as the user last set it, for all threads."""

    enabled = False
    check_nan = True
    check: Check | None = None  # while it is on


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Switch anomaly mode on or off; see `set_detect_anomaly`."""
    Setting.enabled, Setting.check_nan = enabled, check_nan
    Setting.check = Check(check_nan) if enabled else None
    if enabled:
        observe(check_of_pass)
    else:
        stop_observing(check_of_pass)


def check_of_pass() -> Check | None:
    """Who observes a backward pass that begins."""
    return Setting.check


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on."""
    return Setting.enabled


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode, if it is on, looks for NaN."""
    return Setting.check_nan


class detect_anomaly(ModeBlock):
    """Context manager: an error in backward warns with the forward line that it belongs to, and,
    with `check_nan`, a NaN in any gradient is an error.

    >>> import warnings
    >>> x = torch.tensor([-1., 4.], requires_grad=True)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # the mode says that it is slow
    ...     with torch.autograd.detect_anomaly():
    ...         x.sqrt().sum().backward()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output.
    ...
    """

    def __init__(self, check_nan: bool = True) -> None:
        super().__init__(None, None)
        self.prev = is_anomaly_enabled()
        self.check_nan = check_nan
        self.prev_check_nan = is_anomaly_check_nan_enabled()
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should "
            "only be enabled for debugging.",
            stacklevel=2,
        )

    def fill(self, mode: Mode) -> Any:
        mode.closes = Undo(set_anomaly_enabled, self.prev, self.prev_check_nan)
        set_anomaly_enabled(True, self.check_nan)


class set_detect_anomaly(ModeBlock):
    """Set anomaly mode on or off: at once as a function, for a block as a context manager.

    >>> with torch.autograd.set_detect_anomaly(True):
    ...     torch.autograd.anomaly_mode.is_anomaly_enabled()
    True
    >>> torch.autograd.anomaly_mode.is_anomaly_enabled()
    False
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__(None, None)
        self.prev = is_anomaly_enabled()
        self.prev_check_nan = is_anomaly_check_nan_enabled()
        set_anomaly_enabled(mode, check_nan)

    def fill(self, mode: Mode) -> Any:
        mode.closes = Undo(set_anomaly_enabled, self.prev, self.prev_check_nan)
