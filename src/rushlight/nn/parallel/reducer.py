"""The reducer: averages gradients over processes while the backward pass is still running.

As soon as a gradient is final, it is copied into its bucket. A bucket that is full is sent at once,
and the backward pass goes on with earlier layers while it travels. When the pass is over, the
reducer waits for what is still under way and puts the averages where the gradients were.

    backward:   layer 3 ─── layer 2 ─── layer 1 ─── wait, put back
    messages:        └ bucket 0 ──────┐    └ bucket 1 ──────┐

Note [Order of buckets]
A message is matched with those of other processes by its place in line: every process must send the
same buckets in the same order. So a full bucket waits until all before it were sent, even though
it is full, and the order of buckets is that of process 0.

Note [Unused parameters]
A parameter that the loss does not depend on never gets a gradient, and its bucket would never fill.
With `find_unused_parameters` the graph is walked from the outputs when the forward pass is over;
parameters that are not met count as ready, with a gradient of 0. Others may be used elsewhere: so
processes also add up who used what. A parameter that nobody used keeps its gradient as it was.
"""

from __future__ import annotations

import sys
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from rushlight.autograd.grad_mode import no_grad
from rushlight.autograd.variable import Variable
from rushlight.dtypes import int32, int64
from rushlight.nn.parallel.buckets import Bucket, GradBucket, assign_buckets
from rushlight.ops.registry import functions

__all__ = ["Reducer"]
__dir__ = __all__.copy

_UNFINISHED = (
    "Expected to have finished reduction in the prior iteration before starting a new one. This "
    "error indicates that your module has parameters that were not used in producing loss. You can "
    "enable unused parameter detection by passing the keyword argument "
    "`find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, and by making "
    "sure all `forward` function outputs participate in calculating loss."
)
_TWICE = (
    "Expected to mark a variable ready only once. Either a parameter was used outside of "
    "`forward`, or it got its gradient in several backward passes, one inside the other (as with "
    "checkpoints that share it and have use_reentrant=True). Where the graph is the same in every "
    "iteration, static_graph=True allows this."
)
_CHANGED = (
    "Your training graph has changed in this iteration, e.g., one parameter is used in first "
    "iteration, but then got unused in the second iteration. this is not compatible with "
    "static_graph set to True."
)
_ALL_USED = (
    "find_unused_parameters=True was specified in DDP constructor, but did not find any unused "
    "parameters in the forward pass. This flag results in an extra traversal of the autograd graph "
    "every iteration, which can adversely affect performance. If your model indeed never has any "
    "unused parameters in the forward pass, consider turning this flag off. Note that this warning "
    "may be a false positive if your model has flow control causing later iterations to have "
    "unused parameters."
)


def leaves_of(outputs: Sequence[Any]) -> set[int]:
    """The ids of the leaves that some tensors were computed from."""
    nodes = [t.grad_fn for t in outputs if t.grad_fn is not None]
    seen: set[Any] = set(nodes)
    found: set[int] = set()
    while nodes:
        node = nodes.pop()
        leaf = getattr(node, "variable", None)
        if leaf is not None:
            found.add(id(leaf))
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                nodes.append(following)
    return found


class Reducer:
    """Reducer(parameters, names, group, ...): averages the gradients of parameters over a group.

    Args:
        parameters: those that want gradients, in the order of the module.
        names: how errors call them.
        group: the processes.
        limits: bytes of the first bucket, of the second and so on; the last counts for the rest.
        find_unused: see Note [Unused parameters].
        as_view: let gradients be views of the buckets, which saves their memory and the copying.
        skip_unused: do not tell others which parameters were used: what this process did not use
            gets the sum of what others did.
    """

    def __init__(
        self, parameters: Sequence[Any], names: Sequence[str], group: Any, limits: Sequence[int],
        find_unused: bool = False, as_view: bool = False, skip_unused: bool = False,
    ) -> None:  # fmt: skip
        from rushlight import distributed as dist

        self.parameters = list(parameters)
        self.names = list(names)
        self.group = group
        self.world_size = dist.get_world_size(group)
        self.limits = list(limits)
        self.find_unused = find_unused
        self.as_view = as_view
        self.skip_unused = skip_unused
        self.static_graph = False
        self.hook: tuple[Any, Callable[..., Any]] | None = None
        self.post_backward_futures: list[Any] = []

        self.expects_gradients = False  # between a forward pass and the end of its backward pass
        self.started = False  # some gradient is in a bucket, and the average is not complete
        self.rebuilt = False
        self.ready_order: list[int] = []  # of the first backward pass, until buckets are rebuilt
        self.ready: set[int] = set()
        self.unused: list[int] = []
        self.marked_unused = False
        self.warned = False
        self.used = [False] * len(self.parameters)  # since the last average
        self.used_work: Any = None
        self.uses: list[int] | None = None  # static graph: how often each gradient comes in a pass
        self.first_uses = [0] * len(self.parameters)
        self.uses_left: list[int] = []
        self.used_somewhere: list[bool] | None = None
        self.divisor = self.world_size  # `join` may count only those that still have inputs

        count = len(self.parameters)
        # The order of parameters says little of that of gradients: when buckets will be rebuilt in
        # the order of the first pass, that pass has one bucket of each kind.
        whole = [sys.maxsize] if not find_unused else self.limits
        buckets = assign_buckets(self.parameters, range(count), whole)
        self.make_buckets(sorted(buckets, key=min, reverse=True))
        mine = weakref.ref(self)
        handles = [
            p.register_post_accumulate_grad_hook(_hook(mine, i))
            for i, p in enumerate(self.parameters)
        ]
        self._remove_hooks = weakref.finalize(self, _remove, handles)

    # --- buckets ----------------------------------------------------------------------------------
    def make_buckets(self, assignment: Sequence[Sequence[int]]) -> None:
        """Make empty buckets for these groups of parameters, to be sent in this order."""
        self.buckets = [Bucket(g, [self.parameters[i] for i in g]) for g in assignment]
        self.place = {
            index: (bucket, at)
            for bucket in self.buckets
            for at, index in enumerate(bucket.indices)
        }
        self.next_bucket = 0

    def rebuild_buckets(self) -> bool:
        """Once, after the first averages: make buckets in the order in which gradients came, as it
        was in process 0. Returns whether it did."""
        self.check_finished()
        waits = (self.static_graph or not self.find_unused) and not self.rebuilt
        if not waits or not self.ready_order:
            return False
        from rushlight import distributed as dist

        order = functions["tensor"](self.ready_order, dtype=int64, device=self.parameters[0].device)
        dist.broadcast(order, dist.get_global_rank(self.group, 0), group=self.group)
        self.make_buckets(assign_buckets(self.parameters, order.tolist(), self.limits))
        self.rebuilt = True
        self.ready_order = []
        return True

    # --- one iteration ----------------------------------------------------------------------------
    def prepare_for_backward(self, outputs: Sequence[Any] | None) -> None:
        """A forward pass is over: expect gradients. Without outputs all parameters count."""
        self.check_finished()
        for bucket in self.buckets:
            bucket.pending = len(bucket.indices)
            bucket.work = None
        self.next_bucket = 0
        self.expects_gradients = True
        self.ready.clear()
        self.marked_unused = False
        self.unused = []
        if self.uses is not None:
            self.uses_left = list(self.uses)
            self.unused = [i for i, n in enumerate(self.uses) if n == 0]
        elif outputs is not None:
            met = leaves_of(outputs)
            self.unused = [i for i, p in enumerate(self.parameters) if id(p) not in met]
            if not self.unused and not self.warned:
                self.warned = True
                warnings.warn(_ALL_USED, UserWarning, stacklevel=4)

    def gradient_came(self, index: int) -> None:
        """A parameter's gradient is final for this backward pass (it may be None, where an output
        got no gradient)."""
        if self.parameters[index].grad is not None:
            self.used[index] = True
        if not self.expects_gradients:
            return  # `no_sync`: gradients add up here, and travel another time
        if self.static_graph and self.uses is None:
            self.first_uses[index] += 1  # the first pass counts, and sends all when it is over
            self.remember_order(index)
            return
        with no_grad():
            self.mark_unused()
            if self.uses is not None:
                self.uses_left[index] -= 1
                if self.uses_left[index] > 0:
                    return
                if self.uses_left[index] < 0:
                    raise RuntimeError(_CHANGED)
            self.remember_order(index)
            self.mark_ready(index)

    def remember_order(self, index: int) -> None:
        if not self.rebuilt and index not in self.ready_order:
            self.ready_order.append(index)

    def mark_unused(self) -> None:
        """Count unused parameters as ready, when the first gradient comes."""
        if not self.marked_unused:
            self.marked_unused = True
            for index in self.unused:
                self.mark_ready(index)

    def mark_ready(self, index: int) -> None:
        """Put a gradient into its bucket, and send the buckets that are full."""
        if index in self.ready:
            raise RuntimeError(
                f"{_TWICE}\nParameter at index {index} with name {self.names[index]}."
            )
        self.ready.add(index)
        self.started = True
        bucket, at = self.place[index]
        self.fill(self.parameters[index], bucket.views[at])
        bucket.pending -= 1
        if bucket.pending == 0:
            self.send_full_buckets()

    def fill(self, parameter: Any, view: Any) -> None:
        """Copy a gradient into its place, divided as far as that is not up to a hook."""
        grad = parameter.grad
        share = 1.0 if self.hook is not None else 1.0 / self.divisor
        if grad is None:
            view.zero_()
        elif grad is view:
            view.mul_(share)
        elif grad.dtype is view.dtype:
            functions["mul"](grad.detach(), share, out=view)
        else:
            view.copy_(grad.detach()).mul_(share)
        if self.as_view and grad is not None and grad is not view:
            parameter.grad = view

    def send_full_buckets(self) -> None:
        """Send what is full and in turn; see Note [Order of buckets]."""
        while self.next_bucket < len(self.buckets) and self.buckets[self.next_bucket].pending == 0:
            bucket = self.buckets[self.next_bucket]
            bucket.work = self.send(bucket, self.next_bucket)
            self.next_bucket += 1
        if self.next_bucket == len(self.buckets):
            if self.shares_use():
                self.used_work = self.send_used()
            Variable._execution_engine.queue_callback(self.finish)

    def send(self, bucket: Bucket, at: int) -> Any:
        """Start averaging a bucket; returns what to `wait` for."""
        from rushlight import distributed as dist

        if self.hook is None:
            return dist.all_reduce(bucket.buffer, group=self.group, async_op=True)
        state, hook = self.hook
        future = hook(state, GradBucket(bucket, at, at == len(self.buckets) - 1))
        if not callable(getattr(future, "wait", None)):
            raise RuntimeError(
                "Communication hook: expected a torch.futures.Future[torch.Tensor], got "
                f"{type(future).__name__}"
            )
        return future

    def send_used(self) -> Any:
        """Start adding up which parameters were used."""
        from rushlight import distributed as dist

        place = self.parameters[0].device
        self.used_counts = functions["tensor"](self.used, dtype=int32, device=place)
        return dist.all_reduce(self.used_counts, group=self.group, async_op=True)

    def shares_use(self) -> bool:
        """Whether processes tell each other which parameters they used. In a static graph they do
        so once."""
        if self.static_graph:
            return self.used_somewhere is None
        return self.find_unused and not self.skip_unused

    def awaits_end(self) -> bool:
        """Whether some gradients may never come, so that `end_of_backward` must be called."""
        return (self.find_unused and not self.static_graph) or (
            self.static_graph and self.uses is None
        )

    # --- the end of a pass ------------------------------------------------------------------------
    def end_of_backward(self) -> None:
        """The backward pass is over: what got no gradient gets none any more."""
        if not self.expects_gradients:
            return
        with no_grad():
            if self.static_graph and self.uses is None:
                for index in range(len(self.parameters)):
                    self.remember_order(index)
            for bucket in self.buckets:
                for index in bucket.indices:
                    if index not in self.ready:
                        self.mark_ready(index)

    def finish(self) -> None:
        """Wait for all averages and put them where the gradients were."""
        self.expects_gradients = False
        with no_grad():
            somewhere = self.collect_used()
            for bucket in self.buckets:
                self.put_back(bucket, somewhere)
        for future in self.post_backward_futures:
            future.wait()
        self.post_backward_futures = []
        if self.static_graph and self.uses is None:
            self.uses = list(self.first_uses)
        self.used = [False] * len(self.parameters)
        self.started = False

    def collect_used(self) -> list[bool] | None:
        """Which parameters were used by any process; None: all count as used."""
        if self.used_work is None:
            return self.used_somewhere
        self.used_work.wait()
        self.used_work = None
        found = [count > 0 for count in self.used_counts.tolist()]
        if self.static_graph:
            self.used_somewhere = found
        return found

    def put_back(self, bucket: Bucket, somewhere: list[bool] | None) -> None:
        """Wait for a bucket, and set the gradients in it."""
        done = bucket.work.wait()
        bucket.work = None
        views = bucket.views
        if self.hook is not None:
            result = done[0] if isinstance(done, list | tuple) else done
            views = bucket.cut(result.reshape(-1))
        for index, p, mine, got in zip(bucket.indices, bucket.parameters, bucket.views, views):
            if got is not mine and (self.as_view or got.dtype is not mine.dtype):
                mine.copy_(got)
                got = mine
            if somewhere is not None and not somewhere[index]:
                continue  # nobody used it: see Note [Unused parameters]
            if self.as_view:
                p.grad = got
            elif p.grad is None:
                p.grad = got.clone()
            else:
                p.grad.detach().copy_(got)

    def check_finished(self) -> None:
        """Raise if the last backward pass left gradients that wait to be averaged."""
        if not self.started:
            return
        if self.static_graph:
            raise RuntimeError(_CHANGED)
        from rushlight import distributed as dist

        missing = [i for i in range(len(self.parameters)) if i not in self.ready]
        rank = dist.get_rank(self.group)
        if not missing:
            raise RuntimeError(
                f"{_UNFINISHED}\nThe backward pass of rank {rank} ended early, with an error: "
                "make a new DistributedDataParallel to go on."
            )
        raise RuntimeError(
            f"{_UNFINISHED}\nParameters which did not receive grad for rank {rank}: "
            f"{', '.join(self.names[i] for i in missing)}\n"
            f"Parameter indices which did not receive grad for rank {rank}: "
            f"{' '.join(map(str, missing))}"
        )

    # --- uneven inputs ----------------------------------------------------------------------------
    def shadow(self) -> None:
        """Take part in the averages of one backward pass with gradients of 0; for `join`."""
        with no_grad():
            works = []
            for at, bucket in enumerate(self.buckets):
                empty = Bucket(bucket.indices, bucket.parameters)
                works.append(self.send(empty, at))
            for work in works:
                work.wait()
            if self.shares_use():
                self.used = [False] * len(self.parameters)
                self.used_work = self.send_used()
                self.collect_used()
            for index in range(len(self.parameters)):
                self.remember_order(index)  # others rebuild their buckets now, and so must this one

    def remove_hooks(self) -> None:
        """Stop listening to gradients."""
        self._remove_hooks()


def _hook(reducer: weakref.ref[Reducer], index: int) -> Callable[[Any], None]:
    """What a parameter calls when its gradient is final. Weak, for parameters outlive reducers."""

    def call(_: Any) -> None:
        alive = reducer()
        if alive is not None:
            alive.gradient_came(index)

    return call


def _remove(handles: list[Any]) -> None:
    for handle in handles:
        handle.remove()
