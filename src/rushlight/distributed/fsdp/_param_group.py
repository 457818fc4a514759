"""The parameters of one sharded module: cut into parts, gathered for use, gradients averaged.

Note [Whole for a while]
    A parameter exists twice. The DTensor is what the optimiser knows: this process's rows. The
    whole parameter is what `forward` uses: a leaf that stands in the module's place for it while
    it is gathered. Between uses it has no memory: its values are one zero, expanded to the shape,
    so that the graph goes on knowing it as the leaf it is.

    What `forward` saves for backward would keep the memory alive. So a pack hook notes, in place of
    memory that belongs to a whole parameter, which parameter and which view of it; the unpack hook
    gathers the parameter again.
"""

from __future__ import annotations

from typing import Any, Final
from weakref import WeakValueDictionary

from rushlight.autograd.grad_mode import no_grad
from rushlight.autograd.variable import Variable
from rushlight.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from rushlight.nn.parameter import Parameter
from rushlight.ops.registry import functions

# By the address of a memory: the whole parameter that it is of, as long as somebody has it.
gathered: Final[WeakValueDictionary[int, ShardedParam]] = WeakValueDictionary()


class ShardedParam:
    """One parameter: the part of it that is kept, and the whole."""

    def __init__(self, owners: list[tuple[Any, str]], param: Any, mesh: Any, group: Any) -> None:
        self.owners = owners  # a parameter may be shared by several modules
        self.group: ParamGroup = group
        placements = [Replicate()] * (mesh.ndim - 1) + [Shard(0)]
        part = distribute_tensor(param.detach(), mesh, placements, src_data_rank=None)
        self.shape = tuple(param.shape)
        self.sharded: Any = Parameter(part, requires_grad=bool(param.requires_grad))
        self.rows = -(-self.shape[0] // mesh.size(mesh.ndim - 1))  # of the largest part
        self.row_size = int(param[0].numel()) if self.shape[0] else 0
        self.dtype = param.dtype
        self.whole: Any = None
        self.address = 0
        self.place(self.sharded)

    def place(self, param: Any) -> None:
        """Put a tensor in the parameter's place in its modules."""
        for module, name in self.owners:
            module._parameters[name] = param

    def local_rows(self, dtype: Any, device: Any) -> Any:
        """This process's rows as one vector, with zeros behind them where others have more."""
        local = self.sharded.to_local().detach().to(device=device, dtype=dtype).reshape(-1)
        lacking = self.rows * self.row_size - local.numel()
        return functions["cat"]([local, local.new_zeros(lacking)]) if lacking else local

    def fill(self, values: Any) -> None:
        """Give the whole parameter its values."""
        if self.whole is None:
            self.whole = Parameter(values, requires_grad=bool(self.sharded.requires_grad))
            if self.whole.requires_grad:
                self.whole.register_post_accumulate_grad_hook(lambda _: self.group.note(self))
        else:
            self.whole.data = values
            self.whole.requires_grad_(bool(self.sharded.requires_grad))
        self.address = self.whole.untyped_storage().data_ptr()
        gathered[self.address] = self
        self.place(self.whole)

    def empty(self) -> None:
        """Take the whole parameter's memory, and put the part in its place."""
        gathered.pop(self.address, None)
        if self.whole is not None:
            one = functions["zeros"]((1,), dtype=self.whole.dtype, device=self.whole.device)
            self.whole.data = one.expand(self.shape)
        self.place(self.sharded)

    def as_rows(self, grad: Any, dtype: Any, ranks: int) -> Any:
        """A whole gradient as a row for each process."""
        grad = grad.detach().to(dtype).reshape(-1)
        lacking = ranks * self.rows * self.row_size - grad.numel()
        if lacking:
            grad = functions["cat"]([grad, grad.new_zeros(lacking)])
        return grad.reshape(ranks, self.rows * self.row_size)


class ParamGroup:
    """The parameters of one module that are gathered and averaged together."""

    def __init__(
        self, params: list[tuple[Any, list[tuple[Any, str]]]], mesh: Any, policy: Any,
        offloaded: bool,
    ) -> None:  # fmt: skip
        self.mesh = mesh
        self.policy = policy
        self.offloaded = offloaded
        self.shard_group = mesh.get_group(mesh.ndim - 1)
        self.ranks = mesh.size(mesh.ndim - 1)
        self.params = [ShardedParam(owners, param, mesh, self) for param, owners in params]
        self.is_whole = False
        self.versions: list[int] = []  # of the parts, when they were gathered
        self.syncs = True
        self.divide_by: float | None = None
        self.noted: set[int] = set()
        self.waiting = False  # for the end of the backward pass
        self.device: Any = mesh.device_type
        if offloaded:
            with no_grad():
                for param in self.params:
                    param.sharded.data = param.sharded.detach().cpu()

    def _by_dtype(self) -> dict[Any, list[ShardedParam]]:
        found: dict[Any, list[ShardedParam]] = {}
        for param in self.params:
            found.setdefault(param.dtype, []).append(param)
        return found

    # --- gathering ------------------------------------------------------------------------------
    def unshard(self) -> None:
        """Gather the parameters: all in one message for each dtype."""
        versions = [param.sharded._version for param in self.params]
        if self.is_whole and versions == self.versions:
            return
        self.reshard()  # somebody wrote to the parts since they were gathered
        self.versions = versions
        from rushlight import distributed as dist

        with no_grad():
            for kind, params in self._by_dtype().items():
                dtype = self.policy.param_dtype or kind
                rows = [param.local_rows(dtype, self.device) for param in params]
                mine = functions["cat"](rows)
                everyone = mine.new_empty((self.ranks * mine.numel(),))
                dist.all_gather_into_tensor(everyone, mine, group=self.shard_group)
                table, at = everyone.reshape(self.ranks, mine.numel()), 0
                for param in params:
                    size = param.rows * param.row_size
                    values = table[:, at : at + size].reshape(-1)
                    count = param.shape[0] * param.row_size
                    param.fill(values[:count].clone().reshape(param.shape))
                    at += size
        self.is_whole = True

    def reshard(self) -> None:
        """Give the memory of the whole parameters back."""
        if self.is_whole:
            with no_grad():
                for param in self.params:
                    param.empty()
            self.is_whole = False

    # --- gradients ------------------------------------------------------------------------------
    def note(self, param: ShardedParam) -> None:
        """A whole parameter has its gradient. When all have, they are averaged; those that have
        none by the end of the backward pass were not used."""
        self.noted.add(id(param))
        if not self.waiting:
            self.waiting = True
            Variable._execution_engine.queue_callback(self.end_of_backward)
        if all(id(p) in self.noted for p in self.params if p.sharded.requires_grad):
            self.finish()

    def end_of_backward(self) -> None:
        """Average what is left, and give memory back."""
        self.waiting = False
        if self.noted:
            self.finish()
        self.reshard()

    def finish(self) -> None:
        """Average the gradients over the processes, unless that is put off; give memory back."""
        self.noted.clear()
        if self.syncs:
            with no_grad():
                for kind, params in self._by_dtype().items():
                    self._reduce(kind, [p for p in params if p.sharded.requires_grad])
        self.reshard()

    def _reduce(self, kind: Any, params: list[ShardedParam]) -> None:
        """Each process gets its rows of the average of all gradients. One number for each parameter
        travels with them: how many processes used it. What nobody used gets no gradient."""
        from rushlight import distributed as dist

        if not params:
            return
        dtype = self.policy.reduce_dtype or self.policy.param_dtype or kind
        columns = []
        for param in params:
            grad = None if param.whole is None else param.whole.grad
            if grad is None:
                grad = functions["zeros"](param.shape, dtype=dtype, device=self.device)
            columns.append(param.as_rows(grad, dtype, self.ranks))
        used = [float(p.whole is not None and p.whole.grad is not None) for p in params]
        flags = functions["tensor"](used, dtype=dtype, device=columns[0].device)
        columns.append(flags.expand(self.ranks, len(params)))
        sent = functions["cat"](columns, 1)
        mine = sent.new_empty((sent.size(1),))
        dist.reduce_scatter_tensor(mine, sent.reshape(-1), group=self.shard_group)
        for n in range(self.mesh.ndim - 1):
            dist.all_reduce(mine, group=self.mesh.get_group(n))
        counts = mine[-len(params) :].tolist()
        total = self.divide_by or float(self.mesh.size())
        at = 0
        for param, count in zip(params, counts, strict=True):
            size = param.rows * param.row_size
            if count:
                self._add_grad(param, mine[at : at + size] / total)
            if param.whole is not None:
                param.whole.grad = None
            at += size

    def _add_grad(self, param: ShardedParam, rows: Any) -> None:
        sharded = param.sharded
        local = sharded.to_local()
        # the dtype and the device of the part: the optimiser works there
        values = rows[: local.numel()].clone().reshape(local.shape).to(local)
        grad = DTensor.from_local(
            values, sharded.device_mesh, sharded.placements, shape=sharded.shape
        )
        if sharded.grad is None:
            sharded.grad = grad
        else:
            sharded.grad += grad


# --- what forward saves ---------------------------------------------------------------------------
class _Saved:
    """A view of a whole parameter, noted in place of its memory."""

    def __init__(self, param: ShardedParam, tensor: Any) -> None:
        self.param = param
        self.form = tuple(tensor.shape), tuple(tensor.stride()), int(tensor.storage_offset())

    def get(self) -> Any:
        self.param.group.unshard()
        group = self.param.group
        if not group.waiting:  # in a backward pass: its end gives the memory back
            group.waiting = True
            try:
                Variable._execution_engine.queue_callback(group.end_of_backward)
            except RuntimeError:  # outside of one, somebody looks at what a node saved
                group.waiting = False
        return self.param.whole.detach().as_strided(*self.form)


def pack(tensor: Any) -> Any:
    """What a node keeps in place of a tensor. See Note [Whole for a while]."""
    param = gathered.get(tensor.untyped_storage().data_ptr())
    return tensor if param is None else _Saved(param, tensor)


def unpack(kept: Any) -> Any:
    """The tensor that a node kept."""
    return kept.get() if isinstance(kept, _Saved) else kept
