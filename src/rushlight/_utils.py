"""`torch._utils`: the functions that pickles of tensors call, by the name that programs use."""

from rushlight.serialization.rebuild import (
    _rebuild_meta_tensor_no_storage as _rebuild_meta_tensor_no_storage,
)
from rushlight.serialization.rebuild import _rebuild_parameter as _rebuild_parameter
from rushlight.serialization.rebuild import (
    _rebuild_parameter_with_state as _rebuild_parameter_with_state,
)
from rushlight.serialization.rebuild import _rebuild_sparse_tensor as _rebuild_sparse_tensor
from rushlight.serialization.rebuild import _rebuild_tensor as _rebuild_tensor
from rushlight.serialization.rebuild import _rebuild_tensor_v2 as _rebuild_tensor_v2
from rushlight.serialization.rebuild import _rebuild_tensor_v3 as _rebuild_tensor_v3

__all__: list[str] = []
