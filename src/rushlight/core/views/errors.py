"""What is said when a view may not be used or written. Interpreted: it is said once."""

from __future__ import annotations

from rushlight.core.graph import TensorBase, View, title_of


def raise_forbidden(t: TensorBase, view: View, written: bool = False) -> None:
    """A view whose history cannot be renewed was written, or used after its base was written."""
    what = "is being" if written else "its base or another view of its base has been"
    if view.how == "inference":
        made, now = "in inference mode", " in normal mode"
    else:
        made, now = "in no_grad mode", " with grad mode enabled"
    if t._node is None:
        start = f"A view was created {made}"
    else:
        start = f"Output {t._output_nr} of {title_of(t._node)} is a view"
        if view.how == "no_grad" or view.how == "inference":
            start += f" of a view which was created {made}"
        else:
            now = ""
    start = f"{start} and {what} modified inplace{now}."
    if view.how == "multi-output":
        raise RuntimeError(
            f"{start} This view is the output of a function that returns multiple views. Such "
            "functions do not allow the output views to be modified inplace. You should replace "
            "the inplace operation by an out-of-place one."
        )
    if view.how == "custom":
        raise RuntimeError(
            f"{start} This view was created inside a custom Function (or because an input was "
            "returned as-is) and the autograd logic to handle view+inplace would override the "
            "custom backward associated with the custom Function, leading to incorrect gradients. "
            "This behavior is forbidden. You can fix this by cloning the output of the custom "
            "Function."
        )
    block = "inference_mode" if view.how == "inference" else "no_grad"
    raise RuntimeError(
        f"{start} Given that this use case is ambiguous and error-prone, it is forbidden. You can "
        f"clarify your code by moving both the view and the inplace either both inside the {block} "
        "block (if you don't want the inplace to be tracked) or both outside (if you want the "
        "inplace to be tracked)."
    )
