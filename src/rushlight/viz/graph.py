"""`viz.graph`: the backward graph of tensors as a picture."""

from __future__ import annotations

import sys
from typing import Any

from rushlight.viz.folding import fold
from rushlight.viz.naming import Names
from rushlight.viz.picture import GraphPicture
from rushlight.viz.reading import read, roots_of


def graph(
    ys: Any, params: Any = None, *, backward: Any = False, recorded: Any = None,
    constants: bool = True,
) -> GraphPicture:  # fmt: skip
    """A picture of how `ys` was computed: one tensor, or several. Nodes will do, too.

    Leaves are called as in `params`: a module, whose `named_parameters` count, a dict of tensors,
    or pairs of a name and a tensor. Else they are called as your variables are. Modules, loops and
    layers of the same kind are folded where the picture would become crowded.

    `backward=True` runs a backward pass for the picture, from ones or from the gradients given in
    its place; no `.grad` changes and the graph stays as it is, but your hooks are called. What
    flowed through each edge is then on the page. `recorded` takes a pass that you ran yourself,
    inside `viz.record()`. `constants=False` leaves out what wants no gradient.

    >>> w = torch.tensor([2.], requires_grad=True)
    >>> loss = (w * 3 - 1).square().sum()
    >>> picture = torch.viz.graph(loss)
    >>> print(picture)
    graph of loss: 4 nodes, 1 leaf
    >>> [leaf.title for leaf in picture.model.leaves]
    ['w']
    """
    names = Names()
    if params is not None:
        names.add_params(params)
    names.add_frames(sys._getframe(1))
    roots = roots_of(ys)
    if backward is not False and backward is not None:
        from rushlight.viz.record import record_pass

        recorded = record_pass(roots, None if backward is True else backward)
    spans = None if recorded is None else recorded._spans(names)
    model, shapes = read(roots, names, constants, spans)
    return GraphPicture(model, fold(model), shapes, recorded=recorded)
