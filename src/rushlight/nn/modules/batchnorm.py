"""Batch normalisation."""

from __future__ import annotations

from typing import Any

from rushlight import dtypes
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.modules.linear import new_parameter
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.utils import explain
from rushlight.ops.registry import functions

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"]
__dir__ = __all__.copy


class Norm(Module):
    """Normalises channels. It may keep running statistics for evaluation, and scale and shift."""

    _version = 2  # since 2 the number of batches is saved
    num_batches_tracked: Any

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1,
        affine: bool = True, track_running_stats: bool = True, device: Any = None,
        dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, wanted in (("weight", True), ("bias", bias)):
            there = affine and wanted
            self.register_parameter(
                name, new_parameter(num_features, device=device, dtype=dtype) if there else None
            )
        if track_running_stats:
            kind = {"device": device, "dtype": dtype}
            self.register_buffer("running_mean", functions["zeros"](num_features, **kind))
            self.register_buffer("running_var", functions["ones"](num_features, **kind))
            count = functions["tensor"](0, dtype=dtypes.int64, device=device)
            self.register_buffer("num_batches_tracked", count)
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget the batches seen."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Scale by 1, shift by 0, no batches seen."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input: Any) -> None:
        raise NotImplementedError

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: dict[str, Any], strict: bool,
        missing_keys: list[str], unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:  # fmt: skip
        version = local_metadata.get("version")
        if (version is None or version < 2) and self.track_running_stats:
            state_dict.setdefault(prefix + "num_batches_tracked", self.num_batches_tracked)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class BatchNorm(Norm):
    """Normalises each channel over the batch, and keeps running statistics for evaluation."""

    def forward(self, input: Any) -> Any:
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the plain average of all batches
                momentum = 1.0 / float(self.num_batches_tracked)
        kept = self.running_mean is not None and self.running_var is not None
        keeps = not self.training or self.track_running_stats
        return F.batch_norm(
            input, self.running_mean if keeps else None, self.running_var if keeps else None,
            self.weight, self.bias, self.training or not kept, momentum, self.eps,
        )  # fmt: skip


class BatchNorm1d(BatchNorm):
    """BatchNorm1d(num_features, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True):
    of (N, C) or (N, C, L).

    >>> torch.nn.BatchNorm1d(1, affine=False)(torch.tensor([[1.], [3.]]))
    tensor([[-1.0000],
            [ 1.0000]])
    """

    def _check_input_dim(self, input: Any) -> None:
        if input.ndim not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.ndim}D input)")


class BatchNorm2d(BatchNorm):
    """BatchNorm2d(num_features, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True):
    of images, (N, C, H, W)."""

    def _check_input_dim(self, input: Any) -> None:
        if input.ndim != 4:
            raise ValueError(f"expected 4D input (got {input.ndim}D input)")


class BatchNorm3d(BatchNorm):
    """BatchNorm3d(num_features, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True):
    of volumes, (N, C, D, H, W)."""

    def _check_input_dim(self, input: Any) -> None:
        if input.ndim != 5:
            raise ValueError(f"expected 5D input (got {input.ndim}D input)")


class SyncBatchNorm(BatchNorm):
    """SyncBatchNorm(num_features, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True,
    process_group=None): batch normalisation over the batches of all processes together, of inputs
    of any rank. In one process, and in `eval`, it is `BatchNorm`.

    Args:
        num_features: channels, C.
        eps: added to the variance, so that nothing is divided by 0.
        momentum: the share of a new batch in the running statistics; None: all count the same.
        affine: whether to learn a factor and a summand for each channel.
        track_running_stats: whether to keep running statistics, for `eval`.
        process_group: the processes; None: all.

    >>> torch.nn.SyncBatchNorm(1, affine=False)(torch.tensor([[1.], [3.]]))
    tensor([[-1.0000],
            [ 1.0000]])
    """

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1,
        affine: bool = True, track_running_stats: bool = True, process_group: Any = None,
        device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    def _check_input_dim(self, input: Any) -> None:
        if input.ndim < 2:
            raise ValueError(f"expected at least 2D input (got {input.ndim}D input)")
        if input.shape[1] == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    def forward(self, input: Any) -> Any:
        from rushlight import distributed as dist

        self._check_input_dim(input)
        synced = self.training and dist.is_available() and dist.is_initialized()
        if not synced or dist.get_world_size(self.process_group) == 1:
            return super().forward(input)
        from rushlight.nn.modules.sync_batch_norm import sync_batch_norm

        momentum = 0.0 if self.momentum is None else self.momentum
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the plain average of all batches
                momentum = 1.0 / float(self.num_batches_tracked)
        return sync_batch_norm(
            input, self.weight, self.bias, self.running_mean, self.running_var, self.eps, momentum,
            self.process_group,
        )  # fmt: skip

    @classmethod
    def convert_sync_batchnorm(cls, module: Any, process_group: Any = None) -> Any:
        """The module with every `BatchNorm` in it replaced, its parameters and statistics kept.

        >>> net = torch.nn.Sequential(torch.nn.BatchNorm1d(2))
        >>> type(torch.nn.SyncBatchNorm.convert_sync_batchnorm(net)[0]).__name__
        'SyncBatchNorm'
        """
        made = module
        if isinstance(module, BatchNorm):
            made = cls(
                module.num_features, module.eps, module.momentum, module.affine,
                module.track_running_stats, process_group, bias=module.bias is not None,
            )  # fmt: skip
            for name in ("weight", "bias"):
                if getattr(module, name) is not None:
                    setattr(made, name, getattr(module, name))
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                setattr(made, name, getattr(module, name))
            made.training = module.training
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made


explain(
    """
num_features: channels, C.
eps: added to the variance, so that nothing is divided by 0.
momentum: the share of a new batch in the running statistics; None: all batches count the same.
affine: whether to learn a factor and a summand for each channel.
track_running_stats: whether to keep running statistics, for `eval`; else each batch's own serve.
bias: whether there is that summand.
""",
    BatchNorm1d, BatchNorm2d, BatchNorm3d,
)  # fmt: skip


_NormBase, _BatchNorm = Norm, BatchNorm  # PyTorch's names, which libraries ask `isinstance` for
