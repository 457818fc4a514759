"""`DataParallel`: a module that is run on several devices, each with a part of the batch.

Without GPUs, or with one, the module is run as it is, as PyTorch does.
"""

from __future__ import annotations

from typing import Any

from rushlight.nn.modules.module import Module
from rushlight.nn.parallel.parallel_apply import parallel_apply
from rushlight.nn.parallel.replicate import replicate
from rushlight.nn.parallel.scatter_gather import gather, scatter_kwargs

__all__ = ["DataParallel", "data_parallel"]
__dir__ = __all__.copy


def _gpus() -> list[Any]:
    from rushlight import cuda

    return list(range(cuda.device_count())) if cuda.is_available() else []


class DataParallel(Module):
    """DataParallel(module, device_ids=None, output_device=None, dim=0): a module run on all GPUs,
    each with a part of the batch; without any, the module itself.

    >>> net = torch.nn.DataParallel(torch.nn.Linear(2, 3))
    >>> net(torch.ones(4, 2)).shape, list(net.state_dict())
    (torch.Size([4, 3]), ['module.weight', 'module.bias'])
    """

    module: Any

    def __init__(
        self, module: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        there = _gpus()
        if not there:
            self.module = module
            self.device_ids: list[Any] = []
            return
        from rushlight.arrays.device import device

        ids = there if device_ids is None else list(device_ids)
        if not ids:
            raise RuntimeError("no available devices were found")
        self.dim = dim
        self.module = module
        self.device_ids = [i if isinstance(i, int) else device(i).index or 0 for i in ids]
        self.output_device = self.device_ids[0] if output_device is None else output_device
        self.src_device_obj = device("cuda", self.device_ids[0])
        if len(self.device_ids) == 1:
            self.module.to(self.src_device_obj)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        for t in (*self.module.parameters(), *self.module.buffers()):
            if t.device != self.src_device_obj:
                raise RuntimeError(
                    "module must have its parameters and buffers on device "
                    f"{self.src_device_obj} (device_ids[0]) but found one of them on device: "
                    f"{t.device}"
                )
        parts, named = self.scatter(inputs, kwargs, self.device_ids)
        if not parts and not named:
            parts, named = ((),), ({},)
        if len(self.device_ids) == 1:
            return self.module(*parts[0], **named[0])
        replicas = self.replicate(self.module, self.device_ids[: len(parts)])
        return self.gather(self.parallel_apply(replicas, parts, named), self.output_device)

    def replicate(self, module: Any, device_ids: Any) -> list[Any]:
        """A replica for each device."""
        from rushlight.autograd.grad_mode import is_grad_enabled

        return replicate(module, [f"cuda:{i}" for i in device_ids], not is_grad_enabled())

    def scatter(self, inputs: Any, kwargs: Any, device_ids: Any) -> Any:
        """The arguments of each device."""
        return scatter_kwargs(inputs, kwargs, [f"cuda:{i}" for i in device_ids], self.dim)

    def parallel_apply(self, replicas: Any, inputs: Any, kwargs: Any) -> list[Any]:
        """The results of each device."""
        return parallel_apply(replicas, inputs, kwargs, self.device_ids[: len(replicas)])

    def gather(self, outputs: Any, output_device: Any) -> Any:
        """The results together."""
        place = f"cuda:{output_device}" if isinstance(output_device, int) else output_device
        return gather(outputs, place, self.dim)


def data_parallel(
    module: Any, inputs: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0,
    module_kwargs: Any = None,
) -> Any:  # fmt: skip
    """`DataParallel(module)` of inputs, as a function.

    >>> torch.nn.parallel.data_parallel(torch.nn.ReLU(), torch.tensor([-1., 1.]))
    tensor([0., 1.])
    """
    given = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    net = DataParallel(module, device_ids, output_device, dim)
    return net(*given, **(module_kwargs or {}))
