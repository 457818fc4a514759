"""`AdaptiveLogSoftmaxWithLoss`: many classes, of which few are frequent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rushlight.nn import functional as F
from rushlight.nn.modules.container import ModuleList, Sequential
from rushlight.nn.modules.linear import Linear
from rushlight.nn.modules.module import Module
from rushlight.ops.registry import functions

__all__ = ["AdaptiveLogSoftmaxWithLoss"]
__dir__ = __all__.copy


class _ASMoutput(NamedTuple):
    """The log-probability of each target, and the mean loss."""

    output: Any
    loss: Any


class AdaptiveLogSoftmaxWithLoss(Module):
    """AdaptiveLogSoftmaxWithLoss(in_features, n_classes, cutoffs, div_value=4.0, head_bias=False):
    a softmax over classes in the order of how frequent they are, in clusters. The frequent ones
    and the clusters stand in the head; each cluster has a softmax of its own, from features that
    `div_value` makes fewer.

    Gives the log-probabilities of the targets (`output`) and their mean loss (`loss`).

    >>> m = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10], div_value=2.0)
    >>> m(torch.ones(3, 8), torch.tensor([0, 6, 19])).output.shape
    torch.Size([3])
    """

    def __init__(
        self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0,
        head_bias: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        found = list(cutoffs)
        if not found:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            found != sorted(set(found)) or found[0] <= 0 or found[-1] > n_classes - 1
            or any(int(c) != c for c in found)
        ):  # fmt: skip
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing "
                "order, where each value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*found, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        where = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **where)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            inner = int(in_features // div_value ** (i + 1))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(
                    Linear(in_features, inner, bias=False, **where),
                    Linear(inner, size, bias=False, **where),
                )
            )

    def reset_parameters(self) -> None:
        """Draw new values."""
        self.head.reset_parameters()
        cluster: Any
        for cluster in self.tail:
            cluster[0].reset_parameters()
            cluster[1].reset_parameters()

    def forward(self, input_: Any, target_: Any) -> _ASMoutput:
        rank = target_.ndim
        if rank == 1:
            if input_.shape[0] != target_.shape[0]:
                raise RuntimeError(
                    "Input and target should have the same size in the batch dimension."
                )
            if input_.ndim != 2:
                raise RuntimeError(
                    f"1D target tensor expects 2D input tensors, but found inputs with size "
                    f"{input_.shape}"
                )
        elif rank == 0:
            if input_.ndim != 1:
                raise RuntimeError(
                    f"0D target tensor expects 1D input tensors, but found inputs with size "
                    f"{input_.shape}"
                )
        else:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        input = input_ if rank else input_.unsqueeze(0)
        target = target_ if rank else target_.unsqueeze(0)
        output = self._log_probability(input, target)
        loss = (-output).mean()
        return _ASMoutput(output if rank else output.squeeze(0), loss)

    def _log_probability(self, input: Any, target: Any) -> Any:
        """That of each target: of its cluster, plus that in the cluster."""
        n = target.shape[0]
        places = functions["zeros_like"](target)  # in the head
        inside = input.new_zeros(n)
        used = 0
        for i, (low, high) in enumerate(zip([0, *self.cutoffs], self.cutoffs)):
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            count = rows.numel()
            if count == 0:
                continue
            used += count
            if i == 0:
                places.index_copy_(0, rows, target[rows])
                continue
            logs = F.log_softmax(self.tail[i - 1](input.index_select(0, rows)), dim=1)
            own = logs.gather(1, (target[rows] - low).unsqueeze(1)).squeeze(1)
            places.index_fill_(0, rows, self.shortlist_size + i - 1)
            inside = inside.index_copy(0, rows, own)
        if used != n:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )
        head = F.log_softmax(self.head(input), dim=1)
        return inside + head.gather(1, places.unsqueeze(1)).squeeze()

    def _get_full_log_prob(self, input: Any, head_output: Any) -> Any:
        short = self.shortlist_size
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, :short]]
        for i, tail in enumerate(self.tail):
            logs = F.log_softmax(tail(input), dim=1)
            parts.append(logs + head[:, short + i].unsqueeze(1))
        return functions["cat"](parts, 1)

    def log_prob(self, input: Any) -> Any:
        """The log-probabilities of all classes.

        >>> m = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10], div_value=2.0)
        >>> m.log_prob(torch.ones(3, 8)).shape
        torch.Size([3, 20])
        """
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Any) -> Any:
        """The most likely class of each example: the same as the largest of `log_prob`."""
        head = self.head(input)
        output = head.argmax(1)
        far = output >= self.shortlist_size
        if not far.any():
            return output
        if far.all():
            return self._get_full_log_prob(input, head).argmax(1)
        output[far] = self._get_full_log_prob(input[far], head[far]).argmax(1)
        return output
