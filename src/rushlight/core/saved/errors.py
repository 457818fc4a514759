"""What is said when a saved value cannot be read any more. Interpreted: it is said once."""

from __future__ import annotations

from typing import Any

from rushlight.core.call_site import Where
from rushlight.core.graph import Node, Storage, factory, title_of, wrap
from rushlight.errors import sentence


def describe_freed(node: Node) -> str:
    """Whose saved values are gone, and which call freed them."""
    return sentence(
        "Trying to backward through the graph a second time (or directly access saved tensors "
        "after they have already been freed). Saved intermediate values of the graph are freed "
        "when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to "
        "backward through the graph a second time or if you need to access saved tensors after "
        "calling backward.",
        f"{type(node).__name__} was made at {Where(node._code, node._code_offset)}\n"
        f"its values were freed by {node._freed_at}",
        "Pass `retain_graph=True` to that first call, or run the forward line again. Between the "
        "steps of a loop, cut the history: `h = h.detach()`.",
    )


def describe_overwritten(
    array: Any, maker: Node | None, nr: int, storage: Storage, expected: int, owner: Node | None
) -> str:
    """Which saved value was overwritten, where it was saved for `owner` (None: a checkpoint), and
    where it was written. It was output `nr` of `maker`."""
    which = "" if maker is None else f", which is output {nr} of {title_of(maker)},"
    cure = "Write the second line out of place, or give the checkpoint a copy: `x.clone()`."
    saved = "an argument of a checkpoint"
    if owner is not None:
        saved = f"saved for {type(owner).__name__} at {Where(owner._code, owner._code_offset)}"
        cure = (
            "Write the second line out of place, or save a copy: "
            "`ctx.save_for_backward(x.clone())`."
        )
        if owner._op is not None:
            cure = (
                "Write the second line out of place (`x = x + 1`, not `x += 1`), or give the first "
                "one a copy: `x.clone()`. If it updates a parameter, call backward() before."
            )
    return sentence(
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: [{factory.cls.type(wrap(array))} {list(array.shape)}]{which} is at version "
        f"{storage.version}; expected version {expected} instead.",
        f"{saved}\noverwritten at {Where(storage.code, storage.offset)}",
        cure,
    )
