"""Functions of functions: derivatives and batches as values, composed at will.

    grad, grad_and_value    the gradient of a function that gives one number
    vjp, jvp, linearize     products with the Jacobian, backward and forward
    jacrev, jacfwd, hessian whole matrices of derivatives
    vmap                    a function of one example, applied to a batch
    functional_call         a module as a function of its parameters
    stack_module_state      the parameters of several modules as a batch

The files: `batching` (vmap), `reverse` and `forward` (derivatives), `tracking` (what enters and
leaves a derivative), `arguments` (argnums, aux), `modules`. Below them stands
`core.transforms`.

>>> from rushlight.func import grad, vmap
>>> vmap(grad(torch.sin))(torch.zeros(3))
tensor([1., 1., 1.])
"""

from __future__ import annotations

import typing as _typing

from rushlight.func.batching import debug_unwrap, vmap
from rushlight.func.forward import hessian, jacfwd, jvp
from rushlight.func.modules import (
    functional_call,
    replace_all_batch_norm_modules_,
    stack_module_state,
)
from rushlight.func.reverse import grad, grad_and_value, jacrev, linearize, vjp
from rushlight.missing import face as _face
from rushlight.ops.described import describe_all as _describe_all

__all__ = [
    "debug_unwrap", "functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev",
    "jvp", "linearize", "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap",
]  # fmt: skip

_describe_all(globals(), __all__)

if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.func", globals())
