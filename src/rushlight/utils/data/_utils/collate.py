"""Collating: a list of samples becomes a batch, sample by sample alike in structure.

[(tensor, {"a": 1}), (tensor, {"a": 2})]  ->  [tensor of a batch, {"a": tensor of two}]
"""

from __future__ import annotations

import collections.abc
import copy
import re
from collections.abc import Callable
from typing import Any, Final

from rushlight.arrays import vocabulary as v
from rushlight.arrays.host import ARRAY, SCALARS, asarray, is_array, is_scalar
from rushlight.core.grad_mode import state
from rushlight.core.graph import wrap
from rushlight.core.record import finish
from rushlight.dtypes import float64
from rushlight.ops.registry import functions
from rushlight.tensor import Tensor

__all__ = [
    "collate", "collate_float_fn", "collate_int_fn", "collate_numpy_array_fn",
    "collate_numpy_scalar_fn", "collate_str_fn", "collate_tensor_fn", "default_collate",
    "default_collate_err_msg_format", "default_collate_fn_map", "default_convert",
]  # fmt: skip
__dir__ = __all__.copy

np_str_obj_array_pattern: Final = re.compile(r"[SaUO]")  # of NumPy dtypes: text, and objects

default_collate_err_msg_format: Final = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)

_PLAIN: Final = {Tensor}
CollateMap = dict[Any, Callable[..., Any]]


def _is_text(kind: str) -> bool:
    """Whether arrays of a NumPy dtype hold texts or objects, which no tensor does."""
    return kind in "SUOa"


def default_convert(data: Any) -> Any:
    """default_convert(data): NumPy arrays become tensors, in whatever holds them; the rest stays.

    It is what a `DataLoader` with `batch_size=None` does to each sample.

    >>> import numpy
    >>> torch.utils.data.default_convert({"x": numpy.ones(2), "name": "a"})
    {'x': tensor([1., 1.], dtype=torch.float64), 'name': 'a'}
    """
    if isinstance(data, Tensor):
        return data
    if is_array(data) or is_scalar(data):
        return data if is_array(data) and _is_text(data.dtype.kind) else _as_tensor(data)
    if isinstance(data, collections.abc.Mapping):
        return _like_mapping(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(x) for x in data))
    if isinstance(data, tuple):
        return [default_convert(x) for x in data]
    if isinstance(data, collections.abc.Sequence) and not isinstance(data, str | bytes):
        return _like_sequence(data, [default_convert(x) for x in data])
    return data


def _as_tensor(data: Any) -> Any:
    return functions["as_tensor"](data)


def _like_mapping(model: Any, values: dict[Any, Any]) -> Any:
    """These values in a mapping of the class of `model`, with its other attributes."""
    try:
        if isinstance(model, collections.abc.MutableMapping):
            made = copy.copy(model)
            made.update(values)
            return made
        return type(model)(values)
    except TypeError:  # a class that cannot be copied, nor made from a mapping
        return values


def _like_sequence(model: Any, values: list[Any]) -> Any:
    try:
        if isinstance(model, collections.abc.MutableSequence):
            made = copy.copy(model)
            for i, value in enumerate(values):
                made[i] = value
            return made
        return values if isinstance(model, range) else type(model)(values)
    except TypeError:
        return values


def collate(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """collate(batch, *, collate_fn_map=None): a batch of samples, by the functions that a map
    gives for their types; those for whole containers come before looking into them.

    >>> from rushlight.utils.data._utils.collate import collate
    >>> collate([1, 2], collate_fn_map={int: lambda batch, *, collate_fn_map=None: sum(batch)})
    3
    """
    first = batch[0]
    kind = type(first)
    if collate_fn_map is not None:
        if kind in collate_fn_map:
            return collate_fn_map[kind](batch, collate_fn_map=collate_fn_map)
        for known, fn in collate_fn_map.items():
            if isinstance(first, known):
                return fn(batch, collate_fn_map=collate_fn_map)

    def inner(samples: Any) -> Any:
        return collate(samples, collate_fn_map=collate_fn_map)

    if isinstance(first, collections.abc.Mapping):
        return _like_mapping(first, {key: inner([d[key] for d in batch]) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return kind(*(inner(column) for column in zip(*batch, strict=True)))
    if isinstance(first, collections.abc.Sequence):
        if len(set(map(len, batch))) > 1:
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [inner(column) for column in zip(*batch, strict=True)]
        return columns if isinstance(first, tuple) else _like_sequence(first, columns)
    raise TypeError(default_collate_err_msg_format.format(kind))


def collate_tensor_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Tensors of one shape, stacked."""
    joined = _joined(batch)
    if joined is not None:
        return joined
    try:
        return functions["stack"](batch, 0)
    except RuntimeError as error:
        if all(x.shape == batch[0].shape for x in batch):
            raise
        raise RuntimeError(
            f"{error}\nThe samples of a batch must be of one size: crop or pad them in the "
            "dataset, or give the DataLoader a `collate_fn` that does "
            "(`nn.utils.rnn.pad_sequence`)."
        ) from None


def _joined(batch: Any) -> Any:
    """Plain tensors of one shape, stacked; None for others, and for mistakes.

    `stack` asks of each tensor what recording an op wants to know. A batch has hundreds, which
    have no history: here one loop looks at them.
    """
    if state.active or set(map(type, batch)) != _PLAIN:
        return None
    arrays = []
    for t in batch:
        if t._requires_grad or t._node is not None:
            return None
        arrays.append(t._array)
    first = arrays[0]
    shape, dtype = first.shape, first.dtype
    if not is_array(first) or len({(array.shape, array.dtype) for array in arrays}) > 1:
        return None
    if not shape:
        return finish(wrap(asarray(arrays, dtype)))
    return finish(wrap(v.reshape(v.concat(arrays, 0), (len(arrays), *shape))))


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """NumPy arrays of one shape, as one tensor."""
    if _is_text(batch[0].dtype.kind):
        raise TypeError(default_collate_err_msg_format.format(batch[0].dtype))
    return collate([_as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """NumPy's numbers, as one tensor of their dtype."""
    return _as_tensor(batch)


def collate_float_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Python's floats: in double precision, as they are."""
    return functions["tensor"](batch, dtype=float64)


def collate_int_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Ints, as one tensor."""
    return functions["tensor"](batch)


def collate_str_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Texts stay what they are."""
    return batch


default_collate_fn_map: Final[CollateMap] = {
    Tensor: collate_tensor_fn,
    ARRAY: collate_numpy_array_fn,
    SCALARS: collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch: Any) -> Any:
    """default_collate(batch): a list of samples as a batch.

    Tensors, arrays and numbers become tensors with a new first dimension; mappings and sequences of
    them hold batches; texts stay a list.

    >>> torch.utils.data.default_collate([(1, "a"), (2, "b")])
    [tensor([1, 2]), ('a', 'b')]
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
