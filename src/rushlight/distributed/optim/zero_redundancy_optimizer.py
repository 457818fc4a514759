"""`ZeroRedundancyOptimizer`: every process steps with a part of the parameters, and keeps the
optimiser's state of those alone.

    rank 0   step(w1, w4) -> broadcast w1, w4      keeps exp_avg, ... of w1 and w4
    rank 1   step(w2, w3) -> broadcast w2, w3      keeps exp_avg, ... of w2 and w3
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.graph import TensorBase
from rushlight.distributed.algorithms.join import Join, Joinable, JoinHook
from rushlight.ops.registry import functions
from rushlight.optim.optimizer import Optimizer
from rushlight.tensor_types import typename

__all__ = ["ZeroRedundancyOptimizer"]
__dir__ = __all__.copy

_logger = logging.getLogger(__name__)


def _to(value: Any, device: Any) -> Any:
    """The tensors of nested containers, copied to a device."""
    if isinstance(value, TensorBase):
        tensor: Any = value
        return tensor.detach().to(device).clone()
    if isinstance(value, dict):
        return {key: _to(inner, device) for key, inner in value.items()}
    if isinstance(value, list):
        return [_to(inner, device) for inner in value]
    return value


class _ZeROJoinHook(JoinHook):
    """A process that has run out of inputs goes on stepping: the others wait for its parameters."""

    def __init__(self, zero: ZeroRedundancyOptimizer) -> None:
        self.zero = zero

    def main_hook(self) -> None:
        self.zero._step_and_share(None)  # not `step`: that says that there are inputs left


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """ZeroRedundancyOptimizer(params, optimizer_class, process_group=None,
    parameters_as_bucket_view=False, overlap_with_ddp=False, **defaults)

    An optimiser whose state is shared out over the processes. Every process has all parameters and
    their gradients (averaged over the processes, as DistributedDataParallel does it); each steps
    with the parameters that are its own, and sends these to the rest.

    Args:
        params: tensors to train, or dictionaries of them with options of their own.
        optimizer_class: the class of the optimiser of each process.
        process_group: the processes; all if it is not given.
        parameters_as_bucket_view: whether the parameters of a process become views of one memory,
            which is sent at once.
        overlap_with_ddp: not possible here.
        defaults: options of `optimizer_class`.
    """

    def __init__(
        self, params: Any, optimizer_class: type[Optimizer], process_group: Any = None,
        parameters_as_bucket_view: bool = False, overlap_with_ddp: bool = False, **defaults: Any,
    ) -> None:  # fmt: skip
        from rushlight import distributed as dist

        self._dist: Any = dist
        if overlap_with_ddp:
            raise ValueError(
                "ZeroRedundancyOptimizer(overlap_with_ddp=True) needs PyTorch's functional "
                "optimizers, which rushlight has not. Leave it out: the result is the same."
            )
        params = _checked(params)
        self.initialized = False
        self._all_state_dicts: list[dict[str, Any]] = []
        Optimizer.__init__(self, params, defaults)
        Joinable.__init__(self)
        self.process_group = dist.group.WORLD if process_group is None else process_group
        self.world_size = int(self._dist.get_world_size(self.process_group))
        self.rank = int(self._dist.get_rank(self.process_group))
        self.global_rank = int(self._dist.get_global_rank(self.process_group, self.rank))
        self.parameters_as_bucket_view = parameters_as_bucket_view
        self._overlap_with_ddp = False
        self._optim_defaults = defaults
        self._buckets: list[list[Any]] = []
        self._partition: list[list[dict[str, Any]]] = []
        self._trainable = self._is_trainable()
        self.optim = optimizer_class(self._partition_parameters()[self.rank], **defaults)
        # options that the class gave its groups are seen from outside, too
        self._sync_param_groups(self.optim.param_groups, self.param_groups)
        self._build_param_buckets()
        self.initialized = True

    # --- who has what ---------------------------------------------------------------------------
    @property
    def _all_params(self) -> list[Any]:
        return [param for group in self.param_groups for param in group["params"]]

    def _partition_parameters(self) -> list[list[dict[str, Any]]]:
        """The groups of parameters of each rank. The largest parameter that is left goes to the
        rank that has least so far; groups that come later do not move those before them."""
        if self._partition:
            return self._partition
        sizes = [0] * self.world_size
        self._partition = [[] for _ in range(self.world_size)]
        for group in self.param_groups:
            shares: list[list[Any]] = [[] for _ in range(self.world_size)]
            for param in sorted(group["params"], key=lambda p: int(p.numel()), reverse=True):
                least = sizes.index(min(sizes))
                shares[least].append(param)
                sizes[least] += int(param.numel())
            for rank, share in enumerate(shares):
                self._partition[rank].append({**group, "params": share})
        return self._partition

    def _rank_of(self) -> dict[int, int]:
        """By the id of a parameter: whose it is."""
        return {
            id(param): rank
            for rank, groups in enumerate(self._partition_parameters())
            for group in groups
            for param in group["params"]
        }

    def _is_trainable(self) -> list[bool]:
        return [bool(param.requires_grad) for param in self._all_params]

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own, on all ranks."""
        super().add_param_group(param_group)
        if not self.initialized:
            return
        self._partition = []
        self._trainable = self._is_trainable()
        self.optim.add_param_group(self._partition_parameters()[self.rank][-1])
        self._build_param_buckets()

    def _build_param_buckets(self) -> None:
        """Let the parameters of each rank be views of one memory for each device and dtype."""
        if not self.parameters_as_bucket_view:
            return
        self._buckets = []
        for groups in self._partition_parameters():
            kinds: dict[Any, list[Any]] = {}
            for param in (p for group in groups for p in group["params"] if p.requires_grad):
                kinds.setdefault((str(param.device), param.dtype), []).append(param)
            buckets = []
            for params in kinds.values():
                bucket = functions["cat"]([p.detach().reshape(-1) for p in params])
                at = 0
                for param in params:
                    param.data = bucket[at : at + param.numel()].view(param.shape)
                    at += param.numel()
                buckets.append(bucket)
            self._buckets.append(buckets)

    # --- steps ----------------------------------------------------------------------------------
    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Step with this rank's parameters, and send and receive: then all ranks have all."""
        Join.notify_join_context(self)
        return self._step_and_share(closure, **kwargs)

    def _step_and_share(self, closure: Callable[[], Any] | None, **kwargs: Any) -> Any:
        trainable = self._is_trainable()
        if trainable != self._trainable:
            _logger.warning(
                "ZeroRedundancyOptimizer detected that the trainable parameters changed; "
                "rebuilding the parameter buckets if enabled"
            )
            self._build_param_buckets()
            self._trainable = trainable
        # a scheduler changes the options that it sees
        self._sync_param_groups(self.param_groups, self.optim.param_groups)
        loss = self.optim.step(**kwargs) if closure is None else self.optim.step(closure, **kwargs)
        self._sync_param_groups(self.optim.param_groups, self.param_groups)
        self._sync_params()
        return loss

    def _sync_params(self) -> None:
        """Send each rank's parameters to all others."""
        waiting = []
        with no_grad():
            for rank, groups in enumerate(self._partition_parameters()):
                source = self._dist.get_global_rank(self.process_group, rank)
                if self.parameters_as_bucket_view:
                    sent = self._buckets[rank]
                else:
                    sent = [p.data for group in groups for p in group["params"]]
                for tensor in sent:
                    waiting.append(
                        self._dist.broadcast(
                            tensor, src=source, group=self.process_group, async_op=True
                        )
                    )
            for work in waiting:
                work.wait()

    # --- uneven inputs --------------------------------------------------------------------------
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What a process does in `Join` when it has no inputs left: its part of each step."""
        return _ZeROJoinHook(self)

    @property
    def join_device(self) -> Any:
        """Where the parameters are."""
        return self._all_params[0].device

    @property
    def join_process_group(self) -> Any:
        """The processes."""
        return self.process_group

    # --- saving and loading ---------------------------------------------------------------------
    def consolidate_state_dict(self, to: int = 0) -> None:
        """Bring the states of all ranks to the rank `to`, whose `state_dict` then has all of it.
        All ranks must call it."""
        self._sync_param_groups(self.param_groups, self.optim.param_groups)
        mine = _to(self.optim.state_dict(), "cpu")
        there = self.rank == to
        found: list[Any] | None = [None] * self.world_size if there else None
        self._dist.gather_object(
            mine, found, dst=self._dist.get_global_rank(self.process_group, to),
            group=self.process_group,
        )  # fmt: skip
        self._all_state_dicts = found or []

    def state_dict(self) -> dict[str, Any]:
        """The state of all parameters, as it was at the last `consolidate_state_dict`; as an
        optimiser without shares would give it. Only on the rank it was brought to."""
        if not self._all_state_dicts:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call "
                f"`consolidate_state_dict(to={self.rank})` on all ranks beforehand if you meant to "
                "save the global state."
            )
        whole = super().state_dict()
        numbers = {id(param): at for at, param in enumerate(self._all_params)}
        state = whole["state"]
        for local, groups in zip(self._all_state_dicts, self._partition_parameters()):
            for local_group, group in zip(local["param_groups"], groups):
                for number, param in zip(local_group["params"], group["params"]):
                    if number in local["state"]:
                        state[numbers[id(param)]] = local["state"][number]
        whole["state"] = dict(sorted(state.items()))
        return whole

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what concerns this rank of a state of all parameters, from `state_dict` here or
        of an optimiser without shares. All ranks must call it, each with all of it."""
        owners, params = self._rank_of(), self._all_params
        kept = {}
        for number, value in state_dict["state"].items():
            param = params[number]
            if owners[id(param)] == self.rank:
                kept[number] = value
        super().load_state_dict({**state_dict, "state": kept})
        for param, value in self.state.items():
            self.optim.state[param] = value
        self.state.clear()  # it is kept by the optimiser of this rank
        self._sync_param_groups(state_dict["param_groups"], self.param_groups)
        self._sync_param_groups(self.param_groups, self.optim.param_groups)

    @staticmethod
    def _sync_param_groups(source: list[dict[str, Any]], target: list[dict[str, Any]]) -> None:
        """Take over the options of groups, without their parameters."""
        for one, other in zip(source, target, strict=True):
            other.update({key: value for key, value in one.items() if key != "params"})


def _checked(params: Any) -> list[Any]:
    """Parameters as a list, dense and of one type."""
    if isinstance(params, TensorBase):
        raise TypeError(
            f"`params` argument should be an iterable of Tensors, but got {typename(params)}"
        )
    try:
        found = list(params)
    except TypeError:
        raise TypeError(
            f"`params` argument should be an iterable of Tensors, but got {typename(params)}"
        ) from None
    if not found:
        raise ValueError("ZeroRedundancyOptimizer got an empty parameter list")
    tensors: list[Any] = []
    for item in found:
        if isinstance(item, TensorBase):
            tensors.append(item)
        elif isinstance(item, dict):
            inner = item["params"]
            item["params"] = [inner] if isinstance(inner, TensorBase) else list(inner)
            tensors += item["params"]
        else:
            raise TypeError(
                "`params` argument should be an iterable of Tensors or dicts, but got an iterable "
                f"containing {typename(item)}"
            )
    if any(tensor.is_sparse for tensor in tensors):
        raise ValueError(
            "ZeroRedundancyOptimizer only supports using the same dense type for all parameters "
            "but got sparse ones"
        )
    dtypes = {str(tensor.dtype) for tensor in tensors}
    if len(dtypes) > 1:
        raise ValueError(
            "ZeroRedundancyOptimizer only supports using the same dense type for all parameters "
            f"but got {' and '.join(sorted(dtypes))}"
        )
    return found
