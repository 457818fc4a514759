"""PyTorch's names for ops, as programs compare with them: `aten.mm.default`, `aten.add.Tensor`.

Users see them as `torch.ops.aten`, which is `ops.aten`.
"""

from __future__ import annotations

from typing import Any, Final

from rushlight.core.graph import Op
from rushlight.ops import fill_more, fill_rest
from rushlight.ops.registry import functions, namespaces, table


class Named:
    """What there is one of for each name: copies are the object itself, a pickle holds the name."""

    def __copy__(self) -> Named:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Named:
        return self


class OpOverload(Named):
    """One form of an op, such as `aten.add.Tensor`; there is one object for each."""

    def __init__(self, overloadpacket: OpOverloadPacket, overload: str) -> None:
        self.overloadpacket = overloadpacket
        self._overloadname = overload
        self.namespace = "aten"
        self.__name__ = f"{overloadpacket.__name__}.{overload}"

    def name(self) -> str:
        """The name with PyTorch's colons: 'aten::add.Tensor', 'aten::mm'."""
        end = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"aten::{self.overloadpacket.__name__}{end}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.overloadpacket(*args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (self.overloadpacket, self._overloadname)

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.overloadpacket}', overload='{self._overloadname}')>"


class OpOverloadPacket(Named):
    """All forms of an op: `aten.add`, of which `aten.add.Tensor` is one."""

    def __init__(self, name: str) -> None:
        self.__name__ = name
        self._made: dict[str, OpOverload] = {}

    def __getattr__(self, overload: str) -> OpOverload:
        if overload.startswith("_"):
            # its name is asked of the dict: one that is still empty would ask here again
            name = self.__dict__.get("__name__", "")
            raise AttributeError(
                f"The underlying op of 'aten.{name}' has no overload name '{overload}'"
            )
        return self._made.setdefault(overload, OpOverload(self, overload))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = self.__name__.lstrip("_")
        fill_rest()
        for space, names in (("", functions), *namespaces.items()):
            for plain in (self.__name__, name, name.removeprefix(f"{space}_")):
                if plain in names:
                    return names[plain](*args, **kwargs)
        raise NotImplementedError(f"rushlight has no function for aten.{self.__name__}")

    def __reduce__(self) -> tuple[Any, ...]:
        return packet, (self.__name__,)

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"


_packets: Final[dict[str, OpOverloadPacket]] = {}

# What PyTorch has and rushlight lacks, among the ops that programs list because they are costly.
_LACKING: Final = frozenset(
    {
        "_pin_memory", "_sparse_addmm", "_sparse_mm_reduce_impl",
        "_efficient_attention_forward", "_flash_attention_forward", "_scaled_mm",
        "_scaled_dot_product_attention_math_for_mps", "_scaled_dot_product_cudnn_attention",
        "_scaled_dot_product_efficient_attention", "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_fused_attention_overrideable", "detach", "lift_fresh",
    }
)  # fmt: skip


def packet(name: str) -> OpOverloadPacket:
    """All forms of the op `name`. Some that rushlight lacks have names too: a program may list them
    next to others."""
    found = _packets.get(name)
    if found is None:
        if not _known(name):
            raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'")
        found = _packets.setdefault(name, OpOverloadPacket(name))
    return found


def _known(name: str) -> bool:
    plain = name.removesuffix("_")
    while plain not in functions and fill_more():
        continue
    if name in _LACKING or plain in table or plain in functions:
        return True
    if any(plain in names for names in namespaces.values()):
        return True
    return any((op.aten or "").partition(".")[0] == name for op in table.values())


def overload_of(op: Op, raws: tuple[Any, ...]) -> OpOverload:
    """What PyTorch calls an op of the table, applied to these raw inputs."""
    start, _, end = (op.aten or f"{op.name}.default").partition(".")
    forms = end.split("|")
    end = forms[0]
    if len(forms) == 2:  # for tensors, and for a tensor and a number
        if any(isinstance(x, (bool, int, float, complex)) for x in raws):
            end = forms[1]
    elif len(forms) == 3:  # for all elements, along a dimension and along several
        dims = op.dims  # type: ignore[attr-defined]
        if dims is not None:
            end = forms[1 if len(dims) == 1 else 2]
    found: OpOverload = getattr(packet(start), end)
    return found
