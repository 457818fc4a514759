"""`rushlight.why`: why a gradient is None, zero, NaN or too large, told by your own lines."""

from __future__ import annotations

from typing import Any, Final

from rushlight._C import DisableTorchFunction
from rushlight.core.graph import caller
from rushlight.explaining import Names
from rushlight.reasons import absent, watching, wrong
from rushlight.reasons.answer import Answer as Answer
from rushlight.reasons.facts import Facts, is_tensor

__all__ = ["Answer", "why"]
__dir__ = __all__.copy


class Why:
    """why(x, loss=None, *, names=None, show=True)

    Say why the gradient of `x` is None, zero, NaN, infinite or odd: what is the case, which lines
    of your program lead there, and what to do. Prints the answer and returns it.

    `loss` is the tensor that `backward()` is, or will be, called on; without it `why` looks for it
    in your program. What a graph does not show after the fact is read from your source; to have it
    certain, let `why` watch: `with rushlight.why.watching():` around the program. `names` are names
    for tensors: a dict, or a module. It changes no gradient and frees no graph.

    >>> x = torch.ones(2, requires_grad=True)
    >>> y = x * 2
    >>> answer = torch.why(y, show=False)
    >>> answer.kind
    'not a leaf'
    """

    def __call__(self, x: Any, loss: Any = None, *, names: Any = None, show: bool = True) -> Answer:
        if not is_tensor(x):
            raise TypeError(f"why() wants a tensor, not {type(x).__name__}")
        frame = caller()
        with DisableTorchFunction():  # what is done to find the answer is not to be watched
            facts = Facts(x, loss, Names(names, frame), frame)
            grad = facts.grad
            if grad is None and loss is not None:
                said = wrong.beforehand(facts) or absent.answer(facts)
            else:
                said = absent.answer(facts) if grad is None else wrong.answer(facts, grad)
        if show:
            print(said)
        return said

    def watching(self) -> watching.Log:
        """A block in which what is done with tensors is noted, so that `why` knows it for certain.

        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.why.watching():
        ...     loss = x.detach().sum()
        >>> torch.why(x, loss, show=False).kind
        'detach'
        """
        return watching.Log()

    def forget(self) -> None:
        """Let go of what was watched last, and of the graphs of its passes."""
        watching.last = None

    def __repr__(self) -> str:
        return "<function why>"


why: Final = Why()
