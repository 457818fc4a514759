"""`torch.sparse`: what is computed with sparse tensors, by the names that the op table gives it
there, and the switch for checking their parts."""

from __future__ import annotations

import functools as _functools
import typing as _typing

from rushlight.missing import face as _face
from rushlight.ops import fill_rest as _fill_rest
from rushlight.ops.described import describe as _describe
from rushlight.ops.registry import namespaces as _namespaces

_fill_rest()
for _fn in _namespaces["sparse"].values():
    _describe(_fn)
globals().update(_namespaces["sparse"])


class check_sparse_tensor_invariants:
    """Let new sparse tensors be checked: a block with `with`, a function as its decorator, or from
    now on with `enable()`. It is off at the beginning, since it takes time.

    >>> with torch.sparse.check_sparse_tensor_invariants():
    ...     torch.sparse_coo_tensor([[5]], [1.], (3,))
    Traceback (most recent call last):
    RuntimeError: size is inconsistent with indices: for dim 0, size is 3 but found index 5
    """

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self.saved_state: bool | None = None

    @staticmethod
    def is_enabled() -> bool:
        """Whether new sparse tensors are checked."""
        return bool(_checking().on)

    @staticmethod
    def enable() -> None:
        """Check from now on."""
        _checking().on = True

    @staticmethod
    def disable() -> None:
        """Check no more."""
        _checking().on = False

    def __enter__(self) -> None:
        if self.saved_state is not None:
            raise RuntimeError(
                "This context manager instance is already activated. Use a different context "
                "manager instance for context nesting."
            )
        self.saved_state = self.is_enabled()
        _checking().on = self.state

    def __exit__(self, *exc: object) -> None:
        assert self.saved_state is not None
        _checking().on = self.saved_state
        self.saved_state = None

    def __call__(
        self, fn: _typing.Callable[..., _typing.Any]
    ) -> _typing.Callable[..., _typing.Any]:
        @_functools.wraps(fn)
        def checked(*args: _typing.Any, **kwargs: _typing.Any) -> _typing.Any:
            with type(self)(self.state):
                return fn(*args, **kwargs)

        return checked


def as_sparse_gradcheck(
    gradcheck: _typing.Callable[..., bool],
) -> _typing.Callable[..., bool]:
    """Make `gradcheck` take sparse inputs and outputs: it looks at the values that are stored, or,
    with `masked=False`, at all.

    >>> gradcheck = torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)
    >>> s = torch.eye(2, dtype=torch.float64).to_sparse().requires_grad_()
    >>> gradcheck(lambda s: torch.sparse.mm(s, s), (s,), masked=True)
    True
    """

    @_functools.wraps(gradcheck)
    def checked(func: _typing.Any, inputs: _typing.Any, **kwargs: _typing.Any) -> bool:
        from rushlight.core.record import apply
        from rushlight.ops.registry import functions
        from rushlight.ops.sparse.rules import WithValues

        masked = kwargs.pop("masked", False)
        given = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
        leaves, masks = [], []
        for x in given:
            mask = None
            if _is_sparse(x) and x.requires_grad:
                mask = x.detach()
                if not masked:
                    full = functions["ones_like"](mask.to_dense())
                    block = mask.values().shape[-2:] if "bs" in str(x.layout) else None
                    mask = mask.to_dense().sparse_mask(
                        full.to_sparse(layout=x.layout, blocksize=block)
                    )
                if x.is_sparse:
                    mask = mask.coalesce()
                x = mask.values().clone().requires_grad_()
            leaves.append(x)
            masks.append(mask)

        def on_values(*values: _typing.Any) -> _typing.Any:
            args = [
                x if mask is None else apply(WithValues(), x, mask)
                for x, mask in zip(values, masks, strict=True)
            ]
            found = func(*args)
            if isinstance(found, (tuple, list)):
                return tuple(y.to_dense() if _is_sparse(y) else y for y in found)
            return found.to_dense() if _is_sparse(found) else found

        return gradcheck(on_values, tuple(leaves), **kwargs)

    return checked


def _is_sparse(x: _typing.Any) -> bool:
    from rushlight.core.graph import TensorBase

    return isinstance(x, TensorBase) and hasattr(x._array, "layout")


def _checking() -> _typing.Any:
    from rushlight.ops.sparse.making import checking

    return checking


__all__ = ["as_sparse_gradcheck", "check_sparse_tensor_invariants", *sorted(_namespaces["sparse"])]

if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.sparse", globals())
