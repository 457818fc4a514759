"""What rushlight has not, and programs import all the same: stand-ins that say so when used.

Libraries import names of process groups, quantised layers or C++ extensions at their top, and use
them only where a user asks for that. So the modules in `MODULES` can be imported (`compat` makes
them), and every name in them is a stand-in: a class of which nothing is an instance, or a function.

>>> from rushlight import absent
>>> rpc = absent.module("torch.distributed.rpc")
>>> isinstance(torch.nn.Linear(1, 1), rpc.RRef)
False
>>> rpc.RRef(1)  # doctest: +ELLIPSIS
Traceback (most recent call last):
RuntimeError: torch.distributed.rpc.RRef cannot work: rushlight has not this part of ...
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any, Final, NoReturn

_NOT_HERE: Final = "rushlight has not this part of torch.distributed"

# By the package: the modules that can be imported, with all in them, and why they cannot work.
MODULES: Final = {
    "torch.distributed": (
        "_composable _composable_state _shard _symmetric_memory _tensor autograd c10d_logger "
        "collective_utils launcher logging_handlers pipelining remote_device rpc utils",
        _NOT_HERE,
    ),
    "torch.distributed.algorithms": (
        "_checkpoint _comm_hooks _optimizer_overlap _quantization model_averaging", _NOT_HERE
    ),
    "torch.distributed.algorithms.ddp_comm_hooks": (
        "ddp_zero_hook mixed_precision_hooks optimizer_overlap_hooks post_localSGD_hook "
        "powerSGD_hook quantization_hooks",
        _NOT_HERE,
    ),
    "torch.distributed.checkpoint": (
        "_fsspec_filesystem _hf_utils _state_dict_stager hf_storage logger logging_handlers "
        "optimizer quantized_hf_storage",
        _NOT_HERE,
    ),
    "torch.distributed.elastic": (
        "agent control_plane events metrics rendezvous timer", _NOT_HERE
    ),
    "torch.distributed.fsdp": (
        "_common_utils _flat_param _fsdp_extensions _init_utils _optim_utils _runtime_utils "
        "_traversal_utils _unshard_param_utils _wrap_utils sharded_grad_scaler",
        _NOT_HERE,
    ),
    "torch.distributed.optim": (
        "apply_optimizer_in_backward named_optimizer optimizer post_localSGD_optimizer utils",
        _NOT_HERE,
    ),
    "torch.distributed.tensor": (
        "_dtensor_spec _op_schema _ops _random debug device_mesh experimental parallel", _NOT_HERE
    ),
    "torch._C": ("_distributed_c10d _distributed_rpc _functorch", "rushlight has no compiled core"),
    "torch": (
        "_custom_ops _decomp _functorch _prims _prims_common _refs ao numa quantization",
        "rushlight has neither quantised tensors nor these insides of PyTorch's",
    ),
    "torch.nn": (
        "intrinsic qat quantizable quantized", "rushlight has no quantised tensors and layers"
    ),
    "torch.cuda": (
        "_memory_viz comm gds graphs green_contexts jiterator nccl profiler tunable",
        "rushlight reaches GPUs through CuPy alone",
    ),
    "torch.utils": (
        "cpp_extension flop_counter hipify mobile_optimizer",
        "rushlight compiles no C++ and no CUDA, and does not count multiplications",
    ),
    "torch._dynamo": (
        "backends convert_frame eval_frame exc external_utils symbolic_convert testing trace_rules "
        "utils variables",
        "rushlight compiles nothing",
    ),
    "torch._inductor": (
        "codecache compile_fx cpu_vec_isa exc ir lowering runtime scheduler utils virtualized",
        "rushlight compiles nothing",
    ),
    "torch.onnx": (
        "_internal errors ops operators symbolic_opset11 symbolic_opset12 "
        "symbolic_opset9 utils",
        "rushlight writes no ONNX",
    ),
    "torch.export": (
        "_trace decomp_utils dynamic_shapes exported_program graph_signature passes unflatten",
        "rushlight makes no exported programs",
    ),
}  # fmt: skip


def why(module: str) -> str | None:
    """Why a module of PyTorch's cannot work here; None if it is none of those above.

    >>> from rushlight import absent
    >>> absent.why("torch.distributed.tensor.parallel"), absent.why("torch.nn")
    ('rushlight has not this part of torch.distributed', None)
    """
    parts = module.split(".")
    for at in range(1, len(parts)):
        names, reason = MODULES.get(".".join(parts[:at]), ("", ""))
        if parts[at] in names.split():
            return reason
    return None


_made: Final[dict[str, ModuleType]] = {}


def module(name: str) -> ModuleType:
    """A module of stand-ins, for one whose name `why` knows; each is made once."""
    if name in _made:
        return _made[name]
    made = _made[name] = ModuleType(name, f"`{name}` cannot work: {why(name)}.")
    reason = why(name) or ""

    def __getattr__(asked: str) -> Any:
        if asked.startswith("__"):
            raise AttributeError(f"module {name!r} has no attribute {asked!r}")
        found = stand_in(f"{name}.{asked}", reason)
        setattr(made, asked, found)
        return found

    vars(made)["__getattr__"] = __getattr__
    return made


def stand_in(name: str, reason: str) -> Any:
    """A class, if the name begins with a capital letter, or a function, that cannot be used; None
    for a constant, in capital letters (`CUDA_HOME`). Questions (`is_available`) are answered no."""
    home, _, last = name.rpartition(".")
    message = f"{name} cannot work: {reason}"
    if last.isupper() and len(last) > 1:
        return None
    if last.startswith(("is_", "_is_", "has_")):
        return lambda *args, **kwargs: False
    if not last.lstrip("_")[:1].isupper():
        return _Function(name, reason)
    space = {"__module__": home, "__doc__": f"{message}.", "_message": message}
    return _Absent(last, (), space)


class _Function:
    """A function, or a module, of what rushlight has not. As a decorator it hands back the
    function, which does without; any other call raises."""

    def __init__(self, name: str, reason: str) -> None:
        self.__name__ = self.__qualname__ = name.rpartition(".")[2]
        self._name, self._reason = name, reason

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and isinstance(args[0], FunctionType):
            return args[0]
        raise RuntimeError(f"{self._name} cannot work: {self._reason}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"{self._name!r} has no attribute {name!r}")
        return stand_in(f"{self._name}.{name}", self._reason)


class _Absent(type):
    """The class of classes that have no instances and no members."""

    _message: str

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(cls._message)

    def __getattr__(cls, name: str) -> NoReturn:
        raise AttributeError(
            f"type object {cls.__name__!r} has no attribute {name!r}: {cls._message}"
        )


def lacking(
    name: str, message: str, kind: type[Exception] = RuntimeError
) -> Callable[..., NoReturn]:
    """A function called `name` that raises `kind(message)`."""

    def call(*args: Any, **kwargs: Any) -> NoReturn:
        raise kind(message)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"{name}(...): raises {kind.__name__}: {message}."
    return call
